"""Routes whose body ``http.bodies.Bodies`` has parsed: FastAPI does not parse it again."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

__all__ = ["Route"]


class Route(APIRoute):
    """A route that takes the body as ``Bodies`` has parsed it."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            return await handle(_Parsed(request.scope, request.receive))

        return handled


class _Parsed(Request):
    async def json(self) -> Any:
        """Return the body's value."""
        return self.state.json
