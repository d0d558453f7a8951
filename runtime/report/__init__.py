"""Self-contained HTML reports of a state (findings with evidence) or a run (calls, answers, repairs, cost).

State report: ``findings`` reads the state, ``steps`` describes commands in plain English, ``drawings`` draws graphs and trees,
``page`` renders the page. Run report: ``run_reader`` reads the run's folder, ``narrative`` converts its events into an
``account``, ``page`` renders it. The pages load and run nothing; all text is escaped. Each module is loaded when first used: a
list of runs needs no parser.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .account import Account, Figures
    from .page import render, render_run
    from .run_reader import events_of, read_account, records_of

__all__ = ["Account", "Figures", "events_of", "read_account", "records_of", "render", "render_run"]

_ROOMS = {
    "Account": "account", "Figures": "account", "events_of": "run_reader", "read_account": "run_reader",
    "records_of": "run_reader", "render": "page", "render_run": "page",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load a module when one of its names is first used."""
    if name in _ROOMS:
        return getattr(import_module(f".{_ROOMS[name]}", __package__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
