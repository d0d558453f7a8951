"""Problem documents for exceptions raised by FastAPI and by the runtime."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from ....lang.diagnostic import all_as_json, nearest, printable
from ...api.server_runs import UnknownModel
from ...errors import RequestError
from ...results import ScriptError
from ..http.problems import Problem, problem_response

OF_HTTP = {
    404: ("not-found", 404, "Not found"),
    405: ("method-not-allowed", 405, "The method is not allowed here"),
}
"""Maps the HTTP status of an error raised by FastAPI to the name, status and title of the problem."""
_METHODS = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
_FAULTS = 50
"""Maximum number of faults that are reported for a request."""
_LONGEST = 200


def add_handlers(app: FastAPI) -> None:
    """Make ``app`` return problem documents for exceptions raised by FastAPI and by the runtime."""

    async def invalid_request(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for this class
        return problem_response(_invalid_of(request, error))

    async def refused_request(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestError)  # noqa: S101
        allowed = {"allowed": error.hint} if error.hint else {}
        return problem_response(invalid([{"pointer": f"/{error.parameter}", "message": error.message, **allowed}]))

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, ScriptError)  # noqa: S101
        return problem_response(refused_script(all_as_json(error.diagnostics, error.source)))

    async def unknown_model(request: Request, error: Exception) -> Response:
        assert isinstance(error, UnknownModel)  # noqa: S101
        return problem_response(
            Problem("unknown-model", 422, "The server does not offer this model", str(error), models=list(error.names))
        )

    async def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101
        status, headers = error.status_code, dict(error.headers or {})
        if status == 405:
            headers["Allow"] = ", ".join(_methods(request))
        kind = OF_HTTP.get(status, (f"http-{status}", status, str(error.detail)))
        return problem_response(Problem(*kind, headers=headers))

    async def problem(request: Request, error: Exception) -> Response:
        assert isinstance(error, Problem)  # noqa: S101
        return problem_response(error)

    for kind, handler in (
        (RequestValidationError, invalid_request), (RequestError, refused_request), (ScriptError, refused),
        (UnknownModel, unknown_model), (HTTPException, of_http), (Problem, problem),
    ):  # fmt: skip
        app.add_exception_handler(kind, handler)


def _methods(request: Request) -> list[str]:
    """Return all methods that are allowed for the path. The router itself reports only the methods of the first matching route."""
    asked = {name: request.scope[name] for name in ("type", "path", "root_path", "headers")}
    routes = request.app.routes

    def is_allowed(method: str) -> bool:
        as_routed = "GET" if method == "HEAD" else method  # ``app.Heads`` serves HEAD with GET
        return any(route.matches(asked | {"method": as_routed})[0] is Match.FULL for route in routes)

    return [method for method in _METHODS if is_allowed(method)]


def invalid(errors: Sequence[Mapping[str, Any]], found: int | None = None) -> Problem:
    """Return the problem for an invalid request, with the JSON pointer and a message for each fault.

    ``found`` is the number of all faults; it is needed only if ``errors`` does not contain all faults.
    """
    found = len(errors) if found is None else found
    detail = "; ".join(
        f"{error['pointer'].removeprefix('/') or 'the body'}: {error['message']}" for error in errors[:3]
    )
    more = f"; and {found - 3:,} more" if found > 3 else ""
    return Problem("invalid-request", 422, "The request is not valid", detail + more, errors=list(errors))


def refused_script(diagnostics: Sequence[Mapping[str, Any]]) -> Problem:
    """Return the problem for a script with errors. No part of such a script is run."""
    errors = [found for found in diagnostics if found["severity"] == "error"]
    first = f"{errors[0]['message']} ({errors[0]['code']})" if errors else ""
    more = f"; and {len(errors) - 1} more" if len(errors) > 1 else ""
    return Problem(
        "script-refused", 422, "The script has errors; nothing was run", first + more, diagnostics=list(diagnostics)
    )


def refused_seed(diagnostics: Sequence[Mapping[str, Any]], text: str) -> Problem:
    """Return the problem for a seed with errors; the spans of the diagnostics refer to ``text``, the JSON text of the seed."""
    errors = [found for found in diagnostics if found["severity"] == "error"]
    first = f"{errors[0]['message']} ({errors[0]['code']})" if errors else ""
    more = f"; and {len(errors) - 1} more" if len(errors) > 1 else ""
    return Problem(
        "seed-refused",
        422,
        "The seed has errors; nothing was run",
        first + more,
        diagnostics=list(diagnostics),
        text=text,
    )


def _invalid_of(request: Request, error: RequestValidationError) -> Problem:
    model = _model_of(request)
    found, faults = [], error.errors()
    for fault in faults[:_FAULTS]:  # a body can have tens of thousands of unknown names
        where, *path = fault["loc"]
        described = {"pointer": "".join(f"/{_escaped(part)}" for part in path), "message": _message(fault)}
        if where != "body":
            described["in"] = where
        if fault["type"] == "extra_forbidden":
            described |= _suggestion(str(path[-1]), model if len(path) == 1 else None)
        found.append(described)
    return invalid(found, len(faults))


def _message(fault: Mapping[str, Any]) -> str:
    """Return the message for a fault, with the allowed values; some messages from pydantic are replaced."""
    allowed = fault.get("ctx", {})
    match fault["type"]:
        case "model_attributes_type":
            return "it must be an object"
        case "missing":
            return "it is missing"
        case "extra_forbidden":
            return "unknown parameter"
        case "greater_than_equal" | "less_than_equal" | "greater_than" | "less_than":
            words = {"ge": "at least", "le": "at most", "gt": "more than", "lt": "less than"}
            return ", ".join(f"it must be {word} {allowed[name]}" for name, word in words.items() if name in allowed)
        case "string_too_long":
            return f"it is too long: at most {allowed['max_length']:,} characters"
        case "too_long":
            return f"it is too long: at most {allowed['max_length']:,} items"
        case "value_error":
            return str(allowed.get("error", fault["msg"]))[:_LONGEST]
    message = str(fault["msg"])[:_LONGEST]
    return message[:1].lower() + message[1:]


def _suggestion(name: str, model: type[BaseModel] | None) -> dict[str, Any]:
    if model is None:
        return {}
    names = list(model.model_fields)
    like = nearest(name, names)
    return {"allowed": names, **({"hint": f"did you mean {like!r}?"} if like else {})}


def _model_of(request: Request) -> type[BaseModel] | None:
    """Return the pydantic model of the body that the route expects, or None."""
    body = getattr(request.scope.get("route"), "body_field", None)
    kind = getattr(getattr(body, "field_info", None), "annotation", None)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def _escaped(part: object) -> str:
    return printable(str(part))[:_LONGEST].replace("~", "~0").replace("/", "~1")
