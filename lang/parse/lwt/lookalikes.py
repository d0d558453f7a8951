"""References as other languages write them: ``{name}``, ``{{ name.key }}``, ``${name}``, ``$name``, ``{ (name) }``.

All of it is text in LWT and may be meant as such, so only what names a step or the input is reported. The model would
see the spelling instead of the value.
"""

import re
from collections.abc import Collection

from ...diagnostic import Diagnostic, Edit
from ...source import Span

__all__ = ["find_lookalikes", "has_lookalikes", "path_of"]

_PATH = r"""(?P<path{n}>(?:\.\w{{1,60}}|\[(?:\d{{1,9}}|"[^"\\\n]{{1,60}}"|'[^'\\\n]{{1,60}}')\]){{0,9}})"""
_LOOKALIKE = re.compile(
    rf"(?<![\w\\^}}$])(?:\{{\{{[ ]{{0,4}}(?P<name1>[^\W\d][\w\-]{{0,60}}){_PATH.format(n=1)}[ ]{{0,4}}\}}\}}"
    rf"|\$?\{{[ ]{{0,4}}(?P<name2>[^\W\d][\w\-]{{1,60}}|[^\W\d](?![\w\-])){_PATH.format(n=2)}[ ]{{0,4}}\}}"
    rf"|\$(?P<name3>[^\W\d][\w]{{2,60}}){_PATH.format(n=3)}(?![\w$])"
    rf"|\{{[ ]{{1,4}}\((?P<name4>[^\W\d][\w\-.]{{0,60}})\)[ ]{{0,4}}\}})"
)
_FIRST = re.compile(r"\{[ {]{0,5}\(?[^\W\d]|\$\{?[^\W\d]")
_STEP = re.compile(r"""\.(\w+)|\[(\d+)\]|\["([^"]*)"\]|\['([^']*)'\]""")
_MOST = 100


def has_lookalikes(text: str) -> bool:
    """Say whether it is worth looking: most scripts have nothing of the kind anywhere."""
    if "$" not in text and text.count("{") == text.count("{("):
        return False
    return any(found[0][1:2] != "(" for found in _FIRST.finditer(text))


def path_of(path: str, mark: str) -> str:
    """Return ``.key[0]`` as accessors: ``["key"][0]``. In a string that ``mark`` encloses any quotes do."""
    quote = "'" if mark.startswith("'") else '"'
    pieces = []
    for key, index, double, single in _STEP.findall(path):
        number = index or (key if key.isdigit() else "")
        pieces.append(f"[{number}]" if number else f"[{quote}{key or double or single}{quote}]")
    return "".join(pieces)


def find_lookalikes(raw: str, offset: int, names: Collection[str], mark: str) -> list[Diagnostic]:
    """Return a warning (LWT041) for each place in ``raw`` that names one of ``names`` as another language would."""
    found: list[Diagnostic] = []
    for match in _LOOKALIKE.finditer(raw):
        name = match["name1"] or match["name2"] or match["name3"] or match["name4"]
        if name not in names or len(found) >= _MOST:
            continue
        path = match["path1"] or match["path2"] or match["path3"] or ""
        right = f"{{({name})}}{path_of(path, mark)}"
        span = Span(offset + match.start(), offset + match.end())
        message = f"`{match[0]}` is text to LWT: the model sees it as it stands, not what ({name}) gives"
        found.append(
            Diagnostic("LWT041", "warning", message, span, (f"a reference is `{right}`",), (Edit(span, right),))
        )
    return found
