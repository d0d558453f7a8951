"""Load a graph from a file, a NetworkX generator or a program, with a report of the changes made.

Files are read here and never passed to NetworkX by path, because NetworkX would unpack ``.gz`` files without a limit. Pickles are
refused.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
from attrs import frozen

from ...lang.diagnostic import nearest
from ..graph import AdapterError
from .cleanup import Change, normalise, shortened

if TYPE_CHECKING:
    from .adapter import NetworkXAdapter

LARGEST_FILE = 512 * 2**20
"""Default of the maximum size of a graph file in bytes."""

_SUFFIXES = {
    ".graphml": "graphml",
    ".gml": "gml",
    ".gexf": "gexf",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
}
_READABLE = ".graphml, .gexf, .gml, .json (node-link), .csv or .tsv (edges), or nx:NAME for a graph of NetworkX's own"


@frozen
class LoadReport:
    """The source of a loaded graph and the changes made while loading.

    ``seconds``: time for reading and normalising. ``copied``: whether the given graph object was copied. ``format`` is "graphml",
    "gml", "gexf", "json", "csv", "generator" or "networkx".
    """

    source: str
    format: str
    directed: bool
    multi: bool
    nodes: int
    edges: int
    seconds: float
    raw: bool = False
    copied: bool = False
    changes: tuple[Change, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The graph's kind in words: "directed multigraph"."""
        return f"{'directed' if self.directed else 'undirected'} {'multigraph' if self.multi else 'graph'}"

    @property
    def messages(self) -> tuple[str, ...]:
        """The changes and warnings to show to the user, one line each."""
        return (*(change.message for change in self.changes), *self.warnings)

    def as_lines(self) -> Iterator[str]:
        """Yield the report as text lines."""
        yield f"{self.source}: {self.kind} of {self.nodes:,} nodes and {self.edges:,} edges ({self.format})"
        for change in self.changes:
            yield f"{change.where}: {change.description} ({change.count:,})" + (
                f"; {change.example}" if change.examples else ""
            )
        yield from (f"warning: {warning}" for warning in self.warnings)

    def as_json(self) -> dict[str, Any]:
        """Return the report as a JSON object."""
        return {
            "source": self.source,
            "format": self.format,
            "directed": self.directed,
            "multi": self.multi,
            "nodes": self.nodes,
            "edges": self.edges,
            "seconds": round(self.seconds, 3),
            "raw": self.raw,
            "copied": self.copied,
            "changes": [
                {
                    "kind": change.kind,
                    "where": change.where,
                    "count": change.count,
                    "says": change.description,
                    "examples": [
                        {"before": _brief(before), "after": _brief(after)} for before, after in change.examples
                    ],
                }
                for change in self.changes
            ],
            "warnings": list(self.warnings),
        }


def _brief(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= 200 else value[:197] + "..."
    if isinstance(value, list):
        return [_brief(item) for item in value[:5]]
    return value if isinstance(value, int | float | bool) or value is None else shortened(value)


@frozen
class Loaded:
    """A graph behind the port, and the report of loading it."""

    adapter: "NetworkXAdapter"
    report: LoadReport


def load(
    source: "nx.Graph[Any] | str | Path", *, raw: bool = False, strict: bool = False, largest: int = LARGEST_FILE
) -> Loaded:
    """Load the graph of ``source`` (file, ``nx:NAME`` or graph), with a report. See ``read_graph``, ``NetworkXAdapter``."""
    from .adapter import NetworkXAdapter

    graph, report = read_graph(source, raw=raw, largest=largest)
    return Loaded(NetworkXAdapter(graph, name=report.source, strict=strict, told=report.messages), report)


def read_graph(
    source: "nx.Graph[Any] | str | Path", *, raw: bool = False, largest: int = LARGEST_FILE
) -> "tuple[nx.Graph[Any], LoadReport]":
    """Return a graph with JSON ids and attributes, and a report of the changes made.

    ``source``: a path, ``nx:NAME``, or a NetworkX graph. A file is GraphML, GEXF, GML, node-link JSON, or an edge list in CSV or
    TSV, recognised by its suffix, else by its content. A graph object is never modified. If a tool left quotes or ``<SEP>`` in the
    graph object, it is copied and the report says so; else it is used directly. ``raw`` keeps quotes, ``<SEP>`` and numbers written
    as text. ``largest``: maximum size of a file in bytes. Raises ``AdapterError``.
    """
    began = time.perf_counter()
    warnings: list[str] = []
    owned = True
    if isinstance(source, nx.Graph):
        graph, name, format, owned = source, str(source.graph.get("name") or "graph"), "networkx", False
    elif isinstance(source, str) and source.startswith("nx:"):
        from .formats import generate

        graph, name, format = generate(source[3:]), source, "generator"
    elif isinstance(source, str | os.PathLike):
        path = Path(source)
        name = str(source)
        data = _bytes(path, name, largest)
        format = _format(path, data, name)
        graph = _reader(format)(data, name, warnings.append)
        del data
    else:
        raise AdapterError(
            f"a graph is a file, nx:NAME or a networkx graph, not {type(source).__name__}",
            hint="pass nx.Graph, nx.DiGraph, nx.MultiGraph or nx.MultiDiGraph",
        )
    given = graph
    try:
        graph, changes, more = normalise(graph, raw=raw, owned=owned)
    except AdapterError as error:
        raise AdapterError(f"{name}: {error.message}", hint=error.hint) from None
    copied = not owned and graph is not given
    if copied:
        warnings.append("the graph was copied and cleaned; later changes of your graph do not reach the copy")
    report = LoadReport(
        source=name,
        format="csv" if format == "tsv" else format,
        directed=graph.is_directed(),
        multi=graph.is_multigraph(),
        nodes=graph.number_of_nodes(),
        edges=graph.number_of_edges(),
        seconds=time.perf_counter() - began,
        raw=raw,
        copied=copied,
        changes=changes,
        warnings=(*warnings, *more),
    )
    return graph, report


def _reader(format: str) -> "Callable[[bytes, str, Callable[[str], None]], nx.Graph[Any]]":
    match format:
        case "graphml":
            from .graphml import read_graphml

            return read_graphml
        case "json":
            from .formats import read_node_link

            return read_node_link
        case "gml":
            from .gml import read_gml

            return read_gml
        case "gexf":
            from .formats import read_gexf

            return read_gexf
        case _:
            from .formats import read_edges

            return lambda data, name, warn: read_edges(data, name, warn, kind=format)


def _bytes(path: Path, name: str, largest: int) -> bytes:
    """Return the file's content. Only regular files are opened, because a pipe could block and a device may never end."""
    try:
        about = path.stat()
        if stat.S_ISDIR(about.st_mode):
            raise AdapterError(f"{name}: a folder, not a graph", hint="name a file in it")
        if not stat.S_ISREG(about.st_mode):
            raise AdapterError(f"{name}: not a regular file", hint="save the graph in a file first")
        if about.st_size > largest:
            raise _too_large(name, largest)
        with path.open("rb") as file:
            data = file.read(largest + 1)
    except FileNotFoundError:
        raise AdapterError(f"{name}: the file does not exist", hint=_path_hint(path, name)) from None
    except PermissionError:
        raise AdapterError(f"{name}: no permission to read it", hint="change its permissions, or copy it") from None
    except (OSError, ValueError) as error:
        # A ValueError is raised for a file name with a zero byte.
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise AdapterError(f"{name}: can't be read: {why.lower()}") from None
    if len(data) > largest:
        raise _too_large(name, largest)
    if not data.strip():
        raise AdapterError(f"{name}: the file is empty", hint="write or fetch it again")
    return data


def _too_large(name: str, largest: int) -> AdapterError:
    return AdapterError(f"{name}: larger than {largest / 2**20:,.0f} MiB", hint="from Python, load(..., largest=bytes)")


def _path_hint(path: Path, name: str) -> str:
    """Return a hint for a missing path that names a similar file or a generator."""
    from .formats import generators

    try:
        names = sorted(entry for entry in os.listdir(path.parent) if Path(entry).suffix.lower() in _SUFFIXES)[:1000]
    except (OSError, ValueError):
        names = []
    stems = {Path(entry).stem: entry for entry in reversed(names)}
    if near := nearest(path.stem, stems):
        return f"did you mean {path.with_name(stems[near])}?"
    if not path.suffix and (known := nearest(name, (known.partition("(")[0] for known in generators()))):
        return f"did you mean nx:{known}?"
    return f"a graph is {_READABLE}"


_PACKED = {
    b"\x1f\x8b": ("gzip", "gunzip"),
    b"PK\x03\x04": ("zip", "unzip"),
    b"BZh": ("bzip2", "bunzip2"),
    b"\xfd7zXZ\x00": ("xz", "unxz"),
    b"\x28\xb5\x2f\xfd": ("zstandard", "unzstd"),
}


def _format(path: Path, data: bytes, name: str) -> str:
    for magic, (packed, tool) in _PACKED.items():
        if data.startswith(magic):
            raise AdapterError(
                f"{name}: compressed with {packed}; compressed files are not read, because they may unpack to any size",
                hint=f"unpack it first: {tool}",
            )
    suffix = path.suffix.lower()
    if suffix in (".pickle", ".pkl", ".gpickle"):
        raise AdapterError(
            f"{name}: pickles are not read, because opening one can run code", hint=f"save it as {_READABLE}"
        )
    if known := _SUFFIXES.get(suffix):
        return known
    head = data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    if b"<graphml" in head:
        return "graphml"
    if b"<gexf" in head:
        return "gexf"
    if head.startswith(b"{"):
        return "json"
    if head.startswith((b"graph", b"Creator", b"#")) and b"[" in head:
        return "gml"
    what = "binary data" if b"\x00" in head else f"the suffix {suffix!r}" if suffix else "no suffix"
    raise AdapterError(f"{name}: unknown graph format ({what})", hint=f"a graph is {_READABLE}")
