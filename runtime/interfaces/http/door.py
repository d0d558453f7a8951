"""The door: what a request passes before the application sees it, in order."""

from collections.abc import Sequence

from starlette.middleware import Middleware

from .access import Access
from .bodies import Bodies
from .faults import Catching
from .gate import Gate
from .guarding import Guard
from .headers import Headers
from .keys import Keys
from .settings import Entrance

__all__ = ["door"]


def door(settings: Entrance, keys: Keys, gate: Gate, own: Sequence[Middleware] = ()) -> list[Middleware]:
    """Return the layers around an application, from outside. ``own``: the server's, around all that may refuse."""
    return [
        *([Middleware(Access)] if settings.log else []),
        Middleware(Headers, cors=bool(settings.cors)),
        *own,
        Middleware(Catching),
        Middleware(Guard, settings=settings, keys=keys, gate=gate),
        Middleware(Bodies, limits=settings.limits),
    ]
