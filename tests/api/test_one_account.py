"""Calls, tokens and cost of one run, failed work included: every view of it has the same figures."""

import asyncio
import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from knotwork import lwt
from support.agents import connected, told
from support.alone import alone_in
from support.command import call
from support.served import served

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

    async def over_mcp() -> dict[str, Any]:
        with served(tmp_path / "again", "--ignores-format") as other:
            async with connected(spec=other.spec) as client:
                return await told(client, "run_lwt", script=SCRIPT)

    (tmp_path / "again").mkdir()
    found = asyncio.run(over_mcp())
    assert (found["spent"]["calls"], total(found["spent"])) == (CALLS, tokens), json.dumps(found)[:2_000]
