"""Pages that explain themselves: a state (what was found, on what evidence), a run (what was asked, answered, repaired, and its cost).

Of a state: ``findings`` reads it, ``words`` says commands in plain English, ``drawing`` draws the graph around the findings, ``page``
puts them together. Of a run: ``reading`` reads its folder, ``telling`` puts its events (``recalled``: its records) into an ``account``,
``entries`` says each, ``branches`` a search's tree, ``run_page`` puts them together. The pages load nothing and run nothing; whatever text
they show is escaped. Each room is loaded when it is first used: a list of runs needs no parser.
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
    """Load a room when a name of it is first used."""
    if name in _ROOMS:
        return getattr(import_module(f".{_ROOMS[name]}", __package__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
