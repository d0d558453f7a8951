"""A model server that answers each review with its stored label, for benchmarks that compare tools; it counts what each review cost.

In a process of its own: ``PYTHONPATH=tests python -m support.label_server --labels labels.json``; it prints its address
(``http://host:port/v1``). ``labels.json`` is an object: id of a review → label. A review in a prompt ends with ``mark(id)``, which is
how the server knows it, however the tool escapes or wraps the text.

It is an ``asyncio.Protocol`` without a framework, so that it costs little beside the tools that it serves: ``GET /stats`` says what came in
and the CPU time that the answers took. The answer has the form that the request asks for: the arguments of a tool call, else JSON as text.

``--faults 0.05`` makes the answers of that share of the reviews faulty, drawn by the id: JSON cut in the middle (with the finish reason
"length"), prose around the JSON, or a label that is not in the list. A fault happens once, at the first request for the review;
``--lasting`` repeats it at each request.
"""

import argparse
import asyncio
import hashlib
import json
import re
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

__all__ = ["FAULTS", "LabelServer", "fault_of", "mark"]

FAULTS = ("cut", "prose", "unlisted")
UNLISTED = "mixed"
_MARK = re.compile(rb"\(review ([a-z]*\d+)\)")


def mark(key: str) -> str:
    """Return the words at the end of a review that say its id."""
    return f"(review {key})"


def fault_of(key: str, rate: float) -> str | None:
    """Return the fault of a review, or None: the same at each call."""
    digest = hashlib.sha256(key.encode()).digest()
    if int.from_bytes(digest[:4], "big") >= rate * 2**32:
        return None
    return FAULTS[digest[4] % len(FAULTS)]


class LabelServer:
    """What the connections share: labels, counts, the clock."""

    def __init__(
        self, labels: dict[str, str], *, delay: float = 0.0, faults: float = 0.0, lasting: bool = False
    ) -> None:
        self.labels, self.delay, self.faults, self.lasting = labels, delay, faults, lasting
        self.answered: Counter[str] = Counter()
        self.other = self.faulted = self.in_flight = self.most_in_flight = 0
        self.first: tuple[float, float] | None = None
        self.last: tuple[float, float] = (0.0, 0.0)

    def stats(self) -> dict[str, Any]:
        """Return counts of requests, and seconds and CPU seconds from the first request to the last answer."""
        began, busy = self.first or self.last
        seconds, cpu = self.last[0] - began, self.last[1] - busy
        return {
            "requests": sum(self.answered.values()) + self.other, "reviews": len(self.answered), "other": self.other,
            "again": sum(count - 1 for count in self.answered.values()), "faulted": self.faulted,
            "most_in_flight": self.most_in_flight, "seconds": seconds, "cpu": cpu, "share": cpu / seconds if seconds else 0.0,
        }  # fmt: skip

    def answer(self, body: bytes) -> dict[str, Any]:
        """Return the completion for a request, and count it."""
        if self.first is None:
            self.first = (perf_counter(), process_time())
        found, request = _MARK.search(body), json.loads(body)
        key = found[1].decode() if found else ""
        label = self.labels.get(key)
        fault = None
        if label is None:
            self.other += 1
        else:
            if self.lasting or not self.answered[key]:
                fault = fault_of(key, self.faults)
                self.faulted += fault is not None
            self.answered[key] += 1
        return completion(request, label or "neutral", fault)


def completion(request: dict[str, Any], label: str, fault: str | None) -> dict[str, Any]:
    """Return a chat completion with ``label`` in the form that ``request`` asks for."""
    tools = request.get("tools") or []
    schema = tools[0]["function"].get("parameters", {}) if tools else {}
    if not tools and (form := request.get("response_format") or {}).get("type") == "json_schema":
        schema = form["json_schema"].get("schema", {})
    names = list(schema.get("properties", {})) or ["opinion"]
    text = json.dumps(dict.fromkeys(names, UNLISTED if fault == "unlisted" else label))
    reason = "tool_calls" if tools else "stop"
    if fault == "cut":
        text, reason = text[: len(text) - 6], "length"
    elif fault == "prose":
        text = f"Here is the answer that you asked for:\n\n{text}\n\nLet me know if you need anything else."
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if tools:
        call = {
            "id": "call_1",
            "type": "function",
            "function": {"name": tools[0]["function"]["name"], "arguments": text},
        }
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": request.get("model", "m"),
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
        "usage": {"prompt_tokens": 300, "completion_tokens": 8, "total_tokens": 308},
    }  # fmt: skip


class _Connection(asyncio.Protocol):
    """One connection: requests one after another, with ``Content-Length`` or in chunks."""

    def __init__(self, server: LabelServer) -> None:
        self.server, self.data, self.transport = server, bytearray(), None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None

    def data_received(self, data: bytes) -> None:
        self.data += data
        while (end := self.data.find(b"\r\n\r\n")) >= 0:
            head = bytes(self.data[:end]).lower()
            if found := re.search(rb"content-length: *(\d+)", head):
                stop = end + 4 + int(found[1])
                if len(self.data) < stop:
                    return
                body = bytes(self.data[end + 4 : stop])
            elif b"transfer-encoding: chunked" in head:
                last = self.data.find(b"\r\n0\r\n\r\n", end)
                if last < 0:
                    return
                stop, body = last + 7, _unchunked(bytes(self.data[end + 4 : last + 2]))
            else:
                stop, body = end + 4, b""
            target = bytes(self.data[: self.data.find(b"\r\n")]).split()[1]
            del self.data[:stop]
            self._serve(target, body)

    def _serve(self, target: bytes, body: bytes) -> None:
        if target == b"/stats":
            self._write(self.server.stats())
        elif target.endswith(b"/chat/completions"):
            reply = self.server.answer(body)
            self.server.in_flight += 1
            self.server.most_in_flight = max(self.server.most_in_flight, self.server.in_flight)
            asyncio.get_running_loop().call_later(self.server.delay, self._reply, reply)
        else:
            print(f"asked for {target.decode()}", file=sys.stderr)
            self._write({"error": {"message": "not found"}}, b"404 Not Found")

    def _reply(self, reply: dict[str, Any]) -> None:
        self._write(reply)
        self.server.in_flight -= 1
        self.server.last = (perf_counter(), process_time())

    def _write(self, what: dict[str, Any], status: bytes = b"200 OK") -> None:
        if self.transport is None:  # the tool was killed
            return
        body = json.dumps(what).encode()
        self.transport.write(
            b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body)
        )


def _unchunked(data: bytes) -> bytes:
    body, at = b"", 0
    while at < len(data):
        end = data.index(b"\r\n", at)
        size = int(data[at:end].split(b";")[0], 16)
        body += data[end + 2 : end + 2 + size]
        at = end + 4 + size
    return body


async def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labels", type=Path, required=True, help="JSON: id of a review -> label")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--faults", type=float, default=0.0, help="share of the reviews with a faulty answer")
    parser.add_argument("--lasting", action="store_true", help="repeat the fault at each request for the review")
    given = parser.parse_args()
    labels = json.loads(given.labels.read_text(encoding="utf-8"))
    shared = LabelServer(labels, delay=given.delay, faults=given.faults, lasting=given.lasting)
    server = await asyncio.get_running_loop().create_server(
        lambda: _Connection(shared), "127.0.0.1", given.port, backlog=1024
    )
    print("http://{}:{}/v1".format(*server.sockets[0].getsockname()[:2]), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(_main())
