"""Notebooks in tests: executed in a kernel of their own, over pipes of the file system, and told as Markdown."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import nbformat
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager
from nbclient import NotebookClient
from traitlets.config import Config

from support.command import environment
from support.model_server import ModelServer

__all__ = ["answering", "executed", "kernel", "steady", "told"]


def executed(path: Path, home: Path, **env: str) -> Any:
    """Return the notebook with what its cells came to: all of it, so that two runs show what depends on time or machine."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    resources = {"metadata": {"path": str(path.parent)}}
    with TemporaryDirectory(prefix="kw") as sockets:  # a socket's path has a hundred letters at most
        config = Config({"KernelManager": {"transport": "ipc", "ip": f"{sockets}/k"}})
        client = NotebookClient(notebook, config=config, timeout=60, resources=resources, record_timing=False)
        client.execute(env=environment(home, IPYTHONDIR=str(home / "ipython"), **env))
    notebook.metadata["language_info"] = {"name": "python"}
    return notebook


@contextmanager
def answering(delay: float = 0.0) -> Iterator[str]:
    """A model that answers after a while: its spec."""
    server, loop = ModelServer(delay=delay), asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
    try:
        yield f"{server.url}#slow"
    finally:
        asyncio.run_coroutine_threadsafe(server.__aexit__(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


@contextmanager
def kernel(home: Path, **env: str) -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    """A kernel and a client of it."""
    with TemporaryDirectory(prefix="kw") as sockets:
        manager = KernelManager(kernel_name="python3", transport="ipc", ip=f"{sockets}/k")
        manager.start_kernel(cwd=str(home), env=environment(home, IPYTHONDIR=str(home / "ipython"), **env))
        client = manager.client()
        client.start_channels()
        try:
            client.wait_for_ready(timeout=30)
            yield manager, client
        finally:
            client.stop_channels()
            manager.shutdown_kernel(now=True)


def steady(text: str) -> str:
    """Leave out where things stand in a picture: another version of the layout may put them elsewhere."""
    text = re.sub(r'text-anchor=\\?"\w+\\?"', "ANCHOR", text)
    return re.sub(r"-?\d+\.\d+", "N", text)


def told(notebook: Any, beside: str) -> tuple[str, dict[str, str]]:
    """Return an executed notebook as Markdown, and its pictures by the names that it has for them (``beside`` comes before)."""
    parts, pictures = list[str](), dict[str, str]()
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source.replace("# ", "### ", 1) if cell.source.startswith("# ") else cell.source)
            continue
        parts.append(f"```ipython\n{cell.source}\n```")
        for output in cell.outputs:
            html = output.get("data", {}).get("text/html", "")
            if html.startswith("<svg"):
                name = f"notebook-{len(pictures) + 1}.svg"
                pictures[name] = _on_paper(html[: html.index("</svg>") + len("</svg>")])
                parts.append(f"![{output['data']['text/plain'].splitlines()[0]}]({beside}{name})")
                continue
            text = "\n".join(output["traceback"]) if output.output_type == "error" else output["data"]["text/plain"]
            parts.append(f"```text\n{text}\n```")
    return "\n\n".join(parts) + "\n", pictures


def _on_paper(svg: str) -> str:
    """Return a picture that can be seen wherever it is put: ink on white."""
    head, rest = svg.split(">\n", 1)
    return f'{head} color="#1d2430">\n<rect width="100%" height="100%" fill="#fff"/>\n{rest}\n'
