"""The two readings of a script, over one grammar.

Strict: the text as it stands; every fault is found, and the steps that can be read are there. Lenient, for text from a
model: what a fault's edits can put right is put right and reported as a warning, then the repaired text is read by the
same grammar and every span is mapped back to the text as it was given. See ``docs/design/lwt.md#syntax``.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

from attrs import evolve, frozen

from ...diagnostic import Diagnostic, Edit, has_errors, sort_key
from ...source import Source, Span
from ...trees import walk
from ...trees.lwt import MAX_STEPS, RESERVED, Comment, Mode, Script, Step, Template
from ..repairs import Fault, Repaired, fault, repair, respan
from .engine import StepRead, read_script, read_step
from .recovery.diagnosis import explain_bad_head, explain_bullet, explain_lines, explain_rest, explain_step
from .recovery.envelope import STAGES, is_wrapped, open_thought
from .recovery.references import find_slips
from .recovery.surroundings import LINE_WITH_FENCE, MAX_FENCES
from .shapes import BULLET, HEAD, end_of_line, next_head, skip_blank

__all__ = [
    "MAX_FAULTS",
    "StepFeed",
    "excess",
    "next_place",
    "parse_lwt",
    "read_piece",
    "read_strictly",
    "too_many_faults",
]

MAX_LENGTH = 4_000_000
"""The longest script in code points. A script of 10,000 steps has about a fifth of that."""

MAX_OPENINGS = 100_000
"""The most ``{(`` in a script: each costs a token, and no script that means something has as many."""

MAX_FAULTS = 1_000
"""Beyond so many faults a text was not meant as a script; reading stops there and says so."""

MAX_REPAIRS = 2 * MAX_STEPS
"""The most faults of a text that the lenient reading puts right: a bullet and a quote in each of ``MAX_STEPS`` steps."""

_MOST_COMMENTS = 10_000
"""Comments that are read as tokens of one text. Of more, each is read by itself, which costs a third."""

Items = Sequence[Step | Comment]


def parse_lwt(source: Source | str, mode: Mode = "strict", max_steps: int | None = MAX_STEPS) -> Script:
    """Read a script. Never raises on any text: what is wrong is in the script's ``diagnostics``.

    A script of more than ``max_steps`` steps is refused (None: any number is read). The work is linear in the text.
    """
    if isinstance(source, str):
        source = Source(source)
    if refused := excess(source.text, max_steps):
        return Script((), source, mode, (refused,))
    # A byte order mark reads as a space, so that every offset stays.
    text = " " + source.text[1:] if source.text.startswith("\ufeff") else source.text
    items, faults = _read(text, mode)
    if mode == "strict":
        return read_strictly(source, items, faults)
    if not faults and (any(isinstance(item, Step) for item in items) or not is_wrapped(text)):
        return _lenient(source, text, items, faults, [], [])
    diagnostics, chain = _unwrapped(text)
    if chain:
        text = chain[-1].text
        # Steps in strings or quotations are only now seen.
        if refused := excess(text, max_steps):
            found = [*diagnostics, _back(chain, refused)]
            return Script((), source, mode, _sorted(found, len(source.text)))
        items, faults = _read(text, mode)
    return _lenient(source, text, items, faults, diagnostics, chain)


def _unwrapped(text: str) -> tuple[list[Diagnostic], list[Repaired]]:
    """Take off what stands around the steps. Return what is told of it, and the texts that came of it in turn."""
    diagnostics: list[Diagnostic] = []
    chain: list[Repaired] = []
    for stage in STAGES:
        found = stage(text)
        diagnostics += [_back(chain, diagnostic) for diagnostic in found.diagnostics]
        if found.edits:
            chain.append(repair(text, found.edits))
            text = chain[-1].text
    return diagnostics, chain


def excess(text: str, max_steps: int | None = MAX_STEPS) -> Diagnostic | None:
    """Return why a text is too large to be read; None where it is not. Little is read to find out."""
    if len(text) > MAX_LENGTH:
        return Diagnostic(
            "LWT011",
            "error",
            f"the script has {len(text):,} characters; {MAX_LENGTH:,} is the most",
            Span(0, 1),
        )
    if (openings := text.count("{(")) > MAX_OPENINGS:
        message = f"the script has {openings:,} times {{(; {MAX_OPENINGS:,} is the most"
        return Diagnostic("LWT011", "error", message, Span(0, 1))
    if fence := next(islice(LINE_WITH_FENCE.finditer(text), MAX_FENCES, None), None):
        message = f"the text has more than {MAX_FENCES:,} lines with a mark of a code fence; this is one too many"
        return Diagnostic("LWT011", "error", message, Span(fence.start("mark"), fence.end("mark")))
    if max_steps is None or next(islice(HEAD.finditer(text), max_steps, None), None) is None:
        return None
    # So many places look like heads, but prompts may have some of them.
    if (at := _step(text, max_steps + 1)) is None:
        return None
    message = f"the script has more than {max_steps:,} steps; this is step {max_steps + 1:,}"
    hint = "`--max-steps N` on the command line, or `max_steps=N` in Python, reads a script of more steps"
    return Diagnostic("LWT011", "error", message, Span(at, at + 1), (hint,))


def _step(text: str, number: int) -> int | None:
    """Return where the step with this number, counted from 1, begins. Steps are found as ``read_piece`` finds them."""
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
    """Return the script of what was read strictly."""
    return Script(tuple(items), source, "strict", _sorted((each.diagnostic for each in faults), len(source.text)))


def _sorted(diagnostics: Iterable[Diagnostic], length: int) -> tuple[Diagnostic, ...]:
    """Order by place. What is missing at the very end has an empty span there, not one behind the text."""
    return tuple(sorted((_within(diagnostic, length) for diagnostic in diagnostics), key=sort_key))


def _within(diagnostic: Diagnostic, length: int) -> Diagnostic:
    span = diagnostic.span
    if span is None or span.end <= length:
        return diagnostic
    return evolve(diagnostic, span=Span(min(span.start, length), length))


def _read(text: str, mode: Mode) -> tuple[Items, list[Fault]]:
    """Read as one text; where that fails, step by step."""
    if text.count("\n#") > _MOST_COMMENTS:
        return _recover(text, mode)
    items = read_script(text)
    return (items, []) if items is not None else _recover(text, mode)


def _recover(text: str, mode: Mode) -> tuple[Items, list[Fault]]:
    """Read every step that can be read, and explain everything else. Linear in the text."""
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
    """Return the fault of a text that has so many before ``at`` that nothing more of it is read."""
    message = f"here are more than {count:,} faults; reading stops at this line"
    return fault("LWT011", message, at, max(end_of_line(text, at), at + 1))


@frozen
class Piece:
    """What one look at a text gave: a step or a comment, or what is wrong instead; ``end`` is where reading goes on.

    ``stop`` is where the next head stands, where lines before it are not explained yet.
    """

    end: int
    item: Step | Comment | None = None
    faults: tuple[Fault, ...] = ()
    stop: int = 0


def next_place(text: str, at: int) -> int:
    """Return the first place at ``at`` or behind it that is not blank; the text's end where there is none."""
    length = len(text)
    while at < length and text[at] in " \t\r\n":
        at += 1
    return at


def read_piece(text: str, at: int, known: int = 0) -> Piece:
    """Read what stands at ``at``, which is not blank: nothing before it counts, but the line that it stands in.

    ``known``: the ``stop`` of the piece before.
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
    """Return where what can't be read ends: before the comments at its end, if they are for the step at ``stop``."""
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
    """Make the edits of accepted faults, then those of references, and read what comes out.

    ``diagnostics`` and ``chain`` are those of what was taken off before.
    """
    # An edit can bring a further fault to light (a bullet removed, then an inner quote found), but each round removes
    # what it accepts, so few rounds do.
    for _ in range(4):
        accepted = [fault for fault in faults if fault.accepted]
        if not accepted or (len(accepted) >= MAX_REPAIRS and faults[-1].diagnostic.code == "LWT011"):
            break
        diagnostics += [_back(chain, fault.as_warning) for fault in accepted]
        chain.append(repair(text, (edit for fault in accepted for edit in fault.diagnostic.edits)))
        text = chain[-1].text
        items, faults = _read(text, "lenient")
    diagnostics += [_back(chain, fault.diagnostic) for fault in faults]

    slips = _slips(text, items)
    if slips:
        diagnostics += [_back(chain, slip) for slip in slips]
        chain.append(repair(text, (edit for slip in slips for edit in slip.edits)))
        items, _ = _read(chain[-1].text, "lenient")
    if chain:
        items = [respan(item, lambda span: _span_back(chain, span)) for item in items]
    items, dropped = _last_wins(items)
    return Script(tuple(items), source, "lenient", _sorted([*diagnostics, *dropped], len(source.text)))


def _slips(text: str, items: Items) -> list[Diagnostic]:
    """Find references written in a way that strict reading takes for text."""
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


def _last_wins(items: Items) -> tuple[Items, list[Diagnostic]]:
    """Keep the last of the steps that share an id, and report the others."""
    last = {item.id: item for item in items if isinstance(item, Step)}
    kept: list[Step | Comment] = []
    dropped: list[Diagnostic] = []
    for item in items:
        if isinstance(item, Comment) or last[item.id] is item:
            kept.append(item)
        else:
            message = f"step ({item.id}) is written again further down; the last one counts"
            edit = Edit(item.span, "")
            dropped.append(
                Diagnostic(
                    "LWT014", "warning", message, item.span, ("remove this one, or give it an id of its own",), (edit,)
                )
            )
    return kept, dropped


def _span_back(chain: Sequence[Repaired], span: Span) -> Span:
    for repaired in reversed(chain):
        span = repaired.back_span(span)
    return span


def _back(chain: Sequence[Repaired], diagnostic: Diagnostic) -> Diagnostic:
    """Return the diagnostic with its spans in the text as it was given."""
    if not chain or diagnostic.span is None:
        return diagnostic
    edits = tuple(Edit(_span_back(chain, edit.span), edit.text) for edit in diagnostic.edits)
    return evolve(diagnostic, span=_span_back(chain, diagnostic.span), edits=edits)


# Reads a script that is still arriving: steps come out as soon as their text is whole. The reading is lenient.

_LONG = 4_000
"""Code points of a step that is still arriving up to which every line of it is a reason to look whether it is whole."""


class StepFeed:
    """Takes a script in pieces. A step is whole when a line's end follows its strict text, or when the next head has come."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._rest = ""
        self._offset = 0  # of the rest in the whole text
        self._begun: set[str] = set()
        self.is_doubtful = False
        """Whether something arrived that may change what was handed out: a fault, or a step whose id was there before."""
        self._parts = 0
        self._enough = 0  # the length of the rest at which it is looked at again

    @property
    def source(self) -> Source:
        """The text that has arrived."""
        return Source("".join(self._pieces), "<stream>")

    def feed(self, chunk: str) -> list[Step]:
        """Take the next piece and return the steps that are whole now, spans in the whole text."""
        self._pieces.append(chunk)
        self._rest += chunk
        # Only a line's end or a parenthesis can make a step whole; anything else needs no look at what is there.
        if not ("\n" in chunk or ")" in chunk) or len(self._rest) < self._enough or self._parts > MAX_STEPS:
            return []
        found = self._take()
        # A long step that is still arriving is not read again for every line of it: that would be quadratic.
        self._enough = len(self._rest) * 17 // 16 if len(self._rest) > _LONG else 0
        return found

    def close(self) -> tuple[list[Step], Script]:
        """Say that all text has arrived. Return the steps not handed out yet, and the whole script with diagnostics."""
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
        """Return where the part that begins at ``at`` and is surely whole ends, or None while more must come."""
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
