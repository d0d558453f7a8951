"""What GASL's commands on graphs mean, said once more and plainly: each search looks at everything. No module of the project is used."""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from support.gasl_oracle import Mismatch
from support.program_oracle import Rows, field_of, ordered
from support.value_oracle import MISSING, holds, is_number, stored, value_of

__all__ = ["GraphOracle"]

DEGREES = ("degree", "in_degree", "out_degree")
Edge = tuple[Any, Any, Any, dict[str, Any]]


def shown(value: Any) -> Any:
    """A value in an item: NaN is null."""
    return None if value != value else value


class GraphOracle:
    """A graph, and the results of commands that read it."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.directed, self.multi = graph.is_directed(), graph.is_multigraph()
        self.names = list(graph)
        self.place = {name: at for at, name in enumerate(self.names)}
        self.edges: list[Edge] = (
            list(graph.edges(keys=True, data=True))
            if self.multi
            else [(source, target, None, data) for source, target, data in graph.edges(data=True)]
        )

    # Items and their fields

    def node(self, name: Any) -> dict[str, Any]:
        return {"id": name, **{each: shown(value) for each, value in self.graph.nodes[name].items()}}

    def edge(self, edge: Edge) -> dict[str, Any]:
        source, target, key, data = edge
        ends = {"source": source, "target": target, **({} if key is None else {"key": key})}
        return {**ends, **{each: shown(value) for each, value in data.items()}}

    def degree(self, name: Any, which: str) -> int:
        leaving = sum(edge[0] == name for edge in self.edges)
        entering = sum(edge[1] == name for edge in self.edges)
        if which == "degree" or not self.directed:
            return leaving + entering
        return entering if which == "in_degree" else leaving

    def of_node(self, name: Any, parts: list[str]) -> Any:
        """A field of a node; ``MISSING`` if no node has it."""
        if name not in self.place:
            return MISSING
        if parts[0] in DEGREES:
            return self.degree(name, parts[0])
        found = stored(self.node(name), parts)
        known = any(stored(self.node(each), parts) is not MISSING for each in self.names)
        return (None if known else MISSING) if found is MISSING else found

    def of_item(self, kind: str) -> Any:
        """How the computed fields of items are read."""

        def computed(item: Any, parts: list[str]) -> Any:
            if kind == "nodes" and parts[0] in DEGREES:
                return self.of_node(item["id"], parts)
            if kind in ("edges", "paths") and len(parts) > 1 and parts[0] in ("source", "target"):
                return self.of_node(item[parts[0]], parts[1:])
            return None if self.is_known(kind, parts) else MISSING

        return computed

    def is_known(self, kind: str, parts: list[str]) -> bool:
        """Whether nodes or edges of the graph have a field. A list or an object may have any field within."""
        data = {"nodes": [each for _, each in self.graph.nodes(data=True)], "edges": [edge[3] for edge in self.edges]}
        return any(
            stored(each, parts) is not MISSING or (len(parts) > 1 and isinstance(each.get(parts[0]), list | dict))
            for each in data.get(kind, [])
        )

    def rows(self, kind: str, items: list[Any]) -> Rows:
        ends = {"nodes": ["id"], "edges": ["source", "target", *(["key"] if self.multi else [])]}.get(kind, [])
        data = {"nodes": [each for _, each in self.graph.nodes(data=True)], "edges": [edge[3] for edge in self.edges]}
        return Rows(
            items,
            self.of_item(kind),
            kind,
            may=[*ends, *dict.fromkeys(each for one in data.get(kind, []) for each in one)],
        )

    def read_edge(self, edge: Edge, path: str) -> Any:
        """A field of an edge, as in VIA."""
        parts = path.split(".")
        if parts[0] in ("source", "target") and len(parts) > 1:
            found = self.of_node(edge[parts[0] == "target"], parts[1:])
        else:
            found = stored(self.edge(edge), parts)
        return None if found is MISSING else found

    def usable(self, edge: Edge, via: Any) -> bool:
        return via is None or holds(via, lambda path: self.read_edge(edge, path)) is True

    # Commands

    def run(self, command: Any, known: dict[str, Rows]) -> Rows:
        match command["do"]:
            case "find":
                return self.find(command)
            case "walk":
                return self.walk(command, known[command["from"]])
            case "connect":
                return self.connect(command, known)
            case "measure":
                return self.measure(command, known)
            case "subgraph":
                return self.subgraph(command, known[command["from"]])
            case "paths":
                return self.paths(command)
            case "cycles":
                return self.cycles(command)
        return self.patterns(command)

    def find(self, command: Any) -> Rows:
        if command["kind"] == "nodes":
            every = self.rows("nodes", [self.node(name) for name in self.names])
        else:
            every = self.rows("edges", [self.edge(edge) for edge in self.edges])
        return self.chosen(command, every)

    def chosen(self, command: Any, every: Rows) -> Rows:
        """WHERE, ORDER BY and LIMIT ... PER of a search."""
        where = command.get("where")
        items = [
            item
            for item in every.items
            if where is None or holds(where, lambda path: field_of(every, item, path)) is True  # noqa: B023
        ]
        found = Rows(items, every.computed, every.kind, every.items, every.may)
        return every.among(ordered(found, command.get("order") or [], command.get("limit"), command.get("per") or []))

    def names_in(self, rows: Rows) -> list[Any]:
        """The nodes that items refer to."""
        found = []
        for item in rows.items:
            found += [item["id"]] if "id" in item else [item["source"], item["target"]]
        return list(dict.fromkeys(found))

    def steps(self, name: Any, direction: str) -> Iterator[tuple[Any, Edge]]:
        """The neighbours of a node with the edges that lead there, in the order in which the graph keeps them."""
        graph = self.graph
        sides = [graph.adj] if not self.directed else []
        if self.directed:
            sides = [graph.succ] if direction != "in" else []
            sides += [graph.pred] if direction != "out" else []
        for side in sides:
            for other in side[name]:
                ends = {(name, other)} if side is not getattr(graph, "pred", None) else {(other, name)}
                if not self.directed:
                    ends = {(name, other), (other, name)}
                for edge in self.edges:
                    if edge[:2] in ends:
                        yield other, edge

    def walk(self, command: Any, rows: Rows) -> Rows:
        starts = self.names_in(rows)
        depth, parent, found = dict.fromkeys(starts, 0), {}, []
        frontier = starts
        for level in range(1, command["depth"] + 1):
            following: list[Any] = []
            for name in frontier:
                for other, edge in self.steps(name, command["direction"]):
                    if not self.usable(edge, command.get("via")):
                        continue
                    if other not in depth:
                        depth[other] = level
                        following.append(other)
                        parent[other] = name
                    elif depth[other] == level and level and self.place[name] < self.place[parent[other]]:
                        parent[other] = name
            found += following
            frontier = following
        items = [self.node(name) for name in found]
        if command.get("trace"):
            items = [{**item, "depth": depth[item["id"]], "parent": parent[item["id"]]} for item in items]
        return self.rows("nodes", items)

    def subgraph(self, command: Any, rows: Rows) -> Any:
        """One object: the nodes within the radius, nearest first, and the edges between them."""
        found = frontier = self.names_in(rows)
        for _ in range(command["radius"]):
            frontier = list(
                dict.fromkeys(other for name in frontier for other, _ in self.steps(name, "both") if other not in found)
            )
            found = found + frontier
        edges = [self.edge(edge) for edge in self.edges if edge[0] in found and edge[1] in found]
        return {"nodes": [self.node(name) for name in found], "edges": edges}

    def connect(self, command: Any, known: dict[str, Rows]) -> Rows:
        left, right = (set(self.names_in(known[command[side]])) for side in ("left", "right"))
        items = [
            self.edge(edge)
            for edge in self.edges
            if ((edge[0] in left and edge[1] in right) or (edge[1] in left and edge[0] in right))
            and self.usable(edge, command.get("via"))
        ]
        return self.rows("edges", items)

    def measure(self, command: Any, known: dict[str, Rows]) -> Rows:
        """A number for each node: of the graph, or of the graph of a variable's edges; for the nodes of a variable, or for all."""
        among = self.names if command.get("from") is None else self.names_in(known[command["from"]])
        pairs, names = [edge[:2] for edge in self.edges], self.names
        if command.get("edges") is not None:
            pairs = [(item["source"], item["target"]) for item in known[command["edges"]].items]
            ends = [name for pair in pairs for name in pair]
            names = list(dict.fromkeys([*ends, *(among if "from" in command else ())]))
        algorithm = command["algorithm"]
        numbers = {name: self.number(algorithm, name, pairs) for name in names}
        if algorithm == "components":
            groups: dict[Any, list[Any]] = {name: [name] for name in names}
            for one, other in pairs:
                if groups[one] is not groups[other]:
                    joined = groups[one] + groups[other]
                    groups.update(dict.fromkeys(joined, joined))
            each = {id(group): sorted(group, key=names.index) for group in groups.values()}
            ranked = sorted(each.values(), key=lambda group: (-len(group), names.index(group[0])))
            numbers = {name: number for number, group in enumerate(ranked) for name in group}
        wanted = among if "from" in command else names  # the rows are in the order of the variable
        return Rows([{"id": name, algorithm: numbers[name]} for name in wanted])

    def number(self, algorithm: str, name: Any, pairs: list[Any]) -> int:
        leaving, entering = (sum(pair[side] == name for pair in pairs) for side in (0, 1))
        return {"in_degree": entering, "out_degree": leaving}.get(algorithm, leaving + entering)

    # Paths and cycles

    def ways(self, name: Any, direction: str) -> Iterator[tuple[Any, int]]:
        """The nodes one edge away, with the positions of the edges."""
        for at, (source, target, *_) in enumerate(self.edges):
            forth = source == name and (direction != "in" or not self.directed)
            back = target == name and (direction != "out" or not self.directed)
            if forth:
                yield target, at
            elif back:
                yield source, at

    def simple_paths(self, start: Any, most: int, direction: str, via: Any) -> Iterator[tuple[list[Any], list[int]]]:
        """Every simple path from ``start``, by its nodes and the positions of its edges."""

        def grown(names: list[Any], along: list[int]) -> Iterator[tuple[list[Any], list[int]]]:
            if along:
                yield names, along
            if len(along) < most:
                for other, at in self.ways(names[-1], direction):
                    if other not in names and self.usable(self.edges[at], via):
                        yield from grown([*names, other], [*along, at])

        return grown([start], [])

    def path(self, names: list[Any], along: list[int]) -> dict[str, Any]:
        edges = [self.edge(self.edges[at]) for at in along]
        return {"source": names[0], "target": names[-1], "length": len(along), "nodes": names, "edges": edges}

    def read_path(self, item: dict[str, Any], path: str) -> Any:
        parts = path.lstrip("*").split(".")
        if path.startswith("*node."):
            return [None if (found := self.of_node(name, parts[1:])) is MISSING else found for name in item["nodes"]]
        if path.startswith("*edge."):
            return [None if (found := stored(edge, parts[1:])) is MISSING else found for edge in item["edges"]]
        if parts[0] in ("source", "target"):
            found = self.of_node(item[parts[0]], parts[1:] or ["id"])
            return None if found is MISSING else found
        return item.get(path)

    def costs(self, value: Any, via: Any) -> list[Any]:
        """The cost of each edge; null where the edge is not used. A usable edge that costs less than 0 is a mismatch."""
        found = []
        for edge in self.edges:
            cost = None
            if self.usable(edge, via):
                cost = value_of(value, lambda path: self.read_edge(edge, path), lenient=False)  # noqa: B023
                if cost is not None and (not is_number(cost) or cost < 0):
                    raise Mismatch
            found.append(cost)
        return found

    def paths(self, command: Any) -> Rows:
        """Paths of at most ``most`` edges; of any length if that is None."""
        nodes = self.rows("nodes", [self.node(name) for name in self.names])

        def among(condition: Any) -> list[Any]:
            return [
                item["id"]
                for item in nodes.items
                if condition is None or holds(condition, lambda path: field_of(nodes, item, path)) is True  # noqa: B023
            ]

        starts, ends = among(command.get("start")), set(among(command.get("end")))
        direction, where, by = command.get("direction") or "out", command.get("where"), command.get("cost")
        costs = [1] * len(self.edges) if by is None else self.costs(by, command.get("via"))
        pairs: dict[tuple[Any, Any], list[Any]] = {}
        for start in starts:
            for names, along in self.simple_paths(
                start, command["most"] or len(self.names), direction, command.get("via")
            ):
                if names[-1] not in ends:
                    continue
                item = self.path(names, along)
                if where is not None and holds(where, lambda path: self.read_path(item, path)) is not True:  # noqa: B023
                    continue
                if None in (paid := [costs[at] for at in along]):
                    continue
                exact = sum(map(Fraction, paid))
                if by is not None:
                    item["cost"] = int(exact) if all(isinstance(each, int) for each in paid) else float(exact)
                key = (exact, len(along), self.place[start], along)
                pairs.setdefault((start, names[-1]), []).append((key, item))
        found: list[Any] = []
        for each in pairs.values():
            each.sort(key=lambda pair: pair[0])
            if command.get("count") is not None:
                each = each[: command["count"]]
            elif command.get("shortest"):
                each = [pair for pair in each if pair[0][0] == each[0][0][0]]
            found += each
        found.sort(key=lambda pair: pair[0])
        return self.rows("paths", [item for _, item in found][: command.get("limit")])

    def cycles(self, command: Any) -> Rows:
        where, found = command.get("where"), {}
        for start in self.names:
            for names, along in self.circuits(start, command["most"], command.get("via")):
                item = self.path(names, along)
                fits = where is None or holds(where, lambda path: self.read_path(item, path)) is True  # noqa: B023
                same_cycle = frozenset(along)
                begun = (self.place[start], self.place[names[1]])  # towards the neighbour that the graph has first
                if fits and (same_cycle not in found or begun < found[same_cycle][0]):
                    found[same_cycle] = (begun, (len(along), self.place[start], along), item)
        ordered = sorted(((key, item) for _, key, item in found.values()), key=lambda pair: pair[0])
        return self.rows("paths", [item for _, item in ordered][: command.get("limit")])

    def circuits(self, start: Any, most: int, via: Any) -> Iterator[tuple[list[Any], list[int]]]:
        """Every simple cycle that begins at ``start``: one node or more, and three at least where an edge has no direction."""

        def grown(names: list[Any], along: list[int]) -> Iterator[tuple[list[Any], list[int]]]:
            for other, at in self.ways(names[-1], "out"):
                if at in along or not self.usable(self.edges[at], via):
                    continue
                longer = [*along, at]
                if other == start and len(longer) <= most and (len(longer) != 2 or self.directed):
                    yield [*names, other], longer
                elif other not in names and len(longer) < most:
                    yield from grown([*names, other], longer)

        return grown([start], [])

    # Patterns

    def patterns(self, command: Any) -> Rows:
        """A pattern is nodes and edges by turns: ``{"name", "labels", "properties"}``, ``{"name", "labels", "direction"}``."""
        parts: list[Any] = []
        for pattern in command["patterns"]:
            parts += [None, *pattern] if parts else pattern
        found: list[dict[str, Any]] = []

        def node_fits(part: Any, name: Any) -> bool:
            data = self.graph.nodes[name]
            labelled = not part["labels"] or data.get("kind") in part["labels"]
            return labelled and all(
                holds(("cmp", "=", ("field", each), ("const", value)), lambda path: self.node(name).get(path)) is True
                for each, value in part["properties"].items()
            )

        def matched(at: int, name: Any, row: dict[str, Any], used: tuple[int, ...]) -> None:
            """``at`` is the position of a node, which is ``name``."""
            part = parts[at]
            if not node_fits(part, name) or (part["name"] in row and row[part["name"]] != ("node", name)):
                return
            if part["name"] is not None:
                row = {**row, part["name"]: ("node", name)}
            if at + 1 == len(parts):
                found.append(row)
            elif parts[at + 1] is None:
                for other in self.names:
                    matched(at + 2, other, row, used)
            else:
                edge = parts[at + 1]
                for other, place in self.ways(name, {"either": "both"}.get(edge["direction"], edge["direction"])):
                    fits = not edge["labels"] or self.edges[place][3].get("relation") in edge["labels"]
                    if fits and place not in used:
                        more = row if edge["name"] is None else {**row, edge["name"]: ("edge", place)}
                        matched(at + 2, other, more, (*used, place))

        for name in self.names:
            matched(0, name, {}, ())
        items = [
            {each: self.node(of) if kind == "node" else self.edge(self.edges[of]) for each, (kind, of) in row.items()}
            for row in found
        ]
        kinds = {each: kind for row in found for each, (kind, _) in row.items()}

        def computed(item: Any, parts: list[str]) -> Any:
            """A field of a node or an edge in a row; null if only others have it."""
            kind, rest = kinds.get(parts[0]), parts[1:]
            if kind is None or not rest:
                return MISSING
            if kind == "node":
                return self.of_node(item[parts[0]]["id"], rest)
            if rest[1:] and rest[0] in ("source", "target"):
                return self.of_node(item[parts[0]][rest[0]], rest[1:])
            return None if any(stored(self.edge(edge), rest) is not MISSING for edge in self.edges) else MISSING

        return self.chosen(command, Rows(items, computed, "patterns"))
