"""Explains all faults of a text that is not a valid expression, and finds edits that fix all of them.

The tolerant parser returns a tree and faults. The edits of a fault change single words, or replace part of the text with the text of its
tree. If the tree is complete, the text after all edits must parse to that tree. The edits are tried before they are returned. If the
result is another tree, a single edit rewrites the complete text instead.
"""

import re
from collections import Counter

from attrs import evolve

from ....diagnostic import Diagnostic, Edit, apply_edits, sort_key
from ....printer.expr_printer import VALUE, format_expr, rank
from ....source import Span
from ....trees.expr import Expr
from ...repairs import fault, shortened
from ..engine import MAX_DEPTH, MAX_LENGTH, MOST_LEVELS, Failure, depth, levels, read
from .cursor import FoundFault, TooDeep, bounds, complete
from .pieces import CLOSING, OPENING, cut
from .reader import Reader

MOST_FAULTS = 50
"""Maximum number of faults that are reported for one text."""


_DOT_FIRST = re.compile(r"\s*\.(?!\s*\d)")


def explain(text: str, failure: Failure) -> tuple[Diagnostic, ...]:
    """Return the faults of the invalid ``text``; the result is never empty."""
    if dot := _DOT_FIRST.match(text):
        # Only this fault is reported: the others are consequences of the missing value.
        return (fault("EXPR002", "a value is missing before .", dot.end() - 1, dot.end()).diagnostic,)
    found, tree = _read(text)
    if tree is None:
        found = _certain(text, found)
    # Sort them in their final order, because the first of two edits at the same place is applied first.
    diagnostics = sorted(_with_edits(text, found), key=sort_key)
    if not diagnostics:
        diagnostics = [_generic(text, failure)]
        tree = None
    if tree is not None and not _edits_give(text, diagnostics, tree):
        whole = format_expr(tree)
        diagnostics = [evolve(diagnostic, edits=()) for diagnostic in diagnostics]
        if len(whole) <= MAX_LENGTH and read(whole) == tree:
            diagnostics[0] = evolve(diagnostics[0], edits=(Edit(Span(0, len(text)), whole),))
    elif tree is None:
        diagnostics = _with_tried_edits(text, diagnostics)
    return tuple(sorted(map(_with_rewritten_text, _unique(_uncovered(diagnostics))[:MOST_FAULTS]), key=sort_key))


def _uncovered(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Omit a diagnostic without edits if the edit of an EXPR007 rewrites the place of the diagnostic.

    Only an EXPR012, or a diagnostic with the same message as the EXPR007, is omitted.
    """
    written = [(edit.span, each.code, each.message) for each in diagnostics for edit in each.edits if edit.text]

    def is_covered(one: Diagnostic, span: Span) -> bool:
        return any(
            whole.start <= span.start and span.end <= whole.end and (message == one.message or one.code == "EXPR012")
            for whole, code, message in written
            if code == "EXPR007"
        )

    return [one for one in diagnostics if one.edits or one.span is None or not is_covered(one, one.span)]


_LONGEST_SHOWN = 160
"""Maximum number of characters of a rewritten expression that a hint shows; a longer expression is shown only in the edit."""


def _with_rewritten_text(diagnostic: Diagnostic) -> Diagnostic:
    """Return the diagnostic with an additional hint. The hint shows the expression in the edit, for readers who see only hints."""
    if len(diagnostic.edits) != 1 or not 0 < len(diagnostic.edits[0].text) <= _LONGEST_SHOWN:
        return diagnostic
    written = diagnostic.edits[0].text
    if " " not in written.strip() or any(written in hint for hint in diagnostic.hints):
        return diagnostic
    return evolve(diagnostic, hints=(*diagnostic.hints, f"write `{written}`"))


def _read(text: str) -> tuple[list[FoundFault], Expr | None]:
    """Return the faults of ``text``, and its tree if it is known."""
    within = bounds(text)
    if not text[within.start : within.end].strip():
        return [FoundFault(fault("EXPR006", "the expression is empty", 0, min(1, len(text))).diagnostic)], None
    blanked = " " * within.start + text[within.start : within.end]
    reader = Reader(blanked)
    if within != Span(0, len(text)):
        edits = (Edit(Span(0, within.start), ""), Edit(Span(within.end, len(text)), ""))
        known = fault("EXPR025", "unexpected markup around the expression", 0, within.start, "remove them", edits=edits)
        reader.add(known)
    deep = next((piece for piece in reader.pieces if piece.level >= MAX_DEPTH and piece.text in OPENING), None)
    if deep:
        return [_too_deep(deep.span)], None
    try:
        tree = reader.read_expression()
    except TooDeep as found:
        return [_too_deep(found.args[0])], None
    sure = complete(tree) and all(one.diagnostic.edits or one.rewritten is not None for one in reader.faults)
    if reader.unclosed:
        reader.faults.append(_unclosed_brackets(reader))
    if not sure:
        return reader.faults, None
    if depth(tree) > MAX_DEPTH:
        return [*reader.faults, _too_deep(tree.span)], None
    if levels(tree) > MOST_LEVELS:
        message = f"comprehensions are nested more than {MOST_LEVELS} levels deep"
        return [*reader.faults, FoundFault(fault("EXPR030", message, tree.span.start, tree.span.end).diagnostic)], None
    return reader.faults, tree


def _unclosed_brackets(reader: Reader) -> FoundFault:
    """Report all brackets that are not closed as one fault, placed at the outermost bracket."""
    opened = sorted(reader.unclosed, key=lambda piece: piece.start)
    closers = "".join(OPENING[piece.text] for piece in reversed(opened))
    end = reader.last.end
    while end and reader.peek().kind == "end" and reader.text[end - 1 : end].isspace():
        end -= 1
    hint = f"write {shortened(closers)} to close it"
    strings = list(reader.faults)
    for at, one in enumerate(reader.faults):  # an unclosed string that ends there must be closed first
        if one.diagnostic.edits and one.diagnostic.edits[-1].span == Span(end, end):
            closers = one.diagnostic.edits[-1].text + closers
            reader.faults[at] = FoundFault(evolve(one.diagnostic, edits=()))
    message = f"{opened[0].text} is not closed"
    # Brackets after an unclosed string could be part of that string.
    is_open = any(each.diagnostic.code == "EXPR004" and not each.diagnostic.edits for each in strings)
    edits = () if is_open else (Edit(Span(end, end), closers),)
    return FoundFault(fault("EXPR005", message, opened[0].start, opened[0].end, hint, edits=edits).diagnostic)


def _too_deep(span: Span) -> FoundFault:
    message = f"the expression is nested more than {MAX_DEPTH} levels deep"
    return FoundFault(
        fault(
            "EXPR030", message, span.start, max(span.end, span.start + 1), "compute part of it in another step"
        ).diagnostic
    )


def _unique(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Merge diagnostics that have the same code, message and span. The merged diagnostic has edits if one of them has edits."""
    told: dict[tuple[str, str, Span | None], Diagnostic] = {}
    for diagnostic in diagnostics:
        key = (diagnostic.code, diagnostic.message, diagnostic.span)
        if key not in told or not told[key].edits:
            told[key] = diagnostic
    return list(told.values())


def _generic(text: str, failure: Failure) -> Diagnostic:
    at = failure.offset if failure.offset is not None and failure.offset >= 0 else len(text)
    at = min(at, max(0, len(text) - 1))
    words = text[at:].split(None, 1) or [text]
    return fault("EXPR001", f"unexpected {shortened(words[0])}", at, at + 1).diagnostic


def _with_edits(text: str, found: list[FoundFault]) -> list[Diagnostic]:
    """Return the diagnostics of ``found``.

    A fault that rewrites a part of the text gets an edit that replaces this part. Faults inside the part lose their edits.
    """
    rewriting = [one for one in found if one.rewritten is not None and complete(one.rewritten)]
    outer: list[FoundFault] = []
    for one in sorted(rewriting, key=lambda one: (one.part.start, -one.part.end)):
        if not outer or one.part.start >= outer[-1].part.end:
            outer.append(one)
    parts = [one.part for one in outer]
    given: list[Diagnostic] = []
    for one in found:
        diagnostic = one.diagnostic
        if any(one is written for written in outer) and one.rewritten is not None:
            diagnostic = evolve(diagnostic, edits=(Edit(one.part, _text_of(text, one.part, one.rewritten)),))
        elif any(
            part.start < edit.span.end and edit.span.start < part.end for edit in diagnostic.edits for part in parts
        ):
            diagnostic = evolve(diagnostic, edits=())
        given.append(diagnostic)
    return given


def _text_of(text: str, part: Span, node: Expr) -> str:
    """Return the text of ``node`` that replaces ``part``. The text is in parentheses if an adjacent operator could bind only part of it."""
    before, behind = text[: part.start].rstrip()[-1:], text[part.end :].lstrip()[:1]
    alone = before in ("", "(", "[", "{", ",") and behind in ("", ")", "]", "}", ",")
    return format_expr(node) if alone or rank(node) == VALUE else f"({format_expr(node)})"


def _edits_give(text: str, diagnostics: list[Diagnostic], tree: Expr) -> bool:
    """Return whether all edits together give a text with the tree ``tree``, and the edits of each fault alone remove that fault."""
    mended = apply_edits(text, [edit for diagnostic in diagnostics for edit in diagnostic.edits])
    if len(diagnostics) > MOST_FAULTS or len(mended) > MAX_LENGTH:
        return False
    return read(mended) == tree and _each_mends(text, diagnostics)


def _with_tried_edits(text: str, diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Return the diagnostics of a text whose tree is unknown, with edits only if all of them together make the text valid.

    A partial fix may do harm, because the text after a fault is interpreted by guessing. If the edits make the text valid, the
    faults about misplaced pieces are omitted, because they were only consequences of other faults.
    """
    mended = apply_edits(text, [edit for diagnostic in diagnostics for edit in diagnostic.edits])
    sure = [diagnostic for diagnostic in diagnostics if diagnostic.edits or diagnostic.code not in _CONSEQUENCES]
    if (
        all(diagnostic.edits for diagnostic in sure)
        and len(mended) <= MAX_LENGTH
        and not isinstance(read(mended), Failure)
        and _each_mends(text, sure)
    ):
        return sure
    return [evolve(diagnostic, edits=()) for diagnostic in diagnostics]


_CONSEQUENCES = frozenset({"EXPR001", "EXPR002", "EXPR003"})
"""Codes of faults about a misplaced piece. Another fault may have caused such a fault."""


def _certain(text: str, found: list[FoundFault], times: int = 4) -> list[FoundFault]:
    """Return the first fault without a fix, and the other faults that are certainly not its consequences.

    The first fault affects at most the text after the fault in the same brackets, up to a comma. To find the other faults, the affected
    text is replaced by a name, and the complete text is read again.
    """
    unsure = [
        one
        for one in found
        if not one.diagnostic.edits and one.rewritten is None and one.diagnostic.code not in _IN_PLACE
    ]
    if len(found) < 2 or not unsure:
        return found
    first = min(unsure, key=lambda one: (one.diagnostic.code == "EXPR005", _start(one)))
    spoilt = _affected_span(text, _start(first))
    before = [one for one in found if one is not first and _start(one) < spoilt.start]
    if not times or len(found) > MOST_FAULTS or len(text) > _MOST_READ_AGAIN:
        return [*before, first]
    outside = {id(one) for one in (*before, *(one for one in found if _start(one) >= spoilt.end)) if one is not first}
    again = f"{text[: spoilt.start]} x {text[spoilt.end :]}"
    left = {(one.diagnostic.code, one.diagnostic.message) for one in _certain(again, _read(again)[0], times - 1)}
    return [
        one
        for one in found
        if one is first or (id(one) in outside and (one.diagnostic.code, one.diagnostic.message) in left)
    ]


_IN_PLACE = frozenset({"EXPR018", "EXPR021", "EXPR027"})
"""Codes of faults inside a name or a number. Such a fault does not change how the text around it is read."""


def _start(one: FoundFault) -> int:
    return one.diagnostic.span.start if one.diagnostic.span is not None else 0


def _affected_span(text: str, start: int) -> Span:
    """Return the span from ``start`` to the next comma or closing bracket outside inner brackets, or to the end of the text."""
    pieces = cut(text, lambda fault: None)
    level = next((piece.level for piece in pieces if piece.end > start), 0)
    for piece in pieces:
        ends = piece.text in CLOSING or piece.text == ","
        if piece.start >= start and piece.kind == "sign" and ends and 0 < piece.level <= level:
            return Span(start, piece.start)
    return Span(start, len(text))


def _each_mends(text: str, diagnostics: list[Diagnostic]) -> bool:
    """Return whether the edits of each fault, applied alone, remove that fault. In a long text this is not checked."""
    if len(text) * len(diagnostics) > _MOST_READ_AGAIN:
        return True
    said = Counter((diagnostic.code, diagnostic.message) for diagnostic in _unique(diagnostics))
    for diagnostic in diagnostics:
        if diagnostic.edits:
            found, _ = _read(apply_edits(text, diagnostic.edits))
            key = (diagnostic.code, diagnostic.message)
            left = _unique([one.diagnostic for one in found])
            if sum((one.code, one.message) == key for one in left) >= said[key]:
                return False
    return True


_MOST_READ_AGAIN = 20_000
"""Maximum number of characters that are read again to check faults and edits."""
