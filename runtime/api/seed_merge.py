"""Merges the results of shards: parts of one input that several machines computed."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from ..errors import RequestError

if TYPE_CHECKING:
    from ..seeds.compute import SeedTree
    from ..seeds.result_store import StoredResults

_COMPARED = ("name", "status", "outputs", "counts", "errors")
"""Keys of a result that are equal in two computations of the same context. ``extractions`` are compared if both results have them."""
_MARKS = ("shard", "seed")
"""Keys of ``sampled`` that describe the part and not the sample."""
_LISTED = 1_000


@frozen
class Merged:
    """The output of ``merge``.

    ``results`` is the number of results. ``missing`` are the indices, from 0, of contexts that have no result although a later
    context has one (at most 1,000 indices). ``missing_shards`` are the shards without a part, such as "3/8". ``unfinished`` are
    the stored runs that have not ended. ``sample`` is the size of the sample if there are fewer results than that; otherwise
    None. ``empty`` is the number of files without a result.
    """

    results: int
    missing: tuple[int, ...] = ()
    missing_shards: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    sample: int | None = None
    empty: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether nothing is known to be missing."""
        return not (self.missing or self.missing_shards or self.unfinished or self.sample)


def seed_hash(seed: "SeedTree") -> str:
    """Return the hash of a seed. The results of a shard contain this hash."""
    from ..seeds import seed_store

    return seed_store.seed_hash(seed)


def merge(
    parts: Sequence[str | Path], out: str | Path | None = None, *, extractions: str | Path | None = None,
    seed: "SeedTree | None" = None, spreadsheet: bool = False, brief: bool = False,
) -> Merged:  # fmt: skip
    """Write the results of several runs of a seed with ``shard`` into one file, in the order of the contexts.

    ``parts`` are ids or folders of stored runs, or ``.jsonl`` files of results. ``out`` and ``extractions`` are as for
    ``export``. Files of results contain no types, so ``seed`` is required for tables unless a part is a stored run. If two parts
    have a result for the same context, the results must be equal, except for context, usage, cost and prices. However, a complete
    result replaces a failed or partial result.

    Raises ``RequestError`` if the parts do not belong together, ``RunError`` for an unknown run, ``SeedError``, ``TableError``,
    ``UnknownSuffix`` and ``OSError``.
    """
    from .seed_tables import ResultFiles

    files = ResultFiles(
        None if out is None else str(out), None if extractions is None else str(extractions), spreadsheet=spreadsheet,
        brief=brief,
    )  # fmt: skip
    if not parts:
        raise RequestError("parts", "no runs or files are given")
    opened = [_run(part) if Path(part).suffix not in _FILES else _file(Path(part)) for part in parts]
    found = _Merge.of(opened)
    made = found.made()
    if extractions is not None and (brief_part := next((part for part in opened if part.is_brief), None)):
        raise RequestError("extractions", f"{brief_part.name} has no extractions", "--brief leaves them out")
    tree = seed or next((part.seed for part in opened if part.seed is not None), None)
    if seed is not None and (
        other := next((part for part in opened if part.hash and part.hash != seed_hash(seed)), None)
    ):
        raise RequestError("seed", f"{other.name} is the result of another seed", "give the seed of the runs")
    if tree is None and files.needs_seed:
        raise RequestError("seed", "the types of a table come from the seed", "give the seed: seed=, or --seed SEED")
    table = next((part.table for part in opened if part.table), {})
    files.write(tree, found, {name: value for name, value in table.items() if name != "shard"})
    return made


_FILES = (".jsonl", ".ndjson")


@frozen
class _Part:
    """A run or a file: its results, its sampling, and what is known about its seed and its input (None, "": unknown)."""

    name: str
    results: "StoredResults"
    sampling: Mapping[str, Any]
    seed: "SeedTree | None" = None
    hash: str = ""
    input: str = ""
    table: Mapping[str, Any] = field(factory=dict)
    has_ended: bool = True
    is_brief: bool = False

    @property
    def shard(self) -> str:
        """The shard; "" for a file without results."""
        return str(self.sampling.get("shard", ""))


def _run(part: str | Path) -> _Part:
    """Open a stored run. Raises ``RequestError``, ``RunError`` and ``OSError``."""
    from .seed_tables import StoredTable

    stored = StoredTable(part)
    head, options = stored.run.head, stored.run.head.get("options", {})
    names = ("limit", "sample", "sample_reviews", "random_state", "shard")
    sampling = options.get("sampling") or {name: stored.table[name] for name in names if name in stored.table}
    if not sampling.get("shard"):
        raise RequestError("parts", f"the run {part} is not a shard", "make shards with --shard K/N")
    has_ended = stored.run.status not in ("", "cancelled")
    return _Part(
        str(part), stored.results, sampling, stored.seed, str(head["script_hash"]), str(head.get("input_hash") or ""),
        stored.table, has_ended,
    )  # fmt: skip


def _file(path: Path) -> _Part:
    """Read a file of results. Raises ``RequestError`` for a line that is not the result of a shard, and ``OSError``."""
    import orjson

    from ..seeds.result_store import StoredResults

    results, is_brief, begin = StoredResults(path), False, 0
    sampled: dict[str, Any] = {}
    if not path.exists():
        raise RequestError("parts", f"{path} does not exist")
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                document = orjson.loads(line)
            except orjson.JSONDecodeError:
                document = None
            mark = document.get("sampled", {}) if isinstance(document, dict) else None
            where = f"{path}, line {number:,}"
            if not (
                isinstance(document, dict) and type(index := document.get("index")) is int and index >= 0
                and isinstance(mark, dict) and line.endswith(b"\n")
            ):  # fmt: skip
                raise RequestError(
                    "parts", f"{where}: not a whole result", "the run may have been killed; resume it first"
                )
            if not mark.get("shard"):
                raise RequestError("parts", f"{where}: not the result of a shard", "make shards with --shard K/N")
            if sampled and mark != sampled:
                raise RequestError("parts", f"{where}: the result of another shard than the lines before")
            sampled, is_brief = mark, is_brief or "extractions" not in document
            if index in results.places and not _same(results.document(index), document):
                raise RequestError("parts", f"{where}: another result for context {index + 1} stands before")
            results.places[index] = (begin, len(line))
            begin += len(line)
    return _Part(str(path), results, sampled, None, str(sampled.get("seed", "")), is_brief=is_brief)


@define
class _Merge:
    """The results of all parts as a ``ResultSource``. ``places`` maps the index of a context to the part with its result."""

    parts: Sequence[_Part]
    places: dict[int, int] = field(factory=dict)

    @classmethod
    def of(cls, parts: Sequence[_Part]) -> "_Merge":
        """Find the results. Raises ``RequestError`` if parts contradict each other."""
        made = cls(parts)
        marked = [part for part in parts if part.shard]
        for part in marked[1:]:
            made._check(marked[0], part)
        for number, part in enumerate(parts):
            for index in part.results.places:
                made._add(index, number)
        return made

    @staticmethod
    def _check(first: _Part, part: _Part) -> None:
        names = f"{first.name} and {part.name}"
        for hashes, what in (((first.hash, part.hash), "seeds"), ((first.input, part.input), "inputs")):
            if all(hashes) and hashes[0] != hashes[1]:
                raise RequestError("parts", f"{names} are results of different {what}")
        counts = {each.shard.partition("/")[2] for each in (first, part)}
        if len(counts) > 1:
            raise RequestError("parts", f"{names} are shards of different divisions: {first.shard}, {part.shard}")
        samples = [{key: value for key, value in each.sampling.items() if key not in _MARKS} for each in (first, part)]
        if samples[0] != samples[1]:
            raise RequestError("parts", f"{names} are parts of different samples")

    def _add(self, index: int, number: int) -> None:
        before = self.places.setdefault(index, number)
        if before == number:
            return
        one, other = (self.parts[each].results.document(index) for each in (before, number))
        if _same(one, other):
            return
        if (one.get("status") == "complete") == (other.get("status") == "complete"):
            names = f"{self.parts[before].name} and {self.parts[number].name}"
            raise RequestError("parts", f"{names} have different results for context {index + 1}")
        if other.get("status") == "complete":
            self.places[index] = number

    def documents(self) -> Iterator[dict[str, Any]]:
        """Yield the results in the order of their contexts, without the keys that describe the shard."""
        for index in sorted(self.places):
            document = self.parts[self.places[index]].results.document(index)
            if "sampled" in document:
                sampled = {name: value for name, value in document["sampled"].items() if name not in _MARKS}
                if set(sampled) - {"random_state"}:
                    document["sampled"] = sampled
                else:
                    del document["sampled"]
            yield document

    def made(self) -> Merged:
        """Return a report on what the parts contain and on what is missing."""
        gaps = (index for index in range(max(self.places, default=-1) + 1) if index not in self.places)
        missing = tuple(islice(gaps, _LISTED))
        sizes = {part.sampling["sample"] for part in self.parts if "sample" in part.sampling}
        sample = next(iter(sizes), None)
        is_short = (
            sample is not None and bool(missing) and len(self.places) < sample
        )  # without gaps, the input is smaller
        empty = sum(not part.shard for part in self.parts)
        shards = {part.shard for part in self.parts if part.shard}
        counts = {shard.partition("/")[2] for shard in shards}
        absent = [f"{number}/{count}" for count in counts for number in range(1, int(count) + 1)]
        absent = [shard for shard in absent if shard not in shards]
        return Merged(
            len(self.places), missing if sample is None else (), tuple(absent) if len(absent) > empty else (),
            tuple(part.name for part in self.parts if not part.has_ended), sample if is_short else None, empty,
        )  # fmt: skip


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    names = [*_COMPARED, *(["extractions"] if "extractions" in one and "extractions" in other else [])]
    return all(one.get(name) == other.get(name) for name in names)
