"""``knotwork graph``: show the contents of a graph, the changes made during loading, and the prepared copies of graph files."""

from collections.abc import Mapping
from datetime import UTC, datetime
from os.path import commonprefix
from typing import Annotated, Any, Literal

import typer
from attrs import asdict

from .....lang.diagnostic import printable
from ....api import states
from ....api.figures import attribute_rows, counted, cut_value
from ..inputs import warn
from ..output import Exit, json_text, write_table
from ..params import AsWritten, WithoutCopies, flag

app = typer.Typer(name="graph", no_args_is_help=True, help="Show how a graph is loaded and what it contains.")

Source = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH", help="A graph file (GraphML, GEXF, GML, JSON, CSV, TSV), or nx:NAME.", show_default=False
    ),
]
Form = Annotated[Literal["table", "json"], typer.Option("--format", help="Table or JSON.")]

Verify = Annotated[
    bool, flag("--verify", "Read the file's content again, even if its size and modification time are unchanged.")
]

_EXCERPT = 40
"""Maximum number of characters of a value in a table."""
_MOST_KINDS = 12
"""Maximum number of labels, and of relations, that are listed."""


@app.command("info")
def info(
    graph: Source,
    raw: AsWritten = False,
    no_cache: WithoutCopies = False,
    verify: Verify = False,
    output_format: Form = "table",
) -> int:
    """Show the kind and size of a graph, and the changes made during loading.

    Example: knotwork graph info nx:les_miserables
    """
    report = _opened(graph, raw, no_cache, verify).report
    if output_format == "json":
        print(json_text(report.as_json()))
        return Exit.DONE
    print(f"graph    {printable(report.source)}\nformat   {report.format}\nkind     {report.kind}")
    print(f"nodes    {report.nodes:,}\nedges    {report.edges:,}")
    if report.about:
        print(f"about    {printable(report.about_text)}")
    print()
    if report.changes:
        rows = [
            [change.where, change.description, f"{change.count:,}", *_difference(*change.examples[0])]
            for change in report.changes
        ]
        write_table(("where", "change", "values", "before", "after"), rows, wide=("values",))
        if any(change.habit for change in report.changes):
            print("\n--raw keeps quotes, <SEP> and numbers in strings unchanged")
    else:
        print("no value was changed; see the warnings" if report.warnings else "nothing was changed")
    for warning in report.warnings:
        warn(warning)
    return Exit.DONE


@app.command("schema")
def schema(
    graph: Source,
    raw: AsWritten = False,
    no_cache: WithoutCopies = False,
    verify: Verify = False,
    output_format: Form = "table",
) -> int:
    """List the labels, relations and attributes of a graph, with types and frequent values.

    Example: knotwork graph schema nx:karate_club
    """
    loaded = _opened(graph, raw, no_cache, verify)
    found = loaded.adapter.schema
    if output_format == "json":
        print(json_text(states.schema_document(found)))
        return Exit.DONE
    print(f"graph      {printable(loaded.report.source)}\nkind       {loaded.report.kind}")
    print(f"nodes      {found.nodes:,}\nedges      {found.edges:,}\nhash       {found.hash}")
    for title, attribute, kinds in (
        ("labels", found.label_attribute, found.labels),
        ("relations", found.relation_attribute, found.relations),
    ):
        if attribute is not None:
            shown = [f"{cut_value(kind)} ({count:,})" for kind, count in list(kinds.items())[:_MOST_KINDS]]
            more = f", {len(kinds) - _MOST_KINDS} more" if len(kinds) > _MOST_KINDS else ""
            print(f"{title:<10} {printable(attribute)}: {', '.join(shown)}{more}")
    _print_attributes("node", found.node_attributes)
    _print_attributes("edge", found.edge_attributes)
    return Exit.DONE


@app.command("cache")
def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Delete all copies.")] = False, output_format: Form = "table"
) -> int:
    """List or delete the prepared copies of graph files. An unchanged file is loaded from its copy.

    Each graph file of 1 MiB or more has a copy; all copies together use at most 2 GiB.

    Example: knotwork graph cache
    """
    if clear:
        copies, size = states.clear_graph_copies()
        if output_format == "json":
            print(json_text({"copies": copies, "bytes": size}))
        else:
            print(f"deleted {counted(copies, 'copy', 'copies')} ({size / 1e6:,.1f} MB)")
        return Exit.DONE
    found = states.graph_copies()
    if output_format == "json":
        print(json_text([{**asdict(entry), "used": _time(entry.used)} for entry in found]))
        return Exit.DONE
    if not found:
        print("no prepared copies")
        return Exit.DONE
    rows = [
        [
            printable(entry.source) or "(damaged)", entry.format, f"{entry.nodes:,}", f"{entry.edges:,}",
            f"{entry.bytes / 1e6:,.1f} MB", _time(entry.used),
        ]
        for entry in found
    ]  # fmt: skip
    write_table(
        ("graph", "format", "nodes", "edges", "size", "last used"), rows, wide=("nodes", "edges", "size", "last used")
    )
    return Exit.DONE


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _opened(graph: str, raw: bool, no_cache: bool, verify: bool) -> "states.Loaded":
    from ..output import graph_progress

    loaded = states.open_graph(graph, raw, cache=not no_cache, verify=verify, progress=graph_progress())
    for note in loaded.report.notes:
        warn(note)
    return loaded


def _print_attributes(kind: str, attributes: "Mapping[str, states.Attribute]") -> None:
    if not attributes:
        print(f"\n{kind}s have no attributes")
        return
    columns = (f"{kind} attribute", f"{kind}s", "types", "different", "frequent values")
    print()
    write_table(columns, attribute_rows(attributes), wide=(f"{kind}s", "different"))


def _difference(before: Any, after: Any) -> tuple[str, str]:
    """Return the ``repr`` of both values; long strings are cut to the part where they differ."""
    texts = repr(before), repr(after)
    same = len(commonprefix(texts))  # noqa: RUF071  # strings, not paths
    if max(map(len, texts)) > _EXCERPT and same >= _EXCERPT // 2:
        start = same - _EXCERPT // 2
        texts = "…" + texts[0][start:], "…" + texts[1][start:]
    before, after = (printable(text if len(text) <= _EXCERPT else text[: _EXCERPT - 1] + "…") for text in texts)
    return before, after
