"""The key in the environment, and a server that does all it can to get it out: no file, no stream has it."""

import asyncio
import json
import stat
from pathlib import Path

import pytest
from knotwork import lwt
from knotwork.adapters.llm import Completion, LLMError, NotConfigured, Notice
from knotwork.adapters.llm.keys import hidden, refuse_key
from knotwork.runtime.interfaces.repl import terminal
from knotwork.runtime.lwt import run_store
from knotwork.runtime.lwt.script_plan import plan_of
from knotwork.runtime.models.factory import ModelSettings, open_model
from support.alone import alone_in
from support.command import call, process
from support.model_server import ModelServer

KEY = "sk-live-Zq81_abcdefghijklmnopqrstuvwxyz-0123456789-ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ODD = "Zq81!abcdefghijk/lmnopqrstuvwxyz+0123456789=ABCDEFGHIJKLMNOPQRSTUVWXYZ"  # no service's form
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
RAW = ("\x1b", "\x07", "\x9b", "\u202e")


def escaped(key: str) -> str:
    """Write the key as JSON may: no byte of it stands there as it is."""
    return "".join(f"\\u{ord(character):04x}" for character in key)


def bodies(key: str) -> list[bytes]:
    """Return whole HTTP responses that have the key in every place there is."""
    whole = {"choices": [{"index": 0, "message": {"content": "KEY"}, "finish_reason": "stop"}], "model": "m KEY"}
    odd = {"choices": [{"index": 0, "message": {"content": "x KEY"}, "finish_reason": "KEY"}], "KEY": "KEY"}
    refused = {"choices": [{"index": 0, "message": {"content": None, "refusal": "KEY"}, "finish_reason": "stop"}]}
    error = {"error": {"message": f"{'no ' * 91}KEY{ESCAPES}", "code": "KEY", "param": "KEY"}}
    made = []
    for status, body in (
        (200, whole),
        (200, odd),
        (200, refused),
        (200, error),
        (503, error),
        (401, error),
        (307, error),
    ):
        for spelt in (key, escaped(key)):
            text = json.dumps(body).replace("KEY", spelt).encode()
            head = f"HTTP/1.1 {status} {key}\r\nx-echo: {key}\r\nlocation: http://127.0.0.1:9/{key}\r\nset-cookie: a={key}\r\n"
            made.append(f"{head}content-type: application/json\r\ncontent-length: {len(text)}\r\n\r\n".encode() + text)
    made += [f"HTTP/1.1 {key}\r\n\r\n".encode(), f"{key}\r\n".encode(), f"HTTP/1.1 200 OK\r\n{key}\r\n\r\n".encode()]
    return made


async def serve(replies: list[bytes]) -> tuple[asyncio.Server, str]:
    """Answer the n-th prompt's requests (it ends in n) with the n-th reply."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        body = json.loads(await reader.readexactly(length))
        writer.write(replies[int(body["messages"][-1]["content"].split()[1])])
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    return server, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1#m"


def parts(key: str) -> list[str]:
    """Return what must be found nowhere: a half of the key is enough to be ashamed of."""
    return [key[: len(key) // 2], key[len(key) // 2 :]]


@pytest.mark.slow
@pytest.mark.parametrize("key", [KEY, pytest.param(ODD, marks=pytest.mark.slow)], ids=["usual", "odd"])
def test_a_server_that_repeats_the_key_gets_it_nowhere(tmp_path: Path, key: str) -> None:
    replies = bodies(key)
    (tmp_path / "in.json").write_text(json.dumps(list(range(len(replies)))))
    (tmp_path / "s.lwt").write_text(
        '(final)=EACH({(input)}, LLM("n {(item)}", retries=0), on_error=keep, max_concurrency=32)\n'
    )

    async def whole() -> object:
        server, spec = await serve(replies)
        async with server:
            return await asyncio.to_thread(
                process, "run", "s.lwt", "--input", "in.json", "--llm", spec, "--max-concurrency", "32",
                home=tmp_path, env={"KNOTWORK_API_KEY": key, "KNOTWORK_DEBUG": "3"},
            )  # fmt: skip

    done = asyncio.run(whole())
    assert "***" in done.err
    assert "Traceback" not in done.err
    texts = {"stdout": done.out, "stderr": done.err}
    for path in (tmp_path / "knotwork").rglob("*"):
        if "runs" in path.parts or path.name.startswith("answers"):
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
        if path.is_file():
            texts[path.name] = path.read_bytes().decode("latin-1")
    assert {"run.jsonl", "input.json", "answers.sqlite"} <= set(texts)
    for name, text in texts.items():
        for part in [*parts(key), *parts(escaped(key))]:
            assert part not in text, name
    assert not [mark for mark in RAW if mark in done.err]


@pytest.mark.slow  # each fault is answered after the SDK's retries
@pytest.mark.parametrize("key", [KEY, pytest.param(ODD, marks=pytest.mark.slow)], ids=["usual", "odd"])
@pytest.mark.parametrize("stream", [False, True])
def test_no_completion_error_or_notice_has_the_key(key: str, stream: bool) -> None:
    async def whole() -> list[object]:
        server, spec = await serve(replies)
        client = open_model(ModelSettings(spec, stream=stream), {"KNOTWORK_API_KEY": key})

        async def one(number: int) -> object:
            notices: list[Notice] = []
            try:
                came: Completion | LLMError = await client.generate(
                    f"n {number}", retries=0, notify=notices.append, timeout=10
                )
            except LLMError as error:
                came = error
            return came, notices, vars(came) if isinstance(came, LLMError) else None

        async with server:
            try:
                return await asyncio.gather(*(one(number) for number in range(len(replies))))
            finally:
                await client.aclose()

    replies = bodies(key)
    if stream:
        chunk = json.dumps({"model": "KEY", "choices": [{"delta": {"content": "KEY"}, "finish_reason": "stop"}]})
        for spelt in (key, escaped(key)):
            event = f"data: {chunk.replace('KEY', spelt)}\n\ndata: [DONE]\n\n"
            replies.append(
                f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(event)}\r\n\r\n{event}".encode()
            )
    for came in asyncio.run(whole()):
        assert not [part for part in parts(key) if part in repr(came)]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a 12345678abcdefgh b", "a *** b"),
        ("cut off: 12345678abc", "cut off: ***"),
        ("12345678 12345678abcdefgh", "*** ***"),
        ("1234567 is none", "1234567 is none"),
        ("its beginning: 12345678.", "its beginning: ***."),
        ("12345678ab12345678abcdefgh12345678", "*********"),
        ("", ""),
    ],
)
def test_what_is_hidden(text: str, shown: str) -> None:
    assert hidden(text, "12345678abcdefgh") == shown


def test_the_environments_other_keys_do_not_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, KEY)

    async def whole() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append((await reader.readuntil(b"\r\n\r\n")).decode())
            writer.write(b"HTTP/1.1 400 No\r\ncontent-length: 0\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            client = open_model(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1#m")
            with pytest.raises(LLMError):
                await client.generate("hi")
            await client.aclose()

    asyncio.run(whole())
    assert len(seen) == 1
    assert KEY not in seen[0]


TYPED = "sk-proj-Ab12Cd34Ef56Gh78Ij90KlMnOp"
PLACES = (
    f"openai:{TYPED}",
    f"anthropic:sk-ant-api03-{TYPED}",
    f"http://127.0.0.1:9/v1#{TYPED}",
    f"http://127.0.0.1:9/{TYPED}/v1#m",
    f"http://user:{TYPED}@127.0.0.1:9/v1#m",
    f"http://127.0.0.1:9/v1?key={TYPED}#m",
    f"record:c.jsonl,openai:{TYPED}",
    f"record:c.jsonl,http://127.0.0.1:9/v1#{TYPED}",
    f"local:{TYPED}",
    f"replay:{TYPED}",
    f"OpenAI:Bearer {TYPED}",
    TYPED,
    "openai:sk-shortAb12Cd34",
    "openai:gsk_Ab12Cd34Ef56Gh78",
    "openai:AIzaSyAb12Cd34Ef56Gh78",
    "openai:0123Ab12Cd34456789abcdef01234567",  # no service's beginning
    "openai:of-the-environment-Ab12Cd34",
)
COMMANDS = (
    ("run", "s.lwt"), ("gasl", "nx:karate_club"), ("ask", "nx:karate_club", "Who?"), ("rank", "in.json", "--request", "one"),
    ("seed", "compile", "in.json"), ("answer", "in.json"), ("repl",), ("mcp",), ("serve",),
)  # fmt: skip


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    alone_in(tmp_path, monkeypatch)
    (tmp_path / "s.lwt").write_text('(final)=LLM("hi")')
    (tmp_path / "in.json").write_text('["a", "b"]')
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-environment-Ab12Cd34")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "another-of-these-Ab12Cd34")
    monkeypatch.setenv("KNOTWORK_DEBUG", "3")
    return tmp_path


def written(folder: Path) -> str:
    """Return the names and the text of all files below, but for what the test put there."""
    files = [path for path in folder.rglob("*") if path.name not in ("s.lwt", "in.json")]
    return "".join(f"{path}{path.read_bytes().decode('latin-1') if path.is_file() else ''}" for path in files)


@pytest.mark.parametrize("spec", PLACES)
def test_a_key_in_the_place_of_a_models_name_is_repeated_nowhere(
    alone: Path, monkeypatch: pytest.MonkeyPatch, spec: str
) -> None:
    shown = [call("run", "s.lwt", "--llm", spec), call("run", "s.lwt", "--model", f"a={spec}", "--llm", "replay:x")]
    shown.append(call("repl", "-c", f".llm {spec}"))
    monkeypatch.setenv("KNOTWORK_LLM", spec)
    shown.append(call("run", "s.lwt"))
    for told in shown:
        assert told.code == 2, told
        assert "key" in told.err or ".llm takes one model" in told.err
        assert "Traceback" not in told.err
    shown += [call(spec), call("run", "s.lwt", spec)]  # in no place at all
    for text in (*(told.out + told.err for told in shown), written(alone)):
        assert "Ab12Cd34" not in text


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_refuses_a_key_before_it_writes(alone: Path, words: tuple[str, ...]) -> None:
    told = call(*words, "--llm", f"openai:{TYPED}")
    assert (told.code, told.out) == (2, "")
    assert "looks like an API key" in told.err
    assert "Ab12Cd34" not in told.err
    assert not (alone / "knotwork").exists()


@pytest.mark.parametrize(
    "name",
    [
        "gpt-4o-mini-2024-07-18", "ft:gpt-4o-mini-2024-07-18:acme::9a1bcDEF", "claude-3-5-sonnet-20241022",
        "meta-llama/Meta-Llama-3.1-8B-Instruct-Turbo", "accounts/fireworks/models/llama-v3p1-405b-instruct",
        "anthropic.claude-3-5-sonnet-20241022-v2:0", "MetaLlama3370BInstructTurbo", "task-keys-1234567890ab", "disk-sk",
        "m@sha256:b5cd32ab1cd9f8e4d2b0b4c7f1c2d3e4f5061728394a5b6c7d8e9fa0b1c2d3e4", "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9",
    ],
)  # fmt: skip
def test_models_whose_names_are_long_are_no_keys(name: str) -> None:
    refuse_key(f"openai:{name}", {"OPENAI_API_KEY": KEY})
    refuse_key(f"http://localhost:8000/v1#{name}", {"KNOTWORK_API_KEY": "localhost"})


def test_an_address_in_the_environment_holds_no_key(alone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://user:{TYPED}@127.0.0.1:9/v1")
    told = call("run", "s.lwt", "--llm", "openai:m")
    assert told.code == 2
    assert "OPENAI_BASE_URL" in told.err
    assert "Ab12Cd34" not in told.err + written(alone)


@pytest.mark.parametrize("stream", [False, True])
def test_the_beginning_of_a_key_is_hidden_wherever_an_answer_is_cut(stream: bool) -> None:
    async def whole() -> list[str]:
        answers = [KEY[:8], KEY[:12], KEY[:40], f"a {KEY}{KEY[:9]} b", ODD[:8]]
        async with ModelServer(answer=lambda prompt: f"it is {answers[int(prompt)]}, as you said") as server:
            spec = f"{server.url}#m"
            client = open_model(ModelSettings(spec, stream=stream), {"KNOTWORK_API_KEY": KEY, "OTHER_API_KEY": ODD})
            try:
                return [(await client.generate(str(number))).text for number in range(len(answers))]
            finally:
                await client.aclose()

    told = asyncio.run(whole())
    assert told == [f"it is {shown}, as you said" for shown in ("***", "***", "***", "a ****** b", "***")]


def test_a_session_keeps_no_line_with_a_key(tmp_path: Path) -> None:
    file = tmp_path / "history"
    history = terminal._history(file)
    lines = ("FIND nodes AS n", f".llm openai:{TYPED}", ".llm openai:gpt-4o", f'x = "{TYPED}"', "1 + 2")
    for line in lines:
        history.append_string(line)
    text = file.read_text()
    assert "Ab12Cd34" not in text
    assert [line for line in lines if f"+{line}\n" in text] == [lines[0], lines[2], lines[4]]


@pytest.mark.parametrize("key", [TYPED, "Ab12Cd34Ef56Gh78Ij90Kl12Mn34Op56"])
def test_a_key_as_a_model_s_name_in_a_script_is_not_repeated(alone: Path, key: str) -> None:
    (alone / "keyed.lwt").write_text(f'(final)=LLM("hi", model="{key}")\n')
    told = call("run", "keyed.lwt", "--llm", "openai:m", "--model", "small=openai:m")
    (alone / "keyed.lwt").unlink()
    assert told.code == 3
    assert "names a model that the host does not offer" in told.err
    assert "Ab12Cd34" not in told.out + told.err + written(alone)


def test_a_script_with_a_key_as_a_model_s_name_is_not_run_and_not_kept(alone: Path) -> None:
    script = lwt.parse(f'(final)=LLM("hi", model="{TYPED}")')
    with pytest.raises(NotConfigured, match="nothing was written") as refused:
        run_store.start(script)
    with pytest.raises(NotConfigured):
        asyncio.run(lwt.run(script, llm="replay:none.jsonl"))
    assert "Ab12Cd34" not in str(refused.value) + written(alone)
    (found,) = [d for d in plan_of(script, models=["small"]).diagnostics if d.severity == "error"]
    assert found.message == "`model` names a model that the host does not offer"
