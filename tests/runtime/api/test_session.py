"""The session without a terminal: commands, steps and expressions over the same values."""

import asyncio
from pathlib import Path

import pytest
from knotwork.runtime.api.pieces import Piece, language_of
from knotwork.runtime.api.session_data import NOTHING
from knotwork.runtime.interfaces.repl.tables import value_lines
from support.command import cassette, silent_server
from support.sessions import new_session, run, run_all

pytestmark = pytest.mark.usefixtures("folder")

MISERABLES = "nx:les_miserables"


def test_one_value_is_a_variable_a_step_and_a_name() -> None:
    at = new_session(MISERABLES)
    outcomes = run_all(
        at,
        "FIND nodes WHERE degree > 20 AS hubs\n"
        "n = len(hubs) + 1\n"
        '(first)=EXPR("hubs[0]", hubs={(hubs)})\n'
        "first['id'] + str(n)\n"
        "FIND nodes WHERE id = ${first.id} AS again\n"
        "_",
    )
    assert [outcome.status for outcome in outcomes] == ["done"] * 6
    assert [outcome.names for outcome in outcomes] == [("hubs",), ("n",), ("first",), (), ("again",), ()]
    assert outcomes[3].value == "Valjean3"
    assert outcomes[4].value == outcomes[5].value == [{"id": "Valjean"}]


def test_the_notes_of_a_command_are_those_of_its_outcome() -> None:
    outcome = run(new_session(MISERABLES), "MEASURE graph USING triangles AS t")
    note = "triangles, unweighted: triangles takes no weight; on the whole graph (77 nodes, 254 edges)"
    assert (outcome.summary, outcome.coverage) == ("77 nodes in t", (note,))
    nested = run(new_session(MISERABLES), "TRY\nMEASURE graph USING triangles AS t\nEND")
    assert nested.coverage == (note,)


def test_a_step_runs_and_its_value_is_there_for_the_next_one(folder: Path) -> None:
    at = new_session(
        llm=cassette(
            folder / "answers",
            {"Name two": '["Ada", "Grace"]', "Who is Ada": "a mathematician", "Who is Grace": "an admiral"},
        )
    )
    first, _, each, both = run_all(
        at,
        '(names)=LLM("Name two", type=list)\n1 + 1\n(who)=EACH({(names)}, LLM("Who is {(item)}?"))\n[len(names), len(who)]',
    )
    assert first.value == ["Ada", "Grace"] and "1 call" in first.summary
    assert each.value == ["a mathematician", "an admiral"]
    assert both.value == [2, 2]


def test_an_untyped_answer_is_read_as_in_a_script(folder: Path) -> None:
    at = new_session(llm=cassette(folder / "answers", {"Which": '{"index": 3}'}))
    run(at, '(answer)=LLM("Which?")')
    assert run(at, "(place)=EXPR(\"a['index'] + 1\", a={(answer)})").value == 4
    assert run(at, '(again)=EXPR("a + 1", a={(answer)}["index"])').value == 4


def test_steps_of_one_block_run_side_by_side_and_in_any_order(folder: Path) -> None:
    at = new_session(llm=cassette(folder / "answers", {"first": "one", "then one": "two"}))
    (outcome,) = run_all(at, '(b)=LLM("then {(a)}")\n\n(a)=LLM("first")')
    assert outcome.value == "two" and set(outcome.names) == {"a", "b"} and "2 steps done" in outcome.summary


def test_a_step_that_is_defined_anew_replaces_its_value_only() -> None:
    at = new_session()
    run_all(at, '(a)=CONST(1)\n(b)=EXPR("a + 1", a={(a)})'.replace("\n", "\n1\n"))
    run(at, "(a)=CONST(10)")
    assert run(at, "[a, b]").value == [10, 2]


def test_what_a_step_leaves_undone_the_others_give_all_the_same(folder: Path) -> None:
    at = new_session(llm=cassette(folder / "answers", {"good": "fine", "bad": None}))
    (outcome,) = run_all(at, '(bad)=LLM("bad")\n(good)=LLM("good")')
    assert outcome.status == "partial" and outcome.value == "fine" and outcome.names == ("good",)
    assert "(bad)" in outcome.message and "no, thanks" in outcome.message
    assert run(at, "bad").status == "refused"


def test_a_command_with_errors_leaves_no_trace_in_the_history() -> None:
    at = new_session(MISERABLES)
    outcome = run(at, "FIND nodes WHERE degre > 2 AS x")
    assert outcome.status == "refused" and outcome.diagnostics[0].code == "GASL070"
    assert outcome.fixed_text == "FIND nodes WHERE degree > 2 AS x" and len(at.state.history) == 0
    assert run(at, outcome.fixed_text).is_good and len(at.state.history) == 1


def test_each_command_is_one_commit_with_its_reason() -> None:
    at = new_session(MISERABLES)
    run_all(
        at,
        "DECLARE hubs AS LIST\n#: the most important ones\nFIND nodes WHERE degree > 20 AS found\nUPDATE hubs WITH found",
    )
    assert [entry["command"] for entry in at.state.history] == [
        "DECLARE hubs AS LIST", "FIND nodes WHERE degree > 20 AS found", "UPDATE hubs WITH found",
    ]  # fmt: skip
    assert at.state.history[1]["why"] == "the most important ones"
    assert at.state.get("hubs") == [{"id": "Valjean"}, {"id": "Gavroche"}]


def test_a_block_is_one_command() -> None:
    at = new_session(MISERABLES)
    (outcome,) = run_all(
        at,
        "TRY\n  FIND nodes WHERE degree > 20 AS hubs\n  FIND nodes WHERE degree > 99 AS none\nCATCH ANY\n  COUNT hubs AS n\nEND",
    )
    assert outcome.is_good and "hubs" in outcome.names


def test_without_a_graph_steps_and_expressions_work_and_a_command_says_what_is_missing() -> None:
    at = new_session()
    assert run(at, "1 + 1").value == 2
    outcome = run(at, "FIND nodes AS x")
    assert outcome.status == "failed" and "needs a graph" in outcome.message and "knotwork repl GRAPH" in outcome.hint


def test_gasl_in_a_step_works_on_the_same_graph_and_state() -> None:
    at = new_session(MISERABLES)
    run(at, "DECLARE hubs AS LIST")
    outcome = run(at, '(hubs)=GASL("""\nFIND nodes WHERE degree > 20 AS found\nUPDATE hubs WITH found\n""")')
    assert outcome.is_good, outcome
    assert len(at.state.get("hubs")) == 2


def test_a_step_joins_values_but_calls_no_function_and_no_script() -> None:
    at = new_session(input=[1, 2])
    assert run(at, '(j)=JOIN(a={(input)}, b=["x", "y"])').value == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    assert [each.code for each in run(at, '(c)=CALL("system", text="ls")').diagnostics] == ["LWT048"]
    assert "this run reads no files" in run(at, '(r)=RUN(file="x.lwt")').message


def test_the_input_is_there_for_steps_and_expressions() -> None:
    at = new_session(input={"names": ["Ada"]})
    assert run(at, '(n)=EXPR("len(names)", names={(input)}["names"])').value == 1
    assert run(at, "input['names'][0]").value == "Ada"
    assert run(at, '(n)=LLM("{(input)}["nmes"]")').diagnostics[0].code == "LWT023"


def test_a_step_that_wants_the_input_is_refused_without_one() -> None:
    outcome = run(new_session(), '(a)=LLM("one")\n(n)=LLM("{(a)} {(input)}")')
    assert outcome.diagnostics[0].code == "LWT023"
    assert outcome.names == ()


def test_a_slow_model_is_cancelled_and_the_session_goes_on() -> None:
    with silent_server() as (spec, asked):
        at = new_session(MISERABLES, llm=spec)
        at.model._environ = {"KNOTWORK_API_KEY": "x"}

        async def both() -> list[str]:
            found = []
            for text in ('(why)=LLM("Why?")', 'PROCESS some USING "what is it?" AS told'):
                asked.clear()
                cancel = asyncio.Event()
                task = asyncio.create_task(at.run(Piece(text, language_of(text)), cancel))
                await asyncio.to_thread(asked.wait, 10)
                cancel.set()
                found.append((await task).status)
            found.append((await at.run(Piece("1 + 1", "expr"))).status)
            await at.aclose()
            return found

        assert run_all(at, "FIND nodes LIMIT 3 AS some")[0].is_good
        assert asyncio.run(both()) == ["cancelled", "cancelled", "done"]
    assert "why" not in at.values.names() and "told" not in at.values.names()


def test_a_text_ends_at_the_first_that_fails_or_goes_on() -> None:
    assert [o.status for o in run_all(new_session(), "1\nnope\n2", stop=True)] == ["done", "refused"]
    assert [o.status for o in run_all(new_session(), "1\nnope\n2")] == ["done", "refused", "done"]
    assert [o.ends for o in run_all(new_session(), "1\n.quit\n2")] == [False, True]


@pytest.mark.parametrize("word", ["quit", "exit", "exit()", ":q"])
def test_who_knows_other_prompts_gets_out(word: str) -> None:
    assert run(new_session(), word).ends


def test_a_value_called_quit_is_a_value() -> None:
    at = new_session()
    run(at, "quit = 1")
    assert run(at, "quit").value == 1 and not run(at, "quit").ends


def test_what_comes_from_a_model_moves_no_cursor(folder: Path) -> None:
    at = new_session(llm=cassette(folder / "answers", {"evil": "\x1b[2Jgone\x07 \u202ereversed"}))
    outcome = run(at, '(a)=LLM("evil")')
    assert outcome.value == "\x1b[2Jgone\x07 \u202ereversed"
    for form in ("table", "json", "csv", "md"):
        written = "\n".join(value_lines(outcome.value, form, 80, safe=True))
        assert "\x1b" not in written and "\u202e" not in written and "gone" in written


@pytest.mark.slow
def test_an_expression_that_never_ends_is_refused_in_bounds() -> None:
    at = new_session()
    run(at, f"xs = {list(range(1500))}")
    outcome = run(at, "sum(a + b for a in xs for b in xs)")
    assert outcome.status == "refused" and outcome.value is NOTHING and "steps" in outcome.diagnostics[0].message


def test_warnings_are_pictures_too_and_tab_offers_their_fix(folder: Path) -> None:
    at = new_session(llm=cassette(folder / "answers", {"Why": "so"}))
    run(at, "names = ['Ada']")
    outcome = run(at, '(why)=LLM("Why {names}?")')
    assert outcome.is_good and outcome.fixed_text == '(why)=LLM("Why {(names)}?")'
    assert at.last_fault is outcome or at.last_fault == outcome


def test_a_value_of_the_session_is_the_value_of_a_parameter() -> None:
    at = new_session("nx:les_miserables")
    first, given, taken, found = run_all(
        at, "PARAM least INT\nleast = 20\nPARAM least INT = 5\nFIND nodes WHERE degree > ${least} AS hubs"
    )
    assert first.status == "failed" and "in the REPL or a notebook with least = ... before the command" in first.hint
    assert given.is_good and taken.is_good
    assert len(found.value) == 2
