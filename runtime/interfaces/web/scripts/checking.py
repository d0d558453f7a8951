"""A script that came over HTTP, read and checked before anything is called: what it may name is less than a file's may."""

from collections.abc import Collection, Iterator
from typing import Any

from .....lang.catalogue.operations import BUILTIN
from .....lang.diagnostic import Diagnostic, all_as_json
from .....lang.source import Source
from .....lang.trees.lwt import ABSENT, Call, Script
from .....lang.trees.node import walk
from ....api.checked import CheckedScript, check_script
from ..faults import refused_script

__all__ = ["ALLOWED", "ready"]

ALLOWED = ("LLM", "CONST", "EXPR", "EACH", "ANSWER")
"""Operations that need no file, graph or code of the server's."""

NAME = "script"
"""The file that diagnostics name."""


def ready(text: str, input: Any, lenient: bool, models: Collection[str]) -> CheckedScript:
    """Read and check a script. Raises ``Problem`` (422) with its diagnostics where it has errors. ``models``: offered names."""
    # The operations are the language's own: plugins, which others would be looked for among, are not for everybody.
    checked = check_script(
        Source(text, NAME), "lenient" if lenient else "strict", input=ABSENT if input is None else input, models=models,
        operations=BUILTIN, reads_files=False, restrict=_refused,
    )  # fmt: skip
    if checked.failed:
        raise refused_script(all_as_json(checked.diagnostics, checked.source))
    return checked


def _refused(script: Script) -> Iterator[Diagnostic]:
    for step in script.steps:
        for call in walk(step):
            if not isinstance(call, Call):
                continue
            if call.operation not in ALLOWED:
                what = "needs what only the server's owner has" if call.operation in BUILTIN else "is not offered"
                hint = f"there are: {', '.join(name for name in ALLOWED if name in BUILTIN)}"
                yield Diagnostic(
                    "WEB001",
                    "error",
                    f"{call.operation} {what}: it is not for scripts that come over HTTP",
                    call.span,
                    (hint,),
                )
            elif (file := call.option("file")) is not None:
                yield Diagnostic("WEB002", "error", "a script that comes over HTTP reads no files", file.span)
