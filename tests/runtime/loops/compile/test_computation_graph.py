"""The checks of the first two steps: what they find, where, and what they offer."""

import copy
import json

import pytest
from knotwork.runtime.loops.compile.computation_graph import check_graph
from knotwork.runtime.loops.compile.conditions import check_conditions
from knotwork.runtime.loops.compile.draft import SeedJudge, fix_draft
from support.compiling import GOOD, written


@pytest.fixture
def conditions():
    return copy.deepcopy(GOOD["conditions"])


@pytest.fixture
def graph():
    return copy.deepcopy(GOOD["graph"])


@pytest.fixture(scope="module")
def checked():
    return check_conditions(written(GOOD["conditions"])).value


def codes(judged):
    return [each.code for each in judged.errors]


def node(graph, name):
    return next(each for each in graph["nodes"] if each["name"] == name)


def test_good_answers_are_good(checked) -> None:
    assert set(checked.fields) == {"incident_severity", "account_type", "safety_interaction"}
    assert checked.outputs[-1] == "VERDICT"
    assert checked.unused == ()
    judged = check_graph(written(GOOD["graph"]), checked)
    assert judged.diagnostics == ()
    assert judged.value.document["nodes"] == GOOD["graph"]["nodes"]
    assert judged.value.moved == ()


@pytest.mark.parametrize("text", ["", "no", "[]", "null", "7", '"x"', "{", "{}", '{"fields": 3}', "\ud800", "[" * 3000])
def test_what_is_no_answer_is_a_diagnostic(text: str, checked) -> None:
    assert codes(check_conditions(text))
    assert codes(check_graph(text, checked))


@pytest.mark.parametrize("fault", ["nul", "1e999", "\\n", "'a", '"a\nb"', "NaN"])
def test_broken_json_in_a_list_is_a_diagnostic_of_every_step(fault: str, checked) -> None:
    judge_seed = SeedJudge(checked, check_graph(written(GOOD["graph"]), checked).value)
    for key, judge in (
        ("conditions", check_conditions),
        ("nodes", lambda text: check_graph(text, checked)),
        ("compute", judge_seed),
    ):
        judged = judge(f'{{"{key}": [{fault}]}}')
        assert judged.value is None
        assert any(each.code.startswith("JSON") for each in judged.errors)


def test_conditions_refer_to_fields_metadata_context_and_one_another(conditions) -> None:
    conditions["conditions"][0]["uses"] = [
        "extraction.acount_type",
        "meta.starz",
        "context.anything",
        "IS_RECENT",
        "nothing at all",
    ]
    judged = check_conditions(written(conditions))
    assert codes(judged) == ["SEED045", "SEED045", "SEED040"]
    assert [each.edits[0].text for each in judged.errors[:2]] == ['"extraction.account_type"', '"meta.stars"']
    assert judged.errors[2].edits == ()


def test_fields_that_no_condition_is_about_are_told(conditions) -> None:
    conditions["fields"].append({"name": "mood", "values": ["good", "bad"]})
    assert check_conditions(written(conditions)).value.unused == ("mood",)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda c: c["fields"].append(c["fields"][0]), "SEED063"),
        (lambda c: c["outputs"].append(c["outputs"][0]), "SEED042"),
        (lambda c: c["outputs"][0].update(name=c["conditions"][0]["name"]), "SEED042"),
        (lambda c: c["outputs"][0].update(name="max"), "SEED043"),
        (lambda c: c["outputs"][0].update(name="2 words"), "SEED009"),
        (lambda c: c["fields"][0].update(type="emum"), "SEED008"),
        (lambda c: c["fields"][0].pop("values"), "SEED003"),
        (lambda c: c["fields"][0].update(values={}), "SEED005"),
        (lambda c: c.update(outputs=[]), "SEED005"),
        (lambda c: c.pop("keywords"), "SEED003"),
        (lambda c: c.update(keywords=[1, 2]), "SEED004"),
        (lambda c: c.update(outptus=c.pop("outputs")), "SEED002"),
    ],
)
def test_faults_of_the_first_step(conditions, change, code: str) -> None:
    change(conditions)
    assert code in codes(check_conditions(written(conditions)))


def test_circles_are_told_once_each_and_what_breaks_them_is_only_offered(graph, checked) -> None:
    node(graph, "N_MILD")["needs"].append({"name": "VERDICT", "values": []})
    judged = check_graph(written(graph), checked)
    assert set(codes(judged)) == {"SEED041"}
    assert "remove VERDICT from the needs of N_MILD" in judged.errors[0].hints[0]
    assert set(judged.errors) == judged.offered
    assert fix_draft(written(graph), lambda text: check_graph(text, checked)).mended == ()


def test_a_node_does_not_need_itself(graph, checked) -> None:
    node(graph, "TRUST_RAW")["needs"].append({"name": "TRUST_RAW"})
    (error,) = check_graph(written(graph), checked).errors
    assert error.message.endswith("TRUST_RAW depends on itself")


def test_nodes_are_put_in_order_and_that_is_told(graph, checked) -> None:
    graph["nodes"].reverse()
    judged = check_graph(written(graph), checked)
    assert judged.errors == ()
    before: set[str] = set()
    for each in judged.value.document["nodes"]:
        assert {need["name"] for need in each["needs"] if need["name"].isupper()} <= before
        before.add(each["name"])
    assert "VERDICT" in judged.value.moved


def test_values_that_an_enum_does_not_have(graph, checked) -> None:
    node(graph, "N_MILD")["needs"][0]["values"] = ["midl"]
    (error,) = check_graph(written(graph), checked).errors
    assert (error.code, error.edits[0].text) == ("SEED044", '"mild"')


def test_outputs_that_nothing_gives(graph, checked) -> None:
    node(graph, "VERDICT")["name"] = "VERDIKT"
    (error,) = check_graph(written(graph), checked).errors
    assert "no node computes the output VERDICT" in error.message
    repaired = fix_draft(written(graph), lambda text: check_graph(text, checked))
    assert repaired.judged.value.document == {"nodes": GOOD["graph"]["nodes"]}
    graph["nodes"].pop()
    (error,) = check_graph(written(graph), checked).errors
    assert error.edits == ()


def test_an_output_is_no_filter(graph, checked) -> None:
    node(graph, "VERDICT")["op"] = "define_filter"
    assert codes(check_graph(written(graph), checked)) == ["SEED047"]


@pytest.mark.parametrize("listed", [None, [], ["account_type"]])
def test_fields_that_nothing_uses_must_be_said_to_be_unneeded(graph, checked, listed) -> None:
    for each in graph["nodes"]:
        each["needs"] = [need for need in each["needs"] if need["name"] != "extraction.safety_interaction"]
    del graph["unneeded"]
    if listed is not None:
        graph["unneeded"] = listed
    judged = check_graph(written(graph), checked)
    assert codes(judged) == ["SEED048"]
    (edit,) = judged.errors[0].edits
    text = judged.source.text
    after = check_graph(text[: edit.span.start] + edit.text + text[edit.span.end :], checked)
    assert after.errors == ()
    assert "safety_interaction" in after.value.unneeded


def test_unneeded_fields_are_fields(graph, checked) -> None:
    graph["unneeded"] = ["extraction.account_type", "acount_typ"]
    assert codes(check_graph(written(graph), checked)) == ["SEED045"]


def test_nodes_that_nothing_needs_are_told(graph, checked) -> None:
    graph["nodes"].append({"name": "SPARE", "op": "const", "needs": [], "rule": "7"})
    assert check_graph(written(graph), checked).value.loose == ("SPARE",)


@pytest.mark.slow
def test_many_faults_take_no_time(checked) -> None:
    many = [
        {
            "name": f"n{i}",
            "op": "expr",
            "needs": [{"name": f"n{j}"} for j in range(40)] + [{"name": f"x{i}"}],
            "rule": "",
        }
        for i in range(400)
    ]
    judged = check_graph(json.dumps({"nodes": many}), checked)
    assert len(judged.errors) > 100


def test_missing_brackets_are_found_in_no_time() -> None:
    judged = fix_draft('{"keywords": ["' + '\\"' * 90_000 + "}", check_conditions).judged
    assert judged.value is None
