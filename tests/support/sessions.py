"""The REPL's session in tests: a session in memory, and what a person would see of each outcome."""

import asyncio
import io
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from knotwork.runtime.api.session import PieceQueue, Session
from knotwork.runtime.api.session_data import Outcome, SessionModel
from knotwork.runtime.api.workspace import Models
from knotwork.runtime.interfaces.cli.turn import Screen
from knotwork.runtime.interfaces.repl.dot_commands import run_dot
from knotwork.runtime.models.factory import Ledger, Price, open_graph, open_state

__all__ = ["new_session", "run", "run_all", "screen_text"]


def new_session(
    graph: Any = None, *, llm: str = "", state: Path | None = None, price: Price | None = None, input: Any = None
) -> Session:
    """Return a session: the graph of a name or a networkx graph, a model of a spec, a state in memory."""
    # A model's spec "replay:..." answers from a cassette; "" is the environment's model, which tests have empty.
    ledger = Ledger()
    model = SessionModel(llm, ledger, price=price, environ={"KNOTWORK_LLM": llm or "replay:/nowhere"})
    return Session(
        adapter=None if graph is None else open_graph(graph).adapter, graph=graph if isinstance(graph, str) else "",
        state=open_state(state), chunks=None, models=Models(llm, model, {}, ledger), input=input, dot_commands=run_dot,
    )  # fmt: skip


def run_all(session: Session, text: str, *, stop: bool = False) -> list[Outcome]:
    """Run a text and return the outcomes of its pieces."""

    async def run_pieces() -> list[Outcome]:
        queue, outcomes = PieceQueue(text, stop=stop), list[Outcome]()
        while (piece := queue.next()) is not None:
            outcomes.append(queue.settle(await session.run(piece)))
        return outcomes

    return asyncio.run(run_pieces())


def run(session: Session, text: str) -> Outcome:
    """Run a text of one piece."""
    (outcome,) = run_all(session, text)
    return outcome


def screen_text(session: Session, outcome: Outcome) -> str:
    """Return all that is written of an outcome, what goes to stderr first."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        asyncio.run(Screen(session.settings).write(outcome))
    return err.getvalue() + out.getvalue()
