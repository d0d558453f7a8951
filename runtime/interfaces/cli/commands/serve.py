"""``knotwork serve``: serve iterative answers, scripts and the Lab page over HTTP."""

import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

from ..output import Exit, Misused, complain, say
from ..params import (
    LIMITS,
    SERVER,
    CacheAt,
    Host,
    KeysFile,
    LogRequests,
    MaxCalls,
    MaxCost,
    MaxRuns,
    MaxTokens,
    ModelSpec,
    NamedModels,
    NoCache,
    PriceOf,
    RatePerKey,
    cache_of,
    flag,
    option,
    time_limit_option,
)

if TYPE_CHECKING:
    from ....api.server_runs import Model
    from ...http.access import Keys
    from ...web.web_models import ServerSettings

KEYS = "Keys"
"""The help's heading for the key options."""


def serve(
    host: Host = "127.0.0.1",
    port: Annotated[
        int, option("--port -p", "N", "Port; 0 picks a free port.", SERVER, min=0, max=65535, show_default=True)
    ] = 8000,
    llm: ModelSpec = None,
    models: NamedModels = None,
    history: Annotated[
        str | None,
        option(
            "--history",
            "FILE",
            "File for the history of answers (default: next to the runs), or postgresql://HOST/DATABASE (shared by servers).",
        ),
    ] = None,
    keep_runs: Annotated[
        int,
        option(
            "--keep-runs", "N", "Number of runs stored per key; the oldest runs are deleted.", min=1, show_default=True
        ),
    ] = 1000,
    templates: Annotated[
        str | None, option("--templates", "FILE", "JSON file with prompt templates that clients can select.")
    ] = None,
    cors: Annotated[
        list[str] | None,
        option("--cors", "ORIGIN", "Allowed origin of web pages, such as https://example.org. Repeatable."),
    ] = None,
    keys: KeysFile = None,
    add_key: Annotated[
        str | None, option("--add-key", "NAME", "Create an API key, print it once, and exit.", KEYS)
    ] = None,
    remove_key: Annotated[str | None, option("--remove-key", "NAME", "Remove an API key and exit.", KEYS)] = None,
    list_keys: Annotated[bool, flag("--list-keys", "List the API keys by name and exit.", KEYS)] = False,
    max_runs: MaxRuns = 16,
    max_runs_per_key: Annotated[
        int,
        option("--max-runs-per-key", "N", "Maximum number of parallel runs per key.", LIMITS, min=1, show_default=True),
    ] = 4,
    rate_per_key: RatePerKey = "120/minute",
    time_limit: Annotated[float, time_limit_option("Time limit per run in seconds.", show_default=True)] = 600.0,
    grace: Annotated[
        float,
        option(
            "--grace",
            "S",
            "Number of seconds that runs may take to finish at shutdown.",
            LIMITS,
            min=0,
            show_default=True,
        ),
    ] = 30.0,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    cache: CacheAt = None,
    no_cache: NoCache = False,
    log: LogRequests = False,
) -> int:
    """Serve iterative answers and scripts over HTTP, together with the Lab, a page for trying both.

    Without keys the server accepts only local clients. Limits on calls, tokens and cost apply to each run.

    Example: knotwork serve --llm openai:gpt-4o --port 8000
    """
    from ....api.runs import level
    from ...options import price_of

    if any(find_spec(name) is None for name in ("fastapi", "uvicorn")):
        raise Misused("serve: the optional dependencies are not installed", "pip install 'knotwork[server]'")
    key_file = keys_path(keys)
    if add_key is not None or remove_key is not None or list_keys:
        return _manage_keys(key_file, add_key, remove_key, list_keys)

    from ....api.server_runs import RunLimits
    from ...http.server import Limits
    from ...web.web_models import ServerSettings

    settings = ServerSettings(
        models=_models(llm, models or ()), history=_history(history),
        keys=key_file, keep=keep_runs, host=host, port=port, templates=Path(templates) if templates is not None else None,
        cors=tuple(_origin(each) for each in cors or ()), limits=Limits(requests_per_minute(rate_per_key), max_runs, max_runs_per_key),
        run=RunLimits(max_calls, max_tokens, max_cost, price_of(price), time_limit), grace=grace, cache=cache_of(cache, no_cache),
        log=log or level() > 0,
    )  # fmt: skip
    return _serve(settings)


def _history(text: str | None) -> "Path | str":
    """Return the path of the SQLite file, or the URL of the PostgreSQL database. Raises ``Misused``."""
    from ....api.runs import base_directory
    from ....api.server_runs import POSTGRES, has_password, without_password

    if text is None:
        return base_directory().parent / "answers.sqlite"
    if not text.startswith(POSTGRES):
        if "://" in text:
            raise Misused(
                f"--history: {without_password(text)} is neither a file nor a PostgreSQL database",
                "give a FILE or postgresql://HOST/DATABASE",
            )
        return Path(text)
    if has_password(text):
        raise Misused(
            f"--history: the URL {without_password(text)} has a password, which others can read",
            "set PGPASSWORD, or write the password into ~/.pgpass",
        )
    return text


def _manage_keys(path: Path, new: str | None, removed: str | None, listed: bool) -> int:
    """Add, remove or list API keys; return the exit code. A new key is written to stdout, and is not shown again."""
    from .....lang.diagnostic import printable
    from ...http.access import KeysError, add_key, read_keys, remove_key

    if sum((new is not None, removed is not None, listed)) > 1:
        raise Misused("--add-key, --remove-key and --list-keys can't be combined", "give only one of them")
    try:
        if new is not None:
            print(add_key(path, new))
            say(printable(f"the key is shown only this once; its hash is stored in {path}"))
        elif removed is not None:
            remove_key(path, removed)
            say(printable(f"the key was removed; servers that use {path} no longer accept it"))
        else:
            for key in read_keys(path):
                print(printable(f"{key.created}  {key.name}"))
    except KeysError as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    return Exit.DONE


def keys_path(name: str | None) -> Path:
    """Return the path of the key file. All servers of a user share the default file."""
    from ....api.runs import base_directory

    return Path(name) if name is not None else base_directory().parent / "keys.json"


def needs_keys(keys: "Keys", host: str) -> bool:
    """Return whether clients need a key. Raises ``KeysError``; raises ``Misused`` if ``host`` is not loopback and no key exists."""
    from .....lang.diagnostic import printable
    from ....api.clients import is_loopback

    needed = keys.needed
    if not needed and not is_loopback(host):
        raise Misused(
            f"--host {printable(host)} allows other machines to connect, but no API key exists",
            "create a key with: knotwork serve --add-key NAME; or listen on 127.0.0.1",
        )
    return needed


def say_keys(needed: bool) -> None:
    """Report on stderr whether clients need a key."""
    say("keys: required" if needed else "keys: not required on this machine; knotwork serve --add-key NAME creates one")


_ALIASES = {"local": "local", "replay": "replay", "record": "record"}
"""Maps kinds of model specs to public names. Specs of these kinds may contain a file path, which must not be disclosed."""


def _serve(settings: "ServerSettings") -> int:
    """Serve until a signal arrives and return the exit code. Raises ``Misused``."""
    import logging

    from .....lang.diagnostic import printable
    from ....errors import RequestError
    from ...http.access import Keys, KeysError
    from ...http.server import PortUnavailable
    from ...web.app import serve

    try:
        needed = needs_keys(Keys(settings.keys), settings.host)
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
        is_complete = serve(settings, ready)
    except PortUnavailable as error:
        complain(str(error), "--port 0 picks a free port")
        return Exit.FAILED
    except RequestError as error:  # from reading the templates
        raise Misused(error.message, error.hint) from None
    return Exit.DONE if is_complete else Exit.INTERRUPTED


def _models(llm: str | None, named: Sequence[str]) -> "tuple[Model, ...]":
    from ....api.clients import default_spec
    from ....api.server_runs import Model
    from ...options import named_specs

    spec = (llm or default_spec()).strip()
    others = named_specs(named)
    name = _public_name(spec)
    if name in others:
        name = "default"
    if name in others:
        raise Misused(f"--model {name}=... has the same name as the server's default model", "choose another name")
    return (Model(name, spec), *(Model(each, wanted) for each, wanted in others.items()))


def _public_name(spec: str) -> str:
    """Return the name of the model that clients see. It is never an address or a path."""
    if spec.startswith(("http://", "https://")):
        return spec.partition("#")[2] or "default"
    scheme, _, rest = spec.partition(":")
    return _ALIASES.get(scheme, rest or scheme)


def requests_per_minute(text: str) -> float:
    """Return the value of --rate-per-key. Raises ``Misused``."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(?:/(?:m|min|minute))?", text.strip())
    if match is None or not float(match[1]) >= 1:
        raise Misused(f"--rate-per-key: {text!r} is not a number of requests per minute", "such as 60/minute")
    return float(match[1])


def _origin(text: str) -> str:
    try:
        parts = urlsplit(text)
        plain = parts.scheme in ("http", "https") and parts.netloc and text == f"{parts.scheme}://{parts.netloc}"
    except ValueError:
        plain = False
    if not plain:
        raise Misused(f"--cors: {text!r} is not an origin", "give scheme and host without a path: https://example.org")
    return text.lower()
