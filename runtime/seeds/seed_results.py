"""The result of a Formula Seed for one context, and its JSON: one line for each context, which ``compute`` and ``explain`` read.

Shape of the JSON: ``{name, index, status, outputs, counts: {reviews, kept, extracted, invalid, failed, coerced, cut,
cut_characters}, errors: [{step, kind, message, hint, root, span: [start, end] | null}], unknown?: {STEP: rows}, reduced?: {STEP:
{value} | {error}}, extractions:
[{review, id?, extraction, meta, invalid?, invalid_meta?, coerced?, read_as?, cut?, parts?, decided?, confidence?, votes?,
failed?, excerpt}],
usage: {calls, prompt_tokens, completion_tokens, estimated?}, cost, warnings?}``. Indices begin at 0; ``cost`` is in US dollars, null if
unknown.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, TypeVar, get_args

import orjson
from attrs import asdict, define, evolve, field, fields, frozen

from ...adapters.llm import Usage
from ...adapters.llm.budget import Price
from ...lang.errors import KnotworkError
from ...lang.evaluate.seed.interpreter import Reduced
from ...lang.literals import kind_of
from ..results import NO_USAGE, NOT_ASKED, prices_json, usage_json

Status = Literal["complete", "partial", "failed"]
"""Status of a result: complete, partial or failed.

In a complete result, every output was computed from fields that all kept reviews have, except for a share of up to
``allow_invalid`` of the reviews. A failed result has no outputs or, if the seed only extracts fields, no successful extraction.
All other results are partial.
"""

_STATUSES: Mapping[str, Status] = {status: status for status in get_args(Status)}
_ERROR_TEXTS = ("step", "kind", "message", "hint", "root")
_Value = TypeVar("_Value")


@frozen
class Counts:
    """Numbers of reviews in a context: all, kept, extracted, extracted with an invalid field, failed, and not asked about.

    ``kept`` is the sum of ``extracted``, ``failed`` and ``not_asked``. ``coerced`` is the number of reviews with a coerced value,
    ``cut`` is the number of reviews that were not read completely, and ``cut_characters`` is the total number of characters that
    were not read.
    """

    reviews: int = 0
    kept: int = 0
    extracted: int = 0
    invalid: int = 0
    failed: int = 0
    coerced: int = 0
    cut: int = 0
    cut_characters: int = 0
    not_asked: int = 0

    @classmethod
    def of(cls, extractions: Sequence["Extraction"], reviews: int) -> "Counts":
        """Count the extractions of a context that has ``reviews`` reviews."""
        good = [found for found in extractions if not found.failed]
        cut = [found.cut for found in extractions if found.cut]
        unasked = sum(1 for found in extractions if is_unasked(found.failed))
        return cls(
            reviews, len(extractions), len(good), sum(1 for found in good if found.invalid), 
            len(extractions) - len(good) - unasked, sum(1 for found in good if found.coerced), len(cut), sum(cut), unasked,
        )  # fmt: skip

    def as_json(self) -> dict[str, int]:
        """Return the counts as a JSON object."""
        return asdict(self)

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(*(getattr(self, name) + getattr(other, name) for name in _COUNTS))


_COUNTS = tuple(each.name for each in fields(Counts))


def is_unasked(failed: str) -> bool:
    """Return whether the reason why an extraction failed says that no call was made."""
    kind, _, message = failed.partition(": ")
    return kind == "budget" or message.startswith(NOT_ASKED)


@frozen
class Extraction:
    """The fields that a model extracted from one review.

    ``review`` is the index of the review in the context, and ``id`` is the id of the review, if it has one. ``extraction`` maps
    fields to values. ``invalid`` maps each field with an invalid value to the text that the model wrote; in ``extraction``, such
    a field is null. ``invalid_meta`` maps keys of ``meta`` to values in the review that can't be used. ``failed`` is the reason
    why the extraction failed ("" if it did not fail). ``excerpt`` is the beginning of the review. ``coerced`` maps each field
    with a coerced value to the text that the model wrote (``lang.coercion``). ``read_as`` says how the object was found in the
    answer ("exact" if the answer is only this object). ``cut`` is the number of characters of the review that were not read.
    ``parts`` are the positions of the parts of a long review; ``decided`` maps each field to the parts that determine its value.
    """

    review: int
    extraction: Mapping[str, Any] = field(factory=dict)
    meta: Mapping[str, Any] = field(factory=dict)
    invalid: Mapping[str, str] = field(factory=dict)
    failed: str = ""
    excerpt: str = ""
    id: str | int | None = None
    invalid_meta: Mapping[str, str] = field(factory=dict)
    coerced: Mapping[str, str] = field(factory=dict)
    read_as: str = "exact"
    cut: int = 0
    parts: tuple[tuple[int, int], ...] = ()
    decided: Mapping[str, tuple[int, ...]] = field(factory=dict)
    confidence: Mapping[str, float] = field(factory=dict)
    """With several readings (a vote, a cascade): maps each field with a value to the share of readings that agree with it."""
    votes: tuple[Mapping[str, Any], ...] = ()
    """The readings: ``{"by": MODEL, "extraction": {...}, "invalid"?, "settles"?: FIELDS}`` or ``{"by": MODEL, "failed": REASON}``."""

    @property
    def row(self) -> dict[str, Any]:
        """The row from which values are computed: the extraction and the review's metadata; invalid values are marked."""
        made: dict[str, Any] = {"extraction": self.extraction, "meta": self.meta}
        if self.invalid:
            made["invalid"] = self.invalid
        if self.invalid_meta:
            made["invalid_meta"] = self.invalid_meta
        return made

    def as_json(self) -> dict[str, Any]:
        """Return the extraction as a JSON object for a result."""
        made: dict[str, Any] = {"review": self.review}
        if self.id is not None:
            made["id"] = self.id
        made |= {"extraction": dict(self.extraction), "meta": dict(self.meta)}
        rare = {"invalid": self.invalid, "invalid_meta": self.invalid_meta, "coerced": self.coerced}
        made |= {name: dict(values) for name, values in rare.items() if values}
        if self.read_as != "exact":
            made["read_as"] = self.read_as
        if self.cut:
            made["cut"] = self.cut
        if self.parts:
            made["parts"] = [list(span) for span in self.parts]
            made["decided"] = {name: list(parts) for name, parts in self.decided.items()}
        if self.confidence:
            made["confidence"] = dict(self.confidence)
        if self.votes:
            made["votes"] = [dict(each) for each in self.votes]
        if self.failed:
            made["failed"] = self.failed
        return made | {"excerpt": self.excerpt}


@frozen
class ResultError:
    """The reason why a step has no value, or (if ``step`` is "") why the result of the context is not complete.

    ``kind`` is an error kind of ``lang.evaluate.seed``, or "context", "extraction", "invalid", "review" or "cancelled". ``span``
    is the position in the seed's document.
    """

    step: str
    kind: str
    message: str
    hint: str = ""
    root: str = ""
    span: tuple[int, int] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the error as a JSON object."""
        return {
            "step": self.step, "kind": self.kind, "message": self.message, "hint": self.hint, "root": self.root,
            "span": list(self.span) if self.span else None,
        }  # fmt: skip


@frozen
class SeedResult:
    """The result of a seed for one context. ``outputs`` are the values that the seed outputs, ``values`` are all computed values.

    ``index`` is the position of the context among all contexts. ``values`` is empty in a result that was read from JSON. ``calls``,
    ``usage`` and ``cost`` cover only the calls of this run; reused values cost nothing.
    """

    name: str
    index: int = 0
    status: Status = "complete"
    outputs: Mapping[str, Any] = field(factory=dict)
    values: Mapping[str, Any] = field(factory=dict)
    counts: Counts = Counts()
    errors: tuple[ResultError, ...] = ()
    extractions: tuple[Extraction, ...] = ()
    usage: Usage = field(factory=Usage)
    cost: float | None = None
    calls: int = 0
    warnings: tuple[str, ...] = ()
    unknown: Mapping[str, int] = field(factory=dict)
    """Maps each step to the number of extractions whose ``where`` can't be decided because a field is invalid; the ``where``
    then counts as false."""
    reduced: Mapping[str, Reduced] = field(factory=dict)
    """The values of the ``reduce`` steps, which a model wrote in the run. Computing the outputs again does not change them."""
    prices: Mapping[str, Price] = field(factory=dict, eq=False)
    """Maps the specs of the run's models to their known prices; empty in a result that was read from JSON."""
    context: Mapping[str, Any] = field(factory=dict, eq=False, repr=False)
    """The context without its reviews. It is not part of ``as_json``."""
    _provenance: Callable[[str], Any] | None = field(default=None, eq=False, repr=False)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the extractions that did not fail. Values are computed from these rows."""
        return [found.row for found in self.extractions if not found.failed]

    def provenance(self, name: str) -> Any:
        """Return the provenance of the value ``name``: steps, extractions and reviews (``compute.Provenance``).

        Raises ``ValueError`` for a name that the seed does not compute, and for a result that was read from JSON, because such a result
        has no seed (use ``knotwork.seed.explain``, whose arguments are the seed and the result).
        """
        if self._provenance is None:
            raise ValueError("the result does not contain its seed: use seed.explain(seed, result, context, name)")
        return self._provenance(name)

    def with_provenance(self, provenance: Callable[[str], Any]) -> "SeedResult":
        """Return a copy of the result. The copy computes its provenance by calling ``provenance``."""
        return evolve(self, provenance=provenance)

    def as_json(self) -> dict[str, Any]:
        """Return the result as a JSON object (for its shape, see the docstring of this module)."""
        made = {
            "name": self.name, "index": self.index, "status": self.status, "outputs": dict(self.outputs),
            "counts": self.counts.as_json(), "errors": [error.as_json() for error in self.errors],
            "extractions": [found.as_json() for found in self.extractions],
            "usage": usage_json(self.usage, self.calls),
            "cost": self.cost,
        }  # fmt: skip
        if self.unknown:
            made["unknown"] = dict(self.unknown)
        if self.reduced:
            made["reduced"] = {
                name: {"error": each.error} if each.error else {"value": each.value}
                for name, each in self.reduced.items()
            }
        made |= prices_json(self.prices)
        return made | {"warnings": list(self.warnings)} if self.warnings else made

    def line(self) -> bytes:
        """Return the result as a line of JSON, including the line end."""
        return orjson.dumps(self.as_json()) + b"\n"


@define
class ResolveCounts:
    """Figures of a resolved field over all contexts: numbers of spellings, of names, and of pairs that the model decided."""

    spellings: int = 0
    names: int = 0
    asked: int = 0


@define
class Totals:
    """Totals of a run over many contexts.

    ``calls``, ``usage`` and ``cost`` cover this process only, including contexts without a result. ``reused`` is the number of
    extractions that an earlier process saved for this run, and ``known`` is the number of extractions from the cache. ``stopped``
    is the reason why no more calls were made; "" if the calls did not stop early.
    """

    contexts: int = 0
    complete: int = 0
    partial: int = 0
    failed: int = 0
    counts: Counts = field(factory=Counts)
    read_as: dict[str, int] = field(factory=dict)
    """Number of extractions in which the object was not the complete answer, for each kind: thinking, fenced, embedded, literal."""
    calls: int = 0
    usage: Usage = NO_USAGE
    cost: float | None = None
    reused: int = 0
    known: int = 0
    stopped: str = ""
    cancelled: bool = False
    resolved: Mapping[str, ResolveCounts] = field(factory=dict)
    """Figures of each resolved field."""
    warnings: list[str] = field(factory=list)
    seconds: float = 0.0
    run_id: str = ""
    prices: Mapping[str, Price] = field(factory=dict)
    """Maps the specs of the run's models to their known prices."""

    @property
    def status(self) -> Literal["complete", "partial", "failed", "cancelled"]:
        """The status of the run: complete if every context is complete, failed if every context has failed."""
        if self.cancelled:
            return "cancelled"
        if self.complete == self.contexts:
            return "complete"
        return "failed" if self.failed == self.contexts else "partial"

    def add(self, result: SeedResult) -> None:
        """Add the result of one context."""
        self.contexts += 1
        self.complete += result.status == "complete"
        self.partial += result.status == "partial"
        self.failed += result.status == "failed"
        self.counts += result.counts


class ResultFault(KnotworkError, ValueError):
    """Raised if a string or a value is not a valid result."""


def read_results(text: str | bytes) -> list[SeedResult]:
    """Read results: one result per line, a JSON list of results, or one JSON object. Raises ``ResultFault`` with the line number."""
    body = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    stripped = body.strip()
    if not stripped:
        return []
    if stripped.startswith(b"["):
        found = _json(stripped, "the results")
        return [read_result(each, f"result {index + 1}") for index, each in enumerate(found)]
    lines = [(number, line) for number, line in enumerate(body.split(b"\n"), 1) if line.strip()]
    try:
        return [read_result(orjson.loads(stripped))]
    except orjson.JSONDecodeError:
        return [read_result(_json(line, f"line {number}"), f"line {number}") for number, line in lines]


def read_result(data: Any, where: str = "the result") -> SeedResult:
    """Read one result from its JSON object. ``where`` is the prefix of the ``ResultFault`` message."""
    return _Reader(where).result(data)


def _json(body: bytes, where: str) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ResultFault(f"{where} is not JSON: {error}") from None


@frozen
class _Reader:
    """Reads the parts of a result. Every message begins with ``where``, the position."""

    where: str

    def result(self, data: Any) -> SeedResult:
        data = self.of(data, dict, "the result")
        status = _STATUSES.get(written := self.part(data, "status", str))
        if status is None:
            raise self.fault(f'"status" is {written[:40]!r}, not complete, partial or failed')
        usage = self.part(data, "usage", dict, {})
        cost = data.get("cost")
        if cost is not None and (
            isinstance(cost, bool) or not isinstance(cost, int | float) or not math.isfinite(cost)
        ):
            raise self.fault('"cost" is not a number')
        return SeedResult(
            self.part(data, "name", str), self.number(data, "index", 0), status, self.part(data, "outputs", dict), {},
            self.counts(self.part(data, "counts", dict)),
            tuple(self.error(each) for each in self.part(data, "errors", list, [])),
            tuple(map(self.extraction, self.part(data, "extractions", list))),
            Usage(self.number(usage, "prompt_tokens", 0), self.number(usage, "completion_tokens", 0), usage.get("estimated") is True), cost,
            self.number(usage, "calls", 0), tuple(self.each(data, "warnings", list, [], _is_text, "a string")),
            self.part(data, "unknown", dict, {}), self.reduced(self.part(data, "reduced", dict, {})),
        )  # fmt: skip

    def reduced(self, data: dict[str, Any]) -> dict[str, Reduced]:
        for each in data.values():
            if not isinstance(each, dict) or not isinstance(each.get("error", ""), str):
                raise self.fault('"reduced" has an element that is not {"value"} or {"error"}')
        return {name: Reduced(each.get("value"), each.get("error", "")) for name, each in data.items()}

    def counts(self, data: dict[str, Any]) -> Counts:
        newer = {name: self.number(data, name, 0) for name in _COUNTS[5:]}
        return Counts(*(self.number(data, name) for name in _COUNTS[:5]), **newer)

    def error(self, data: Any) -> ResultError:
        data = self.of(data, dict, "an error")
        step, kind, message, hint, root = (self.part(data, name, str, "") for name in _ERROR_TEXTS)
        span = data.get("span")
        if span is not None and not (_is_pair(span)):
            raise self.fault('the "span" of an error is not a pair of numbers')
        return ResultError(step, kind, message, hint, root, (span[0], span[1]) if span is not None else None)

    def extraction(self, data: Any) -> Extraction:
        data = self.of(data, dict, "an extraction")
        texts = (
            self.each(data, name, dict, {}, _is_text, "a string") for name in ("invalid", "invalid_meta", "coerced")
        )
        invalid, invalid_meta, coerced = texts
        parts = self.each(data, "parts", list, [], _is_pair, "a pair of numbers")
        decided = self.each(data, "decided", dict, {}, _is_numbers, "a list of parts")
        own = data.get("id")
        if isinstance(own, bool) or not isinstance(own, str | int | None):
            raise self.fault('the "id" of a review is neither a string nor a whole number')
        return Extraction(
            self.number(data, "review"), self.part(data, "extraction", dict), self.part(data, "meta", dict, {}), invalid,
            self.part(data, "failed", str, ""), self.part(data, "excerpt", str, ""), own, invalid_meta, coerced,
            self.part(data, "read_as", str, "exact"), self.number(data, "cut", 0), tuple((begin, end) for begin, end in parts),
            {name: tuple(numbers) for name, numbers in decided.items()},
            self.each(data, "confidence", dict, {}, _is_share, "a share"),
            tuple(self.each(data, "votes", list, [], lambda each: isinstance(each, dict), "an object")),
        )  # fmt: skip

    def each(
        self, data: dict[str, Any], name: str, kind: type[_Value], missing: _Value, fits: Callable[[Any], bool], what: str
    ) -> _Value:  # fmt: skip
        """Return the part ``name``. Raises ``ResultFault`` if an element does not fit."""
        found = self.part(data, name, kind, missing)
        elements: Iterable[Any] = found.values() if isinstance(found, dict) else found  # type: ignore[assignment]
        if not all(map(fits, elements)):
            raise self.fault(f'"{name}" has an element that is not {what}')
        return found

    def number(self, data: dict[str, Any], name: str, missing: int | None = None) -> int:
        found = self.part(data, name, int, missing)
        if isinstance(found, bool) or found < 0:
            raise self.fault(f'"{name}" is not a count')
        return found

    def part(self, data: dict[str, Any], name: str, kind: type[_Value], missing: _Value | None = None) -> _Value:
        if name not in data:
            if missing is None:
                raise self.fault(f'"{name}" is missing')
            return missing
        return self.of(data[name], kind, f'"{name}"')

    def of(self, value: Any, kind: type[_Value], what: str) -> _Value:
        if not isinstance(value, kind):
            wanted = {dict: "an object", list: "a list", str: "a string", int: "a whole number"}[kind]
            raise self.fault(f"{what} is {kind_of(value)}, not {wanted}")
        return value

    def fault(self, message: str) -> ResultFault:
        return ResultFault(f"{self.where}: {message}")


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _is_numbers(value: Any) -> bool:
    return isinstance(value, list) and all(type(each) is int for each in value)


def _is_pair(value: Any) -> bool:
    return _is_numbers(value) and len(value) == 2


def read_reduced(given: Any) -> Mapping[str, Reduced]:
    """Return the reduced values in a result or in the JSON of a result; {} for a list of rows. Raises ``ResultFault``."""
    if isinstance(given, SeedResult):
        return given.reduced
    return read_result(given).reduced if isinstance(given, Mapping) and "extractions" in given else {}


def read_extractions(given: Any) -> tuple[Extraction, ...]:
    """Return the extractions in a result, in the JSON of a result, or in a list of rows. Raises ``ResultFault``."""
    if isinstance(given, SeedResult):
        return given.extractions
    if isinstance(given, Mapping) and "extractions" in given:
        return read_result(given).extractions
    if isinstance(given, Mapping | str):
        raise ResultFault("the extractions are not a list of rows")
    found = []
    for place, row in enumerate(given):
        if isinstance(row, Extraction):
            found.append(row)
            continue
        if not isinstance(row, Mapping) or not isinstance(row.get("extraction"), Mapping):
            raise ResultFault(f'row {place} has no "extraction"')
        meta = row.get("meta") or {}
        if not isinstance(meta, Mapping):
            raise ResultFault(f'the "meta" of row {place} is not an object')
        found.append(
            Extraction(
                row.get("review", place), row["extraction"], meta, row.get("invalid", {}), row.get("failed", ""),
                row.get("excerpt", ""), row.get("id"), row.get("invalid_meta", {}), row.get("coerced", {}),
                row.get("read_as", "exact"), row.get("cut", 0), tuple(map(tuple, row.get("parts", ()))),
                {name: tuple(parts) for name, parts in row.get("decided", {}).items()},
                row.get("confidence", {}), tuple(row.get("votes", ())),
            )
        )  # fmt: skip
    return tuple(found)
