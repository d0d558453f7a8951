"""Reads the valid statements of a faulty program, and explains all others.

Faults are independent: an invalid statement is lost alone, and a block keeps its other statements.
"""

import re
from collections.abc import Callable

from attrs import define, evolve, field

from ....diagnostic import Edit, apply_edits
from ....source import Span
from ....trees.gasl import Comment, Item, Statement, Try
from ...repairs import Fault, Repaired, fault, repair, shown
from ..engine import Failure, Read, read
from ..lines import BLOCK_WORD, Chunk, chunk_at, end_of_line, explain_outside, woven
from .ambiguous import DOUBTS
from .attempt import Broken
from .foreign_syntax import FOREIGN, RANGES
from .keywords import FIRST, LEFT_OUT, WORDS, expectation
from .literals import NAMES, VALUES
from .statements import HEADS, MISPLACED, SHAPE

# Explains all faults inside a statement, and the edits that fix them together.
# Each fault found is fixed in a copy, which is parsed again, so that later faults are found too. Edits are offered only if the
# statement is valid after all of them, and only if the text has no second reading (``Fault.supposed``).

MOST_ROUNDS = 10
"""Maximum number of faults that are fixed in one statement."""

LONGEST = 20_000
"""Maximum length of a statement that is repaired, in characters: every attempt parses it again."""

_EXPLAINERS: tuple[Callable[[Broken], Fault | None], ...] = (
    *DOUBTS, *FIRST, *HEADS, *MISPLACED, *RANGES, *FOREIGN, *LEFT_OUT, *NAMES, *VALUES, *WORDS, *SHAPE,
)  # fmt: skip
"""Explainers in the order of their calls: each before those that would misread its fault."""


def explain_statement(text: str, chunk: Chunk, known: Failure | None = None) -> list[Fault]:
    """Explain why the statement ``chunk`` of ``text`` cannot be read; ``known`` is the failure of an earlier attempt."""
    local = _joined(text, chunk)
    if known and len(local) > LONGEST:
        moved = evolve(
            known,
            offset=max(0, known.offset - chunk.start),
            behind=max(0, known.behind - chunk.start),
            unbuildable=None,
        )
        if known.unbuildable:
            span = known.unbuildable.span
            return [
                fault(known.unbuildable.code, str(known.unbuildable), span.start, span.end, *known.unbuildable.hints)
            ]
        return [_placed(_generic(Broken(local, moved)), chunk.start, False)]
    faults: list[Fault] = []
    if chunk.joins:
        edits = tuple(Edit(join.shift(-chunk.start), " ") for join in chunk.joins)
        first = chunk.joins[0].end - chunk.start
        word = local[first:].split(None, 1)[0][:20]
        message = f"a command stands on one line; {word} begins another"
        faults.append(fault("GASL034", message, first, first + len(word), "write it on the line above", edits=edits))
    chain: list[Repaired] = []
    reads = False
    for _ in range(MOST_ROUNDS):
        found = read(local)
        if isinstance(found, Read):
            reads = True
            break
        explained = _explain(Broken(local, found, bool(chain)), len(local) <= LONGEST)
        edits = explained.diagnostic.edits or explained.supposed
        faults.append(_back(chain, explained))
        if not edits:
            break
        chain.append(repair(local, edits))
        local = chain[-1].text
    placed = [_placed(found, chunk.start, reads) for found in faults]
    return _together(text, chunk, placed, local) if reads else placed


def _joined(text: str, chunk: Chunk) -> str:
    """Return the statement with blanks in place of its line breaks, so that all offsets stay the same."""
    pieces, done = [], chunk.start
    for join in chunk.joins:
        pieces += [text[done : join.start], " " * (join.end - join.start)]
        done = join.end
    return "".join((*pieces, text[done : chunk.end]))


def _explain(broken: Broken, mending: bool) -> Fault:
    known = broken.failure.unbuildable
    if mending and (not known or (known.code == "GASL018" and not broken.mended_by(known.edits))):
        whole = _at_word(broken)
        broken, known = (whole, None) if whole else (broken, known)
    if known:
        edits = known.edits if mending and known.edits and broken.furthered_by(known.edits) else ()
        return fault(known.code, str(known), known.span.start, known.span.end, *known.hints, edits=edits)
    if mending:
        for explain in _EXPLAINERS:
            found = explain(broken)
            if found:
                return found
    return _generic(broken)


_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")


def _at_word(broken: Broken) -> Broken | None:
    """Return the failure at the beginning of a word of which only the first part was read, as DESC of DESCENDING."""
    failure, text = broken.failure, broken.text
    at = failure.behind if failure.unbuildable is None else failure.unbuildable.edits[0].span.start
    head = _WORD.search(text[:at])
    if not head or not re.match(r"\w", text[at : at + 1]) or (failure.unbuildable is None and failure.offset != at):
        return None
    before = read(text[: head.start()])
    if isinstance(before, Read) or before.unbuildable or before.offset < len(text[: head.start()].rstrip()):
        return None
    return Broken(text, evolve(before, offset=head.start()))


def _generic(broken: Broken) -> Fault:
    piece, wanted = broken.piece(), expectation(broken)
    if piece is None:
        at = len(broken.text.rstrip())
        message = f"{broken.command or 'the command'} ends here too early"
        return fault("GASL008", message, max(0, at - 1), at, f"here is missing {wanted}" if wanted else "", broken.form)
    message = f"{shown(piece.text)} can't stand here"
    hint = f"here may stand {wanted}" if wanted else ""
    return fault("GASL008", message, piece.span.start, piece.span.end, hint, broken.form)


def _back(chain: list[Repaired], found: Fault) -> Fault:
    """Return the fault with its spans in the original statement."""
    diagnostic = found.diagnostic
    edits, span, supposed = diagnostic.edits, diagnostic.span, found.supposed
    for repaired in reversed(chain):
        span = repaired.back_span(span) if span else None
        edits = tuple(Edit(repaired.back_span(edit.span), edit.text) for edit in edits)
        supposed = tuple(Edit(repaired.back_span(edit.span), edit.text) for edit in supposed)
    return evolve(found, diagnostic=evolve(diagnostic, span=span, edits=edits), supposed=supposed)


def _together(text: str, chunk: Chunk, faults: list[Fault], mended: str) -> list[Fault]:
    """Return the faults, with a single edit to ``mended`` if their own edits overlap."""
    edits = [edit for found in faults for edit in (*found.diagnostic.edits, *found.supposed)]
    idle = any(edit.text == text[edit.span.start : edit.span.end] for edit in edits)
    given = text[chunk.start : chunk.end]
    made = apply_edits(given, [Edit(edit.span.shift(-chunk.start), edit.text) for edit in edits])
    if len(faults) < 2 or (not idle and isinstance(read(made), Read)):
        return faults
    if any(found.supposed for found in faults):  # a single edit would include edits that are not offered
        return [evolve(found, diagnostic=evolve(found.diagnostic, edits=())) for found in faults]
    start = next(
        (i for i, (a, b) in enumerate(zip(given, mended, strict=False)) if a != b), min(len(given), len(mended))
    )
    room = min(len(given), len(mended)) - start
    backwards = zip(reversed(given), reversed(mended), strict=False)
    same = min(room, next((i for i, (a, b) in enumerate(backwards) if a != b), room))
    whole = Edit(Span(chunk.start + start, chunk.end - same), mended[start : len(mended) - same])
    first, *others = (evolve(found, diagnostic=evolve(found.diagnostic, edits=())) for found in faults)
    return [evolve(first, diagnostic=evolve(first.diagnostic, edits=(whole,))), *others]


def _placed(found: Fault, start: int, reads: bool) -> Fault:
    diagnostic = found.diagnostic
    span = diagnostic.span.shift(start) if diagnostic.span else Span(start, start)
    edits = tuple(Edit(edit.span.shift(start), edit.text) for edit in diagnostic.edits) if reads else ()
    supposed = tuple(Edit(edit.span.shift(start), edit.text) for edit in found.supposed)
    return evolve(found, diagnostic=evolve(diagnostic, span=span, edits=edits), supposed=supposed)


MAX_FAULTS = 1_000
"""Maximum number of faults; a text with more is not a program, and parsing stops there with a fault of its own."""

_BLANK = re.compile(r"[ \t\r\n]*+")
_ODD_BLANK = re.compile(r"[^\S\n]*+")
_CATCH = re.compile(r"CATCH(?P<any>[ \t]++ANY\b)?", re.IGNORECASE)


@define
class _Frame:
    """An open block: where it and its TRY begin, its parts so far, and the reason above it."""

    start: int
    word: int
    why: str | None = None
    parts: dict[str, list[Item]] = field(factory=lambda: {"TRY": []})

    @property
    def items(self) -> list[Item]:
        return self.parts[next(reversed(self.parts))]

    def built(self, end: int) -> Statement:
        parts = {word: tuple(items) for word, items in self.parts.items()}
        span = Span(self.start, end)
        return Statement(Try(parts["TRY"], parts.get("CATCH"), parts.get("FINALLY"), span=span), self.why, span=span)


def recover(text: str, failure: Failure) -> tuple[tuple[Item, ...], list[Fault]]:
    """Read every valid statement, and explain everything else; the whole text failed with ``failure``."""
    return Recovery(text, failure).run()


def explain_condition(text: str) -> list[Fault]:
    """Explain why ``text`` is not a valid condition, as in ASSERT."""
    head = "ASSERT "
    faults = explain_statement(head + re.sub(r"[\r\n]", " ", text), Chunk(0, len(head) + len(text.rstrip())))
    return [_shifted(found, -len(head)) for found in faults]


def _shifted(found: Fault, by: int) -> Fault:
    diagnostic = found.diagnostic
    span = diagnostic.span or Span(0, 0)
    moved = Span(max(0, span.start + by), max(1, span.end + by))
    inside = all(edit.span.start + by >= 0 for edit in diagnostic.edits)
    edits = tuple(Edit(edit.span.shift(by), edit.text) for edit in diagnostic.edits) if inside else ()
    message = diagnostic.message.replace("ASSERT", "the condition")
    hints = tuple(hint for hint in diagnostic.hints if "ASSERT" not in hint)
    return evolve(found, diagnostic=evolve(diagnostic, message=message, span=moved, hints=hints, edits=edits))


class Recovery:
    """One pass over a faulty text. ``failure`` is the failure of the whole text, if known."""

    def __init__(self, text: str, failure: Failure | None) -> None:
        self._text, self._failure = text, failure
        self.faults: list[Fault] = []
        self._reasons: list[tuple[str, Span]] = []
        self.root: list[Item] = []
        self._frames: list[_Frame] = []

    def run(self) -> tuple[tuple[Item, ...], list[Fault]]:
        """Process the whole text."""
        at = 0
        while (at := self.next_place(at)) < len(self._text):
            at = self.advance(at)
        return self.finish()

    def next_place(self, at: int) -> int:
        """Return the first place at or after ``at`` that is not blank; the end of the text if there is none."""
        blank = _BLANK.match(self._text, at)
        return blank.end() if blank else at

    def advance(self, at: int) -> int:
        """Read the text at ``at``; return where parsing goes on."""
        text = self._text
        if len(self.faults) >= MAX_FAULTS:
            message = f"here are more than {MAX_FAULTS:,} faults; reading stops at this line"
            self.faults.append(fault("GASL023", message, at, end_of_line(text, at)))
            self._frames.clear()
            return len(text)
        return self._remark(at) if text[at] == "#" else self._statement(at)

    def finish(self) -> tuple[tuple[Item, ...], list[Fault]]:
        """Close the open blocks at the end of the text; return the items and faults."""
        self._dangling()
        end = len(self._text.rstrip())
        while self._frames:
            self._unclosed(self._frames.pop(), end)
        return tuple(self.root), self.faults

    @property
    def _items(self) -> list[Item]:
        return self._frames[-1].items if self._frames else self.root

    def _remark(self, at: int) -> int:
        text = self._text
        end = end_of_line(text, at)
        body = text[at:end].rstrip()
        first = text.rfind("\n", 0, at) + 1
        behind = bool(text[first:at].strip())
        span = Span(at, at + len(body))
        if not body.startswith("#:"):
            self._items.append(Comment(body, behind, span=span))
        elif behind:
            indent = text[first : first + len(text[first:at]) - len(text[first:at].lstrip())]
            start = at - (len(text[first:at]) - len(text[first:at].rstrip()))
            edits = (Edit(Span(first, first), f"{indent}{body}\n"), Edit(Span(start, span.end), ""))
            message = "a reason stands on a line of its own, above its command"
            self.faults.append(fault("GASL026", message, *_ends(span), "move it above", edits=edits))
        else:
            self._reasons.append((body[2:].strip(), span))
        return end

    def _why(self) -> str | None:
        reasons = [reason for reason, _ in self._reasons if reason]
        self._reasons.clear()
        return " ".join(reasons) or None

    def _dangling(self) -> None:
        """Report reasons that are not followed by a command."""
        for _, span in self._reasons:
            edit = Edit(Span(span.start, span.start + 2), "#")
            hint = "put it above the command that it explains, or make it a comment with # alone"
            self.faults.append(fault("GASL026", "no command follows this reason", *_ends(span), hint, edits=(edit,)))
        self._reasons.clear()

    def _statement(self, at: int) -> int:
        text = self._text
        if word := BLOCK_WORD.match(text, at):
            return self._block(word[1].upper(), word.end(), at)
        outside, end = explain_outside(text, at)
        if outside:
            self.faults.append(outside)
            return end
        chunk = chunk_at(text, at, bool(self._frames))
        reason = self._reasons[0][1].start if self._reasons else None
        why = self._why()
        found: Read | Failure | None = None
        if not chunk.joins:
            # Parsing a very long statement is slow, and its failure is known: the whole text failed there.
            here = chunk.end - chunk.start > LONGEST and not self._frames
            here = here and self._failure is not None and chunk.start <= self._failure.offset <= chunk.end
            found = self._failure if here else read(text, chunk.start, chunk.end)
        if isinstance(found, Read):
            items = woven(found.result, found.inner)
            if why and items and isinstance(items[-1], Statement):
                begin = chunk.start if reason is None else reason
                items = (*items[:-1], evolve(items[-1], why=why, span=Span(begin, items[-1].span.end)))
            self._items.extend(items)
            return chunk.end if chunk.end > at else self._behind_blanks(at)
        end, faults = self._explained(chunk, found)
        self.faults += faults
        return max(end, self._behind_blanks(at) if end == at else end)

    def _behind_blanks(self, at: int) -> int:
        """Return the end of a run of odd blanks with nothing after them: they are one fault, if any."""
        blank = _ODD_BLANK.match(self._text, at)
        return max(blank.end() if blank else at, at + 1)

    def _explained(self, chunk: Chunk, failure: Failure | None) -> tuple[int, list[Fault]]:
        if len(self.faults) > 200:
            # A text with so many faults is not fixed line by line; finding places is cheap.
            message = "this can't be read as a command either"
            return chunk.end, [
                fault("GASL008", message, chunk.start, min(chunk.end, end_of_line(self._text, chunk.start)))
            ]
        run_on = _over_lines(self._text, chunk)
        return run_on or (chunk.end, explain_statement(self._text, chunk, failure))

    def _block(self, word: str, after: int, at: int) -> int:
        """Process a keyword of a block. Return where parsing goes on."""
        text = self._text
        span = Span(at, after)
        if word == "TRY":
            reason = self._reasons[0][1].start if self._reasons else at
            self._frames.append(_Frame(reason, at, self._why()))
            return after
        self._dangling()
        if not self._frames:
            line = end_of_line(text, at)
            alone = not text[after:line].strip() or word == "CATCH"
            # Without CATCH its commands would always run; and TRY may be missing because of a fault above.
            sure = word == "END" and alone and not self.faults
            edit = Edit(Span(at, min(line + 1, len(text))), "")
            hint = "remove it, or write TRY where the block begins"
            self.faults.append(
                fault("GASL005", f"{word} belongs to no TRY", *_ends(span), hint, edits=(edit,) if sure else ())
            )
            return line if alone else after
        frame = self._frames[-1]
        if word == "END":
            self._frames.pop()
            self._items.append(frame.built(after))
            if tail := re.compile(r"[ \t]++(?:TRY|BLOCK)\b|[ \t]*+;", re.IGNORECASE).match(text, after):
                edit = Edit(Span(after, tail.end()), "")
                message = f"a block ends with END alone, not with {word}{tail[0]}"
                self.faults.append(fault("GASL005", message, at, tail.end(), "write END", edits=(edit,)))
                return tail.end()
            return after
        if word in frame.parts or (word == "CATCH" and "FINALLY" in frame.parts):
            message = f"{word} stands {'twice in this block' if word in frame.parts else 'behind FINALLY'}"
            hint = "a block is TRY, CATCH ANY, FINALLY, END, in this order and each once"
            self.faults.append(fault("GASL005", message, *_ends(span), hint))
        frame.parts.setdefault(word, [])
        if word == "CATCH":
            head = _CATCH.match(text, at)
            if head and head["any"]:
                return head.end()
            other = re.compile(r"[ \t]++\w++(?=[ \t\r]*+$)", re.MULTILINE).match(text, after)
            edit = Edit(Span(after, other.end() if other else after), " ANY")
            message = "CATCH takes every error: CATCH ANY"
            self.faults.append(fault("GASL006", message, *_ends(span), "write CATCH ANY", edits=(edit,)))
            return other.end() if other else after
        return after

    def _unclosed(self, frame: _Frame, end: int) -> None:
        """Report a block without END, unless the limit is reached, and keep its items; ``end`` is the end of the text."""
        if len(self.faults) < MAX_FAULTS:
            hint, edit = "write END where it ends", Edit(Span(end, end), "\nEND")
            commands = sum(isinstance(item, Statement) for item in frame.items)  # with several, its end is open
            edits = (edit,) if commands <= 1 else ()
            self.faults.append(fault("GASL004", "this block has no END", frame.word, frame.word + 3, hint, edits=edits))
        self._items.append(frame.built(end))


_OPENED = re.compile(r"""(?:[^"'#\n]|"(?:[^"\\\r\n]|\\[^\r\n])*+"|'(?:[^'\\\r\n]|\\[^\r\n])*+')*+(["'])""")


def _over_lines(text: str, chunk: Chunk) -> tuple[int, list[Fault]] | None:
    """Explain a string with line breaks, if the statement is valid with escapes in their place."""
    opened = _OPENED.match(text, chunk.start, end_of_line(text, chunk.start))
    if not opened:
        return None
    mark, start = opened[1], opened.end() - 1
    limit = min(len(text), start + 20_000)
    closing = re.compile(rf"(?:[^{mark}\\]|\\.)*+{mark}", re.DOTALL).match(text, start + 1, limit)
    if not closing or "\n" not in closing[0] or closing[0].count("\n") > 200:
        return None
    end = end_of_line(text, closing.end())
    breaks = [
        Edit(Span(start + 1 + found.start(), start + 1 + found.end()), "\\n")
        for found in re.finditer(r"[ \t]*+\r?\n", closing[0])
    ]
    local = [Edit(edit.span.shift(-chunk.start), edit.text) for edit in breaks]
    if not isinstance(read(apply_edits(text[chunk.start : end], local)), Read):
        return None
    message = "a string ends on the line where it begins"
    hint = "write \\n for a line break in it"
    return end, [fault("GASL002", message, start, start + 1, hint, edits=tuple(breaks))]


def _ends(span: Span) -> tuple[int, int]:
    return span.start, span.end
