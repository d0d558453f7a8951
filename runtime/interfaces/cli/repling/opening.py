"""Opens what a session works on: graph, state, models, input."""

import os
from collections.abc import Callable
from typing import Any

from .....adapters.chunks import open_chunks
from ....folders import cache_file
from ....wiring import Ledger, open_graph, open_state
from ...repl.desk import Desk, Settings
from ...repl.models import Model
from ..execution.models import named_specs, price_of
from ..shared.exit import Misused
from ..shared.files import Unreadable, read_input
from ..shared.states import chunks_of, graph_of
from .asked import ReplAsked

__all__ = ["open_desk"]


def open_desk(asked: ReplAsked, warn: Callable[[str], None], announce: Callable[[str], None]) -> Desk:
    """Open all of it. A state knows the graph and the chunks that it was made with: they may be left out the next time.

    Raises ``AdapterError``, ``StoreError``, ``NotConfigured`` and ``Misused``.
    """
    ground, limits = asked.ground, asked.limits
    if ground.state is not None and os.path.isfile(ground.state):
        hint = f"knotwork state fork {ground.state} DIR makes a folder of an exported state"
        raise Misused(f"{ground.state} is a file; --state takes a folder, in which the state is kept", hint)
    given = None if asked.input_file is None else _input(asked.input_file)
    price, named = price_of(limits.price), named_specs(asked.models)
    if limits.max_cost is not None and price is None:
        raise Misused("--max-cost needs the model's price", "--price IN/OUT, dollars for a million tokens in and out")
    # A folder is made when all else is known to be there, and one that is there is locked before a graph is loaded.
    state = None if ground.state is not None and not os.path.exists(ground.state) else open_state(ground.state)
    try:
        kept = {} if state is None else state.replay_info()
        source, texts = ground.graph or graph_of(kept), ground.chunks or chunks_of(kept)
        if source is not None:
            announce(source)
        adapter = None if source is None else open_graph(source).adapter
        chunks = None if texts is None else open_chunks(texts)
        state = state or open_state(ground.state)
        for notice in state.notices:
            warn(notice)
        ledger = Ledger(limits.max_calls, limits.max_tokens, limits.max_cost)

        def model(spec: str) -> Model:
            return Model(spec, ledger, price=price, cache=cache_file if limits.cache else lambda spec: None, warn=warn)

        default = model("")
        if asked.llm is not None:
            default.choose(asked.llm)
        config: dict[str, Any] = {}
        if source is not None:
            params = {} if texts is None else {"chunks": texts}
            config["adapter"] = {"type": "networkx", "path": str(source), "params": params}
        if asked.llm is not None:
            config["llm"] = {"provider": asked.llm.partition(":")[0], "model": asked.llm}
        if config:
            state.configure(config=config)
        models = {name: model(spec) for name, spec in named.items()}
    except BaseException:
        if state is not None:
            state.close()
        raise
    return Desk(state, default, adapter, source or "", models, chunks, given, settings=Settings(asked.mode))


def _input(name: str) -> Any:
    try:
        return read_input(name)
    except Unreadable as error:
        hint = error.diagnostic.hints[0] if error.diagnostic.hints else ""
        raise Misused(error.diagnostic.message, hint) from None
