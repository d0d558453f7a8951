"""A script that came over HTTP, read and checked before anything is called: what it may name is less than a file's may."""

from collections.abc import Collection, Iterator
from typing import Any

from attrs import frozen

from .....lang.diagnostic import Diagnostic, as_json, has_errors, sort_key
from .....lang.linter.lwt import MISSING, check
from .....lang.lwt import Call, Script
from .....lang.node import walk
from .....lang.operations import BUILTIN
from .....lang.parse.lwt import parse_lwt
from .....lang.source import Source
from ....scripts import Plan, planned
from ..faults import refused_script

__all__ = ["ALLOWED", "Ready", "checked"]

ALLOWED = ("LLM", "CONST", "EXPR", "EACH", "ANSWER")
"""Operations that need no file, graph or code of the server's."""

NAME = "script"
"""The file that diagnostics name."""


@frozen
class Ready:
    """A script that may run, and the plan that its check has come to."""

    script: Script
    plan: Plan


def checked(text: str, input: Any, lenient: bool, models: Collection[str]) -> Ready:
    """Read and check a script. Raises ``Problem`` (422) with its diagnostics where it has errors. ``models``: offered names."""
    script = parse_lwt(Source(text, NAME), "lenient" if lenient else "strict")
    refused = list(_refused(script))
    if (
        refused
    ):  # no plan is made: that would look for an unknown operation among the plugins, which are not for everybody
        found = check(script, input=MISSING if input is None else input, models=models)
        told = {diagnostic.span.start for diagnostic in found if diagnostic.severity == "error" and diagnostic.span}
        found += [each for each in refused if each.span is None or each.span.start not in told]
        raise refused_script([as_json(diagnostic, script.source) for diagnostic in sorted(found, key=sort_key)])
    plan = planned(script, input, models)
    if has_errors(plan.diagnostics):
        raise refused_script([as_json(diagnostic, script.source) for diagnostic in plan.diagnostics])
    return Ready(script, plan)


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
