"""PARAM: values that are given from outside, their types, and where they may come from."""

from typing import Any

import networkx as nx
import pytest
from knotwork import gasl
from knotwork.lang.parse.gasl import parse_gasl
from knotwork.runtime.gasl.commands.parameters import parameters_of_texts
from support.executing import executor, library

OLDER = "PARAM least INT\nFIND nodes WHERE age > ${least} AS people"


def test_a_value_from_python_is_bound_to_the_parameter() -> None:
    with executor() as opened:
        records = opened.run_plan(OLDER, params={"least": 50})
        assert [record.status for record in records] == ["success", "success"]
        assert [item["id"] for item in records[1].value] == ["Ben", "Eve"]


def test_the_function_that_opens_everything_takes_parameters_too() -> None:
    assert len(gasl.run_plan(OLDER, library(), params={"least": 50})[1].value) == 2
    assert len(gasl.run_plan(OLDER, library(), caps=gasl.Caps(max_results=1), params={"least": 60})[1].value) == 1


def test_without_a_value_and_a_default_nothing_runs() -> None:
    with executor() as opened:
        (record,) = opened.run_plan(OLDER)
        assert record.status == "binding_failure"
        assert record.error is not None
        assert record.error["message"] == "the parameter least has no value"
        assert record.error["hint"] == (
            'give it on the command line with --param least=..., in Python with params={"least": ...}, over MCP with '
            'parameters={"least": ...}, in the REPL or a notebook with least = ... before the command, or write a default: '
            "PARAM least INT = ..."
        )


def test_a_default_is_taken_and_a_given_value_wins() -> None:
    text = "PARAM n INT = 2\nFIND nodes LIMIT ${n} AS some"
    with executor() as opened:
        assert len(opened.run_plan(text)[1].value) == 2
        assert len(opened.run_plan(text, params={"n": 3})[1].value) == 3
        assert len(opened.run_plan(text)[1].value) == 2, "parameters are those of one plan"


def test_a_variable_that_the_host_binds_is_a_value_from_outside() -> None:
    context = gasl.ContextStore()
    context.set("n", 4)
    with executor(context=context) as opened:
        assert len(opened.run_plan("PARAM n INT = 2\nFIND nodes LIMIT ${n} AS some")[1].value) == 4


def test_declared_twice_in_a_session_the_last_default_counts() -> None:
    with executor() as opened:
        for number in (1, 3):
            assert opened.execute_one(f"PARAM n INT = {number}").status == "success"
            assert len(opened.execute_one("FIND nodes LIMIT ${n} AS some").value) == number


@pytest.mark.parametrize(
    ("type", "value", "what"),
    [("INT", "5", "a whole number"), ("INT", True, "a whole number"), ("INT", 1.5, "a whole number"), ("TEXT", 5, "a text"),
     ("BOOL", 0, "true or false"), ("LIST", "a", "a list"), ("FLOAT", "a", "a number"), ("FLOAT", float("nan"), "a number"),
     ("TEXT", None, "a text")],
)  # fmt: skip
def test_a_value_of_another_type_is_refused(type: str, value: Any, what: str) -> None:
    with executor() as opened:
        (record,) = opened.run_plan(f"PARAM p {type}", params={"p": value})
        assert record.status == "schema_mismatch"
        assert record.error is not None
        assert record.error["message"].startswith(f"the parameter p is {what}, but its value is ")


def test_a_null_default_allows_null_only_as_that_default() -> None:
    with executor() as opened:
        assert opened.run_plan("PARAM p TEXT = null")[0].status == "success"
        assert (
            opened.run_plan("PARAM p TEXT = null\nFIND nodes WHERE id = ${p} AS x", params={"p": "Ada"})[1].status
            == "success"
        )


def test_an_unknown_parameter_is_refused_before_anything_runs() -> None:
    with executor() as opened:
        with pytest.raises(gasl.ExecutionError, match="the program has no parameter lest") as raised:
            opened.run_plan(OLDER, params={"lest": 5})
        assert raised.value.hint == "did you mean least?"
        assert opened.command_history == []
        with pytest.raises(gasl.ExecutionError) as raised:
            opened.run_plan("FIND nodes AS x", params={"n": 5})
        assert raised.value.hint == "write PARAM n INT before the first command"


def test_a_value_is_never_read_as_text_of_a_command() -> None:
    hostile = 'x" OR id = "Ada'
    with executor() as opened:
        records = opened.run_plan("PARAM name TEXT\nFIND nodes WHERE id = ${name} AS x", params={"name": hostile})
        assert records[1].status == "empty"


TYPED = "PARAM t TEXT\nPARAM i INT\nPARAM f FLOAT\nPARAM b BOOL\nPARAM l LIST"


def test_texts_are_converted_to_the_types_of_the_parameters() -> None:
    texts = ["t=5=6", "i=5", "f=1e3", "b=true", 'l=["a", 1]']
    assert parameters_of_texts(parse_gasl(TYPED), texts) == {"t": "5=6", "i": 5, "f": 1000.0, "b": True, "l": ["a", 1]}


@pytest.mark.parametrize("text", ["i=5.5", "i=five", "i=", "f=NaN", "b=1", "b=True", "l=a,b", 'l={"a": 1}', "u=1", "i"])
def test_texts_that_do_not_have_the_type_are_refused(text: str) -> None:
    with pytest.raises(gasl.ExecutionError):
        parameters_of_texts(parse_gasl(TYPED), [text])


def test_a_replay_uses_the_same_values(tmp_path: Any) -> None:
    graph: nx.DiGraph[str] = library()
    with executor(graph=graph, state=tmp_path / "state") as opened:
        for record in opened.run_plan(f"{OLDER}\nDECLARE k AS LIST\nUPDATE k WITH people", params={"least": 50}):
            assert record.status == "success"
    verdict = gasl.replay(tmp_path / "state", graph)
    assert verdict.identical, verdict.differences


def test_all_parameters_without_a_value_are_named_at_once() -> None:
    text = "PARAM least INT\nPARAM name TEXT\nPARAM most INT = 3\nPARAM day TEXT\nFIND nodes WHERE age > ${least} AS x"
    with executor() as opened:
        (record,) = opened.run_plan(text, params={"day": "2024-01-01"})
        assert record.status == "binding_failure" and record.error is not None
        assert record.error["message"] == "the parameters least and name have no values"
        assert (
            "give them on the command line with --param least=... --param name=..., in Python with"
            in record.error["hint"]
        )
        assert 'over MCP with parameters={"least": ..., "name": ...}, in the REPL' in record.error["hint"]


@pytest.mark.parametrize("given", [{}, {"least": "many"}])
def test_nothing_runs_after_a_faulty_parameter_even_if_the_plan_goes_on_after_errors(given: dict[str, Any]) -> None:
    commands = [
        "PARAM least INT",
        "PARAM most INT = 3",
        "DECLARE k AS LIST",
        "FIND nodes WHERE age > ${least} AS x",
        "UPDATE k WITH x",
    ]
    plan = {"plan_id": "p", "why": "w", "commands": commands, "config": {"stop_on_error": False}}
    with executor() as opened:
        (record,) = opened.run_plan(plan, params=given)
        assert record.status == ("schema_mismatch" if given else "binding_failure")
        assert opened.state.snapshot().declared() == []
        assert gasl.plan_status([record]) == record.status


def test_a_variable_of_the_session_is_taken_unless_an_earlier_parameter_bound_it() -> None:
    with executor() as opened:
        opened.execute_one("FIND nodes AS all")
        opened.execute_one("COUNT all AS n")
        assert opened.execute_one("PARAM n INT = 2").value == opened.context.get("n") > 2
        assert opened.execute_one("PARAM m INT = 2").value == 2
        assert opened.execute_one("PARAM m INT = 3").value == 3, "the default of the first is not a value from outside"
        assert opened.execute_one("PARAM m INT").status == "binding_failure"
        opened.context.set("m", 9)
        assert opened.execute_one("PARAM m INT = 3").value == 9
        assert opened.execute_one("PARAM m INT").value == 9, "it stays the value from outside"


def test_a_replay_of_single_commands_uses_the_value_of_each(tmp_path: Any) -> None:
    graph: nx.DiGraph[str] = library()
    with executor(graph=graph, state=tmp_path / "state") as opened:
        opened.execute_one("DECLARE k AS LIST")
        for number in (1, 3):
            opened.context.set("n", number)
            for text in ("PARAM n INT = 2", "FIND nodes LIMIT ${n} AS x", "UPDATE k WITH x"):
                assert opened.execute_one(text).status == "success"
    verdict = gasl.replay(tmp_path / "state", graph)
    assert verdict.identical, verdict.differences


def test_a_replay_says_that_a_value_was_too_large_for_the_history(tmp_path: Any) -> None:
    graph: nx.DiGraph[str] = library()
    with executor(graph=graph, state=tmp_path / "state") as opened:
        records = opened.run_plan(
            "PARAM names LIST\nFIND nodes WHERE id IN ${names} AS x", params={"names": ["a" * 70_000, "Ada"]}
        )
        assert [record.status for record in records] == ["success", "success"]
    verdict = gasl.replay(tmp_path / "state", graph)
    assert not verdict.identical
    assert verdict.remarks == ("the value of a parameter was too large for the history",)
