"""The key in the environment, and a server that does all it can to get it out: no file, no stream has it."""

import asyncio
import json
import stat
from pathlib import Path

import pytest
from knotwork.adapters.llm import Completion, LLMError, Notice
from knotwork.adapters.llm_answers import hidden
from knotwork.runtime.wiring import ModelSettings, open_model
from support.command import process

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
