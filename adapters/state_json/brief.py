"""A state to be told of: its object, with a history that is read entry by entry, however long it is."""

from pathlib import Path
from typing import Any

from attrs import evolve

from .forking import moment_of
from .moment import Entries, Moment
from .seedform import as_json

__all__ = ["read_brief"]


def read_brief(path: Path) -> dict[str, Any]:
    """Return the state object of a directory or a ``state.json``, without ``replay``; ``history`` is a sequence.

    ``answers`` is added: how many answers of models are kept. Raises ``StoreError``.
    """
    moment = moment_of(path)
    empty = Moment()
    told = as_json(evolve(moment, history=empty.history, answers=empty.answers, commands=empty.commands))
    del told["replay"]
    return told | {"history": Entries(moment.history), "answers": len(moment.answers)}
