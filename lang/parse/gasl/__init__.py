"""Parses GASL. ``parse_gasl`` reads a program, ``parse_command`` reads one statement, and ``parse_condition`` reads a condition.

Modules: ``engine`` (Lark, the grammar and its cache), ``builder`` and ``nodes`` (nodes from tokens), ``lines`` (boundaries of
statements, comments inside commands, text outside commands). ``recovery`` explains faulty text: ``diagnosis`` (statement by
statement), ``attempt`` (an invalid statement, tests of candidate fixes, and ``Correction``, a table entry for one kind of
fault), ``statements`` (first words, brackets, misplaced text), ``query_languages`` (commands of Cypher and SQL), ``clauses`` (the order of
clauses, arithmetic, elements of patterns), ``foreign_syntax`` (conditions in the syntax of other languages), ``literals`` (values),
``names``, ``keywords``, ``ambiguous`` (faults that often have no safe fix).
"""

from collections.abc import Iterable, Sequence

from attrs import evolve

from ...diagnostic import Diagnostic
from ...source import Source, Span
from ...trees.conditions import Condition
from ...trees.gasl import Item, Program
from ..repairs import Fault, in_order, without_mark
from .engine import Failure, keywords, read
from .lines import woven

__all__ = ["keywords", "parse_command", "parse_condition", "parse_gasl", "read_faulty"]


# The parse functions of GASL: for a program, one command and a condition. They never raise an error for faulty text.

MAX_LENGTH = 2 * 1024 * 1024
"""Maximum length of a program in code points."""


def parse_gasl(source: Source | str) -> Program:
    """Parse a program. The result's ``diagnostics`` are the faults; its ``items`` are the parts that could be parsed."""
    source = Source(source) if isinstance(source, str) else source
    if large := _too_large(source.text):
        return Program((), source, (large,))
    text = without_mark(source.text)
    found = read(text)
    if isinstance(found, Failure):
        from .recovery.diagnosis import recover  # most programs have no faults

        return read_faulty(source, *recover(text, found))
    return Program(woven(found.result, found.inner), source)


def read_faulty(source: Source, items: Sequence[Item], faults: Iterable[Fault]) -> Program:
    """Return the program in a faulty text. The program has the valid items of the text, and the faults as diagnostics in source order."""
    return Program(tuple(items), source, in_order((each.diagnostic for each in faults), len(source.text)))


def parse_command(text: str) -> Program:
    """Parse text that must contain exactly one statement. The executor requires this, so any other number is a fault."""
    program = parse_gasl(text)
    count = len(program.statements)
    if program.diagnostics or count == 1:
        return program
    if count:
        second = program.statements[1].span
        message = f"found {count} commands, but only one is allowed here"
        hint = "run them one by one, or as a plan"
    else:
        second, message = Span(0, min(1, len(text))), "no command"
        hint = "write one command, for example COUNT authors AS n"
    return evolve(program, diagnostics=(Diagnostic("GASL032", "error", message, second, (hint,)),))


def parse_condition(source: Source | str) -> tuple[Condition | None, tuple[Diagnostic, ...]]:
    """Parse text that is one condition; line breaks are treated as spaces. Return None and the faults if the text is invalid."""
    source = Source(source) if isinstance(source, str) else source
    if large := _too_large(source.text):
        return None, (large,)
    text = without_mark(source.text)
    found = read(text, what="condition_only")
    if isinstance(found, Failure):
        from .recovery.diagnosis import explain_condition

        faults = explain_condition(text)
        return None, in_order((fault.diagnostic for fault in faults), len(text))
    return found.result, ()


def _too_large(text: str) -> Diagnostic | None:
    if len(text) <= MAX_LENGTH:
        return None
    message = f"the text has {len(text):,} characters, more than the maximum of {MAX_LENGTH:,}"
    return Diagnostic("GASL023", "error", message, Span(0, 1))
