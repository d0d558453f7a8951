"""A server with Anthropic's batch API, for tests; see ``support.batch_server``, whose faults it has. Batches have no marks."""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web

from support.batch_server import LoopbackBatches, holds

__all__ = ["MessageBatchServer"]


@dataclass
class MessageBatchServer(LoopbackBatches):
    """The server: ``async with MessageBatchServer() as server``; ``server.url`` is ``ANTHROPIC_BASE_URL``. ``fails`` are overloaded."""

    requests: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The address."""
        return f"http://127.0.0.1:{self.port}"

    def app(self) -> web.Application:
        """Return the application with its routes."""
        app = web.Application(client_max_size=1 << 28)
        app.router.add_post("/v1/messages", self._message)
        app.router.add_post("/v1/messages/batches", self._create)
        app.router.add_get("/v1/messages/batches", self._list)
        app.router.add_get("/v1/messages/batches/{id}", self._retrieve)
        app.router.add_get("/v1/messages/batches/{id}/results", self._results)
        app.router.add_post("/v1/messages/batches/{id}/cancel", self._cancel)
        return app

    def add(self, requests: list[Any]) -> str:
        """Make a batch."""
        batch, now = f"msgbatch_{len(self.batches)}", datetime.now(UTC)
        counts = dict.fromkeys(("canceled", "errored", "expired", "succeeded"), 0)
        self.requests[batch] = requests
        self.batches[batch] = {
            "id": batch, "type": "message_batch", "processing_status": "in_progress", "created_at": now.isoformat(),
            "expires_at": (now + timedelta(days=1)).isoformat(), "archived_at": None, "cancel_initiated_at": None, "ended_at": None,
            "request_counts": {**counts, "processing": len(requests)}, "results_url": None, "polls": self.polls,
        }  # fmt: skip
        return batch

    async def _create(self, request: web.Request) -> web.Response:
        fault = self._faults.popleft() if self._faults else ""
        given = (await request.json())["requests"]
        batch = self.add(given) if fault != "refuse" else ""
        self.after_create(len(self.batches))
        if fault:
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(self.batches[batch] if batch else {})

    async def _list(self, request: web.Request) -> web.Response:
        after, limit = request.query.get("after_id"), int(request.query.get("limit", 20))
        ids = list(self.batches)[::-1]
        ids = ids[ids.index(after) + 1 if after else 0 :]
        page = [self.batches[each] for each in ids[:limit]]
        last = page[-1]["id"] if page else None
        return web.json_response({"data": page, "has_more": len(ids) > limit, "first_id": None, "last_id": last})

    async def _retrieve(self, request: web.Request) -> web.Response:
        batch = self.batches[request.match_info["id"]]
        batch["polls"] -= 1
        if batch["processing_status"] != "ended" and (batch["polls"] < 0 or batch["cancel_initiated_at"]):
            batch |= {"processing_status": "ended", "ended_at": datetime.now(UTC).isoformat()}
            batch["results_url"] = f"{self.url}/v1/messages/batches/{batch['id']}/results"
            batch["request_counts"]["processing"] = 0
            for _, kind, _ in self._lines(batch):
                batch["request_counts"][kind] += 1
        return web.json_response(batch)

    async def _cancel(self, request: web.Request) -> web.Response:
        batch = self.batches[request.match_info["id"]]
        batch |= {"processing_status": "canceling", "cancel_initiated_at": datetime.now(UTC).isoformat()}
        return web.json_response(batch)

    def _lines(self, batch: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
        """Return the key, the kind and the result of each request."""
        found: list[tuple[str, str, dict[str, Any]]] = []
        for asked in self.requests[batch["id"]][::-1]:
            prompt, key = asked["params"]["messages"][-1]["content"], asked["custom_id"]
            if batch["cancel_initiated_at"]:
                found.append((key, "canceled", {"type": "canceled"}))
            elif holds(self.expires, prompt):
                found.append((key, "expired", {"type": "expired"}))
            elif holds(self.fails, prompt):
                error = {
                    "type": "error",
                    "error": {"type": "overloaded_error", "message": "Overloaded"},
                    "request_id": None,
                }
                found.append((key, "errored", {"type": "errored", "error": error}))
            else:
                found.append((key, "succeeded", {"type": "succeeded", "message": self._body(asked["params"])}))
        return found

    async def _results(self, request: web.Request) -> web.Response:
        batch = self.batches[request.match_info["id"]]
        lost = {
            asked["custom_id"]
            for asked in self.requests[batch["id"]]
            if holds(self.loses, asked["params"]["messages"][-1]["content"])
        }
        lines = [
            json.dumps({"custom_id": key, "result": told}) for key, _, told in self._lines(batch) if key not in lost
        ]
        return web.Response(text="".join(line + "\n" for line in lines), content_type="application/x-jsonl")

    def _body(self, asked: dict[str, Any]) -> dict[str, Any]:
        text = self.answer(asked["messages"][-1]["content"])
        return {
            "id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"],
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": None,
            "usage": {"input_tokens": 11, "output_tokens": 7},
        }  # fmt: skip

    async def _message(self, request: web.Request) -> web.Response:
        asked = await request.json()
        self.live.append(asked["messages"][-1]["content"])
        return web.json_response(self._body(asked))
