"""The OpenAPI document: title, version, the problems that every operation may answer, and the key."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from .... import __version__
from ..http.problems import MEDIA_TYPE

__all__ = ["describe"]

_ABOUT = """\
Iterative answers (generate, evaluate, feed back, until an answer is good enough) and prompt scripts.

Errors are problem documents (RFC 9457). `type` is `urn:knotwork:problem:NAME` and stays the same for all errors of one kind."""

_PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "A problem document (RFC 9457). Some have more members.",
    "properties": {
        "type": {"type": "string", "examples": ["urn:knotwork:problem:invalid-request"]},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string"},
        "errors": {
            "type": "array",
            "description": "What is wrong with the request, each with the JSON pointer of its place.",
            "items": {
                "type": "object",
                "properties": {"pointer": {"type": "string"}, "message": {"type": "string"}},
                "required": ["pointer", "message"],
            },
        },
    },
    "required": ["type", "title", "status"],
}

_COMMON = {
    "401": "A key is needed, or it is not one of this server's",
    "403": "The request came under a foreign name, or from a page of another site",
    "429": "The key asks too often, or has too many runs under way; Retry-After says when to ask again",
    "503": "The server is full or shutting down, or can't read its keys",
}
_WITH_BODY = {
    "400": "The body is not JSON",
    "408": "The body took too long to come",
    "413": "The body is too large",
    "415": "The body is not sent as application/json",
}


def describe(app: FastAPI) -> None:
    """Have ``app`` serve the document at /openapi.json."""

    def made() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(title="knotwork", version=__version__, description=_ABOUT, routes=app.routes)
            app.openapi_schema = _with_problems(document)
        return app.openapi_schema

    app.openapi = made  # type: ignore[method-assign]


def _with_problems(document: dict[str, Any]) -> dict[str, Any]:
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas["Problem"] = _PROBLEM
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for path, operations in document["paths"].items():
        for operation in operations.values():
            responses = operation["responses"]
            told = {"422": "The request is not valid"} if "422" in responses else {}
            told |= {
                status: words for status, words in _COMMON.items() if path != "/healthz" or status in ("403", "503")
            }
            if "requestBody" in operation:
                told |= _WITH_BODY
            for status, words in told.items():
                responses[status] = {
                    "description": words,
                    **{key: value for key, value in responses.get(status, {}).items() if key == "headers"},
                    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
                }
    return document
