"""`knotwork report RUN`, `knotwork runs` and `knotwork run --resume` of rankings, compilations, questions and scripts."""

import json
from pathlib import Path

import pytest
from knotwork.runtime.api.reports import read_account
from support.cafe_seed import seed_model, write_seed
from support.command import call, cassette
from support.compiling import CASSETTE, TASK
from support.folders import EXAMPLES
from support.pages import Page

RANK = (EXAMPLES / "rank" / "cafes.json", "--requests", EXAMPLES / "rank" / "requests.jsonl")
RANKER = f"replay:{EXAMPLES / 'rank' / 'answers.jsonl'}"
GRAPH, QUESTION = "nx:les_miserables", "Who meets the most people?"
ASKER = f"replay:{EXAMPLES / 'ask' / 'miserables.jsonl'}"


@pytest.fixture
def ranked() -> str:
    """The id of a ranking's run."""
    return call("rank", *RANK, "--llm", RANKER).json["run"]


@pytest.fixture
def compiled(folder: Path) -> str:
    """The id of a compilation's run."""
    (folder / "task.md").write_text(TASK, encoding="utf-8")
    told = call("seed", "compile", "task.md", "-o", "s.json", "--llm", f"replay:{CASSETTE}")
    assert told.code == 0
    (kept,) = [line for line in told.err.splitlines() if line.startswith("saved in ")]
    return kept.rpartition("/")[2]


def totals(page: str) -> list[str]:
    """Return the last line of the page's table: time, calls, tokens in and out, cost."""
    return page[page.index("<tfoot>") : page.index("</tfoot>")].replace("</td>", "|").split("|")


def test_a_ranking_is_told_by_its_id_or_its_folder(folder: Path, ranked: str) -> None:
    home = folder / "knotwork" / "runs" / ranked
    assert call("report", ranked).err == f"written to {home / 'report.html'}\n"
    page = (home / "report.html").read_text(encoding="utf-8")
    assert call("report", str(home), "-o", "-").out == page + "\n"
    assert call("report", ranked, "--output", "x.html").code == 0
    assert (folder / "x.html").read_text(encoding="utf-8") == page
    told = Page(page).text
    for text in (
        "A ranking",
        "R01: a cafe where the coffee is hot",
        "Ranking: 8, 2",
        "pass-through",
        'read("items[1].item_data")',
    ):
        assert text in told, text
    cells = totals(page)
    assert [cell.rpartition(">")[2] for cell in cells[2:5]] == ["10", "3,310", "321"]
    assert call("runs").code == 0, "a page in the folder is not part of the run"
    assert call("rank", "--resume", ranked).json["usage"]["calls"] == 0


@pytest.mark.slow
def test_a_compilation_is_kept_told_listed_and_shown(folder: Path, compiled: str) -> None:
    page = Page(call("report", compiled, "-o", "-").out).text
    for text in (
        "A compilation of a task to a seed",
        "task.md",
        "conditions",
        "Sent back with its errors (repair 1)",
        "The seed",
    ):
        assert text in page, text
    (listed,) = call("runs", "--format", "json").json
    assert listed | {"path": "", "started": "", "model": ""} == {
        "run": compiled, "kind": "compile", "script": "compile task.md", "status": "complete", "done": 3, "steps": 3, "tokens": 0,
        "path": "", "started": "", "model": "",
    }  # fmt: skip
    shown = call("runs", "show", compiled).out
    for text in ("kind     compile", "status   complete", "conditions", "graph", f"knotwork report {compiled}"):
        assert text in shown, text
    told = call("runs", "show", compiled, "--format", "json").json
    assert [phase["phase"] for phase in told["parts"][0]["phases"]] == ["conditions", "graph", "seed"]
    assert told["calls"] == 4 == sum(phase["calls"] for phase in told["parts"][0]["phases"])


def test_a_compilation_that_fails_is_kept_too(folder: Path) -> None:
    (folder / "task.md").write_text(TASK, encoding="utf-8")
    bad = cassette(folder / "m.cassette", {"first of three": "no"})
    assert call("seed", "compile", "task.md", "--repairs", "0", "--llm", bad).code == 1
    (listed,) = call("runs", "--format", "json").json
    assert (listed["status"], listed["done"]) == ("failed", 0)
    shown = call("runs", "show", listed["run"]).out
    assert "reason   conditions (step 1 of 3)" in shown
    assert "resume with: the same knotwork seed compile" in shown
    assert "conditions (step 1 of 3)" in Page(call("report", listed["run"], "-o", "-").out).text


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self").exists(), reason="there is no /proc")
def test_a_compilation_goes_on_where_it_cant_be_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "task.md").write_text(TASK, encoding="utf-8")
    monkeypatch.setenv("KNOTWORK_HOME", "/proc/nowhere")
    told = call("seed", "compile", "task.md", "--llm", f"replay:{CASSETTE}")
    assert (told.code, "\nsaved in" in told.err) == (0, False)
    assert "warning: the run can't be recorded in /proc/nowhere/runs" in told.err


def test_rankings_are_listed_and_shown_with_their_kind(ranked: str) -> None:
    (listed,) = call("runs", "--format", "json").json
    assert (listed["kind"], listed["done"], listed["steps"], listed["tokens"]) == ("rank", 3, 3, 3_631)
    assert " rank " in call("runs").out
    shown = call("runs", "show", ranked).out
    for text in (
        "kind     rank",
        "R00 cafe with drive-thru, kid-friendly, without TVs: 6",
        "R01 a cafe where the coffee is hot: 8, 2",
        "3,631",
    ):
        assert text in shown, text
    told = call("runs", "show", ranked, "--format", "json").json
    assert (told["calls"], told["tokens"], told["kind"]) == (10, 3_631, "rank")
    assert sum(phase["tokens"] for part in told["parts"] for phase in part["phases"]) == 3_631


def test_a_ranking_that_was_cut_short_says_how_to_go_on() -> None:
    run = call("rank", *RANK, "--llm", RANKER, "--max-calls", "3", "--max-concurrency", "1").json["run"]
    assert f"resume with: knotwork rank --resume {run}" in call("runs", "show", run).out
    assert "The budget was reached" in Page(call("report", run, "-o", "-").out).text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "said", "hint"),
    [
        ("ranked", "is a ranking", "continue it with: knotwork rank --resume {run}"),
        ("compiled", "is a compilation", "the same knotwork seed compile"),
    ],
)
def test_another_commands_run_is_not_gone_on_with_but_its_command_is_named(
    request: pytest.FixtureRequest, made: str, said: str, hint: str
) -> None:
    run = request.getfixturevalue(made)
    told = call("run", "--resume", run)
    assert (told.code, told.out) == (2, "")
    assert said in told.err and hint.format(run=run) in told.err
    if made == "compiled":
        assert hint in call("rank", "--resume", run).err


def test_a_script_is_told_with_its_prompts(folder: Path, cafes: str) -> None:
    run = call("run", "cafes.lwt", "-i", "request.json", "--llm", cafes, "--format", "json").json["run"]
    page = Page(call("report", run, "-o", "-").out).text
    for text in (
        "A run of a script",
        "cafes.lwt",
        "List the conditions in this request",
        "check[1]",
        "The input",
        "drive-thru",
    ):
        assert text in page, text
    told = call("runs", "show", run, "--format", "json").json
    assert (told["kind"], told["status"]) == ("script", "complete")
    home = folder / "knotwork" / "runs" / run
    end = json.loads((home / "run.jsonl").read_bytes().splitlines()[-1])
    assert (end["record"], end["calls"]) == ("run_finished", 4)
    for logged in (True, False):
        totals = read_account(home).totals
        assert (totals.calls, [totals.prompt_tokens, totals.completion_tokens]) == (4, end["usage"]), logged
        (home / "events.jsonl").unlink(missing_ok=True)


@pytest.mark.slow
def test_a_run_of_a_seed_is_told_from_its_records(folder: Path) -> None:
    write_seed(folder)
    told = call(
        "seed",
        "run",
        "noise.seed.json",
        "cafes.jsonl",
        "--llm",
        seed_model(folder / "m.cassette"),
        "--out",
        "out.jsonl",
    )
    (run,) = call("runs", "--format", "json").json
    assert (run["kind"], told.code) == ("seed", 0)
    page = Page(call("report", run["run"], "-o", "-").out).text
    for text in (
        "A run of a Formula Seed",
        "contexts that came to an end",
        "The model was asked for context 0, review 0",
        "The seed",
    ):
        assert text in page, text
    account = read_account(folder / "knotwork" / "runs" / run["run"])
    end = json.loads((folder / "knotwork" / "runs" / run["run"] / "run.jsonl").read_bytes().splitlines()[-1])
    assert (account.totals.calls, account.totals.tokens) == (end["calls"], sum(end["usage"]))


def test_commands_of_a_script_are_told_with_the_step_that_ran_them(folder: Path) -> None:
    (folder / "g.lwt").write_text(
        '(hubs)=GASL("DECLARE hubs AS LIST\nFIND nodes WHERE degree > 15 AS h\nUPDATE hubs WITH h")\n(final)=LLM("Say hi about {(hubs)}")\n'
    )
    hi = cassette(folder / "hi.cassette", {"Say hi": "hi"})
    run = call("run", "g.lwt", "--graph", "nx:karate_club", "--llm", hi, "--format", "json").json["run"]
    told = call("runs", "show", run, "--format", "json")
    assert told.code == 0
    account = read_account(folder / "knotwork" / "runs" / run)
    (section,) = account.sections.values()
    assert {name: [entry.kind for entry in phase.entries] for name, phase in section.phases.items()} == {
        "hubs": ["command"] * 4, "final": ["call"],
    }  # fmt: skip
    assert section.phases["hubs"].status == "done"


@pytest.mark.slow
def test_a_question_is_told_alone_and_with_its_state(folder: Path) -> None:
    assert call("ask", GRAPH, QUESTION, "--state", "st", "--llm", ASKER).code == 0
    (asked,) = (folder / "st" / "asks").iterdir()
    assert call("report", str(asked)).code == 0
    page = Page((asked / "report.html").read_text(encoding="utf-8")).text
    for text in (
        "A question about a graph",
        "step 2, pivot",
        "somebody meets over 100 others",
        "Looked in the graph",
        "Valjean: he meets 36",
    ):
        assert text in page, text
    whole = Page(call("report", "st", "-o", "-").out)
    for text in ("Questions", "Findings", "step 3, terminate", "Valjean: he meets 36"):
        assert text in whole.text, text
    assert ("a", "href", "#questions") in whole.attributes
    shown = call("runs", "show", str(asked)).out
    assert "answer   Valjean: he meets 36" in shown
    assert call("report", str(asked), "--graph", GRAPH).code == 2


def test_names_that_are_nothing_are_told_with_what_they_were_meant_to_be(folder: Path, ranked: str) -> None:
    told = call("report", ranked[:-1])
    assert (told.code, f"did you mean {ranked}?" in told.err) == (2, True)
    (folder / "empty").mkdir()
    for named in ("", "nowhere/at/all", "empty", "../" * 3, "\x1b[2J", "x" * 300):
        told = call("report", named)
        assert told.code in (1, 2), named
        assert "internal error" not in told.err and "\x1b" not in told.err


@pytest.mark.parametrize("text", [b"", b"{}", b"\x00\xff\n", b'{"record": "run_started"}\n', b"[" * 9_000 + b"\n"])
def test_a_folder_with_a_damaged_run_is_refused_in_words(folder: Path, ranked: str, text: bytes) -> None:
    home = folder / "knotwork" / "runs" / ranked
    (home / "run.jsonl").write_bytes(text)
    for words in (("report", ranked), ("runs", "show", ranked)):
        told = call(*words)
        assert told.code in (1, 2), words
        assert "internal error" not in told.err and told.out == ""
    assert call("runs").code == 0


@pytest.mark.parametrize(
    "text", [b"", b"{}\n", b"\x00\xff\n", b'{"event": 3}\n{"event": "call.finished"}\n', b"[" * 9_000 + b"\n"]
)
def test_a_damaged_log_costs_only_what_it_said(folder: Path, ranked: str, text: bytes) -> None:
    home = folder / "knotwork" / "runs" / ranked
    (home / "events.jsonl").write_bytes(text)
    assert call("report", ranked).code == 0
    shown = call("runs", "show", ranked, "--format", "json")
    assert (shown.code, json.loads(shown.out)["status"]) == (0, "complete")
