"""What nobody caught: a ``Problem`` is answered as it is; what nobody foresaw is logged and told to nobody else."""

import logging
import secrets
import traceback

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .problems import Problem, problem_response

__all__ = ["LOG", "Catching", "unexpected"]

LOG = logging.getLogger("knotwork.server")


class Catching:
    """Middleware that answers what is raised below it. Once an answer has begun it can only be cut off."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Hand the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = begun or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, noted)
            return
        except Problem as error:
            problem = error
        except Exception as error:  # whatever is left is a bug: it is ours to know, not the client's
            problem = unexpected(error)
        if not begun:
            await problem_response(problem)(scope, receive, send)


def unexpected(error: Exception) -> Problem:
    """Log ``error`` under an id, without its text, which may have a client's words in it, and return the problem with the id."""
    number = secrets.token_hex(4)
    while isinstance(error, ExceptionGroup):  # what tasks side by side raised: the first of them says most
        error = error.exceptions[0]
    places = [
        f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)[-6:]
    ]
    LOG.error("internal error %s: %s at %s", number, type(error).__name__, " < ".join(reversed(places)))
    detail = f"the server's log says more under {number}"
    return Problem("internal", 500, "The server failed", detail, error=number)
