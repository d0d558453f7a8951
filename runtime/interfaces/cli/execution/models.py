"""The models of a run: from specs on the command line to clients, and what a script needs of them."""

import os
import re
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from .....adapters.llm import LLM
from .....lang.lwt import Call, Script, Text
from .....lang.node import walk
from .....lang.operations import BUILTIN
from ....folders import cache_file
from ..shared.exit import Misused
from .asked import Limits

__all__ = ["Models", "cache_file", "close_models", "named_specs", "needs_default", "open_models", "price_of"]


@frozen
class Models:
    """The clients of a run. ``spec`` is the default model's, empty where the run has none."""

    spec: str
    default: Any = None
    named: Mapping[str, LLM] = field(factory=dict)


def named_specs(given: tuple[str, ...]) -> dict[str, str]:
    """Return name and spec of every ``--model NAME=SPEC``."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, spec = text.partition("=")
        if not equals or not name.strip() or not spec.strip():
            raise Misused(f"--model takes a name and a model, not {text!r}", "for example --model small=local")
        found[name.strip()] = spec.strip()
    return found


def needs_default(script: Script) -> bool:
    """Say whether a step asks the run's own model. A script of constants, or of graph commands, runs without one."""
    calls = [node for step in script.steps for node in walk(step) if isinstance(node, Call)]
    return any(
        call.operation not in BUILTIN
        or (call.operation in ("ANSWER", "LLM", "SEED") and call.option("model") is None)
        or (call.operation == "GASL" and _program_asks(call))
        for call in calls
    )


_ASKING = re.compile(r"\b(?:PROCESS|CLASSIFY|ANALYZE)\b", re.IGNORECASE)


def _program_asks(call: Call) -> bool:
    """Say whether the program of a GASL call may ask a model; that of a file may."""
    texts = [part.value for part in walk(call) if isinstance(part, Text)]
    return call.option("file") is not None or any(_ASKING.search(text) for text in texts)


def open_models(spec: str | None, named: Mapping[str, str], limits: Limits, max_concurrency: int, warn: Any) -> Models:
    """Return the clients for ``spec`` (None: no default) and for every named model. Raises ``NotConfigured``."""
    from ....wiring import Ledger, ModelSettings, open_model

    price = price_of(limits.price)
    ledger = Ledger(limits.max_calls, limits.max_tokens, limits.max_cost)

    def client(wanted: str) -> Any:
        settings = ModelSettings(
            wanted, cache_file(wanted) if limits.cache else None, ledger, price, limits.rate, max_concurrency
        )
        return open_model(settings, os.environ, warn=warn)

    default = client(spec) if spec is not None else None
    return Models(spec or "", default, {name: client(wanted) for name, wanted in named.items()})


async def close_models(models: Models) -> None:
    """Let go of every client."""
    for client in (models.default, *models.named.values()):
        close = getattr(client, "aclose", None)
        if close is not None:
            await close()


def price_of(text: str | None) -> Any:
    """Return the price that ``--price IN/OUT`` says; None where there is none."""
    if text is None:
        return None
    from ....wiring import Price

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
