"""What language a file is in: by its suffix; JSON by its keys; what comes through stdin by how it begins."""

import re
from typing import Literal

from .....lang.source import Source
from .exit import Misused

__all__ = ["Language", "language_of"]

Language = Literal["lwt", "gasl", "plan"]

_KEY = re.compile(r'"(commands|plan_id|compute_dag|compute)"\s*:')
_COMMANDS = (
    "FIND", "DECLARE", "SELECT", "PROCESS", "CLASSIFY", "ANALYZE", "UPDATE", "RESET", "COUNT", "AGGREGATE", "RANK", "JOIN",
    "UNION", "INTERSECT", "EXCEPT", "WALK", "SUBGRAPH", "CONNECT", "MEASURE", "REQUIRE", "ASSERT", "ON", "BRANCH", "TRY",
    "EXPLAIN", "SET", "CANCEL",
)  # fmt: skip
_GASL = re.compile(rf"(?:\s*(?:#[^\n]*)?\n)*\s*(?:{'|'.join(_COMMANDS)})\b(?!\s*[=)(])", re.IGNORECASE)


def language_of(source: Source) -> Language:
    """Return the language of a text that was read; raise ``Misused`` for a Formula Seed, which no command takes yet."""
    name = source.name.lower()
    if name.endswith(".lwt"):
        return "lwt"
    if name.endswith(".gasl"):
        return "gasl"
    if name.endswith(".json") or (not name.endswith(".txt") and source.text.lstrip()[:1] == "{"):
        keys = {match[1] for match in _KEY.finditer(source.text, 0, 200_000)}
        if keys & {"compute", "compute_dag"} and "commands" not in keys:
            raise Misused(
                f"{source.name} is a Formula Seed; this version of knotwork takes LWT, GASL and plans",
                "scripts end in .lwt, programs in .gasl; a plan is JSON with a list of commands",
            )
        return "plan"
    return "gasl" if _GASL.match(source.text) else "lwt"
