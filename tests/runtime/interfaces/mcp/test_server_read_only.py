"""A server that only reads: no way of a client leads to a change of the state, and each says why."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from knotwork.runtime.models.factory import open_state, verify_state
from mcp.shared.exceptions import MCPError
from support.agents import GRAPH, connected, told


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    from knotwork import gasl

    folder = tmp_path / "state"
    gasl.run_plan(
        {
            "plan_id": "a",
            "why": "w",
            "commands": ["DECLARE found AS LIST", "FIND nodes WHERE degree > 20 AS x", "UPDATE found WITH x"],
        },
        GRAPH,
        folder,
    )
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("execute", {"program": "RESET found"}),
        ("execute", {"program": "TRY\nDECLARE more AS LIST\nEND"}),
        ("execute", {"program": "FIND nodes AS x\nON EMPTY x THEN RESET found\nUPDATE found WITH x REPLACE"}),
        ("run_plan", {"plan": {"plan_id": "p", "why": "w", "commands": ["FIND nodes AS x", "BRANCH IF LEN ${x} > 0 THEN RESET found"]}}),
        ("run_lwt", {"script": '(final)=GASL("RESET found")'}),
        ("check", {"language": "gasl", "text": "RESET found"}),
    ],
)  # fmt: skip
def test_what_would_change_the_state_is_refused_with_its_place(
    kept: Path, tool: str, arguments: dict[str, Any]
) -> None:
    before = files(kept)

    async def work() -> Any:
        async with connected(state=kept, read_only=True) as client:
            return await told(client, tool, **arguments)

    found = asyncio.run(work())
    assert found.get("status", "refused") == "refused" and not found.get("ok", False)
    assert next(each["code"] for each in found["diagnostics"] if each["severity"] == "error") == "MCP001"
    assert files(kept) == before and verify_state(kept).ok


@pytest.mark.slow
def test_reading_works_and_leaves_no_byte_behind(kept: Path) -> None:
    before = files(kept)

    async def work() -> Any:
        async with connected(state=kept, read_only=True) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            with pytest.raises(MCPError, match="rollback is not offered: the state is read-only on this server"):
                await client.call_tool("rollback", {"to": "abcd"})
            return (
                names,
                await told(client, "execute", program="FIND nodes WHERE degree > 20 AS y\nCOUNT y AS n"),
                await told(
                    client,
                    "run_lwt",
                    script='(a)=GASL("FIND nodes WHERE degree > 20 AS y")\n(final)=EXPR("len(a)", a={(a)})',
                ),
                await told(client, "state_show", key="found"),
            )

    names, ran, script, shown = asyncio.run(work())
    assert "rollback" not in names and {"execute", "state_show"} <= names
    assert ran["value"]["value"] == 2 and not ran["changed"] and script["value"]["value"] == 2
    assert shown["page"]["total"] == 2
    assert files(kept) == before


@pytest.mark.slow
def test_what_another_process_keeps_meanwhile_is_seen(kept: Path) -> None:
    async def work() -> Any:
        async with connected(state=kept, read_only=True) as client:
            await told(client, "execute", program="FIND nodes LIMIT 3 AS mine")
            first = await told(client, "state_show")
            other = open_state(kept)
            other.merge("found", [{"id": "new"}])
            other.close()
            return first, await told(client, "state_show"), await told(client, "execute", program="COUNT mine AS n")

    first, second, counted = asyncio.run(work())
    assert (first["keys"][0]["size"], second["keys"][0]["size"]) == (2, 3)
    assert counted["value"]["value"] == 3, "the session keeps its variables"


@pytest.mark.slow
def test_a_state_that_is_not_there_is_no_state_to_read(tmp_path: Path) -> None:
    from support.command import process

    told = process("mcp", "--state", tmp_path / "nothing", "--read-only", home=tmp_path)
    assert told.code == 2 and "does not exist" in told.err and "Traceback" not in told.err
