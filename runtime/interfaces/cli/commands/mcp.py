"""``knotwork mcp``: serve the languages to agents over the Model Context Protocol."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ..output import Exit, Misused, complain, say
from ..params import (
    SERVER,
    AsWritten,
    CacheAt,
    ChunksFile,
    GraphSource,
    Host,
    KeysFile,
    LogRequests,
    MaxCalls,
    MaxCost,
    MaxRuns,
    MaxTokens,
    ModelSpec,
    NamedModels,
    NoCaches,
    OnAnotherGraph,
    PriceOf,
    RatePerKey,
    StateFolder,
    cache_of,
    flag,
    option,
    time_limit_option,
)
from .serve import keys_path, needs_keys, requests_per_minute, say_keys

if TYPE_CHECKING:
    from ...mcp.workspace import ServerWorkspace, Settings


def mcp(
    graph: GraphSource = None,
    state: StateFolder = None,
    read_only: Annotated[bool, flag("--read-only", "Refuse all changes to the state.")] = False,
    force: OnAnotherGraph = False,
    raw: AsWritten = False,
    chunks: ChunksFile = None,
    llm: ModelSpec = None,
    models: NamedModels = None,
    no_model: Annotated[bool, flag("--no-model", "Make no calls to models.")] = False,
    port: Annotated[
        int | None,
        option(
            "--http",
            "PORT",
            "Serve streamable HTTP on this port instead of stdio; 0 picks a free port.",
            SERVER,
            min=0,
            max=65535,
        ),
    ] = None,
    host: Host = "127.0.0.1",
    keys: KeysFile = None,
    rate_per_key: RatePerKey = "600/minute",
    log: LogRequests = False,
    max_runs: MaxRuns = 16,
    time_limit: Annotated[float, time_limit_option("Time limit per tool call in seconds.", show_default=True)] = 600.0,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    cache: CacheAt = None,
    no_cache: NoCaches = False,
) -> int:
    """Serve tools, resources and prompts to an agent, over stdio or HTTP.

    Limits on calls, tokens and cost apply to the entire lifetime of the server. The server reads and writes only the files that are
    named in its options.

    Example: knotwork mcp --graph nx:les_miserables --state run/ --max-calls 200
    """
    import logging

    from ....api import states
    from ....api.clients import default_spec
    from ...mcp.workspace import Limits, Settings
    from ...options import check_folder, named_specs, price_of

    if find_spec("mcp") is None:
        raise Misused("mcp: the optional dependencies are not installed", "pip install 'knotwork[mcp]'")
    if port is not None and any(find_spec(name) is None for name in ("fastapi", "uvicorn")):
        raise Misused("mcp --http: the server's extra is not installed", "pip install 'knotwork[mcp,server]'")
    check_folder(state)  # before ``Path`` turns an empty name into "."
    if state is not None and os.path.isfile(state) and not read_only:
        hint = f"knotwork state fork {state} DIR copies an exported state into a directory; --read-only opens the file"
        raise Misused(f"{state} is a file; --state needs a directory", hint)
    if llm is not None and no_model:
        raise Misused("--llm and --no-model contradict each other", "give only one of them")
    if state is not None and read_only:
        states.find(state)
    over_http = {"--keys": keys is not None, "--log": log, "--host": host != "127.0.0.1"}
    if port is None and (unused := [name for name, given in over_http.items() if given]):
        raise Misused(f"{unused[0]} applies only to --http", "add --http PORT to serve HTTP")
    logging.basicConfig(format="%(message)s", level=logging.WARNING, stream=sys.stderr)
    limits = Limits(max_calls, max_tokens, max_cost, price_of(price), time_limit, max_runs)
    spec = None if no_model else (llm or default_spec(needed=False)).strip() or None
    settings = Settings(
        graph=graph, state=Path(state) if state is not None else None, read_only=read_only, force=force, raw=raw,
        spec=spec, models={} if no_model else named_specs(models or ()), chunks=chunks,
        cache=cache_of(cache, no_cache), limits=limits, names_address=port is None,
    )  # fmt: skip
    return (
        _over_stdio(settings)
        if port is None
        else _over_http(settings, host, port, keys, requests_per_minute(rate_per_key), log)
    )


def _open(settings: "Settings") -> "ServerWorkspace":
    from .....lang.diagnostic import printable
    from ...mcp.workspace import ServerWorkspace
    from ..inputs import opening_callbacks, warn

    workspace = ServerWorkspace.open(settings, opening_callbacks(warn))
    graph = workspace.graph or "none (scripts and seeds only)"
    state = f"{settings.state or 'in memory'}{', read-only' if settings.read_only else ''}"
    say(printable(f"knotwork mcp: graph {graph} · state {state} · model {settings.spec or 'none'}"))
    return workspace


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
    from ...http.server import Limits, PortUnavailable
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
    except PortUnavailable as error:
        complain(str(error), "--http 0 picks a free port")
        return Exit.FAILED
    return Exit.DONE
