"""Interprets options as the user wrote them: graph and state, models, and limits on cost."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import frozen

from ..api.clients import ModelOpener, Price
from ..api.seed_workers import WorkerOptions
from ..api.workspace import (
    EmptyFolderName,
    GraphMissing,
    Models,
    OpeningCallbacks,
    OtherGraph,
    StoreError,
    Workspace,
    WorkspaceOptions,
    open_workspace,
)
from ..errors import Misused
from ..events import Events


@frozen
class Limits:
    """The limits on model calls and their cost. ``price`` is the text of ``--price`` (IN/OUT)."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    price: str | None = None
    rate: float | None = None
    cache: bool | str = True


# Opens the graph, state and models that the options specify, like ``open_workspace``. Errors name the option at fault.

_EMPTY = ("--state: the name is empty", "give a directory; . is the current directory")
_NOT_WRITTEN = ("can't be created", "can't be written")


def opened(
    options: WorkspaceOptions,
    models: Callable[[], Models],
    callbacks: OpeningCallbacks | None = None,
    *,
    needs_graph: bool = False,
) -> Workspace:
    """Open the graph, state and models that the options specify. Raises ``Misused``, or the errors of ``open_workspace``."""
    with in_words_of_options(options):
        return open_workspace(options, models, callbacks, needs_graph=needs_graph)


def check_folder(state: str | None) -> None:
    """Raise ``Misused`` for an empty name.

    An empty name would mean the current folder, but probably comes from an empty variable in a script.
    """
    if state == "":
        raise Misused(*_EMPTY)


@contextmanager
def in_words_of_options(options: WorkspaceOptions | None = None) -> Iterator[None]:
    """Convert the errors of ``open_workspace`` to errors that name the option at fault.

    Raises ``Misused`` if the state in ``options`` is a file.
    """
    state = None if options is None or options.read_only else options.state
    if isinstance(state, str | Path) and os.path.isfile(state):
        hint = f"knotwork state fork {state} DIR copies an exported state into a directory"
        raise Misused(f"{state} is a file; --state needs a directory", hint)
    try:
        yield
    except OtherGraph as error:
        hint = "choose another --state for another graph, or use this state with --force"
        raise Misused(error.message, hint) from None
    except EmptyFolderName:
        raise Misused(*_EMPTY) from None
    except GraphMissing:
        raise Misused("the program needs a graph", "add --graph FILE, for example --graph nx:les_miserables") from None
    except StoreError as error:
        if error.hint or not any(each in error.message for each in _NOT_WRITTEN):
            raise
        hint = "--state needs a writable directory; a missing directory is created"
        raise StoreError(error.message, hint=hint) from None


# Opens clients, with limits, for the models that the options specify.


def named_specs(given: Sequence[str]) -> dict[str, str]:
    """Map NAME to SPEC for all ``--model NAME=SPEC`` options. Raises ``Misused``."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, spec = text.partition("=")
        if not equals or not name.strip() or not spec.strip():
            raise Misused(f"--model: {text!r} is not NAME=SPEC", "for example --model small=local")
        found[name.strip()] = spec.strip()
    return found


def open_models(
    spec: str | None,
    named: Mapping[str, str],
    limits: Limits,
    max_concurrency: int | None,
    warn: Callable[[str], None],
    workers: WorkerOptions | None = None,
    events: Events | None = None,
) -> Models:
    """Return clients for ``spec`` (None: no default model) and for all named models. Raises ``NotConfigured`` or ``Misused``.

    ``workers`` make the calls of the clients; ``events`` receives their events.
    """
    if workers is not None and workers.workers is not None:
        workers.check([*([] if spec is None else [spec]), *named.values()], max_concurrency)
    opener = ModelOpener(
        warn, max_calls=limits.max_calls, max_tokens=limits.max_tokens, max_cost=limits.max_cost, price=price_of(limits.price),
        rate=limits.rate, cache=limits.cache, max_concurrency=max_concurrency,
    )  # fmt: skip
    if workers is not None and max_concurrency is not None:
        from ..api.call_workers import distribute

        distribute(opener, workers, max_concurrency, events)
    return opener.open_all(spec, named)


def price_of(text: str | None) -> Price | None:
    """Return the price in ``--price IN/OUT``; None if the option is missing. Raises ``Misused``."""
    if text is None:
        return None
    parts = text.split("/")
    try:
        numbers = [float(part) for part in parts]
    except ValueError:
        numbers = []
    if len(numbers) != 2 or not all(0 <= number < float("inf") for number in numbers):
        hint = "give US dollars per million prompt and completion tokens, such as --price 0.25/2"
        raise Misused(f"--price: {text!r} is not IN/OUT", hint)
    return Price(numbers[0], numbers[1])
