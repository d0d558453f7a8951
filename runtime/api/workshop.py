"""The graph and the state that ``GASL`` works on in one run of a script: opened before it, closed after it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .shared import heard

if TYPE_CHECKING:
    from ..events import Events
    from ..grounds.opening import Telling
    from ..grounds.values import Ground, Models
    from ..operations.workshop import Workshop

__all__ = ["on_graph"]


@contextmanager
def on_graph(
    ground: "Ground",
    models: "Models",
    events: "Events | None",
    telling: "Telling | None" = None,
    run_id: str = "",
) -> "Iterator[Workshop | None]":
    """Give the run with this id its workshop; None where no graph is named.

    A state that is opened here is closed at the end, and keeps which graph it is. Raises what ``open_ground`` raises.
    """
    if ground.graph is None:
        if ground.state is not None:
            raise TypeError("a state needs a graph: graph=")
        yield None
        return
    from ..executor import GASLExecutor
    from ..grounds.opening import Telling, open_ground
    from ..operations.workshop import Workshop

    opened = open_ground(ground, lambda: models, telling or Telling(heard(events)), needs_graph=True)
    adapter = opened.adapter
    assert adapter is not None  # noqa: S101 - it was needed
    try:
        yield Workshop(
            lambda kept, context: GASLExecutor(
                adapter, models.default, kept, context, models=models.named, events=events, chunks=opened.chunks
            ),
            opened.state,
            run_id,
        )
    finally:
        opened.close()
