"""What people and models read when a program is wrong: every faulty program beside its messages, and what edits promise.

Messages are meant to be read: after a change, run with ``--update-golden`` and look at the difference.
"""

from pathlib import Path
from random import Random

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from knotwork import grammar
from knotwork.lang.catalogue.rules import RULES
from knotwork.lang.diagnostic import Diagnostic, apply_edits, picture
from knotwork.lang.parse.gasl import parse_command, parse_condition, parse_gasl
from knotwork.lang.parse.gasl.engine import Failure, Read, read
from knotwork.lang.parse.gasl.recovery.diagnosis import recover
from knotwork.lang.source import Source
from support.examples import many
from support.folders import GOLDEN

FOLDER = GOLDEN / "gasl/invalid"
PROGRAMS = sorted(FOLDER.glob("*.gasl"))


def faults(text: str) -> list[str]:
    """Return "CODE text under the span: message" for each fault."""
    program = parse_gasl(text)
    return [f"{d.code} {program.source.slice(d.span)}: {d.message}" for d in program.diagnostics if d.span]


def alike(one: Diagnostic, many: tuple[Diagnostic, ...]) -> int:
    """Count the diagnostics that say what ``one`` says."""
    return sum((one.code, one.message) == (other.code, other.message) for other in many)


def test_there_are_enough_programs() -> None:
    assert len(PROGRAMS) >= 80


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_messages(path: Path, golden) -> None:
    source = Source(path.read_bytes().decode("utf-8"), path.name)
    program = parse_gasl(source)
    assert program.diagnostics
    shown = "\n\n".join(picture(d, source) for d in program.diagnostics)
    mended = apply_edits(source.text, [edit for d in program.diagnostics for edit in d.edits])
    read = f"{len(program.statements)} statement{'s' * (len(program.statements) != 1)} read"
    golden.check(path.with_suffix(".txt"), f"-- {read}\n\n{shown}\n\n-- with the edits\n\n{mended}")


@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_an_edit_that_is_made_takes_its_fault_away(path: Path) -> None:
    text = path.read_bytes().decode("utf-8")
    before = parse_gasl(text).diagnostics
    for diagnostic in before:
        if diagnostic.edits:
            after = parse_gasl(apply_edits(text, diagnostic.edits)).diagnostics
            assert alike(diagnostic, after) < alike(diagnostic, before), diagnostic.message


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_all_edits_together_leave_only_faults_that_have_none(path: Path) -> None:
    text = path.read_bytes().decode("utf-8")
    before = parse_gasl(text).diagnostics
    mended = apply_edits(text, [edit for d in before for edit in d.edits])
    after = parse_gasl(mended).diagnostics
    assert len(after) <= sum(not d.edits for d in before)
    assert all(not d.edits for d in after)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_every_fault_is_in_the_catalogue_and_has_a_place(path: Path) -> None:
    program = parse_gasl(path.read_bytes().decode("utf-8"))
    for diagnostic in program.diagnostics:
        rule = RULES[diagnostic.code]
        assert (rule.language, rule.severity) == ("gasl", diagnostic.severity)
        assert diagnostic.span is not None
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(program.source.text)
        for edit in diagnostic.edits:
            assert 0 <= edit.span.start <= edit.span.end <= len(program.source.text)


LINES = [
    line
    for line in (FOLDER.parent / "identity.gasl").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
]
STRAY = [
    "the",
    "&&",
    "AS",
    "x",
    "(",
    ")",
    "=",
    ";",
    '"',
    "LIMIT",
    "NOT",
    "FIND",
    "3",
    "${x}",
    "$x",
    "{",
    "IN",
    ",",
    "#:",
    "\u201c",
    "\u200b",
]


@st.composite
def corrupted(draw: st.DrawFn) -> str:
    """Draw a command with a word left out, misspelt, moved, or put in."""
    words = draw(st.sampled_from(LINES)).split(" ")
    at = draw(st.integers(0, len(words) - 1))
    match draw(st.integers(0, 4)):
        case 0:
            del words[at]
        case 1:
            words.insert(at, draw(st.sampled_from(STRAY)))
        case 2:
            words[at] = words[at][:-1] or "x"
        case 3:
            words.append(words.pop(at))
        case _:
            words[at] = words[at].replace('"', "").lower()
    return " ".join(words)


@pytest.mark.slow
@given(st.lists(corrupted(), min_size=1, max_size=3).map("\n".join))
def test_edits_keep_their_promise_on_any_text(text: str) -> None:
    before = parse_gasl(text).diagnostics
    for diagnostic in before:
        if diagnostic.edits:
            after = parse_gasl(apply_edits(text, diagnostic.edits)).diagnostics
            assert alike(diagnostic, after) < alike(diagnostic, before), diagnostic.message
    mended = apply_edits(text, [edit for d in before for edit in d.edits])
    assert len(parse_gasl(mended).diagnostics) <= sum(not d.edits for d in before)


def test_no_message_names_a_terminal_of_the_grammar() -> None:
    names = {
        line.split(":")[0].split(".")[0]
        for line in grammar.inlined("gasl").splitlines()
        if line[:1].isupper() or line[:1] == "_"
    }
    hidden = {name for name in names if name.startswith("_") or name in ("LPAR", "RPAR", "LSQB", "RSQB", "IDENTIFIER")}
    for path in FOLDER.glob("*.txt"):
        assert hidden.isdisjoint(path.read_text(encoding="utf-8").replace("`", " ").split()), path.name


def test_one_fault_hides_no_other() -> None:
    text = "FIDN nodes AS a\nFIND nodes AS b\nFIND nodes AS\nFIND edges AS c\nCOUNT c n\n"
    assert [line.split()[0] for line in faults(text)] == ["GASL001", "GASL010", "GASL006"]
    assert len(parse_gasl(text).statements) == 2
    assert [line.split()[0] for line in faults("( FIND nodes AS a\n( FIND nodes AS b\n")] == ["GASL001", "GASL001"]


def test_a_fault_in_a_block_leaves_the_block() -> None:
    program = parse_gasl("TRY\nFIND nodes AS\nFIND nodes AS a\nCATCH ANY\nRESET k\nEND\nFIND edges AS b\n")
    assert len(program.diagnostics) == 1
    block, after = program.statements
    assert (len(block.command.body), len(block.command.caught), after.command.kind) == (1, 1, "edges")


def test_several_faults_of_one_command_are_all_found() -> None:
    text = "FIND node WHRE entity_type = Jean Valjean INTO x"
    assert [line.split()[0] for line in faults(text)] == ["GASL011", "GASL009", "GASL007", "GASL009"]
    edits = [edit for d in parse_gasl(text).diagnostics for edit in d.edits]
    assert apply_edits(text, edits) == 'FIND nodes WHERE entity_type = "Jean Valjean" AS x'


def test_a_command_that_cannot_be_put_right_has_no_edits() -> None:
    found = parse_gasl("FIND node WHRE a = 1").diagnostics
    assert len(found) == 3
    assert not any(d.edits for d in found)


@pytest.mark.parametrize(
    ("text", "code"), [("", "GASL032"), ("# only this", "GASL032"), ("RESET a\nRESET b", "GASL032")]
)
def test_one_command_is_asked_for(text: str, code: str) -> None:
    assert [d.code for d in parse_command(text).diagnostics] == [code]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name = Jean Valjean", "a string needs quotes: Jean Valjean"),
        ("", "the condition must end with a key or field"),
        ("a = 1 &&", "GASL uses AND instead of &&"),
        ("a = NULL", "a comparison with NULL is never true"),
        ("NULL = a", "a comparison with NULL is never true"),
        ("a STARTS_WITH NULL", "STARTS_WITH needs a string, not NULL: the comparison is never true"),
        ("a ENDS_WITH null", "ENDS_WITH needs a string, not null: the comparison is never true"),
        ("a CONTAINS None", "CONTAINS needs a value, not None: the comparison is never true"),
        ("a MATCHES nil", "MATCHES needs a pattern, not nil: the comparison is never true"),
        ("a >= NULL", ">= needs a number or a string, not NULL: the comparison is never true"),
        ("a IN NULL", "IN needs a list, not NULL: the comparison is never true"),
    ],
)
def test_faults_of_a_condition(text: str, message: str) -> None:
    condition, found = parse_condition(text)
    assert condition is None
    assert found[0].message == message
    assert found[0].span is not None
    assert found[0].span.end <= max(1, len(text))


JUNK = (
    '"', "(", ")", "[", "#", "#: why\n", "\n", "TRY\n", "END\n", "CATCH ANY\n", " AS ", " WHERE ", "`", "BRANCH ", " THEN ",
    "\n  WHERE x = 1", "\n AS y", "${x}", ";", "FIND ", "\r\n",
)  # fmt: skip


@pytest.mark.slow
def test_items_before_the_fault_are_read_once_and_are_the_same() -> None:
    chance, kept = Random(1), 0
    programs = [text for path in PROGRAMS if isinstance(read(text := path.read_text(encoding="utf-8")), Read)]
    programs += [path.read_text(encoding="utf-8") for path in sorted((GOLDEN / "gasl/questions").glob("*.gasl"))]
    for _ in range(many(3_000)):
        text = "\n".join(chance.choices(programs, k=chance.randint(1, 3)))
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(text) + 1)
            text = text[:at] + chance.choice(JUNK) + text[at + chance.choice((0, 0, 3, 12)) :]
        failure = read(text)
        if isinstance(failure, Failure):
            kept += failure.complete_items()[1] > 0
            once, again = recover(text, failure), recover(text, evolve(failure, parser=None))
            assert once == again, text
            assert [item.span for item in once[0]] == [item.span for item in again[0]], text
    assert kept > many(1_000)
