"""What an interface with options opens: ``grounds`` with what a person may type instead of what can't be done."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ...adapters.state import StoreError
from ..session.workspace import Ground, M, NoFolder, NoGraph, Opened, OtherGraph, Telling, open_ground
from .misused import Misused

__all__ = ["check_folder", "in_words_of_options", "opened"]

_EMPTY = ("--state: it is empty", "a folder; . is the current one")
_NOT_WRITTEN = ("can't be made", "can't be written", "is not ours to write")


def opened(
    ground: Ground, models: Callable[[], M], telling: Telling | None = None, *, needs_graph: bool = False
) -> Opened[M]:
    """Open what options named. Raises ``Misused``, and what ``open_ground`` raises besides."""
    if isinstance(ground.state, str | Path) and not ground.read_only and os.path.isfile(ground.state):
        hint = f"knotwork state fork {ground.state} DIR makes a folder of an exported state"
        raise Misused(f"{ground.state} is a file; --state takes a folder, in which the state is kept", hint)
    with in_words_of_options():
        return open_ground(ground, models, telling, needs_graph=needs_graph)


def check_folder(state: str | None) -> None:
    """Refuse what would be the current folder, where nobody named that: a script's variable was empty. Raises ``Misused``."""
    if state == "":
        raise Misused(*_EMPTY)


@contextmanager
def in_words_of_options() -> Iterator[None]:
    """Say of what ``open_ground`` refuses which options are at fault."""
    try:
        yield
    except OtherGraph as error:
        hint = "another graph takes another --state; --force goes on in this one all the same"
        raise Misused(error.message, hint) from None
    except NoFolder:
        raise Misused(*_EMPTY) from None
    except NoGraph:
        raise Misused("a program needs a graph", "--graph FILE, or --graph nx:les_miserables to try one") from None
    except StoreError as error:
        if error.hint or not any(each in error.message for each in _NOT_WRITTEN):
            raise
        hint = "--state takes a folder that can be written; it is made where it is not there"
        raise StoreError(error.message, hint=hint) from None
