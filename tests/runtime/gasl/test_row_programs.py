"""The commands on rows against plain Python, and columns against lists: the same rows, types, messages and evidence."""

import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import networkx as nx
import pytest
from knotwork.adapters.graph_networkx import find as engine
from knotwork.adapters.graph_networkx import find_plan
from knotwork.runtime.gasl.records import Value
from knotwork.runtime.gasl.relation import Relation
from support import gasl_oracle as oracle
from support.runners import evidence, run, session

KINDS = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)


@pytest.fixture
def columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use columns for small graphs too."""
    monkeypatch.setattr(engine, "_LARGE", 1)
    monkeypatch.setattr(find_plan, "_SMALL", 1)


def chosen(chance: Random, values: list[Callable[[], Any]]) -> Any:
    return chance.choice(values)()


def attributes(chance: Random, mixed: bool) -> dict[str, Any]:
    """Return attributes: ``text``, ``whole`` and ``real`` have one type, ``mix`` has several types if ``mixed``."""
    made: dict[str, Any] = {}
    if chance.random() < 0.9:
        made["text"] = chance.choice(["a", "b", "B", "Ada Lovelace", "ada lovelace", "", None])
    if chance.random() < 0.9:
        made["whole"] = chance.choice([0, 1, 2, -3, 2**40, None])
    if chance.random() < 0.9:
        made["real"] = chance.choice([0.1, 0.2, -0.0, 0.0, 1e16, -1e16, 2.5, float("nan"), None])
    if chance.random() < 0.9:
        plain = [1, 2.0, True, False, "1", None, float("inf"), [1, "a", None], [], {"x": 1}]
        made["mix"] = chance.choice(plain) if mixed else chance.choice([1, 1.5])
    if chance.random() < 0.5:
        made["list"] = chance.choice([["c1", "c2"], "c1", [], None, ["c1", 3]])
    if chance.random() < 0.3:
        made["at"] = {"side": chance.choice([1, 2, None])}
    return made


def graph_of(chance: Random, kind: Any, mixed: bool) -> Any:
    graph = kind()
    size = chance.randint(1, 12)
    for number in range(size):
        graph.add_node(chance.choice([number, f"n{number}"]) if mixed else f"n{number}", **attributes(chance, mixed))
    nodes = list(graph)
    for _ in range(chance.randint(0, 20)):
        graph.add_edge(chance.choice(nodes), chance.choice(nodes), **attributes(chance, mixed))
    return graph


FIELDS = ("text", "whole", "real", "mix", "list", "at.side")


COMPUTED = {"nodes": ("degree", "in_degree", "out_degree"), "edges": ("source.text", "target.whole", "source.degree")}
"""Fields that the items do not have, but the graph."""


class Case:
    """The graph of the running case, and the kind of its items."""

    graph: Any = None
    kind = "nodes"


def computed(name: str) -> oracle.Read:
    """Return the reader of a field that the items do not have."""

    def of_node(node: Any, attribute: str) -> Any:
        if attribute in COMPUTED["nodes"]:
            whole = attribute == "degree" or not Case.graph.is_directed()
            return Case.graph.degree(node) if whole else getattr(Case.graph, attribute)(node)
        found = Case.graph.nodes[node].get(attribute)
        return None if isinstance(found, float) and not math.isfinite(found) else found

    if name in COMPUTED["nodes"]:
        return lambda item: of_node(item["id"], name)
    end, _, attribute = name.partition(".")
    return lambda item: of_node(item[end], attribute)


def value(chance: Random, depth: int = 0) -> tuple[str, oracle.Read]:
    """Return a random value as text, and as a function of an item."""
    if chance.random() < 0.15:
        name = chance.choice(COMPUTED[Case.kind])
        return name, computed(name)
    name = chance.choice(FIELDS[:4] if depth else FIELDS)
    if chance.random() < 0.6 or depth > 1:
        return name, oracle.field(name)
    one, other = value(chance, depth + 1), value(chance, depth + 1)
    sign = chance.choice("+-*/")
    text, read = chance.choice(
        [
            (f"({one[0]} {sign} {other[0]})", oracle.binary(sign, one[1], other[1])),
            (f"lower({one[0]})", oracle.lowered(one[1])),
            (f"coalesce({one[0]}, {other[0]})", oracle.first_known(one[1], other[1])),
        ]
    )
    return text, read if depth else oracle.kept(read)


def keys(chance: Random) -> tuple[str, list[oracle.Column]]:
    made = [value(chance) for _ in range(chance.randint(1, 2))]
    return ", ".join(f"{text} AS k{at}" for at, (text, _) in enumerate(made)), [
        (f"k{at}", read) for at, (_, read) in enumerate(made)
    ]


def select(chance: Random) -> tuple[str, Any]:
    text, columns = keys(chance)
    limit = chance.choice([0, 1, 2.5])
    distinct = chance.random() < 0.5
    where, test = "", None
    if chance.random() < 0.5:
        tested = value(chance)
        where = f" WHERE {tested[0]} > {limit}"
        read = oracle.lenient(tested[1])

        def test(item: Any) -> Any:
            found = read(item)
            return None if found is None or oracle.key(found)[0] != "number" else found > limit

    if chance.random() < 0.2:
        return f"SELECT v{where} AS x" if where else "SELECT DISTINCT v AS x", lambda items: oracle.select(
            items, where=test, distinct=not where
        )
    word = "DISTINCT " if distinct else ""
    return f"SELECT {word}v FIELDS {text}{where} AS x", lambda items: oracle.select(
        items, columns, test, distinct=distinct
    )


def unnest(chance: Random) -> tuple[str, Any]:
    text, read = value(chance)
    return f"UNNEST v BY {text} AS part AS x", lambda items: oracle.unnest(items, "part", read)


def count(chance: Random) -> tuple[str, Any]:
    text, by = keys(chance)
    return f"COUNT v BY {text} AS x", lambda items: oracle.count(items, by)


def aggregate(chance: Random) -> tuple[str, Any]:
    text, by = keys(chance) if chance.random() < 0.8 else ("", [])
    names = ("count", "sum", "mean", "min", "max", "median", "stdev", "percentile", "collect")
    parts, computations = ["count() AS n"], [("n", "count", None, False, 0.0)]
    for at in range(chance.randint(1, 3)):
        function, (inner, read), share = chance.choice(names), value(chance), chance.choice([0, 0.25, 0.5, 0.9, 1])
        distinct = function in ("count", "collect") and chance.random() < 0.4
        more = f", {share}" if function == "percentile" else ""
        parts.append(f"{function}({'DISTINCT ' if distinct else ''}{inner}{more}) AS m{at}")
        computations.append((f"m{at}", function, read, distinct, share))
    head = f" BY {text}" if text else ""
    return f"AGGREGATE v{head} COMPUTE {', '.join(parts)} AS x", lambda items: oracle.aggregate(items, by, computations)


def rank(chance: Random) -> tuple[str, Any]:
    made = [(*value(chance), chance.random() < 0.5) for _ in range(chance.randint(1, 2))]
    text = ", ".join(f"{inner}{' DESC' if down else ''}" for inner, _, down in made)
    by = [(oracle.lenient(read), down) for _, read, down in made]
    limit = chance.choice([None, 0, 1, 3])
    per = [value(chance)] if limit is not None and chance.random() < 0.4 else []
    tail = "" if limit is None else f" LIMIT {limit}" + (f" PER {per[0][0]}" if per else "")
    return f"RANK v BY {text}{tail} AS x", lambda items: oracle.rank(items, by, limit, [read for _, read in per])


def join(chance: Random) -> tuple[str, Any]:
    pairs = [
        (value(chance), value(chance)) if chance.random() < 0.5 else (value(chance),) * 2
        for _ in range(chance.choice([1, 1, 2]))
    ]
    on = ", ".join(one[0] if one is other else f"{one[0]} = {other[0]}" for one, other in pairs)
    tests = [(oracle.lenient(one[1]), oracle.lenient(other[1])) for one, other in pairs]
    shared = [one[0] for one, other in pairs if one[0] == other[0]]
    outer, nested = chance.random() < 0.3, chance.choice([None, "mate"])
    words = f"{'LEFT ' if outer else ''}JOIN v WITH w{' AS mate' if nested else ''} ON {on} AS x"
    return words, lambda items: oracle.join(items, items[::2], tests, shared, outer=outer, nested=nested)


def combined(chance: Random) -> tuple[str, Any]:
    kind = chance.choice(["UNION", "INTERSECT", "EXCEPT"])
    one, other = value(chance), value(chance)
    if chance.random() < 0.5:
        return f"{kind} v WITH w AS x", lambda items: oracle.combine(kind, items, items[::2], [])
    pair = (oracle.lenient(one[1]), oracle.lenient(other[1]))
    return f"{kind} v WITH w ON {one[0]} = {other[0]} AS x", lambda items: oracle.combine(
        kind, items, items[::2], [pair]
    )


COMMANDS = (select, unnest, count, aggregate, rank, join, combined)


def exact(found: Any) -> Any:
    """Return a value whose equality tells 1, 1.0 and true apart."""
    if isinstance(found, dict):
        return {name: exact(each) for name, each in found.items()}
    if isinstance(found, list | tuple):
        return [exact(each) for each in found]
    return (type(found).__name__, found)


def programs(seed: int, cases: int) -> Iterator[tuple[Random, Any, str, str, Any]]:
    chance = Random(seed)
    for case in range(cases):
        graph = graph_of(chance, KINDS[case % 4], chance.random() < 0.5)
        Case.graph, Case.kind = graph, chance.choice(["nodes", "edges"])
        text, expected = chance.choice(COMMANDS)(chance)
        yield chance, graph, Case.kind, text, expected


def checked(seed: int, cases: int) -> None:
    refused = 0
    for _, graph, kind, text, expected in programs(seed, cases):
        at = session(graph)
        found = run(f"FIND {kind} AS v", at)
        assert found.value is not None
        items = list(found.value.value)
        # As a list, and as positions: whatever the rows are held as, a command does the same.
        halves = {"v": found.value, "w": Value(items[::2], found.value.evidence[::2], graph_items=kind)}
        lists = session(graph, variables={
            "v": Value(items, found.value.evidence, graph_items=kind), "w": halves["w"]
        })  # fmt: skip
        at.context.set("w", halves["w"])
        if len(items):
            assert isinstance(found.value.held, Relation)
        by_columns, by_lists = run(text, at), run(text, lists)
        told = f"seed {seed}: {type(graph).__name__} {kind}: {text}\n{items}"
        assert by_columns.status == by_lists.status, told
        assert (by_columns.message, by_columns.hint) == (by_lists.message, by_lists.hint), told
        assert by_columns.summary == by_lists.summary, told
        try:
            wanted = expected(items)
        except oracle.Mismatch:
            assert by_columns.status == "schema_mismatch", told
            continue
        if by_columns.status == "schema_mismatch":
            # A field that no item has, or a result beyond 64 bits: the oracle knows neither.
            assert "has a field" in by_columns.message or "too large" in by_columns.message, told + by_columns.message
            refused += 1
            continue
        assert by_columns.value is not None and by_lists.value is not None, told
        assert exact(by_columns.value.value) == exact(by_lists.value.value), told
        assert exact(by_columns.value.value) == exact(wanted), told
        assert evidence(by_columns) == evidence(by_lists), told
    assert refused <= cases // 2


@pytest.mark.slow
@pytest.mark.usefixtures("columns")
@pytest.mark.parametrize("seed", range(4))
def test_random_programs_give_what_plain_python_gives(seed: int) -> None:
    checked(seed, 60)


@pytest.mark.slow
@pytest.mark.usefixtures("columns")
@pytest.mark.parametrize("seed", range(100, 120))
def test_many_random_programs_give_what_plain_python_gives(seed: int) -> None:
    checked(seed, 400)
