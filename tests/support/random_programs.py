"""Random GASL programs over random small graphs, as plain data and as text, each with the results of the oracles."""

import json
from random import Random
from typing import Any

import networkx as nx

from support.gasl_oracle import Mismatch
from support.program_oracle import Rows, row_command
from support.searching_oracle import GraphOracle

__all__ = ["KINDS", "Maker", "random_graph"]

KINDS = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)
NAMES = ("a", "b", "c", "d", "e", "f", 7, "G", "\u00c9mile", "emile")
TEXTS = (
    "x",
    "xy",
    "",
    "y",
    "X",
    "12",
    "3.5",
    "2024-03-05",
    "2024-02-29T23:30:00-02:00",
    "x,y,,x",
    "\u00e9 x",
    "Ab  ab",
)
NUMBERS = (0, 1, 2, 3, -1, 2.5, -0.5, 1.0, 2**53 + 1, 100)
LISTS = ([], ["x", "y"], [1, 2, None], ["x", "x"], [2.5, 1], [[1], "x"])
NODE_FIELDS = ("kind", "n", "t", "s", "m", "o")
EDGE_FIELDS = ("relation", "n", "t", "m")


def random_value(random: Random, name: str) -> Any:
    """Numbers in ``n``, texts in ``t``, lists in ``s``, objects in ``o``, everything in ``m``; nulls everywhere."""
    if random.random() < 0.15:
        return None
    if name == "kind":
        return random.choice(("P", "P", "Q", "R"))
    if name == "relation":
        return random.choice(("K", "K", "L"))
    if name == "n":
        return float("nan") if random.random() < 0.01 else random.choice(NUMBERS)
    if name == "t":
        return random.choice(TEXTS)
    if name == "s":
        return random.choice((*LISTS[:4], "x"))
    if name == "o":
        return {"u": random.choice(NUMBERS), **({} if random.random() < 0.3 else {"v": random.choice(TEXTS)})}
    return random.choice((random.choice(NUMBERS), random.choice(TEXTS), True, False, random.choice(LISTS)))


def random_graph(random: Random, size: int = 8) -> Any:
    """A graph of one of the four kinds, with loops, parallel edges, nulls, missing attributes and mixed types."""
    graph: Any = random.choice(KINDS)()
    for at, name in enumerate(random.sample(NAMES, random.randint(2, size))):
        graph.add_node(
            name, **{each: random_value(random, each) for each in NODE_FIELDS if not at or random.random() < 0.8}
        )
    names = list(graph)
    graph.nodes[names[0]]["o"] = {"u": random.choice(NUMBERS), "v": random.choice(TEXTS)}
    for at in range(random.randint(1, 2 * size)):
        data = {each: random_value(random, each) for each in EDGE_FIELDS if not at or random.random() < 0.85}
        graph.add_edge(random.choice(names), random.choice(names), **data)
    for name, label, items in (
        ("kind", "P", graph.nodes.values()),
        ("relation", "K", [e[-1] for e in graph.edges(data=True)]),
    ):
        values = [data[name] for data in items if name in data]
        if 2 * sum(value is not None for value in values) <= len(values):  # else it is not the attribute of the kinds
            for data in items:
                data[name] = label
    return graph


class Maker:
    """Makes a program over a graph command by command, and runs each by the oracles, so that it knows the fields that there are."""

    def __init__(self, random: Random, graph: Any) -> None:
        self.random, self.graph = random, GraphOracle(graph)
        self.known: dict[str, Rows] = {}
        self.single: dict[str, Any] = {}
        """Values of variables that conditions may use, by their texts in ``${...}``."""
        self.made = 0

    def program(self, length: int) -> list[tuple[Any, Any]]:
        """Return commands with their results: a number, items, or ``Mismatch``, which ends the program."""
        steps: list[tuple[Any, Any]] = []
        while len(steps) < length:
            made = self.search() if not self.known or self.random.random() < 0.25 else self.of_rows()
            if made is None:
                continue
            made["into"] = f"v{self.made}"
            self.made += 1
            try:
                found = (
                    row_command(made, self.known) if made["do"] in ROW_COMMANDS else self.graph.run(made, self.known)
                )
            except Mismatch:
                return [*steps, (made, Mismatch)]
            if isinstance(found, Rows):
                if len(found.items) > MOST:
                    continue
                self.known[made["into"]] = found
                self.note(made["into"], found.items)
            elif isinstance(found, int):
                self.single[made["into"]] = found
            steps.append((made, found.items if isinstance(found, Rows) else found))
        return steps

    def note(self, name: str, items: list[Any]) -> None:
        """Remember the texts and numbers in the first row."""
        for field, value in items[0].items() if items else ():
            if field.isidentifier() and isinstance(value, str | int | float):
                self.single[f"{name}[0].{field}"] = value

    def constant(self, *among: Any) -> Any:
        if self.single and self.random.random() < 0.15:
            name = self.random.choice(list(self.single))
            return ("var", name, self.single[name])
        return ("const", self.random.choice(among))

    # Values and conditions over fields; each field has a type by its last name.

    def fields(self, rows: Rows) -> list[str]:
        found: dict[str, None] = {}
        for item in rows.items:
            for name, value in item.items() if isinstance(item, dict) else ():
                found[name] = None
                for inner in value if isinstance(value, dict) else ():
                    found[f"{name}.{inner}"] = None
        if rows.kind == "nodes":
            found.update(dict.fromkeys(("degree", "in_degree", "out_degree")))
        if rows.kind in ("edges", "paths") and rows.items:
            found.update(dict.fromkeys(("source.kind", "target.n", "source.degree", "target.t", "source.s")))
        return [path for path in found if all(part.isidentifier() for part in path.split("."))]

    def field(self, paths: list[str], *endings: str) -> Any:
        fitting = [path for path in paths if path.split(".")[-1] in endings]
        chosen = fitting if fitting and self.random.random() < 0.93 else paths
        return ("field", self.random.choice(chosen))

    def number(self, paths: list[str], depth: int = 0) -> Any:
        random = self.random
        match random.randrange(9 if depth < 2 else 3):
            case 0:
                return ("const", random.choice((0, 1, 2, 2.5, 10)))
            case 1 | 2 | 3:
                return self.field(paths, *NUMERIC)
            case 4:
                return ("bin", random.choice("+-*/%"), self.number(paths, depth + 1), self.number(paths, depth + 1))
            case 5:
                name = random.choice(("abs", "round", "floor", "ceil", "number"))
                return ("call", name, [self.number(paths, depth + 1)])
            case 6:
                return (
                    "call",
                    random.choice(("coalesce", "min", "max")),
                    [self.number(paths, 2), self.number(paths, 2)],
                )
            case 7:
                if random.random() < 0.5:
                    return ("len", self.field(paths, "t", "s", "names", "id"))
                return ("call", random.choice(("number", "year")), [self.field(paths, "t")])
        return ("if", self.condition(paths, 1), self.number(paths, 2), self.number(paths, 2))

    def text(self, paths: list[str], depth: int = 0) -> Any:
        random = self.random
        match random.randrange(8 if depth < 2 else 2):
            case 0 | 1 | 2:
                return self.field(paths, *TEXTUAL)
            case 3:
                return (
                    "call",
                    random.choice(("lower", "upper", "strip", "fold", "date")),
                    [self.text(paths, depth + 1)],
                )
            case 4:
                return ("bin", "+", self.text(paths, 2), ("const", random.choice(("x", "-"))))
            case 5:
                unit = ("const", random.choice(("year", "quarter", "month", "week", "day", "hour")))
                return ("call", "date_trunc", [unit, self.text(paths, 2)])
            case 6:
                return (
                    "call",
                    "substring",
                    [self.text(paths, 2), ("const", random.randrange(3)), ("const", random.randrange(3))],
                )
        if random.random() < 0.5:
            return ("call", "replace", [self.text(paths, 2), ("const", "x"), ("const", random.choice(("", "zz")))])
        return ("call", "str", [self.number(paths, 2)])

    def value(self, paths: list[str]) -> Any:
        """A value with a field in it; a plain field in most cases."""
        for _ in range(20):
            chosen = self.random.random()
            if chosen < 0.55:
                return ("field", self.random.choice(paths))
            made = self.number(paths) if chosen < 0.8 else self.text(paths)
            if '"field"' in json.dumps(made):
                return made
        return ("field", self.random.choice(paths))

    def condition(self, paths: list[str], depth: int = 0) -> Any:
        random = self.random
        if depth < 2 and random.random() < 0.35:
            word = random.choice(("and", "or", "not"))
            if word == "not":
                return ("not", self.condition(paths, depth + 1))
            return (word, [self.condition(paths, depth + 1) for _ in range(random.randint(2, 3))])
        left = self.value(paths)
        match random.randrange(8):
            case 0:
                return ("null", random.random() < 0.5, left)
            case 1:
                constants = [random.choice((*NUMBERS, *TEXTS, None, True)) for _ in range(random.randrange(4))]
                return ("in", random.random() < 0.5, left, constants)
            case 2:
                operator = random.choice(("CONTAINS", "STARTS_WITH", "ENDS_WITH", "MATCHES"))
                return ("cmp", operator, left, ("const", random.choice(("x", "y", "2", "a"))))
            case 3 | 4:
                for _ in range(5):
                    right = self.value(paths)
                    if right != left:
                        return ("cmp", random.choice(COMPARED), left, right)
        return ("cmp", random.choice(COMPARED), left, self.constant(*NUMBERS, *TEXTS, True, "P", "K", "a"))

    def maybe(self, made: Any, share: float = 0.5) -> Any:
        return made() if self.random.random() < share else None

    def column(self, paths: list[str], at: int) -> Any:
        value = self.value(paths)
        if value[0] == "field" and self.random.random() < 0.6:
            return (value, None)
        return (value, f"k{at}")

    def distinct_columns(self, paths: list[str], count: int) -> list[Any]:
        columns = {}
        for at in range(count):
            value, name = self.column(paths, at)
            columns.setdefault(name or value[1], (value, name))
        return list(columns.values())

    def order(self, paths: list[str]) -> list[Any]:
        made = {
            json.dumps(value): (value, self.random.random() < 0.5) for value in (self.value(paths) for _ in range(2))
        }
        return list(made.values())[: self.random.randint(1, 2)]

    # Commands

    def limited(self, command: Any, paths: list[str]) -> Any:
        if self.random.random() < 0.4:
            command["limit"] = self.random.randrange(1, 5)
            if self.random.random() < 0.5:
                command["per"] = [self.value(paths)]
        return command

    def node_paths(self) -> list[str]:
        return ["id", "degree", "in_degree", "out_degree", "o.u", "o.v", *NODE_FIELDS]

    def edge_paths(self) -> list[str]:
        ends = ["source.id", "target.kind", "source.n", "target.t", "target.in_degree", "source.m"]
        return ["source", "target", *EDGE_FIELDS, *ends, *(["key"] if self.graph.multi else [])]

    def search(self) -> Any:
        random = self.random
        kind = random.choices(SEARCHES, SEARCH_WEIGHTS)[0]
        edge_paths = [path for path in self.edge_paths() if self.graph.edges]
        if kind in ("nodes", "edges"):
            paths = self.node_paths() if kind == "nodes" else self.edge_paths()
            command = {"do": "find", "kind": kind, "where": self.maybe(lambda: self.condition(paths))}
            if random.random() < 0.4:
                command["order"] = self.order(paths)
            return self.limited(command, paths)
        via = self.maybe(lambda: self.condition(edge_paths), 0.4)
        if kind == "cycles":
            where = random.choice(
                (None, None, ("increasing", "edge.n"), ("cmp", ">", ("field", "length"), ("const", 2)))
            )
            return {
                "do": "cycles",
                "via": via,
                "where": where,
                "most": random.randint(1, 4),
                "limit": self.maybe(lambda: 3, 0.2),
            }
        if kind == "paths":
            return self.path_search(via)
        return self.pattern_search()

    def path_search(self, via: Any) -> Any:
        random = self.random
        command: dict[str, Any] = {"do": "paths", "via": via, "most": random.randint(1, 3)}
        if random.random() < 0.5:
            for side in ("start", "end"):
                command[side] = self.condition(self.node_paths())
        command["where"] = random.choice(
            (
                None, None, None, ("increasing", "edge.n"), ("quantified", random.choice(("ANY", "ALL", "NONE")), "edge.n", ">", 1),
                ("quantified", random.choice(("ANY", "ALL", "NONE")), "node.kind", "=", "P"),
                ("cmp", "=", ("field", "source.kind"), ("field", "target.kind")),
            )
        )  # fmt: skip
        if random.random() < 0.4:
            command["shortest"], command["most"] = True, random.choice((None, command["most"]))
            command["count"] = self.maybe(lambda: random.randint(1, 3))
            command["cost"] = self.maybe(lambda: random.choice(COSTS))
            if command["cost"] == COSTS[0]:
                command["where"] = None  # a condition may exclude the edges whose cost is below 0
        command["direction"] = random.choice((None, None, "out", "in", "both"))
        command["limit"] = self.maybe(lambda: random.randint(1, 4), 0.2)
        return command

    def pattern_search(self) -> Any:
        random = self.random
        used: list[str] = []
        patterns = [self.pattern(random.randint(1, 2), used)]
        if not used:
            patterns[0][0]["name"] = "p"
            used.append("p")
        nodes = [name for name in used if name in "pqr"]
        if nodes and random.random() < 0.3:
            patterns.append(self.pattern(1, used))
            patterns[1][random.choice((0, 2))]["name"] = random.choice(nodes)  # several patterns must share a name
            used = list(dict.fromkeys(part["name"] for pattern in patterns for part in pattern if part["name"]))
        paths = [
            f"{name}.{field}"
            for name in used
            for field in (EDGE_FIELDS if name in "xyz" else ("id", *NODE_FIELDS, "degree"))
        ]
        command = {"do": "patterns", "patterns": patterns, "where": self.maybe(lambda: self.condition(paths), 0.3)}
        if random.random() < 0.3:
            command["order"] = self.order(paths)
        return self.limited(command, paths)

    def pattern(self, length: int, used: list[str]) -> list[Any]:
        """A pattern of ``length`` edges; its names are added to ``used``. Only a node may have a name that is used."""
        random, made = self.random, list[Any]()
        for at in range(2 * length + 1):
            if at % 2:
                name = random.choice([*(each for each in "xyz" if each not in used), None])
                labels = random.choice(([], [], ["K"], ["K", "L"]))
                made.append({"name": name, "labels": labels, "direction": random.choice(("out", "in", "either"))})
            else:
                name = random.choice(("p", "q", "r", None))
                labels = random.choice(([], [], [], ["P"], ["P", "Q"]))
                properties = random.choice(({}, {}, {}, {}, {}, {}, {"n": 1}, {"t": "x"}))
                made.append({"name": name, "labels": labels, "properties": properties})
            if name is not None and name not in used:
                used.append(name)
        return made

    def of_rows(self) -> Any:
        random = self.random
        name = random.choice(list(self.known)[-3:])
        rows = self.known[name]
        paths = self.fields(rows)
        if not paths:
            return None
        match random.choices(*zip(*ROW_WEIGHTS.items(), strict=True))[0]:
            case "select":
                command: dict[str, Any] = {"do": "select", "from": name, "distinct": random.random() < 0.25}
                command["where"] = self.maybe(lambda: self.condition(paths))
                if command["where"] is None or random.random() < 0.5:
                    command["fields"] = self.distinct_columns(paths, random.randint(1, 3))
                command["sample"] = self.maybe(lambda: random.randint(1, 5), 0.2)
                return command
            case "unnest":
                return {"do": "unnest", "from": name, "by": self.unnested(paths)}
            case "count":
                by = self.maybe(lambda: self.distinct_columns(paths, random.randint(1, 2)), 0.8)
                return {"do": "count", "from": name, "by": by}
            case "aggregate":
                return self.aggregation(name, paths)
            case "rank":
                return self.limited({"do": "rank", "from": name, "by": self.order(paths)}, paths)
            case "measure":
                return self.measuring(name)
            case "walk" | "connect" | "subgraph" as kind:
                if rows.kind not in ("nodes", "edges"):
                    return None
                if kind == "subgraph":
                    return {"do": "subgraph", "from": name, "radius": random.randint(0, 2)}
                via = self.maybe(lambda: self.condition(self.edge_paths()), 0.3)
                if kind == "connect":
                    others = [each for each, there in self.known.items() if there.kind in ("nodes", "edges")]
                    return {"do": "connect", "left": name, "right": random.choice(others), "via": via}
                direction = random.choice(("out", "in", "both"))
                trace = random.random() < 0.5
                return {
                    "do": "walk",
                    "from": name,
                    "via": via,
                    "depth": random.randint(1, 3),
                    "direction": direction,
                    "trace": trace,
                }
        other = random.choice(list(self.known))
        return self.pairing(name, paths, other, self.fields(self.known[other]))

    def measuring(self, name: str) -> Any:
        random = self.random
        degrees = ("in_degree", "out_degree") if self.graph.directed else ()
        command: dict[str, Any] = {"do": "measure", "algorithm": random.choice(("degree", "components", *degrees))}
        if self.known[name].kind in ("nodes", "edges") and random.random() < 0.6:
            command["from"] = name
        edges = [each for each, rows in self.known.items() if rows.kind == "edges" and rows.items]
        if edges and random.random() < 0.6:
            command["edges"] = random.choice(edges)
        return command

    def unnested(self, paths: list[str]) -> Any:
        if self.random.random() < 0.3:
            return (("call", "split", [self.field(paths, "t"), ("const", ",")]), "part")
        value = self.field(paths, "s", "m", "names")
        return (value, None if self.random.random() < 0.5 else "part")

    def aggregation(self, name: str, paths: list[str]) -> Any:
        random, made = self.random, []
        for at in range(random.randint(1, 3)):
            function = random.choice(("count", "sum", "mean", "min", "max", "median", "stdev", "percentile", "collect"))
            value: Any = self.number(paths) if function not in ("count", "collect", "min", "max") else self.value(paths)
            if '"field"' not in json.dumps(value):
                value = self.field(paths, *NUMERIC)
            bare = function == "count" and random.random() < 0.5
            made.append(
                {
                    "function": function,
                    "value": None if bare else value,
                    "distinct": function in ("count", "collect") and not bare and random.random() < 0.4,
                    "share": random.choice((0, 0.25, 0.5, 0.9, 1)) if function == "percentile" else None,
                    "name": f"made{at}",
                }
            )
        by = self.maybe(lambda: self.distinct_columns(paths, random.randint(1, 2)), 0.7)
        return {"do": "aggregate", "from": name, "by": by, "compute": made}

    def pairing(self, left: str, paths: list[str], right: str, others: list[str]) -> Any:
        random = self.random
        if not others:
            return None
        pairs = []
        for _ in range(random.randint(1, 2)):
            common = [path for path in paths if path in others]
            if common and random.random() < 0.7:
                value = self.value(common)
                pairs.append((value, value))
            else:
                pairs.append((self.value(paths), self.value(others)))
        if random.random() < 0.5:
            command = {"do": "join", "left": left, "right": right, "on": pairs, "outer": random.random() < 0.4}
            if random.random() < 0.3:
                value = self.text(paths) if random.random() < 0.5 else self.field(paths, "t", "id", "kind")
                command |= {"on": [(value, value)], "outer": False, "similar": random.choice((0.1, 0.3, 0.5, 1))}
            elif random.random() < 0.3:
                command["name"] = "other"
            return command
        kind = random.choice(("union", "intersect", "except"))
        return {"do": kind, "left": left, "right": right, "on": self.maybe(lambda: pairs, 0.6)}


ROW_WEIGHTS = {
    "select": 3, "unnest": 1, "count": 1.5, "aggregate": 2, "rank": 1.5, "join": 2, "set": 2,
    "walk": 1.5, "connect": 1, "subgraph": 0.5, "measure": 0.5,
}  # fmt: skip
ROW_COMMANDS = ("select", "unnest", "count", "aggregate", "rank", "join", "union", "intersect", "except")
COMPARED = ("=", "!=", "<", "<=", ">", ">=")
NUMERIC = ("n", "u", "degree", "in_degree", "out_degree", "count", "length", "depth", "cost", "made0", "similarity")
TEXTUAL = ("t", "v", "kind", "relation")
COSTS = (("field", "n"), ("call", "abs", [("field", "n")]), ("const", 1), ("len", ("field", "t")))
MOST = 300
"""The largest number of rows that a variable may have."""
SEARCHES = ("nodes", "edges", "paths", "patterns", "cycles")
SEARCH_WEIGHTS = (4, 4, 3, 3, 1)
