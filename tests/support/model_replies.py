"""How the model server answers: whole answers, and every fault of ``model_faults`` as bytes on the wire."""

import asyncio
import gzip
import json
import socket
import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from support import model_calls
from support.model_faults import STATUS
from support.model_requests import Request, example


@dataclass
class Reply:
    """One reply. Of the server it uses ``answer``, ``refuses``, ``ignores_format`` and ``root``."""

    server: Any
    request: Request
    writer: asyncio.StreamWriter

    async def give(self, fault: str | None) -> bool:
        """Answer; return whether the connection may go on."""
        if fault is None:
            return await self._answer()
        if fault in STATUS:
            status, error = STATUS[fault]
            await self._json(status, {"type": "error", "error": error}, ["retry-after-ms: 5"])
            return True
        if fault == "odd_status":
            await self._json(418, {"error": "teapot"})
            return True
        return await getattr(self, "_" + fault)()

    # Whole replies

    async def _answer(self) -> bool:
        for name in self.server.refuses:
            if name in self.request.body:
                error = {"message": f"Unsupported parameter: '{name}' is not supported", "param": name}
                if self.server.detailed:
                    await self._json(422, {"detail": [{"type": "extra_forbidden", "loc": ["body", name]}]})
                else:
                    await self._json(400, {"error": error})
                return True
        if self.request.body.get("stream"):
            await self._stream(self._events())
        else:
            await self._json(200, self._body())
        return True

    @property
    def _messages(self) -> bool:
        return self.request.path.startswith("/v1/messages")

    def _text(self) -> str:
        if self.request.schema is not None and not self.server.ignores_format:
            return json.dumps(example(self.request.schema))
        return self.server.answer(self.request.prompt)

    @property
    def _custom(self) -> bool:
        return [schema for _, schema in model_calls.offered(self.request)] == [None]

    def _calls(self) -> list[model_calls.Call]:
        """Return the calls of tools that the answer consists of."""
        tools = model_calls.offered(self.request)
        if self._custom:
            return [(tools[0][0], self.server.answer(self.request.prompt))]
        return self.server.calls(self.request.prompt, tools) if tools else []

    def _body(self, **changes: Any) -> dict[str, Any]:
        """Return a whole answer; ``text``, ``finish`` and ``message`` change its parts."""
        text = changes.get("text", self._text())
        if not changes and (calls := self._calls()):
            if self._messages:
                changes = {"content": model_calls.blocks(calls), "finish": "tool_use"}
            else:
                changes = {"message": model_calls.message(calls, self._custom), "finish": "tool_calls"}
        if self._messages:
            finish = changes.get("finish", "end_turn")
            return {
                "id": "msg_1", "type": "message", "role": "assistant", "model": self.request.body["model"],
                "content": changes.get("content", [{"type": "text", "text": text}]),
                "stop_reason": {"length": "max_tokens", "content_filter": "refusal"}.get(finish, finish),
                "usage": {"input_tokens": 11, "output_tokens": 7},
            }  # fmt: skip
        message = changes.get("message", {"role": "assistant", "content": text, **changes.get("extra", {})})
        return {
            "id": "c1", "object": "chat.completion", "created": 1, "model": self.request.body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": changes.get("finish", "stop")}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
        }  # fmt: skip

    def _events(self, **changes: Any) -> list[bytes]:
        text = changes.get("text", self._text())
        finish = changes.get("finish", "stop")
        calls = [] if changes else self._calls()
        third = max(1, len(text) // 3)
        parts = [text[:third], text[third : 2 * third], text[2 * third :]]
        if self._messages:
            stop = {"stop": "end_turn", "length": "max_tokens"}.get(finish, finish)
            events: list[dict[str, Any]] = [
                {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 11, "output_tokens": 1}}},
                {"type": "ping"},
                {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                *(
                    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": p}}
                    for p in parts
                ),
                {"type": "content_block_stop", "index": 0},
            ]
            if calls:
                events[2:] = model_calls.events(calls)
                stop = "tool_use"
            if stop:
                events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 7}})
            events.append({"type": "message_stop"})
            return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]
        chunks = [{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}]
        chunks += [{"delta": {"content": part}, "finish_reason": None} for part in parts if not calls]
        if calls:
            chunks += [{"delta": delta, "finish_reason": None} for delta in model_calls.deltas(calls, self._custom)]
            finish = "tool_calls"
        if finish:
            chunks.append({"delta": {}, "finish_reason": finish})
        made = [
            _data({"object": "chat.completion.chunk", "model": "m", "choices": [{"index": 0, **c}]}) for c in chunks
        ]
        if self.request.body.get("stream_options"):
            made.append(_data({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 7}}))
        return [*made, b"data: [DONE]\n\n"]

    # Writing

    def _head(self, status: int, lines: Iterable[str]) -> None:
        self.writer.write("\r\n".join([f"HTTP/1.1 {status} Said", *lines, "", ""]).encode())

    async def _raw(self, status: int, body: bytes, lines: Iterable[str] = (), kind: str = "application/json") -> None:
        self._head(status, [f"content-type: {kind}", f"content-length: {len(body)}", *lines])
        self.writer.write(body)
        await self.writer.drain()

    async def _json(self, status: int, body: Any, lines: Iterable[str] = ()) -> None:
        await self._raw(status, json.dumps(body).encode(), lines)

    async def _stream(self, events: Iterable[bytes], *, end: bool = True) -> None:
        self._head(200, ["content-type: text/event-stream", "transfer-encoding: chunked"])
        for event in events:
            self.writer.write(b"%x\r\n%b\r\n" % (len(event), event))
            await self.writer.drain()
        if end:
            self.writer.write(b"0\r\n\r\n")
            await self.writer.drain()

    # Faults of the connection

    async def _reset(self) -> bool:
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()
        return False

    async def _close(self) -> bool:
        return False

    async def _headers_cut(self) -> bool:
        self.writer.write(b"HTTP/1.1 200 OK\r\ncontent-ty")
        return False

    async def _body_cut(self) -> bool:
        body = json.dumps(self._body()).encode()
        self._head(200, ["content-type: application/json", f"content-length: {len(body)}"])
        self.writer.write(body[: len(body) // 2])
        return False

    async def _chunk_cut(self) -> bool:
        body = json.dumps(self._body()).encode()
        self._head(200, ["content-type: application/json", "transfer-encoding: chunked"])
        self.writer.write(b"%x\r\n%b\r\n" % (len(body) // 2, body[: len(body) // 2]))
        return False

    async def _429_seconds(self) -> bool:
        await self._json(429, {"error": STATUS["429"][1]}, ["retry-after: 0.01"])
        return True

    async def _429_soon(self) -> bool:
        await self._json(429, {"error": STATUS["429"][1]}, ["retry-after: 0.6"])
        return True

    async def _429_later(self) -> bool:
        await self._json(429, {"error": STATUS["429"][1]}, ["retry-after: 100"])
        return True

    async def _html_502(self) -> bool:
        await self._raw(502, b"<html>Bad gateway</html>", ["retry-after-ms: 5"], "text/html")
        return True

    async def _redirect(self) -> bool:
        await self._raw(307, b"", [f"location: {self.server.root}/elsewhere"])
        return True

    async def _echo_key(self) -> bool:
        sent = self.request.headers.get("authorization", "") + self.request.headers.get("x-api-key", "")
        await self._json(401, {"error": {"message": f"Incorrect API key provided: {sent}", "code": "invalid_api_key"}})
        return True

    async def _echo_key_in_answer(self) -> bool:
        await self._json(200, self._body(text=f"you sent {self.request.headers}"))
        return True

    async def _should_retry_401(self) -> bool:
        await self._json(401, {"error": {"message": "no"}}, ["x-should-retry: true"])
        return True

    # Bodies that are no answer

    async def _json_cut(self) -> bool:
        body = json.dumps(self._body()).encode()
        await self._raw(200, body[: len(body) * 2 // 3])
        return True

    async def _html(self) -> bool:
        await self._raw(200, b"<html>Please log in</html>", kind="text/html")
        return True

    async def _not_utf8(self) -> bool:
        await self._raw(200, json.dumps(self._body()).encode().replace(b"end", b"e\xff\xfe"))
        return True

    async def _not_object(self) -> bool:
        await self._json(200, [self._body()])
        return True

    async def _empty_body(self) -> bool:
        await self._raw(200, b"")
        return True

    async def _duplicate_keys(self) -> bool:
        body = json.dumps(self._body())
        name = "stop_reason" if self._messages else "choices"
        await self._raw(200, (body[:-1] + f', "{name}": ' + json.dumps(self._body()[name]) + "}").encode())
        return True

    async def _changed(self, **changes: Any) -> bool:
        await self._json(200, self._body(**changes))
        return True

    async def _no_choices(self) -> bool:
        body = self._body()
        body["content" if self._messages else "choices"] = []
        await self._json(200, body)
        return True

    async def _null_choices(self) -> bool:
        body = self._body()
        body["content" if self._messages else "choices"] = None
        await self._json(200, body)
        return True

    async def _no_message(self) -> bool:
        return await self._changed(message=None, content=[{"type": "text"}])

    async def _null_content(self) -> bool:
        return await self._changed(text=None)

    async def _empty_content(self) -> bool:
        return await self._changed(text="")

    async def _blank_content(self) -> bool:
        return await self._changed(text=" \n\t")

    async def _length(self) -> bool:
        return await self._changed(text=self._text()[:9], finish="length")

    async def _no_finish(self) -> bool:
        return await self._changed(text=self._text()[:9], finish=None)

    async def _odd_finish(self) -> bool:
        return await self._changed(text=self._text()[:9], finish="error")

    async def _content_filter(self) -> bool:
        return await self._changed(text="I", finish="content_filter")

    async def _refusal(self) -> bool:
        return await self._changed(text=None, extra={"refusal": "I can't help with that"}, finish="content_filter")

    async def _error_in_200(self) -> bool:
        await self._json(200, {"type": "error", "error": {"message": "upstream failed", "code": 502}})
        return True

    async def _surrogate(self) -> bool:
        return await self._changed(text="half \ud83d of one")

    async def _encoding(self) -> bool:
        await self._raw(200, json.dumps(self._body()).encode(), ["content-encoding: br"])
        return True

    async def _gzip(self) -> bool:
        await self._raw(200, gzip.compress(json.dumps(self._body()).encode()), ["content-encoding: gzip"])
        return True

    async def _deflate(self) -> bool:
        await self._raw(200, zlib.compress(json.dumps(self._body()).encode()), ["content-encoding: deflate"])
        return True

    async def _gzip_cut(self) -> bool:
        body = gzip.compress(json.dumps(self._body()).encode())
        await self._raw(200, body[:-12], ["content-encoding: gzip"])
        return True

    async def _gzip_bad(self) -> bool:
        await self._raw(200, b"\x1f\x8bnonsense, not gzip at all", ["content-encoding: gzip"])
        return True

    async def _huge(self) -> bool:
        await self._json(200, self._body(text="x" * (5 << 20)))
        return True

    async def _bomb(self) -> bool:
        await self._raw(200, _bomb(), ["content-encoding: gzip"])
        return True

    async def _error_bomb(self) -> bool:
        await self._raw(500, _bomb(), ["content-encoding: gzip"])
        return True

    # Bodies that do not end

    async def _trickle(self) -> bool:
        self._head(200, ["content-type: application/json", "transfer-encoding: chunked"])
        while True:
            self.writer.write(b"1\r\n \r\n")
            await self.writer.drain()
            await asyncio.sleep(0.02)

    async def _endless(self) -> bool:
        self._head(200, ["content-type: application/json", "transfer-encoding: chunked"])
        while True:
            self.writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
            await self.writer.drain()

    async def _endless_error(self) -> bool:
        self._head(503, ["content-type: application/json", "transfer-encoding: chunked"])
        while True:
            self.writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
            await self.writer.drain()

    async def _stream_trickle(self) -> bool:
        self._head(200, ["content-type: text/event-stream", "transfer-encoding: chunked"])
        while True:
            self.writer.write(b"b\r\n: comment\n\n\r\n")
            await self.writer.drain()
            await asyncio.sleep(0.02)

    async def _stream_held_open(self) -> bool:
        await self._stream(self._events(), end=False)
        await asyncio.sleep(3600)
        return False

    # Streams that are no answer

    async def _stream_cut(self) -> bool:
        await self._stream(self._events()[:3], end=False)
        return False

    async def _stream_cut_inside(self) -> bool:
        events = self._events()
        await self._stream([*events[:2], events[2][: len(events[2]) // 2]])
        return True

    async def _stream_cut_after(self) -> bool:
        await self._stream(self._events()[: -1 if self._messages else -2], end=False)
        return False

    async def _stream_no_finish(self) -> bool:
        await self._stream(self._events(finish=None))
        return True

    async def _stream_reset(self) -> bool:
        await self._stream(self._events()[:3], end=False)
        await asyncio.sleep(0.01)
        return await self._reset()

    async def _stream_reset_at_once(self) -> bool:
        await self._stream([], end=False)
        await asyncio.sleep(0.01)
        return await self._reset()

    async def _stream_reset_as_json(self) -> bool:
        """A server that does not stream, and whose one body breaks."""
        self._head(200, ["content-type: application/json", "content-length: 9999"])
        self.writer.write(json.dumps(self._body()).encode()[:40])
        await self.writer.drain()
        await asyncio.sleep(0.01)
        return await self._reset()

    async def _stream_closed(self) -> bool:
        """A stream that lasts until the connection ends, which it does too early: no length, no chunks."""
        self._head(200, ["content-type: text/event-stream", "connection: close"])
        self.writer.write(b"".join(self._events()[:3]))
        return False

    async def _stream_utf8_cut(self) -> bool:
        self._head(200, ["content-type: text/event-stream", "connection: close"])
        self.writer.write(b"".join(self._events()[:3]) + b'data: {"choices": [{"delta": {"content": "\xe2\x82')
        return False

    async def _stream_bad_line(self) -> bool:
        events = self._events()
        await self._stream([*events[:3], b"data: <html>Bad gateway</html>\n\n", *events[3:]])
        return True

    async def _stream_stall(self) -> bool:
        await self._stream(self._events()[:3], end=False)
        await asyncio.sleep(3600)
        return False

    async def _stream_bad_json(self) -> bool:
        events = self._events()
        await self._stream([*events[:2], b'data: {"choices": [}\n\n', *events[2:]])
        return True

    async def _stream_duplicate_keys(self) -> bool:
        events = self._events()
        await self._stream([*events[:2], b'data: {"type": "ping", "a": 1, "a": 2}\n\n', *events[2:]])
        return True

    async def _stream_error(self) -> bool:
        error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        await self._stream([*self._events()[:3], _data(error)])
        return True

    async def _stream_empty(self) -> bool:
        await self._stream([])
        return True

    async def _stream_length(self) -> bool:
        await self._stream(self._events(text=self._text()[:9], finish="length"))
        return True

    async def _stream_surrogate(self) -> bool:
        await self._stream(self._events(text="half \ud83d of one"))
        return True

    async def _stream_not_utf8(self) -> bool:
        events = self._events()
        await self._stream([*events[:2], b"data: \xff\xfe\n\n", *events[2:]])
        return True

    async def _stream_split_pair(self) -> bool:
        """A character outside the basic plane, its two halves in two events, as some servers send it."""
        await self._stream(self._events(text="\ud83d\ude00A"))
        return True


def _data(value: Any) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


_BOMB: list[bytes] = []


def _bomb() -> bytes:
    """Return about 200 KiB that become 200 MiB."""
    if not _BOMB:
        packer = zlib.compressobj(9, wbits=31)
        block = b" " * (1 << 20)
        _BOMB.append(b"".join([packer.compress(block) for _ in range(200)]) + packer.flush())
    return _BOMB[0]
