"""``seed run --dry-run``: reports how many reviews the filter keeps, and estimates the calls, tokens, cost and time of the run.

Without ``--sample``, no model is called. With ``--sample``, calls for a sample of the reviews are measured. These calls are
paid; the first line on stderr says so before they begin.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ....lang.diagnostic import printable
from ...api.clients import automatic
from ...api.figures import clock, counted, dollars
from ...api.seed import (
    Context,
    Estimate,
    InvalidContext,
    ModelEstimate,
    SeedTree,
    StageEstimate,
    estimate,
    measure_sync,
)
from .contexts import Feed
from .output import Exit, Misused, json_text, say

if TYPE_CHECKING:
    from ...api.clients import Price

_KEYWORDS = 40
"""Maximum number of keywords that are listed; JSON output lists all."""
_WARNINGS = 10


def write_estimate(
    seed: SeedTree, feed: Feed, model: str, limits: Mapping[str, Any], form: str, models: Mapping[str, Any], *, sample: int | None = None,
    max_concurrency: int = 16, strict_types: bool = False, random_state: int = 0,
) -> int:  # fmt: skip
    """Write the estimate to stdout, as text, or as JSON if ``form`` is "jsonl"; return the exit code.

    ``model`` ("" if none is configured) determines the form and the price of the calls. ``limits`` are the options of
    ``ModelOpener``; ``models`` are the options of ``several_models``. ``sample`` is the number of reviews to measure with paid
    calls (None: no calls).
    """
    faults: list[str] = []

    def valid() -> Iterator[Context]:
        for each in feed.ready():
            if isinstance(each, InvalidContext):
                faults.append(each.fault)
            else:
                yield each

    if sample is None:
        found = estimate(
            seed, valid(), price=limits.get("price"), model=model, rate=limits.get("rate"),
            max_tokens=limits.get("max_tokens"), max_cost=limits.get("max_cost"), **models,
        )  # fmt: skip
    else:
        if not model:
            raise Misused(
                "--sample measures calls of a model, and no model is configured", "select one with --llm SPEC"
            )
        say(f"measuring {counted(sample, 'review')} with {printable(model)}; these calls are real and paid")
        found = measure_sync(
            seed,
            valid(),
            llm=model,
            sample=sample,
            max_concurrency=max_concurrency,
            strict_types=strict_types,
            random_state=random_state,
            **limits,
        )
    if form == "jsonl":
        print(json_text(found.as_json()))
    else:
        _print(seed, found, max_concurrency)
    sys.stdout.flush()
    for fault in faults:
        say(printable(fault))
    for warning in feed.warnings:
        say(printable(f"warning: {warning}"))
    for warning in found.warnings[:_WARNINGS]:
        say(printable(f"warning: {warning}"))
    if len(found.warnings) > _WARNINGS:
        say(f"and {len(found.warnings) - _WARNINGS:,} more warnings")
    if found.sample is not None and found.kept and not found.sample.reviews:
        return Exit.FAILED
    return Exit.PARTIAL if faults else Exit.DONE


def _print(seed: SeedTree, found: Estimate, max_concurrency: int) -> None:
    print(
        f"{counted(found.contexts, 'context')}, {counted(found.reviews, 'review')}, {found.kept:,} kept{_share(found.kept, found)}"
    )
    by_count = sorted(found.keywords, key=lambda each: -each.kept)
    width = min(40, max((len(each.keyword) for each in by_count), default=0))
    for each in by_count[:_KEYWORDS]:
        print(printable(f"  {each.keyword:<{width}}  {each.kept:>9,}{_share(each.kept, found)}"))
    if len(by_count) > _KEYWORDS:
        print(f"  and {len(by_count) - _KEYWORDS:,} more keywords; --format jsonl lists all")
    if not seed.keep.keywords:
        print("  the seed has no keywords: all reviews with a text are kept")
    for line in (*_long(seed, found), *_model(found), *_size(found)):
        print(printable(line))
    if found.sample is None:
        print("token counts are estimated from the size of the texts, without hidden reasoning; no model was called")
        return
    for line in _measured(found, max_concurrency):
        print(printable(line))


def _long(seed: SeedTree, found: Estimate) -> list[str]:
    """Return the lines about long reviews and about unreadable reviews."""
    lines = []
    if found.cut:
        most, share = seed.review_handling.max_length, found.cut_characters / found.characters
        lines.append(
            f"{found.cut:,} of {counted(found.kept, 'review')} would be cut at {most:,} characters; "
            f"{share:.0%} of the text would be ignored"
        )
    if found.split:
        lines.append(f"{found.split:,} of {counted(found.kept, 'review')} are long and would be sent in parts")
    if found.unusable:
        lines.append(f"{counted(found.unusable, 'review')} would fail, because their text is invalid")
    return lines


def _model(found: Estimate) -> list[str]:
    """Return the line about the model, its price and the source of the price."""
    if len(found.models) > 1:
        return [model_line(each) for each in found.models]
    if not found.model:
        return ["no model is configured; --llm SPEC selects one"]
    return [f"model {price_line(found.model, found.price)}"]


def model_line(found: ModelEstimate) -> str:
    """Return the line about one of several models: its purpose, its price, and its calls, tokens and cost."""
    purpose = "stronger model" if found.purpose == "escalation" else "model"
    return f"{purpose} {price_line(found.model, found.price)}: {_calls(found)}"


def price_line(model: str, price: "Price | None") -> str:
    """Return the name of a model with its price and the source of the price."""
    if not model:
        return "not configured; --llm SPEC selects one"
    if price is None:
        return f"{model}; its price is unknown (--price IN/OUT gives it)"
    return f"{model}; " + (f"no cost ({price.source})" if price.is_free else price.line())


def stage_lines(stages: Sequence[StageEstimate]) -> list[str]:
    """Return the lines about the calls of ``resolve`` and ``reduce``: their bounds, and what the bounds are based on."""
    lines = []
    for each in stages:
        if each.calls_at_most is None:
            lines.append(f"in addition, {each.name}: {each.basis}")
            continue
        asked, answered = (
            "?" if tokens is None else f"{tokens:,}"
            for tokens in (each.prompt_tokens_at_most, each.completion_tokens_at_most)
        )
        cost = (
            "" if each.cost_at_most is None else f", {dollars(each.cost_at_most)}" if each.cost_at_most else ", no cost"
        )
        tokens = f", {asked} + {answered} tokens{cost}" if each.calls_at_most else ""
        lines.append(f"in addition, {each.name}: at most {counted(each.calls_at_most, 'call')}{tokens} ({each.basis})")
    return lines


def _calls(found: ModelEstimate | Estimate) -> str:
    """Return the calls, the tokens and, if the price is known, the cost. An upper bound is shown as "at most"."""
    bound = "at most " if found.calls_at_most > found.calls else ""
    prompt, completion = found.prompt_tokens, found.completion_tokens
    calls = f"{counted(found.calls, 'call')}{f', at most {found.calls_at_most:,}' if bound else ''}"
    if not found.calls and bound:
        prompt, completion = found.prompt_range[1], found.completion_range[1]
        calls = f"0 to {counted(found.calls_at_most, 'call')}"
    tokens = f"{bound if not found.calls else ''}about {prompt:,} + {completion:,} tokens"
    cost = ""
    if found.cost_range is not None:
        low, high = found.cost_range
        cost = f", {dollars(low)} to {bound}{dollars(high)}" if high else ", no cost"
    return f"{calls}, {tokens}{cost}"


def _size(found: Estimate) -> list[str]:
    """Return the lines about calls, tokens, cost and time."""
    lines = [_calls(found) + ("" if found.model or found.price else "; --price IN/OUT adds the cost")]
    if found.seconds_at_rate is not None:
        more = " or more" if found.calls_at_most > found.calls else ""
        lines.append(f"at --rate {found.rate:g}: {clock(found.seconds_at_rate)}{more}")
    return [*lines, *stage_lines(found.stages)]


def _measured(found: Estimate, max_concurrency: int) -> list[str]:
    """Return the lines about the sample, and about the resulting estimate for all kept reviews."""
    sample = found.sample
    assert sample is not None  # noqa: S101 - the caller checks this
    paid = "the cost is unknown" if sample.cost is None else f"{dollars(sample.cost)} paid"
    cached = f", {sample.cached:,} from the cache" if sample.cached else ""
    failed = f", {counted(sample.failed, 'review')} failed" if sample.failed else ""
    lines = [
        f"measured {sample.reviews:,} of {found.kept:,} kept reviews: {counted(sample.calls, 'call')} ({paid}){cached}, "
        f"{sample.usage.prompt_tokens:,} + {sample.usage.completion_tokens:,} tokens{failed}"
    ]
    if sample.stopped:
        lines.append(f"the sample ended early: {sample.stopped}")
    if sample.prompt is None or sample.completion is None:
        return [*lines, "no tokens were measured"]
    lines.append(
        f"for all kept reviews: {_interval(sample.prompt)} prompt tokens, {_interval(sample.completion)} completion tokens"
    )
    if sample.total_cost is not None:
        lines.append(
            f"cost of all kept reviews: {_interval(sample.total_cost, in_dollars=True)}, if none is in the cache"
        )
    if sample.prompt.low is None:
        lines.append("too few reviews were measured for an interval; --sample 20 gives one")
    if sample.seconds is not None and found.rate is None and automatic(max_concurrency):
        lines.append(
            f"at {sample.seconds:.1f} s a call; the time depends on the number of concurrent calls, which is automatic"
        )
    elif sample.seconds is not None and found.rate is None:
        seconds = sample.seconds * found.calls / max_concurrency
        lines.append(f"at {sample.seconds:.1f} s a call, {max_concurrency} at once: about {clock(seconds)}")
    return lines


def _interval(found: Any, *, in_dollars: bool = False) -> str:
    shown = dollars if in_dollars else (lambda number: f"{number:,.0f}")
    if found.low is None:
        return f"about {shown(found.value)}"
    return f"{shown(found.value)} ({shown(found.low)} to {shown(found.high)}, 95 % interval)"


def _share(kept: int, found: Estimate) -> str:
    return f" ({kept / found.reviews:.1%})" if found.reviews else ""
