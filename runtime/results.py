"""Results of a run: step results, failures as values, records of how answers were read, and the result of the entire run.

Times are in seconds; ``started`` counts from the start of the run. Costs are in US dollars; None if no call has a known cost.
"""

from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import attrs
from attrs import define, field, frozen

from ..adapters.llm import Usage
from ..lang.diagnostic import Diagnostic, all_as_json, compatible, has_errors, picture, printable
from ..lang.errors import KnotworkError
from ..lang.literals import short
from ..lang.source import Source, Span
from ..lang.trees.lwt import Step

if TYPE_CHECKING:  # checking a script needs no budget
    from ..adapters.llm.budget import Price

NO_USAGE = Usage()

Status = Literal["complete", "partial", "failed", "cancelled"]


@frozen
class Failed:
    """The reason why a step, or an item of EACH, has no output. ``kind`` is an ``LLMError.kind`` or one of the kinds below.

    "reference": the key, the index or the list does not exist. "access": an index or a slice is applied to an object, a number or
    a truth value. "input": the run lacks this input. "model": the model name is unknown. "operation": the operation failed.
    "expression": the expression has no value. "seed": the seed has no outputs. "function": a function of the host
    failed. "script": a script that RUN names failed. "partial": a part of a program or a seed failed.
    "error": a client or a plugin raised an exception.
    """

    kind: str
    message: str
    hint: str = ""
    span: Span | None = None
    item: int | None = None
    name: str = ""
    """The beginning of the item, as text."""

    @property
    def is_unasked(self) -> bool:
        """Whether no model was asked, because a limit or an earlier failure allows no further call."""
        return self.kind == "budget" or self.message.startswith(NOT_ASKED)


NOT_ASKED = "not asked: "
"""The beginning of the message about a call that was not made."""


def unasked(message: str) -> str:
    """Return the message about a call that is not made, because of an earlier failure with this message."""
    return message if message.startswith(NOT_ASKED) else f"{NOT_ASKED}{message}"


class StepFailed(KnotworkError):
    """Raised inside an operation if the step or the item has failed.

    ``usage``, ``cost`` and ``calls`` are the tokens, the cost and the calls of the step or item up to the failure.
    """

    def __init__(
        self, failed: Failed, *, usage: Usage | None = None, cost: float | None = None, calls: int = 0
    ) -> None:
        super().__init__(failed.message, hint=failed.hint)
        self.failed = failed
        self.usage = usage or Usage()
        self.cost = cost
        self.calls = calls


class ScriptError(KnotworkError):
    """Raised if the script can't run. ``diagnostics`` has at least one error. ``str`` shows the errors with their source lines.

    No call was made. If the script was still arriving, no call was made after the error was found.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], source: Source) -> None:
        first = next((each for each in diagnostics if each.severity == "error"), None)
        message = f"{source.name} has errors" if first is None else first.message
        super().__init__(message, hint=first.hints[0] if first is not None and first.hints else "")
        self.diagnostics = compatible(diagnostics)
        self.source = source

    def __str__(self) -> str:
        return "\n".join(picture(d, self.source) for d in self.diagnostics if has_errors([d]))


@frozen(slots=False)
class Outcome:
    """The result that an operation returns for a step. ``value`` is a JSON value, in which a ``Failed`` may replace an item.

    ``input_hash`` identifies the inputs; it is empty if the operation has no single hash for its inputs. ``failed_items`` are
    failures that do not make the step fail: failed items (kept in ``value`` as ``Failed``, or dropped), or failed parts of a
    program or a seed.
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
    """The model's original answer, if ``output`` was extracted from that answer."""


@frozen(slots=False)
class StepResult:
    """The result of a step. ``output`` is its text, and ``value`` is the value of the text (typed, or a constant).

    ``status`` is done, failed or skipped. ``reason`` is a sentence that says why the step is not done; ``failed`` is the failure.
    If ``reused``, no call was made: the result was taken from an earlier run, whose cost is not counted again. If ``unmet``, the
    step was skipped because its condition is false. This is not a failure: ``value`` is null and ``output`` is "null".
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
        """Whether the step ended as intended: done, or skipped because its own condition is false."""
        return self.status == "done" or self.unmet


@frozen
class Access:
    """Records how text was read as a value.

    ``reference`` is the reference, up to the accessor that required the text to be read, or the type of a typed answer, such as
    ``type=list``. ``how`` is the method of reading (json, python, fence, bracket list), "text" for a slice of plain text,
    "missing" if lenient mode inserted nothing, or "skipped" if the step was skipped because its condition is false. For a
    coerced typed answer, ``said`` is the answer's text and ``item`` its index in EACH; ``how`` may then also be thinking,
    fenced, embedded, literal or coerced.
    """

    step: str
    reference: str
    how: str
    said: str = ""
    item: int | None = None
    output: str = ""


@frozen
class Vote:
    """Several samples of a call, in the order in which they were requested.

    ``counts`` has, for each sample, the number of samples with the same answer. ``chosen`` is the index of the sample that is the output.
    """

    step: str
    item: int | None
    samples: tuple[str, ...]
    counts: tuple[int, ...]
    chosen: int


@define
class Trace:
    """Details of a run that its results do not show.

    ``prompts`` maps each step, or ``step[item]``, to its prompt; it is None unless prompts were requested. The prompts of a SEED
    step are numbered in the order of the calls.
    """

    accesses: list[Access] = field(factory=list)
    prompts: dict[str, str] | None = None
    votes: list[Vote] = field(factory=list)
    """The votes of calls with ``n=``, in the order in which they ended."""
    _seen: set[Access] = field(factory=set, repr=False)

    def note(self, access: Access) -> None:
        """Save ``access`` unless the same entry is already saved: EACH would otherwise repeat the entry for every item."""
        if access not in self._seen:
            self._seen.add(access)
            self.accesses.append(access)

    def forget(self, step: str) -> None:
        """Delete the entries of ``step``, because the step runs again."""
        self.accesses = [access for access in self.accesses if access.step != step]
        self.votes = [vote for vote in self.votes if vote.step != step]
        self._seen = set(self.accesses)
        for name in [name for name in self.prompts or () if name.partition("[")[0] == step]:
            (self.prompts or {}).pop(name)


@frozen
class Run:
    """A finished run; nothing is still running.

    ``status`` is complete (every needed step is done), partial (the final step is done, but another step failed), failed (the
    final step has no output) or cancelled. ``final`` is the id of the final step, ``output`` is the text of this step, and
    ``rule`` says why it is the final step. ``critical_path_seconds`` is the duration of the longest chain of dependent steps,
    which is the sum of the durations of these steps.
    """

    status: Status
    final: str
    rule: str
    steps: Mapping[str, StepResult] = field(repr=False)  # asyncio may write a result as text, which would take long
    seconds: float
    critical_path_seconds: float
    usage: Usage
    cost: float | None
    calls: int
    trace: Trace = field(repr=False)
    diagnostics: tuple[Diagnostic, ...] = ()
    warnings: tuple[str, ...] = ()
    run_id: str = ""
    prices: "Mapping[str, Price]" = field(factory=dict)
    """The known prices of the run's models, by spec."""

    @property
    def coerced(self) -> tuple[Access, ...]:
        """The typed answers that were coerced."""
        return tuple(access for access in self.trace.accesses if access.said)

    @property
    def output(self) -> str | None:
        """The output of the final step; None if the final step has no output."""
        result = self.steps.get(self.final)
        return result.output if result is not None and result.is_good else None

    @property
    def value(self) -> Any:
        """The value of the final step, typed if the step has a type; None if the final step has no output."""
        result = self.steps.get(self.final)
        return result.value if result is not None and result.is_good else None


@frozen
class Before:
    """Results and syntax trees of earlier steps in the same session, to which a script may refer.

    The results of earlier steps contain no calls and no costs, so that nothing is counted again.
    """

    results: Mapping[str, StepResult] = field(factory=dict)
    steps: Mapping[str, Step] = field(factory=dict)

    def without(self, names: Container[str]) -> "Before":
        """Return a copy without the results of the steps in ``names``."""
        return Before({name: result for name, result in self.results.items() if name not in names}, self.steps)


@frozen
class Recorded:
    """An answer from an earlier run: its text and its value. ``failed_items`` are the failures of items, without source positions."""

    output: str
    value: Any
    failed_items: tuple[Failed, ...] = ()

    def again(self, input_hash: str) -> Outcome:
        """Return the outcome of a step that reuses this answer."""
        return Outcome(self.output, self.value, reused=True, input_hash=input_hash, failed_items=self.failed_items)


class Record(Protocol):
    """Stores a run so that it can be resumed. ``runtime.lwt.run_store`` has an implementation that writes to disk."""

    run_id: str

    @property
    def damage(self) -> str:
        """The reason why the run could not be saved completely; empty if the run is saved completely."""
        ...

    def recall(self, step: str, item: int | None, input_hash: str) -> Recorded | None:
        """Return the saved answer of ``step``, or of its item ``item``, for the same input; None if no such answer is saved."""
        ...

    def item_done(self, step: str, item: int | None, outcome: Outcome, seconds: float) -> None:
        """Save the answer for an item."""
        ...

    def step_done(self, result: StepResult, outcome: Outcome | None) -> None:
        """Save how a step ended: done with ``outcome``, or failed or skipped."""
        ...

    def finished(self, run: Run) -> None:
        """Save the end of the run."""
        ...

    def close(self) -> None:
        """Close the record, whether the run is finished or not."""
        ...


def add_costs(one: float | None, other: float | None) -> float | None:
    """Return the sum of the known costs; None only if both costs are unknown."""
    return other if one is None else one if other is None else one + other


def coercions(run: Run, most: int = 5) -> list[str]:
    """Return one message for each of the first ``most`` coerced answers, and a message with the number of further coerced answers."""
    found = run.coerced
    lines = []
    for each in found[:most]:
        item = "" if each.item is None else f" item {each.item}"
        said, output = (printable(short(" ".join(text.split()))) for text in (each.said, each.output))
        lines.append(f"({each.step}){item}: {said} was read as {output}")
    if len(found) > most:
        lines.append(f"{len(found) - most:,} more answers were coerced")
    return lines


def plain(value: Any) -> Any:
    """Return ``value`` as a JSON value: a ``Failed`` at the top or in a list becomes None."""
    if isinstance(value, Failed):
        return None
    if isinstance(value, list):
        return [None if isinstance(item, Failed) else item for item in value]
    return value


def run_json(run: Run, cached: int, source: Source, diagnostics: Sequence[Diagnostic]) -> dict[str, Any]:
    """Return the run as the JSON document that the command line and the server output.

    ``cached`` is the number of the run's calls that the cache answered. ``diagnostics`` are the results of checking ``source``.
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
            **usage_json(run.usage),
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
        **({"votes": [attrs.asdict(vote) for vote in run.trace.votes]} if run.trace.votes else {}),
        "diagnostics": all_as_json(diagnostics, source),
        "warnings": list(run.warnings),
        "run": run.run_id,
        **prices_json(run.prices),
    }


def _step_json(result: StepResult) -> dict[str, Any]:
    return {
        "status": result.status,
        "output": result.output if result.is_good else None,
        "value": _jsonable(result.value),
        "reason": result.reason,
        "kind": result.failed.kind if result.failed is not None else "condition" if result.unmet else None,
        "failed_items": [_item_json(f) for f in result.failed_items],
        "seconds": round(result.seconds, 3),
        "calls": result.calls,
        "usage": usage_json(result.usage),
        "cost": result.cost,
        "reused": result.reused,
    }


def _item_json(failed: Failed) -> dict[str, Any]:
    name = {"name": failed.name} if failed.name else {}
    return {"item": failed.item, **name, "kind": failed.kind, "message": failed.message}


def prices_json(prices: "Mapping[str, Price]") -> dict[str, Any]:
    """Return ``{"prices": [...]}`` for the known prices of a run's models; an empty object if no price is known."""
    return {"prices": [price.as_json(model) for model, price in prices.items()]} if prices else {}


def usage_json(usage: Usage, calls: int | None = None) -> dict[str, int]:
    """Return the numbers of tokens, and the number of calls if ``calls`` is given, as a JSON object.

    ``estimated`` is true, and otherwise missing, if a model did not report all tokens.
    """
    counted = {} if calls is None else {"calls": calls}
    tokens = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
    return {**counted, **tokens, **({"estimated": True} if usage.estimated else {})}


def estimated_mark(estimated: object) -> str:
    """Return the text behind a number of tokens that a model did not report; "" if ``estimated`` is not true."""
    return " (estimated)" if estimated else ""


def tokens_text(usage: Usage) -> str:
    """Return the tokens as text, such as "200 + 40 tokens"; tokens that a model did not report are marked."""
    return f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens{estimated_mark(usage.estimated)}"


def _jsonable(value: Any) -> Any:
    """Return ``value`` in a form that can be written as JSON; None if that is impossible (a plugin may return any value)."""
    import json

    try:
        json.dumps(plain(value), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return plain(value)
