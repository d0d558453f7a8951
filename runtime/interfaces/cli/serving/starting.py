"""``serve`` put together: what was asked as the server's settings, the server, and what is told on stderr."""

import logging
import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from .....lang.diagnostic import printable
from ....errors import RequestError
from ....models.wiring import default_spec
from ....runs.debug_log import level
from ....runs.directories import base_directory
from ...models import named_specs, price_of
from ..shared.exit import Exit, Misused
from ..shared.output import complain, say
from .asked import ServeAsked
from .entering import keys_path, say_keys, whether_keys_are_needed
from .managing import manage_keys

if TYPE_CHECKING:
    from ...web.settings import Model, ServerSettings

__all__ = ["perform"]

_ALIASES = {"local": "local", "replay": "replay", "record": "record"}
"""What a model is called that has only a file for a name: a path is nobody's business."""


def perform(asked: ServeAsked) -> int:
    """Do what was asked and return the exit code. Raises ``Misused`` and ``NotConfigured``."""
    for name in ("fastapi", "uvicorn"):
        if find_spec(name) is None:
            raise Misused("serve: its extra is not installed", "pip install 'knotwork[server]'")
    keys = keys_path(asked.keys)
    if asked.add_key is not None or asked.remove_key is not None or asked.list_keys:
        return manage_keys(asked, keys)
    return _serve(asked, keys)


def _serve(asked: ServeAsked, keys: Path) -> int:
    from ...http.keys import Keys, KeysError
    from ...http.listening import NoPort
    from ...web.serving import serve

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
    except RequestError as error:  # the templates'
        raise Misused(error.message, error.hint) from None
    return Exit.DONE if in_order else Exit.INTERRUPTED


def _settings(asked: ServeAsked, keys: Path) -> "ServerSettings":
    from ...http.settings import Limits
    from ...web.settings import RunLimits, ServerSettings

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
    from ...web.settings import Model

    spec = (asked.llm or default_spec(os.environ)).strip()
    named = named_specs(asked.models)
    name = _name_of(spec)
    if name in named:
        name = "default"
    if name in named:
        raise Misused(f"--model {name}=... has the name of the server's own model", "give it another name")
    return (Model(name, spec), *(Model(each, wanted) for each, wanted in named.items()))


def _name_of(spec: str) -> str:
    """Return what clients call the model: its own name, never an address or a path."""
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
