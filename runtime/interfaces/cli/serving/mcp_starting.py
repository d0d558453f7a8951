"""``mcp`` put together: what was asked as the server's settings, what it opens, and the transport. stdout is the client's."""

import logging
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from .....adapters.llm import NotConfigured
from .....lang.diagnostic import printable
from ....models.wiring import default_spec
from ...mcp.ground import Ground
from ...mcp.settings import Limits, Settings
from ...models import named_specs, price_of
from ...opening import check_folder
from ..shared.exit import Exit, Misused
from ..shared.output import complain, say
from ..shared.states import there
from ..shared.telling import telling, warn
from .entering import keys_path, say_keys, whether_keys_are_needed
from .mcp_asked import McpAsked

__all__ = ["perform"]


def perform(asked: McpAsked) -> int:
    """Serve until the client has gone or a signal comes. Raises ``Misused``, ``NotConfigured``, ``AdapterError``, ``StoreError``."""
    _require(asked)
    logging.basicConfig(format="%(message)s", level=logging.WARNING, stream=sys.stderr)
    settings = _settings(asked)
    return _over_stdio(settings) if asked.port is None else _over_http(settings, asked, asked.port)


def _require(asked: McpAsked) -> None:
    if find_spec("mcp") is None:
        raise Misused("mcp: its extra is not installed", "pip install 'knotwork[mcp]'")
    if asked.port is not None and any(find_spec(name) is None for name in ("fastapi", "uvicorn")):
        raise Misused("mcp --http: the server's extra is not installed", "pip install 'knotwork[mcp,server]'")
    check_folder(asked.state)  # a path has no empty name any more
    if asked.state is not None and os.path.isfile(asked.state) and not asked.read_only:
        hint = f"knotwork state fork {asked.state} DIR makes a folder of an exported state, or --read-only"
        raise Misused(f"{asked.state} is a file; --state takes a folder, in which the state is kept", hint)
    if asked.llm is not None and asked.no_model:
        raise Misused("--llm names a model, and --no-model asks none", "one of them")
    if asked.max_cost is not None and asked.price is None and not asked.no_model:
        raise Misused("--max-cost needs --price", "dollars for a million tokens in and out, such as --price 0.25/2")


def _settings(asked: McpAsked) -> Settings:
    if asked.state is not None and asked.read_only:
        there(asked.state)
    return Settings(
        graph=asked.graph, state=Path(asked.state) if asked.state is not None else None, read_only=asked.read_only, force=asked.force,
        raw=asked.raw,
        spec=_spec(asked), models={} if asked.no_model else named_specs(asked.models), chunks=asked.chunks, cache=asked.cache,
        limits=Limits(
            asked.max_calls, asked.max_tokens, asked.max_cost, price_of(asked.price), asked.time_limit, asked.max_runs
        ),
    )  # fmt: skip


def _spec(asked: McpAsked) -> str | None:
    """Return the model's spec; None where there is none, which is no reason not to serve what needs none."""
    if asked.no_model:
        return None
    if asked.llm is not None:
        return asked.llm.strip()
    try:
        return default_spec(os.environ)
    except NotConfigured:
        return None


def _opened(settings: Settings) -> Ground:
    ground = Ground.open(settings, telling(warn))
    graph = ground.name or "none: scripts and seeds only"
    state = f"{settings.state or 'in memory'}{', only read' if settings.read_only else ''}"
    say(printable(f"knotwork mcp: graph {graph} · state {state} · model {settings.spec or 'none'}"))
    return ground


def _over_stdio(settings: Settings) -> int:
    from ..... import __version__
    from ...mcp.transports import serve_stdio

    if sys.stdin.isatty():
        say("waiting for a client on stdin; a host starts this command by itself. Ctrl-C leaves")
    serve_stdio(_opened(settings), __version__)
    return Exit.DONE


def _over_http(settings: Settings, asked: McpAsked, port: int) -> int:
    from ..... import __version__
    from ...http.keys import Keys, KeysError
    from ...http.listening import NoPort
    from ...http.settings import Limits as OfDoor
    from ...mcp.http import Door, serve_http

    keys = Keys(keys_path(asked.keys))
    try:
        needed = whether_keys_are_needed(keys, asked.host)
    except KeysError as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    door = Door(asked.host, port, keys, limits=OfDoor(rate=asked.rate_per_key), log=asked.log)

    def ready(url: str) -> None:
        say_keys(needed)
        say(f"listening on {url}")

    try:
        serve_http(_opened(settings), __version__, door, ready)
    except NoPort as error:
        complain(str(error), "--http 0 picks a free one")
        return Exit.FAILED
    return Exit.DONE
