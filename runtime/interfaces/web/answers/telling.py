"""What the OpenAPI document says of responses besides their models."""

from typing import Any

from ...http.problems import MEDIA_TYPE
from .schemas import RUN

__all__ = ["FAILED", "LOCATED", "MISSING", "STREAMED"]

_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}

MISSING: dict[str, Any] = {"description": "The key has no run of this id", "content": _PROBLEM}
FAILED: dict[str, Any] = {
    "description": "The run has no answer: `type` says why (no-answer, over-budget, out-of-time, run-cancelled, "
    "model-unusable, interrupted); `run` is its id, `iterations` what there was",
    "content": _PROBLEM,
}
LOCATED: dict[str, Any] = {
    "headers": {
        "Location": {"description": "The run's address", "schema": {"type": "string"}, "example": f"/lab/runs/{RUN}"}
    }
}
_EVENT: dict[str, Any] = {
    "type": "object",
    "description": "An event as the wire has it",
    "properties": {
        "event": {"type": "string", "description": "Its name"},
        "data": {"type": "string", "contentMediaType": "application/json", "description": "A JSON object"},
        "id": {"type": "string", "pattern": "^[0-9]+$", "description": "Its number in the run, from 1"},
    },
    "required": ["event", "data", "id"],
}
STREAMED: dict[str, Any] = {
    "description": "Events until the run is over, and comments where nothing happens for a while",
    "content": {
        "text/event-stream": {
            "schema": _EVENT,
            "example": {
                "event": "iteration.started",
                "data": '{"event":"iteration.started","at":0.004,"step":"","iteration":1}',
                "id": "3",
            },
        }
    },
}
