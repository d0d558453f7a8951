"""Databases for tests: the tables and rows of a graph, written to a new Ladybug file."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from knotwork.adapters.graph_cypher.ladybug_database import load_ladybug


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def write_ladybug(
    path: Path,
    tables: Mapping[str, Mapping[str, str]],
    nodes: Sequence[tuple[str, Mapping[str, Any]]],
    relations: Sequence[tuple[str, str, str, Mapping[str, str]]] = (),
    edges: Sequence[tuple[str, tuple[str, Any], tuple[str, Any], Mapping[str, Any]]] = (),
) -> Path:
    """Write a database. ``tables`` maps labels to columns with types, the first column is the key. A node is ``(label, values)``.

    ``relations`` are ``(relation, source label, target label, columns)``; consecutive ones with the same name are one table. An
    edge is ``(relation, (label, key), (label, key), values)``.
    """
    ladybug = load_ladybug()
    database = ladybug.Database(str(path))
    connection = ladybug.Connection(database)

    def run(text: str, **values: Any) -> None:
        connection.execute(text, values)

    for label, columns in tables.items():
        listed = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns.items())
        run(f"CREATE NODE TABLE {quoted(label)}({listed}, PRIMARY KEY({quoted(next(iter(columns)))}))")
    for name in dict.fromkeys(relation for relation, *_ in relations):
        same = [each for each in relations if each[0] == name]
        ends = [f"FROM {quoted(source)} TO {quoted(target)}" for _, source, target, _ in same]
        columns = [f"{quoted(column)} {kind}" for column, kind in same[0][3].items()]
        run(f"CREATE REL TABLE {quoted(name)}({', '.join([*ends, *columns])})")
    run("BEGIN TRANSACTION")
    for label, values in nodes:
        given = {name: value for name, value in values.items() if value is not None}
        sets, named = _assignments(given, tables[label])
        run(f"CREATE (:{quoted(label)} {{{sets}}})", **named)
    for relation, (source, first), (target, second), values in edges:
        given = {name: value for name, value in values.items() if value is not None}
        types = next(each[3] for each in relations if each[0] == relation)
        sets, named = _assignments(given, types)
        keys = [quoted(next(iter(tables[label]))) for label in (source, target)]
        run(
            f"MATCH (a:{quoted(source)} {{{keys[0]}: $first}}), (b:{quoted(target)} {{{keys[1]}: $second}}) "
            f"CREATE (a)-[:{quoted(relation)} {{{sets}}}]->(b)",
            first=first, second=second, **named,
        )  # fmt: skip
    run("COMMIT")
    connection.close()
    database.close()
    return path


def _assignments(values: Mapping[str, Any], types: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    sets = ", ".join(f"{quoted(name)}: CAST($v{at} AS {types[name]})" for at, name in enumerate(values))
    return sets, {f"v{at}": _parameter(value) for at, value in enumerate(values.values())}


def _parameter(value: Any) -> Any:
    """The library passes integers of at most 64 bits."""
    return str(value) if isinstance(value, int) and value >= 2**63 else value
