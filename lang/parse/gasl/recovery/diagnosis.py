"""Parses the valid statements of a faulty program, and explains the invalid ones.

An invalid statement does not affect other statements: only that statement is lost, and a block keeps its valid statements.
"""

import re
from collections.abc import Iterable, Sequence

from attrs import define, evolve, field

from ....catalogue.commands import COMMANDS
from ....catalogue.value_functions import VALUE_FUNCTIONS
from ....diagnostic import Edit, apply_edits, nearest
from ....source import Span
from ....trees import walk
from ....trees.conditions import Binary, Call, Comparison, Constant, Field, Items, Value
from ....trees.gasl import Comment, Item, Statement, Try
from ...repairs import Fault, Repaired, back, fault, repair, shortened
from ..engine import Failure, Read, read
from ..lines import BLOCK_WORD, Chunk, chunk_at, end_of_line, explain_outside, woven
from .ambiguous import DOUBTS
from .attempt import VALUES as VALUE_KINDS
from .attempt import Explainer, InvalidStatement, insert, swap
from .clauses import CLAUSES
from .foreign_syntax import COMPARING, FOREIGN, RANGES
from .keywords import FIRST, LEFT_OUT, WORDS, expectation, misspelt
from .literals import VALUES, VARIABLES
from .names import KEYWORDS, NAMES, with_name
from .query_languages import QUERY_LANGUAGES
from .statements import HEADS, MISPLACED, OTHER_WORDS, SHAPE

# Explains all faults inside a statement, and finds edits that fix all of them.
# Each fault is fixed in a copy, and the copy is parsed again, so later faults are found too. Edits are offered only if the
# statement is valid after all of them, and only if the text cannot have another meaning (``Fault.supposed``).

MOST_ROUNDS = 10
"""Maximum number of faults that are fixed in one statement."""

LONGEST = 20_000
"""Maximum length of a statement that is repaired, in characters, because every attempt parses the statement again."""

_EXPLAINERS: tuple[Explainer, ...] = (
    *QUERY_LANGUAGES, *CLAUSES, *DOUBTS, *FIRST, *HEADS, *MISPLACED, *RANGES, *FOREIGN, *KEYWORDS, *LEFT_OUT, *VARIABLES, *NAMES, *VALUES,
    *WORDS, *SHAPE,
)  # fmt: skip
"""All explainers, in the order of their calls. An explainer comes before explainers that would misread its fault."""


def explain_statement(text: str, chunk: Chunk, known: Failure | None = None) -> list[Fault]:
    """Explain why the statement ``chunk`` of ``text`` cannot be read. ``known`` is the failure of an earlier attempt."""
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
            f"a command must be on one line, but {word} begins a new line",
            "move it to the end of the line above",
        )
        faults.append(fault("GASL034", message, first, first + len(word), hint, edits=edits))
    chain: list[Repaired] = []
    for _ in range(MOST_ROUNDS):
        result = read(local)
        if isinstance(result, Read):
            break
        found = _explain(InvalidStatement(local, result), len(local) <= LONGEST)
        edits = found.diagnostic.edits or found.supposed
        faults.append(found.moved(lambda span: back(chain, span)))
        if not edits:
            break
        chain.append(repair(local, edits))
        local = chain[-1].text
    placed = [each.moved(lambda span: span.shift(chunk.start)) for each in faults]
    if not isinstance(result, Read) or (faults and _is_guess(result.result, chunk.text(text))):
        return [each.without_edits for each in placed]
    return _together(text, chunk, placed, local)


_NEVER_FIELDS = frozenset({"AS", "BY", "WHERE", "LIMIT", "ORDER", "AND", "OR", "THAN", "THEN", "FROM", "TO"})


def _is_guess(items: Sequence[Item], given: str) -> bool:
    """Return whether the edits are only a guess: a bare word, probably an unquoted string, becomes a field."""
    for item in items:
        for node in walk(item):
            if isinstance(node, Binary) and any(_word_of(side) in _NEVER_FIELDS for side in (node.left, node.right)):
                return True
            if isinstance(node, Call) and node.function not in VALUE_FUNCTIONS and f"{node.function}(" not in given:
                return True
            if isinstance(node, Comparison) and node.operator == "=" and isinstance(node.right, Constant):
                text = node.right.value
                if isinstance(text, str) and " " in text and not re.search(rf"[^\w\s]\s*{re.escape(text)}", given):
                    return True
            if isinstance(node, Comparison) and (word := _word_of(node.right)):
                sign = r"(?:=|==)" if node.operator == "=" else r"(?:!=|<>)" if node.operator == "!=" else node.operator
                if word in _NEVER_FIELDS or not re.search(rf"{sign}\s*{word}\b", given, re.IGNORECASE):
                    return True
    return False


def _word_of(side: Value | Items) -> str:
    """If ``side`` is a plain field whose name is one word, return the name in capitals; otherwise ""."""
    if not isinstance(side, Field) or len(side.path) != 1 or side.span.end - side.span.start != len(side.path[0]):
        return ""
    return side.path[0].upper()


def _explain(statement: InvalidStatement, mending: bool) -> Fault:
    known = statement.failure.unbuildable
    if mending and (not known or (known.code == "GASL018" and not statement.mended_by(known.edits))):
        whole = _at_word(statement)
        statement, known = (whole, None) if whole else (statement, known)
    if known:
        edits = known.edits if mending and known.edits and statement.furthered_by(known.edits) else ()
        return known.as_fault(edits)
    if not mending:
        return _generic(statement)
    earlier = _first((*QUERY_LANGUAGES, *CLAUSES), statement) or _explained_earlier(statement)
    found = earlier or _first(_EXPLAINERS, statement) or _generic(statement)
    return with_name(statement, found)


_BEFORE_TEST = frozenset({"WHERE", "VIA", "IF", "ASSERT", "AND", "OR", "NOT", "(", "ANY", "ALL", "NONE"})
_LONGEST_TEST = 8
"""Maximum number of pieces of an unfinished test that are examined."""


def _explained_earlier(statement: InvalidStatement) -> Fault | None:
    """Explain a fault that is before the place where parsing stopped.

    The words up to this place are valid, but the author meant something else.

    For example, ``a = Jean Valjean`` is read as a comparison of two fields and a surplus word. ``"Hi" IN club``, ``1 < age < 5`` and
    ``EXISTS(club)`` begin with a value that can't be followed by a test.
    """
    piece, before = statement.piece(), statement.piece(-1)
    operator = statement.piece(-2)
    if before.upper in _NEVER_FIELDS and (operator.upper in COMPARING or operator.text in ("+", "-", "*", "/", "%")):
        end = operator.span.end
        hint = "write a value; put text in quotes"
        return fault("GASL010", f"a value is missing after {operator.upper}", operator.span.start, end, hint)
    goes_on = piece.kind == "word" or statement.text[statement.at : statement.at + 1] in ('"', "'")
    is_bare = operator.upper in COMPARING and before.kind == "word" and goes_on and before.text not in VALUE_FUNCTIONS
    if is_bare and not misspelt(statement):
        moved = _moved(statement, before.span.start)
        if moved and (found := _first(_EXPLAINERS, moved)):
            return found
    if piece.text == "->" and piece.span.start < statement.at:  # read as a minus and a comparison operator
        moved = _moved(statement, piece.span.start)
        return _first(_EXPLAINERS, moved) if moved else None
    if statement.piece(-4).upper == "EXISTS" and statement.piece(-3).text == "(" and before.text == ")":
        moved = _moved(statement, statement.piece(-3).span.start)
    else:
        start = -1
        if before.upper == "IN":
            start = -3 if statement.piece(-2).upper == "NOT" else -2
        while start > -_LONGEST_TEST and statement.piece(start - 1).upper not in _BEFORE_TEST:
            start -= 1
        first = statement.piece(start)
        is_unfinished = "COMPARISON" in statement.expected or piece.text in COMPARING or before.upper == "IN"
        if first.kind not in VALUE_KINDS or not is_unfinished:
            return None
        moved = _moved(statement, first.span.start)
    return _first((*RANGES, *FOREIGN), moved) if moved else None


def _first(explainers: Iterable[Explainer], statement: InvalidStatement) -> Fault | None:
    return next((found for explain in explainers if (found := explain(statement))), None)


def _moved(statement: InvalidStatement, place: int) -> InvalidStatement | None:
    """Return the statement with its failure at an earlier ``place``; None if the text before that place cannot be read."""
    text = statement.text
    before = read(text[:place])
    if isinstance(before, Read) or before.unbuildable or before.offset < len(text[:place].rstrip()):
        return None
    return InvalidStatement(text, evolve(before, offset=place))


_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")


def _at_word(statement: InvalidStatement) -> InvalidStatement | None:
    """If only the first part of a word was read (DESC of DESCENDING), return the failure at the start of the word. Otherwise return None.

    At the first word of a statement, return the failure only if the word resembles a command (COUNTS, but not FINDnodes).
    """
    failure, text = statement.failure, statement.text
    at = failure.behind if failure.unbuildable is None else failure.unbuildable.edits[0].span.start
    head = _WORD.search(text[:at])
    if not head or not re.match(r"\w", text[at : at + 1]) or (failure.unbuildable is None and failure.offset != at):
        return None
    begin = text[: head.start()]
    if not begin.strip():
        word = re.compile(r"\w+").match(text, head.start())
        if word is None or (word[0].upper() not in OTHER_WORDS and nearest(word[0], COMMANDS) is None):
            return None
        begin += "_"  # an empty statement is valid; the failure at any unknown word has the state before the first word
    before = read(begin)
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
    """Return the faults.

    If edits conflict, the only edit is that of the first fault: it produces ``mended``. With ``supposed`` edits, there is none.
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
    """Return the length of the longest common prefix of two strings."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


MAX_FAULTS = 1_000
"""Maximum number of faults. Text with more faults is not a program: a last fault reports that parsing stops."""

_BLANK = re.compile(r"[ \t\r\n]*+")
_ODD_BLANK = re.compile(r"[^\S\n]*+")
_CATCH = re.compile(r"CATCH(?P<any>[ \t]++ANY\b)?", re.IGNORECASE)


@define
class _Frame:
    """An open TRY block: the offsets where its statement and its TRY begin, the reason above it, and the parts read so far."""

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
    """Parse every valid statement, and explain all other text. ``failure`` is the result of parsing the complete text."""
    return Recovery(text, failure).run()


def explain_condition(text: str) -> list[Fault]:
    """Explain why ``text`` is not a valid condition. To find the reason, the text is parsed as the condition of ASSERT."""
    head = "ASSERT "
    faults = explain_statement(head + re.sub(r"[\r\n]", " ", text), Chunk(0, len(head) + len(text.rstrip())))
    return [_of_condition(found, -len(head)) for found in faults]


def _of_condition(found: Fault, by: int) -> Fault:
    """Return the fault with its spans moved by ``by``. The word ASSERT is removed from the message and the hints."""
    diagnostic = found.diagnostic
    span = diagnostic.span or Span(0, 0)
    edits = tuple(edit.shift(by) for edit in diagnostic.edits)
    edits = edits if all(edit.span.start >= 0 for edit in edits) else ()
    message = diagnostic.message.replace("ASSERT", "the condition")
    hints = tuple(hint for hint in diagnostic.hints if "ASSERT" not in hint)
    span = Span(max(0, span.start + by), max(1, span.end + by))
    return evolve(found, diagnostic=evolve(diagnostic, message=message, span=span, hints=hints, edits=edits))


class Recovery:
    """One pass over faulty text. ``failure`` is the result of parsing the complete text."""

    def __init__(self, text: str, failure: Failure) -> None:
        self._text, self._failure = text, failure
        self.faults: list[Fault] = []
        self._reasons: list[tuple[str, Span]] = []
        known, self._start = failure.complete_items()
        self.root = [*woven(known.result, known.inner)]
        self._frames: list[_Frame] = []

    def run(self) -> tuple[tuple[Item, ...], list[Fault]]:
        """Process the text from the last statement before the failure on."""
        at = self._start
        while (at := self.next_place(at)) < len(self._text):
            at = self.advance(at)
        return self.finish()

    def next_place(self, at: int) -> int:
        """Return the first offset at or after ``at`` that is not white space. If there is none, return the end of the text."""
        blank = _BLANK.match(self._text, at)
        return blank.end() if blank else at

    def advance(self, at: int) -> int:
        """Process the comment, block keyword or statement at ``at``. Return the offset where parsing continues."""
        text = self._text
        if len(self.faults) >= MAX_FAULTS:
            message = f"more than {MAX_FAULTS:,} faults; the text after this point is not checked"
            self._report("GASL023", message, at, end_of_line(text, at))
            self._frames.clear()
            return len(text)
        return self._remark(at) if text[at] == "#" else self._statement(at)

    def _report(self, code: str, message: str, start: int, end: int, hint: str = "", *edits: Edit) -> None:
        self.faults.append(fault(code, message, start, end, hint, edits=edits))

    def finish(self) -> tuple[tuple[Item, ...], list[Fault]]:
        """Close the blocks that are open at the end of the text. Return the items and the faults."""
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
            # Parsing a very long statement is slow, so a failure of the complete text in this statement is reused.
            is_here = chunk.start <= self._failure.offset <= chunk.end and not self._frames
            is_known = is_here and chunk.end - chunk.start > LONGEST
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
        """Return the end of the spaces at ``at``, but at least ``at`` + 1. Therefore a run of unusual spaces is at most one fault."""
        blank = _ODD_BLANK.match(self._text, at)
        return max(blank.end() if blank else at, at + 1)

    def _explained(self, chunk: Chunk, failure: Failure | None) -> tuple[int, list[Fault]]:
        if len(self.faults) > 200:
            # With so many faults, only the places of invalid statements are reported, because explaining and fixing them is slow.
            end = min(chunk.end, end_of_line(self._text, chunk.start))
            return chunk.end, [fault("GASL008", "this is not a valid command", chunk.start, end)]
        run_on = _over_lines(self._text, chunk)
        return run_on or (chunk.end, explain_statement(self._text, chunk, failure))

    def _block(self, word: str, after: int, at: int) -> int:
        """Process a keyword of a block. Return the offset where parsing continues."""
        text = self._text
        if word == "TRY":
            reason = self._reasons[0][1].start if self._reasons else at
            self._frames.append(_Frame(reason, at, self._why()))
            return after
        self._dangling()
        if not self._frames:
            line = end_of_line(text, at)
            alone = not text[after:line].strip() or word == "CATCH"
            # No edit removes CATCH, because the commands after it would then always run. TRY may be missing because of an earlier fault.
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
            message = f"duplicate {word} in this block" if word in frame.parts else f"{word} must come before FINALLY"
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
        """Report a block without END, and keep its items.

        It is not reported if the limit of faults is reached. ``end`` is the end of the text.
        """
        if len(self.faults) < MAX_FAULTS:
            commands = sum(isinstance(item, Statement) for item in frame.items)  # if several, its end is unclear
            edits = [insert(end, "\nEND")] if commands <= 1 else []
            self._report(
                "GASL004",
                "this block has no END",
                frame.word,
                frame.word + 3,
                "write END at the end of the block",
                *edits,
            )
        self._items.append(frame.statement(end))


_OPENED = re.compile(r"""(?:[^"'#\n]|"(?:[^"\\\r\n]|\\[^\r\n])*+"|'(?:[^'\\\r\n]|\\[^\r\n])*+')*+(["'])""")


def _over_lines(text: str, chunk: Chunk) -> tuple[int, list[Fault]] | None:
    """Explain a string with line breaks. The fault is reported only if the statement is valid after escapes replace the line breaks."""
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
