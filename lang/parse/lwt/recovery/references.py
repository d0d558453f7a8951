"""Finds misspelt references, which the parser reads as text, and their correct form.

The functions take text and return diagnostics. The lenient parser applies the edits; some edits of LWT024 mark the text as
literal. The linter reports the same faults in a strict script. ``docs/reference/lwt.md`` lists the faults. Also defines
``InvalidStep``, which tries fixes.
"""

import re
from collections.abc import Collection, Iterable, Iterator

import attrs

from ....diagnostic import Diagnostic, Edit, apply_edits
from ....source import Span
from ....trees.lwt import RESERVED
from ....unicode_forms import canonical, mark_in
from ..engine import Failure, StepRead, read_step
from ..shapes import FENCE, end_of_line

SLIPS = frozenset({"LWT024", "LWT025", "LWT026", "LWT027"})
"""The codes that ``find_slips`` reports."""

_ID = r"\w[\w-]*(?:\.\w[\w-]*)*"
_ACCESSORS = r"""(?:\[(?:"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*'|\\"[^"\\\n]*\\"|\\'[^'\\\n]*\\'|[\w.\-]+|-?[0-9]*:-?[0-9]*)\])"""
_REFERENCE = re.compile(rf"\{{\({_ID}\)\}}({_ACCESSORS}*)")
_INSIDE = re.compile(rf"\{{\(({_ID})\)({_ACCESSORS}+)\}}")
_INSIDE_BOTH = re.compile(rf"\{{\(({_ID})({_ACCESSORS}+)\)\}}")
_BRACES = re.compile(rf"(?P<reference>{_REFERENCE.pattern})|(?P<run>\{{+)(?P<opening>\(?)|\}}")
_FREE_TEXT = re.compile(r"\{\(([^{}\n]{0,200})\)\}")
_MOST = 1000
"""Maximum number of misspelt references that are reported in one string. Text with more of them is not a prompt."""


_QUOTED_ID = re.compile(rf"\{{\(([\"'])({_ID})\1\)\}}")
_HALF = re.compile(rf"\{{\(({_ID})(?:\)|\}})({_ACCESSORS}+)(?![^{{}}\"'\n]{{0,200}}\}})")
_SPACED_KEY = re.compile(rf"(\{{\({_ID}\)\}}{_ACCESSORS}*)\[[ \t]+(\"[^\"\n]*\"|'[^'\n]*')[ \t]*\]")
_NEAR = re.compile(r"\{\(+[ \t]{0,4}([\w][\w.\- ]{0,60}?)[ \t]{0,4}(?:\)*[ \t]{0,4}\}|\))")


def _as_accessors(path: str) -> str:
    return _DOT.sub(r'["\1"]', path)


def broken_references(text: str, start: int, stop: int) -> Iterator[tuple[Span, str]]:
    """Yield the spans and the correct forms of misspelt references in ``[start, stop)``.

    References without quotes that may end the string are omitted.
    """
    at = text.find("{(", start, stop)
    while at >= 0:
        inside = _INSIDE.match(text, at, stop) or _INSIDE_BOTH.match(text, at, stop)
        if inside and ('"' in inside[2] or "'" in inside[2]):
            yield Span(at, inside.end()), f"{{({inside[1]})}}{inside[2]}"
        elif (path := _WITH_PATH.match(text, at, stop)) and not _LENGTH.search(path[2]):
            yield Span(at, path.end()), f"{{({path[1]})}}{_as_accessors(path[2])}"
        elif half := _HALF.match(text, at, stop):
            yield Span(at, half.end()), f"{{({half[1]})}}{half[2]}"
        elif quoted := _QUOTED_ID.match(text, at, stop):
            yield Span(at, quoted.end()), f"{{({quoted[2]})}}"
        elif spaced := _SPACED_KEY.match(text, at, stop):
            yield Span(at, spaced.end()), f"{spaced[1]}[{spaced[2]}]"
        at = text.find("{(", at + 2, stop)


_SPACED = re.compile(rf"\{{[ \t]{{0,4}}\([ \t]{{0,4}}({_ID})[ \t]{{0,4}}\)[ \t]{{0,4}}\}}")

_SEVERAL = re.compile(rf"\{{\({_ID}\)(?:[ \t]{{0,4}}[,;|&+/][ \t]{{0,4}}\({_ID}\)){{1,20}}\}}")
_ONE_OF_SEVERAL = re.compile(rf"\({_ID}\)")
_PATH_INSIDE = rf"(?:{_ACCESSORS}|\.[^\W\d]\w{{0,60}}(?!\w*\())"
_WITH_PATH = re.compile(rf"\{{\(({_ID})\)[ \t]{{0,4}}({_PATH_INSIDE}{{1,9}})[ \t]{{0,4}}\}}")
_DOUBLED = re.compile(rf"\{{\{{\(({_ID})\)({_PATH_INSIDE}{{0,9}})\}}\}}({_ACCESSORS}*)")
_DOT = re.compile(r"\.(\w+)(?=[.\[]|\Z)")
_LENGTH = re.compile(r"\.(?:length|size|count)\Z")
"""The last part of a path that asks for the number of elements in other languages. It may be a key too."""
_BRACE_LATER = re.compile(r"[^{}\n]{1,200}\}")
_UNCLOSED = re.compile(rf"\{{\(({_ID})(?:\)|\}})(?![)}}])")
_BARE = re.compile(rf"\$?\{{{{1,2}}[ \t]{{0,4}}({_ID})[ \t]{{0,4}}\}}{{1,2}}")


def right_spelling(text: str, start: int, stop: int) -> tuple[Span, str] | None:
    """Return the span and the correct form of the misspelt reference at ``start``.

    ``start`` is outside strings. Return None if there is no such reference.
    """
    inside = _INSIDE.match(text, start, stop) or _INSIDE_BOTH.match(text, start, stop)
    if inside:
        return Span(start, inside.end()), f"{{({inside[1]})}}{inside[2]}"
    if doubled := _DOUBLED.match(text, start, stop):
        return Span(start, doubled.end()), f"{{({doubled[1]})}}{_as_accessors(doubled[2])}{doubled[3]}"
    for pattern in (_SPACED, _QUOTED_ID, _UNCLOSED, _BARE):
        if not (spaced := pattern.match(text, start, stop)):
            continue
        name = spaced[spaced.re.groups]
        return Span(start, spaced.end()), f"{{({name})}}"
    return None


def find_slips(raw: str, offset: int, known_ids: Collection[str], *, is_read: bool = False) -> list[Diagnostic]:
    """Return the misspelt references in a string.

    ``raw`` is the text between the string's quotes; it begins at ``offset`` in the source. Each diagnostic is a warning whose
    edits write the strict form. ``{{(id)}}`` is also the correct form of a literal ``{(id)}`` before a ``}``. Therefore, it is
    reported only if ``id`` is reserved or one of ``known_ids``. If the caller will apply the edits (``is_read``), ``{{(id)}}``
    is always reported, and the messages describe the text after the edits. The time is linear in the length of ``raw``.
    """
    if "{(" not in raw:
        return []
    found: list[Diagnostic] = []
    unpartnered: set[int] | None = None
    opening = _next_opening(raw, 0)
    while opening and len(found) < _MOST:
        start, at = opening
        slip = None
        if at - start == 2:
            if reference := _REFERENCE.match(raw, start):
                at = reference.end()
                if reference[1] and raw.startswith("}", at):
                    unpartnered = _unpartnered(raw) if unpartnered is None else unpartnered
                    slip = _stray_brace(reference, offset) if at in unpartnered else None
            else:
                slip, at = _single(raw, start, offset, known_ids, is_read=is_read)
        elif at - start == 3 and (doubled := _DOUBLED.match(raw, start)):
            slip = _doubled(doubled, offset, None if is_read else known_ids)
            at = doubled.end() if slip else at
        if slip:
            found.append(slip)
        opening = _next_opening(raw, at)
    return found


def _next_opening(raw: str, at: int) -> tuple[int, int] | None:
    """Return the start and end of the next ``{(``, including all ``{`` directly before it.

    A regular expression would take quadratic time.
    """
    brace = raw.find("{(", at)
    if brace < 0:
        return None
    start = brace
    while start > at and raw[start - 1] == "{":
        start -= 1
    return start, brace + 2


def _unpartnered(raw: str) -> set[int]:
    """Return the offsets of unmatched ``}`` if ``raw`` has more ``}`` than ``{``, else an empty set. References are ignored."""
    places, depth, excess = set(), 0, 0
    for token in _BRACES.finditer(raw):
        if token["reference"]:
            continue
        if token["run"]:
            count = len(token["run"]) - (len(token["run"]) > 1 and token["opening"] == "(")  # one of {{( is an escape
            depth, excess = depth + count, excess - count
            continue
        excess += 1
        if depth:
            depth -= 1
        else:
            places.add(token.start())
    return places if excess > 0 else set()


def _single(raw: str, start: int, offset: int, known_ids: Collection[str], *, is_read: bool) -> tuple[Diagnostic, int]:
    """Return the warning about a ``{(`` that does not begin a reference, and the offset from which the search continues."""
    if inside := _INSIDE.match(raw, start) or _INSIDE_BOTH.match(raw, start):
        message, right = (
            f"the brackets of `{_short(inside[0])}` must come after its braces",
            f"{{({inside[1]})}}{inside[2]}",
        )
        span = Span(offset + start, offset + inside.end())
        return _misspelt("LWT025", message, span, right, "it is not a reference", is_read), inside.end()
    if several := _SEVERAL.match(raw, start):
        return _several(several, offset, known_ids, is_read=is_read), several.end()
    path = _WITH_PATH.match(raw, start)
    if path and (path[1] in known_ids or path[1] in RESERVED) and not _LENGTH.search(path[2]):
        right = f"{{({path[1]})}}{_as_accessors(path[2])}"
        message, span = (
            f"the path in `{_short(path[0])}` must come after its braces",
            Span(offset + start, offset + path.end()),
        )
        return _misspelt("LWT025", message, span, right, "it is not a reference", is_read), path.end()
    near = _NEAR.match(raw, start)
    name = re.sub(r"[ .\-]+", lambda gap: "_" if " " in gap[0] else gap[0], near[1]) if near else ""
    if near and not near[0].endswith("}") and (brace := _BRACE_LATER.match(raw, near.end())):
        end = brace.end()
        hint = f"for a reference, write `{{({near[1]})}}`; to compute a value, use a step with EXPR"
        message = f"`{_short(raw[start:end])}` is not a reference; it is read as text"
        return _unclear(message, Span(offset + start, offset + end), hint), end
    if near and (name in known_ids or name in RESERVED):
        message, span = f"`{_short(near[0])}` is not a reference", Span(offset + start, offset + near.end())
        return _misspelt("LWT024", message, span, f"{{({name})}}", "it is read as text", is_read), near.end()
    free = _FREE_TEXT.match(raw, start)
    end = free.end() if free else start + 2
    if free and (mark := mark_in(free[1])) and re.fullmatch(_ID, right := canonical(free[1])):
        message, span = (
            f"`{_short(free[0])}` contains the combining character {mark}",
            Span(offset + start, offset + end),
        )
        if right in known_ids:
            return _misspelt("LWT024", message, span, f"{{({right})}}", "it is read as text", is_read), end
        return _unclear(f"{message}; it is read as text", span, f"for a reference, write `{{({right})}}`"), end
    is_spaced = free is not None and re.fullmatch(_ID, free[1].strip()) is not None
    words = re.findall(_ID, free[1]) if free else []
    says = (
        _unclear
        if is_spaced or any(word in known_ids for word in words) or any(word in RESERVED for word in words[:1])
        else _literal
    )
    hints = [f"a reference cannot contain spaces: `{{({free[1].strip()})}}`"] if free and is_spaced else []
    message = f"`{_short(raw[start:end]) if free else '{('}` is not a reference; it is read as text"
    return says(message, Span(offset + start, offset + end), *hints), end


def _misspelt(code: str, message: str, span: Span, right: str, otherwise: str, is_read: bool) -> Diagnostic:
    """Return the warning about a misspelt reference.

    If ``is_read`` is false, the message ends with ``otherwise``, which says how the parser reads the text.
    """
    message = f"{message}; {f'read as `{_short(right)}`' if is_read else otherwise}"
    return Diagnostic(code, "warning", message, span, (f"write `{_short(right)}`",), (Edit(span, right),))


def _unclear(message: str, span: Span, *hints: str) -> Diagnostic:
    """Return the warning about text that contains the name of an output. It has no edit: an edit for literal text would hide the fault."""
    return Diagnostic("LWT024", "warning", message, span, (*hints, "for literal text, write `{{(` instead of `{(`"))


def _literal(message: str, span: Span, *hints: str) -> Diagnostic:
    """Return the warning about text in the braces of a reference. The edit marks this text as literal."""
    return attrs.evolve(_unclear(message, span, *hints), edits=(Edit(Span(span.start, span.start), "{"),))


def _several(match: re.Match[str], offset: int, known_ids: Collection[str], *, is_read: bool) -> Diagnostic:
    """Explain ``{(a), (b)}``: two references if every name is a known id, else text."""
    names = [each[0][1:-1] for each in _ONE_OF_SEVERAL.finditer(match[0])]
    right = _ONE_OF_SEVERAL.sub(lambda each: f"{{{each[0]}}}", match[0][1:-1])
    span = Span(offset + match.start(), offset + match.end())
    message = f"`{_short(match[0])}` contains {len(names)} ids in one pair of braces"
    if all(name in known_ids or name in RESERVED for name in names):
        return _misspelt("LWT024", message, span, right, "it is not a reference and is read as text", is_read)
    hint = f"for a reference, write `{_short(right)}`"
    return _unclear(f"{message}; it is not a reference and is read as text", span, hint)


def _doubled(match: re.Match[str], offset: int, known_ids: Collection[str] | None) -> Diagnostic | None:
    name = match[1]
    if known_ids is not None and name not in known_ids and name not in RESERVED:
        return None
    right, span = f"{{({name})}}{_as_accessors(match[2])}{match[3]}", Span(offset + match.start(), offset + match.end())
    message = f"`{_short(match[0])}` has doubled braces"
    return _misspelt("LWT026", message, span, right, "it is read as text, not as a reference", known_ids is None)


def _stray_brace(reference: re.Match[str], offset: int) -> Diagnostic:
    span = Span(offset + reference.end(), offset + reference.end() + 1)
    message = f"surplus `}}` after `{_short(reference[0])}`"
    return Diagnostic("LWT027", "warning", message, span, ("remove it",), (Edit(span, ""),))


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


# References in the syntax of other languages: ``{name}``, ``{{ name.key }}``, ``${name}``, ``$name``, ``{ (name) }``.
# In LWT all of these are text, possibly intentionally, so they are reported only if they name a step or the input. The model would
# get the text instead of the value.

_PATH = r"""(?P<path{n}>(?:\.\w{{1,60}}|\[(?:\d{{1,9}}|"[^"\\\n]{{1,60}}"|'[^'\\\n]{{1,60}}')\]){{0,9}})"""
_CHANGE = (
    r"(?P<change{n}>[ ]{{0,4}}(?:\|[ ]{{0,4}}[^\W\d][^{{}}|\n]{{0,60}}|![rsa]"
    r"|:[<>^+,]?\d{{0,3}}(?:\.\d{{1,3}})?[a-z%]|[+*/-][ ]?\d{{1,9}}))?"
)
"""A filter, a format or an arithmetic operation on the value, which no reference has."""
_LOOKALIKE = re.compile(
    rf"(?<![\w\\^}}$])(?:"
    rf"\{{\{{[ ]{{0,4}}(?P<name1>[^\W\d][\w\-]{{0,60}}){_PATH.format(n=1)}{_CHANGE.format(n=1)}[ ]{{0,4}}\}}\}}"
    rf"|\$?\{{[ ]{{0,4}}(?P<name2>[^\W\d][\w\-]{{1,60}}|[^\W\d](?![\w\-])){_PATH.format(n=2)}{_CHANGE.format(n=2)}[ ]{{0,4}}\}}"
    rf"|\$(?P<name3>[^\W\d][\w]{{2,60}}){_PATH.format(n=3)}(?![\w$])"
    rf"|\{{[ ]{{1,4}}\((?P<name4>[^\W\d][\w\-.]{{0,60}})\)[ ]{{0,4}}{_PATH.format(n=4)}[ ]{{0,4}}\}})"
)
_FIRST = re.compile(r"\{[ {]{0,5}\(?[^\W\d]|\$\{?[^\W\d]")
_STEP = re.compile(r"""\.(\w+)|\[(\d+)\]|\["([^"]*)"\]|\['([^']*)'\]""")
_MOST_LOOKALIKES = 100


def has_lookalikes(text: str) -> bool:
    """Return whether ``find_lookalikes`` may find something. This fast test returns False for most scripts."""
    if "$" not in text and text.count("{") == text.count("{("):
        return False
    return any(found[0][1:2] != "(" for found in _FIRST.finditer(text))


def path_of(path: str, mark: str) -> str:
    """Return the path ``.key[0]`` as accessors, ``["key"][0]``.

    ``mark`` is the quote of the string; if it is single, the accessors have single quotes.
    """
    quote = "'" if mark.startswith("'") else '"'
    pieces = []
    for key, index, double, single in _STEP.findall(path):
        number = index or (key if key.isdigit() else "")
        pieces.append(f"[{number}]" if number else f"[{quote}{key or double or single}{quote}]")
    return "".join(pieces)


def find_lookalikes(raw: str, offset: int, names: Collection[str], mark: str) -> list[Diagnostic]:
    """Return a warning (LWT041) for each place in ``raw`` that refers to one of ``names`` in the syntax of another language."""
    found: list[Diagnostic] = []
    for match in _LOOKALIKE.finditer(raw):
        name = match["name1"] or match["name2"] or match["name3"] or match["name4"]
        if name not in names or len(found) >= _MOST_LOOKALIKES:
            continue
        path = match["path1"] or match["path2"] or match["path3"] or match["path4"] or ""
        right = f"{{({name})}}{path_of(path, mark)}"
        span = Span(offset + match.start(), offset + match.end())
        message = f"`{match[0]}` is not a reference: the model gets this text, not the result of ({name})"
        is_changed = bool(match["change1"] or match["change2"])
        hint = f"a reference only inserts a value, `{right}`; to compute one, use a step with EXPR"
        hints, edits = ((hint,), ()) if is_changed else ((f"write `{right}`",), (Edit(span, right),))
        found.append(Diagnostic("LWT041", "warning", message, span, hints, edits))
    return found


# An invalid step, and methods that try fixes on it. Explainers offer only edits that were tried.

_REST = re.compile(r"[ \t]*+[;,]?[ \t\r]*+(?:(?:#|//|--).*)?\Z")


_LINE = re.compile(r"^.*$", re.MULTILINE)


def _without_around(step: str) -> str:
    """Return the text of a step. The comments after it and an unpaired code fence are removed."""
    fences = [line.start() for line in _LINE.finditer(step) if FENCE.match(step, line.start())]
    if len(fences) % 2:
        step = step[: fences[-1]]
    step = step.rstrip()
    while (line := step.rfind("\n") + 1) and step[line:].lstrip().startswith("#"):
        step = step[:line].rstrip()
    return step


class InvalidStep:
    """An invalid step. Its head is at ``start``, and the next head is at ``stop``."""

    def __init__(self, text: str, start: int, stop: int, failure: Failure) -> None:
        self.text, self.start, self.stop, self.failure = text, start, stop, failure
        self.name = text[start + 1 : text.index(")", start)]
        # A semicolon at the end of a line is a separate fault, which explain_rest reports when the step is valid.
        self.trimmed = start + len(_without_around(text[start:stop]).rstrip("; \t\r\n"))

    def _read_with(self, edits: Iterable[Edit]) -> tuple[StepRead | Failure, str]:
        local = [Edit(edit.span.shift(-self.start), edit.text) for edit in edits]
        mended = apply_edits(self.text[self.start : self.stop], local)
        return read_step(mended, 0), mended

    @property
    def is_followed(self) -> bool:
        """Return whether comments or a fence follow the step, so that the last line of the text may not be part of the step."""
        return self.text[self.trimmed : self.stop].strip("; \t\r\n") != ""

    def mended_by(self, *edits: Edit) -> bool:
        """Return whether, after ``edits``, the step is valid and at most ``;`` or ``,`` and a comment follow it on its line."""
        read, mended = self._read_with(edits)
        if not isinstance(read, StepRead):
            return False
        return _REST.match(mended, read.end, end_of_line(mended, read.end)) is not None

    def opened_by(self, edit: Edit) -> bool:
        """Return whether parsing with ``edit`` applied gets past the place of the edit, and stops outside strings."""
        read, _ = self._read_with([edit])
        if isinstance(read, StepRead):
            return self.mended_by(edit)
        return not read.quote and self.start + read.offset > edit.span.start

    def furthered_by(self, *edits: Edit) -> bool:
        """Return whether ``edits`` make the step valid, or move its first fault further on to a place outside strings."""
        if self.mended_by(*edits):
            return True
        read, mended = self._read_with(edits)
        if isinstance(read, StepRead) or read.quote:
            return False
        # Both offsets are counted from the end of the text, because the edits change lengths only before them.
        return len(mended) - read.offset < self.stop - self.failure.offset - 1
