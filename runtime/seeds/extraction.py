"""Extracts the fields from a review: values in the cache are reused, answers are checked, invalid answers are reported.

See ``docs/design/seed.md#extraction``.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from attrs import define, evolve, field, frozen
from blake3 import blake3

from ...adapters.llm import BadAnswer, Completion
from ...adapters.llm.json_schema import canonical
from ...adapters.llm.middleware import Layer, Validated, asked_for
from ...adapters.sqlite_store import Values, value_table
from ...lang.trees.seed import Extracted, FormulaSeed
from ..events import Events
from ..models.caller import Asker, Caller, Losses, Spent
from ..results import Failed, Record, StepFailed, Trace
from .extraction_prompts import (
    TEMPLATE,
    Ask,
    FieldValues,
    Parts,
    agreement,
    answer_coercion,
    answer_schema,
    build_choice_prompt,
    build_extraction_prompt,
    build_reconcile_prompt,
    fill_extraction_prompt,
    has_small_window,
    merged_parts,
    parts_of,
    read_answer,
    read_choice,
    way_of_asking,
)
from .reviews import Review
from .seed_results import Extraction

R = TypeVar("R")

# The extraction cache maps model, field and review to the value that the model extracted. See ``docs/design/seed.md#engine``.
# This cache is separate from the call cache and has finer entries: a seed with another formula makes no calls, and a seed with an
# additional field asks only for that field. Only valid values are stored.

_MISSING = object()
MOST_PENDING = 500
"""Maximum number of values in the write queue. If the queue is longer, callers wait until the writer has taken the values."""


@frozen
class CachedValue:
    """The value of a field.

    ``coerced`` is the text that the model wrote if the value was coerced, else "". ``parts`` are the parts of a long review that determine
    the value.
    """

    value: Any
    coerced: str = ""
    parts: tuple[int, ...] = ()


class ExtractionCache:
    """The cache in the file ``path``. ``identity`` is the model's spec; ``warn`` is called at most once, if the file can't be used.
    If ``read_only``, no value is stored.

    Memory holds at most ``MOST_PENDING`` queued values, the values of running callers, and the values that are being written.
    """

    def __init__(
        self, path: Path, identity: str, *, warn: Callable[[str], None] | None = None, busy: float = 2.0,
        read_only: bool = False,
    ) -> None:  # fmt: skip
        self._read_only = read_only
        self._values = Values(path, value_table("extractions_1", "the extraction cache"), warn=warn, busy=busy)
        self._identity = identity.encode("utf-8", "replace") + b"\0"
        self._pending: list[tuple[bytes, bytes, bytes]] = []
        self._writing: asyncio.Task[None] | None = None
        self._taken = asyncio.Event()  # set when the writer has taken the values from the queue

    @property
    def pending(self) -> int:
        """Number of values in the write queue."""
        return len(self._pending)

    async def opened(self) -> None:
        """Wait until the file is open or opening has failed."""
        await self._values.opened()

    def find(self, keys: Mapping[str, bytes]) -> dict[str, CachedValue]:
        """Return a mapping from fields to stored values; ``keys`` maps each field to its key in the cache."""
        found: dict[str, CachedValue] = {}
        for name, key in keys.items():
            value = self._values.value(self._own(key), _MISSING)
            if self._values.broken:
                return {}
            if isinstance(value, dict):  # a field's value is never an object
                found[name] = CachedValue(value["value"], value["coerced"], tuple(value["parts"]))
            elif value is not _MISSING:
                found[name] = CachedValue(value)
        return found

    async def keep(self, found: Iterable[tuple[bytes, CachedValue]]) -> None:
        """Store values under their keys. Values that arrive during a write are stored together in the next write.

        Waits while more than ``MOST_PENDING`` values are queued; otherwise a model that is faster than the disk would fill the memory.
        """
        if self._read_only:
            return
        for key, kept in found:
            has_more = kept.coerced or kept.parts  # a field's value is never an object
            value = {"value": kept.value, "coerced": kept.coerced, "parts": kept.parts} if has_more else kept.value
            self._pending.append(Values.row(self._own(key), value))
        if self._pending and (self._writing is None or self._writing.done()):
            self._writing = asyncio.create_task(self._write())
        # Queued values are written even if this call is cancelled: aclose() waits for the writer.
        while len(self._pending) > MOST_PENDING and self._writing is not None and not self._writing.done():
            self._taken.clear()
            await self._taken.wait()

    async def aclose(self) -> None:
        """Write the remaining values and close the file."""
        if self._writing is not None:
            await self._writing
        await self._values.aclose()

    async def _write(self) -> None:
        try:
            while self._pending:
                rows, self._pending = self._pending, []
                self._taken.set()
                await self._values.keep(*rows)
        finally:
            self._taken.set()

    def _own(self, key: bytes) -> bytes:
        return blake3(self._identity + key).digest()


@frozen
class ReviewExtraction:
    """An extraction, its cost, and a hash of all its inputs except the model."""

    extraction: Extraction
    spent: Spent
    digest: str
    known: bool = False
    """Whether all values came from the cache, so that no call was needed."""
    unsaved: Spent | None = None
    """The part of the cost that is not yet in the run's record (None: all of it). A reading that is saved separately is in the
    record with its cost."""


class _Salvaged(Layer):
    """Returns an answer even if it is still invalid after its repair, because its valid fields can be used."""

    async def generate(self, prompt: str, **options: Any) -> Completion:
        try:
            return await self._inner.generate(prompt, **options)
        except BadAnswer as error:
            if not error.text.strip():
                raise
            return Completion(error.text, "unfit", error.usage, error.attempts, repaired=True, cost=error.cost)


@define
class Extractor:
    """Extracts the fields of a seed from reviews, for all contexts of a run, with at most ``limit`` concurrent calls.

    After a failure that every later call would have too (an exhausted budget, a wrong key), no more calls are made; ``stopped`` contains
    the reason. ``spent`` is the cost of all extractions, including cancelled extractions.
    """

    seed: FormulaSeed
    llm: Any
    model: str = ""
    limit: int = 8
    ask: Ask = "auto"
    options: Mapping[str, Any] = field(factory=dict)
    events: Events | None = None
    remembered: ExtractionCache | None = None
    strict: bool = False
    """Whether answers must match exactly, so that no value is coerced (``lang.coercion``)."""
    sample: int | None = None
    """The number of this reading, if the same model reads a review several times (None: it reads once, at temperature 0)."""
    makes_all: bool = False
    """Whether all calls about a review are made even if one of them fails, to collect the requests of a batch."""
    given: Mapping[str, Any] = field(factory=dict, init=False)
    """The options of calls before the default ``temperature`` is added."""
    spent: Spent = field(factory=Spent, init=False)
    _losses: Losses = field(factory=Losses, init=False)
    _apart: bool = field(init=False)
    _small: bool = field(init=False)
    _asker: Asker = field(init=False)
    _choices: tuple[Extracted, ...] = field(init=False)
    _others: tuple[Extracted, ...] = field(init=False)
    _told: bytes = field(init=False)

    def __attrs_post_init__(self) -> None:
        run = Caller(self.llm, {}, self.events, Trace(), self.limit)
        layers = (Validated, _Salvaged)
        self._asker = Asker(run, "", self.events, self.spent, self._losses, layers, self.strict)
        apart = way_of_asking(self.seed, self.ask, self.model) == "choices"
        self._apart, self._small = apart, apart or has_small_window(self.model)
        fields = self.seed.fields
        self._choices = tuple(each for each in fields if apart and each.type == "enum")
        self._others = tuple(each for each in fields if each not in self._choices)
        self.given = self.options
        repeats = self.seed.passes == 2 or self.sample is not None
        asked: dict[str, Any] = {**({} if repeats else {"temperature": 0.0}), **self.options}
        self.options = asked
        examples = [[each.text, dict(each.extraction)] for each in self.seed.examples]
        self._told = canonical([TEMPLATE, apart, self.seed.passes, asked_for(asked), *([examples] if examples else [])])
        if self.sample:
            self._told += canonical(["sample", self.sample])

    def share(self, other: "Extractor") -> None:
        """Share the limit on concurrent calls with another extractor."""
        self._asker.caller.gate = other._asker.caller.gate

    @property
    def stopped(self) -> Failed | None:
        """The failure that ended further calls; None if calls are still made."""
        return self._losses.of(None)

    @property
    def extractors(self) -> tuple["Extractor", ...]:
        """This extractor, the only one here; a panel of models (``PanelExtractor``) has several."""
        return (self,)

    def asker(self, record: Record | None) -> Asker:
        """Return an asker for calls about several reviews. It shares the limit on concurrent calls, the cost and the failures."""
        run = Caller(self.llm, {}, self.events, Trace(), self.limit, record)
        run.gate = self._asker.caller.gate
        return Asker(run, "", self.events, self.spent, self._losses, strict_types=self.strict)

    async def extract(
        self, step: str, review: Review, context: int = 0, *, wanted: Sequence[Extracted] | None = None,
        earlier: Sequence[Mapping[str, Any]] = (),
    ) -> ReviewExtraction:  # fmt: skip
        """Return the extraction from one review, even if the extraction failed; ``step`` is the name of the context in events.

        ``wanted`` are the fields to extract (None: all fields). ``earlier`` are the extractions of earlier readers; the model
        sees them. ``context`` is not used.
        """
        fields = self.seed.fields if wanted is None else tuple(wanted)
        parts = parts_of(review.text, self.seed.review_handling, self._small)
        chunks, keys = parts.texts, self._keys(review, parts, fields, earlier)
        digest = blake3(b"".join(keys.values())).hexdigest(length=16)
        known: dict[str, Any] = {}
        before: dict[str, CachedValue] = {}
        if self.remembered is not None:
            await self.remembered.opened()
            found = self.remembered.find(keys)
            before = {name: kept for name, kept in found.items() if not (self.strict and kept.coerced)}
            known = {name: kept.value for name, kept in before.items()}
        missing = [each for each in fields if each.name not in known]
        if self.seed.prompt is not None and missing:
            missing, known, before = list(fields), {}, {}
        made = extraction_of(review, parts)
        coerced = {name: kept.coerced for name, kept in before.items() if kept.coerced}
        decided = {name: kept.parts for name, kept in before.items() if kept.parts}
        spent = Spent()
        if not missing:
            ordered = {each.name: known[each.name] for each in fields}
            return ReviewExtraction(
                evolve(made, extraction=ordered, coerced=coerced, decided=decided), spent, digest, known=True
            )
        try:
            said = await self._all_chunks(step, review, chunks, missing, spent, earlier)
        except StepFailed as error:
            return ReviewExtraction(evolve(made, failed=f"{error.failed.kind}: {error.failed.message}"), spent, digest)
        if self.remembered is not None:
            await self.remembered.keep(
                (keys[name], CachedValue(value, said.coerced.get(name, ""), said.parts.get(name, ())))
                for name, value in said.values.items()
            )
        values = {**known, **said.values}
        ordered = {each.name: values.get(each.name) for each in fields}
        made = evolve(
            made, extraction=ordered, invalid=said.invalid, coerced={**coerced, **said.coerced}, decided={**decided, **said.parts},
            read_as=said.read_as,
        )  # fmt: skip
        return ReviewExtraction(made, spent, digest)

    def digest(
        self, review: Review, wanted: Sequence[Extracted] | None = None, earlier: Sequence[Mapping[str, Any]] = ()
    ) -> str:
        """Return a hash of everything except the model that can change the extraction from ``review``; see ``extract``."""
        fields = self.seed.fields if wanted is None else tuple(wanted)
        keys = self._keys(review, parts_of(review.text, self.seed.review_handling, self._small), fields, earlier)
        return blake3(b"".join(keys.values())).hexdigest(length=16)

    def _keys(
        self, review: Review, parts: Parts, fields: Sequence[Extracted], earlier: Sequence[Mapping[str, Any]] = ()
    ) -> dict[str, bytes]:
        """Return for each field a hash of everything except the model that can change its value, such as the text or a custom prompt."""
        chunks = parts.texts
        if self.seed.prompt is not None:
            prompts = [fill_extraction_prompt(self.seed.prompt, chunk, review) for chunk in chunks]
            shared = blake3(self._told + canonical([*prompts, *map(_definition, self.seed.fields)]))
        else:
            shared = blake3(self._told + canonical(chunks))
        if earlier:
            shared.update(canonical(["earlier", *map(dict, earlier)]))
        keys = {}
        for each in fields:
            own = shared.copy()
            own.update(canonical(_definition(each)))
            keys[each.name] = own.digest()
        return keys

    async def _all_chunks(
        self, step: str, review: Review, chunks: Sequence[str], fields: Sequence[Extracted], spent: Spent,
        earlier: Sequence[Mapping[str, Any]],
    ) -> FieldValues:  # fmt: skip
        said = await self._together([self._passes(step, review, chunk, fields, spent, earlier) for chunk in chunks])
        return merged_parts(fields, said)

    async def _passes(
        self, step: str, review: Review, text: str, fields: Sequence[Extracted], spent: Spent,
        earlier: Sequence[Mapping[str, Any]],
    ) -> FieldValues:  # fmt: skip
        if self.seed.passes == 1:
            return await self._once(step, review, text, fields, spent, self.sample or 0, earlier)
        one, other = await self._together(
            [self._once(step, review, text, fields, spent, sample=sample) for sample in (0, 1)]
        )
        both, differ = agreement(fields, one, other)
        if not differ:
            return both
        prompt = build_reconcile_prompt(self._prompt(review, text, differ), differ, [one.values, other.values])
        decided = await self._json(step, review, prompt, differ, spent, sample=2)
        read_as = both.read_as if both.read_as != "exact" else decided.read_as
        return FieldValues(
            {**both.values, **decided.values}, decided.invalid, {**both.coerced, **decided.coerced}, read_as
        )

    async def _once(
        self, step: str, review: Review, text: str, fields: Sequence[Extracted], spent: Spent, sample: int = 0,
        earlier: Sequence[Mapping[str, Any]] = (),
    ) -> FieldValues:  # fmt: skip
        """Ask for ``fields`` once: each choice field in a separate call, the other fields together in one call."""
        asking = [
            self._choice(step, review, build_choice_prompt(each, text, self.seed.examples), each, spent, sample)
            for each in self._choices
            if each in fields
        ]
        others = [each for each in self._others if each in fields]
        if others:
            prompt = self._prompt(review, text, others)
            prompt = build_reconcile_prompt(prompt, others, earlier) if earlier else prompt
            asking.append(self._json(step, review, prompt, others, spent, sample))
        said = await self._together(asking)
        if len(said) == 1:
            return said[0]
        values: dict[str, Any] = {}
        invalid: dict[str, str] = {}
        coerced: dict[str, str] = {}
        for each in said:
            values |= each.values
            invalid |= each.invalid
            coerced |= each.coerced
        return FieldValues(
            values, invalid, coerced, next((each.read_as for each in said if each.read_as != "exact"), "exact")
        )

    async def _together(self, jobs: Sequence[Coroutine[Any, Any, FieldValues]]) -> list[FieldValues]:
        if not self.makes_all:
            return await _together(jobs)
        said = await asyncio.gather(*jobs, return_exceptions=True)
        for each in said:
            if isinstance(each, BaseException):
                raise each
        return [each for each in said if not isinstance(each, BaseException)]

    def _prompt(self, review: Review, text: str, fields: Sequence[Extracted]) -> str:
        if self.seed.prompt is not None:
            return fill_extraction_prompt(self.seed.prompt, text, review, fields, self.seed.examples)
        return build_extraction_prompt(fields, text, self.seed.examples)

    async def _json(
        self, step: str, review: Review, prompt: str, fields: Sequence[Extracted], spent: Spent, sample: int = 0
    ) -> FieldValues:
        shape = {"schema": answer_schema(fields), "tidy": answer_coercion(fields, self.strict)}
        said = await self._read(
            step, review, prompt, shape, spent, sample, lambda text: read_answer(text, fields, self.strict)
        )
        if isinstance(said, str):
            raise StepFailed(Failed("bad_answer", f"{said} (even after a repair)"))
        return said

    async def _choice(
        self, step: str, review: Review, prompt: str, wanted: Extracted, spent: Spent, sample: int
    ) -> FieldValues:  # fmt: skip
        shape = {"choices": list(wanted.values)}
        return await self._read(
            step, review, prompt, shape, spent, sample, lambda text: read_choice(text, wanted, self.strict),
            lambda said: bool(said.invalid),
        )  # fmt: skip

    async def _read(
        self, step: str, review: Review, prompt: str, shape: Mapping[str, Any], spent: Spent, sample: int,
        read: Callable[[str], R], is_invalid: Callable[[R], bool] = lambda said: isinstance(said, str),
    ) -> R:  # fmt: skip
        """Ask, and return what ``read`` finds in the answer's raw text or, if that is invalid, in the text taken from it."""
        options = {**self.options, **shape, **({"sample": sample} if sample else {})}
        found: list[R] = []

        def read_as(text: str, raw: str) -> str:
            said = read(raw or text)
            if raw and is_invalid(said):
                said = read(text)
            found.append(said)
            return said.read_as if isinstance(said, FieldValues) and not is_invalid(said) else "unfit"

        outcome = await self._asker.ask(review.index, prompt, options, step=step, round=spent, read_as=read_as)
        if not found:  # without subscribers, the reading of the answer need not be reported
            read_as(outcome.output, outcome.raw)
        return found[-1]


def extraction_of(review: Review, parts: Parts | None = None, failed: str = "") -> Extraction:
    """Return an extraction from ``review`` without values."""
    made = Extraction(review.index, {}, review.meta, failed=failed, excerpt=review.excerpt, id=review.id)
    made = evolve(made, invalid_meta=review.invalid_meta)
    if parts is None:
        return made
    return evolve(made, cut=parts.cut, parts=parts.spans if len(parts.spans) > 1 else ())


def stored_extraction(
    review: Review, extraction: dict[str, Any], invalid: dict[str, str], more: Mapping[str, Any]
) -> Extraction:
    """Return the saved extraction from ``review``; ``more`` is the result of ``rare_fields`` for this extraction."""
    return Extraction(
        review.index, extraction, review.meta, invalid, excerpt=review.excerpt, id=review.id, invalid_meta=review.invalid_meta,
        coerced=more.get("coerced", {}), read_as=more.get("read_as", "exact"), cut=more.get("cut", 0),
        parts=tuple((begin, end) for begin, end in more.get("parts", ())),
        decided={name: tuple(parts) for name, parts in more.get("decided", {}).items()},
        confidence=more.get("confidence", {}), votes=tuple(more.get("votes", ())),
    )  # fmt: skip


def rare_fields(found: Extraction) -> dict[str, Any]:
    """Return the fields that most extractions do not have: how the answer was read, and from which parts of the review."""
    told = found.as_json()
    rare = ("coerced", "read_as", "cut", "parts", "decided", "confidence", "votes")
    return {name: told[name] for name in rare if name in told}


def _definition(wanted: Extracted) -> list[Any]:
    return [wanted.name, wanted.type, [list(pair) for pair in wanted.values.items()], wanted.doc]


async def _together(jobs: Sequence[Coroutine[Any, Any, FieldValues]]) -> list[FieldValues]:
    """Await ``jobs`` concurrently. If a job fails, cancel the others and raise the exception of the failed job."""
    if len(jobs) == 1:
        return [await jobs[0]]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(job) for job in jobs]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]
