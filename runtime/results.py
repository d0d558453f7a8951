"""What a run gives: step results, failures as values, accessor readings, and the run as a whole.

Times are seconds; ``started`` counts from the start of the run. Costs are US dollars, None where no call's cost is known.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Any, Literal, Protocol

from attrs import define, field, frozen

from ..adapters.llm import Usage
from ..lang.diagnostic import Diagnostic, all_as_json, compatible, has_errors, picture, printable
from ..lang.errors import KnotworkError
from ..lang.literals import short
from ..lang.source import Source, Span
from ..lang.trees.lwt import Step

__all__ = [
    "Access", "Before", "Failed", "Outcome", "Record", "Recorded", "Run", "ScriptError", "Status", "StepFailed", "StepResult",
    "Trace", "add_costs", "coercions", "plain", "run_json",
]  # fmt: skip

NO_USAGE = Usage()

Status = Literal["complete", "partial", "failed", "cancelled"]


@frozen
class Failed:
    """Why a step, or an item of EACH, has no output. ``kind`` is an ``LLMError.kind`` or one of the runtime's own.

    The runtime's kinds: "reference" (no such key, index or list), "access" (an index or a slice of
    an object, a number or a truth value), "input" (the run has no such input), "model" (no model
    under that name), "operation", "expression" (it has no value), "seed" (it has no outputs), "partial" (a part of a program
    or a seed), "error" (anything a client or plugin raised).
    """

    kind: str
    message: str
    hint: str = ""
    span: Span | None = None
    item: int | None = None


class StepFailed(Exception):
    """Raised inside an operation: the step, or the item, has failed. ``usage``, ``cost``, ``calls``: what it cost so far."""

    def __init__(
        self, failed: Failed, *, usage: Usage | None = None, cost: float | None = None, calls: int = 0
    ) -> None:
        super().__init__(failed.message)
        self.failed = failed
        self.usage = usage or Usage()
        self.cost = cost
        self.calls = calls


class ScriptError(KnotworkError):
    """The script can't run: ``diagnostics`` has at least one error. ``str`` pictures the errors.

    No call was made; of a script that was still arriving, none behind the fault.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], source: Source) -> None:
        first = next((each for each in diagnostics if each.severity == "error"), None)
        message = f"{source.name} has errors" if first is None else first.message
        super().__init__(message, hint=first.hints[0] if first is not None and first.hints else "")
        self.diagnostics = compatible(diagnostics)
        self.source = source

    def __str__(self) -> str:
        return "\n".join(picture(d, self.source) for d in self.diagnostics if has_errors([d]))


@frozen
class Outcome:
    """What an operation gives for a step. ``value`` is a JSON value, where a ``Failed`` may stand for an item.

    ``input_hash`` names what went in, where the operation has one hash for it; ``failed_items`` were kept or dropped.
    """

    output: str
    value: Any
    usage: Usage = NO_USAGE
    cost: float | None = None
    calls: int = 0
    attempts: int = 0
    finish_reason: str = ""
    reused: bool = False
    input_hash: str = ""
    failed_items: tuple[Failed, ...] = ()
    raw: str = ""
    """The model's answer as it came, where ``output`` is what was read in it."""


@frozen
class StepResult:
    """A step after the run. ``output`` is its text and ``value`` what the text says (a typed or constant value).

    ``status`` is done, failed or skipped; ``reason`` says why not done, in words; ``failed`` has the failure itself.
    ``reused`` steps were taken from an earlier run without a call; what they cost then is not counted again. ``unmet``: it is
    skipped because its condition is false, which is no failure; its value is null and ``output`` says so.
    """

    id: str
    status: Literal["done", "failed", "skipped"]
    output: str = ""
    value: Any = None
    failed: Failed | None = None
    reason: str = ""
    started: float = 0.0
    seconds: float = 0.0
    calls: int = 0
    usage: Usage = NO_USAGE
    cost: float | None = None
    reused: bool = False
    failed_items: tuple[Failed, ...] = ()
    unmet: bool = False

    @property
    def is_good(self) -> bool:
        """Say whether it ended as its script wants: done, or left out by its own condition."""
        return self.status == "done" or self.unmet


@frozen
class Access:
    """How text was read as a value: for a reference, written up to its accessor, or for an answer's ``type=list``.

    ``how``: a rung of the ladder (json, python, fence, bracket list), "text" for a slice of plain text, "missing" where
    the lenient reading put nothing, "skipped" for a way into a step that its condition left out. A typed answer that was read
    otherwise than it is written has it in ``said`` (and its ``item`` in EACH); ``how`` may be thinking, fenced, embedded, literal
    or coerced then.
    """

    step: str
    reference: str
    how: str
    said: str = ""
    item: int | None = None
    output: str = ""


@define
class Trace:
    """What a run did that its results do not show. ``prompts`` (step, or ``step[item]``) is filled only when asked for.

    SEED's prompts are numbered as they are asked.
    """

    accesses: list[Access] = field(factory=list)
    prompts: dict[str, str] | None = None
    _seen: set[Access] = field(factory=set, repr=False)

    def note(self, access: Access) -> None:
        """Keep ``access``, once: EACH would repeat it for every item."""
        if access not in self._seen:
            self._seen.add(access)
            self.accesses.append(access)

    def forget(self, step: str) -> None:
        """Drop what is here of ``step``, which runs again."""
        self.accesses = [access for access in self.accesses if access.step != step]
        self._seen = set(self.accesses)
        for name in [name for name in self.prompts or () if name.partition("[")[0] == step]:
            (self.prompts or {}).pop(name)


@frozen
class Run:
    """A run that is over; nothing of it is under way.

    ``status``: complete (every needed step is done), partial (the final step is, something else failed), failed (the
    final step has no output), cancelled. ``output`` and ``final`` are the final step's text and id; ``rule`` says what
    made it the final one. ``critical_path_seconds`` is the longest chain of dependent steps, by their own times.
    """

    status: Status
    final: str
    rule: str
    steps: Mapping[str, StepResult]
    seconds: float
    critical_path_seconds: float
    usage: Usage
    cost: float | None
    calls: int
    trace: Trace
    diagnostics: tuple[Diagnostic, ...] = ()
    warnings: tuple[str, ...] = ()
    run_id: str = ""

    @property
    def coerced(self) -> tuple[Access, ...]:
        """The typed answers that were read otherwise than they are written."""
        return tuple(access for access in self.trace.accesses if access.said)

    @property
    def output(self) -> str | None:
        """The final step's output; None when it has none."""
        result = self.steps.get(self.final)
        return result.output if result is not None and result.is_good else None

    @property
    def value(self) -> Any:
        """The final step's value: typed where the step has a type; None when it has no output."""
        result = self.steps.get(self.final)
        return result.value if result is not None and result.is_good else None


@frozen
class Before:
    """What a run may refer to that is not in its script: results of steps that ran before, in the same session, and their trees.

    Their calls and costs are not counted again: a result has none.
    """

    results: Mapping[str, StepResult] = field(factory=dict)
    steps: Mapping[str, Step] = field(factory=dict)

    def without(self, names: Container[str]) -> "Before":
        """Return the same without what has one of ``names``."""
        return Before({name: result for name, result in self.results.items() if name not in names}, self.steps)


@frozen
class Recorded:
    """An answer of an earlier run: a text and its value. ``failed_items``: what the step lacked then, without places in the text."""

    output: str
    value: Any
    failed_items: tuple[Failed, ...] = ()

    def again(self, input_hash: str) -> Outcome:
        """Return the outcome of a step that takes this answer."""
        return Outcome(self.output, self.value, reused=True, input_hash=input_hash, failed_items=self.failed_items)


class Record(Protocol):
    """Where a run is kept so that it can be resumed; ``runtime.lwt.run_store`` has one that writes to disk."""

    run_id: str

    @property
    def damage(self) -> str:
        """Why the run could not be kept to its end; empty when all is well."""
        ...

    def recall(self, step: str, item: int | None, input_hash: str) -> Recorded | None:
        """Return the earlier answer of ``step`` (of its item) to the same input, or None."""
        ...

    def item_done(self, step: str, item: int | None, outcome: Outcome, seconds: float) -> None:
        """Keep an item's answer."""
        ...

    def step_done(self, result: StepResult, outcome: Outcome | None) -> None:
        """Keep a step's end: done with its outcome, or failed, or skipped."""
        ...

    def finished(self, run: Run) -> None:
        """Keep the end of the run."""
        ...

    def close(self) -> None:
        """Let go of the run, finished or not."""
        ...


def add_costs(one: float | None, other: float | None) -> float | None:
    """Add what is known: None only where neither is."""
    return other if one is None else one if other is None else one + other


def coercions(run: Run, most: int = 5) -> list[str]:
    """Say which typed answers were read otherwise than they are written, the first ``most`` one by one."""
    found = run.coerced
    lines = []
    for each in found[:most]:
        item = "" if each.item is None else f" item {each.item}"
        said, output = (printable(short(" ".join(text.split()))) for text in (each.said, each.output))
        lines.append(f"({each.step}){item}: {said} was read as {output}")
    if len(found) > most:
        lines.append(f"{len(found) - most:,} more answers were read otherwise than they are written")
    return lines


def plain(value: Any) -> Any:
    """Return ``value`` as a JSON value: a ``Failed`` at the top or in a list becomes None."""
    if isinstance(value, Failed):
        return None
    if isinstance(value, list):
        return [None if isinstance(item, Failed) else item for item in value]
    return value


def run_json(run: Run, cached: int, source: Source, diagnostics: Sequence[Diagnostic]) -> dict[str, Any]:
    """Return the run as the JSON document that command line and server show.

    ``cached``: how many of its calls the cache answered; ``diagnostics``: what the check found in ``source``.
    """
    return {
        "status": run.status,
        "output": run.output,
        "value": _jsonable(run.value),
        "final": {"step": run.final, "rule": run.rule},
        "steps": {step: _step_json(result) for step, result in run.steps.items()},
        "usage": {
            "calls": run.calls,
            "cached": cached,
            **_usage(run.usage),
            "cost": run.cost,
            "seconds": round(run.seconds, 3),
            "critical_path_seconds": round(run.critical_path_seconds, 3),
        },
        "coerced": [
            {
                "step": each.step,
                "item": each.item,
                "type": each.reference.removeprefix("type="),
                "how": each.how,
                "said": each.said,
                "output": each.output,
            }
            for each in run.coerced
        ],
        "diagnostics": all_as_json(diagnostics, source),
        "warnings": list(run.warnings),
        "run": run.run_id,
    }


def _step_json(result: StepResult) -> dict[str, Any]:
    return {
        "status": result.status,
        "output": result.output if result.is_good else None,
        "value": _jsonable(result.value),
        "reason": result.reason,
        "kind": result.failed.kind if result.failed is not None else "condition" if result.unmet else None,
        "failed_items": [{"item": f.item, "kind": f.kind, "message": f.message} for f in result.failed_items],
        "seconds": round(result.seconds, 3),
        "calls": result.calls,
        "usage": _usage(result.usage),
        "cost": result.cost,
        "reused": result.reused,
    }


def _usage(usage: Usage) -> dict[str, int]:
    return {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}


def _jsonable(value: Any) -> Any:
    """Return a value that JSON can say: a plugin's may be anything."""
    import json

    try:
        json.dumps(plain(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return plain(value)
