"""``knotwork mcp``: serve the languages to agents over the Model Context Protocol."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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
from .serve import keys_path, needs_keys, say_keys

if TYPE_CHECKING:
    from ...mcp.workspace import Ground, Settings

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
    import logging

    from ...mcp.workspace import Limits, Settings
    from ...options import check_folder, named_specs, price_of
    from ..inputs import there

    if find_spec("mcp") is None:
        raise Misused("mcp: its extra is not installed", "pip install 'knotwork[mcp]'")
    if port is not None and any(find_spec(name) is None for name in ("fastapi", "uvicorn")):
        raise Misused("mcp --http: the server's extra is not installed", "pip install 'knotwork[mcp,server]'")
    check_folder(state)  # before ``Path`` turns an empty name into "."
    if state is not None and os.path.isfile(state) and not read_only:
        hint = f"knotwork state fork {state} DIR copies an exported state into a directory; --read-only opens the file"
        raise Misused(f"{state} is a file; --state needs a directory", hint)
    if llm is not None and no_model:
        raise Misused("--llm and --no-model contradict each other", "give only one of them")
    if max_cost is not None and price is None and not no_model:
        raise Misused("--max-cost needs --price", "US dollars per million prompt and completion tokens: --price 0.25/2")
    if state is not None and read_only:
        there(state)
    logging.basicConfig(format="%(message)s", level=logging.WARNING, stream=sys.stderr)
    limits = Limits(max_calls, max_tokens, max_cost, price_of(price), time_limit, max_runs)
    settings = Settings(
        graph=graph, state=Path(state) if state is not None else None, read_only=read_only, force=force, raw=raw,
        spec=None if no_model else _spec(llm), models={} if no_model else named_specs(models or ()), chunks=chunks,
        cache=not no_cache, limits=limits,
    )  # fmt: skip
    return _over_stdio(settings) if port is None else _over_http(settings, host, port, keys, rate_per_key, log)


def _spec(llm: str | None) -> str | None:
    """Return the model's spec; None if no model is configured: tools that need no model still work."""
    from .....adapters.llm import NotConfigured
    from ....models.factory import default_spec

    if llm is not None:
        return llm.strip()
    try:
        return default_spec()
    except NotConfigured:
        return None


def _open(settings: "Settings") -> "Ground":
    from .....lang.diagnostic import printable
    from ...mcp.workspace import Ground
    from ..inputs import telling, warn

    ground = Ground.open(settings, telling(warn))
    graph = ground.name or "none: scripts and seeds only"
    state = f"{settings.state or 'in memory'}{', read-only' if settings.read_only else ''}"
    say(printable(f"knotwork mcp: graph {graph} · state {state} · model {settings.spec or 'none'}"))
    return ground


def _over_stdio(settings: "Settings") -> int:
    from ..... import __version__
    from ...mcp.transports import serve_stdio

    if sys.stdin.isatty():
        say("waiting for a client on stdin; MCP hosts start this command themselves. Ctrl-C ends it")
    serve_stdio(_open(settings), __version__)
    return Exit.DONE


def _over_http(settings: "Settings", host: str, port: int, keys_file: str | None, rate: float, log: bool) -> int:
    from ..... import __version__
    from ...http.access import Keys, KeysError
    from ...http.server import Limits, NoPort
    from ...mcp.transports import Door, serve_http

    keys = Keys(keys_path(keys_file))
    try:
        needed = needs_keys(keys, host)
    except KeysError as error:
        complain(error.message, error.hint)
        return Exit.FAILED

    def ready(url: str) -> None:
        say_keys(needed)
        say(f"listening on {url}")

    try:
        serve_http(_open(settings), __version__, Door(host, port, keys, limits=Limits(rate=rate), log=log), ready)
    except NoPort as error:
        complain(str(error), "--http 0 picks a free port")
        return Exit.FAILED
    return Exit.DONE
