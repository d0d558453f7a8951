"""Parses the valid statements of a faulty program, and explains the invalid ones.

An invalid statement does not affect the others: only that statement is lost, and a block keeps its valid statements.
"""

import re

from attrs import define, evolve, field

from ....diagnostic import Edit, apply_edits
from ....source import Span
from ....trees.gasl import Comment, Item, Statement, Try
from ...repairs import Fault, Repaired, back, fault, repair, shortened
from ..engine import Failure, Read, read
from ..lines import BLOCK_WORD, Chunk, chunk_at, end_of_line, explain_outside, woven
from .ambiguous import DOUBTS
from .attempt import Explainer, InvalidStatement, insert, swap
from .foreign_syntax import FOREIGN, RANGES
from .keywords import FIRST, LEFT_OUT, WORDS, expectation
from .literals import NAMES, VALUES
from .statements import HEADS, MISPLACED, SHAPE

# Explains all faults inside a statement, and finds edits that fix all of them.
# Each fault is fixed in a copy, and the copy is parsed again, so that later faults are found too. Edits are offered only if the
# statement is valid after all of them, and only if the text cannot have another meaning (``Fault.supposed``).

MOST_ROUNDS = 10
"""Maximum number of faults that are fixed in one statement."""

LONGEST = 20_000
"""Maximum length of a statement that is repaired, in characters: every attempt parses it again."""

_EXPLAINERS: tuple[Explainer, ...] = (
    *DOUBTS, *FIRST, *HEADS, *MISPLACED, *RANGES, *FOREIGN, *LEFT_OUT, *NAMES, *VALUES, *WORDS, *SHAPE,
)  # fmt: skip
"""All explainers, in the order of their calls. An explainer comes before those that would misread its fault."""


def explain_statement(text: str, chunk: Chunk, known: Failure | None = None) -> list[Fault]:
    """Explain why the statement ``chunk`` of ``text`` cannot be read; ``known`` is the failure of an earlier attempt."""
    local = chunk.text_on_one_line(text)
    if known and len(local) > LONGEST:
        if known.unbuildable:
            return [known.unbuildable.as_fault()]
        offset, behind = max(0, known.offset - chunk.start), max(0, known.behind - chunk.start)
        failed = InvalidStatement(local, evolve(known, offset=offset, behind=behind))
        return [_generic(failed).moved(lambda span: span.shift(chunk.start))]
    faults: list[Fault] = []
    if chunk.joins:
        edits = tuple(Edit(join.shift(-chunk.start), " ") for join in chunk.joins)
        first = chunk.joins[0].end - chunk.start
        word = local[first:].split(None, 1)[0][:20]
        message, hint = (
            f"a command must be on one line, but {word} begins another",
            "move it to the end of the line above",
        )
        faults.append(fault("GASL034", message, first, first + len(word), hint, edits=edits))
    chain: list[Repaired] = []
    is_valid = False
    for _ in range(MOST_ROUNDS):
        result = read(local)
        if is_valid := isinstance(result, Read):
            break
        found = _explain(InvalidStatement(local, result), len(local) <= LONGEST)
        edits = found.diagnostic.edits or found.supposed
        faults.append(found.moved(lambda span: back(chain, span)))
        if not edits:
            break
        chain.append(repair(local, edits))
        local = chain[-1].text
    placed = [each.moved(lambda span: span.shift(chunk.start)) for each in faults]
    return _together(text, chunk, placed, local) if is_valid else [each.without_edits for each in placed]


def _explain(statement: InvalidStatement, mending: bool) -> Fault:
    known = statement.failure.unbuildable
    if mending and (not known or (known.code == "GASL018" and not statement.mended_by(known.edits))):
        whole = _at_word(statement)
        statement, known = (whole, None) if whole else (statement, known)
    if known:
        edits = known.edits if mending and known.edits and statement.furthered_by(known.edits) else ()
        return known.as_fault(edits)
    for explain in _EXPLAINERS if mending else ():
        if found := explain(statement):
            return found
    return _generic(statement)


_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")


def _at_word(statement: InvalidStatement) -> InvalidStatement | None:
    """If only the first part of a word was read (DESC of DESCENDING), return the failure at the start of the word, else None."""
    failure, text = statement.failure, statement.text
    at = failure.behind if failure.unbuildable is None else failure.unbuildable.edits[0].span.start
    head = _WORD.search(text[:at])
    if not head or not re.match(r"\w", text[at : at + 1]) or (failure.unbuildable is None and failure.offset != at):
        return None
    before = read(text[: head.start()])
    if isinstance(before, Read) or before.unbuildable or before.offset < len(text[: head.start()].rstrip()):
        return None
    return InvalidStatement(text, evolve(before, offset=head.start()))


def _generic(statement: InvalidStatement) -> Fault:
    piece, expected = statement.piece(), expectation(statement)
    message, span = f"unexpected {shortened(piece.text)}", piece.span
    if piece.kind == "end":
        at = len(statement.text.rstrip())
        message, span = f"{statement.command or 'the command'} is incomplete", Span(max(0, at - 1), at)
    hint = f"expected {expected}" if expected else ""
    return fault("GASL008", message, span.start, span.end, hint, statement.form)


def _together(text: str, chunk: Chunk, faults: list[Fault], mended: str) -> list[Fault]:
    """Return the faults. If their edits can't be applied together, the first fault gets one edit that leads to ``mended``.

    The other faults then get no edits. If a fault has ``supposed`` edits, all faults lose their edits.
    """
    edits = [edit for found in faults for edit in (*found.diagnostic.edits, *found.supposed)]
    idle = any(edit.text == text[edit.span.start : edit.span.end] for edit in edits)
    given = chunk.text(text)
    edited = apply_edits(given, [edit.shift(-chunk.start) for edit in edits])
    if len(faults) < 2 or (not idle and isinstance(read(edited), Read)):
        return faults
    first, *others = (found.without_edits for found in faults)
    if any(found.supposed for found in faults):  # a single edit would include edits that are not offered
        return [first, *others]
    start = _same(given, mended)
    same = _same(given[start:][::-1], mended[start:][::-1])
    whole = Edit(Span(chunk.start + start, chunk.end - same), mended[start : len(mended) - same])
    return [evolve(first, diagnostic=evolve(first.diagnostic, edits=(whole,))), *others]


def _same(one: str, other: str) -> int:
    """Return the length of the longest common beginning of both texts."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


MAX_FAULTS = 1_000
"""Maximum number of faults. A text with more faults is not a program: a last fault reports that parsing stops."""

_BLANK = re.compile(r"[ \t\r\n]*+")
_ODD_BLANK = re.compile(r"[^\S\n]*+")
_CATCH = re.compile(r"CATCH(?P<any>[ \t]++ANY\b)?", re.IGNORECASE)


@define
class _Frame:
    """An open TRY block: the offset where its statement begins, the offset of TRY, the reason above it, and its parts so far."""

    start: int
    word: int
    why: str | None = None
    parts: dict[str, list[Item]] = field(factory=lambda: {"TRY": []})

    @property
    def items(self) -> list[Item]:
        return self.parts[next(reversed(self.parts))]

    def statement(self, end: int) -> Statement:
        """Return the block as a statement that ends at ``end``."""
        parts = {word: tuple(items) for word, items in self.parts.items()}
        span = Span(self.start, end)
        return Statement(Try(parts["TRY"], parts.get("CATCH"), parts.get("FINALLY"), span=span), self.why, span=span)


def recover(text: str, failure: Failure) -> tuple[tuple[Item, ...], list[Fault]]:
    """Parse every valid statement, and explain all other text. ``failure`` is the result of parsing the whole text."""
    return Recovery(text, failure).run()


def explain_condition(text: str) -> list[Fault]:
    """Explain why ``text`` is not a valid condition. The text is parsed as the condition of ASSERT."""
    head = "ASSERT "
    faults = explain_statement(head + re.sub(r"[\r\n]", " ", text), Chunk(0, len(head) + len(text.rstrip())))
    return [_of_condition(found, -len(head)) for found in faults]


def _of_condition(found: Fault, by: int) -> Fault:
    """Return the fault with its spans moved by ``by``, and without ASSERT in the message and the hints."""
    diagnostic = found.diagnostic
    span = diagnostic.span or Span(0, 0)
    edits = tuple(edit.shift(by) for edit in diagnostic.edits)
    edits = edits if all(edit.span.start >= 0 for edit in edits) else ()
    message = diagnostic.message.replace("ASSERT", "the condition")
    hints = tuple(hint for hint in diagnostic.hints if "ASSERT" not in hint)
    span = Span(max(0, span.start + by), max(1, span.end + by))
    return evolve(found, diagnostic=evolve(diagnostic, message=message, span=span, hints=hints, edits=edits))


class Recovery:
    """One pass over a faulty text. ``failure`` is the result of parsing the whole text, if known."""

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
        """Process the comment, block keyword or statement at ``at``; return the offset where parsing continues."""
        text = self._text
        if len(self.faults) >= MAX_FAULTS:
            self._report(
                "GASL023",
                f"more than {MAX_FAULTS:,} faults; the text from here on is not checked",
                at,
                end_of_line(text, at),
            )
            self._frames.clear()
            return len(text)
        return self._remark(at) if text[at] == "#" else self._statement(at)

    def _report(self, code: str, message: str, start: int, end: int, hint: str = "", *edits: Edit) -> None:
        self.faults.append(fault(code, message, start, end, hint, edits=edits))

    def finish(self) -> tuple[tuple[Item, ...], list[Fault]]:
        """Close the open blocks at the end of the text; return the items and faults."""
        self._dangling()
        end = len(self._text.rstrip())
        while self._frames:
            self._report_open_block(self._frames.pop(), end)
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
            edits = (insert(first, f"{indent}{body}\n"), swap(start, span.end, ""))
            message = "a reason (#:) must be on its own line, above its command"
            self._report("GASL026", message, span.start, span.end, "move it above the command", *edits)
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
            hint = "move it above the command that it explains, or write # for a comment"
            edit = swap(span.start, span.start + 2, "#")
            self._report("GASL026", "no command follows this reason", span.start, span.end, hint, edit)
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
        result: Read | Failure | None = None
        if not chunk.joins:
            # Parsing a very long statement is slow. If parsing the whole text failed in this statement, that failure is used.
            is_long = chunk.end - chunk.start > LONGEST and not self._frames
            is_known = is_long and self._failure is not None and chunk.start <= self._failure.offset <= chunk.end
            result = self._failure if is_known else read(text, chunk.start, chunk.end)
        if isinstance(result, Read):
            items = woven(result.result, result.inner)
            if why and items and isinstance(items[-1], Statement):
                begin = chunk.start if reason is None else reason
                items = (*items[:-1], evolve(items[-1], why=why, span=Span(begin, items[-1].span.end)))
            self._items.extend(items)
            return chunk.end if chunk.end > at else self._behind_blanks(at)
        end, faults = self._explained(chunk, result)
        self.faults += faults
        return max(end, self._behind_blanks(at) if end == at else end)

    def _behind_blanks(self, at: int) -> int:
        """Return the end of the blanks at ``at``, but at least ``at`` + 1. A run of unusual blanks is at most one fault."""
        blank = _ODD_BLANK.match(self._text, at)
        return max(blank.end() if blank else at, at + 1)

    def _explained(self, chunk: Chunk, failure: Failure | None) -> tuple[int, list[Fault]]:
        if len(self.faults) > 200:
            # With so many faults, statements are no longer explained and fixed, which is slow; only their places are reported.
            end = min(chunk.end, end_of_line(self._text, chunk.start))
            return chunk.end, [fault("GASL008", "this is not a valid command either", chunk.start, end)]
        run_on = _over_lines(self._text, chunk)
        return run_on or (chunk.end, explain_statement(self._text, chunk, failure))

    def _block(self, word: str, after: int, at: int) -> int:
        """Process a keyword of a block; return the offset where parsing continues."""
        text = self._text
        if word == "TRY":
            reason = self._reasons[0][1].start if self._reasons else at
            self._frames.append(_Frame(reason, at, self._why()))
            return after
        self._dangling()
        if not self._frames:
            line = end_of_line(text, at)
            alone = not text[after:line].strip() or word == "CATCH"
            # Without CATCH, the commands after it would always run. And TRY may be missing because of a fault above.
            sure = word == "END" and alone and not self.faults
            edits = [swap(at, min(line + 1, len(text)), "")] if sure else []
            hint = "remove it, or write TRY where the block begins"
            self._report("GASL005", f"{word} without TRY", at, after, hint, *edits)
            return line if alone else after
        frame = self._frames[-1]
        if word == "END":
            self._frames.pop()
            self._items.append(frame.statement(after))
            if tail := re.compile(r"[ \t]++(?:TRY|BLOCK)\b|[ \t]*+;", re.IGNORECASE).match(text, after):
                message = f"a block ends with END, not with {word}{tail[0]}"
                self._report("GASL005", message, at, tail.end(), "write END", swap(after, tail.end(), ""))
                return tail.end()
            return after
        if word in frame.parts or (word == "CATCH" and "FINALLY" in frame.parts):
            message = f"second {word} in this block" if word in frame.parts else f"{word} must come before FINALLY"
            self._report("GASL005", message, at, after, "the order is TRY, CATCH ANY, FINALLY, END, each at most once")
        frame.parts.setdefault(word, [])
        if word == "FINALLY":
            return after
        head = _CATCH.match(text, at)
        if head and head["any"]:
            return head.end()
        other = re.compile(r"[ \t]++\w++(?=[ \t\r]*+$)", re.MULTILINE).match(text, after)
        end = other.end() if other else after
        message = "CATCH must be followed by ANY: it catches all errors"
        self._report("GASL006", message, at, after, "write CATCH ANY", swap(after, end, " ANY"))
        return end

    def _report_open_block(self, frame: _Frame, end: int) -> None:
        """Report a block without END, unless the limit is reached, and keep its items; ``end`` is the end of the text."""
        if len(self.faults) < MAX_FAULTS:
            commands = sum(isinstance(item, Statement) for item in frame.items)  # with several, its end is unclear
            edits = [insert(end, "\nEND")] if commands <= 1 else []
            self._report(
                "GASL004", "this block has no END", frame.word, frame.word + 3, "write END where it ends", *edits
            )
        self._items.append(frame.statement(end))


_OPENED = re.compile(r"""(?:[^"'#\n]|"(?:[^"\\\r\n]|\\[^\r\n])*+"|'(?:[^'\\\r\n]|\\[^\r\n])*+')*+(["'])""")


def _over_lines(text: str, chunk: Chunk) -> tuple[int, list[Fault]] | None:
    """Explain a string with line breaks, if the statement is valid after escapes replace the line breaks."""
    opened = _OPENED.match(text, chunk.start, end_of_line(text, chunk.start))
    if not opened:
        return None
    mark, start = opened[1], opened.end() - 1
    limit = min(len(text), start + 20_000)
    closing = re.compile(rf"(?:[^{mark}\\]|\\.)*+{mark}", re.DOTALL).match(text, start + 1, limit)
    if not closing or "\n" not in closing[0] or closing[0].count("\n") > 200:
        return None
    end = end_of_line(text, closing.end())
    found = re.compile(r"[ \t]*+\r?\n").finditer(text, start + 1, closing.end())
    breaks = tuple(swap(*each.span(), "\\n") for each in found)
    mended = apply_edits(text[chunk.start : end], [edit.shift(-chunk.start) for edit in breaks])
    if not isinstance(read(mended), Read):
        return None
    message, hint = "a string must end on the line where it begins", "write \\n for a line break in it"
    return end, [fault("GASL002", message, start, start + 1, hint, edits=breaks)]
