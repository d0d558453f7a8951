"""Plans: seed 003's schema, and the commands in the JSON, as if they stood in a file of their own."""

import json
import time

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.lang.catalogue.rules import RULES
from knotwork.lang.catalogue.rules.document_rules import PLAN_RULES
from knotwork.lang.diagnostic import apply_edits, has_errors
from knotwork.lang.documents.plan import PLAN_SCHEMA, PlanConfig, read_plan
from knotwork.lang.linter.gasl import check_plan
from knotwork.lang.source import Source
from knotwork.lang.trees.gasl import Try
from support.cpu_time import pace, within

SEED = """{
  "plan_id": "plan-init-state-001",
  "why": "Initialize the state structure for co-authorship analysis.",
  "commands": [
    "DECLARE co_authorship_analysis AS DICT",
    "DECLARE co_authorship_analysis.authors AS LIST WITH_DESCRIPTION 'List of all unique authors found.'",
    "DECLARE co_authorship_analysis.institutions AS DICT WITH_DESCRIPTION 'Institutions and their associated authors.'",
    "DECLARE co_authorship_analysis.collaboration_graph AS LIST WITH_DESCRIPTION 'Edge list of (author1, author2, shared_entity).'",
    "DECLARE co_authorship_analysis.summary AS DICT"
  ],
  "config": { "stop_on_error": true, "continue_on_empty": false }
}"""


def plan(*commands, **more):
    return {"plan_id": "p", "why": "because", "commands": list(commands), **more}


def under(read, diagnostic):
    return read.source.slice(diagnostic.span)


def test_the_seeds_own_plan():
    read = read_plan(SEED)
    assert read.ok
    assert read.diagnostics == ()
    assert check_plan(read) == []
    assert read.plan.plan_id == "plan-init-state-001"
    assert read.plan.why.startswith("Initialize")
    assert read.plan.config == PlanConfig(stop_on_error=True, continue_on_empty=False)
    assert len(read.plan.program.statements) == len(read.plan.texts) == 5
    assert read.plan.texts[0] == "DECLARE co_authorship_analysis AS DICT"


def test_text_source_and_object_are_the_same():
    given_text = read_plan(SEED)
    given_object = read_plan(json.loads(SEED))
    given_source = read_plan(Source(SEED, "plan.json"))
    assert given_text.plan.program == given_object.plan.program == given_source.plan.program
    assert given_source.source.name == given_source.plan.program.source.name == "plan.json"


@pytest.mark.parametrize("rule", [rule for rule in PLAN_RULES if rule.bad], ids=lambda rule: rule.code)
def test_every_rule_finds_its_example(rule):
    read = read_plan(rule.bad)
    assert [d.code for d in read.diagnostics] == [rule.code]
    assert read.plan is None
    edits = [edit for d in read.diagnostics for edit in d.edits]
    assert not edits or read_plan(apply_edits(rule.bad, edits)).ok
    assert read_plan(rule.good).ok


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        ({"plan_id": None}, "PLAN004", "plan_id must be a string, not null"),
        ({"plan_id": 7}, "PLAN004", "plan_id must be a string, not a number"),
        ({"plan_id": ""}, "PLAN008", "plan_id is empty"),
        ({"plan_id": "x" * 201}, "PLAN008", "plan_id has 201 characters, more than the maximum of 200"),
        ({"why": ""}, "PLAN005", "why is empty"),
        ({"why": "  "}, "PLAN005", "why is empty"),
        ({"why": ["x"]}, "PLAN004", "why must be a string, not a list"),
        ({"commands": "RESET a"}, "PLAN004", "commands must be a list, not a string"),
        ({"commands": None}, "PLAN004", "commands must be a list, not null"),
        ({"commands": []}, "PLAN006", "commands is empty"),
        ({"commands": ["RESET a", ""]}, "PLAN006", "commands[1] is empty"),
        ({"commands": ["RESET a", " \n "]}, "PLAN006", "commands[1] is empty"),
        ({"commands": [3]}, "PLAN004", "commands[0] must be a string or an object, not a number"),
        ({"commands": [{"why": "x"}]}, "PLAN003", "commands[0].command is missing"),
        ({"commands": [{"command": 3}]}, "PLAN004", "commands[0].command must be a string, not a number"),
        ({"commands": [{"command": ""}]}, "PLAN006", "commands[0].command is empty"),
        ({"commands": [{"command": "RESET a", "whi": "x"}]}, "PLAN002", "unknown key commands[0].whi"),
        ({"config": 3}, "PLAN004", "config must be an object, not a number"),
        ({"config": {"stop_on_eror": True}}, "PLAN002", "unknown key config.stop_on_eror"),
        ({"config": {"stop_on_error": 1}}, "PLAN004", "config.stop_on_error must be true or false, not a number"),
        (
            {"config": {"continue_on_empty": "true"}},
            "PLAN004",
            "config.continue_on_empty must be true or false, not a string",
        ),
        ({"Why": "x"}, "PLAN002", "unknown key Why"),
        (
            {"commands": ["RESET a\n" * 400] * 100},
            "PLAN007",
            "commands have 40,100 lines, more than the maximum of 30,000",
        ),
        (
            {"commands": ["RESET a"] * 10_001},
            "PLAN007",
            "commands has 10,001 elements, more than the maximum of 10,000",
        ),
    ],
)
def test_every_fault_is_told_by_its_path(change, code, message):
    read = read_plan(plan("RESET a") | change)
    assert read.plan is None
    assert [(d.code, d.message) for d in read.diagnostics] == [(code, message)]
    assert all(d.code in RULES and d.span is not None for d in read.diagnostics)


def test_all_faults_are_told_at_once():
    read = read_plan('{"why": 3, "comands": ["x"], "config": {"a": 1}}')
    assert [d.message for d in read.diagnostics] == [
        "plan_id is missing",
        "why must be a string, not a number",
        "unknown key comands",
        "unknown key config.a",
    ], "commands is there under another name: one slip is told once"


@pytest.mark.parametrize(
    ("text", "meant", "edited"),
    [
        ('{"plan_id": "p", "reason": "r", "commands": ["RESET a"]}', "why", False),
        ('{"plan_id": "p", "why": "w", "steps": ["RESET a"]}', "commands", False),
        ('{"plan_id": "p", "why": "w", "comands": ["RESET a"]}', "commands", True),
        ('{"plan_id": "p", "confidence": 0.9, "why": "w", "steps": ["RESET a"]}', "commands", False),
        ('{"id": "p", "reason": "r", "commands": ["RESET a"]}', None, False),  # which of the two is which?
        ('{"plan_id": "p", "why": "w", "confidence": 0.9, "commands": ["RESET a"]}', None, False),
        ('{"plan_id": "p", "confidence": 0.9, "commands": ["RESET a"]}', None, False),
    ],
)
def test_a_key_is_only_meant_where_its_value_could_stand(text, meant, edited):
    unknown = [d for d in read_plan(text).diagnostics if d.code == "PLAN002"]
    assert any(f"did you mean `{meant}`?" in d.hints for d in unknown) is (meant is not None)
    assert any(d.edits for d in unknown) is edited
    assert meant or all("remove it" in d.hints for d in unknown)


def test_a_missing_id_is_made_of_the_plan():
    (found,) = read_plan('{"why": "w", "commands": ["RESET a"]}').diagnostics
    mended = apply_edits('{"why": "w", "commands": ["RESET a"]}', found.edits)
    assert read_plan(mended).ok
    (other,) = read_plan('{"why": "w", "commands": ["RESET b"]}').diagnostics
    assert found.edits[0].text != other.edits[0].text


@pytest.mark.parametrize("given_plan", ["[]", '"RESET a"', "3", "null"])
def test_what_is_no_object(given_plan):
    assert [d.code for d in read_plan(given_plan).diagnostics] == ["PLAN001"]


def test_faults_of_the_json_are_faults_of_the_plan():
    read = read_plan(SEED.replace('"why"', '"plan_id"'))
    assert [d.code for d in read.diagnostics] == ["PLAN005", "JSON009"]
    read = read_plan("```json\n" + SEED.replace("false }", "False, }") + "\n```")
    assert {d.code for d in read.diagnostics} == {"JSON002", "JSON006", "JSON003"}
    assert read_plan(apply_edits(read.source.text, [e for d in read.diagnostics for e in d.edits])).ok


def test_objects_that_are_no_json():
    circle = plan("RESET a")
    circle["config"] = circle
    for value, reason in [
        (circle, "it is nested more than 64 levels deep"),
        (plan("RESET a", config={1: 2}), "the key 1 is not a string"),
        (plan({1, 2}), "a set is not a JSON value"),
        (plan(float("nan")), "nan is not a JSON number"),
    ]:
        (diagnostic,) = read_plan(value).diagnostics
        assert diagnostic.code == "PLAN001"
        assert diagnostic.message == f"the plan cannot be written as JSON: {reason}"
    assert [d.code for d in read_plan(plan(2**64)).diagnostics] == ["JSON007"]
    assert [d.code for d in read_plan(plan("RESET `\ud800`")).diagnostics] == ["JSON008"]


def test_a_block_may_span_strings_and_whys_are_kept():
    read = read_plan(
        plan(
            {"command": "TRY", "why": "it may fail"},
            {"command": "FIND nodes AS a", "why": "see who is there"},
            "#: of its own\nCOUNT a AS n",
            "CATCH ANY",
            "RESET k\nEND",
            {"command": "RESET l\nRESET m", "why": "both"},
            "RESET o",
        )
    )
    assert read.ok
    first, *rest = read.plan.program.statements
    assert isinstance(first.command, Try)
    assert first.why == "it may fail"
    assert [item.why for item in first.command.body] == ["see who is there", "of its own"]
    assert first.command.caught[0].why is None
    assert [statement.why for statement in rest] == ["both", "both", None]


def test_faults_of_commands_point_into_the_json():
    text = json.dumps(
        plan("RESET a", 'FIND noes WHERE name = "Zoë\\u0041" AS p', {"command": "COUNT q AS n"}), indent=1
    )
    read = read_plan(text)
    assert read.plan is not None
    assert not read.ok
    (diagnostic,) = read.diagnostics
    assert diagnostic.message.startswith("commands[1]: ")
    assert under(read, diagnostic) == "noes"
    found = check_plan(read)
    assert [(d.message, under(read, d)) for d in found][1:] == [("commands[2]: the variable q is not bound", "q")]


def test_edits_keep_the_document_json():
    text = json.dumps(
        plan(
            "FIND nodes WHERE a = 'x' AND n > 1 AS people",
            "UPDATE k.l WITH people",
            "COUNT poeple AS n",
            "SET llm.model = 'smal'",
        )
    )
    options = {"state": {"k": "DICT"}, "models": ("small",)}
    found = check_plan(read_plan(text), **options)
    assert [d.code for d in found] == ["GASL055", "GASL050", "GASL062"]
    right = apply_edits(text, [edit for d in found for edit in d.edits])
    assert json.loads(right)["commands"] == [
        "FIND nodes WHERE a = 'x' AND n > 1 AS people",
        "DECLARE k.l AS LIST\nUPDATE k.l WITH people",
        "COUNT people AS n",
        'SET llm.model = "small"',
    ]
    assert check_plan(read_plan(right), **options) == []


def test_an_edit_over_several_strings_is_not_offered():
    read = read_plan(plan("TRY", "RESET a", "END"))
    from knotwork.lang.diagnostic import Diagnostic, Edit
    from knotwork.lang.source import Span

    wide = Diagnostic("GASL050", "error", "all of it", Span(0, 11), edits=(Edit(Span(0, 11), ""),))
    located = read.plan.script.located(wide)
    assert located.edits == ()
    assert under(read, located).startswith("TRY")
    assert under(read, located).endswith("RESET a")


commands = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
    | st.sampled_from(["RESET a", "TRY", "END", "FIND nodes AS", 'COUNT "', "x\ny", "(", "#: why", "# no", "BRANCH IF"]),
    min_size=1, max_size=5,
)  # fmt: skip


@pytest.mark.slow
@given(commands, st.booleans())
@settings(max_examples=100, deadline=None)
def test_whatever_the_commands_say_the_faults_are_in_the_document(texts, ascii_only):
    read = read_plan(json.dumps(plan(*texts), ensure_ascii=ascii_only))
    length = len(read.source.text)
    for diagnostic in check_plan(read) if read.plan else read.diagnostics:
        assert diagnostic.span is not None
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= length
        for edit in diagnostic.edits:
            assert 0 <= edit.span.start <= edit.span.end <= length
        json.loads(apply_edits(read.source.text, diagnostic.edits))


def test_the_schema_is_what_is_read():
    assert PLAN_SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(PLAN_SCHEMA)
    validator = jsonschema.Draft202012Validator(PLAN_SCHEMA)
    assert validator.is_valid(json.loads(SEED))
    assert validator.is_valid(plan({"command": "RESET a", "why": "x"}))
    for rule in PLAN_RULES:
        if rule.bad:
            assert not validator.is_valid(json.loads(rule.bad)), rule.code
            assert validator.is_valid(json.loads(rule.good))
    described = [PLAN_SCHEMA, *PLAN_SCHEMA["$defs"].values()]
    assert all("description" in field for part in described for field in part["properties"].values())


@pytest.mark.slow
def test_ten_thousand_commands():
    written = plan(*(f'FIND nodes WHERE name = "n{i}" AND age > {i} AS v{i}' for i in range(10_000)))
    read = within(5, lambda: read_plan(written))
    assert read.ok
    assert len(read.plan.program.statements) == 10_000
    assert within(5, lambda: check_plan(read)) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "commands",
    [[f"FIND noes AS v{i}" for i in range(10_000)], ["TRY"] * 10_000, ["RESET a\n" * 100] * 1000, list(range(10_000)),
     [{"command": "RESET a", f"k{i}": 1} for i in range(10_000)], ["BRANCH IF ${a} = 1 THEN"] * 10_000, ["(" * 1000] * 1000],
    ids=range(7),
)  # fmt: skip
def test_hostile_plans_end_soon(commands):
    begun = time.process_time()
    read = read_plan(plan(*commands))
    found = check_plan(read)
    assert has_errors(found) or read.ok
    assert time.process_time() - begun < 10 * pace()


def test_a_faulty_document_hides_no_fault_of_its_commands() -> None:
    read = read_plan('{"plan_id": "p", "why": "w", "commands": ["FIND nodes AS"], "config": {"stop": true}}')
    assert read.plan is None
    assert [(d.code, d.message) for d in read.diagnostics] == [
        ("GASL010", "commands[0]: AS must be followed by a name"),
        ("PLAN002", "unknown key config.stop"),
    ]
