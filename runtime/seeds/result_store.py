"""The results of a run as JSON lines: the file in the folder of a stored run, and sources of results for tables.

A stored run appends each result with its context to ``results.jsonl`` as soon as the context is done. A context that is repeated when the
run is resumed has several lines; the last one counts.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import orjson
from attrs import define, field

from .seed_results import SeedResult

FILE = "results.jsonl"


def document_of(result: SeedResult) -> dict[str, Any]:
    """Return the JSON of a result together with its context, without the reviews."""
    made = result.as_json()
    extractions = made.pop("extractions")
    return made | {"context": dict(result.context), "extractions": extractions}


@define
class ResultLog:
    """Appends results to the file in the folder of a run.

    If a line can't be written, ``damage`` is the reason, and no further lines are written.
    """

    path: Path
    damage: str = ""
    _file: int = -1

    def append(self, result: SeedResult) -> None:
        """Append the result of a context."""
        self.write(document_of(result))

    def write(self, document: Mapping[str, Any]) -> None:
        """Append a result as JSON; an incomplete last line of an earlier process is cut off first."""
        if self.damage:
            return
        try:
            if self._file < 0:
                self._file = _opened(self.path)
            line = orjson.dumps(document, default=_plain) + b"\n"
            end = os.fstat(self._file).st_size
            try:
                if os.write(self._file, line) != len(line):
                    raise OSError(28, "only part of a result was written")
            except OSError:
                with suppress(OSError):
                    os.ftruncate(self._file, end)
                raise
        except (OSError, TypeError) as error:
            self.damage = f"the results can't be stored any further: {getattr(error, 'strerror', None) or error}"

    def close(self) -> None:
        """Close the file; may be called more than once."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _opened(path: Path) -> int:
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
    end = size = os.fstat(file).st_size
    while end and os.pread(file, 1, end - 1) != b"\n":
        begin = max(0, end - 65_536)
        end = begin + os.pread(file, end - begin, begin).rfind(b"\n") + 1
        if end > begin:
            break
    if end < size:
        os.ftruncate(file, end)
    return file


def _plain(value: Any) -> Any:
    return str(value)


class ResultSource(Protocol):
    """A source of results as JSON objects, each with its context."""

    def documents(self) -> Iterator[dict[str, Any]]:
        """Yield the results in the order of their contexts. May be called several times."""
        ...


@define
class StoredResults:
    """The results in a file of JSON lines, even of a run in progress.

    Incomplete lines are left out; of several lines for one context, only the last one counts.

    Raises ``OSError`` if the file can't be read.
    """

    path: Path
    places: dict[int, tuple[int, int]] = field(factory=dict)
    """Maps the index of each context to the position and length of its line."""
    names: dict[int, tuple[str, str]] = field(factory=dict)
    """Maps the index of each context to its name and the status of its result."""

    @classmethod
    def read(cls, path: Path) -> "StoredResults":
        """Find the results in the file; a missing file has no results."""
        made = cls(path)
        if not path.exists():
            return made
        begin = 0
        with open(path, "rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    with suppress(orjson.JSONDecodeError, KeyError, TypeError):
                        document = orjson.loads(line)
                        index = document["index"]
                        made.places[index] = (begin, len(line))
                        made.names[index] = (str(document["name"]), str(document["status"]))
                begin += len(line)
        return made

    @property
    def complete(self) -> dict[int, str]:
        """Maps the indices of the contexts that have a complete result to their names."""
        return {index: name for index, (name, status) in self.names.items() if status == "complete"}

    def documents(self) -> Iterator[dict[str, Any]]:
        """Yield the results in the order of their contexts."""
        if not self.places:
            return
        with open(self.path, "rb") as file:
            for index in sorted(self.places):
                begin, length = self.places[index]
                file.seek(begin)
                yield orjson.loads(file.read(length))

    def document(self, index: int) -> dict[str, Any]:
        """Return the result for the context ``index``. Raises ``KeyError`` if there is none."""
        begin, length = self.places[index]
        with open(self.path, "rb") as file:
            file.seek(begin)
            document: dict[str, Any] = orjson.loads(file.read(length))
        return document


@define
class ResultsInMemory:
    """The results of a run, held in memory."""

    results: Sequence[SeedResult]
    _order: Callable[[SeedResult], int] = lambda result: result.index

    def documents(self) -> Iterator[dict[str, Any]]:
        """Yield the results in the order of their contexts."""
        for result in sorted(self.results, key=self._order):
            yield document_of(result)
