"""What a run over contexts comes to: counted as the results come, and told at the end."""

import sys
from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal

from attrs import define, field

from ......lang.diagnostic import printable
from ....counting import Calls
from ...shared.output import colour, paint, say

__all__ = ["Tally", "many"]

_TOLD = 20
"""Contexts that are told of one by one; the results have them all."""


@define
class Tally:
    """Counts results. ``calls`` hears the run's events; ``before`` are results that an earlier run wrote."""

    calls: Calls = field(factory=Calls)
    statuses: Counter[str] = field(factory=Counter)
    reviews: Counter[str] = field(factory=Counter)
    before: int = 0
    _troubles: list[tuple[str, str]] = field(factory=list)

    def add(self, result: Mapping[str, Any]) -> None:
        """Count one result (its JSON)."""
        self.statuses[result["status"]] += 1
        self.reviews.update(result["counts"])
        if result["status"] != "complete" and len(self._troubles) < _TOLD:
            self._troubles.append((result["status"], _trouble(result)))

    @property
    def done(self) -> int:
        """The contexts that have a result."""
        return self.statuses.total() + self.before

    @property
    def status(self) -> Literal["complete", "partial", "failed"]:
        """What the contexts come to: failed where every one is."""
        if self.statuses["complete"] + self.before == self.done:
            return "complete"
        return "failed" if self.statuses["failed"] == self.done else "partial"

    def line(self) -> str:
        """Say in a few words how far it is."""
        parts = [many(self.done, "context"), *self._incomplete()]
        if self.calls.calls:
            parts.append(self.calls.line())
        return " · ".join(parts)

    def contexts(self) -> str:
        """Say what became of the contexts."""
        parts = [f"{self.statuses['complete'] + self.before:,} of {many(self.done, 'context')} complete"]
        return " · ".join([*parts, *self._incomplete(), *([f"{self.before:,} from before"] if self.before else [])])

    def figures(self) -> str:
        """Say what became of the reviews."""
        found = self.reviews
        parts = [f"{found['kept']:,} of {found['reviews']:,} kept", f"{found['extracted']:,} extracted"]
        parts += [f"{found['invalid']:,} with an invalid field"] if found["invalid"] else []
        parts += [f"{found['failed']:,} failed"] if found["failed"] else []
        parts += [f"{found['coerced']:,} with a coerced value"] if found["coerced"] else []
        cut = f"{found['cut']:,} cut ({found['cut_characters']:,} characters were not read)"
        return " · ".join([*parts, *([cut] if found["cut"] else [])])

    def tell_troubles(self) -> None:
        """Say on stderr which contexts are not complete, and why."""
        on = colour(sys.stderr)
        for status, trouble in self._troubles:
            say(f"{paint(status, 'red' if status == 'failed' else 'yellow', on)} {printable(trouble)}")
        more = self.statuses["partial"] + self.statuses["failed"] - len(self._troubles)
        if more:
            say(f"and {more:,} more that are not complete")

    def _incomplete(self) -> list[str]:
        return [f"{self.statuses[status]:,} {status}" for status in ("partial", "failed") if self.statuses[status]]


def _trouble(result: Mapping[str, Any]) -> str:
    """Say in one line what is wrong with a result, the first of it."""
    name = result["name"] or f"context {result['index'] + 1}"
    errors, failed = result["errors"], [each for each in result["extractions"] if each.get("failed")]
    reasons = [f"{error['step']}: {error['message']}" if error["step"] else error["message"] for error in errors[:1]]
    if len(errors) > 1:
        reasons.append(f"{len(errors) - 1} more")
    if failed and not (errors and errors[0]["kind"] in ("extraction", "review")):
        reasons.append(f"{many(len(failed), 'review')} not extracted: {failed[0]['failed']}")
    return f"({name}): {', '.join(reasons)}"


def many(count: int, noun: str, plural: str = "") -> str:
    """Return the count with its noun."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
