"""A plan is mended only where every command stays; what was mended is shown, and faults are about the plan as it was written."""

import json
import re

import networkx as nx
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork import gasl
from knotwork.lang.diagnostic import apply_edits, has_errors
from knotwork.lang.parse.gasl import parse_gasl
from knotwork.lang.printer.gasl_printer import format_condition
from knotwork.lang.trees.conditions import And, Comparison, Condition, Constant, Field, Items, Not, Or, Variable
from knotwork.runtime.gasl.records import ContextStore
from knotwork.runtime.loops.traversal.plan_answer import Draft
from knotwork.runtime.loops.traversal.plan_run import Action, Refusal, certain_fixes, check_draft, renamed
from support.executing import library
from support.traversing import Planning, asked, plan


def checked(*commands: str) -> Action | Refusal:
    with gasl.open(library()) as executor:
        return check_draft(Draft({"commands": list(commands)}), "why", executor.session, ContextStore(), "p")


@pytest.mark.parametrize(
    "commands",
    [
        ["BLA BLA"],
        ["FIND nodes AS x", "KEEP x IN f"],
        ["(FIND nodes AS x)"],
        ["Top is Ada"],
        ["FIND nodes AS x // COUNT x AS c"],
        ["FIND nodes WHERE AS x"],
        ['FIND nodes WHERE age = 36 AND AS x'],
        ["FIND nodes DISTINCT AS x"],
        ["found = FIND nodes AS x"],
        ["IF EXISTS x", "FIND nodes AS x", "END"],
        ["CATCH", "FIND nodes AS x"],
    ],
)  # fmt: skip
def test_no_command_and_no_word_with_a_meaning_is_left_out(commands: list[str]) -> None:
    found = checked(*commands)
    assert isinstance(found, Refusal), found
    assert json.loads(found.written)["commands"] == commands
    assert "commands[" in found.told


@pytest.mark.parametrize(
    ("commands", "made"),
    [
        (["1. FIND nodes AS x", "2. COUNT x AS c"], ["FIND nodes AS x", "COUNT x AS c"]),
        (["FIND all the nodes AS x"], ["FIND nodes AS x"]),
        (["FIND nodes AS x -- all of them"], ["FIND nodes AS x # all of them"]),
        (["FIND nodes AS x LIMIT 3"], ["FIND nodes LIMIT 3 AS x"]),
        (["SEARCH nodes AS x"], ["FIND nodes AS x"]),
        (["x = FIND nodes"], ["FIND nodes AS x"]),
        (["SELECT * FROM nodes WHERE age > 40 AS x"], ["FIND nodes WHERE age > 40 AS x"]),
        (["FIND nodes AS x", "RANK x ORDER BY age AS y"], ["FIND nodes AS x", "RANK x BY age AS y"]),
        (["TRY", "FIND nodes AS x", "END TRY"], ["TRY", "FIND nodes AS x", "END"]),
    ],
)
def test_what_keeps_everything_is_mended(commands: list[str], made: list[str]) -> None:
    found = checked(*commands)
    assert isinstance(found, Action), found.told
    assert list(found.commands) == made
    assert found.mended


def test_what_can_not_be_mended_is_told_about_the_plan_as_it_was_written() -> None:
    found = checked("SEARCH nodes AS x", "UPDATE f")
    assert isinstance(found, Refusal)
    assert "SEARCH nodes" in found.told and "SEARCH nodes" in found.written
    found = checked("SEARCH nodes WHERE bla = 4 AS x")  # the second fault shows when the first is put right
    assert isinstance(found, Refusal)
    assert "unknown command SEARCH" in found.told and "no node has an attribute bla" in found.told


@pytest.mark.parametrize("commands", [["# FIND nodes AS x"], ["#: why"], ["# a", "# b"]])
def test_a_plan_of_remarks_is_refused(commands: list[str]) -> None:
    found = checked(*commands)
    assert isinstance(found, Refusal), found
    assert "the plan contains no command that runs" in found.told


def test_an_unknown_command_goes_back_to_the_model_and_never_runs_as_nothing() -> None:
    made = asked(Planning(plan("BLA BLA")))
    assert {step.status for step in made.steps} == {"refused"}
    assert made.status == "failed"


def test_the_model_is_shown_what_was_mended() -> None:
    model = Planning(plan("SEARCH nodes AS x"), "COMPLETE: x")
    made = asked(model)
    assert made.steps[0].mended
    assert "mended before it ran: commands[0]: unknown command SEARCH" in model.prompts[1].split("THE LAST STEP")[1]


def test_no_two_plans_have_one_id() -> None:
    action = Action({"plan_id": "a", "why": "w", "commands": ["FIND nodes AS x"]})
    assert renamed(action, {"b"}, 3).plan_id == "a"
    assert renamed(action, {"a"}, 3).plan_id == "a-3"
    assert renamed(action, {"a", "a-3", "a-3-2"}, 3).plan_id == "a-3-3"


# What a mended plan means

FIELDS = ("country", "county", "owner", "kind", "age")
TEXTS = ("FR", "DE", "owner", "county", "found", "kept", "fr", "two words")
NAMES = (*FIELDS, *TEXTS[:-1], "contry", "owner_id", "someone")


@st.composite
def worlds(draw: st.DrawFn) -> nx.Graph:
    """Draw a graph whose nodes have some of the fields; its values are words that fields, variables and keys are called by, too."""
    graph = nx.Graph()
    named = draw(st.lists(st.sampled_from(FIELDS[:-1]), min_size=1, max_size=4, unique=True))
    for number in range(draw(st.integers(2, 5))):
        graph.add_node(number, age=number, **{name: draw(st.sampled_from(TEXTS)) for name in named})
    return graph


@st.composite
def comparisons_of_words(draw: st.DrawFn) -> tuple[str, str, list[str]]:
    """Draw a comparison with words without quotes: the field, the operator, the words."""
    operator = draw(st.sampled_from(["=", "!=", "IN", "NOT IN", "CONTAINS", "STARTS_WITH"]))
    words = draw(
        st.lists(st.sampled_from(NAMES), min_size=1, max_size=3 if operator.endswith("IN") else 1, unique=True)
    )
    return draw(st.sampled_from(NAMES)), operator, words


@pytest.mark.slow
@settings(max_examples=200)
@given(worlds(), comparisons_of_words(), st.booleans())
def test_no_name_is_made_a_text_or_another_name(
    graph: nx.Graph, tested: tuple[str, str, list[str]], bare: bool
) -> None:
    left, operator, words = tested
    right = words[0] if not operator.endswith("IN") or (bare and len(words) == 1) else f"({', '.join(words)})"
    with gasl.open(graph) as executor:
        executor.execute_one("DECLARE kept AS LIST")
        schema = executor.session.graph.schema
        written = ["FIND nodes AS found", f"FIND nodes WHERE {left} {operator} {right} AS x"]
        made = check_draft(Draft({"commands": written}), "why", executor.session, ContextStore(), "p")
    fields = {*schema.node_attributes, "id", "degree"}
    if isinstance(made, Refusal):
        return
    values = {value for value, _ in schema.node_attributes[left].values} if left in schema.node_attributes else set()
    tree = parse_gasl("\n".join(made.commands)).statements[1].command.where
    assert isinstance(tree, Comparison)
    assert tree.left == Field((left,)), "the field is the one that was written"
    if operator.endswith("IN") and right == "found" and "found" not in values | fields:
        assert tree.right == Variable("found")
        return
    if isinstance(tree.right, Field):
        assert not operator.endswith("IN"), "a list has no fields"
        assert tree.right == Field((words[0],)), "the other field is the one that was written"
        assert words[0] in fields, "a word that is no field goes back"
        return
    assert not {"found", "kept", *fields} & set(words), "a word that names something else is not a text"
    assert set(words) <= values, "a text is what the field has among its values"
    constants = tree.right.items if operator.endswith("IN") else (tree.right,)
    assert [each.value for each in constants] == words


@st.composite
def slips(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a plan's command, and the same with a quote, a bracket or an AND left out of its condition."""
    paths = [("country",), ("owner",), ("age",)]
    leaf = st.builds(
        Comparison,
        st.sampled_from(paths).map(Field),
        st.sampled_from(["=", "!=", ">", "IN"]),
        st.sampled_from(["FR", "two words", "b (c)", "x AND y", 3]).map(Constant),
    ).map(lambda each: evolve(each, right=Items((each.right, Constant("z")))) if each.operator == "IN" else each)
    condition = draw(
        st.recursive(
            leaf,
            lambda inner: st.one_of(
                inner.map(Not),
                st.lists(inner, min_size=2, max_size=3).map(lambda some: And(tuple(some))),
                st.lists(inner, min_size=2, max_size=3).map(lambda some: Or(tuple(some))),
            ),
            max_leaves=4,
        )
    )
    text = f"FIND nodes WHERE {format_condition(condition)} AS x"
    places = [found.span() for found in re.finditer(r'["()]|\b(?:AND|OR)\b', text)]
    start, end = draw(st.sampled_from(places)) if places else (0, 0)
    return text, text[:start] + text[end:]


def flat(condition: Condition) -> Condition:
    """Return the condition without brackets that change nothing: ``(a AND b) AND c`` is ``a AND b AND c``."""
    if isinstance(condition, Not):
        return Not(flat(condition.operand))
    if not isinstance(condition, And | Or):
        return condition
    kind = type(condition)
    inner = [flat(each) for each in condition.operands]
    return kind(tuple(part for each in inner for part in (each.operands if isinstance(each, kind) else (each,))))


@pytest.mark.slow
@settings(max_examples=300)
@given(slips())
def test_a_slip_that_is_mended_leads_back_to_what_was_written(slip: tuple[str, str]) -> None:
    right, wrong = slip
    before, after = parse_gasl(right), parse_gasl(wrong)
    if not has_errors(after.diagnostics):
        return  # it says something else as it stands
    mended = parse_gasl(
        apply_edits(wrong, [edit for each in certain_fixes(after.diagnostics, wrong) for edit in each.edits])
    )
    if not has_errors(mended.diagnostics):
        meant, read = (each.statements[0].command for each in (before, mended))
        assert evolve(read, where=flat(read.where)) == evolve(meant, where=flat(meant.where)), wrong


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("FIND nodes WHERE entity_type IN (PERSON, source_id) AS x", "source_id is a field"),
        ("FIND nodes WHERE entity_type = Nobody AS x", "Nobody is neither a field"),
        ("FIND nodes WHERE entity_type = kept AS x", "kept is neither a field"),
        ("FIND nodes WHERE yaer = 1843 AND age = 3 AS x", "did you mean year?"),
        ("FIND nodes WHERE entity_typ = 'ROBOT' AS x", "did you mean entity_type?"),
        ("FIND nodes WHERE entity_type > 3 AS x", "strings are ordered character by character, not as numbers"),
        ("FIND paths WHERE ANY age > 3 AS x", "ANY node.age or ANY edge.age"),
        ("FIND nodes WHERE age = 36, year = 1843 AS x", "write AND if both must hold, OR if"),
        ("FIND nodes WHERE age 36 AS x", "write = or another"),
        ("FIND WHERE nothing = 36 AS x", "nodes, edges, paths, patterns or cycles"),
        ("FIND nodes WHERE age = 1,500 AS x", "write only digits"),
        ("FIND nodes WHERE entity_type IS NOT 'PERSON' AS x", "OR ... IS NULL"),
    ],
)
def test_what_two_readers_would_mend_differently_goes_back(command: str, hint: str) -> None:
    found = checked("DECLARE kept AS LIST", command)
    assert isinstance(found, Refusal), found
    assert hint in found.told


@pytest.mark.parametrize("right", ["source_id", "`source_id`", "lower(source_id)"])
def test_a_comparison_of_two_fields_stays_as_it_is(right: str) -> None:
    command = f"FIND nodes WHERE entity_type = {right} AS x"
    found = checked(command)
    assert isinstance(found, Action), found.told
    assert list(found.commands) == [command]
    assert not found.mended


@pytest.mark.parametrize(
    ("command", "made"),
    [
        (
            "FIND nodes WHERE toLower(entity_type) = 'person' AS x",
            "FIND nodes WHERE lower(entity_type) = 'person' AS x",
        ),
        ("FIND nodes WHERE entity_type = PERSON AS x", 'FIND nodes WHERE entity_type = "PERSON" AS x'),
        (
            "FIND nodes WHERE entity_type IN (PERSON, PLACE) AS x",
            'FIND nodes WHERE entity_type IN ("PERSON", "PLACE") AS x',
        ),
        ("FIND nodes WHERE EntityType = 'PERSON' AS x", "FIND nodes WHERE entity_type = 'PERSON' AS x"),
        ("FIND nodes WHERE entity_typ = 'PERSON' AS x", "FIND nodes WHERE entity_type = 'PERSON' AS x"),
        ("FIND nodes WHERE age = '36' AS x", "FIND nodes WHERE age = 36 AS x"),
        ("FIND WHERE age = 36 AS x", "FIND nodes WHERE age = 36 AS x"),
    ],
)
def test_what_the_graph_shows_to_be_meant_is_mended(command: str, made: str) -> None:
    found = checked(command)
    assert isinstance(found, Action), found.told
    assert list(found.commands) == [made]
