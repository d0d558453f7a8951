"""Prepared copies of graph files.

Each copy in the folder contains the graph as arrays, its schema and the report on the first load.

A copy's name is a hash of the graph file's content and format, the load options and the program that loads it. Therefore a copy
never differs from the result of loading the file. For each path, a small file stores the size, times and inode of the graph
file, and the hash of its content. While size, times and inode are unchanged, the graph file is not read. A copy consists of
arrays and JSON, so opening it can't run code. Every copy is written under a temporary name and renamed, and every byte of a
copy is checked when it is opened. A copy that is damaged, or was written by another user, is deleted and created again.
"""

import json
import os
import shutil
import stat
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen
from blake3 import blake3

from ..permissions import private_folder
from .load_report import LoadReport

if TYPE_CHECKING:
    from ...lang.catalogue.schema import Schema
    from .copied_graph import CopiedGraph
    from .tables import EdgeTable, NodeTable

    Tables = tuple[NodeTable, EdgeTable]

LARGEST_FOLDER = 2 * 2**30
"""Default maximum size of all copies in bytes."""
SMALLEST_FILE = 2**20
"""Default minimum size of a graph file for which a copy is stored; a smaller file is read as fast as a copy."""

_FORMAT = 1
_FRESH = 2_000_000_000
"""For this many nanoseconds after a change, a file's time is not trusted: the file may change again without a new time."""
_ABANDONED = 3600.0
"""An incomplete copy is deleted if it is older than this many seconds."""
_MOST_PATHS = 1000
_MANIFEST, _ARRAYS, _PATHS, _UNFINISHED = "copy.json", "arrays.bin", "paths", ".new-"


class Unusable(Exception):
    """Raised for a copy that is damaged, or was not written by this user and program. The message is the reason."""


@frozen
class CopyEntry:
    """A prepared copy.

    ``source`` is the path of the graph file when the copy was written; it is "" if the copy is damaged. ``used`` is the time of
    the last use in seconds since 1970, ``bytes`` the size of the copy.
    """

    name: str
    source: str
    format: str
    nodes: int
    edges: int
    bytes: int
    used: float


@frozen
class SourceFile:
    """The state of a graph file: its path, and a ``stamp`` that differs if the file has changed."""

    path: str
    stamp: tuple[int, ...]
    changed: int

    @classmethod
    def of(cls, path: "str | os.PathLike[str]") -> "SourceFile":
        """Return the current state of a file. Raises ``OSError``."""
        about = os.stat(path)
        stamp = (about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_dev)
        return cls(os.path.realpath(path), stamp, max(about.st_mtime_ns, about.st_ctime_ns))

    @property
    def size(self) -> int:
        """The file's size in bytes."""
        return self.stamp[0]


@frozen
class PreparedGraph:
    """A graph opened from a copy."""

    graph: "CopiedGraph"
    report: LoadReport
    schema: "Schema"


@define
class CopyFolder:
    """The folder of prepared copies. ``notes`` receives messages for the user.

    ``largest`` is the maximum size of all copies in bytes; the least recently used copies are deleted first. A graph file of less than
    ``smallest`` bytes gets no copy.
    """

    path: Path
    largest: int = LARGEST_FOLDER
    smallest: int = SMALLEST_FILE
    notes: list[str] = field(factory=list)

    # -- use ----------------------------------------------------------------------------------------------------------------

    def is_usable(self) -> bool:
        """Return whether the folder is missing, or is the user's and only the user can write to it. If not, add a note."""
        try:
            about = os.stat(self.path)
        except FileNotFoundError:
            return True
        except OSError as error:
            self.notes.append(f"prepared copies of graphs are not used: {_reason(error)}")
            return False
        if not stat.S_ISDIR(about.st_mode) or not _is_own(about):
            self.notes.append(
                f"prepared copies of graphs are not used: {self.path} is not a folder that only you can write to"
            )
            return False
        return True

    def known_content(self, file: SourceFile) -> str | None:
        """Return the hash of the file's content if the file has not changed since the hash was stored; None otherwise."""
        try:
            noted = json.loads((self.path / _PATHS / _name_of_path(file.path)).read_bytes())
            same = noted["path"] == file.path and tuple(noted["stamp"]) == file.stamp
            content = noted["content"]
            trusted = file.changed + _FRESH < noted["noted"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return content if same and trusted and isinstance(content, str) else None

    def note_content(self, file: SourceFile, content: str) -> None:
        """Store the hash of the file's content, so that ``known_content`` can return it."""
        document = {"path": file.path, "stamp": file.stamp, "content": content, "noted": time.time_ns()}
        folder = self.path / _PATHS
        beside = folder / f"{_UNFINISHED}{uuid.uuid4().hex}"
        with suppress(OSError):  # the content is then read again at the next opening
            private_folder(folder)
            with open(beside, "w", encoding="utf-8", opener=_private) as written:
                json.dump(document, written)
            os.replace(beside, folder / _name_of_path(file.path))
        with suppress(OSError):
            beside.unlink(missing_ok=True)

    def open(self, name: str, source: str) -> PreparedGraph | None:
        """Return the graph of the copy ``name``; None if there is none.

        A damaged copy, or one of another user, is deleted, with a note.

        ``source`` is the name of the graph in the report and in the schema.
        """
        began = time.perf_counter()
        folder = self.path / name
        try:
            about = os.lstat(folder)
            if not stat.S_ISDIR(about.st_mode):
                raise Unusable("not a folder")
            if not _is_own(about):
                raise Unusable("another user wrote it")
            prepared = _opened(folder, name, source, began)
        except FileNotFoundError:
            if not folder.exists():
                return None
            self._discard(folder, "one of its files is missing")
            return None
        except OSError as error:
            self.notes.append(f"the prepared copy of {source} can't be read: {_reason(error)}")
            return None
        except Unusable as error:
            self._discard(folder, str(error))
            return None
        except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
            self._discard(folder, f"damaged ({type(error).__name__})")
            return None
        with suppress(OSError):
            os.utime(folder / _MANIFEST)
        return prepared

    def keep(self, name: str, graph: Any, report: LoadReport, schema: "Schema", tables: "Tables") -> None:
        """Write a copy of a loaded graph under ``name``; if that fails, add a note. ``tables`` are the tables of nodes and edges."""
        from .stored_columns import NotStorable

        if (self.path / name).exists():
            return
        beside = self.path / f"{_UNFINISHED}{uuid.uuid4().hex}"
        try:
            private_folder(self.path)
            beside.mkdir(mode=0o700)
            _write(beside, name, graph, report, schema, tables)
            if _size(beside) <= self.largest:
                os.rename(beside, self.path / name)
        except NotStorable:
            pass  # the graph has values that a file can't store exactly
        except OSError as error:
            if not (self.path / name).exists():  # otherwise another process was faster
                self.notes.append(f"no prepared copy of {report.source} was stored: {_reason(error)}")
        finally:
            shutil.rmtree(beside, ignore_errors=True)
        self._tidy(name)

    # -- upkeep -------------------------------------------------------------------------------------------------------------

    def entries(self) -> list[CopyEntry]:
        """Return all copies, the most recently used first."""
        found = []
        for folder in self._folders():
            try:
                used, size = (folder / _MANIFEST).stat().st_mtime, _size(folder)
            except OSError:
                used, size = 0.0, _size(folder)
            try:
                about = _manifest(folder)["report"]
                entry = CopyEntry(
                    folder.name, about["source"], about["format"], about["nodes"], about["edges"], size, used
                )
            except (OSError, Unusable, ValueError, KeyError, TypeError):
                entry = CopyEntry(folder.name, "", "", 0, 0, size, used)
            found.append(entry)
        return sorted(found, key=lambda entry: -entry.used)

    def clear(self) -> tuple[int, int]:
        """Delete all copies and stored hashes. Return the number of copies and their size in bytes. Raises ``OSError``."""
        copies = list(self._folders())
        size = sum(map(_size, copies))
        for folder in copies:
            self._remove(folder)
        for folder in (*self._unfinished(), self.path / _PATHS):
            if folder.exists():
                shutil.rmtree(folder)
        return len(copies), size

    def _folders(self) -> Iterator[Path]:
        with suppress(OSError):
            for entry in sorted(os.listdir(self.path)):
                if entry != _PATHS and not entry.startswith(_UNFINISHED) and (self.path / entry).is_dir():
                    yield self.path / entry

    def _unfinished(self) -> Iterator[Path]:
        with suppress(OSError):
            yield from (self.path / entry for entry in os.listdir(self.path) if entry.startswith(_UNFINISHED))

    def _discard(self, folder: Path, why: str) -> None:
        try:
            self._remove(folder)
            self.notes.append(f"the prepared copy {folder.name[:12]} was deleted and is created again: {why}")
        except OSError as error:
            self.notes.append(
                f"the prepared copy {folder.name[:12]} is not used: {why}; it can't be deleted: {_reason(error)}"
            )

    def _remove(self, folder: Path) -> None:
        """Delete a copy. Raises ``OSError``."""
        if folder.is_symlink() or not folder.is_dir():
            folder.unlink()
            return
        away = self.path / f"{_UNFINISHED}{uuid.uuid4().hex}"
        os.rename(folder, away)  # atomic, so that no other process sees an incomplete copy
        shutil.rmtree(away, ignore_errors=True)

    def _tidy(self, newest: str) -> None:
        """Delete the least recently used copies until all fit into ``largest`` bytes.

        Also delete the files that killed processes left behind, and the oldest stored hashes.
        """
        for folder in self._unfinished():
            with suppress(OSError):
                if time.time() - folder.stat().st_mtime > _ABANDONED:
                    shutil.rmtree(folder, ignore_errors=True)
        used: list[tuple[float, int, Path]] = []
        for folder in self._folders():
            with suppress(OSError):
                used.append(((folder / _MANIFEST).stat().st_mtime, _size(folder), folder))
        total = sum(size for _, size, _ in used)
        for _, size, folder in sorted(used, key=lambda each: each[0]):
            if total <= self.largest:
                break
            if folder.name != newest:
                with suppress(OSError):
                    self._remove(folder)
                    total -= size
        with suppress(OSError):
            notes = sorted((self.path / _PATHS).iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
            for path in notes[_MOST_PATHS:]:
                path.unlink(missing_ok=True)


# Names.


def copy_name(content: str, format: str, raw: bool) -> str:
    """Return the name of the copy for a file with the hash ``content``."""
    about = [_FORMAT, sys.byteorder, _program(), format, raw, content]
    return blake3(json.dumps(about).encode()).hexdigest()[:32]


def content_hash(path: "str | os.PathLike[str]") -> str:
    """Return the hash of a file's content. Raises ``OSError``."""
    digest = blake3(max_threads=1)
    with open(path, "rb") as file:
        while piece := file.read(2**22):
            digest.update(piece)
    return digest.hexdigest()


@cache
def _program() -> str:
    """Return a hash of the code that loads graphs. A copy that was made by another version of this code is not used."""
    digest = blake3()
    folder = Path(__file__).parent
    for path in sorted((*folder.glob("*.py"), folder.parents[1] / "lang" / "catalogue" / "schema.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _name_of_path(path: str) -> str:
    return f"{blake3(path.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.json"


def _is_own(about: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or (about.st_uid == os.getuid() and not about.st_mode & 0o022)


def _size(folder: Path) -> int:
    total = 0
    with suppress(OSError):
        total = sum(entry.stat(follow_symlinks=False).st_size for entry in os.scandir(folder))
    return total


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


# Files. The manifest consists of a line with a hash, and JSON, to which the hash belongs.


def _write(folder: Path, name: str, graph: Any, report: LoadReport, schema: "Schema", tables: "Tables") -> None:
    from attrs import asdict, evolve

    from .copied_graph import write_graph
    from .stored_columns import ArrayWriter, NotStorable

    with open(folder / _ARRAYS, "wb", opener=_private) as file:
        arrays = ArrayWriter(file)
        about = write_graph(arrays, graph, *tables)
    try:
        attributes = json.dumps(graph.graph)
        if repr(json.loads(attributes)) != repr(dict(graph.graph)):
            raise NotStorable("attributes of the graph")
    except (TypeError, ValueError, RecursionError):
        raise NotStorable("attributes of the graph") from None
    body = json.dumps(
        {
            "format": _FORMAT,
            "name": name,
            "graph": about,
            "attributes": attributes,
            "places": arrays.places,
            "size": arrays.size,
            "digest": arrays.digest.hexdigest(),
            "report": report.stored(),
            "schema": asdict(evolve(schema, all_ids=None)),
        }
    ).encode()
    if _schema(json.loads(body)["schema"], schema.name) != schema:
        raise NotStorable("the schema")
    with open(folder / _MANIFEST, "wb", opener=_private) as file:
        file.write(blake3(body).hexdigest().encode() + b"\n" + body)


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def _manifest(folder: Path) -> Mapping[str, Any]:
    digest, _, body = (folder / _MANIFEST).read_bytes().partition(b"\n")
    if blake3(body).hexdigest().encode() != digest:
        raise Unusable("damaged")
    found: Mapping[str, Any] = json.loads(body)
    return found


def _opened(folder: Path, name: str, source: str, began: float) -> PreparedGraph:
    from .copied_graph import CopiedGraph
    from .stored_columns import ArrayFile

    found = _manifest(folder)
    if found["format"] != _FORMAT or found["name"] != name:
        raise Unusable("another program wrote it")
    with (folder / _ARRAYS).open("rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode) or not _is_own(about):
            raise Unusable("another user wrote it")
        if about.st_size != found["size"]:
            raise Unusable("damaged")
        arrays = ArrayFile.of(file, found["places"])
    if blake3(arrays.memory, max_threads=1).hexdigest() != found["digest"]:
        raise Unusable("damaged")
    graph = CopiedGraph(arrays, found["graph"], json.loads(found["attributes"]))
    report = LoadReport.of_stored(found["report"], source, time.perf_counter() - began)
    return PreparedGraph(graph, report, _schema(found["schema"], source))


def _schema(stored: Mapping[str, Any], source: str) -> "Schema":
    from ...lang.catalogue.schema import Attribute, Schema

    def attributes(known: Mapping[str, Any]) -> dict[str, Attribute]:
        return {
            name: Attribute(**{**about, "values": tuple((value, count) for value, count in about["values"])})
            for name, about in known.items()
        }

    return Schema(
        **{
            **stored,
            "node_attributes": attributes(stored["node_attributes"]),
            "edge_attributes": attributes(stored["edge_attributes"]),
            "ids": tuple(stored["ids"]),
            "name": source,
        }
    )
