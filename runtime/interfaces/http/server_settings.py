"""What the door of a server is told at its start: where the server listens, whose pages may ask, and what clients may ask of it."""

from ipaddress import ip_address
from typing import Protocol

from attrs import frozen

__all__ = ["Entrance", "Limits", "is_loopback"]


@frozen
class Limits:
    """What clients may ask of the server.

    ``rate``: requests a minute of one key. ``runs``: under way at once, of all; ``runs_per_key``: of one key. Where no keys are
    needed only ``runs`` counts. ``body_bytes``: the most of a request's body; ``body_seconds``: for receiving it.
    """

    rate: float = 120.0
    runs: int = 16
    runs_per_key: int = 4
    body_bytes: int = 1 << 20
    body_seconds: float = 10.0


class Entrance(Protocol):
    """Where a server listens, whose pages may ask, and how much: each server's own settings have it."""

    @property
    def host(self) -> str:
        """The address that it listens on."""
        ...

    @property
    def cors(self) -> tuple[str, ...]:
        """Origins whose pages may ask."""
        ...

    @property
    def limits(self) -> Limits:
        """What clients may ask of it."""
        ...

    @property
    def log(self) -> bool:
        """Whether each request is a line on stderr."""
        ...


def is_loopback(host: str) -> bool:
    """Say whether ``host`` (a name, or an address as URLs write it) is this machine's own and no other."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False
