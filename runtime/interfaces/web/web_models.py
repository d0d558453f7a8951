"""The settings of a server, and the objects that its routes share."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any

from attrs import field, frozen
from fastapi import Depends, Request, Response, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from ...api.server_runs import Model, RunLimits, ServedModels
from ..http.access import Admission, Keys, Owner
from ..http.server import Limits


@frozen
class ServerSettings:
    """The settings for ``create_app``. ``models`` contains at least one model; the first is the default.

    ``history`` is the SQLite file of the answer history (a path), or the URL of the PostgreSQL database that contains the history of
    several servers (a string); ``keys`` is the key file (``http.access.Keys``); ``templates`` is the
    file with named prompt templates. ``keep`` is the maximum number of stored runs per key. ``cors`` contains the origins from
    which other pages may send requests (default: none). ``grace`` is the number of seconds in which active answers can end at
    shutdown. If ``cache``, calls are cached; if ``log``, each request is logged on stderr.
    """

    models: tuple[Model, ...]
    history: Path | str
    keys: Path
    host: str = "127.0.0.1"
    port: int = 8000
    keep: int = 1000
    templates: Path | None = None
    cors: tuple[str, ...] = ()
    limits: Limits = field(factory=Limits)
    run: RunLimits = field(factory=RunLimits)
    grace: float = 30.0
    cache: bool | str = True
    log: bool = False

    def __attrs_post_init__(self) -> None:
        if not self.models:
            raise ValueError("a server needs at least one model")


# The body of a request has already been parsed by ``BodyReader``, so FastAPI does not parse the body again.


class ParsedBodyRoute(APIRoute):
    """A route that uses the body that ``BodyReader`` has parsed."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the request handler."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            return await handle(_Parsed(request.scope, request.receive))

        return handled


class _Parsed(Request):
    async def json(self) -> Any:
        """Return the parsed body."""
        return self.state.json


# The objects that routes share. A route gets them as the parameters ``parts: Context`` and ``who: RequestOwner``.


@frozen
class ServerContext:
    """The settings, keys, admission and models of the server, which exist for the lifetime of the application."""

    settings: ServerSettings
    keys: Keys
    gate: Admission
    served: ServedModels


def parts_of(request: Request) -> ServerContext:
    """Return the shared objects of the application that received ``request``."""
    parts: ServerContext = request.app.state.parts
    return parts


_bearer = HTTPBearer(
    auto_error=False,
    scheme_name="key",
    description="A key created with `knotwork serve --add-key NAME`. A server that accepts only local clients may not require a key.",
)


def who_of(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],  # for the OpenAPI document
) -> Owner:
    """Return the owner of the request. ``http.access.AccessCheck`` verified the key before the body was read."""
    who: Owner = request.state.who
    return who


Context = Annotated[ServerContext, Depends(parts_of)]
RequestOwner = Annotated[Owner, Depends(who_of)]
