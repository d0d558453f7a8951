"""The ``knotwork`` command in tests: in this process (quick) and as a process of its own (the real thing)."""

import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from knotwork.adapters.permissions import private_folder
from knotwork.runtime.interfaces.cli import main

CAFES = """\
# cafes.lwt
(wanted)=LLM("List the conditions in this request: {(input)}["request"]", type=list)
(check)=EACH({(wanted)}, LLM("Is {(item)} met?", type="yes" | "no"))
(final)=LLM("Checks: {(check)}. Output the best index.")
"""
TABLES = Path(os.environ.get("KNOTWORK_HOME", "/nowhere"), "cache/grammar")
"""The tables of the grammars in the home that all tests share; a test has a home of its own, but not yet when this is imported."""
REQUEST = {"request": "cafe with drive-thru", "items": ["Milk", "Tea"]}


@dataclass(frozen=True)
class Result:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What stdout says."""
        return json.loads(self.out)


def call(*args: str | Path, stdin: str | bytes = b"", encoding: str = "utf-8") -> Result:
    """Run the command line in this process, its streams replaced."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True) for _ in range(2))
    code: Any = 0
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(given), encoding="utf-8")),
    ):
        try:
            main([str(arg) for arg in args])
        except SystemExit as error:
            code = error.code
    return Result(int(code or 0), *(s.buffer.getvalue().decode(encoding) for s in (out, err)))


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return an environment for a process that touches nothing of the user's and has no keys.

    The tables of the grammars are put into the new home: every process would compute them for a second. A process finds no modules
    in its working folder, where the home is a folder ``knotwork``.
    """
    there = home / "knotwork/cache/grammar"
    with contextlib.suppress(OSError):
        if not there.exists():
            private_folder(there)
            for file in TABLES.iterdir():
                shutil.copy2(file, there)
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "COVERAGE_PROCESS_START") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "KNOTWORK_HOME": str(home / "knotwork"),
        "LC_ALL": "C.UTF-8",
        "PYTHONSAFEPATH": "1",
        **more,
    }


def process(
    *args: str | Path, home: Path, stdin: bytes = b"", env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> Result:
    """Run the command as a process and wait for it."""
    done = subprocess.run(
        [sys.executable, "-m", "knotwork", *map(str, args)],
        input=stdin, capture_output=True, env=environment(home, **(env or {})), cwd=cwd or home, timeout=60,
    )  # fmt: skip
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


def cassette(path: Path, answers: Mapping[str, str | None], **usage: int) -> str:
    """Write a cassette that answers each prompt with ``key`` in it (None: refuses it), and return its spec."""
    lines: list[dict[str, Any]] = [{"cassette": 1, "made_by": "knotwork", "model": "test"}]
    for part, text in answers.items():
        line: dict[str, Any] = {"request": {"prompt_contains": part}}
        if text is None:
            line["error"] = {"kind": "refused", "message": "no, thanks"}
        else:
            line["answer"] = {"text": text, "usage": usage or {"prompt_tokens": 10, "completion_tokens": 2}}
        lines.append(line)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return f"replay:{path}"


@contextlib.contextmanager
def silent_server() -> Iterator[tuple[str, threading.Event]]:
    """A model that takes requests and never answers: its spec, and an event that is set once it was asked."""
    asked, taken = threading.Event(), []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    taken.append(connection)
                    connection.recv(65536)
                    asked.set()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.getsockname()[1]}/v1#silent", asked
        finally:
            server.shutdown(socket.SHUT_RDWR)
            for connection in taken:
                connection.close()
    thread.join(5)
