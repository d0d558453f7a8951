"""The second step: reads the computation graph and checks it against the first step. See ``docs/design/seed.md#compiler``.

The nodes may be written in any order; they are sorted so that each node follows its dependencies.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field, frozen

from ....lang.diagnostic import Diagnostic, Edit, has_errors, nearest, sort_key
from ....lang.documents.json_tree import JsonNode
from ....lang.documents.seed.validation import Shapes
from ....lang.source import Span
from .compile_results import CheckedAnswer
from .conditions import Conditions, Names, References, error_at, has_shape, root_of


@frozen
class Graph:
    """A checked answer to the second step. In ``document`` each node follows its dependencies.

    ``moved`` are nodes that were written before their dependencies. ``loose`` are nodes that neither an output nor another node needs.
    """

    document: Mapping[str, Any]
    unneeded: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()


@define
class _Reading:
    """An answer that is being checked.

    ``needs`` maps each node to the nodes that it needs. Each needed node is mapped to the JSON list that names it, and to its
    index in this list.
    """

    conditions: Conditions
    root: JsonNode
    told: list[Diagnostic]
    offered: set[Diagnostic] = field(factory=set)
    nodes: dict[str, JsonNode] = field(factory=dict)
    needs: dict[str, dict[str, tuple[JsonNode, int]]] = field(factory=dict)
    uses: set[str] = field(factory=set)
    numbers: dict[str, int] = field(factory=dict)

    def read(self, shapes: Shapes) -> None:
        from .conditions import NODES

        names, items = Names(shapes, self.told), self.root.fields["nodes"].items if "nodes" in self.root.fields else ()
        for number, item in enumerate(items):
            at = ("nodes", number)
            model = shapes.operation(item, at, NODES)
            if model is None or not has_shape(shapes, model, item, at):
                continue
            name = names.take(item.fields["name"], (*at, "name"))
            if name:
                self.nodes[name], self.numbers[name] = item, number
        references = References(self.conditions.fields, self.nodes, self.told)
        for name, item in self.nodes.items():
            own = self.needs.setdefault(name, {})
            for place, need in enumerate(item.fields["needs"].items):
                path = ("nodes", self.numbers[name], "needs", place)
                known = references.check(need.fields["name"], (*path, "name"))
                if known in self.nodes:
                    own.setdefault(str(known), (item.fields["needs"], place))
                elif known is not None:
                    self.uses.add(known)
                    self._check_values(need, path, known)

    def _check_values(self, need: JsonNode, at: tuple[str | int, ...], known: str) -> None:
        wanted = (
            self.conditions.fields.get(known.removeprefix("extraction.")) if known.startswith("extraction.") else None
        )
        if wanted is None or wanted.type != "enum" or "values" not in need.fields:
            return
        for place, value in enumerate(need.fields["values"].items):
            if value.value in wanted.values:
                continue
            near = nearest(str(value.value), wanted.values)
            hint = f"did you mean {near}?" if near else f"its values are {', '.join(list(wanted.values)[:8])}"
            edits = [Edit(value.span, json.dumps(near, ensure_ascii=False))] if near else []
            shown = json.dumps(value.value, ensure_ascii=False)
            message = f"{shown if len(shown) <= 60 else shown[:59] + '…'} is not a value of {wanted.name}"
            self.told.append(error_at("SEED044", (*at, "values", place), message, value, hint, edits))

    def check_outputs(self) -> None:
        """Check that every output is a node other than a filter."""
        spare = [name for name in self.nodes if name not in self.conditions.outputs]
        nodes = self.root.fields.get("nodes")
        for name in self.conditions.outputs:
            node = self.nodes.get(name)
            if node is None:
                near = nearest(name, spare)
                hint = f"did you mean {near}? an output keeps its name" if near else f"add a node {name}"
                edits = self._renamed(near, name) if near else ()
                span = (
                    Span(nodes.start, nodes.start + 1)
                    if nodes is not None
                    else Span(self.root.start, self.root.start + 1)
                )
                message = f"nodes: no node computes the output {name}"
                self.told.append(Diagnostic("SEED049", "error", message, span, (hint,), edits))
            elif node.value["op"] == "define_filter":
                at = ("nodes", self.numbers[name], "op")
                message = f"{name} is an output, but a filter has no value"
                self.told.append(error_at("SEED047", at, message, node.fields["op"], "use a count node with this name"))

    def _renamed(self, old: str, new: str) -> tuple[Edit, ...]:
        uses = [
            owner.items[place].fields["name"]
            for needs in self.needs.values()
            for name, (owner, place) in needs.items()
            if name == old
        ]
        return tuple(Edit(each.span, json.dumps(new)) for each in (self.nodes[old].fields["name"], *uses))

    def check_circles(self) -> None:
        """Check that no node depends on itself, directly or indirectly. The offered edit removes one dependency of the cycle."""
        open_: dict[str, bool] = {}
        for start in self.nodes:
            way, stack = [], [(start, iter(self.needs[start]))] if start not in open_ else []
            while stack:
                name, rest = stack[-1]
                if name not in open_:
                    open_[name] = True
                    way.append(name)
                following = next((each for each in rest if open_.get(each, True)), None)
                if following is None:
                    open_[name] = False
                    stack.pop()
                    way.pop()
                elif following not in open_:
                    stack.append((following, iter(self.needs[following])))
                else:
                    self._circle(way[way.index(following) :])

    def _circle(self, circle: Sequence[str]) -> None:
        pairs = list(zip(circle, (*circle[1:], circle[0]), strict=True))
        user, needed = next((pair for pair in pairs if self.numbers[pair[1]] >= self.numbers[pair[0]]), pairs[-1])
        owner, place = self.needs[user][needed]
        node, gone = owner.items[place], _without(owner.items, place)
        shown = " → ".join((*circle[:8], *(("…",) if len(circle) > 8 else ()), circle[0]))
        message = f"{user} depends on itself" if len(circle) == 1 else f"these nodes depend on one another: {shown}"
        hint = (
            f"{user} must not need {needed}"
            if len(circle) == 1
            else f"break the cycle: for example, remove {needed} from the needs of {user}"
        )
        made = error_at("SEED041", ("nodes", self.numbers[user], "needs", place), message, node, hint, [Edit(gone, "")])
        self.told.append(made)
        self.offered.add(made)

    def check_fields(self) -> tuple[str, ...]:
        """Check that every field of the first step is needed or declared unneeded. Return the unneeded fields."""
        listed = self.root.fields.get("unneeded")
        items = listed.items if listed is not None else ()
        unneeded = []
        for place, item in enumerate(items):
            name = str(item.value).removeprefix("extraction.")
            if name in self.conditions.fields:
                unneeded.append(name)
                continue
            near = nearest(name, self.conditions.fields)
            edits = [Edit(item.span, json.dumps(near))] if near else []
            hint = f"did you mean {near}?" if near else f"the fields are {', '.join(list(self.conditions.fields)[:12])}"
            self.told.append(error_at("SEED045", ("unneeded", place), f"unknown field {name:.60}", item, hint, edits))
        for name in self.conditions.fields:
            if f"extraction.{name}" in self.uses or name in unneeded:
                continue
            if listed is None:
                edit = Edit(Span(self.root.start + 1, self.root.start + 1), f'"unneeded": [{json.dumps(name)}], ')
            else:
                text = json.dumps(name) + (", " if listed.items else "")
                edit = Edit(Span(listed.start + 1, listed.start + 1), text)
            hint = f"add extraction.{name} to the needs of a node, or list the field in unneeded"
            at = Span(self.root.start, self.root.start + 1)
            made = Diagnostic("SEED048", "error", f"no node needs the field {name}", at, (hint,), (edit,))
            self.told.append(made)
            self.offered.add(made)
        return tuple(unneeded)

    def in_order(self) -> list[str]:
        """Return the node names in the written order, except that each node follows its dependencies."""
        done: dict[str, None] = {}
        for start in self.nodes:
            stack = [(start, iter(self.needs[start]))]
            while stack:
                name, rest = stack[-1]
                following = next((each for each in rest if each not in done), None) if name not in done else None
                if following is None:
                    done[name] = None
                    stack.pop()
                else:
                    stack.append((following, iter(self.needs[following])))
        return list(done)


def _without(items: Sequence[JsonNode], place: int) -> Span:
    """Return the span of an element and the comma after it; for the last element, of the element and the comma before it."""
    if place + 1 < len(items):
        return Span(items[place].start, items[place + 1].start)
    return Span(items[place - 1].end if place else items[place].start, items[place].end)


def check_graph(text: str, conditions: Conditions) -> CheckedAnswer:
    """Read and check an answer to the second step. Never raises for its content."""
    from .conditions import GraphModel

    told: list[Diagnostic] = []
    root, source = root_of(text, "<graph>", "nodes, and optionally unneeded", told)
    if root is None:
        return CheckedAnswer(None, tuple(told), source)
    shapes = Shapes(root, "nodes", told)
    reading = _Reading(conditions, root, told)
    is_whole = has_shape(shapes, GraphModel, root, ())
    reading.read(shapes)
    unneeded: tuple[str, ...] = ()
    if is_whole and len(reading.nodes) == len(
        root.fields["nodes"].items
    ):  # otherwise an unreadable node may define or need the name
        reading.check_circles()
        reading.check_outputs()
        unneeded = reading.check_fields()
    diagnostics = tuple(sorted(dict.fromkeys(told), key=sort_key))
    if has_errors(diagnostics):
        return CheckedAnswer(None, diagnostics, source, frozenset(reading.offered))
    order = reading.in_order()
    needed = {need for needs in reading.needs.values() for need in needs} | set(conditions.outputs)
    before: set[str] = set()
    moved = []
    for name in reading.nodes:
        before.add(name)
        if not before.issuperset(reading.needs[name]):
            moved.append(name)
    document = {"nodes": [reading.nodes[name].value for name in order]}
    loose = tuple(name for name in order if name not in needed)
    return CheckedAnswer(Graph(document, unneeded, tuple(moved), loose), diagnostics, source)
