"""What is wrong inside a statement, all of it, and the edits that put it right together.

A fault found is mended in a copy and the copy is read again, so that what stands behind it is found too. Edits are
offered only if the statement reads once all of them are made, and only where the text has no second reading (``Fault.supposed``).
"""

import re
from collections.abc import Callable

from attrs import evolve

from ...diagnostic import Edit, apply_edits
from ...source import Span
from ..fault import Fault, fault, shown
from ..repairs import Repaired, repair
from .broken import Broken
from .doubts import DOUBTS
from .engine import Failure, Read, read
from .foreign import FOREIGN
from .heads import HEADS
from .lines import Chunk
from .names import NAMES
from .ranges import RANGES
from .shape import MISPLACED, SHAPE
from .values import VALUES
from .words import FIRST, LEFT_OUT, WORDS, expectation

__all__ = ["LONGEST", "explain_statement"]

MOST_ROUNDS = 10
"""The most faults that one statement is mended of."""

LONGEST = 20_000
"""A statement with more characters is not mended: every try reads it anew."""

_EXPLAINERS: tuple[Callable[[Broken], Fault | None], ...] = (
    *DOUBTS, *FIRST, *HEADS, *MISPLACED, *RANGES, *FOREIGN, *LEFT_OUT, *NAMES, *VALUES, *WORDS, *SHAPE,
)  # fmt: skip
"""In the order in which they are asked: each before what would misread it."""


def explain_statement(text: str, chunk: Chunk, known: Failure | None = None) -> list[Fault]:
    """Explain why the statement ``chunk`` of ``text`` can't be read; ``known`` says where, if it was tried."""
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
    """Return the statement with blanks for the line breaks in it, so that every offset stays."""
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
    """Return the failure at the beginning of a word of which only the head was read, as DESC of DESCENDING."""
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
    """Return the fault with its spans in the statement as it was given."""
    diagnostic = found.diagnostic
    edits, span, supposed = diagnostic.edits, diagnostic.span, found.supposed
    for repaired in reversed(chain):
        span = repaired.back_span(span) if span else None
        edits = tuple(Edit(repaired.back_span(edit.span), edit.text) for edit in edits)
        supposed = tuple(Edit(repaired.back_span(edit.span), edit.text) for edit in supposed)
    return evolve(found, diagnostic=evolve(diagnostic, span=span, edits=edits), supposed=supposed)


def _together(text: str, chunk: Chunk, faults: list[Fault], mended: str) -> list[Fault]:
    """Return the faults, with one edit for all where their own get into each other's way: ``mended`` for what is there."""
    edits = [edit for found in faults for edit in (*found.diagnostic.edits, *found.supposed)]
    idle = any(edit.text == text[edit.span.start : edit.span.end] for edit in edits)
    given = text[chunk.start : chunk.end]
    made = apply_edits(given, [Edit(edit.span.shift(-chunk.start), edit.text) for edit in edits])
    if len(faults) < 2 or (not idle and isinstance(read(made), Read)):
        return faults
    if any(found.supposed for found in faults):  # one edit for all would make what is not offered, too
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
