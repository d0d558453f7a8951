"""``seed run --dry-run``: what the filter keeps, and what the calls would come to. Nothing is called."""

import os
import sys

from .....adapters.llm import NotConfigured
from .....lang.diagnostic import printable
from .....lang.trees.seed import FormulaSeed
from ....models.wiring import default_spec
from ....seeds.compute import Estimate, estimate
from ...counting import dollars
from ...models import price_of
from ..shared.exit import Exit
from ..shared.output import json_text, say
from .asked import SeedAsked
from .incoming.feeding import Feed
from .incoming.streaming import Item
from .outgoing.tally import many

__all__ = ["rehearse"]

_KEYWORDS = 40
"""Keywords that are listed; JSON has all."""
_WARNINGS = 10


def rehearse(asked: SeedAsked, seed: FormulaSeed, feed: Feed) -> int:
    """Write the estimate to stdout: text, or JSON with ``--format jsonl``."""
    faults: list[Item] = []
    found = estimate(seed, feed.ready(faults.append), price=price_of(asked.limits.price), model=_spec(asked))
    if asked.form == "jsonl":
        print(json_text(found.as_json()))
    else:
        _tell(seed, found)
    sys.stdout.flush()
    for fault in faults:
        say(printable(f"{feed.contexts.shown}, line {fault.line}: {fault.fault}"))
    for warning in found.warnings[:_WARNINGS]:
        say(printable(f"warning: {warning}"))
    if len(found.warnings) > _WARNINGS:
        say(f"and {len(found.warnings) - _WARNINGS:,} more warnings")
    return Exit.PARTIAL if faults else Exit.DONE


def _spec(asked: SeedAsked) -> str:
    """Return the spec of the model that a run would ask: how it is asked depends on it. No model is needed here."""
    try:
        return asked.llm or default_spec(os.environ)
    except NotConfigured:
        return ""


def _tell(seed: FormulaSeed, found: Estimate) -> None:
    print(
        f"{many(found.contexts, 'context')}, {many(found.reviews, 'review')}, {found.kept:,} kept{_share(found.kept, found)}"
    )
    by_count = sorted(found.keywords, key=lambda each: -each.kept)
    width = min(40, max((len(each.keyword) for each in by_count), default=0))
    for each in by_count[:_KEYWORDS]:
        print(printable(f"  {each.keyword:<{width}}  {each.kept:>9,}{_share(each.kept, found)}"))
    if len(by_count) > _KEYWORDS:
        print(f"  and {len(by_count) - _KEYWORDS:,} more keywords; --format jsonl has all")
    if not seed.keep.keywords:
        print("  the seed has no keywords: all are kept")
    for line in _long(seed, found):
        print(line)
    most = f", at most {found.calls_at_most:,}" if found.calls_at_most > found.calls else ""
    cost = f", about {dollars(found.cost)}" if found.cost is not None else "; --price IN/OUT says what they cost"
    print(
        f"{many(found.calls, 'call')}{most}, about {found.prompt_tokens:,} + {found.completion_tokens:,} tokens{cost}"
    )
    print("tokens are estimated from characters; nothing was called")


def _long(seed: FormulaSeed, found: Estimate) -> list[str]:
    """Return the lines about long reviews, and about those that can't be read."""
    lines = []
    if found.cut:
        most, share = seed.review_handling.max_length, found.cut_characters / found.characters
        lines.append(
            f"{found.cut:,} of {many(found.kept, 'review')} would be cut at {most:,} characters; {share:.0%} of the text would not be read"
        )
    if found.split:
        lines.append(f"{found.split:,} of {many(found.kept, 'review')} are long and go in parts")
    if found.unusable:
        lines.append(f"{many(found.unusable, 'review')} would fail: their text can't be used")
    return lines


def _share(kept: int, found: Estimate) -> str:
    return f" ({kept / found.reviews:.1%})" if found.reviews else ""
