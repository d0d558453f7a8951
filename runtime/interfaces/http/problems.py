"""Errors as problem documents (RFC 9457, ``application/problem+json``): definition and serialisation.

``type`` is ``urn:knotwork:problem:NAME``. A document never reveals internals of the server: for an unexpected exception, the
document has status 500 and an id that is also in the server's log.
"""

import json
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.responses import Response

# JSON for clients and for the history.


def json_bytes(value: Any) -> bytes:
    """Return ``value`` as JSON. Integers may have any size.

    A lone surrogate, which a host program's model client may return, is not valid text and is replaced by "?".
    """
    try:
        return orjson.dumps(value)
    except (TypeError, UnicodeEncodeError):
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


MEDIA_TYPE = "application/problem+json"
_TYPE = "urn:knotwork:problem:"

OVER_BUDGET = ("over-budget", 502, "The run has used up its budget")
OUT_OF_TIME = ("out-of-time", 502, "The run has reached its time limit")
SHUTTING_DOWN = ("shutting-down", 503, "The server is shutting down")
"""Name, status and title of a problem that is raised in several modules."""


class Problem(Exception):
    """An error that is sent as the response to a request. A ``Problem`` may be raised anywhere in the application.

    ``name`` is the last part of ``type``. ``name`` and ``title`` are the same for all problems of one kind; ``detail`` describes this
    problem. ``members`` are additional members of the document. ``headers`` are sent with the response.
    """

    def __init__(
        self, name: str, status: int, title: str, detail: str = "", headers: Mapping[str, str] | None = None, **members: Any
    ) -> None:  # fmt: skip
        super().__init__(detail or title)
        self.name = name
        self.status = status
        self.title = title
        self.detail = detail
        self.headers = dict(headers or {})
        self.members = members

    def as_json(self) -> dict[str, Any]:
        """Return the problem document."""
        document: dict[str, Any] = {"type": f"{_TYPE}{self.name}", "title": self.title, "status": self.status}
        if self.detail:
            document["detail"] = self.detail
        return document | self.members


def problem_response(problem: Problem) -> Response:
    """Return the response for ``problem``."""
    return Response(
        json_bytes(problem.as_json()), status_code=problem.status, headers=problem.headers, media_type=MEDIA_TYPE
    )
