"""``knotwork graph``: the contents of a graph file, and the changes made by loading it."""

from collections.abc import Mapping
from os.path import commonprefix
from typing import Annotated, Any, Literal

import typer
from attrs import asdict

from .....lang.catalogue.schema import Attribute, Schema
from .....lang.diagnostic import printable
from ...figures import attribute_rows, cut_value
from ..output import Exit, json_text, say
from ..params import AsWritten

app = typer.Typer(name="graph", no_args_is_help=True, help="Show how a graph is loaded and what it contains.")

Source = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH", help="A graph file (GraphML, GEXF, GML, JSON, CSV, TSV), or nx:NAME.", show_default=False
    ),
]
Form = Annotated[Literal["table", "json"], typer.Option("--format", help="Table or JSON.")]


@app.command("info")
def info(graph: Source, raw: AsWritten = False, output_format: Form = "table") -> int:
    """Say what kind of graph it is, how large, and what loading it changed.

    Example: knotwork graph info nx:les_miserables
    """

    return show_info(graph, raw, output_format)


@app.command("schema")
def schema(graph: Source, raw: AsWritten = False, output_format: Form = "table") -> int:
    """List its labels, relations and attributes, with types and frequent values.

    Example: knotwork graph schema nx:karate_club
    """

    return show_schema(graph, raw, output_format)


# Output of ``graph``: the load report and the schema.

_EXCERPT = 40
"""Maximum characters of a value in a table."""

_MOST_KINDS = 12


def show_info(source: str, raw: bool, form: Literal["table", "json"]) -> int:
    """Write the report of loading ``source`` to stdout. Raises ``AdapterError``."""
    from ....models.factory import open_graph

    report = open_graph(source, raw=raw).report
    if form == "json":
        print(json_text(report.as_json()))
        return Exit.DONE
    print(f"graph    {printable(report.source)}\nformat   {report.format}\nkind     {report.kind}")
    print(f"nodes    {report.nodes:,}\nedges    {report.edges:,}")
    if report.changes:
        from ..display import render

        rows = [
            [change.where, change.says, f"{change.count:,}", *_sides(*change.examples[0])] for change in report.changes
        ]
        columns = ["where", "what was changed", "values", "before", "after"]
        print(f"\n{render(columns, rows, wide=frozenset({'values'}))}", end="")
        if any(change.habit for change in report.changes):
            print("\n--raw leaves quotes, <SEP> and numbers written as text as they are")
    else:
        print("\nnothing was changed")
    for warning in report.warnings:
        say(f"warning: {printable(warning)}")
    return Exit.DONE


def show_schema(source: str, raw: bool, form: Literal["table", "json"]) -> int:
    """Write the schema of ``source`` to stdout. Raises ``AdapterError``."""
    from ....models.factory import open_graph

    loaded = open_graph(source, raw=raw)
    schema = loaded.adapter.schema
    if form == "json":
        print(json_text(_as_json(schema)))
        return Exit.DONE
    print(f"graph      {printable(loaded.report.source)}\nkind       {loaded.report.kind}")
    print(f"nodes      {schema.nodes:,}\nedges      {schema.edges:,}\nhash       {schema.hash}")
    _print_kinds("labels", schema.label_attribute, schema.labels)
    _print_kinds("relations", schema.relation_attribute, schema.relations)
    for kind, attributes in (("node", schema.node_attributes), ("edge", schema.edge_attributes)):
        _print_attributes(kind, attributes)
    return Exit.DONE


def _print_kinds(title: str, attribute: str | None, kinds: Mapping[str, int]) -> None:
    if attribute is None:
        return
    shown = [f"{cut_value(kind)} ({count:,})" for kind, count in list(kinds.items())[:_MOST_KINDS]]
    more = f", {len(kinds) - _MOST_KINDS} more" if len(kinds) > _MOST_KINDS else ""
    print(f"{title:<10} {printable(attribute)}: {', '.join(shown)}{more}")


def _print_attributes(kind: str, attributes: Mapping[str, Attribute]) -> None:
    if not attributes:
        print(f"\n{kind}s have no attributes")
        return
    from ..display import render

    rows = attribute_rows(attributes)
    columns = [f"{kind} attribute", f"{kind}s", "types", "different", "frequent values"]
    print(f"\n{render(columns, rows, wide=frozenset({f'{kind}s', 'different'}))}", end="")


def _sides(before: Any, after: Any) -> tuple[str, str]:
    """Return the ``repr`` of both values, cut to the part where they differ."""
    texts = repr(before), repr(after)
    same = len(commonprefix(texts))  # noqa: RUF071  # texts, not paths
    if max(map(len, texts)) <= _EXCERPT or same < _EXCERPT // 2:
        return _cut(texts[0]), _cut(texts[1])
    start = same - _EXCERPT // 2
    return _cut("…" + texts[0][start:]), _cut("…" + texts[1][start:])


def _cut(text: str) -> str:
    return printable(text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…")


def _as_json(schema: Schema) -> dict[str, Any]:
    """Return the schema as JSON: values as ``{"value", "count"}``, attributes as lists in the order of the graph."""

    def attributes(known: Mapping[str, Attribute]) -> list[dict[str, Any]]:
        return [
            {**asdict(found), "values": [{"value": value, "count": count} for value, count in found.values]}
            for found in known.values()
        ]

    return {
        **asdict(schema, recurse=False),
        "labels": dict(schema.labels),
        "relations": dict(schema.relations),
        "node_attributes": attributes(schema.node_attributes),
        "edge_attributes": attributes(schema.edge_attributes),
    }
