"""What an agent is told is true and enough to go on: history, variables, refusals, places of a plan."""

import asyncio
import json
from typing import Any

import jsonschema
import pytest
from knotwork.runtime.interfaces.mcp.server import TOOLS
from support.agents import connected, opened, told
from support.scripted import Scripted


def ask(*calls: tuple[str, dict[str, Any]], **settings: Any) -> list[dict[str, Any]]:
    """Call tools one after the other; all answers fit their schemas."""

    async def work() -> Any:
        async with connected(**settings) as client:
            return [await told(client, tool, **arguments) for tool, arguments in calls]

    answers = asyncio.run(work())
    for (tool, _), answer in zip(calls, answers, strict=True):
        jsonschema.validate(answer, TOOLS[tool].output_schema)
    return answers


@pytest.mark.slow
def test_after_many_reads_there_is_still_a_hash_to_go_back_to() -> None:
    reads = [("execute", {"program": "FIND nodes LIMIT 1 AS b"})] * 12
    program = "FIND nodes LIMIT 2 AS x\nDECLARE k AS LIST\nUPDATE k WITH x"
    made, *rest = ask(
        ("execute", {"program": program}), *reads, ("state_show", {}), ("state_show", {"history": True, "limit": 4}),
        ("state_show", {"history": True, "offset": 12, "limit": 4}),
    )  # fmt: skip
    shown, latest, older = rest[-3:]
    assert [entry["command"].split()[0] for entry in shown["history"]] == ["UPDATE", "DECLARE"]
    assert shown["history"][0]["state"] == made["state"] and made["before"] != made["state"]
    assert [entry["step"] for entry in latest["history"]] == [15, 14, 13, 12] and latest["more_history"] == 11
    assert [entry["step"] for entry in older["history"]] == [3, 2, 1] and older["more_history"] == 0
    back, now = ask(("execute", {"program": program}), ("state_show", {}))
    assert back["before"] not in [entry["state"] for entry in now["history"]] and back["changed"]


@pytest.mark.slow
def test_the_keys_are_paged() -> None:
    program = "\n".join(f"DECLARE k{number:03} AS LIST" for number in range(30))
    _, first, rest = ask(
        ("execute", {"program": program}), ("state_show", {"limit": 20}), ("state_show", {"offset": 20})
    )
    assert first["more_keys"] == 10 and rest["more_keys"] == 0
    assert [key["key"] for key in (*first["keys"], *rest["keys"])] == [f"k{number:03}" for number in range(30)]


@pytest.mark.slow
def test_a_session_tells_its_variables_and_shows_their_rows_again() -> None:
    _, all_of, one, none, new = ask(
        ("execute", {"program": "FIND nodes WHERE degree > 15 AS hubs\nCOUNT hubs AS n"}), ("session", {}),
        ("session", {"variable": "hubs", "offset": 1, "limit": 2}), ("session", {"variable": "hub"}), ("session", {"session": "new"}),
    )  # fmt: skip
    hubs, n = all_of["variables"]
    assert (hubs["name"], hubs["kind"], hubs["size"]) == ("hubs", "list", 5) and "id" in hubs["fields"]
    assert (n["name"], n["kind"]) == ("n", "number")
    assert one["page"]["offset"] == 1 and len(one["page"]["value"]) == 2
    assert none["error"]["kind"] == "not-found" and none["error"]["hint"] == "did you mean hubs?"
    assert new["error"]["kind"] == "not-found" and new["error"]["message"] == "unknown session new"
    assert new["error"]["hint"] == "available: main; run_plan and execute create sessions"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tool", "arguments", "message", "hint"),
    [
        ("run_plan", {"plan": ["FIND nodes AS x"]}, "plan: must be an object or its JSON text, not a list", ""),
        ("execute", {"program": ["FIND nodes AS x"]}, "program: must be a string, not a list", ""),
        ("run_plan", {"commands": ["FIND nodes AS x"]}, "", 'put it in plan: {"plan": {"commands": ...}}'),
        ("run_lwt", {"text": "x"}, "", "use script instead"),
        ("explain", {"text": "FIND nodes AS x"}, "language is missing", "use lwt, gasl, plan or seed"),
        ("explain", {"code": "GASL999"}, "unknown rule GASL999", "knotwork://reference/rules lists all rules"),
        ("explain", {"code": "GSAL070"}, "unknown rule GSAL070", "did you mean GASL070?"),
        ("schema", {"attribute": "\x1b[31mred"}, "no node or edge has the attribute \\x1b[31mred", None),
    ],
)  # fmt: skip
def test_a_refusal_says_what_to_do(tool: str, arguments: dict[str, Any], message: str, hint: str | None) -> None:
    (answer,) = ask((tool, arguments))
    error = answer["error"]
    assert list(answer) == ["error"], "nothing is made up beside it"
    assert "\x1b" not in json.dumps(answer, ensure_ascii=False)
    told_of = [error, *error.get("faults", [])]
    assert message in [each["message"] for each in told_of] or not message
    assert hint is None or hint in [each.get("hint", "") for each in told_of]
    for fault in error.get("faults", []):
        assert fault["pointer"].count("/") == 1, "a JSON pointer of what the caller sent"


@pytest.mark.slow
def test_a_command_has_its_place_in_the_plan_and_its_number_in_the_history() -> None:
    plan = {
        "plan_id": "p",
        "why": "w",
        "commands": ["FIND nodes LIMIT 3 AS x", "TRY\nCOUNT x AS n\nCATCH ANY\nCOUNT x AS m\nEND"],
    }
    _, ran = ask(("execute", {"program": "FIND nodes AS y\nCOUNT y AS n"}), ("run_plan", {"plan": plan}))
    assert [each["number"] for each in ran["commands"]] == ["1", "2", "2.1"]
    assert [each["step"] for each in ran["commands"]] == ["3", "4", "4.1"]


@pytest.mark.slow
def test_a_plan_that_goes_on_after_errors_runs_with_an_unbound_name() -> None:
    commands = ["COUNT nothing AS n", "FIND nodes LIMIT 3 AS x"]
    plan = {"plan_id": "p", "why": "w", "commands": commands}
    going_on = {**plan, "config": {"stop_on_error": False}}
    refused, ran = ask(("run_plan", {"plan": plan}), ("run_plan", {"plan": going_on}))
    assert (refused["status"], refused["commands"]) == ("refused", [])
    assert [each["status"] for each in ran["commands"]] == ["binding_failure", "success"]
    assert {each["severity"] for each in ran["diagnostics"]} == {"warning"}


@pytest.mark.slow
def test_a_models_words_in_a_message_are_harmless() -> None:
    program = "FIND nodes LIMIT 2 AS x\nPROCESS x WITH 'do' AS y"
    (ran,) = ask(("execute", {"program": program}), model=Scripted("\x1b[31m<script>"))
    assert ran["status"] != "success" and "\x1b" not in json.dumps(ran, ensure_ascii=False)


@pytest.mark.slow
def test_what_operations_there_are_is_what_the_server_offers() -> None:
    (found,) = ask(("check", {"language": "lwt", "text": '(final)=NOTHING("x")'}), graph=None)
    told_of = json.dumps(found["diagnostics"])
    assert "SEED" not in told_of and "GASL(" not in told_of and "CONST" in told_of


@pytest.mark.slow
def test_explaining_beyond_the_time_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    from knotwork.runtime.api import explain as explanations
    from knotwork.runtime.interfaces.mcp.server import call_tool
    from knotwork.runtime.interfaces.mcp.workspace import Limits

    async def tell(done: float, total: float | None, message: str) -> None:
        pass

    explain = explanations.explain

    async def explain_slowly(*arguments: Any) -> Any:
        await asyncio.sleep(0.005)
        return await explain(*arguments)

    async def work() -> Any:
        program = "\n".join(f"FIND nodes WHERE degree > {number} AS x{number}" for number in range(1_100))
        async with opened() as workspace:
            whole = await call_tool("explain", {"language": "gasl", "text": program}, workspace, "local", tell)
        monkeypatch.setattr(explanations, "explain", explain_slowly)  # 200 commands take at least a second
        async with opened(limits=Limits(seconds=0.4)) as workspace:
            short = {"language": "gasl", "text": "\n".join(program.splitlines()[:200])}
            return whole, await call_tool("explain", short, workspace, "local", tell)

    whole, cut = (each.structure for each in asyncio.run(work()))
    assert (
        whole["steps"]["total"] == 1_000
        and whole["left_out"] == 100
        and whole["why"] == "at most 1,000 commands are explained"
    )
    assert cut["steps"]["total"] + cut["left_out"] == 200 and cut["left_out"] and "timed out" in cut["why"]
