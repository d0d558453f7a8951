"""What the routes of a server share, and how a route gets at it: ``parts: TheParts`` and ``who: TheCaller`` as parameters."""

from typing import Annotated

from attrs import frozen
from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from ..http.gate import Gate, Who
from ..http.keys import Keys
from .models import Offered
from .settings import ServerSettings

__all__ = ["Parts", "TheCaller", "TheParts", "parts_of", "who_of"]


@frozen
class Parts:
    """The server's settings, keys, gate and models. They live as long as the app does."""

    settings: ServerSettings
    keys: Keys
    gate: Gate
    offered: Offered


def parts_of(request: Request) -> Parts:
    """Return the parts of the app that ``request`` came to."""
    parts: Parts = request.app.state.parts
    return parts


_bearer = HTTPBearer(
    auto_error=False,
    scheme_name="key",
    description="A key that `knotwork serve --add-key NAME` made. A server that only its own machine reaches may need none.",
)


def who_of(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],  # for the OpenAPI document
) -> Who:
    """Return whose request it is. ``guarding.Guard`` has looked at the key before the body came."""
    who: Who = request.state.who
    return who


TheParts = Annotated[Parts, Depends(parts_of)]
TheCaller = Annotated[Who, Depends(who_of)]
