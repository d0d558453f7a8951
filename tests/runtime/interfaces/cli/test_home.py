"""The user's home directory: a ``~`` in a path, and a user who has none."""

import asyncio
import pwd
from pathlib import Path

import pytest
from knotwork import lwt
from knotwork.adapters.user_folders import at_home
from support.command import call

KARATE = ("--graph", "nx:karate_club")
STEP = '(final)=LLM("x")'


@pytest.fixture
def home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = folder / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


@pytest.fixture
def no_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(uid: int) -> None:
        raise KeyError(uid)

    for name in ("HOME", "KNOTWORK_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("~/run", "HOME/run"),
        ("~", "HOME"),
        ("replay:~/answers.jsonl", "replay:HOME/answers.jsonl"),
        ("record:~/a.jsonl,replay:~/b.jsonl", "record:HOME/a.jsonl,replay:HOME/b.jsonl"),
        ("judge=replay:~/a", "judge=replay:HOME/a"),
        ("sqlite:///~/answers.sqlite", "sqlite:///HOME/answers.sqlite"),
        ("ladybug:~/graph", "ladybug:HOME/graph"),
        ("a~/b", "a~/b"),
        ("dir/~/b", "dir/~/b"),
        ("~other/b", "~other/b"),
        ("~", "HOME"),
    ],
)
def test_a_leading_tilde_is_the_home(written: str, expected: str, home: Path) -> None:
    assert at_home(written) == expected.replace("HOME", str(home))


def test_every_path_of_the_command_line_may_begin_with_a_tilde(home: Path, folder: Path) -> None:
    (home / "one.lwt").write_text(STEP, encoding="utf-8")
    assert call("check", "~/one.lwt").code == 0
    told = call("gasl", "-c", "FIND nodes LIMIT 1 AS one", *KARATE, "--state=~/state")
    assert (told.code, (home / "state").is_dir()) == (0, True)
    assert f"{home}/town.graphml: the file does not exist" in call("graph", "info", "~/town.graphml").err
    assert f"the cassette {home}/a.jsonl can't be read" in call("run", "~/one.lwt", "--llm=replay:~/a.jsonl").err
    assert "~" not in {path.name for path in folder.iterdir()}


def test_a_tilde_in_a_text_is_text(home: Path) -> None:
    assert call("repl", "-c", '"~/run"').out == "~/run\n"


def test_the_variables_may_begin_with_a_tilde(home: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", "~/kept")
    monkeypatch.setenv("KNOTWORK_LLM", "replay:~/answers.jsonl")
    (folder / "one.lwt").write_text(STEP, encoding="utf-8")
    assert f"the cassette {home}/answers.jsonl can't be read" in call("run", "one.lwt").err
    assert call("serve", "--add-key", "ida").code == 0
    assert (home / "kept").is_dir()
    assert "~" not in {path.name for path in folder.iterdir()}


@pytest.mark.usefixtures("no_home")
def test_what_stores_nothing_needs_no_home(folder: Path) -> None:
    (folder / "one.lwt").write_text(STEP, encoding="utf-8")
    assert call("check", "one.lwt").code == 0
    assert call("plan", "one.lwt").code == 0
    assert call("repl", "-c", "1+1").out == "2\n"
    assert call("gasl", "-c", "FIND nodes LIMIT 1 AS one", *KARATE).code == 0

    class Echo:
        async def generate(self, prompt: str, **options: object) -> str:
            return prompt

    assert asyncio.run(lwt.run(STEP, llm=Echo())).output == "x"


@pytest.mark.usefixtures("no_home")
@pytest.mark.parametrize("command", ["runs", "serve --list-keys", "check ~/one.lwt"])
def test_what_needs_the_home_names_the_variable(command: str, folder: Path) -> None:
    (folder / "one.lwt").write_text(STEP, encoding="utf-8")
    told = call(*command.split())
    assert told.code == 1
    assert told.err == "error: the home directory is unknown\n  = help: set KNOTWORK_HOME to a folder\n"
