"""Load a graph from a file, a NetworkX generator or a NetworkX graph, with a report of the changes made.

Files are read here and never passed to NetworkX by path, because NetworkX would unpack ``.gz`` files without a limit. Pickles are
refused.
"""

import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import define, evolve, field
from blake3 import blake3

from ...lang.diagnostic import nearest
from ..graph import AdapterError
from .load_report import Loaded, LoadReport

if TYPE_CHECKING:
    import networkx as nx

    from .prepared_copy import CopyFolder

LARGEST_FILE = 512 * 2**20
"""Default maximum size of a graph file in bytes. GraphML and GEXF are read piece by piece; see ``LARGEST_STREAM``."""
LARGEST_STREAM = 16 * 2**30
"""Default maximum size of a GraphML or GEXF file in bytes."""
_STREAMED = ("graphml", "gexf")
Progress: TypeAlias = Callable[[int, int], None]
"""A function that is called while a file is read. It gets the number of bytes read so far and the file's size in bytes."""

_SUFFIXES = {
    ".graphml": "graphml",
    ".gml": "gml",
    ".gexf": "gexf",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
}
_READABLE = ".graphml, .gexf, .gml, .json (node-link), .csv or .tsv (edges), or nx:NAME for a graph built into NetworkX"


def load(
    source: "nx.Graph[Any] | str | Path",
    *,
    raw: bool = False,
    strict: bool = False,
    largest: int | None = None,
    copies: "CopyFolder | None" = None,
    verify: bool = False,
    progress: Progress | None = None,
) -> Loaded:
    """Load the graph of ``source`` (file, ``nx:NAME`` or graph), with a report. See ``read_graph``, ``NetworkXAdapter``.

    ``copies`` is the folder of prepared copies (None: no copies are used). An unchanged file is opened from its copy; a large
    file without a copy gets one. With ``strict``, copies are not used. With ``verify``, the file's content is read again even
    if its size and time are unchanged.
    """
    from .adapter import NetworkXAdapter

    is_file = isinstance(source, str | os.PathLike) and not (isinstance(source, str) and source.startswith("nx:"))
    if is_file and copies is not None and not strict:
        return _load_file(GraphFile(source, largest, progress), raw, copies, verify)
    graph, report = read_graph(source, raw=raw, largest=largest, progress=progress)
    return Loaded(NetworkXAdapter(graph, name=report.source, strict=strict, told=report.messages), report)


def _load_file(file: "GraphFile", raw: bool, copies: "CopyFolder", verify: bool) -> Loaded:
    """Open a file's prepared copy, or load the file and keep a copy."""
    from .adapter import NetworkXAdapter
    from .prepared_copy import SourceFile, content_hash, copy_name
    from .tables import computed

    file.check()
    format = file.format
    kept = file.size >= copies.smallest and copies.is_usable()
    found = None
    if kept:
        try:
            before = SourceFile.of(file.path)
            content = None if verify else copies.known_content(before)
            if content is None:
                content = content_hash(file.path)
                if SourceFile.of(file.path) == before:
                    copies.note_content(before, content)
        except OSError as error:
            raise _unreadable(file.name, error) from None
        found = copies.open(copy_name(content, format, raw), file.name)
    if found is not None:
        report = evolve(found.report, notes=tuple(copies.notes))
        adapter = NetworkXAdapter(found.graph, name=file.name, told=report.messages)
        computed(found.graph).part("schema", lambda: found.schema)
        return Loaded(adapter, report)
    graph, report = _read_file(file, raw)
    adapter = NetworkXAdapter(graph, name=file.name, told=report.messages)
    if kept:
        tables = computed(graph)
        name = copy_name(file.digest.hexdigest(), format, raw)
        copies.keep(name, graph, report, adapter.schema, (tables.nodes(graph), tables.edges(graph)))
    return Loaded(adapter, evolve(report, notes=tuple(copies.notes)))


def read_graph(
    source: "nx.Graph[Any] | str | Path",
    *,
    raw: bool = False,
    largest: int | None = None,
    progress: Progress | None = None,
) -> "tuple[nx.Graph[Any], LoadReport]":
    """Return a graph with JSON ids and attributes, and a report of the changes made.

    ``source`` is a path, ``nx:NAME``, or a NetworkX graph. A file is GraphML, GEXF, GML, node-link JSON, or an edge list in CSV or TSV,
    recognised by its suffix, else by its content. A graph object is never modified. If a tool left quotes or ``<SEP>`` in the graph
    object, the object is copied, and the report says so; otherwise the object is used directly. ``raw`` keeps quotes, ``<SEP>`` and
    numbers written as text. ``largest`` is the maximum size of a file in bytes (default: ``LARGEST_FILE``, for GraphML and
    GEXF ``LARGEST_STREAM``). ``progress`` receives the progress of reading the file. Raises ``AdapterError``.
    """
    if isinstance(source, str) and source.startswith("nx:"):
        from .formats import generate

        began = time.perf_counter()
        return _normalised(generate(source[3:]), source, "generator", raw, [], began)
    if isinstance(source, str | os.PathLike):
        return _read_file(GraphFile(source, largest, progress), raw)
    import networkx as nx

    if not isinstance(source, nx.Graph):
        raise AdapterError(
            f"a graph must be a file, nx:NAME or a networkx graph, not {type(source).__name__}",
            hint="pass nx.Graph, nx.DiGraph, nx.MultiGraph or nx.MultiDiGraph",
        )
    name = str(source.graph.get("name") or "graph")
    return _normalised(source, name, "networkx", raw, [], time.perf_counter(), owned=False)


def _read_file(file: "GraphFile", raw: bool) -> "tuple[nx.Graph[Any], LoadReport]":
    began = time.perf_counter()
    warnings: list[str] = []
    file.check()
    format = file.format
    content: Any = file.pieces() if format in _STREAMED else b"".join(file.pieces())
    graph = _reader(format)(content, file.name, warnings.append)
    del content
    return _normalised(graph, file.name, format, raw, warnings, began)


def _normalised(
    given: "nx.Graph[Any]", name: str, format: str, raw: bool, warnings: list[str], began: float, owned: bool = True
) -> "tuple[nx.Graph[Any], LoadReport]":
    from .cleanup import normalise
    from .rows import fit_text, json_value

    try:
        graph, changes, more = normalise(given, raw=raw, owned=owned)
        of_file = owned and format != "generator"
        about = {fit_text(str(key)): json_value(value) for key, value in graph.graph.items()} if of_file else {}
    except AdapterError as error:
        raise AdapterError(f"{name}: {error.message}", hint=error.hint) from None
    copied = not owned and graph is not given
    if copied:
        warnings.append("the graph was copied and cleaned; later changes to your graph do not affect the copy")
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
        about=about,
        changes=changes,
        warnings=(*warnings, *more),
    )
    return graph, report


def _reader(format: str) -> "Callable[[Any, str, Callable[[str], None]], nx.Graph[Any]]":
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
            from .gexf import read_gexf

            return read_gexf
        case _:
            from .edge_table import read_edges

            return lambda data, name, warn: read_edges(data, name, warn, kind=format)


_PIECE = 2**20


@define
class GraphFile:
    """A graph file, read piece by piece. ``digest`` is the hash of the pieces read so far. ``size`` is in bytes and set by ``check``."""

    source: "str | os.PathLike[str]"
    largest: int | None = None
    progress: Progress | None = None
    digest: Any = field(factory=lambda: blake3(max_threads=1))
    size: int = 0
    _head: bytes | None = None

    @property
    def name(self) -> str:
        """The file's path as it was given."""
        return str(self.source)

    @property
    def path(self) -> Path:
        """The file's path."""
        return Path(self.source)

    def check(self) -> None:
        """Raise ``AdapterError`` if the file can't be read. Only regular files are opened: others may block or never end."""
        name = self.name
        try:
            about = self.path.stat()
            self.size = about.st_size
            if stat.S_ISDIR(about.st_mode):
                raise AdapterError(f"{name}: a folder, not a graph", hint="name a file in it")
            if not stat.S_ISREG(about.st_mode):
                raise AdapterError(f"{name}: not a regular file", hint="save the graph in a file first")
            if self.largest is not None and about.st_size > self.largest:
                raise _too_large(name, self.largest)
            with self.path.open("rb") as file:
                self._head = file.read(_PIECE)
        except FileNotFoundError:
            raise AdapterError(f"{name}: the file does not exist", hint=_path_hint(self.path, name)) from None
        except PermissionError:
            raise AdapterError(f"{name}: no permission to read it", hint="change its permissions, or copy it") from None
        except (OSError, ValueError) as error:
            raise _unreadable(name, error) from None
        if not self._head.strip() and about.st_size <= _PIECE:
            raise AdapterError(f"{name}: the file is empty", hint="write or fetch it again")
        if about.st_size > self.limit:
            raise _too_large(name, self.limit)

    @property
    def format(self) -> str:
        """The format, recognised by the suffix or else by the content. Call ``check`` first. Raises ``AdapterError``."""
        return _format(self.path, self._head or b"", self.name)

    @property
    def limit(self) -> int:
        """The maximum size of the file in bytes."""
        if self.largest is not None:
            return self.largest
        return LARGEST_STREAM if self.format in _STREAMED else LARGEST_FILE

    def pieces(self) -> Iterator[bytes]:
        """Yield the content in pieces. Raises ``AdapterError``, also if the file grows too large while it is read."""
        done, limit = 0, self.limit
        if self.progress is not None:
            self.progress(0, self.size)
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                while piece := file.read(_PIECE):
                    done += len(piece)
                    if done > limit:
                        raise _too_large(self.name, limit)
                    self.digest.update(piece)
                    yield piece
                    if self.progress is not None:
                        self.progress(done, max(size, done))
        except OSError as error:
            raise _unreadable(self.name, error) from None


def _unreadable(name: str, error: OSError | ValueError) -> AdapterError:
    # A ValueError is raised for a file name with a zero byte.
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return AdapterError(f"{name}: can't be read: {why.lower()}")


def _too_large(name: str, largest: int) -> AdapterError:
    return AdapterError(f"{name}: larger than {largest / 2**20:,.0f} MiB", hint="from Python, load(..., largest=bytes)")


def _path_hint(path: Path, name: str) -> str:
    """Return the hint for a path that does not exist: a similar file or generator; if there is none, the formats."""
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
    return f"a graph can be {_READABLE}"


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
    raise AdapterError(f"{name}: unknown graph format ({what})", hint=f"a graph can be {_READABLE}")
