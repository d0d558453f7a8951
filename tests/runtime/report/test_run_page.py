"""The page of a run: everything that happened is on it, its figures add up, and nothing of it is more than text."""

import asyncio
import json
from pathlib import Path

import pytest
from attrs import asdict
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.llm import Completion, Usage
from knotwork.adapters.llm.middleware import Own
from knotwork.runtime.api import planner, seed
from knotwork.runtime.api.reports import Account, Figures, read_account, render_run, render_state
from knotwork.runtime.events import Events
from knotwork.runtime.loops.compile.compile_store import CompileRequest
from knotwork.runtime.loops.compile.compile_store import start as start_compilation
from knotwork.runtime.loops.compile.compiler import compile_task
from knotwork.runtime.models.caller import Caller
from knotwork.runtime.report.narrative import add_events
from knotwork.runtime.results import Trace
from knotwork.runtime.runs.event_log import LOG, logged
from support.compiling import GOOD, TASK, Author, dumb, written
from support.pages import Page
from support.traversing import Planning, asked, plan

PLAN = "===LWT_SKELETON===\n(final)=LLM({})\n===MESSAGE===\nREMAINING: 1\nNEEDS_EXPANSION: {}"
ITEMS = [{"item_name": "Milk", "tv": True}, {"item_name": "Tea", "tv": False}]


class Ranker(Own):
    """Plans with a fault first, then well; expands by one tool call that works and one that does not; each call costs a cent."""

    def __init__(self, expand: str = "yes") -> None:
        self.expand = expand

    async def generate(self, prompt: str, **options: object) -> Completion:
        if "Check if the LWT skeleton" in prompt:
            text = 'read("items[9]")' if "items[9]" not in prompt else "done()"
        elif "Analyze the user request" in prompt:
            good = '"Which of {(input)}[\\"items\\"] fits?"'.replace("\\", "")
            text = PLAN.format(
                good if "[WHAT IS WRONG]" in prompt or "{(inptu)}" in prompt else '"{(inptu)}"', self.expand
            )
        else:
            text = "1"
        return Completion(text, usage=Usage(20, 5), cost=0.01)

    async def aclose(self) -> None:
        pass


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def ranked(home: Path, *requests: str, model: Own | None = None, **settings: object) -> Path:
    """Rank, and return the run's folder."""
    asyncio.run(planner.rank_many(ITEMS, requests or ["quiet"], model or Ranker(), record=True, **settings))
    return max((home / "runs").iterdir(), key=lambda path: path.stat().st_mtime_ns)


def compiled(author: Author, **more: object) -> Path:
    """Compile the task of the docs, and return the run's folder."""
    request, events = CompileRequest(TASK, "", 3), Events()
    recorder = start_compilation(request, model="author", name="compile allergy.md")
    with logged(events, recorder.path):
        made = asyncio.run(compile_task(request, Caller(author, {}, events, Trace(), 1), **more))
    recorder.ended(made)
    return recorder.path


def last_record(folder: Path) -> dict:
    return json.loads((folder / "run.jsonl").read_text().splitlines()[-1])


def summed(account: Account) -> Figures:
    total = Figures()
    for section in account.sections.values():
        for phase in section.phases.values():
            total.add(phase.figures)
    return total


def same(one: Figures, other: Figures) -> None:
    """Assert that figures are the same; sums of fractions depend on their order in the last place."""
    assert asdict(one) == pytest.approx(asdict(other), nan_ok=False) if one.cost is not None else one == other


def agrees(folder: Path) -> Account:
    """Return the account, whose phases must come to what the run itself counted."""
    account, end = read_account(folder), last_record(folder)
    totals = account.totals
    same(summed(account), totals)
    assert [totals.prompt_tokens, totals.completion_tokens] == end["usage"]
    assert totals.calls == end["calls"]
    assert totals.cost == (pytest.approx(end["cost"]) if end["cost"] is not None else None)
    by_name = Figures()
    for _, figures, _ in account.by_phase:
        by_name.add(figures)
    same(by_name, totals)
    return account


# Rankings


def test_a_ranking_tells_requests_phases_prompts_repairs_and_tools(home: Path) -> None:
    account = agrees(ranked(home, "quiet", "with TV"))
    assert [(each.label, each.title, each.result) for each in account.sections.values()] == [
        ("R00", "quiet", "2"), ("R01", "with TV", "2"),
    ]  # fmt: skip
    for section in account.sections.values():
        assert list(section.phases) == ["plan", "expand", "execute"]
        assert [phase.status for phase in section.phases.values()] == ["done"] * 3
        assert [phase.figures.calls for phase in section.phases.values()] == [2, 2, 1]
        assert [entry.kind for entry in section.phases["plan"].entries] == ["call", "repair", "call"]
        assert [entry.kind for entry in section.phases["expand"].entries] == ["call", "tool", "call", "tool"]
    page = Page(render_run(account))
    for told in (
        "A ranking", "2 requests", "R00: quiet", "R01: with TV", "Ranking: 2", "20 + 5 tokens · $0.0100",
        "Analyze the user request and rank items.", "Sent back with its errors (repair 1)", "inptu", "^",
        'read("items[9]")', "refused", "done()", "The script", "The items", "$0.1000",
    ):  # fmt: skip
        assert told in page.text, told


def test_a_request_that_needs_no_expansion_is_passed_through(home: Path) -> None:
    account = agrees(ranked(home, model=Ranker("no")))
    assert account.sections[0].phases["expand"].status == "pass-through"
    assert account.sections[0].phases["expand"].figures.calls == 0
    assert account.subject == "quiet"


def test_a_run_that_was_gone_on_with_counts_what_all_attempts_cost(home: Path) -> None:
    folder = ranked(home, "quiet", "with TV", max_calls=3, max_concurrency=1)
    first = read_account(folder)
    assert first.totals.calls == 3
    asyncio.run(planner.rank_many(ITEMS, ["quiet", "with TV"], Ranker(), resume=folder))
    account = read_account(folder)
    assert (account.attempts, account.status) == (2, "complete")
    assert account.totals.calls == 3 + last_record(folder)["calls"]
    same(summed(account), account.totals)
    assert "in 2 attempts" in Page(render_run(account)).text


def test_without_the_log_the_records_are_told(home: Path) -> None:
    folder = ranked(home, "quiet", "with TV")
    with_log = agrees(folder)
    (folder / LOG).unlink()
    account = agrees(folder)
    assert not account.logged
    assert [each.result for each in account.sections.values()] == [each.result for each in with_log.sections.values()]
    assert "its prompts are not known" in Page(render_run(account)).text


@pytest.mark.parametrize("lines", range(1, 22, 3))
def test_a_run_that_was_killed_is_told_up_to_there(home: Path, lines: int) -> None:
    folder = ranked(home)
    kept = (folder / LOG).read_bytes().splitlines(keepends=True)
    (folder / LOG).write_bytes(b"".join(kept[:lines]) + kept[lines][:20])
    records = (folder / "run.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "run.jsonl").write_bytes(b"".join(records[:2]))
    account = read_account(folder)
    assert account.status == "running or interrupted"
    page = Page(render_run(account)).text
    opened = json.loads(kept[lines - 1])["event"]
    if opened == "call.started":
        assert "no answer before the run ended" in page
    if opened not in ("log.opened", "phase.finished"):
        assert "interrupted" in page


# Compilations


@pytest.mark.slow
def test_a_compilation_tells_its_phases_what_was_mended_and_the_seed() -> None:
    author = Author({"graph": f"```json\n{written(GOOD['graph'])}\n```"}, dumb)
    account = agrees(compiled(author))
    (section,) = account.sections.values()
    assert list(section.phases) == ["conditions", "graph", "seed"]
    assert account.status == "complete"
    page = Page(render_run(account))
    for told in (
        "A compilation of a task to a seed", "allergy.md", "The task", "The seed", "Fixed without a call", "first of three steps",
    ):  # fmt: skip
        assert told in page.text, told


@pytest.mark.slow
def test_a_repair_of_a_seed_shows_what_was_written_and_the_fault_drawn() -> None:
    account = agrees(
        compiled(Author({"conditions": '{"conditions": 3}'}, lambda answer, told: written(GOOD["conditions"])))
    )
    entries = next(iter(account.sections.values())).phases["conditions"].entries
    repair = next(entry for entry in entries if entry.kind == "repair")
    assert [block.label for block in repair.blocks] == ["Errors", "The text"]
    assert "error[" in repair.blocks[0].text and "^" in repair.blocks[0].text
    assert '{"conditions": 3}' in repair.blocks[1].text


@pytest.mark.slow
def test_a_compilation_from_python_is_kept_where_it_is_asked_for(home: Path) -> None:
    heard: list[str] = []
    events = Events()
    events.subscribe(lambda event: heard.append(event.name))
    for more in ({}, {"events": events}):
        assert seed.compile_sync(TASK, llm=Author(), model="author", record=True, **more).status == "done"
    folders = sorted((home / "runs").iterdir())
    assert [list(next(iter(agrees(folder).sections.values())).phases) for folder in folders] == [
        ["conditions", "graph", "seed"]
    ] * 2
    assert "phase.finished" in heard
    seed.compile_sync(TASK, llm=Author(), model="author")
    assert len(list((home / "runs").iterdir())) == 2


def test_a_compilation_that_failed_says_why() -> None:
    account = agrees(compiled(Author({"graph": "no"})))
    assert (account.status, "computation graph" in account.reason) == ("failed", True)
    assert next(iter(account.sections.values())).phases["graph"].status == "failed"


# Questions


def test_a_question_tells_steps_hypotheses_commands_and_its_answer(tmp_path: Path) -> None:
    state = tmp_path / "state"
    model = Planning(
        plan("UPDATE nowhere WITH nothing"), plan("FIND nodes WHERE age > 30 AS old", "DECLARE k AS LIST", "UPDATE k WITH old"),
        json.dumps({"complete": "The old ones.", "evidence": []}),
    )  # fmt: skip
    asked(model, state=state)
    (folder,) = (state / "asks").iterdir()
    account = agrees(folder)
    assert [(key, list(each.phases)) for key, each in account.sections.items()] == [
        (1, ["hypothesize and plan", "execute"]), (2, ["hypothesize and plan"]),
    ]  # fmt: skip
    first = account.sections[1]
    kinds = [entry.kind for entry in first.phases["execute"].entries]
    assert kinds == ["plan", "command", "command", "command"]
    page = Page(render_run(account)).text
    for told in (
        "A question about a graph", "Who writes?", "The old ones.", "Hypothesis: it is so", "Decision: start", "Decision: terminate",
        "FIND nodes WHERE age > 30 AS old", "Added “old” to “k”", "100 + 10 tokens",
    ):  # fmt: skip
        assert told in page, told
    (folder / LOG).unlink()
    again = agrees(folder)
    assert "FIND nodes WHERE age > 30 AS old" in Page(render_run(again)).text


def test_a_search_tells_its_branches_and_draws_its_tree(tmp_path: Path) -> None:
    state = tmp_path / "state"

    def said(prompt: str) -> str:
        return json.dumps({"reason": "so far", "score": 0.9 if "The old" in prompt else 0.3})

    model = Planning(
        plan("DECLARE k AS LIST", "FIND nodes WHERE age > 30 AS old", "UPDATE k WITH old"),
        json.dumps({"complete": "The old ones.", "evidence": []}), answers=said,
    )  # fmt: skip
    made = asked(model, state=state, search="beam")
    assert made.answer == "The old ones."
    (folder,) = (state / "asks").iterdir()
    account = agrees(folder)
    (section,) = account.sections.values()
    assert {"hypothesize and plan", "judge states", "execute"} == set(section.phases)
    page = Page(render_run(account))
    assert "svg" in page.tags
    for told in ("The tree of the search", "Branch of state 0 to state 1", "value 0.30", "answers: The old ones."):
        assert told in page.text, told
    (folder / "tree.json").write_text("[]")
    assert "svg" not in Page(render_run(read_account(folder))).tags


@pytest.mark.slow
def test_the_page_of_a_state_tells_its_questions(tmp_path: Path) -> None:
    state = tmp_path / "state"
    for question in ("Who writes?", "Who draws?"):
        asked(Planning(json.dumps({"complete": f"{question} Ada.", "evidence": []})), question, state)
    accounts = [read_account(folder) for folder in (state / "asks").iterdir()]
    page = Page(render_state({"variables": {}}, None, accounts, 3))
    for told in ("Who writes? Ada.", "Who draws? Ada.", "and 3 earlier ones"):
        assert told in page.text, told
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))


# What is said is text, whatever it says


HOSTILE = "</pre></details><script>alert(1)</script><img src=x onerror=alert(1)>\"'&{{ 7 * 7 }}\x1b[2J\u202e\ud800"


def events_saying(text: str) -> list[dict]:
    """Return a log in which every text is ``text``."""
    found = {
        "code": text,
        "severity": text,
        "message": text,
        "file": text,
        "span": {"start": 0, "end": 9},
        "hints": [text],
        "edits": [],
    }
    called = {"step": text, "item": None, "request": 0}
    return [
        {"event": "log.opened", "time": 1.0},
        {"event": "phase.started", "loop": "rank", "phase": text, "detail": text, "request": 0},
        {"event": "call.started", "prompt": text, **called},
        {"event": "call.retried", "kind": text, "attempt": 1, "reason": text, **called},
        {"event": "call.finished", "text": text, "prompt_tokens": 1, "completion_tokens": 1, "cost": 0.1, "seconds": 1.0, "error": text,
         **called},
        {"event": "repair.asked", "loop": "rank", "phase": text, "attempt": 1, "written": text, "diagnostics": [found], "request": 0},
        {"event": "draft.mended", "code": text, "message": text, "how": text},
        {"event": "tool.called", "call": text, "ok": False, "result": text, "iteration": 1, "request": 0},
        {"event": "command.started", "plan": text, "step": text, "command": text},
        {"event": "command.finished", "plan": text, "step": text, "status": text, "seconds": 0.1, "message": text},
        {"event": "decision.made", "step": 1, "decision": text, "why": text, "by": text, "answer": text},
        {"event": "hypothesis.formed", "step": 1, "hypothesis": text, "plan": text, "commands": [text], "confidence": 1.0},
        {"event": "branch.closed", "node": 0, "status": text, "outcome": text, "message": text},
        {"event": "step.finished", "step": text, "status": "failed", "reason": text, "request": 0},
        {"event": "iteration.finished", "step": text, "iteration": 1, "score": None, "error": text},
        {"event": "budget.reached", "step": text, "message": text},
        {"event": "warning", "step": text, "message": text},
        {"event": "phase.finished", "loop": "rank", "phase": text, "status": text, "detail": text, "seconds": 1.0, "request": 0},
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["rank", "compile", "ask", "script", "seed", "other"])
@pytest.mark.parametrize("searched", [False, True])
def test_nothing_that_is_said_becomes_more_than_text(kind: str, searched: bool) -> None:
    account = Account(kind, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    add_events(account, events_saying(HOSTILE), searched=searched)
    account.evidence.append((HOSTILE, HOSTILE, HOSTILE))
    account.documents.append(account.space.block(HOSTILE, HOSTILE))
    html = render_run(account)
    html.encode()
    page = Page(html)
    assert not page.tags & {"script", "img", "iframe", "link", "form", "object"}
    names = {name for _, name, _ in page.attributes}
    assert "src" not in names and not any(name.startswith("on") for name in names)
    assert all(value.startswith("#") for _, name, value in page.attributes if name == "href")
    assert "\x1b" not in html and "\u202e" not in html
    assert "{{ 7 * 7 }}" in page.text
    assert "default-src 'none'" in html


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(st.dictionaries(
    st.sampled_from(["step", "item", "request", "phase", "loop", "text", "cost", "prompt_tokens", "seconds", "time", "diagnostics",
                     "commands", "written", "cut", "attempt", "status", "value", "child", "node", "count", "plan", "command"]),
    st.one_of(st.none(), st.integers(-3, 9_999), st.floats(allow_nan=False), st.text(max_size=5), st.lists(st.just({"span": 1})),
              st.dictionaries(st.text(max_size=2), st.integers(), max_size=1)), max_size=6,
), max_size=12), st.sampled_from(["rank", "ask", "compile", "script"]), st.randoms(use_true_random=False))  # fmt: skip
def test_a_log_that_was_changed_by_hand_is_told_as_far_as_it_goes(entries: list[dict], kind: str, random) -> None:
    names = [each["event"] for each in events_saying("")]
    account = Account(kind, "r", "p", "s")
    add_events(account, [{"event": random.choice(names), **entry} for entry in entries])
    Page(render_run(account))


@pytest.mark.slow
def test_a_page_has_a_bound_whatever_the_run_has() -> None:
    events: list[dict] = []
    for item in range(2_000):
        called = {"step": "a", "item": item, "request": 0}
        events.append({"event": "call.started", "prompt": "p" * 50_000, **called})
        events.append(
            {"event": "call.finished", "text": "t" * 50_000, "prompt_tokens": 7, "completion_tokens": 1, **called}
        )
    account = Account("script", "r", "p", "s")
    add_events(account, events)
    assert account.totals.prompt_tokens == 14_000
    page = render_run(account)
    assert len(page) < 8_000_000
    assert "and 1,600 more, which the run" in page
    assert "10,000 more characters are left out here" in page
