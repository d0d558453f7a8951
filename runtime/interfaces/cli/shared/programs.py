"""Looks at the graph and the state that programs are checked against."""

from ....api.checked import Surroundings

__all__ = ["look_at"]


def look_at(graph: str | None, state: str | None, raw: bool = False) -> Surroundings:
    """Return what is known of a graph and of a state. Raises ``AdapterError``, ``StoreError`` and ``Misused``."""
    from .graphs import loaded
    from .states import reading

    schema = None if graph is None else loaded(graph, raw).schema
    if state is None:
        return Surroundings(schema)
    with reading(state) as store:
        return Surroundings(schema, {key.key: key.type for key in store.snapshot().declared()})
