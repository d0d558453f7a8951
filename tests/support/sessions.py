"""The REPL's session in tests: a desk in memory, and what a person would see of each outcome."""

import asyncio
import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from knotwork.runtime.interfaces.cli.turn import Screen
from knotwork.runtime.interfaces.repl.outcome import Outcome
from knotwork.runtime.interfaces.repl.repl_workspace import Desk, Model
from knotwork.runtime.interfaces.repl.session import Session, Waiting
from knotwork.runtime.models.factory import Ledger, Price, open_graph, open_state

__all__ = ["desk", "ran", "run", "seen"]


def desk(
    graph: Any = None, *, llm: str = "", state: Path | None = None, price: Price | None = None, given: Any = None
) -> Desk:
    """Return a desk: the graph of a name or a networkx graph, a model of a spec, a state in memory."""
    adapter = None if graph is None else open_graph(graph).adapter
    name = graph if isinstance(graph, str) else ""
    # A model's spec "replay:..." answers from a cassette; "" is whatever the environment names, which tests have empty.
    model = Model(llm, Ledger(), price=price, environ={"KNOTWORK_LLM": llm or "replay:/nowhere"})
    return Desk(open_state(state), model, adapter, name, input=given)


def ran(desk: Desk, text: str, *, stop: bool = False) -> list[Outcome]:
    """Run a text and return the outcomes of its pieces."""

    async def all_of_it() -> list[Outcome]:
        session, waiting, outcomes = Session(desk), Waiting(text, stop=stop), list[Outcome]()
        while (piece := waiting.next()) is not None:
            outcomes.append(waiting.settled(await session.run(piece)))
        return outcomes

    return asyncio.run(all_of_it())


def run(desk: Desk, text: str) -> Outcome:
    """Run a text of one piece."""
    (outcome,) = ran(desk, text)
    return outcome


def seen(desk: Desk, outcome: Outcome) -> str:
    """Return all that is written of an outcome, what goes to stderr first."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        asyncio.run(Screen(desk.settings).write(outcome))
    return err.getvalue() + out.getvalue()
