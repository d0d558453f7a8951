"""A state at one moment, as the port shows it."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from attrs import frozen
from orjson import Fragment

from ...lang.trees.gasl import StateType
from ..state import Declaration
from .values.changes import undeclared
from .values.nodes import CounterNode, DictNode, ListNode, Node, find, walk
from .values.tables import Table
from .values.values import as_fragment, parsed, plain

__all__ = ["JSONSnapshot", "summary", "written_form"]


@frozen(eq=False)
class JSONSnapshot:
    """A state that never changes. It shares what it has in common with every other."""

    root: DictNode

    @cached_property
    def hash(self) -> str:
        """See ``state.Snapshot``: blake3 in hex; only what changed since the last one is hashed."""
        return self.root.digest.hex()

    def _node(self, key: str) -> Node:
        node = find(self.root, key)
        if node is None:
            raise undeclared(self.root, key)
        return node

    def get(self, key: str) -> Any:
        """See ``state.Snapshot``."""
        return self._node(key).value()

    def evidence(self, key: str) -> Any:
        """See ``state.Snapshot``."""
        return self._node(key).proof()

    def declared(self, key: str | None = None) -> Sequence[Declaration]:
        """See ``state.Snapshot``; each key's children follow it."""
        node = self.root if key is None else self._node(key)
        below = walk(node, key or "")
        pairs = list(below) if key is None else [(key, node), *below]
        return [Declaration(path, each.type, each.description, each.size, each.incomplete) for path, each in pairs]

    def kind(self, key: str) -> StateType | None:
        """See ``state.Snapshot``."""
        node = find(self.root, key)
        return None if node is None else node.type

    def sample(self, key: str, most: int) -> tuple[int, list[Any]]:
        """See ``state.Snapshot``. Of a DICT or a COUNTER: one-key objects of some fields or counts, or the one number."""
        node = self._node(key)
        if isinstance(node, ListNode):
            return node.size, _spread(node, most)
        table = node.fields if isinstance(node, DictNode) else node.count
        if isinstance(table, Table):
            return len(table), [{name: plain(value)} for name, value in table.some(most)]
        return 1, [table][:most]

    def variables(self, *, raw: bool = False) -> dict[str, Any]:
        """See ``state.Snapshot``; ``raw`` as in ``written_form``."""
        return {name: written_form(node, raw=raw) for name, node in self.root.children.items()}

    def provenance(self, *, raw: bool = False) -> dict[str, Any]:
        """See ``state.Snapshot``; ``raw`` as in ``written_form``."""
        kept = ((key, node) for key, node in walk(self.root) if len(node.evidence))
        return {key: Fragment(node.proof_text()) if raw else node.proof() for key, node in kept}


def _spread(node: ListNode, most: int) -> list[Any]:
    size = node.size
    if most <= 0:
        return []
    if size <= most:
        return node.value()
    if most == 1:
        return [parsed(node.items.vector[0])]
    return [parsed(node.items.vector[at * (size - 1) // (most - 1)]) for at in range(most)]


def written_form(node: Node, *, raw: bool = False) -> dict[str, Any]:
    """Return a node as the state object has it; ``raw``: with ``orjson.Fragment`` where JSON text is at hand."""
    meta: dict[str, Any] = {"type": node.type, "description": node.description}
    if node.incomplete:
        meta["incomplete"] = list(node.incomplete)
    form: dict[str, Any] = {"_meta": meta}
    if isinstance(node, ListNode):
        form["items"] = Fragment(node.text()) if raw else node.value()
    elif isinstance(node, CounterNode):
        form["value"] = node.value()
    else:
        form |= {name: written_form(child, raw=raw) for name, child in node.children.items()}
        form |= {name: as_fragment(value) if raw else plain(value) for name, value in node.fields.items()}
    return form


# A bounded look at a state, for prompts and people: however large it is, what is shown is not.


_SAMPLE = 3
_TEXT = 200
_PARTS = 12
_LEVELS = 3


def summary(snapshot: JSONSnapshot, keys: Sequence[str] | None) -> dict[str, Any]:
    """Return ``{key: {"type", "size", "description", "incomplete"?, "sample"}}`` of the keys, else of all. Raises ``StateError``."""
    declared = snapshot.declared() if keys is None else [snapshot.declared(key)[0] for key in keys]
    return {
        each.key: {
            "type": each.type,
            "size": each.size,
            "description": each.description,
            **({"incomplete": list(each.incomplete)} if each.incomplete else {}),
            "sample": [bounded(item) for item in snapshot.sample(each.key, _SAMPLE)[1]],
        }
        for each in declared
    }


def bounded(value: Any, levels: int = _LEVELS) -> Any:
    """Return a value with long texts cut, and of lists and objects the first parts; "…" stands where something is left out."""
    if isinstance(value, str):
        return value if len(value) <= _TEXT else f"{value[:_TEXT]}…"
    if isinstance(value, list):
        if not levels:
            return "…" if value else []
        return [bounded(part, levels - 1) for part in value[:_PARTS]] + (["…"] if len(value) > _PARTS else [])
    if isinstance(value, dict):
        if not levels:
            return "…" if value else {}
        shown = {bounded(name, 0): bounded(part, levels - 1) for name, part in list(value.items())[:_PARTS]}
        return shown | ({"…": len(value) - _PARTS} if len(value) > _PARTS else {})
    return value
