"""The operation SEED, which runs a Formula Seed as a step of a script, with the run's models, limits, events and record."""

import asyncio
import json
from collections.abc import Mapping
from time import perf_counter
from typing import Any

from attrs import define, field
from blake3 import blake3

from ....adapters.llm import LLM, BudgetExceeded, Completion, LLMError, Notice, Usage
from ....adapters.llm.middleware import Own, model_spec
from ....lang.catalogue.operations import BUILTIN
from ....lang.diagnostic import Diagnostic, has_errors
from ....lang.documents.seed import read_seed
from ....lang.linter.seed import check
from ....lang.source import Source
from ....lang.trees.lwt import Call
from ....lang.trees.seed import FormulaSeed
from ...events import BudgetReached, CallRetried, CallStarted, next_call
from ...models.caller import Request, Spent, call_finished
from ...results import Failed, Outcome, Record, Recorded, Run, StepFailed, StepResult
from ...seeds.extraction import ReviewExtraction, rare_fields, stored_extraction
from ...seeds.reviews import ContextError, FilterError, Review, read_context
from ...seeds.seed_results import Extraction, SeedResult
from ...seeds.seed_run import run_one
from ...templates import text_of
from ..files_beside import invalid, read_beside
from .operation import Context, option_value, read_options

_SEED = BUILTIN["SEED"]


async def run_seed(call: Call, context: Context) -> Outcome:
    """Run the seed for its context. The output is an object with the seed's outputs. Saved extractions are reused.

    The output of a seed that only extracts is an object with its ``extractions``.
    """
    options = read_options(call, _SEED)
    if missing := [f"{name}=" for name in _SEED.required if name not in options]:
        message = f"SEED lacks {' and '.join(missing)}"
        raise invalid(message, call.span, f"for example {_SEED.example}")
    name = options["file"]
    text = read_beside(name, context.folder, ".json", call)
    seed = _checked_seed(Source(text, name), call)
    try:
        about = read_context(option_value(options["context"], context.scope))
    except ContextError as error:
        raise StepFailed(Failed("input", str(error), span=call.span)) from None
    inputs = json.dumps(["SEED", text, text_of(dict(about.values)), options.get("model")])
    digest, record = blake3(inputs.encode()).hexdigest(length=16), context.caller.record
    if record is not None and (earlier := record.recall(context.step, None, digest)) is not None:
        return earlier.again(digest)
    kept, asking = _SavedExtractions(context), _SeedModel.of(context, options.get("model"))
    try:
        result = await run_one(
            seed, about, asking, model=context.spec, max_concurrency=context.caller.limit, record=kept,
            strict_types=context.caller.strict_types,
        )  # fmt: skip
    except asyncio.CancelledError:
        context.caller.lost.include(asking.spent)  # the step has no result
        raise
    except FilterError as error:
        raise invalid(f"{name}: {error}", call.span) from None
    for found in result.extractions:
        for output, said in found.coerced.items():
            context.caller.note(
                context.step, found.review, output, "coerced", said, json.dumps(found.extraction.get(output))
            )
    return _outcome(seed, result, name, digest, kept, call)


def _checked_seed(source: Source, call: Call) -> FormulaSeed:
    """Return the checked seed. Raises ``StepFailed`` with the first error of the seed and its position."""
    seed, found = seed_of(source)
    if seed is not None:
        return seed
    first = next(diagnostic for diagnostic in found if diagnostic.severity == "error")
    line = f":{source.position(first.span.start)[0]}" if first.span is not None else ""
    hint = "; ".join((*first.hints, f"knotwork check {source.name} lists all errors"))
    raise invalid(f"{source.name}{line}: {first.message} ({first.code})", call.span, hint)


def seed_of(source: Source) -> tuple[FormulaSeed | None, list[Diagnostic]]:
    """Read and check a seed; return the seed (None if it has errors) and its diagnostics."""
    read = read_seed(source)
    found = check(read.seed) if read.seed is not None else list(read.diagnostics)
    return (None, found) if has_errors(found) else (read.seed, found)


def _outcome(
    seed: FormulaSeed, result: SeedResult, name: str, digest: str, kept: "_SavedExtractions", call: Call
) -> Outcome:
    errors = [Failed("partial", f"{name}: {each.step + ': ' if each.step else ''}{each.message}", each.hint, call.span)
              for each in result.errors]  # fmt: skip
    lost = result.counts.failed + result.counts.not_asked
    if result.status == "failed":
        failed = next((each for each in result.extractions if each.failed), None)
        reason = errors[0].message if errors else f"{name}: {failed.failed}" if failed else f"{name} gives no output"
        hint = errors[0].hint if errors else ""
        raise StepFailed(
            Failed("seed", reason, hint, call.span), usage=result.usage, cost=result.cost, calls=result.calls
        )
    if lost and not errors:
        first = next(each for each in result.extractions if each.failed)
        errors.append(
            Failed("partial", f"{name}: {lost} of {result.counts.kept} reviews failed; {first.failed}", span=call.span)
        )
    value: dict[str, Any] = dict(result.outputs)
    if seed.extracts_only:
        good = (found for found in result.extractions if not found.failed)
        value = {"extractions": [{"review": found.review, "extraction": dict(found.extraction)} for found in good]}
    whole = result.status == "complete"  # a partial result is tried again when the run is resumed
    return Outcome(
        text_of(value), value, result.usage, result.cost, result.calls, result.calls,
        reused=bool(kept.recalled) and not result.calls, input_hash=digest if whole else "",
        failed_items=() if whole else tuple(errors),
    )  # fmt: skip


@define
class _SavedExtractions:
    """Saves extractions in the record of the script's run, one item per review. Implements ``seed_run.ExtractionRecord``."""

    context: Context
    recalled: int = 0
    run_id: str = ""
    damage: str = ""
    """Always empty, because the script's run reports damaged records itself."""

    def recall_extraction(self, context: int, review: Review, digest: str) -> Extraction | None:
        """Return the extraction that the run has saved, or None."""
        record = self.context.caller.record
        found = record.recall(self.context.step, review.index, digest) if record is not None else None
        if found is None or not isinstance(found.value, dict):
            return None
        self.recalled += 1
        return stored_extraction(review, found.value.get("extraction", {}), found.value.get("invalid", {}), found.value)

    def extracted(self, context: int, read: ReviewExtraction) -> None:
        """Save an extraction. A failed extraction is not saved, so that it is tried again."""
        made, spent = read.extraction, read.spent
        if made.failed:
            return
        value = {"extraction": dict(made.extraction), "invalid": dict(made.invalid), **rare_fields(made)}
        outcome = Outcome("", value, spent.usage, spent.cost, spent.calls, spent.calls, "", False, read.digest)
        self.context.caller.item_done(self.context.step, made.review, outcome, 0.0)

    @property
    def calls(self) -> Record | None:
        """The record of calls about several reviews; None if the script's run is not saved."""
        record = self.context.caller.record
        return None if record is None else _SavedCalls(self.context, record)

    def context_done(self, result: SeedResult) -> None:
        """Do nothing: the script's run saves the end of the step."""

    def end(self, status: str, seconds: float, usage: Usage, cost: float | None, calls: int) -> None:
        """Do nothing: the run continues."""


_OF_SEVERAL = -1
"""The item number with which a step's record stores all calls about several reviews. Their digests distinguish them."""


@define
class _SavedCalls:
    """Saves calls about several reviews in the record of the script's run. Implements ``results.Record``."""

    context: Context
    record: Record
    run_id: str = ""
    damage: str = ""
    """Always empty, because the script's run reports damaged records itself."""

    def recall(self, step: str, item: int | None, input_hash: str) -> Recorded | None:
        """Return the answer that the run has saved, or None."""
        return self.record.recall(self.context.step, _OF_SEVERAL, input_hash)

    def item_done(self, step: str, item: int | None, outcome: Outcome, seconds: float) -> None:
        """Save an answer."""
        self.record.item_done(self.context.step, _OF_SEVERAL, outcome, seconds)

    def step_done(self, result: StepResult, outcome: Outcome | None) -> None:
        """Do nothing: the script's run saves the end of the step."""

    def finished(self, run: Run) -> None:
        """Do nothing: the run continues."""

    def close(self) -> None:
        """Do nothing: the script's run closes its record."""


@define
class _SeedModel:
    """A model of the run for use by a seed. The model respects the run's concurrency limit and emits events for each call.

    Exceptions raised by a client pass through unchanged, because the seed handles invalid answers itself.
    """

    context: Context
    client: LLM
    asked: int = 0
    spent: Spent = field(factory=Spent)
    """The cost of all calls, including cancelled calls."""

    @classmethod
    def of(cls, context: Context, model: str | None) -> "_SeedModel":
        """Return the model with this name, or the run's default. Raises ``StepFailed``."""
        return cls(context, context.caller.client(Request("", model=model)))

    async def generate(self, prompt: str, **options: Any) -> Completion:
        """Call the model when a slot is free."""
        caller, step = self.context.caller, self.context.step
        events, prompts = caller.events, caller.trace.prompts
        if prompts is not None:
            prompts[f"{step}[{self.asked}]"] = prompt
            self.asked += 1
        async with caller.gate:
            if not events:
                return await self._completion(prompt, options)

            call = next_call()

            def notify(notice: Notice) -> None:
                events.emit(CallRetried(step, notice.kind, notice.attempt, notice.reason, call=call))

            events.emit(CallStarted(step, prompt, call=call, model=model_spec(self.client)))
            began = perf_counter()
            try:
                answer = await self._completion(prompt, {**options, "notify": notify})
            except Exception as error:  # any exception of a client becomes a failed review in the seed
                kind, usage, sent = "error", Usage(), 1
                if isinstance(error, LLMError):
                    kind, usage, sent = error.kind, error.usage, error.attempts
                if isinstance(error, BudgetExceeded):
                    sent -= 1  # do not count the call that was not sent
                    events.emit(BudgetReached(step, error.message, error.limit))
                failed = Completion("", "", usage, sent)
                events.emit(call_finished(step, failed, perf_counter() - began, call=call, error=kind))
                raise
            events.emit(call_finished(step, answer, perf_counter() - began, call=call))
            return answer

    async def _completion(self, prompt: str, options: Mapping[str, Any]) -> Completion:
        try:
            answer: Any = await self.client.generate(prompt, **options)
        except LLMError as error:
            self.spent.add(error.attempts, error.usage, error.cost)
            if isinstance(error, BudgetExceeded) and isinstance(self.client, Own):
                error.attempts += 1  # the client counts only sent calls, the caller also the refused call
            raise
        except asyncio.CancelledError as error:
            self.spent.calls += not getattr(error, "is_unsent", False)
            raise
        made = answer if isinstance(answer, Completion) else Completion(str(answer))
        self.spent.add(made.attempts or int(made.cached), made.usage, made.cost)
        return made
