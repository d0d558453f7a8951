"""What language a file is in: by its suffix; JSON by its keys; what comes through stdin by how it begins."""

import re
from typing import Literal

from .....lang.source import Source
from .exit import Misused

__all__ = ["Language", "is_seed", "language_of"]

Language = Literal["lwt", "gasl", "plan"]

_KEY = re.compile(r'"(commands|plan_id|compute_dag|compute|extraction_fields|filter_keywords|output_fields)"\s*:')
_LOOKED_AT = 200_000
"""Characters of a text that are looked at."""
_COMMANDS = (
    "FIND", "DECLARE", "SELECT", "PROCESS", "CLASSIFY", "ANALYZE", "UPDATE", "RESET", "COUNT", "AGGREGATE", "RANK", "JOIN",
    "UNION", "INTERSECT", "EXCEPT", "WALK", "SUBGRAPH", "CONNECT", "MEASURE", "REQUIRE", "ASSERT", "ON", "BRANCH", "TRY",
    "EXPLAIN", "SET", "CANCEL",
)  # fmt: skip
_GASL = re.compile(rf"(?:\s*(?:#[^\n]*)?\n)*\s*(?:{'|'.join(_COMMANDS)})\b(?!\s*[=)(])", re.IGNORECASE)


def is_seed(source: Source) -> bool:
    """Say whether a text is a Formula Seed: by its name (``.seed.json``), or JSON by its keys."""
    if source.name.lower().endswith(".seed.json"):
        return True
    if not _is_json(source):
        return False
    keys = {match[1] for match in _KEY.finditer(source.text, 0, _LOOKED_AT)}
    return bool(keys) and keys.isdisjoint(("commands", "plan_id"))


def language_of(source: Source) -> Language:
    """Return the language of a text that was read; raise ``Misused`` for a Formula Seed, which has commands of its own."""
    if is_seed(source):
        raise Misused(
            f"{source.name} is a Formula Seed; this command takes scripts (.lwt), programs (.gasl) and plans",
            f"a seed is checked by knotwork check {source.name}, and run by knotwork seed run {source.name} CONTEXTS",
        )
    name = source.name.lower()
    if name.endswith(".lwt"):
        return "lwt"
    if name.endswith(".gasl"):
        return "gasl"
    if _is_json(source):
        return "plan"
    return "gasl" if _GASL.match(source.text) else "lwt"


def _is_json(source: Source) -> bool:
    name = source.name.lower()
    if name.endswith((".lwt", ".gasl")):
        return False
    return name.endswith(".json") or (not name.endswith(".txt") and source.text.lstrip()[:1] == "{")
