"""``mcp`` put together: what was asked as the server's settings, what it opens, and the transport. stdout is the client's."""

import logging
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from .....adapters.llm import NotConfigured
from .....lang.diagnostic import printable
from ....folders import base_directory
from ....wiring import default_spec
from ...mcp.ground import Ground
from ...mcp.settings import Limits, Settings
from ..execution.models import named_specs, price_of
from ..shared.exit import Exit, Misused
from ..shared.output import complain, say
from ..shared.states import chunks_of, graph_of, reading, there
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
    if asked.state is not None and os.path.isfile(asked.state) and not asked.read_only:
        hint = f"knotwork state fork {asked.state} DIR makes a folder of an exported state, or --read-only"
        raise Misused(f"{asked.state} is a file; --state takes a folder, in which the state is kept", hint)
    if asked.llm is not None and asked.no_model:
        raise Misused("--llm names a model, and --no-model asks none", "one of them")
    if asked.max_cost is not None and asked.price is None and not asked.no_model:
        raise Misused("--max-cost needs --price", "dollars for a million tokens in and out, such as --price 0.25/2")


def _settings(asked: McpAsked) -> Settings:
    """Return the settings. A state knows the graph and the chunks that it was made with: they may be left out."""
    graph, chunks = asked.graph, asked.chunks
    if asked.state is not None and (asked.read_only or os.path.exists(asked.state)):
        with reading(str(there(asked.state))) as store:
            kept = store.replay_info()
            graph, chunks = graph or graph_of(kept), chunks or chunks_of(kept)
    return Settings(
        graph=graph, state=Path(asked.state) if asked.state is not None else None, read_only=asked.read_only,
        spec=_spec(asked), models={} if asked.no_model else named_specs(asked.models), chunks=chunks, cache=asked.cache,
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
    ground = Ground.open(settings, lambda text: say(printable(f"warning: {text}")))
    graph = settings.graph or "none: scripts and seeds only"
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
    from ...mcp.http import Door, serve_http
    from ...web.keys import Keys, KeysError
    from ...web.serving import NoPort
    from ...web.settings import Limits as OfDoor

    path = Path(asked.keys) if asked.keys is not None else base_directory().parent / "keys.json"
    keys = Keys(path)
    try:
        needed = keys.needed
    except KeysError as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    door = Door(asked.host, port, keys, limits=OfDoor(rate=asked.rate_per_key), log=asked.log)
    if not needed and not door.on_loopback:
        raise Misused(
            f"--host {printable(asked.host)} lets other machines in, and there are no keys",
            "make one: knotwork serve --add-key NAME; or listen on 127.0.0.1",
        )

    def ready(url: str) -> None:
        say("keys: needed" if needed else "keys: none needed on this machine; knotwork serve --add-key NAME makes one")
        say(f"listening on {url}")

    try:
        serve_http(_opened(settings), __version__, door, ready)
    except NoPort as error:
        complain(str(error), "--http 0 picks a free one")
        return Exit.FAILED
    return Exit.DONE
