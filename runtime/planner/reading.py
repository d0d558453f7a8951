"""``read(path)``: a part of the input, bounded. See ``docs/design/loops.md#ranking``.

A path is ``items[5].item_data``, with keys in brackets too: ``items[5]["a b"]``, ``items[0:3]``.
"""

import re
from collections.abc import Mapping
from typing import Any

from ...lang.diagnostic import Diagnostic, nearest
from ...lang.literals import kind_of
from ..commands.excerpts import excerpt
from .faults import fault

__all__ = ["SHOWN", "read_path"]

SHOWN = 4_000
"""Characters that one reading gives at most."""
_LONGEST = 400
_DEEPEST = 20
_ROOT = re.compile(r"\s*(?:\{\(input\)\}|input(?=[.\[])|query(?=[.\[])|\$)?\.?")
_PART = re.compile(
    r"""(?:\.?(?P<name>[A-Za-z_][\w-]*) | \[\s*(?P<index>-?\d{1,9})\s*\] | \[\s*(?P<from>\d{0,9})\s*:\s*(?P<to>\d{0,9})\s*\]
      | \[\s*"(?P<double>[^"]*)"\s*\] | \[\s*'(?P<single>[^']*)'\s*\] | \[\s*(?P<bare>[A-Za-z_][\w -]*)\s*\])""",
    re.VERBOSE,
)


def read_path(data: Mapping[str, Any], path: str) -> tuple[bool, str] | Diagnostic:
    """Return whether all of what stands at ``path`` is shown, and it as JSON; or why there is nothing there. Never raises."""
    if len(path) > _LONGEST:
        return fault("RANK006", f"the path has {len(path):,} characters; {_LONGEST} is the most")
    at = _ROOT.match(path).end()  # type: ignore[union-attr]
    value: Any = data
    path = path.rstrip()
    for _ in range(_DEEPEST):
        if at >= len(path):
            return _shown(value)
        part = _PART.match(path, at)
        if part is None:
            return fault(
                "RANK006",
                f"the path can't be read from {path[at : at + 40]!r} on",
                'a path is items[5].item_data or items[5]["a b"]',
            )
        stepped = _step(value, part, path[: part.end()])
        if isinstance(stepped, Diagnostic):
            return stepped
        (value,) = stepped
        at = part.end()
    return _shown(value) if at >= len(path) else fault("RANK006", f"the path has more than {_DEEPEST} parts")


def _shown(value: Any) -> tuple[bool, str]:
    text = excerpt(value, SHOWN)
    return "… [" not in text, text


def _step(value: Any, part: "re.Match[str]", path: str) -> tuple[Any] | Diagnostic:
    if part["index"] is not None or part["from"] is not None:
        if not isinstance(value, list | tuple):
            return fault("RANK006", f"{path}: what stands there is {kind_of(value)}, not a list")
        if part["from"] is not None:
            return (value[int(part["from"] or 0) : int(part["to"]) if part["to"] else None],)
        index = int(part["index"])
        if not -len(value) <= index < len(value):
            return fault("RANK006", f"{path}: there is no element {index}; the list has {len(value):,}")
        return (value[index],)
    key = next(part[name] for name in ("name", "double", "single", "bare") if part[name] is not None)
    if not isinstance(value, Mapping):
        return fault("RANK006", f"{path}: what stands there is {kind_of(value)}, not an object")
    if key not in value:
        like = nearest(key, map(str, value))
        listed = ", ".join([str(each)[:40] for each in value][:20])
        return fault(
            "RANK006",
            f"{path}: there is no {key[:60]!r}",
            f"did you mean {like!r}?" if like else f"there are: {listed}",
        )
    return (value[key],)
