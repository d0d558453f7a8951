"""What a server is told at its start: where it listens, which models it offers, where it keeps things, and its limits."""

from ipaddress import ip_address
from pathlib import Path

from attrs import field, frozen

from ....adapters.llm_budget import Ledger, Price

__all__ = ["Limits", "Model", "RunLimits", "ServerSettings", "is_loopback"]


@frozen
class Model:
    """A model that is offered: the name that clients know it by, and its spec, which they never see."""

    name: str
    spec: str


@frozen
class RunLimits:
    """What one run may spend (None: no limit) and how long it may take, in seconds. ``price`` is of a million tokens."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    price: Price | None = None
    seconds: float = 600.0

    def ledger(self) -> Ledger:
        """Return a new run's ledger."""
        return Ledger(self.max_calls, self.max_tokens, self.max_cost)


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


@frozen
class ServerSettings:
    """All that ``create_app`` needs. ``models``: at least one; the first is the default.

    ``history``: the SQLite file of the answers, ``keys``: that of the keys (``keys.Keys``), ``templates``: the prompts by name.
    ``keep``: runs of one key that the history keeps. ``cors``: origins whose pages may ask; none by default. ``grace``: seconds that
    running answers get at shutdown.
    ``cache``: whether calls are cached. ``log``: a line on stderr for each request.
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

    @property
    def on_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Say whether ``host`` (a name, or an address as URLs write it) is this machine's own and no other."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False
