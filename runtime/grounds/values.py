"""What commands run on, as it is named: nothing is opened here, and nothing heavy is imported."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from attrs import field, frozen

if TYPE_CHECKING:
    from ...adapters.llm import LLM
    from ...adapters.llm.budget import Ledger
    from ...adapters.state import StateStore

__all__ = ["Chunks", "Ground", "Models", "Texts", "chunks_of", "close_models", "graph_of", "raw_of"]

Texts: TypeAlias = Callable[[str], str | None]
"""Gives the text of a chunk by its id."""
Chunks: TypeAlias = Mapping[str, str] | Texts | str | Path
"""Where texts are from: a mapping, a function, or a file (``{id: text}``)."""


@frozen
class Ground:
    """What is to be opened. What is left out is taken from the state, which knows the graph and the chunks that it was made with.

    ``graph``: a file, ``nx:NAME``, a networkx graph or an adapter; ``name`` is what one is called that is no text. ``state``: a folder,
    made where there is none, or a ``state.json``; None keeps it in memory; a store is used as it is. ``query`` is kept in the state.
    ``force``: go on in a state whose findings are of another graph. ``raw`` and ``strict`` are for the graph's reading, ``durability``
    is for the state's writing; ``params`` is kept beside the graph's name. ``read_only``: nothing is written.
    """

    graph: Any = None
    state: "StateStore | str | Path | None" = None
    chunks: Chunks | None = None
    query: str | None = None
    force: bool = False
    name: str = ""
    read_only: bool = False
    raw: bool = False
    strict: bool = False
    durability: Literal["command", "plan"] = "command"
    params: Mapping[str, Any] = field(factory=dict)


def _ledger() -> "Ledger":
    from ...adapters.llm.budget import Ledger

    return Ledger()


@frozen
class Models:
    """The clients that commands may ask. ``spec`` is the default one's, "" where there is none; ``ledger`` is what they all count on."""

    spec: str = ""
    default: Any = None
    named: "Mapping[str, LLM]" = field(factory=dict)
    ledger: "Ledger" = field(factory=_ledger)


async def close_models(models: Models) -> None:
    """Let go of every client."""
    for client in (models.default, *models.named.values()):
        close = getattr(client, "aclose", None)
        if close is not None:
            await close()


def graph_of(state: Mapping[str, Any]) -> str | None:
    """Return the graph that a state's object, or what it says for a replay, names as the one it was made with."""
    return _text(_adapter(state).get("path"))


def raw_of(state: Mapping[str, Any]) -> bool:
    """Say whether a state's object says that its graph was read as it is written."""
    params = _adapter(state).get("params")
    return isinstance(params, Mapping) and params.get("raw") is True


def chunks_of(state: Mapping[str, Any]) -> str | None:
    """Return the chunks' file that a state's object names, for snippets of evidence."""
    params = _adapter(state).get("params")
    return _text(params.get("chunks")) if isinstance(params, Mapping) else None


def _adapter(state: Mapping[str, Any]) -> Mapping[str, Any]:
    config = state.get("config")
    adapter = config.get("adapter") if isinstance(config, Mapping) else None
    return adapter if isinstance(adapter, Mapping) else {}


def _text(path: Any) -> str | None:
    return path if isinstance(path, str) and path else None
