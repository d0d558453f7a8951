"""The values of options as the user wrote them: graph and state, models, and limits on cost."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from ...adapters.state import StoreError
from ..api.workspace import (
    EmptyFolderName,
    GraphMissing,
    Models,
    OpeningCallbacks,
    OtherGraph,
    Workspace,
    WorkspaceOptions,
    open_workspace,
)
from ..errors import Misused

if TYPE_CHECKING:
    from ..models.factory import Price


@frozen
class GraphOptions:
    """The data that GASL runs on: the graph, the state folder (None: in memory), the chunk file, and the question to be saved in the state.

    ``force``: use a state even if its findings come from another graph. ``raw``: keep the graph's values as written.
    """

    graph: str | None = None
    state: str | None = None
    chunks: str | None = None
    query: str | None = None
    force: bool = False
    raw: bool = False

    def workspace_options(self) -> WorkspaceOptions:
        """Return these options as ``WorkspaceOptions``, the form that ``opened`` takes."""
        return WorkspaceOptions(self.graph, self.state, self.chunks, self.query, self.force, raw=self.raw)


@frozen
class Limits:
    """The limits on model calls and their cost. ``price`` is the text of ``--price`` (IN/OUT)."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    price: str | None = None
    rate: float | None = None
    cache: bool = True


# Opens the data that the options name. Works like ``open_workspace``, but the errors name the options at fault.

_EMPTY = ("--state: it is empty", "a folder; . is the current one")
_NOT_WRITTEN = ("can't be created", "can't be written")


def opened(
    options: WorkspaceOptions,
    models: Callable[[], Models],
    callbacks: OpeningCallbacks | None = None,
    *,
    needs_graph: bool = False,
) -> Workspace:
    """Open the data that the options name. Raises ``Misused``, and the errors that ``open_workspace`` raises."""
    with in_words_of_options(options):
        return open_workspace(options, models, callbacks, needs_graph=needs_graph)


def check_folder(state: str | None) -> None:
    """Raise ``Misused`` for an empty name: it would mean the current folder, but is probably an empty variable in a script."""
    if state == "":
        raise Misused(*_EMPTY)


@contextmanager
def in_words_of_options(options: WorkspaceOptions | None = None) -> Iterator[None]:
    """Name the option at fault in errors that ``open_workspace`` raises. Raises ``Misused`` if the state in ``options`` is a file."""
    state = None if options is None or options.read_only else options.state
    if isinstance(state, str | Path) and os.path.isfile(state):
        hint = f"knotwork state fork {state} DIR copies an exported state into a directory"
        raise Misused(f"{state} is a file; --state needs a directory", hint)
    try:
        yield
    except OtherGraph as error:
        hint = "choose another --state for another graph, or use this one with --force"
        raise Misused(error.message, hint) from None
    except EmptyFolderName:
        raise Misused(*_EMPTY) from None
    except GraphMissing:
        raise Misused("a program needs a graph", "--graph FILE, or --graph nx:les_miserables to try one") from None
    except StoreError as error:
        if error.hint or not any(each in error.message for each in _NOT_WRITTEN):
            raise
        hint = "--state needs a directory that can be written; a missing one is created"
        raise StoreError(error.message, hint=hint) from None


# Opens clients for the models that the options name, with the limits.


def named_specs(given: Sequence[str]) -> dict[str, str]:
    """Return a dictionary from name to spec for all ``--model NAME=SPEC`` options. Raises ``Misused``."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, spec = text.partition("=")
        if not equals or not name.strip() or not spec.strip():
            raise Misused(f"--model: {text!r} is not a name and a model", "for example --model small=local")
        found[name.strip()] = spec.strip()
    return found


def open_models(
    spec: str | None,
    named: Mapping[str, str],
    limits: Limits,
    max_concurrency: int | None,
    warn: Callable[[str], None],
) -> Models:
    """Return clients for ``spec`` (None: no default model) and for all named models. Raises ``NotConfigured`` and ``Misused``."""
    from ..api.clients import ModelOpener

    opener = ModelOpener(
        warn, max_calls=limits.max_calls, max_tokens=limits.max_tokens, max_cost=limits.max_cost, price=price_of(limits.price),
        rate=limits.rate, cache=limits.cache, max_concurrency=max_concurrency,
    )  # fmt: skip
    return opener.open_all(spec, named)


def price_of(text: str | None) -> "Price | None":
    """Return the price that ``--price IN/OUT`` gives; None if the option is missing. Raises ``Misused``."""
    if text is None:
        return None
    from ..models.factory import Price

    parts = text.split("/")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) != 2 or not all(0 <= number < float("inf") for number in numbers):
        hint = "US dollars per million prompt and completion tokens, such as --price 0.25/2"
        raise Misused(f"--price: {text!r} is not two prices", hint)
    return Price(*numbers)
