"""``knotwork serve``: serve iterative answers, scripts and the Lab page over HTTP."""

import logging
import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer
from attrs import frozen

from .....lang.diagnostic import printable
from ....errors import RequestError
from ....models.factory import default_spec
from ....runs.debug_log import level
from ....runs.directories import base_directory
from ...options import named_specs, price_of
from ..output import Exit, Misused, complain, say
from ..params import LIMITS, MaxCalls, MaxCost, MaxTokens, ModelSpec, NoCache, PriceOf, no_key

if TYPE_CHECKING:
    from ...http.access import Keys
    from ...web.web_models import Model, ServerSettings

KEYS = "Keys"
"""The help heading of the key options."""


def serve(
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", "-p", metavar="N", min=0, max=65535, help="Port; 0 picks a free port.")
    ] = 8000,
    llm: ModelSpec = None,
    models: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME=SPEC",
            callback=no_key,
            help="Additional model that clients may name.",
            show_default=False,
        ),
    ] = None,
    history: Annotated[
        str | None,
        typer.Option(
            "--history",
            metavar="FILE",
            help="File of the answers' history (default: next to the runs).",
            show_default=False,
        ),
    ] = None,
    keep_runs: Annotated[
        int,
        typer.Option("--keep-runs", metavar="N", min=1, help="Number of runs kept per key; the oldest are deleted."),
    ] = 1000,
    templates: Annotated[
        str | None,
        typer.Option("--templates", metavar="FILE", help="Prompt templates that clients may name.", show_default=False),
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(
            "--cors",
            metavar="ORIGIN",
            help="Allowed origin of web pages, such as https://example.org.",
            show_default=False,
        ),
    ] = None,
    keys: Annotated[
        str | None,
        typer.Option(
            "--keys",
            metavar="FILE",
            rich_help_panel=KEYS,
            help="File of the API keys (default: next to the runs).",
            show_default=False,
        ),
    ] = None,
    add_key: Annotated[
        str | None,
        typer.Option(
            "--add-key",
            metavar="NAME",
            rich_help_panel=KEYS,
            help="Make an API key, print it once, and exit.",
            show_default=False,
        ),
    ] = None,
    remove_key: Annotated[
        str | None,
        typer.Option(
            "--remove-key", metavar="NAME", rich_help_panel=KEYS, help="Remove an API key and exit.", show_default=False
        ),
    ] = None,
    list_keys: Annotated[
        bool, typer.Option("--list-keys", rich_help_panel=KEYS, help="List the API keys by name and exit.")
    ] = False,
    max_runs: Annotated[
        int,
        typer.Option("--max-runs", metavar="N", min=1, rich_help_panel=LIMITS, help="Maximum number of parallel runs."),
    ] = 16,
    max_runs_per_key: Annotated[
        int,
        typer.Option(
            "--max-runs-per-key",
            metavar="N",
            min=1,
            rich_help_panel=LIMITS,
            help="Maximum number of parallel runs per key.",
        ),
    ] = 4,
    rate_per_key: Annotated[
        str,
        typer.Option(
            "--rate-per-key", metavar="N/minute", rich_help_panel=LIMITS, help="Maximum number of requests per key."
        ),
    ] = "120/minute",
    time_limit: Annotated[
        float,
        typer.Option(
            "--time-limit", metavar="S", min=0.001, rich_help_panel=LIMITS, help="Time limit of a run in seconds."
        ),
    ] = 600.0,
    grace: Annotated[
        float,
        typer.Option(
            "--grace", metavar="S", min=0, rich_help_panel=LIMITS, help="Seconds that runs have to finish at shutdown."
        ),
    ] = 30.0,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    no_cache: NoCache = False,
    log: Annotated[bool, typer.Option("--log", help="Log each request on stderr.")] = False,
) -> int:
    """Serve iterative answers and scripts over HTTP, and the Lab page to try them.

    Without keys the server accepts only local clients. Limits on calls, tokens and cost apply to each run.

    Example: knotwork serve --llm openai:gpt-4o --port 8000
    """

    asked = ServeAsked(
        host, port, llm, tuple(models or ()), history, keep_runs, templates, tuple(cors or ()), keys, add_key, remove_key, list_keys,
        max_runs, max_runs_per_key, rate_per_key, time_limit, grace, max_calls, max_tokens, max_cost, price, not no_cache, log,
    )  # fmt: skip
    return perform(asked)


# The arguments of ``serve``.


@frozen
class ServeAsked:
    """The arguments of ``knotwork serve``, named as on the command line."""

    host: str
    port: int
    llm: str | None
    models: tuple[str, ...]
    history: str | None
    keep_runs: int
    templates: str | None
    cors: tuple[str, ...]
    keys: str | None
    add_key: str | None
    remove_key: str | None
    list_keys: bool
    max_runs: int
    max_runs_per_key: int
    rate_per_key: str
    time_limit: float
    grace: float
    max_calls: int | None
    max_tokens: int | None
    max_cost: float | None
    price: str | None
    cache: bool
    log: bool


# ``serve --add-key``, ``--remove-key`` and ``--list-keys``.


def manage_keys(asked: ServeAsked, path: Path) -> int:
    """Add, remove or list keys and return the exit code. A new key is written to stdout and is not shown again."""
    from ...http.access import KeysError, add_key, read_keys, remove_key

    if sum((asked.add_key is not None, asked.remove_key is not None, asked.list_keys)) > 1:
        raise Misused("--add-key, --remove-key and --list-keys are one at a time")
    try:
        if asked.add_key is not None:
            made = add_key(path, asked.add_key)
            print(made)
            say(printable(f"this is the only time it is shown; its hash is kept in {path}"))
        elif asked.remove_key is not None:
            remove_key(path, asked.remove_key)
            say(printable(f"removed; servers that use {path} no longer take it"))
        else:
            for key in read_keys(path):
                print(printable(f"{key.created}  {key.name}"))
    except KeysError as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    return Exit.DONE


# Access to a server over HTTP: the key file, and the check that other machines need a key.


def keys_path(given: str | None) -> Path:
    """Return the key file: the given one, or the default one, which all servers of a user share."""
    return Path(given) if given is not None else base_directory().parent / "keys.json"


def whether_keys_are_needed(keys: "Keys", host: str) -> bool:
    """Return whether clients need a key. Raises ``KeysError``, and ``Misused`` if ``host`` is not loopback and no key exists."""
    from ...http.server import is_loopback

    needed = keys.needed
    if not needed and not is_loopback(host):
        raise Misused(
            f"--host {printable(host)} lets other machines in, and there are no keys",
            "make one: knotwork serve --add-key NAME; or listen on 127.0.0.1",
        )
    return needed


def say_keys(needed: bool) -> None:
    """Report on stderr whether clients need a key."""
    say("keys: needed" if needed else "keys: none needed on this machine; knotwork serve --add-key NAME makes one")


# Builds the server from the arguments: settings, server, messages on stderr.

_ALIASES = {"local": "local", "replay": "replay", "record": "record"}
"""Public names of models whose spec is a file path; the path is not disclosed."""


def perform(asked: ServeAsked) -> int:
    """Run the command and return the exit code. Raises ``Misused`` and ``NotConfigured``."""
    for name in ("fastapi", "uvicorn"):
        if find_spec(name) is None:
            raise Misused("serve: its extra is not installed", "pip install 'knotwork[server]'")
    keys = keys_path(asked.keys)
    if asked.add_key is not None or asked.remove_key is not None or asked.list_keys:
        return manage_keys(asked, keys)
    return _serve(asked, keys)


def _serve(asked: ServeAsked, keys: Path) -> int:
    from ...http.access import Keys, KeysError
    from ...http.server import NoPort
    from ...web.app import serve

    settings = _settings(asked, keys)
    try:
        needed = whether_keys_are_needed(Keys(keys), asked.host)
    except KeysError as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    logging.basicConfig(format="%(message)s", level=logging.WARNING)

    def ready(url: str) -> None:
        default, *others = settings.models
        more = f", and {', '.join(model.name for model in others)}" if others else ""
        say(printable(f"model: {default.name}{f' ({default.spec})' if default.spec != default.name else ''}{more}"))
        say_keys(needed)
        say(f"listening on {url}/lab")

    try:
        in_order = serve(settings, ready)
    except NoPort as error:
        complain(str(error), "--port 0 picks a free one")
        return Exit.FAILED
    except RequestError as error:  # from reading the templates
        raise Misused(error.message, error.hint) from None
    return Exit.DONE if in_order else Exit.INTERRUPTED


def _settings(asked: ServeAsked, keys: Path) -> "ServerSettings":
    from ...http.server import Limits
    from ...web.web_models import RunLimits, ServerSettings

    folder = base_directory().parent
    return ServerSettings(
        models=_models(asked),
        history=Path(asked.history) if asked.history is not None else folder / "answers.sqlite",
        keys=keys,
        keep=asked.keep_runs,
        host=asked.host,
        port=asked.port,
        templates=Path(asked.templates) if asked.templates is not None else None,
        cors=tuple(_origin(given) for given in asked.cors),
        limits=Limits(_rate(asked.rate_per_key), asked.max_runs, asked.max_runs_per_key),
        run=RunLimits(asked.max_calls, asked.max_tokens, asked.max_cost, price_of(asked.price), asked.time_limit),
        grace=asked.grace,
        cache=asked.cache,
        log=asked.log or level() > 0,
    )


def _models(asked: ServeAsked) -> "tuple[Model, ...]":
    from ...web.web_models import Model

    spec = (asked.llm or default_spec(os.environ)).strip()
    named = named_specs(asked.models)
    name = _name_of(spec)
    if name in named:
        name = "default"
    if name in named:
        raise Misused(f"--model {name}=... has the name of the server's own model", "give it another name")
    return (Model(name, spec), *(Model(each, wanted) for each, wanted in named.items()))


def _name_of(spec: str) -> str:
    """Return the model's name for clients; never an address or a path."""
    if spec.startswith(("http://", "https://")):
        return spec.partition("#")[2] or "default"
    scheme, _, rest = spec.partition(":")
    return _ALIASES.get(scheme, rest or scheme)


def _rate(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(?:/(?:m|min|minute))?", text.strip())
    if found is None or not float(found[1]) >= 1:
        raise Misused(f"--rate-per-key takes requests a minute, not {text!r}", "for example --rate-per-key 60/minute")
    return float(found[1])


def _origin(text: str) -> str:
    try:
        parts = urlsplit(text)
        plain = parts.scheme in ("http", "https") and parts.netloc and text == f"{parts.scheme}://{parts.netloc}"
    except ValueError:
        plain = False
    if not plain:
        raise Misused(f"--cors takes an origin, not {text!r}", "scheme and host without a path: https://example.org")
    return text.lower()
