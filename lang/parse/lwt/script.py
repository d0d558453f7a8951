"""The strict and the lenient parser of scripts. Both use the same grammar.

The strict parser reads the text unchanged, reports every fault, and returns the valid steps. The lenient parser is for text
that a model wrote. This parser fixes faults that have edits, and reports them as warnings. It then parses the repaired text,
and maps every span back to the original text. See ``docs/design/lwt.md#syntax``.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import islice
from typing import get_args

from attrs import frozen

from ...diagnostic import Diagnostic, Edit, has_errors
from ...source import Source, Span
from ...trees import walk
from ...trees.lwt import MAX_STEPS, RESERVED, Comment, Mode, Script, Step, Template
from ..repairs import Fault, Repaired, back, fault, in_order, repair, respan, without_mark
from .engine import StepRead, read_script, read_step
from .recovery.diagnosis import (
    explain_bad_head,
    explain_bullet,
    explain_lines,
    explain_rest,
    explain_step,
    plans_a_call,
)
from .recovery.envelope import STAGES, is_wrapped, open_thought
from .recovery.references import find_slips
from .recovery.surroundings import LINE_WITH_FENCE, MAX_FENCES
from .shapes import BULLET, HEAD, end_of_line, next_head, skip_blank

MAX_LENGTH = 4_000_000
"""Maximum length of a script in code points. A script of 10,000 steps has about a fifth of this length."""

MAX_OPENINGS = 100_000
"""Maximum number of ``{(`` in a script. Each is a token; real scripts have far fewer."""

MAX_FAULTS = 1_000
"""Maximum number of faults. Text with more faults is not a script: a last fault reports that parsing stops."""

MAX_REPAIRS = 2 * MAX_STEPS
"""Maximum number of faults that the lenient parser fixes: two, such as a bullet and a quote, in each of ``MAX_STEPS`` steps."""

_MOST_COMMENTS = 10_000
"""Maximum number of comments in text that is parsed in one piece. If there are more, reading each comment alone is faster."""

Items = Sequence[Step | Comment]


def parse_lwt(source: Source | str, mode: Mode = "strict", max_steps: int | None = MAX_STEPS) -> Script:
    """Parse a script. Never raises an error for faulty text: the faults are in the script's ``diagnostics``.

    A script with more than ``max_steps`` steps is refused (None: no limit). The time is linear in the length of the text. Raises
    ``TypeError`` for a source that is not text. Raises ``ValueError`` for an unknown mode.
    """
    if isinstance(source, str):
        source = Source(source)
    if not isinstance(source, Source):
        raise TypeError(f"expected the text of a script, not {type(source).__name__}")
    if mode not in get_args(Mode):
        raise ValueError(f'mode must be "strict" or "lenient", not {mode!r}')
    if refused := excess(source.text, max_steps):
        return Script((), source, mode, (refused,))
    text = without_mark(source.text)
    items, faults = _read(text, mode)
    if mode == "strict":
        return read_strictly(source, items, faults)
    if not faults and (any(isinstance(item, Step) for item in items) or not is_wrapped(text)):
        return _lenient(source, text, items, faults, [], [])
    diagnostics, chain = _unwrapped(text)
    if chain:
        text = chain[-1].text
        # Steps inside strings or quotations can be counted only now.
        if refused := excess(text, max_steps):
            found = [*diagnostics, refused.moved(partial(back, chain))]
            return Script((), source, mode, in_order(found, len(source.text)))
        items, faults = _read(text, mode)
    return _lenient(source, text, items, faults, diagnostics, chain)


def _unwrapped(text: str) -> tuple[list[Diagnostic], list[Repaired]]:
    """Remove the text around the steps in several stages. Return the diagnostics, and the repaired text after each stage."""
    diagnostics: list[Diagnostic] = []
    chain: list[Repaired] = []
    for stage in STAGES:
        found = stage(text)
        diagnostics += [diagnostic.moved(partial(back, chain)) for diagnostic in found.diagnostics]
        if found.edits:
            chain.append(repair(text, found.edits))
            text = chain[-1].text
    return diagnostics, chain


def excess(text: str, max_steps: int | None = MAX_STEPS) -> Diagnostic | None:
    """Return a diagnostic if a text exceeds one of the limits, else None.

    At most the first ``max_steps`` + 1 steps are parsed.
    """
    if len(text) > MAX_LENGTH:
        return Diagnostic(
            "LWT011",
            "error",
            f"the script has {len(text):,} characters, more than the maximum of {MAX_LENGTH:,}",
            Span(0, 1),
        )
    if (openings := text.count("{(")) > MAX_OPENINGS:
        message = f"the script contains {{( {openings:,} times, more than the maximum of {MAX_OPENINGS:,}"
        return Diagnostic("LWT011", "error", message, Span(0, 1))
    if fence := next(islice(LINE_WITH_FENCE.finditer(text), MAX_FENCES, None), None):
        message = f"the text has more lines with a code fence mark than the maximum of {MAX_FENCES:,}"
        return Diagnostic("LWT011", "error", message, Span(fence.start("mark"), fence.end("mark")))
    if max_steps is None or next(islice(HEAD.finditer(text), max_steps, None), None) is None:
        return None
    # More than max_steps places look like heads, but some of them may be inside prompts.
    if (at := _step(text, max_steps + 1)) is None:
        return None
    message = f"the script has more than {max_steps:,} steps; this is step {max_steps + 1:,}"
    hint = "to read more steps, use `--max-steps N` on the command line or `max_steps=N` in Python"
    return Diagnostic("LWT011", "error", message, Span(at, at + 1), (hint,))


def _step(text: str, number: int) -> int | None:
    """Return the offset of step ``number``, counted from 1; None if the text has fewer steps. Steps are found as in ``read_piece``."""
    at = 0
    while (at := next_place(text, at)) < len(text):
        if text[at] == "#":
            at = end_of_line(text, at)
        elif HEAD.match(text, at):
            number -= 1
            if not number:
                return at
            read = read_step(text, at)
            if isinstance(read, StepRead):
                end = end_of_line(text, read.end)
                behind = HEAD.search(text, read.end, end)
                at = behind.start() if behind else end
            else:
                at = next_head(text, at)
        else:
            bullet = BULLET.match(text, at)
            at = bullet.end() if bullet else next_head(text, at)
    return None


def read_strictly(source: Source, items: Items, faults: Iterable[Fault]) -> Script:
    """Return the script with the results of a strict parse."""
    return Script(tuple(items), source, "strict", in_order((each.diagnostic for each in faults), len(source.text)))


def _read(text: str, mode: Mode) -> tuple[Items, list[Fault]]:
    """Parse the text in one piece; if that fails, step by step."""
    if text.count("\n#") > _MOST_COMMENTS:
        return _recover(text, mode)
    items = read_script(text)
    return (items, []) if items is not None else _recover(text, mode)


def _recover(text: str, mode: Mode) -> tuple[Items, list[Fault]]:
    """Parse every valid step, and explain all other text. The time is linear in the length of the text."""
    items: list[Step | Comment] = []
    faults: list[Fault] = []
    repaired, at, stop = 0, 0, 0
    while (at := next_place(text, at)) < len(text):
        if len(faults) - repaired >= MAX_FAULTS or repaired >= MAX_REPAIRS:
            faults.append(too_many_faults(text, at, len(faults)))
            break
        piece = read_piece(text, at, stop)
        if piece.item is not None:
            items.append(piece.item)
        faults += piece.faults
        stop = piece.stop
        if mode == "lenient":
            repaired += sum(each.accepted for each in piece.faults)
        at = piece.end
    return items, faults


def too_many_faults(text: str, at: int, count: int) -> Fault:
    """Return the last fault, at ``at``, of a text that has too many faults. The rest of the text is not read."""
    message = f"more than {count:,} faults; the text after this point is not checked"
    return fault("LWT011", message, at, max(end_of_line(text, at), at + 1))


@frozen
class Piece:
    """The result of reading one part of a script: a step or a comment, and faults. Parsing continues at ``end``.

    If lines before the next head are not explained yet, ``stop`` is the offset of this head; otherwise it is 0.
    """

    end: int
    item: Step | Comment | None = None
    faults: tuple[Fault, ...] = ()
    stop: int = 0


def next_place(text: str, at: int) -> int:
    """Return the first offset at or after ``at`` that is not white space. If there is none, return the end of the text."""
    length = len(text)
    while at < length and text[at] in " \t\r\n":
        at += 1
    return at


def read_piece(text: str, at: int, known: int = 0) -> Piece:
    """Read the comment, the step or the other lines that begin at ``at``. The character at ``at`` is not white space.

    ``known`` is the ``stop`` of the previous piece.
    """
    if text[at] == "#":
        end = end_of_line(text, at)
        comment = text[at:end].rstrip()
        return Piece(end, Comment(comment, span=Span(at, at + len(comment))))
    if HEAD.match(text, at):
        read = read_step(text, at)
        if isinstance(read, StepRead):
            end = end_of_line(text, read.end)
            if skip_blank(text, read.end) >= end:
                return Piece(read.end, read.step)
            found, behind = explain_rest(text, read.end, end)
            return Piece(behind, read.step, (found,))
        stop = next_head(text, at)
        return Piece(_before_ignores(text, at, stop), faults=(explain_step(text, at, stop, read),))
    if bullet := BULLET.match(text, at):
        return Piece(bullet.end(), faults=(explain_bullet(text, at, bullet.end()),))
    stop = known if at < known else next_head(text, at)
    bad = explain_bad_head(text, at, stop)
    if bad:
        return Piece(_before_ignores(text, at, stop), faults=(bad,))
    faults, end = explain_lines(text, at, stop)
    return Piece(_before_ignores(text, at, stop) if end == stop else end, faults=tuple(faults), stop=stop)


def _before_ignores(text: str, at: int, stop: int) -> int:
    """Return the end of invalid text before the step at ``stop``.

    If ``knotwork:`` comments belong to this step, return their start, else ``stop``.
    """
    first = stop
    while (line := text.rfind("\n", 0, max(first - 1, 0)) + 1) > at and text[line:first].lstrip(" \t").startswith("#"):
        first = line
    return first if "knotwork:" in text[first:stop] else stop


def _lenient(
    source: Source,
    text: str,
    items: Items,
    faults: list[Fault],
    diagnostics: list[Diagnostic],
    chain: list[Repaired],
) -> Script:
    """Apply the edits of accepted faults, then the edits of misspelt references, and parse the result.

    ``diagnostics`` and ``chain`` are the results of removing the text around the steps.
    """
    # An edit can reveal a further fault: an inner quote is found only after a bullet before the step is removed. Each round
    # removes the faults that it accepts, so few rounds are needed.
    for _ in range(4):
        accepted = [fault for fault in faults if fault.accepted]
        if not accepted or (len(accepted) >= MAX_REPAIRS and faults[-1].diagnostic.code == "LWT011"):
            break
        diagnostics += [fault.as_warning.moved(partial(back, chain)) for fault in accepted]
        chain.append(repair(text, (edit for fault in accepted for edit in fault.diagnostic.edits)))
        text = chain[-1].text
        items, faults = _read(text, "lenient")
    diagnostics += [fault.diagnostic.moved(partial(back, chain)) for fault in faults]

    slips = _slips(text, items)
    if slips:
        diagnostics += [slip.moved(partial(back, chain)) for slip in slips]
        chain.append(repair(text, (edit for slip in slips for edit in slip.edits)))
        items, _ = _read(chain[-1].text, "lenient")
    if chain:
        items = [respan(item, partial(back, chain)) for item in items]
    diagnostics += _planned_calls(items)
    items, dropped = _last_wins(items)
    return Script(tuple(items), source, "lenient", in_order([*diagnostics, *dropped], len(source.text)))


def _slips(text: str, items: Items) -> list[Diagnostic]:
    """Return a diagnostic for each misspelt reference, which the strict parser reads as text."""
    found: list[Diagnostic] = []
    known = {item.id for item in items if isinstance(item, Step)}
    for item in items:
        if not isinstance(item, Step) or "{(" not in text[item.span.start : item.span.end]:
            continue
        for node in walk(item):
            if isinstance(node, Template):
                raw = text[node.span.start : node.span.end]
                quotes = 3 if raw.startswith(('"""', "'''")) and len(raw) >= 6 else 1
                found += find_slips(raw[quotes:-quotes], node.span.start + quotes, known, is_read=True)
    return found


def _planned_calls(items: Items) -> list[Diagnostic]:
    """Return an error for each comment that is a planned call without its head: a heading such as ``## Step 2: LLM("...")``."""
    calls = {item.call for item in items if isinstance(item, Step)}
    message, hint = (
        "this comment contains a call without a head",
        'write it as a step, (id)=LLM("..."), or remove the line',
    )
    planned = (item for item in items if isinstance(item, Comment) and plans_a_call(item.text, calls))
    return [Diagnostic("LWT001", "error", message, item.span, (hint,)) for item in planned] if calls else []


def _last_wins(items: Items) -> tuple[Items, list[Diagnostic]]:
    """If several steps have the same id, keep the last of them and report the others."""
    last = {item.id: item for item in items if isinstance(item, Step)}
    kept: list[Step | Comment] = []
    dropped: list[Diagnostic] = []
    for item in items:
        if isinstance(item, Comment) or last[item.id] is item:
            kept.append(item)
        else:
            message = f"step ({item.id}) is defined again below; only the last one is used"
            edit = Edit(item.span, "")
            dropped.append(
                Diagnostic(
                    "LWT014", "warning", message, item.span, ("remove this one, or give it another id",), (edit,)
                )
            )
    return kept, dropped


# Parses a script leniently while its text arrives: a step is returned as soon as its text is complete.

_LONG = 4_000
"""Maximum length in code points of an incomplete step that is checked for completeness after every line."""


class StepFeed:
    """Parses a script in pieces. A step is complete at the end of the line where its valid text ends, or at the next head."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._rest = ""
        self._offset = 0  # where the rest begins in the complete text
        self._begun: set[str] = set()
        self.is_doubtful = False
        """Whether steps that were returned may change: the text so far has an error, a repeated id, or a reserved id."""
        self._parts = 0
        self._enough = 0  # the rest is read again when it reaches this length

    @property
    def source(self) -> Source:
        """Return the text received so far."""
        return Source("".join(self._pieces), "<stream>")

    def feed(self, chunk: str) -> list[Step]:
        """Add the next piece of text and return the steps that are now complete. Their spans refer to the complete text."""
        self._pieces.append(chunk)
        self._rest += chunk
        # Only a line end or a parenthesis can complete a step, so other text is not checked.
        if not ("\n" in chunk or ")" in chunk) or len(self._rest) < self._enough or self._parts > MAX_STEPS:
            return []
        found = self._take()
        # A long incomplete step is not read again for every line, which would take quadratic time.
        self._enough = len(self._rest) * 17 // 16 if len(self._rest) > _LONG else 0
        return found

    def close(self) -> tuple[list[Step], Script]:
        """Declare that the text is complete.

        Return the steps that were not returned earlier, and the complete script with its diagnostics.
        """
        script = parse_lwt(self.source, "lenient")
        rest = [step for step in script.steps if step.id not in self._begun]
        self._begun.update(step.id for step in rest)
        return rest, script

    def _take(self) -> list[Step]:
        found: list[Step] = []
        text, at = self._rest, 0
        while True:
            end = self._whole_until(text, at)
            if end is None:
                break
            self._parts += 1
            if self._parts > MAX_STEPS:
                break  # close() refuses the script
            found += self._read(text[at:end], self._offset + at)
            at = end
        self._rest = text[at:]
        self._offset += at
        return found

    def _whole_until(self, text: str, at: int) -> int | None:
        """Return the end of the part that begins at ``at``, or None if the part may continue in text that has not arrived yet."""
        first = at
        while first < len(text) and text[first] in " \t\r\n":
            first += 1
        line_end = end_of_line(text, first)
        if (thought := open_thought(text, first)) is not None:
            return thought if thought >= 0 else None
        if HEAD.match(text, first):
            read = read_step(text, first)
            if isinstance(read, StepRead):
                line_end = end_of_line(text, read.end)
                return line_end + 1 if line_end < len(text) else None
            following = next_head(text, first)
            return following if following < len(text) else None
        return line_end + 1 if line_end < len(text) else None

    def _read(self, part: str, offset: int) -> list[Step]:
        if "=" not in part:
            return []

        def move(span: Span) -> Span:
            return span.shift(offset)

        script = parse_lwt(part, "lenient")
        steps = [respan(step, move) for step in script.steps]
        new = [step for step in steps if step.id not in self._begun and step.id not in RESERVED]
        self.is_doubtful = self.is_doubtful or len(new) < len(steps) or has_errors(script.diagnostics)
        self._begun.update(step.id for step in new)
        return new
