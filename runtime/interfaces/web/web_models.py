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
    """The settings of ``create_app``. ``models``: at least one; the first is the default.

    ``history``: the SQLite file of answers. ``keys``: the key file (``http.access.Keys``). ``templates``: the file of named
    prompts. ``keep``: maximum number of stored runs per key. ``cors``: allowed origins of other pages (default: none). ``grace``:
    seconds given to active answers at shutdown. ``cache``: whether calls are cached. ``log``: whether to log each request on
    stderr.
    """

    models: tuple[Model, ...]
    history: Path
    keys: Path
    host: str = "127.0.0.1"
    port: int = 8000
    keep: int = 1000
    templates: Path | None = None
    cors: tuple[str, ...] = ()
    limits: Limits = field(factory=Limits)
    run: RunLimits = field(factory=RunLimits)
    grace: float = 30.0
    cache: bool = True
    log: bool = False

    def __attrs_post_init__(self) -> None:
        if not self.models:
            raise ValueError("a server needs a model")


# Routes whose body ``Bodies`` has parsed already: FastAPI does not parse it again.


class ParsedBodyRoute(APIRoute):
    """A route that uses the body already parsed by ``Bodies``."""

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


# Shared objects of the routes, as parameters ``parts: TheParts`` and ``who: TheCaller``.


@frozen
class ServerContext:
    """The server's settings, keys, gate and models, for the lifetime of the app."""

    settings: ServerSettings
    keys: Keys
    gate: Admission
    served: ServedModels


def parts_of(request: Request) -> ServerContext:
    """Return the parts of the app that received ``request``."""
    parts: ServerContext = request.app.state.parts
    return parts


_bearer = HTTPBearer(
    auto_error=False,
    scheme_name="key",
    description="A key that `knotwork serve --add-key NAME` made. A server that only its own machine reaches may need none.",
)


def who_of(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],  # for the OpenAPI document
) -> Owner:
    """Return the owner of the request. ``http.access.AccessCheck`` has verified the key before the body was read."""
    who: Owner = request.state.who
    return who


Context = Annotated[ServerContext, Depends(parts_of)]
RequestOwner = Annotated[Owner, Depends(who_of)]
