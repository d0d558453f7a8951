"""``knotwork mcp``: serve the languages to agents over the Model Context Protocol."""

import logging
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from attrs import frozen

from .....adapters.llm import NotConfigured
from .....lang.diagnostic import printable
from ....models.factory import default_spec
from ...mcp.workspace import Ground, Limits, Settings
from ...options import check_folder, named_specs, price_of
from ..inputs import telling, there, warn
from ..output import Exit, Misused, complain, say
from ..params import (
    LIMITS,
    AsWritten,
    ChunksFile,
    GraphSource,
    MaxCalls,
    MaxCost,
    MaxTokens,
    ModelSpec,
    NoCache,
    OnAnotherGraph,
    PriceOf,
    StateFolder,
    no_key,
)
from .serve import keys_path, say_keys, whether_keys_are_needed

HTTP = "Over HTTP"
"""The help heading of the HTTP options."""


def mcp(
    graph: GraphSource = None,
    state: StateFolder = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Read-only: refuse all changes of the state.")] = False,
    force: OnAnotherGraph = False,
    raw: AsWritten = False,
    chunks: ChunksFile = None,
    llm: ModelSpec = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME=SPEC",
            callback=no_key,
            help="Additional model that scripts and plans may name.",
            show_default=False,
        ),
    ] = None,
    no_model: Annotated[bool, typer.Option("--no-model", help="Make no calls to models.")] = False,
    port: Annotated[
        int | None,
        typer.Option(
            "--http",
            metavar="PORT",
            min=0,
            max=65535,
            rich_help_panel=HTTP,
            help="Serve streamable HTTP on this port instead of stdio; 0 picks a free port.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", metavar="HOST", rich_help_panel=HTTP, help="Address to listen on.")
    ] = "127.0.0.1",
    keys: Annotated[
        str | None,
        typer.Option(
            "--keys",
            metavar="FILE",
            rich_help_panel=HTTP,
            help="File of the API keys made by knotwork serve --add-key.",
            show_default=False,
        ),
    ] = None,
    rate_per_key: Annotated[
        float,
        typer.Option(
            "--rate-per-key",
            metavar="N",
            min=1,
            rich_help_panel=HTTP,
            help="Maximum number of requests per key and minute.",
        ),
    ] = 600.0,
    log: Annotated[bool, typer.Option("--log", rich_help_panel=HTTP, help="Log each request on stderr.")] = False,
    max_runs: Annotated[
        int,
        typer.Option(
            "--max-runs", metavar="N", min=1, rich_help_panel=LIMITS, help="Maximum number of parallel tool calls."
        ),
    ] = 16,
    time_limit: Annotated[
        float,
        typer.Option(
            "--time-limit", metavar="S", min=0.001, rich_help_panel=LIMITS, help="Time limit of a tool call in seconds."
        ),
    ] = 600.0,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    no_cache: NoCache = False,
) -> int:
    """Serve tools, resources and prompts to an agent, over stdio or HTTP.

    Limits on calls, tokens and cost apply to the whole life of the server. Only the files named here are read or written.

    Example: knotwork mcp --graph nx:les_miserables --state run/ --max-calls 200
    """

    asked = McpAsked(
        graph=graph, state=state, read_only=read_only, force=force, raw=raw, chunks=chunks, llm=llm, models=tuple(models or ()),
        no_model=no_model, port=port, host=host, keys=keys, rate_per_key=rate_per_key, log=log, max_runs=max_runs,
        time_limit=time_limit, max_calls=max_calls, max_tokens=max_tokens, max_cost=max_cost, price=price, cache=not no_cache,
    )  # fmt: skip
    return perform(asked)


# The arguments of ``mcp``.


@frozen
class McpAsked:
    """The arguments of ``knotwork mcp``, named as on the command line."""

    graph: str | None
    state: str | None
    read_only: bool
    force: bool
    raw: bool
    chunks: str | None
    llm: str | None
    models: tuple[str, ...]
    no_model: bool
    port: int | None
    host: str
    keys: str | None
    rate_per_key: float
    log: bool
    max_runs: int
    time_limit: float
    max_calls: int | None
    max_tokens: int | None
    max_cost: float | None
    price: str | None
    cache: bool


# Builds the server from the arguments: settings, workspace, transport. stdout belongs to the client.


def perform(asked: McpAsked) -> int:
    """Serve until the client leaves or a signal arrives.

    Raises ``Misused``, ``NotConfigured``, ``AdapterError`` and ``StoreError``.
    """
    _require(asked)
    logging.basicConfig(format="%(message)s", level=logging.WARNING, stream=sys.stderr)
    settings = _settings(asked)
    return _over_stdio(settings) if asked.port is None else _over_http(settings, asked, asked.port)


def _require(asked: McpAsked) -> None:
    if find_spec("mcp") is None:
        raise Misused("mcp: its extra is not installed", "pip install 'knotwork[mcp]'")
    if asked.port is not None and any(find_spec(name) is None for name in ("fastapi", "uvicorn")):
        raise Misused("mcp --http: the server's extra is not installed", "pip install 'knotwork[mcp,server]'")
    check_folder(asked.state)  # before ``Path`` turns an empty name into "."
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
    """Return the model's spec; None if no model is configured: tools that need no model still work."""
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
    from ...http.access import Keys, KeysError
    from ...http.server import Limits as OfDoor
    from ...http.server import NoPort
    from ...mcp.transports import Door, serve_http

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
