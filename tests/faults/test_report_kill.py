"""A ranking that is killed with -9: its log has a beginning that can be told, and what is gone on with is told behind it."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from knotwork.adapters.llm import Completion, Usage
from knotwork.runtime.api import planner
from knotwork.runtime.api.reports import read_account, render_run
from support.command import environment
from support.folders import TESTS
from support.pages import Page

REQUESTS = ["one", "two", "three"]
ITEMS = [{"item_name": "Milk"}, {"item_name": "Tea"}]

_CHILD = """
import asyncio, os, signal, sys
from knotwork.runtime.api import planner
from test_report_kill import ITEMS, REQUESTS, Model

class Dying(Model):
    async def generate(self, prompt, **options):
        if len(self.prompts) + 1 == int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().generate(prompt, **options)

asyncio.run(planner.rank_many(ITEMS, REQUESTS, Dying(), record=True, max_concurrency=1))
"""


class Model:
    """Plans and answers; each call has seven tokens."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    async def generate(self, prompt: str, **options: object) -> Completion:
        self.prompts.append(prompt)
        plan = '===LWT_SKELETON===\n(final)=LLM("Which?")\n===MESSAGE===\nREMAINING: 1\nNEEDS_EXPANSION: no'
        return Completion(plan if "Analyze the user request" in prompt else "1", usage=Usage(5, 2))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize("last", [1, 2, 5])
def test_a_killed_ranking_is_told_and_gone_on_with(tmp_path: Path, last: int) -> None:
    child = subprocess.run(
        [sys.executable, "-c", _CHILD, str(last)], cwd=tmp_path, timeout=60, capture_output=True,
        env=environment(tmp_path, PYTHONPATH=os.pathsep.join(map(str, (Path(__file__).parent, TESTS, *filter(None, sys.path))))),
    )  # fmt: skip
    assert child.returncode == -9, child.stderr.decode()
    (folder,) = (tmp_path / "knotwork" / "runs").iterdir()
    before = read_account(folder)
    assert (before.status, before.totals.calls, before.totals.tokens) == (
        "running or interrupted",
        last - 1,
        7 * (last - 1),
    )
    page = Page(render_run(before)).text
    assert "no answer before the run ended" in page
    assert "interrupted" in page
    rest = Model()
    ranked = asyncio.run(planner.rank_many(ITEMS, REQUESTS, rest, resume=folder, max_concurrency=1))
    assert [each.ranking for each in ranked] == [(2,)] * 3
    after = read_account(folder)
    assert (after.status, after.attempts, after.totals.calls) == ("complete", 2, 6)
    assert len(rest.prompts) == 6 - (last - 1), "nothing that was finished is asked again"
    assert [section.result for section in after.sections.values()] == ["2"] * 3
    assert json.loads((folder / "events.jsonl").read_bytes().splitlines()[0])["event"] == "log.opened"
