"""Errors as problem documents (RFC 9457, ``application/problem+json``): what they are, and how they are written.

``type`` is ``urn:knotwork:problem:NAME``. Nothing of the server's insides gets into one: an unexpected exception is a 500 with
an id that the server's log has too.
"""

import json
from collections.abc import Mapping
from typing import Any

import orjson
from starlette.responses import Response

__all__ = ["MEDIA_TYPE", "OUT_OF_TIME", "OVER_BUDGET", "SHUTTING_DOWN", "Problem", "problem_response", "written"]


# JSON as it goes to clients and into the history.


def written(value: Any) -> bytes:
    """Return JSON. Half a surrogate pair, which a client of the host's own may return, is no text and becomes a "?".

    Whole numbers may be of any size.
    """
    try:
        return orjson.dumps(value)
    except (TypeError, UnicodeEncodeError):
        return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


MEDIA_TYPE = "application/problem+json"
_TYPE = "urn:knotwork:problem:"

OVER_BUDGET = ("over-budget", 502, "The run used up what a run may spend")
OUT_OF_TIME = ("out-of-time", 502, "The run took too long")
SHUTTING_DOWN = ("shutting-down", 503, "The server is shutting down")
"""Name, status and title of problems that come from several places."""


class Problem(Exception):
    """A request that is answered with an error. Raise it anywhere below the app.

    ``name`` is the last part of ``type`` and stays the same for all of its kind, as does ``title``; ``detail`` is about this one;
    ``members`` are further members of the document. ``headers`` go with the response.
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
        told: dict[str, Any] = {"type": f"{_TYPE}{self.name}", "title": self.title, "status": self.status}
        if self.detail:
            told["detail"] = self.detail
        return told | self.members


def problem_response(problem: Problem) -> Response:
    """Return the response that says ``problem``."""
    return Response(
        written(problem.as_json()), status_code=problem.status, headers=problem.headers, media_type=MEDIA_TYPE
    )
