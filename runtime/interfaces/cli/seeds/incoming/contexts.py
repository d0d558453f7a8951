"""The contexts of a run, read as a stream: each with its line, so that a faulty one can be named and the others run."""

import io
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, BinaryIO, Literal

from attrs import define, field

from ......lang.literals import kind_of
from ...shared.exit import Misused
from ...shared.files import STDIN, read_source
from .streaming import Item, NotJSON, values

__all__ = ["Contexts", "about", "looks_like_a_seed", "name_of"]

_SEED_KEYS = (
    "compute",
    "compute_dag",
    "extract",
    "extraction_fields",
    "extraction_prompt",
    "filter_keywords",
    "output_fields",
)

_DEEPEST = 100


def looks_like_a_seed(value: Any) -> bool:
    """Say whether a JSON value is a Formula Seed rather than a context."""
    return isinstance(value, Mapping) and "reviews" not in value and any(key in value for key in _SEED_KEYS)


def name_of(context: Mapping[str, Any], index: int) -> str:
    """Return the name under which a context's result stands: its own, else its number from 1 on."""
    name = context.get("name")
    return name if isinstance(name, str) and name else f"context {index + 1}"


def about(context: Mapping[str, Any]) -> dict[str, Any]:
    """Return a context without its reviews: what formulas may read of it."""
    return {key: value for key, value in context.items() if key != "reviews"}


def _is_deep(value: Any) -> bool:
    """Say whether a JSON value is nested deeper than can be worked with: what is read must be written again."""
    layer = [value]
    for _ in range(_DEEPEST + 1):
        inner = (each.values() if isinstance(each, dict) else each for each in layer if isinstance(each, dict | list))
        layer = [part for parts in inner for part in parts]
        if not layer:
            return False
    return True


@define
class Contexts:
    """A file of contexts (``-`` is stdin): a JSON object a line, a JSON list, or one object. Read it once.

    ``faults`` are the items that could not be used, in order; ``size`` are its bytes, where that is known. ``what``: the same
    serves for results.
    """

    name: str
    what: Literal["contexts", "results"] = "contexts"
    faults: list[Item] = field(factory=list)
    size: int | None = None
    _stream: BinaryIO | io.FileIO | None = None

    @property
    def shown(self) -> str:
        """The file's name for a person."""
        return "<stdin>" if self.name == STDIN else self.name

    @property
    def waits(self) -> bool:
        """Say whether reading may have to wait for somebody: a pipe, a terminal. Known once it is open."""
        return self.size is None

    @property
    def share(self) -> float | None:
        """How much was read, from 0 to 1; None where that is not known."""
        if self.size and self._stream is not None:
            with suppress(OSError, ValueError):
                return self._stream.tell() / self.size
        return None

    def __iter__(self) -> Iterator[Item]:
        """Yield the objects with their place and line. Raises ``Misused`` for what is something else, and ``Unreadable``."""
        self._stream = self._opened()
        try:
            for item in values(self._stream):
                if fault := item.fault or self._fault(item):
                    self.faults.append(Item(item.index, item.line, fault=fault))
                else:
                    yield item
        except NotJSON as error:
            raise self._not_json(error.looks_like) from None
        finally:
            if self.name != STDIN:
                self._stream.close()

    def _opened(self) -> BinaryIO | io.FileIO:
        if self.name == STDIN:
            if sys.stdin is None:
                raise Misused("there is no stdin to read")
            if sys.stdin.isatty():
                print("reading from the terminal; Ctrl-D ends it", file=sys.stderr)
            with suppress(OSError, ValueError):  # unbuffered: a thread may be left waiting for it at the end
                return io.FileIO(sys.stdin.fileno(), closefd=False)
            return sys.stdin.buffer  # no file of the system (a test's)
        try:
            stream = open(self.name, "rb", buffering=0)  # noqa: SIM115 - __iter__ closes it
        except (OSError, ValueError):
            read_source(self.name, like="*.jsonl")  # fails for the same reason, and says it well
            raise
        found = os.fstat(stream.fileno())
        self.size = found.st_size if stat.S_ISREG(found.st_mode) else None
        return stream

    def _fault(self, item: Item) -> str:
        """Say why a JSON value is of no use."""
        if not isinstance(item.value, dict):
            return f"it is {kind_of(item.value)}, not an object"
        if _is_deep(about(item.value)):
            return f"it is nested more than {_DEEPEST} levels deep"
        if item.index == 0 and looks_like_a_seed(item.value):
            order = "run SEED CONTEXTS" if self.what == "contexts" else "compute SEED RESULTS"
            raise Misused(f"{self.shown} is a Formula Seed, not {self.what}", f"the order is: knotwork seed {order}")
        if item.index == 0 and self.what == "contexts" and "reviews" not in item.value and "extractions" in item.value:
            hint = f"knotwork seed compute SEED {self.shown} computes again from them"
            raise Misused(f"{self.shown} has results, not contexts", hint)
        return ""

    def _not_json(self, looks_like: str) -> Misused:
        what = "CSV" if looks_like == "csv" else "no JSON"
        hint = '{"name": "Cafe", "reviews": [{"text": "...", "stars": 4, "useful": 0, "date": "2026-01-31"}]}'
        if self.what == "results":
            hint = "seed run writes them: --format jsonl"
        return Misused(f"{self.shown} is {what}; {self.what} are JSON objects, one a line", hint)
