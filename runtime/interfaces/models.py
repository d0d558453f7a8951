"""The models that options name, and what their calls may cost: from specs to clients."""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from attrs import evolve

from ..runs.directories import cache_file
from ..session.workspace import Models
from .asked import Limits
from .misused import Misused

if TYPE_CHECKING:
    from ...adapters.llm.middleware import Client
    from ..models.wiring import ModelSettings, Price

__all__ = ["clients", "named_specs", "open_models", "price_of"]


def named_specs(given: tuple[str, ...]) -> dict[str, str]:
    """Return name and spec of every ``--model NAME=SPEC``."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, spec = text.partition("=")
        if not equals or not name.strip() or not spec.strip():
            raise Misused(f"--model takes a name and a model, not {text!r}", "for example --model small=local")
        found[name.strip()] = spec.strip()
    return found


def open_models(
    spec: str | None,
    named: Mapping[str, str],
    limits: Limits,
    max_concurrency: int | None,
    warn: Callable[[str], None],
) -> Models:
    """Return the clients for ``spec`` (None: no default) and for every named model. Raises ``NotConfigured`` and ``Misused``."""
    from ..models.wiring import Ledger, ModelSettings

    ledger = Ledger(limits.max_calls, limits.max_tokens, limits.max_cost)
    settings = ModelSettings(spec or "", None, ledger, price_of(limits.price), limits.rate, max_concurrency)
    return clients(spec, named, settings, warn, cache=limits.cache)


def clients(
    spec: str | None,
    named: Mapping[str, str],
    settings: "ModelSettings",
    warn: Callable[[str], None],
    environ: Mapping[str, str] = os.environ,
    *,
    cache: bool,
) -> Models:
    """Return the clients for ``spec`` (None: no default) and ``named``, each with ``settings``, all on one ledger.

    Raises ``NotConfigured``.
    """
    from ..models.wiring import open_model

    def client(wanted: str) -> "Client":
        mine = evolve(settings, spec=wanted, cache=cache_file(wanted) if cache else None)
        return open_model(mine, environ, warn=warn)

    default = None if spec is None else client(spec)
    return Models(spec or "", default, {name: client(wanted) for name, wanted in named.items()}, settings.ledger)


def price_of(text: str | None) -> "Price | None":
    """Return the price that ``--price IN/OUT`` says; None where there is none. Raises ``Misused``."""
    if text is None:
        return None
    from ..models.wiring import Price

    parts = text.split("/")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) != 2 or not all(0 <= number < float("inf") for number in numbers):
        raise Misused(
            f"--price takes two prices, not {text!r}", "dollars for a million tokens in and out, such as --price 0.25/2"
        )
    return Price(*numbers)
