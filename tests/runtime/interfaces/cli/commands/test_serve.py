"""``knotwork serve`` as a command: what it says, where it listens, and what it refuses to begin."""

import re
import socket
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
from knotwork.runtime.interfaces.web.web_models import ServerSettings
from support.command import call, cassette, environment
from support.served import until
from support.web import served_app


def refused(*args: str | Path) -> tuple[int, str]:
    done = call("serve", *args)
    assert done.out == ""
    assert "Traceback" not in done.err
    return done.code, done.err


def settings_of(*args: str | Path) -> ServerSettings:
    """Return what the command line comes to; nothing listens."""
    with mock.patch("knotwork.runtime.interfaces.web.app.serve", return_value=True) as served:
        done = call("serve", *args)
    assert done.code == 0, done.err
    made: ServerSettings = served.call_args.args[0]
    return made


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KNOTWORK_DEBUG", raising=False)
    monkeypatch.setenv("KNOTWORK_LLM", cassette(tmp_path / "default.jsonl", {"": "x"}))
    return tmp_path / "home"


@pytest.mark.slow
def test_it_says_where_it_listens_which_model_and_whether_keys_are_needed(tmp_path: Path) -> None:
    spec = cassette(tmp_path / "c.jsonl", {"": "x"})
    with served_app(tmp_path, "--model", f"small={spec}", "--log", llm=spec) as at:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", at.url)
        said = "\n".join(at.said)
        assert "model: replay" in said and "small" in said
        assert "keys: not required" in said
        with at.client() as client:
            assert client.get("/", follow_redirects=False).headers["location"] == "/lab"
            assert client.get("/healthz?secret=1").json() == {"status": "ok"}
        until(lambda: any("/healthz" in line for line in at.said))
        [line] = [line for line in at.said if "/healthz" in line]
        assert re.fullmatch(r"GET /healthz 200 \d+ ms local", line)
        assert at.stop() == 0


@pytest.mark.slow
def test_with_keys_it_says_so_and_takes_them(tmp_path: Path) -> None:
    with served_app(tmp_path, "--host", "localhost", key=True, llm=cassette(tmp_path / "c.jsonl", {"": "x"})) as at:
        assert any(line == "keys: required" for line in at.said)
        with at.client() as client:
            assert client.get("/lab/about").status_code == 200
            assert client.get("/lab/about", headers={"Authorization": ""}).status_code == 401
        assert at.key not in "\n".join(at.said)


def test_a_taken_port_is_told_plainly() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, said = refused("--port", str(taken.getsockname()[1]))
    assert code == 1
    assert "can't listen on 127.0.0.1:" in said and "in use" in said
    assert "--port 0" in said


def test_an_address_of_another_machine_is_told_plainly(tmp_path: Path) -> None:
    call("serve", "--add-key", "ada")
    for host in ("203.0.113.7", "no.such.name.invalid"):
        code, said = refused("--host", host, "--port", "0")
        assert code == 1
        assert host in said


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org", ""])
def test_it_does_not_open_to_other_machines_without_a_key(host: str) -> None:
    code, said = refused("--host", host)
    assert code == 2
    assert "no API key exists" in said and "--add-key" in said


def test_a_missing_extra_is_told_with_the_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from knotwork.runtime.interfaces.cli.commands import serve

    monkeypatch.setattr(serve, "find_spec", lambda name: None)
    for args in ((), ("--add-key", "ada"), ("--list-keys",)):
        code, said = refused(*args)
        assert code == 2
        assert "pip install 'knotwork[server]'" in said


def test_no_model_is_told_at_the_start(tmp_path: Path) -> None:
    code, said = refused("--llm", "gpt-4o", "--port", "0")
    assert code == 2
    assert "openai:gpt-4o" in said


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--rate-per-key", "often"), "requests per minute"),
        (("--rate-per-key", "0"), "requests per minute"),
        (("--rate-per-key", "60/hour"), "requests per minute"),
        (("--cors", "*"), "origin"),
        (("--cors", "https://example.org/path"), "origin"),
        (("--cors", "example.org"), "origin"),
        (("--cors", "http://["), "origin"),
        (("--cors", "null"), "origin"),
        (("--model", "small"), "is not NAME=SPEC"),
        (("--price", "x"), "is not IN/OUT"),
        (("--port", "70000"), "65535"),
        (("--max-runs", "0"), "1"),
        (("--max-cost", "1", "--llm", "http://127.0.0.1:9/v1#m", "--port", "0"), "price"),
        (("--templates", "no-such-file.json", "--port", "0"), "no-such-file.json"),
        (("--keys", "."), "keys"),
    ],
)  # fmt: skip
def test_what_can_not_be_is_told_before_anything_listens(args: tuple[str, ...], said: str) -> None:
    code, told = refused(*args)
    assert code in (1, 2)
    assert said in told


def test_a_history_that_is_none_is_told_plainly(tmp_path: Path) -> None:
    bad = tmp_path / "bad.sqlite"
    bad.write_bytes(b"this is no database" * 1000)
    code, said = refused("--history", bad, "--port", "0")
    assert code == 1
    assert "bad.sqlite" in said


def test_what_is_asked_gets_into_the_settings(home: Path) -> None:
    made = settings_of(
        "--host", "localhost", "--port", "0", "--llm", "openai:gpt-4o", "--model", "small=local", "--cors", "https://Example.org",
        "--max-runs", "7", "--max-runs-per-key", "3", "--rate-per-key", "30/minute", "--time-limit", "9", "--grace", "2",
        "--max-calls", "5", "--max-tokens", "6", "--max-cost", "1.5", "--price", "1/2", "--no-cache", "--log",
        "--keep-runs", "9",
    )  # fmt: skip
    assert [(model.name, model.spec) for model in made.models] == [("gpt-4o", "openai:gpt-4o"), ("small", "local")]
    assert (made.host, made.port, made.cors, made.grace, made.cache, made.log) == (
        "localhost",
        0,
        ("https://example.org",),
        2,
        False,
        True,
    )
    assert made.keep == 9
    assert (made.limits.runs, made.limits.runs_per_key, made.limits.rate) == (7, 3, 30)
    assert (made.run.max_calls, made.run.max_tokens, made.run.max_cost, made.run.seconds) == (5, 6, 1.5, 9)
    assert made.run.price is not None and made.run.price.completion == 2
    assert (made.history, made.keys) == (home / "answers.sqlite", home / "keys.json")


def test_the_defaults_are_those_of_the_help() -> None:
    made = settings_of()
    plain = ServerSettings(made.models, made.history, made.keys)
    assert made == plain


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("local", "local"), ("local:/secret/path/model.gguf", "local"), ("openai:gpt-4o-mini", "gpt-4o-mini"),
        ("anthropic:claude-x", "claude-x"), ("http://secret.host:1/v1#qwen", "qwen"), ("replay:/secret/c.jsonl", "replay"),
        ("record:/secret/c.jsonl,local", "record"),
    ],
)  # fmt: skip
def test_a_model_has_a_name_that_tells_no_address_and_no_path(spec: str, name: str) -> None:
    assert settings_of("--llm", spec).models[0].name == name


def test_a_named_model_may_have_the_name_of_the_default_ones() -> None:
    names = [model.name for model in settings_of("--llm", "openai:gpt-4o", "--model", "gpt-4o=local").models]
    assert names == ["default", "gpt-4o"]
    code, said = refused("--llm", "openai:default", "--model", "default=local")
    assert code == 2 and "default" in said


@pytest.mark.slow
def test_the_command_brings_the_server_only_when_it_serves(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom knotwork.runtime.interfaces.cli import main\n"
        "try:\n    main({args!r})\nexcept SystemExit:\n    pass\n"
        "print('loaded', [name for name in ('fastapi', 'uvicorn', 'starlette', 'openai') if name in sys.modules])"
    )
    for args in (["serve", "--help"],):
        done = subprocess.run(
            [sys.executable, "-P", "-c", code.format(args=args)], capture_output=True, text=True, env=environment(tmp_path)
        )  # fmt: skip
        assert done.stdout.splitlines()[-1] == "loaded []", done
