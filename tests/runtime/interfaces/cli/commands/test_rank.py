"""``knotwork rank``: rankings on stdout, everything about them on stderr, exit codes, and a run that goes on after a kill."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.command import call, cassette, environment, silent_server
from support.folders import EXAMPLES

EXAMPLE = EXAMPLES / "rank"
ITEMS, REQUESTS = EXAMPLE / "cafes.json", EXAMPLE / "requests.jsonl"
MODEL = f"replay:{EXAMPLE / 'answers.jsonl'}"
REQUEST = "cafe with drive-thru, kid-friendly, without TVs"
PLAN = '===LWT_SKELETON===\n(final)=LLM("Items: [5]. Best index?")\n===MESSAGE===\nREMAINING: 5\nNEEDS_EXPANSION: {}'


def rank(*args: str | Path, **given: Any) -> Any:
    return call("rank", *args, **given)


def test_json_in_a_pipe_and_the_figures_on_stderr() -> None:
    told = rank(ITEMS, "--request", REQUEST, "--llm", MODEL)
    assert told.code == 0
    assert (told.json["status"], told.json["ranking"], told.json["names"]) == ("complete", [6], ["Milkcrate Cafe"])
    first, second, last, kept = told.err.splitlines()
    assert second == "pass-through: the plan needs no expansion"
    assert re.fullmatch(r"planned 1 step in \d+\.\d s", first)
    assert last.startswith("complete: ranking 6 · 2 calls · 791 tokens · ")
    assert kept == f"saved in {Path(os.environ['KNOTWORK_HOME']) / 'runs' / told.json['run']}"


def test_a_table_and_a_plain_line() -> None:
    assert rank(ITEMS, "--request", REQUEST, "--llm", MODEL, "--format", "plain").out == "6\n"
    table = rank(ITEMS, "--requests", REQUESTS, "--llm", MODEL, "--format", "table")
    assert table.code == 0
    assert [line.split()[0] for line in table.out.splitlines() if line.startswith("R")] == ["R00", "R01", "R02"]
    assert "Milkcrate Cafe" in table.out
    one = rank(ITEMS, "--request", REQUEST, "--llm", MODEL, "--format", "table")
    assert one.out.splitlines()[-1].split() == ["1", "6", "Milkcrate", "Cafe"]


def test_many_requests_and_only_the_first_of_them() -> None:
    told = rank(ITEMS, "--requests", REQUESTS, "--llm", MODEL)
    assert [each["ranking"] for each in told.json["rankings"]] == [[6], [8, 2], [6, 10, 9]]
    assert told.json["usage"]["calls"] == 10
    assert "[R01] expanded in 2 iterations" in told.err
    assert len(rank(ITEMS, "--requests", REQUESTS, "--limit", "2", "--llm", MODEL).json["rankings"]) == 2


def test_requests_and_items_from_stdin() -> None:
    lines = f'"{REQUEST}"\n\n{{"context": "somewhere with a drive-thru"}}\n'
    assert rank(ITEMS, "--requests", "-", "--llm", MODEL, "--format", "plain", stdin=lines).out == "6\n6, 10, 9\n"
    items = ITEMS.read_text(encoding="utf-8")
    assert rank("-", "--request", REQUEST, "--llm", MODEL, "--format", "plain", stdin=items).out == "6\n"


def test_a_limit_beside_one_request_changes_nothing() -> None:
    told = rank(ITEMS, "--request", REQUEST, "--limit", "5", "--llm", MODEL, "--format", "plain")
    assert (told.code, told.out) == (0, "6\n")


def test_exit_codes_of_failures(folder: Path) -> None:
    lines = [{"request": REQUEST}, {"request": "nobody planned this"}]
    (folder / "two.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    told = rank(ITEMS, "--requests", folder / "two.jsonl", "--llm", MODEL)
    assert (told.code, told.json["status"]) == (4, "partial")
    assert "failed R01 plan: " in told.err
    assert re.search(r"^resume with: knotwork rank --resume \S+ --llm \S+$", told.err, re.M)
    bad = cassette(folder / "bad.jsonl", {"Analyze": PLAN.format("no"), "Items": "hard to say"})
    told = rank(ITEMS, "--request", "x", "--llm", bad)
    assert (told.code, told.json["ranking"]) == (1, [])
    assert 'the last step is repeated: the output names no item: "hard to say"' in told.err
    assert 'failed the output names no item: "hard to say"; the last step was called twice' in told.err


def test_that_no_item_fits_is_said_in_every_form(folder: Path) -> None:
    model = cassette(folder / "none.jsonl", {"Analyze": PLAN.format("no"), "Items": "none of them"})
    told = rank(ITEMS, "--request", "x", "--llm", model)
    assert (told.code, told.json["status"], told.json["none_fits"]) == (0, "complete", True)
    assert "complete: no item fits · " in told.err
    assert rank(ITEMS, "--request", "x", "--llm", model, "--format", "plain").out == "none\n"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "the items to rank are missing"),
        ((ITEMS,), "the request is missing"),
        ((ITEMS, "--request", "a", "--requests", REQUESTS), "--request and --requests are both given"),
        ((ITEMS, "--request", "a", "--limit", "0"), "--limit: must be at least 1"),
        ((ITEMS, "--request", " "), "--request: the request is empty"),
        ((ITEMS, "--request", "a", "--max-iterations", "99"), "--max-iterations: 99 is not a whole number from 1 to 50"),
        ((ITEMS, "--requests", ITEMS), "line 1: not JSON"),
        (("empty.json", "--request", "a"),
         'empty.json: the list of items is empty\n  = help: items must be a JSON list, or {"items": [...]}'),
        (("text.json", "--request", "a"), "text.json: expected a list of items, not a string"),
        (("object.json", "--request", "a"), "object.json: expected a list of items, not an object"),
        ((ITEMS, "--request", "a", "--limit", "few"), "--limit: must be a whole number"),
        ((ITEMS, "--request", "a", "--format", "xml"), "--format: 'xml' is not one of 'auto', 'table', 'json', 'plain'"),
        (("--resume", "20200101-000000-abcd"), "run '20200101-000000-abcd' does not exist"),
    ],
)  # fmt: skip
def test_wrong_usage(folder: Path, args: tuple[str | Path, ...], said: str) -> None:
    for name, text in (("empty", "[]"), ("text", '"Milkcrate"'), ("object", '{"items": {"a": 1}}')):
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    told = rank(*args, "--llm", MODEL)
    assert (told.code, told.out) == (2, "")
    assert said in told.err
    assert not (folder / "knotwork").exists()


def test_items_that_are_no_json_are_a_diagnostic(folder: Path) -> None:
    (folder / "items.json").write_text("[1, 2,]", encoding="utf-8")
    told = rank("items.json", "--request", "a", "--llm", MODEL)
    assert told.code == 3
    assert "error[KW004]" in told.err


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("items.csv", "name,drive\nMilkcrate,yes\n", "the file is CSV; items are JSON: ["),
        (
            "items.jsonl",
            '{"n": 1}\n{"n": 2}\n',
            "make one list with: jq -s . items.jsonl | knotwork rank - --request ...",
        ),
        ("items.json", "", "the input is empty"),
    ],
)
def test_items_of_another_kind_are_met_with_what_makes_items_of_them(
    folder: Path, name: str, text: str, said: str
) -> None:
    (folder / name).write_text(text, encoding="utf-8")
    told = rank(name, "--request", "a", "--llm", MODEL)
    assert (told.code, told.out) == (3, "")
    assert said in told.err
    assert "knotwork run" not in told.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"request": "a"}\n{bad\n', "line 2: not JSON: a key in double quotes is missing before 'bad' (column 2)"),
        ('[{"request": "a"}]', "convert a list into lines: jq -c '.[]' wanted"),
        ("with drive-thru\n", "convert plain lines: jq -R . wanted"),
        ('{"prompt": "a"}\n', "line 1: the request is missing"),
        ("\n\n", "wanted has no requests"),
    ],
)
def test_requests_that_are_none_are_met_with_how_they_are_written(folder: Path, text: str, said: str) -> None:
    (folder / "wanted").write_text(text, encoding="utf-8")
    told = rank(ITEMS, "--requests", "wanted", "--llm", MODEL)
    assert (told.code, told.out) == (2, "")
    assert said in told.err
    assert 'a line is {"request": "cafe with drive-thru"}' in told.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("anot", "x"), "Did you mean 'knotwork rank'?"), (("sort", "x"), "Did you mean 'knotwork rank'?"),
        (("hdt", "x"), "Did you mean 'knotwork ask'?"), (("question", "x"), "Did you mean 'knotwork ask'?"),
        (("search", "x"), "Did you mean 'knotwork ask --search beam'?"), (("compile", "x"), "Did you mean 'knotwork seed compile'?"),
        (("rank", "cafes.json", "drive-thru"), "pass the request with --request"),
        (("rank", "cafes.json", "--model", "x"), "choose the model with --llm"),
        (("ask", "g.graphml", "Who", "meets"), "put a question of several words in quotes"),
        (("ask", "--graph", "g.graphml", "Who?"), "the graph is the first argument"),
        (("ask", "Who meets the most?"), "the graph comes first"), (("ask",), 'knotwork ask nx:les_miserables "Who'),
        (("seed", "compile"), "knotwork seed compile task.md"), (("seed", "task.md"), "knotwork seed compile task.md"),
    ],
)  # fmt: skip
def test_what_is_typed_in_another_way_is_met_with_the_right_one(words: tuple[str, ...], said: str) -> None:
    told = call(*words)
    assert (told.code, told.out) == (2, "")
    assert said in told.err


def test_a_budget_is_kept_and_the_rest_is_asked_when_resumed(folder: Path) -> None:
    told = rank(ITEMS, "--requests", REQUESTS, "--llm", MODEL, "--max-calls", "5", "--max-concurrency", "1")
    assert told.code == 4
    again = rank("--resume", told.json["run"])
    assert again.code == 0
    assert [each["ranking"] for each in again.json["rankings"]] == [[6], [8, 2], [6, 10, 9]]
    assert again.json["usage"]["calls"] == 5
    third = rank("--resume", told.json["run"])
    assert third.json["usage"]["calls"] == 0
    refused = rank(ITEMS, "--request", "another", "--resume", told.json["run"])
    assert refused.code == 2
    assert "the requests changed" in refused.err


class _Server(ThreadingHTTPServer):
    """An OpenAI-compatible model that plans, expands and answers; the call number ``hangs`` gets no answer."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.prompts: list[str] = []
        self.hangs = 0
        self.reached, self.go = threading.Event(), threading.Event()

    def answer(self, prompt: str) -> str:
        if "Check if the LWT skeleton" in prompt:
            if "inserted" not in prompt:
                return 'lwt_insert(0, "(c)=LLM("Is {(input)}["items"][5]["item_name"] good?")")'
            return 'lwt_set(1, "(final)=LLM("{(c)} Best index?")")\ndone()' if "replaced" not in prompt else "done()"
        if "Analyze the user request" in prompt:
            return PLAN.format("yes")
        return "5" if "Best index" in prompt else "It is good."


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][-1]["content"]
        self.server.prompts.append(prompt)
        if len(self.server.prompts) == self.server.hangs:
            self.server.reached.set()
            self.server.go.wait(30)
            return
        message = {"role": "assistant", "content": self.server.answer(prompt)}
        answer = {
            "id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": {"prompt_tokens": 5, "completion_tokens": 2},
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        }  # fmt: skip
        told = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[_Server]:
    with _Server() as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield running
        running.go.set()
        running.shutdown()
        thread.join(5)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("hangs", [2, 5])
def test_killed_in_the_middle_and_resumed_nothing_is_paid_for_twice(folder: Path, server: _Server, hangs: int) -> None:
    """Call 2 is the first of the expansion, call 5 the last step of the script."""
    server.hangs = hangs
    spec = f"http://127.0.0.1:{server.server_address[1]}/v1#m"
    command = [sys.executable, "-m", "knotwork", "rank", str(ITEMS), "--request", "good", "--llm", spec, "--no-cache"]
    with subprocess.Popen(
        command, env=environment(folder), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:  # fmt: skip
        try:
            assert server.reached.wait(30)
        finally:
            running.send_signal(signal.SIGKILL)
    before, server.hangs = list(server.prompts), 0
    assert len(before) == hangs
    (run,) = (folder / "knotwork" / "runs").iterdir()
    told = rank("--resume", run.name, "--no-cache")
    assert (told.code, told.json["ranking"]) == (0, [6])
    asked = server.prompts[hangs:]
    assert asked[0] == before[-1]
    assert not set(before[:-1]) & set(asked)
    assert len(set(server.prompts)) == 5


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_ends_it_in_order(folder: Path) -> None:
    with silent_server() as (spec, asked):
        command = [sys.executable, "-m", "knotwork", "rank", str(ITEMS), "--request", "good", "--llm", spec]
        with subprocess.Popen(
            command, env=environment(folder), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as running:  # fmt: skip
            try:
                assert asked.wait(30)
                running.send_signal(signal.SIGINT)
                out, err = running.communicate(timeout=20)
            finally:
                running.kill()
    told = err.decode().splitlines()
    assert running.returncode == 130
    assert json.loads(out)["status"] == "cancelled"
    assert json.loads(out)["usage"]["calls"] == 1 and " · 1 call · " in told[-3]
    assert told[0] == "stopping; Ctrl-C again exits at once"
    assert told[-1].startswith("resume with: knotwork rank --resume ")


@pytest.mark.slow
def test_the_calls_of_a_run_are_bounded_and_help_says_how_many(folder: Path) -> None:
    assert "100 per request" in " ".join(rank("--help").out.replace("│", " ").split())
    script = '(a)=EACH({(input)}["items"], LLM("x {(item)}"))\n(final)=LLM("Items: {(a)} Best?")'
    plan = f"===LWT_SKELETON===\n{script}\n===MESSAGE===\nREMAINING: 5\nNEEDS_EXPANSION: no"
    (folder / "many.json").write_text(json.dumps([{"name": f"Cafe {n}"} for n in range(120)]), encoding="utf-8")
    bad = cassette(folder / "long.jsonl", {"Analyze": plan, "Items:": "5", "x ": "good"})
    told = rank("many.json", "--request", "x", "--llm", bad)
    assert (told.code, told.json["usage"]["calls"]) == (1, 100)
    assert "the budget of 100 calls is used up" in told.err
    assert "(raise it with max_calls, or --max-calls)" in told.err
    assert rank("many.json", "--request", "x", "--llm", bad, "--max-calls", "200").json["ranking"] == [6]


@pytest.mark.slow
def test_what_the_prompt_could_not_show_is_told(folder: Path) -> None:
    items = [{"name": f"Cafe {n}", "story": "y" * 5_000} for n in range(1_500)]
    (folder / "many.json").write_text(json.dumps(items), encoding="utf-8")
    model = cassette(folder / "short.jsonl", {"Analyze": PLAN.format("no"), "Items": "5"})
    told = rank("many.json", "--request", "x", "--llm", model)
    assert told.json["ranking"] == [6]
    assert "for 1,500 items, only name is shown; shown in part: story" in told.err


def test_a_kept_run_whose_items_were_changed_is_refused() -> None:
    run = rank(ITEMS, "--request", REQUEST, "--llm", MODEL).json["run"]
    kept = Path(os.environ["KNOTWORK_HOME"]) / "runs" / run / "items.json"
    kept.write_text(kept.read_text(encoding="utf-8").replace("Milkcrate", "Milkcrates"), encoding="utf-8")
    told = rank("--resume", run)
    assert (told.code, told.out) == (2, "")
    assert "items.json in its folder was changed" in told.err


@pytest.mark.slow
def test_every_request_ends_by_its_time_limit(folder: Path) -> None:
    with silent_server() as (spec, _):
        told = rank(ITEMS, "--requests", REQUESTS, "--llm", spec, "--time-limit", "0.2")
    assert told.code == 1
    assert told.err.count("the time limit of 0.2 s is reached") == 3
