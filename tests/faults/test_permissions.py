"""Nothing that is made can be written by others, and what lies in folders of ours can't be read by them: whatever the umask says."""

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from knotwork.adapters.llm.weights import Weights, pull_from
from support.alone import alone_in
from support.cafe_seed import seed_model, write_seed
from support.command import call, process
from support.compiling import CASSETTE, TASK
from support.folders import EXAMPLES
from support.served import served

GRAPH = ("--graph", "nx:karate_club")


@pytest.fixture(autouse=True)
def open_to_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder that is there, a home that is to be made, several folders deep, and a umask that forbids nothing."""
    alone_in(tmp_path, monkeypatch)
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home" / "of" / "mine"))
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    """Return the mode of everything below ``folder``, by its path."""
    return {
        str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode)
        for path in sorted(folder.rglob("*"))
        if not path.is_symlink()
    }


def check(folder: Path, *named: str, given: tuple[str, ...] = ()) -> None:
    """Hold that ``named`` were made as files that somebody named, and that all else is the user's alone but what was ``given``."""
    found = {name: mode for name, mode in modes(folder).items() if name not in given}
    for name in named:
        assert found.pop(name) in (0o644, 0o755, 0o600, 0o700), name
    for name, mode in found.items():
        assert mode == (0o700 if (folder / name).is_dir() else 0o600), (name, oct(mode))


@pytest.mark.slow
def test_a_run_its_cache_and_its_cassette(tmp_path: Path) -> None:
    (tmp_path / "s.lwt").write_text('(final)=LLM("hi")')
    given = ("s.lwt", "asked.jsonl")
    with served(tmp_path) as server:
        assert call("run", "s.lwt", "--llm", server.spec).code == 0
        check(tmp_path, given=given)
        assert any(name.endswith("answers.sqlite") for name in modes(tmp_path))
        assert call("run", "s.lwt", "--llm", f"record:new/deep/c.jsonl,{server.spec}").code == 0
    check(tmp_path, "new", "new/deep", "new/deep/c.jsonl", given=given)


@pytest.mark.slow
def test_the_tables_of_the_grammars(tmp_path: Path) -> None:
    (tmp_path / "s.lwt").write_text('(final)=LLM("hi")')
    assert process("check", "s.lwt", home=tmp_path).code == 0  # in this process they may have been loaded before
    assert any(name.endswith(".tables") for name in modes(tmp_path))
    check(tmp_path, given=("s.lwt",))


@pytest.mark.slow
def test_a_state_its_export_its_fork_and_the_reports(tmp_path: Path) -> None:
    (tmp_path / "a.gasl").write_text("DECLARE hubs AS LIST\nFIND nodes WHERE degree > 15 AS h\nUPDATE hubs WITH h")
    assert call("run", "a.gasl", *GRAPH, "--state", "kept", "--query", "Who?").code == 0
    assert call("state", "export", "kept", "-o", "out.json").code == 0
    assert call("state", "fork", "kept", "forked").code == 0
    assert call("report", "kept", "-o", "state.html").code == 0
    found = modes(tmp_path)
    assert found["out.json"] == found["state.html"] == 0o644
    check(tmp_path, "out.json", "state.html", given=("a.gasl",))


@pytest.mark.slow
def test_questions_and_rankings(tmp_path: Path) -> None:
    asker = f"replay:{EXAMPLES / 'ask' / 'miserables.jsonl'}"
    call("ask", "nx:les_miserables", "Who meets the most people?", "--llm", asker, "--state", "s")
    ranked = call("rank", EXAMPLES / "rank" / "cafes.json", "--requests", EXAMPLES / "rank" / "requests.jsonl",
                  "--llm", f"replay:{EXAMPLES / 'rank' / 'answers.jsonl'}")  # fmt: skip
    assert call("report", ranked.json["run"], "-o", "run.html").code == 0
    check(tmp_path, "run.html")


@pytest.mark.slow
def test_seeds(tmp_path: Path) -> None:
    write_seed(tmp_path)
    model = seed_model(tmp_path / "m.cassette")
    (tmp_path / "task.md").write_text(TASK, encoding="utf-8")
    given = tuple(modes(tmp_path))
    assert call("seed", "run", "noise.seed.json", "cafes.jsonl", "--llm", model, "--out", "r.jsonl").code == 0
    assert call("seed", "run", "noise.seed.json", "cafes.jsonl", "--llm", model, "--out", "r.csv").code == 0
    assert call("seed", "compile", "task.md", "-o", "s.json", "--llm", f"replay:{CASSETTE}").code == 0
    found = modes(tmp_path)
    assert found["r.jsonl"] == found["r.csv"] == found["s.json"] == 0o644
    check(tmp_path, "r.jsonl", "r.csv", "s.json", given=given)


def test_sessions(tmp_path: Path) -> None:
    told = call("repl", "nx:karate_club", "-c", ".output all.json --append", "-c", "FIND nodes AS n", "-c", ".output",
                "-c", "FIND nodes AS n", "-c", ".save n.csv", "-c", ".export state.json")  # fmt: skip
    assert (tmp_path / "all.json").exists(), told
    found = modes(tmp_path)
    check(tmp_path, *(name for name in found if not name.startswith("home")))
    assert all(mode & 0o022 == 0 for mode in found.values())


def test_an_agent_kit_and_keys(tmp_path: Path) -> None:
    assert call("agent-kit", "-o", "kit/deep").code == 0
    named = tuple(modes(tmp_path / "kit"))
    assert call("serve", "--add-key", "me").code == 0
    assert call("serve", "--add-key", "me", "--keys", "a/b/keys.json").code == 0
    check(tmp_path, "kit", *(f"kit/{name}" for name in named))


def test_a_formatted_file_keeps_its_mode(tmp_path: Path) -> None:
    for name, mode in (("a.lwt", 0o666), ("b.lwt", 0o640)):
        (tmp_path / name).write_text('(a) = LLM( "hi" )')
        (tmp_path / name).chmod(mode)
        assert call("fmt", name).code == 0
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == mode


def test_the_umask_takes_more_away(tmp_path: Path) -> None:
    os.umask(0o077)
    assert call("agent-kit", "-o", "kit").code == 0
    check(tmp_path)


def test_weights(tmp_path: Path) -> None:
    body = b"GGUF" * 100
    (tmp_path / "w.gguf").write_bytes(body)
    weights = Weights("w", "w", "in/kept.gguf", len(body), hashlib.sha256(body).hexdigest(), "free", 1)
    pull_from(tmp_path / "w.gguf", tmp_path / "deep" / "models", weights=weights)
    check(tmp_path, given=("w.gguf",))
