"""Sessions of one client: a bounded number, `main` among them whatever happens; what is dropped is told as dropped."""

import asyncio
from typing import Any

import pytest
from knotwork.runtime.api.shared_workspace import MOST_SESSIONS
from knotwork.runtime.interfaces.mcp.server import call_tool
from support.agents import opened

BIND = "FIND nodes LIMIT 2 AS hubs"
LAST = f"s{MOST_SESSIONS}"


def ask(*calls: tuple[str, str, dict[str, Any]], many: int = MOST_SESSIONS + 1) -> list[dict[str, Any]]:
    """Bind a variable in ``main`` and then in ``many`` other sessions; return the results of ``calls`` (who, tool, arguments)."""

    async def work() -> list[dict[str, Any]]:
        async with opened() as workspace:
            for name in ("main", *(f"s{number}" for number in range(many))):
                await call_tool("execute", {"program": BIND, "session": name}, workspace, "ada", tell)
            return [(await call_tool(tool, given, workspace, who, tell)).structure for who, tool, given in calls]

    return asyncio.run(work())


async def tell(done: float, total: float | None, message: str) -> None:
    pass


@pytest.mark.slow
def test_main_is_never_dropped_and_the_oldest_other_one_is() -> None:
    main, first, second = ask(
        ("ada", "session", {}), ("ada", "session", {"session": "s0"}), ("ada", "session", {"session": "s1"})
    )
    assert [each["name"] for each in main["variables"]] == [each["name"] for each in second["variables"]] == ["hubs"]
    error = first["error"]
    assert error["kind"] == "not-found"
    assert error["message"] == "session s0 was dropped: the server stores main and the 32 latest sessions"
    assert error["hint"] == "run the commands that bind its variables again, or use fewer sessions"


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["execute", "check", "explain"])
def test_a_variable_that_went_with_its_session_is_no_slip(tool: str) -> None:
    program = "COUNT hubs AS n\nCOUNT other AS m\nFIND nodes WHERE degree > ${hubs} AS x"
    given = {"program": program} if tool == "execute" else {"text": program, "language": "gasl"}
    (told,) = ask(("ada", tool, {**given, "session": "s0"}))
    hubs, other, value = [each for each in told["diagnostics"] if each["code"] == "GASL050"]
    for each in (hubs, value):
        assert each["hints"][0].startswith("session s0 was dropped: ") and each["edits"] == []
    assert not any("dropped" in hint for hint in other["hints"])


@pytest.mark.slow
def test_a_dropped_session_is_begun_anew_and_what_it_had_is_still_known() -> None:
    again, had, shown = ask(
        ("ada", "execute", {"program": "FIND nodes LIMIT 1 AS one", "session": "s0"}),
        ("ada", "execute", {"program": "COUNT hubs AS n", "session": "s0"}),
        ("ada", "session", {"session": "s0", "variable": "hubs"}),
    )
    assert again["status"] == "success" and had["status"] == "refused"
    assert "was dropped" in had["diagnostics"][0]["hints"][0] and "was dropped" in shown["error"]["message"]


@pytest.mark.slow
def test_each_client_has_a_share_and_only_its_own_names() -> None:
    mine, foreign, never, slip = ask(
        ("ada", "session", {"session": "s1"}), ("bob", "session", {"session": "s0"}), ("bob", "session", {}),
        ("ada", "session", {"session": "mian"}),
    )  # fmt: skip
    assert mine["variables"][0]["name"] == "hubs"
    assert foreign["error"]["message"] == "unknown session s0" and "no session exists yet" in foreign["error"]["hint"]
    assert never["variables"] == [], "main needs no beginning"
    assert slip["error"]["hint"] == "did you mean main?"


@pytest.mark.slow
def test_other_clients_take_no_pages() -> None:
    async def work() -> Any:
        async with opened() as workspace:
            find = {"program": "FIND edges AS v", "limit": 1}
            mine = (await call_tool("execute", find, workspace, "ada", tell)).structure["value"]["next"]
            for _ in range(70):
                await call_tool("execute", find, workspace, "bob", tell)
            return (await call_tool("page", mine, workspace, "ada", tell)).structure

    assert asyncio.run(work())["page"]["total"] == 254
