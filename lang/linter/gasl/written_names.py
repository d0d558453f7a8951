"""Names of attributes in the Unicode form that the graph has."""

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import evolve
from attrs import fields as attrs_fields

from ...catalogue.schema import Schema
from ...trees import Node, walk
from ...trees.conditions import Field, Variable
from ...unicode_forms import canonical

NodeT = TypeVar("NodeT", bound=Node)


def with_written_names(node: NodeT, schema: Callable[[], Schema | None]) -> NodeT:
    """Return a program or a command in which names of attributes have the Unicode form that they have in the graph.

    ``schema`` is called only if a name is not ASCII.
    """
    if all(name.isascii() for each in walk(node) if isinstance(each, Field | Variable) for name in _texts(each)):
        return node
    found = schema()
    known = () if found is None else (*found.node_attributes, *found.edge_attributes)
    parts = dict.fromkeys(part for name in known for part in (name, *name.split(".")) if not part.isascii())
    forms = {canonical(part): part for part in reversed(parts)}
    renamed = _renamed_fields(node, lambda name: name if name in parts else forms.get(canonical(name), name))
    return renamed  # type: ignore[no-any-return]  # a node of the same class


def _texts(node: Field | Variable) -> list[str]:
    return [part for part in node.path if isinstance(part, str)]


def _renamed_fields(node: Any, rename: Callable[[str], str]) -> Any:
    if isinstance(node, tuple):
        return tuple(_renamed_fields(each, rename) for each in node)
    if isinstance(node, Field | Variable):
        path: Any = tuple(rename(part) if isinstance(part, str) else part for part in node.path)
        return node if path == node.path else evolve(node, path=path)
    if not isinstance(node, Node):
        return node
    changed = {}
    for each in attrs_fields(type(node)):
        old = getattr(node, each.name)
        if isinstance(old, tuple | Node) and each.init and each.eq:
            new = _renamed_fields(old, rename)
            if new != old:
                changed[each.name] = new
    return evolve(node, **changed) if changed else node
