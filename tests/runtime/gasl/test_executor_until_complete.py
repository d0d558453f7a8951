"""A loop of one's own: in which forms a step function may say what is to be done, and that it is done."""

import pytest
from knotwork import gasl
from knotwork.runtime.gasl import ExecutionError
from support.executing import library

COMMANDS = ["DECLARE n AS COUNTER", "FIND nodes AS x", "COUNT x AS c", "UPDATE n WITH c"]


@pytest.mark.parametrize(
    "said",
    ["COMPLETE: x", "```\nCOMPLETE: x\n```", '{"complete": "x"}', '```json\n{"complete": "x"}\n```', {"complete": "x"}],
)
def test_the_end_may_be_said_in_each_form(said):
    with gasl.open(library()) as opened:
        assert opened.run_until_complete(lambda executor, last: said, most=1) == "x"


@pytest.mark.parametrize("made", [list, tuple])
def test_a_list_of_commands_is_a_plan(made):
    with gasl.open(library()) as opened:
        assert opened.run_until_complete(lambda executor, last: "COMPLETE: done" if last else made(COMMANDS)) == "done"
        assert opened.state.get("n") == 10
        assert len({entry["plan_id"] for entry in opened.state.history}) == 1


def test_a_list_that_is_refused_comes_back():
    seen = []

    def step(executor, last):
        seen.append([record.status for record in last])
        return "COMPLETE: done" if last else ["FINDX nodes"]

    with gasl.open(library()) as opened:
        assert opened.run_until_complete(step) == "done"
    assert seen == [[], ["error"]]


@pytest.mark.parametrize("most", [-1, 0, 2.5, "x", True])
def test_a_most_that_is_none_is_refused(most):
    with (
        gasl.open(library()) as opened,
        pytest.raises(ExecutionError, match="most must be a whole number of at least 1"),
    ):
        opened.run_until_complete(lambda executor, last: "COMPLETE: x", most=most)


def test_a_step_that_closes_the_executor_is_told_so():
    def closes(executor, last):
        executor.close()
        return "FIND nodes AS x"

    async def later(executor, last):
        await executor.aclose()
        return "FIND nodes AS x"

    for step in (closes, later):
        with gasl.open(library()) as opened:
            with pytest.raises(ExecutionError, match="a step function can't close"):
                opened.run_until_complete(step)
            assert opened.execute_one("FIND nodes AS x").status == "success"  # it is still open
