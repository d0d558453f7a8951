"""Calls, tokens and cost of one run, failed work included: every view of it has the same figures."""

import asyncio
import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from knotwork import answers, lwt, planner, seed
from knotwork.adapters.llm.middleware import as_client
from knotwork.runtime.api import runs
from knotwork.runtime.api.ask import ask_sync
from knotwork.runtime.lwt import runner
from support.agents import connected, told
from support.alone import alone_in
from support.cafe_seed import CONTEXTS, SEED, write_seed
from support.command import call
from support.served import served
from support.web import served_app

SCRIPT = """\
(items)=CONST(["one", "two"])
(each)=EACH({(items)}, LLM("Say {(item)}"))
(wrong)=LLM("Pick {(each)}", type="yes" | "no", retries=0)
(final)=LLM("End {(wrong)}")
"""
"""Two items that are answered, a step that is asked once more in vain, a step that is skipped."""
CALLS = 4


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return alone_in(tmp_path, monkeypatch)


def of_report(page: Path) -> tuple[int, int]:
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.read_text(encoding="utf-8"))).split())
    calls, tokens = re.search(r"([\d,]+) calls? of a model ([\d,]+) tokens", text).groups()
    return int(calls.replace(",", "")), int(tokens.replace(",", ""))


def total(usage: dict[str, Any]) -> int:
    return usage["prompt_tokens"] + usage["completion_tokens"]


@pytest.mark.slow
def test_a_failed_run_has_the_same_figures_everywhere(folder: Path, tmp_path: Path) -> None:
    (folder / "s.lwt").write_text(SCRIPT, encoding="utf-8")
    with served(tmp_path, "--ignores-format") as server:
        ran = call("run", "s.lwt", "--llm", server.spec, "--no-cache", "--price", "1/2", "--format", "json")
        assert ran.code == 1, ran.err
        usage = ran.json["usage"]
        assert usage["calls"] == CALLS == server.asked.total()
        tokens, cost = total(usage), usage["cost"]
        assert cost == pytest.approx((usage["prompt_tokens"] + 2 * usage["completion_tokens"]) / 1e6)
        line = next(line for line in ran.err.splitlines() if line.startswith("failed:"))
        assert f"{CALLS} calls · {usage['prompt_tokens']:,} + {usage['completion_tokens']:,} tokens" in line

        (listed,) = call("runs", "--format", "json").json
        shown = call("runs", "show", listed["run"], "--format", "json").json
        assert (listed["tokens"], shown["tokens"]) == (tokens, tokens)
        assert sum(sum(step.get("usage", ())) for step in shown["steps"].values()) == tokens

        for events in (True, False):  # a run that was kept without its events
            if not events:
                (Path(listed["path"]) / "events.jsonl").unlink()
            assert call("report", listed["run"], "--output", "r.html").code == 0
            assert of_report(folder / "r.html") == (CALLS, tokens)

        run = lwt.run_sync(SCRIPT, llm=server.spec, price=(1, 2))
        assert (run.calls, run.usage.total, run.cost) == (CALLS, tokens, pytest.approx(cost))

        with served_app(tmp_path, "--no-cache", llm=server.spec) as address, address.client() as client:
            document = client.post("/scripts/run", json={"script": SCRIPT}).json()["run"]
        assert (document["usage"]["calls"], total(document["usage"])) == (CALLS, tokens)

    async def over_mcp() -> dict[str, Any]:
        with served(tmp_path / "again", "--ignores-format") as other:
            async with connected(spec=other.spec) as client:
                return await told(client, "run_lwt", script=SCRIPT)

    (tmp_path / "again").mkdir()
    found = asyncio.run(over_mcp())
    assert (found["spent"]["calls"], total(found["spent"])) == (CALLS, tokens), json.dumps(found)[:2_000]


def test_estimated_tokens_are_marked_where_a_stored_run_is_shown(folder: Path) -> None:
    script = lwt.parse('(a)=LLM("Say one")\n(b)=LLM("After {(a)}")\n')
    record = runs.start(script, input=None, model="mine", options={"steps": 2})
    asyncio.run(runner.run(script, llm=as_client(lambda prompt: "one"), record=record))
    (listed,) = call("runs", "--format", "json").json
    shown = call("runs", "show", record.run_id, "--format", "json").json
    assert (listed["tokens"], listed["estimated"], shown["tokens"], shown["estimated"]) == (7, True, 7, True)
    assert "7 (estimated)" in call("runs").out
    assert re.findall(r"(\d) \(estimated\)", call("runs", "show", record.run_id).out) == ["3", "4"]


Account = tuple[int, int, float | None]
"""Calls, tokens and cost."""


def account(result: Any) -> Account:
    return result.calls, result.usage.total, result.cost


def failed_answer(spec: str) -> Account:
    with pytest.raises(answers.AnswerFailed) as failed:
        answers.generate_answer_sync("Explain tides", eval_crit="Names the moon", iter_max=2, model=spec, price=(1, 2))
    return account(failed.value.result)


def seed_results(spec: str) -> Account:
    results = list(seed.run_many_sync(seed.load(SEED), CONTEXTS, llm=spec, price=(1, 2)))
    return (
        sum(each.calls for each in results),
        sum(each.usage.total for each in results),
        sum(each.cost or 0 for each in results),
    )


LOOPS: dict[str, tuple[tuple[str, ...], Callable[[str], Account]]] = {
    "rank": (
        ("rank", "items.json", "--request", "x", "--format", "json"),
        lambda spec: account(planner.rank_sync([{"name": "A"}, {"name": "B"}], "x", spec, price=(1, 2))),
    ),
    "answer": (
        ("answer", "Explain tides", "--criteria", "Names the moon", "--iter-max", "2", "--format", "json"),
        failed_answer,
    ),
    "ask": (
        ("ask", "nx:les_miserables", "Who?", "--state", "state", "--format", "json"),
        lambda spec: account(ask_sync("nx:les_miserables", "Who?", llm=spec, price=(1, 2))),
    ),
    "seed": (("seed", "run", "noise.seed.json", "cafes.jsonl", "--format", "jsonl"), seed_results),
    "compile": (
        ("seed", "compile", "task.md"),
        lambda spec: account(seed.compile_sync("Say how loud it is", spec, price=(1, 2))),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS)
def test_a_failed_loop_has_the_same_figures_everywhere(loop: str, folder: Path, tmp_path: Path) -> None:
    command, in_python = LOOPS[loop]
    (folder / "items.json").write_text('[{"name": "A"}, {"name": "B"}]', encoding="utf-8")
    (folder / "task.md").write_text("Say how loud it is", encoding="utf-8")
    write_seed(folder)
    with served(tmp_path, "--ignores-format") as server:
        ran = call(*command, "--llm", server.spec, "--no-cache", "--price", "1/2")
        calls = server.asked.total()
        prompt, completion = 11 * calls, 7 * calls  # what the server reports for each call
        tokens, cost = prompt + completion, pytest.approx((prompt + 2 * completion) / 1e6)
        assert ran.code in (1, 4) and calls > 0, ran.err
        end = next(line for line in reversed(ran.err.splitlines()) if f"{calls} calls · " in line)
        assert f"{tokens:,} tokens" in end or f"{prompt:,} + {completion:,} tokens" in end
        if loop not in ("seed", "compile"):  # a seed has a document for each context, a compilation the seed
            document = ran.json.get("metadata", ran.json)
            usage = {"cost": document.get("cost"), **document["usage"]}
            assert (usage["calls"], total(usage), usage["cost"]) == (calls, tokens, cost)
        assert in_python(server.spec) == (calls, tokens, cost)

    stored = call("runs", "--format", "json").json
    if loop == "answer":
        assert stored == []
    elif loop == "ask":  # stored in the state
        assert call("report", "state", "--output", "r.html").code == 0
        assert sum_of_steps(folder / "r.html") == (calls, tokens)
    else:
        (listed,) = stored
        shown = call("runs", "show", listed["run"], "--format", "json").json
        assert (listed["tokens"], shown["tokens"]) == (tokens, tokens)
        assert (shown.get("calls", calls), shown.get("cost", cost)) == (calls, cost)
        assert call("report", listed["run"], "--output", "r.html").code == 0
        assert of_report(folder / "r.html") == (calls, tokens)


def sum_of_steps(page: Path) -> tuple[int, int]:
    """Return the calls and tokens of all steps in the report of a question."""
    text = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page.read_text(encoding="utf-8"))).split())
    steps = re.findall(r"hypothesize and plan \w+ (\d+) calls? · ([\d,]+) tokens", text)
    return sum(int(calls) for calls, _ in steps), sum(int(tokens.replace(",", "")) for _, tokens in steps)


@pytest.mark.slow
def test_an_answer_over_http_has_the_same_figures(folder: Path, tmp_path: Path) -> None:
    with served(tmp_path, "--ignores-format") as server, served_app(tmp_path, "--no-cache", llm=server.spec) as address:
        request = {
            "instruct": "Explain tides",
            "resp_format": "",
            "eval_crit": "Names the moon",
            "iter_max": 2,
            "score_threshold": 0.8,
            "model": "m",
        }
        with address.client() as client:
            usage = client.post("/lab/generate-answer", json=request).json()["metadata"]["usage"]
        assert (usage["calls"], total(usage)) == (server.asked.total(), 18 * server.asked.total())
    assert usage["calls"] == 4
