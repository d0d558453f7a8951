"""What the language service is told of a session: the graph, the state's keys, the values, the models."""

from typing import Any

from ....lang.catalogue.schema import Schema
from ....lang.service import Known, StateKey, Variable
from ....lang.trees.lwt import MISSING
from .commands import counted
from .desk import Desk
from .expressions import LATEST, names_of

__all__ = ["known"]

_FIELDS = 40


def known(desk: Desk, schema: Schema | None) -> Known:
    """Return it. ``schema`` is the graph's, None where it is not known yet: nobody waits for it here."""
    variables = {name: _variable(desk.values.context.get(name)) for name in desk.values.names()}
    if LATEST in (found := names_of(desk)):
        variables[LATEST] = _variable(found[LATEST])
    return Known(
        schema=schema,
        state={each.key: StateKey(each.type, each.description or "") for each in desk.state.snapshot().declared()},
        variables=variables,
        input=MISSING if desk.input is None else desk.input,
        models=tuple(desk.models),
        measures=desk.adapter.measures if desk.adapter is not None else None,
    )


def _variable(value: Any) -> Variable:
    first = value[0] if isinstance(value, list) and value else value
    fields = tuple(str(name) for name in list(first)[:_FIELDS]) if isinstance(first, dict) else ()
    return Variable(counted(value), fields, isinstance(value, list))
