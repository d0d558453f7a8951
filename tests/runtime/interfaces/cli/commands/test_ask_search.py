"""``knotwork ask --search``: what it writes where, the tree, its exit codes, and how it goes on."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from knotwork.runtime.loops.search import Tree
from support.command import call, environment, silent_server
from support.wondering import action

GRAPH, QUESTION = "nx:les_miserables", "Who meets the most people?"
HUBS = action(
    0.4, "hubs meet most", "DECLARE hubs AS LIST", "FIND nodes WHERE degree > 20 ORDER BY degree DESC AS some",
    "UPDATE hubs WITH some",
)  # fmt: skip
FEW = action(0.9, "the few", "DECLARE few AS LIST", "FIND nodes WHERE degree = 1 AS some", "UPDATE few WITH some")
NOTHING = action(0.5, "giants", "FIND nodes WHERE degree > 200 AS giants")


def told(score: int) -> str:
    return json.dumps({"reason": "so it seems", "score": score / 10})


@pytest.fixture
def model(tmp_path: Path) -> str:
    """Write a cassette: the surest plan leads away from the answer."""
    lines = [{"cassette": 1, "made_by": "knotwork", "model": "written by hand"}]
    for contains, said in (
        ("Valjean meets the most", told(9)), ('"hubs"', told(5)), ("You judge how far", told(1)),
        ("hubs LIST, 2", "COMPLETE: Valjean meets the most people."),
        ("You are a researcher", json.dumps({"hypothesis": "some meet more", "next_actions": [FEW, NOTHING, HUBS]})),
    ):  # fmt: skip
        lines.append({"answer": {"text": said}, "request": {"prompt_contains": contains}})
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return f"replay:{tmp_path / 'c.jsonl'}"


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["greedy", "beam", "mcts"])
def test_the_answer_goes_to_stdout_and_the_tree_in_short_to_stderr(strategy: str, model: str) -> None:
    done = call("ask", GRAPH, QUESTION, "--llm", model, "--search", strategy, "--max-steps", "15")
    assert (done.code, done.out) == (0, "Valjean meets the most people.\n"), done.err
    assert f"{strategy}: " in done.err and "best value 0.90" in done.err
    assert "* [0] value 0.00" in done.err and "hubs meet most -> [" in done.err
    assert "hypothesis: some meet more" in done.err
    assert 'hubs: {"id": "Valjean"}' in done.err


@pytest.mark.slow
def test_with_a_state_it_is_adopted_replayed_verified_reported_and_told_again(model: str, tmp_path: Path) -> None:
    words = ("ask", GRAPH, QUESTION, "--state", str(tmp_path / "run"), "--search", "beam")
    first = call(*words, "--llm", model, "--max-steps", "2", "--value", "filled", "--enough", "1")
    assert (first.code, first.out) == (1, "")
    assert "no answer after 2 plans" in first.err
    assert "--search beam --value filled --enough 1.0 --max-steps 4" in first.err
    second = call(*words, "--llm", model, "--max-steps", "15", "--format", "json")
    assert second.json["search"]["strategy"] == "beam"
    third = call(*words[:5], "--tree", str(tmp_path / "t.json"))
    assert (third.code, third.out) == (0, "Valjean meets the most people.\n")
    saved = Tree.from_json((tmp_path / "t.json").read_text())
    assert json.loads(saved.dumps()) == second.json["search"]["tree"]
    assert call("replay", str(tmp_path / "run")).code == 0
    assert call("state", "verify", str(tmp_path / "run")).code == 0
    assert call("report", str(tmp_path / "run"), "-o", str(tmp_path / "r.html")).code == 0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "begins"), [("t.mmd", "flowchart"), ("t.dot", "digraph"), ("t.txt", "* [0] value")])
def test_the_tree_is_written_as_the_files_name_asks(name: str, begins: str, model: str, tmp_path: Path) -> None:
    done = call("ask", GRAPH, QUESTION, "--llm", model, "--search", "mcts", "--tree", str(tmp_path / name))
    assert done.code == 0, done.err
    assert (tmp_path / name).read_text().startswith(begins)


@pytest.mark.slow
def test_a_large_tree_is_shown_by_its_best_way_and_whole_where_it_is_wanted(model: str) -> None:
    words = ("ask", GRAPH, QUESTION, "--llm", model, "--search", "beam", "--enough", "1", "--max-steps", "20")
    short, whole = call(*words), call(*words, "--tree", "-")
    assert "other branches; --tree - shows the complete tree" in short.err
    assert len(whole.err.splitlines()) > len(short.err.splitlines())
    assert "the value of this answer is 0.90; the required value is 1" in short.err


def test_nothing_left_to_try_is_told_with_a_larger_search(model: str, tmp_path: Path) -> None:
    words = ("ask", GRAPH, QUESTION, "--llm", model, "--state", str(tmp_path / "s"), "--branching", "1", "--depth", "1")
    done = call(*words, "--search", "mcts")
    assert (done.code, done.out) == (1, "")
    assert "nothing is left to try after 1 plan" in done.err
    assert "--depth 5" in done.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--search", "deep"), "--search"), (("--width", "2"), "--width needs a search"),
        (("--depth", "0", "--search", "beam"), "--depth"),
        (("--branching", "9", "--search", "beam"), "--branching"), (("--enough", "2", "--search", "beam"), "--enough"),
        (("--search", "beam", "--tree", "no/folder/t.txt"), "the directory does not exist"),
        (("--search", "beam", "--max-steps", "0"), "--max-steps"),
    ],
)  # fmt: skip
def test_wrong_usage_is_told_before_a_model_is_asked(words: tuple[str, ...], told: str) -> None:
    done = call("ask", GRAPH, QUESTION, "--llm", "replay:no-such-file", *words)
    assert done.code == 2
    assert told in done.err


def test_a_tree_without_a_search_is_refused_before_a_model_is_asked(tmp_path: Path) -> None:
    words = ("ask", GRAPH, QUESTION, "--tree", str(tmp_path / "t.txt"))
    done = call(*words, "--llm", "replay:no-such-file")
    assert (done.code, done.out) == (2, "")
    assert "--tree needs a search\n  = help: add --search beam, or omit --tree" in done.err


def test_branches_tell_their_plans_and_what_came_of_them(model: str) -> None:
    done = call("ask", GRAPH, QUESTION, "--llm", model, "--search", "beam", "--max-steps", "4")
    assert "  branch of state 0: the few: DECLARE few AS LIST; FIND nodes WHERE degree = 1 AS some;" in done.err
    assert (
        "  branch of state 0: giants: FIND nodes WHERE degree > 200 AS giants → empty, state 2, value 0.00" in done.err
    ), done.err
    assert done.err.count("hypothesis: some meet more") < done.err.count("  branch of state")
    assert "other plans" not in done.err  # they are tried too


def test_a_judge_that_can_not_answer_is_told_of_once_and_with_what_else_there_is(tmp_path: Path) -> None:
    lines = [{"cassette": 1, "made_by": "knotwork", "model": "written by hand"}]
    for contains, said in (
        ("You judge how far", "well"),
        ("You are a researcher", json.dumps({"next_actions": [FEW, HUBS]})),
    ):
        lines.append({"answer": {"text": said}, "request": {"prompt_contains": contains}})
    (tmp_path / "j.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = call(
        "ask", GRAPH, QUESTION, "--llm", f"replay:{tmp_path / 'j.jsonl'}", "--search", "beam", "--max-steps", "4"
    )
    assert done.err.count("could not be determined") == 1, done.err
    assert "warning: use --value filled to rate states without a judge" in done.err
    assert "StepFailed" not in done.err


def test_a_budget_counts_what_was_sent_and_one_is_no_plural(model: str) -> None:
    done = call("ask", GRAPH, QUESTION, "--llm", model, "--search", "beam", "--max-calls", "1")
    assert done.code == 1
    assert " · 1 call · " in done.err, done.err
    assert "the budget of 1 call is used up" in done.err
    assert "use --state DIR to make a run resumable" in done.err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_ctrl_c_ends_it_in_order_and_the_command_goes_on(model: str, folder: Path) -> None:
    words = ["ask", GRAPH, QUESTION, "--state", "run", "--search", "beam"]
    with silent_server() as (spec, asked):
        command = [sys.executable, "-m", "knotwork", *words, "--llm", spec]
        with subprocess.Popen(
            command, env=environment(folder), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as running:  # fmt: skip
            try:
                assert asked.wait(30)
                running.send_signal(signal.SIGINT)
                out, err = running.communicate(timeout=20)
            finally:
                running.kill()
    said = err.decode()
    assert (running.returncode, out) == (130, b"")
    assert "stopping; Ctrl-C again exits at once" in said
    assert " · 1 call · " in said  # it was sent
    assert "resume with: knotwork ask nx:les_miserables 'Who meets the most people?' --state run" in said
    assert call(*words, "--llm", model, "--max-steps", "15").code == 0
