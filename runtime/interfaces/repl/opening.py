"""Opens the desk of a session: graph, state, models under one budget."""

from pathlib import Path

from ...models.wiring import Ledger
from ...runs.directories import cache_file
from ...session.workspace import Telling
from ..misused import Misused
from ..models import named_specs, price_of
from ..opening import opened
from .asked import DeskAsked
from .desk import Desk, Settings
from .models import Model

__all__ = ["open_desk"]


def open_desk(asked: DeskAsked, telling: Telling) -> Desk:
    """Open all of it. A state knows the graph and the chunks that it was made with: they may be left out the next time.

    Raises ``AdapterError``, ``StoreError``, ``NotConfigured``, ``GivenUp`` and ``Misused``.
    """
    limits = asked.limits
    price, named = price_of(limits.price), named_specs(asked.models)
    if limits.max_cost is not None and price is None:
        raise Misused("--max-cost needs the model's price", "--price IN/OUT, dollars for a million tokens in and out")
    ledger = Ledger(limits.max_calls, limits.max_tokens, limits.max_cost)

    def model(spec: str) -> Model:
        return Model(spec, ledger, price=price, cache=cache_file if limits.cache else _none, warn=telling.warn)

    def default() -> Model:
        made = model("")
        if asked.llm is not None:
            made.choose(asked.llm)
        return made

    made = opened(asked.ground, default, telling)
    models = {name: model(spec) for name, spec in named.items()}
    settings = Settings(asked.mode)
    return Desk(made.state, made.models, made.adapter, made.graph, models, made.chunks, asked.given, settings=settings)


def _none(spec: str) -> Path | None:
    return None
