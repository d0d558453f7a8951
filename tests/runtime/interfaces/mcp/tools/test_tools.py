"""Each tool through the official client: what it gives, what it refuses, and that it says so in a structure."""

import asyncio
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from knotwork.runtime.api.shared_workspace import ResultStore
from knotwork.runtime.interfaces.mcp.resources import CARDS, GRAMMARS, PROMPTS, SCHEMAS, page_of
from knotwork.runtime.interfaces.mcp.server import TOOLS
from knotwork.runtime.interfaces.mcp.workspace import Limits
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from support.agents import connected, told
from support.cafe_seed import CONTEXTS, SEED
from support.scripted import Scripted

PLAN = {
    "plan_id": "hubs",
    "why": "who holds it together",
    "commands": ["FIND nodes WHERE degree >= 15 AS hubs", "DECLARE hubs AS LIST", "UPDATE hubs WITH hubs"],
}


def run(work: Any, **settings: Any) -> Any:
    """Run ``work(client)`` on a server of its own."""

    async def within() -> Any:
        async with connected(**settings) as client:
            return await work(client)

    return asyncio.run(within())


def call(tool: str, settings: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    return run(lambda client: told(client, tool, **arguments), **(settings or {}))


@pytest.mark.slow
def test_the_tools_of_the_design_are_there_with_schemas_and_hints() -> None:
    async def work(client: Client) -> Any:
        return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in run(work)}
    assert set(tools) == {
        "check", "explain", "run_plan", "execute", "schema", "state_show", "state_diff", "rollback", "run_lwt", "seed_check",
        "seed_compute", "evaluate", "page", "session",
    }  # fmt: skip
    for tool in tools.values():
        assert tool.description and tool.output_schema and tool.input_schema["additionalProperties"] is False
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)
    assert tools["check"].annotations.read_only_hint and not tools["rollback"].annotations.read_only_hint


def test_the_schema_says_what_conditions_may_name() -> None:
    found = call("schema")
    assert (found["nodes"], found["edges"], found["directed"]) == (77, 254, False)
    assert found["attributes"]["value"][0]["name"] == "weight"
    assert call("schema", attribute="wieght")["error"]["hint"] == "did you mean weight?"


@pytest.mark.parametrize(
    ("language", "good", "bad", "code"),
    [
        ("gasl", "FIND nodes AS x", "FIND nodes WHERE wieght > 3 AS x", "GASL070"),
        ("plan", json.dumps(PLAN), '{"plan_id": "p", "comands": ["FIND nodes AS x"]}', "PLAN"),
        ("lwt", '(final)=CONST("x")', '(final)=LLM("{(missing)}")', "LWT"),
        ("seed", json.dumps(SEED), json.dumps({**SEED, "output": ["SCOR"]}), "SEED"),
    ],
)
def test_check_finds_what_is_wrong_in_every_language(language: str, good: str, bad: str, code: str) -> None:
    async def work(client: Client) -> Any:
        return [await told(client, "check", language=language, text=text) for text in (good, bad)]

    right, wrong = run(work)
    assert right["ok"] and not [each for each in right["diagnostics"] if each["severity"] == "error"]
    first = next(each for each in wrong["diagnostics"] if each["severity"] == "error")
    assert not wrong["ok"] and first["code"].startswith(code)
    span = first["span"]
    assert bad[span["start"] : span["end"]] and span["line"] >= 1 and span["column"] == span["start"] + 1


def test_diagnostics_of_an_object_come_with_the_text_that_they_point_into() -> None:
    found = call("check", language="plan", text={**PLAN, "commands": ["FIND node AS x"]})
    span = found["diagnostics"][0]["span"]
    assert found["text"][span["start"] : span["end"]] == "node"


@pytest.mark.slow
def test_explain_says_how_a_text_would_run() -> None:
    asking = {**PLAN, "commands": [*PLAN["commands"], "CLASSIFY hubs BY 'x' INTO ('a', 'b') AS y"]}

    async def work(client: Client) -> Any:
        return (
            await told(client, "explain", language="plan", text=asking),
            await told(client, "explain", language="lwt", text='(a)=CONST("x")\n(final)=LLM("{(a)}")'),
            await told(client, "explain", language="seed", text=SEED),
            await told(client, "explain", code="GASL070"),
            await told(client, "explain", code="GASL07"),
            await told(client, "state_show"),
        )  # fmt: skip

    plan, script, seed, rule, no_rule, state = run(work)
    assert [step["command"].split()[0] for step in plan["steps"]["value"]] == ["FIND", "DECLARE", "UPDATE", "CLASSIFY"]
    assert plan["steps"]["value"][0]["rows"] > 0
    assert script["layers"] == [["a"], ["final"]] and script["critical_path"] == ["a", "final"]
    assert [step["name"] for step in seed["steps"]["value"]] == [step["name"] for step in SEED["compute"]]
    assert rule["rule"]["name"] == "unknown-attribute"
    assert no_rule["error"]["kind"] == "not-found" and "did you mean" in no_rule["error"]["hint"]
    assert state["steps"] == 0, "explaining leaves no trace"


@pytest.mark.slow
def test_explain_takes_parameters_and_knows_no_variable_that_the_text_binds_later() -> None:
    text = "PARAM most INT = 2\nFIND nodes LIMIT ${most} AS some\nCOUNT some AS n"

    async def work(client: Client) -> Any:
        await told(client, "execute", program="FIND nodes LIMIT 1 AS some")
        return (
            await told(client, "explain", language="gasl", text=text),
            await told(client, "explain", language="gasl", text=text, parameters={"most": 1}),
            await told(client, "explain", language="gasl", text=text, parameters={"mots": 1}),
        )

    default, given, unknown = run(work)
    assert [step["rows"] for step in default["steps"]["value"]][1:2] == [2]
    assert default["steps"]["value"][2]["notes"][0] == "some has no value"
    assert [step["rows"] for step in given["steps"]["value"]][1:2] == [1]
    assert unknown["error"]["hint"] == "did you mean most?"


@pytest.mark.slow
def test_the_values_of_parameters_are_an_argument_of_the_tools() -> None:
    plan = {"plan_id": "p", "why": "to see", "commands": ["PARAM most INT", "FIND nodes LIMIT ${most} AS some"]}

    async def work(client: Client) -> Any:
        ran = await told(client, "run_plan", plan=plan, parameters={"most": 3})
        wrong = await told(client, "run_plan", plan=plan, parameters={"most": "3"})
        missing = await told(client, "run_plan", plan=plan)
        unknown = await told(client, "run_plan", plan=plan, parameters={"mots": 3})
        alone = await told(client, "execute", program="\n".join(plan["commands"]), parameters={"most": 2})
        return ran, wrong, missing, unknown, alone

    ran, wrong, missing, unknown, alone = run(work)
    assert (ran["status"], ran["value"]["total"]) == ("success", 3)
    assert (wrong["status"], missing["status"]) == ("schema_mismatch", "binding_failure")
    assert unknown["error"]["kind"] == "arguments" and unknown["error"]["hint"] == "did you mean most?"
    assert (alone["status"], alone["value"]["total"]) == ("success", 2)


@pytest.mark.slow
def test_a_plan_runs_and_its_variables_are_there_for_execute() -> None:
    async def work(client: Client) -> Any:
        ran = await told(client, "run_plan", plan=PLAN, limit=2)
        measured = await told(client, "execute", program="MEASURE graph USING pagerank AS ranks")
        assert measured["commands"][0]["notes"] == [
            "pagerank, weighted by weight; on the whole graph (77 nodes, 254 edges)"
        ]
        counted = await told(client, "execute", program="COUNT hubs AS n\nFIND nodes WHERE degree > 99 AS none")
        elsewhere = await told(client, "execute", program="COUNT hubs AS n", session="other")
        more = await told(client, "page", **ran["value"]["next"])
        return ran, counted, elsewhere, more, await told(client, "state_show", key="hubs", limit=1, evidence=True)

    ran, counted, elsewhere, more, kept = run(work)
    assert ran["status"] == "success" and ran["changed"] and [c["status"] for c in ran["commands"]] == ["success"] * 3
    assert ran["value"]["total"] == 7 and ran["value"]["shown"] == 2
    assert len(more["page"]["value"]) == 5 and "next" in more["page"] and more["page"]["next"] is None
    assert counted["commands"][0]["count"] == 7 and counted["status"] == "empty"
    assert elsewhere["diagnostics"][0]["code"] == "GASL050", "another session knows no hubs"
    assert kept["page"]["total"] == 7 and kept["evidence"][0][0]["kind"] == "graph"


def test_a_plan_with_an_error_is_refused_before_anything_runs() -> None:
    async def work(client: Client) -> Any:
        result = await client.call_tool(
            "run_plan", {"plan": {**PLAN, "commands": [*PLAN["commands"], "COUNT hub AS n"]}}
        )
        return result.is_error, result.structured_content, await told(client, "state_show")

    failed, refused, state = run(work)
    assert failed and refused["status"] == "refused" and not refused["commands"]
    assert refused["diagnostics"][0]["edits"][0]["text"] == "hubs"
    assert state["keys"] == [] and state["steps"] == 0


@pytest.mark.slow
def test_the_state_is_compared_and_taken_back() -> None:
    async def work(client: Client) -> Any:
        ran = await told(client, "run_plan", plan=PLAN)
        first = (await told(client, "state_show"))["history"][-1]["state"]
        differences = await told(client, "state_diff", before=first)
        back = await told(client, "rollback", to=first[:12])
        now = await told(client, "state_show")
        undone = await told(client, "rollback", to=back["before"])
        return ran, first, differences, back, now, undone, await told(client, "rollback", to="beef")

    ran, first, differences, back, now, undone, nothing = run(work)
    assert differences["differences"]["value"][0]["key"] == "hubs"
    assert back["changed"] and back["hash"] == first == now["hash"] and now["keys"][0]["size"] == 0
    assert now["history"][0]["part"] == "rollback"
    assert undone["hash"] == ran["state"]
    assert nothing["error"]["kind"] == "not-found"


@pytest.mark.slow
def test_a_script_asks_the_servers_model_and_the_spending_is_told() -> None:
    script = '(mood)=EACH({(input)}, LLM("glad or sad? {(item)}", type="glad" | "sad"))\n(final)=EXPR("len(mood)", mood={(mood)})'
    found = call("run_lwt", {"model": Scripted("glad")}, script=script, input=["a", "b", "c"])
    assert found["status"] == "complete" and found["value"]["value"] == 3 and found["spent"]["calls"] == 3
    assert [step["status"] for step in found["steps"]] == ["done", "done"]


@pytest.mark.parametrize("lenient", [False, True])
def test_a_script_that_wants_the_input_is_refused_without_one(lenient: bool) -> None:
    model = Scripted("yes")
    script = '(a)=LLM("one")\n(final)=LLM("{(a)} {(input)}")'
    told = call("run_lwt", {"model": model}, script=script, lenient=lenient)
    assert (told["status"], [each["code"] for each in told["diagnostics"]], model.calls) == (
        "refused",
        ["LWT023"],
        [],
    )


@pytest.mark.slow
def test_a_script_works_on_the_graph_and_the_state() -> None:
    async def work(client: Client) -> Any:
        script = '(hubs)=GASL("""FIND nodes WHERE degree > 20 AS hubs\nDECLARE hubs AS LIST\nUPDATE hubs WITH hubs""")\n(final)=EXPR("len(hubs)", hubs={(hubs)})'  # noqa: E501
        return await told(client, "run_lwt", script=script), await told(client, "state_show")

    ran, state = run(work)
    assert ran["value"]["value"] == 2 and state["keys"][0]["size"] == 2


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ('(final)=GASL(file="/etc/passwd")', "MCP003"),
        ('(final)=LLM(file="/etc/passwd")', "MCP003"),
        ('(final)=CONST(file="/etc/passwd")', "MCP003"),
        ('(final)=LLM("x", schema_file="/etc/passwd")', "MCP003"),
        ('(final)=EACH({(input)}, LLM(file="/etc/passwd"))', "MCP003"),
        ('(final)=SEED(file="x.seed.json", context={(input)})', "MCP002"),
        ('(final)=RUN(file="x.lwt")', "MCP002"),
        ('(final)=CALL("system", text="ls")', "MCP002"),
        ('(final)=EACH({(input)}, CALL("system", text={(item)}))', "MCP002"),
        ('(final)=EACH({(input)}, RUN(file="x.lwt", input={(item)}))', "MCP002"),
        ('(final)=PLUGGED("x")', "LWT"),
    ],
)
def test_a_script_reads_no_files_and_no_plugins(script: str, code: str) -> None:
    found = call("run_lwt", script=script, input={})
    assert found["status"] == "refused"
    assert any(each["code"].startswith(code) and each["severity"] == "error" for each in found["diagnostics"])


@pytest.mark.slow
def test_a_seed_is_checked_and_computed_without_a_model() -> None:
    async def work(client: Client) -> Any:
        rows = [{"extraction": {"level": level, "minutes": 3}} for level in ("loud", "loud", "quiet")]
        return (
            await told(client, "seed_check", seed=SEED, contexts=CONTEXTS),
            await told(client, "seed_compute", seed=SEED, extractions=rows, context={"kind": "bar"}, explain="VERDICT", sensitivity=True),
            await told(client, "seed_compute", seed={**SEED, "output": ["SCOR"]}, extractions=rows),
            await told(client, "seed_compute", seed=SEED, extractions=[{"nothing": 1}]),
            await told(client, "seed_check", seed=SEED, contexts=[{"reviews": 3}]),
        )  # fmt: skip

    checked, computed, refused, no_rows, no_contexts = run(work)
    assert checked["ok"] and checked["outputs"] == ["SCORE", "VERDICT"] and checked["form"] == "002"
    assert computed["outputs"]["value"] == {"SCORE": 0.5, "VERDICT": "loud"} and computed["status"] == "complete"
    assert computed["explanation"]["name"] == "VERDICT" and computed["sensitivity"]
    assert refused["status"] == "refused" and refused["diagnostics"]
    assert no_rows["error"]["kind"] == "arguments" and no_contexts["error"]["kind"] == "arguments"


@pytest.mark.parametrize(
    ("tool", "arguments", "pointer"),
    [
        ("check", {"language": "gasl", "txt": "x"}, "/text"),
        ("check", {"language": "sql", "text": "x"}, "/language"),
        ("execute", {"program": 3}, "/program"),
        ("state_show", {"limit": 0}, "/limit"),
        ("page", {}, "/handle"),
        ("seed_compute", {"seed": {}, "extractions": {}}, "/extractions"),
    ],
)
def test_wrong_arguments_are_told_with_their_place(tool: str, arguments: dict[str, Any], pointer: str) -> None:
    found = call(tool, **arguments)
    assert found["error"]["kind"] == "arguments" and pointer in [fault["pointer"] for fault in found["error"]["faults"]]


def test_what_is_not_offered_is_no_tool_and_says_why() -> None:
    async def work(client: Client) -> Any:
        names = {tool.name for tool in (await client.list_tools()).tools}
        with pytest.raises(MCPError, match="schema is not offered: this server has no graph"):
            await client.call_tool("schema", {})
        with pytest.raises(MCPError, match="unknown tool run_plam; did you mean"):
            await client.call_tool("run_plam", {})
        return names

    assert run(work, graph=None) == set(TOOLS) - {"schema", "run_plan", "execute", "session"}


def test_a_handle_that_is_none_is_told() -> None:
    assert call("page", handle="p_nothing")["error"]["kind"] == "not-found"


@pytest.mark.slow
def test_resources_and_prompts_are_there_and_hold_no_file_but_ours(tmp_path: Path) -> None:
    async def work(client: Client) -> Any:
        uris = [resource.uri for resource in (await client.list_resources()).resources]
        texts = {uri: (await client.read_resource(uri)).contents[0].text for uri in uris if "reference/mcp" not in uri}
        for uri in (
            "knotwork://reference/../../pyproject",
            "file:///etc/passwd",
            "knotwork://language/nothing",
            "knotwork://state/none",
            "",
        ):
            with pytest.raises(MCPError):
                await client.read_resource(uri)
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        said = []
        for name, prompt in prompts.items():
            given = {each.name: "plan" if each.name == "language" else "```\nq?" for each in prompt.arguments}
            said.append((await client.get_prompt(name, given)).messages[0].content.text)
        with pytest.raises(MCPError, match="question is missing"):
            await client.get_prompt("plan", {})
        return texts, prompts, said

    texts, prompts, said = run(work)
    assert all(texts.values()) and "knotwork://language/gasl" in texts and json.loads(texts["knotwork://schema/plan"])
    assert set(prompts) == {"plan", "script", "seed", "repair"}
    assert all("````\n```\nq?\n````" in text for text in said), "what comes from outside stands between fences"


def test_the_page_of_the_reference_names_every_tool_with_its_arguments_and_every_resource_and_prompt() -> None:
    page = page_of("mcp")
    for name, tool in TOOLS.items():
        row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
        assert [argument for argument in tool.takes.model_fields if argument not in row] == [], name
    assert [prompt.name for prompt in PROMPTS if f"| `{prompt.name}` |" not in page] == []
    for names in (CARDS, SCHEMAS, GRAMMARS):
        assert [name for name in names if name not in page] == []
    assert f"about {Limits().characters:,} characters" in page and f"latest {ResultStore().most}" in page.replace(
        "\n", " "
    )
    assert f"({Limits().seconds:g} s)" in page


@pytest.mark.slow
def test_an_on_behind_a_command_that_failed_is_for_it() -> None:
    failing = "FIND nodes LIMIT 3 AS some\nCLASSIFY some BY 'mood' INTO ('a', 'b') AS moods\n"

    async def work(client: Client) -> Any:
        handled = await told(client, "execute", program=f"{failing}ON ERROR moods THEN COUNT some AS n")
        return handled, await told(client, "execute", program=f"{failing}COUNT some AS n")

    handled, stopped = run(work)
    assert [ran["status"] for ran in handled["commands"] if "." not in ran["step"]] == ["success", "error", "success"]
    assert [ran["status"] for ran in stopped["commands"]] == ["success", "error"] and stopped["planned"] == 3


def test_a_fault_of_ours_is_told_under_a_number_and_without_a_word_of_the_clients(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("the secret of a client")

    monkeypatch.setattr("knotwork.runtime.api.shared_workspace.ClientChecks.program", broken)
    found = call("check", language="gasl", text="FIND nodes AS x")
    number = found["error"]["message"].split()[2]
    assert found["error"]["kind"] == "internal" and number in caplog.text
    assert "RuntimeError at " in caplog.text and " broken" in caplog.text, "where it was stands in the log"
    assert "secret" not in caplog.text + json.dumps(found) and "Traceback" not in caplog.text


def test_the_history_is_of_the_whole_state() -> None:
    error = call("state_show", key="hubs", history=True)["error"]
    assert (
        error["kind"] == "arguments"
        and error["message"] == "history and key can't be combined, because the history covers the entire state"
    )


WITH_PARAMETERS = ["PARAM least INT", "FIND nodes WHERE degree >= ${least} AS hubs"]


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["run_plan", "execute"])
def test_parameters_of_a_program_are_an_argument(tool: str) -> None:
    plan = {"plan_id": "p", "why": "w", "commands": WITH_PARAMETERS}
    text = {"plan": plan} if tool == "run_plan" else {"program": "\n".join(WITH_PARAMETERS)}

    async def work(client: Client) -> None:
        found = await told(client, tool, **text, parameters={"least": 20})
        assert found["status"] == "success" and found["value"]["total"] == 2
        missing = await told(client, tool, **text)
        assert missing["status"] == "binding_failure", "a value is that of one call"
        assert missing["commands"][0]["message"] == "the parameter least has no value"
        unknown = await told(client, tool, **text, parameters={"lest": 20})
        assert unknown["error"]["kind"] == "arguments" and unknown["error"]["hint"] == "did you mean least?"
        wrong = await told(client, tool, **text, parameters={"least": "20"})
        assert wrong["status"] == "schema_mismatch"

    run(work)


@pytest.mark.slow
@pytest.mark.parametrize("language", ["gasl", "plan", "lwt", "seed"])
def test_a_language_alone_is_explained_by_its_card(language: str) -> None:
    from knotwork.runtime.interfaces.mcp.resources import card

    assert call("explain", language=language)["card"] == card(language)
    assert call("explain")["error"]["hint"] == "give a text with its language, only a language, or a code"
