"""Where more was found than a result lists: the first errors and the last one, and a page of all."""

import asyncio
from typing import Any

import pytest
from knotwork.runtime.interfaces.mcp.server import call_tool
from support.agents import opened
from support.scripted import Scripted


def ask(tool: str, **given: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a tool's result, and all diagnostics by its pages."""

    async def work() -> Any:
        async with opened(Scripted("good")) as workspace:
            result = (await call_tool(tool, given, workspace, "ada", tell)).structure
            found, following = [], result.get("all_diagnostics")
            while following is not None:
                page = (await call_tool("page", following, workspace, "ada", tell)).structure["page"]
                found += page["value"]
                following = page["next"]
            return result, found

    return asyncio.run(work())


async def tell(done: float, total: float | None, message: str) -> None:
    pass


@pytest.mark.slow
def test_all_of_them_are_on_pages() -> None:
    told, every = ask("check", language="gasl", text="FNID nodes AS a\n" * 200)
    assert told["found"] == len(every) == 200 and len(told["diagnostics"]) == 50
    assert [each["span"]["line"] for each in every] == list(range(1, 201))
    assert told["diagnostics"][:49] == every[:49] and told["diagnostics"][-1] == every[-1]


@pytest.mark.slow
def test_where_reading_stops_the_result_says_so() -> None:
    told, every = ask("check", language="gasl", text="FNID nodes AS a\n" * 1_500)
    assert told["found"] == len(every) == 1_001
    assert told["diagnostics"][-1]["message"] == "more than 1,000 faults; the text after this point is not checked"


@pytest.mark.slow
def test_few_of_them_need_no_page() -> None:
    told, every = ask("check", language="gasl", text="FNID nodes AS a\n" * 50)
    assert told["found"] == len(told["diagnostics"]) == 50 and every == [] and "all_diagnostics" not in told


def test_remarks_do_not_hide_what_came_of_a_run() -> None:
    script = "".join(f'(s{number})=CONST("x")\n' for number in range(30)) + '(final)=LLM("x")'
    told, every = ask("run_lwt", script=script)
    assert told["status"] == "complete" and told["found"] == len(every) == 30
    assert len(told["diagnostics"]) == 10 and {each["code"] for each in every} == {"LWT017"}
