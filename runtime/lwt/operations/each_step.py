"""The operation EACH, which runs a call once for each element of a list."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from attrs import define, evolve, field

from ....adapters.llm.concurrency import AutoConcurrency
from ....lang.catalogue.operations import BUILTIN, COMMON_OPTIONS
from ....lang.trees.lwt import Call, Reference, Value
from ...excerpts import clipped
from ...models.caller import Spent
from ...models.votes import warn_of_equal_samples
from ...results import Failed, Outcome, Record, Recorded, Run, StepFailed, StepResult
from ...templates import Scope, resolve, text_of
from ..files_beside import invalid
from .basic import unmet
from .llm_call import answer_of, parse_call
from .operation import Context, Operation, read_options, run_operation

_EACH = BUILTIN["EACH"]
_ITEMS_IN_FLIGHT = 8
"""Default ``max_concurrency`` of EACH (LWT, "Operations"), unless the run's limit is automatic: then the limit of the model decides."""

_NAME = 60
"""Maximum number of characters of an item in a message."""

_RunItem = Callable[[int, Any, Scope], Awaitable[Outcome]]
"""Runs the inner call for an index, an element and the scope of this element."""


async def run_each(call: Call, context: Context) -> Outcome:
    """Run the call for every item, several items at a time; the values are in the order of the list.

    An item whose ``when=`` is false has the value null and runs nothing.
    """
    items, inner, options = _parts(call, context.scope)
    (run_item, is_recorded), condition = _runner(inner, call.arguments[0], context), _condition(inner, context)
    on_error = options.get("on_error", "fail")
    total = _Total([None] * len(items))
    spent = total.spent
    left = iter(range(len(items)))

    async def work() -> None:
        for done, index in enumerate(left, 1):
            await _one_item(run_item, is_recorded, condition, context, index, items[index], total)
            if total.failures and on_error == "fail":
                return  # running calls finish and are saved for --resume; no new calls start
            if done % 32 == 0:
                await asyncio.sleep(0)

    limit = context.caller.limit
    most = limit if isinstance(limit, AutoConcurrency) else _ITEMS_IN_FLIGHT
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(len(items), options.get("max_concurrency", most))):
                group.create_task(work())
    except asyncio.CancelledError:
        context.caller.lost.include(spent)  # the step has no result
        raise
    failures = [total.failures[index] for index in sorted(total.failures)]
    if failures and on_error == "fail":
        first = failures[0]
        more = f" (and {len(failures) - 1} more failed)" if len(failures) > 1 else ""
        failed = evolve(first, message=f"item {first.item}: {first.message}{more}")
        raise StepFailed(failed, usage=spent.usage, cost=spent.cost, calls=spent.calls)
    values = total.values
    if on_error == "drop":
        values = [value for value in values if not isinstance(value, Failed)]
    partial = [failed for index in sorted(total.partial) for failed in total.partial[index]]
    return Outcome(
        text_of(values), values, spent.usage, spent.cost, spent.calls, spent.attempts, "",
        bool(items) and total.reused == len(items), "", (*failures, *partial),
    )  # fmt: skip


@define
class _Total:
    """The results and the cost of EACH's items so far. ``partial`` has the faults of items that have a value nevertheless."""

    values: list[Any]
    failures: dict[int, Failed] = field(factory=dict)
    partial: dict[int, list[Failed]] = field(factory=dict)
    spent: Spent = field(factory=Spent)
    reused: int = 0


def _parts(call: Call, scope: Scope) -> tuple[list[Any], Call, dict[str, Any]]:
    arguments = call.arguments
    if len(arguments) != 2 or not isinstance(arguments[0], Reference) or not isinstance(arguments[1], Call):
        raise invalid("EACH takes a reference to a list and a call", call.span, f"for example {_EACH.example}")
    return _list_of(arguments[0], scope), arguments[1], read_options(call, _EACH)


def _runner(inner: Call, items: Value, context: Context) -> tuple[_RunItem, bool]:
    """Return the function that runs the inner call over ``items``, and whether its outcome is to be recorded.

    The call is parsed once. The samples of a vote are recorded one by one. Raises ``StepFailed``.
    """
    if inner.operation == "LLM":
        parsed = parse_call(inner, items)
        caller, step = context.caller, context.step
        if parsed.samples > 1:
            warn_of_equal_samples(caller, step, parsed.request)

        def ask(index: int, item: Any, scope: Scope) -> Awaitable[Outcome]:
            if parsed.samples == 1:
                return caller.ask(step, parsed.at(context, scope), index)
            return answer_of(parsed, context, scope, index)

        return ask, parsed.samples == 1
    operation = _operation(inner, context)

    async def run(index: int, item: Any, scope: Scope) -> Outcome:
        caller = context.caller
        if caller.record is not None:
            caller = caller.with_record(_ItemRecord(caller.record, context.step, index, caller.record.run_id))
        return await run_operation(operation, inner, evolve(context, scope=scope, caller=caller, item=index))

    return run, True


def _operation(inner: Call, context: Context) -> Operation:
    operation = context.host.find(inner.operation)
    if not operation.signature.repeatable:
        raise invalid(f"EACH can't run {inner.operation} for each item", inner.span)
    return operation


def _condition(inner: Call, context: Context) -> Value | None:
    """Return the condition of each item; None without one, and for an operation that defines its own ``when=``."""
    condition = inner.option("when")
    if condition is None or inner.operation in BUILTIN:
        return condition
    return condition if _operation(inner, context).signature.option("when") is COMMON_OPTIONS["when"] else None


def _list_of(reference: Reference, scope: Scope) -> list[Any]:
    """Return the list that ``reference`` resolves to. Raises ``StepFailed`` for any other value, also in lenient mode."""
    from ....lang.literals import Reading, kind_of, read

    value = resolve(reference, scope)
    if isinstance(value, str):
        found = read(value)
        if isinstance(found, Reading):
            scope.note(reference, len(reference.accessors), found.how)
            value = found.value
    if isinstance(value, list | tuple):
        return list(value)
    raise StepFailed(Failed("reference", f"EACH needs a list, not {kind_of(value)}", span=reference.span))


async def _one_item(
    run_item: _RunItem,
    is_recorded: bool,
    condition: Value | None,
    context: Context,
    index: int,
    item: Any,
    total: _Total,
) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        scope = context.scope.at(index, item)
        if condition is not None and unmet(condition, scope):
            total.reused += 1  # the item is skipped, so it costs nothing
            return
        outcome = await run_item(index, item, scope)
    except StepFailed as error:
        failed = evolve(error.failed, item=index, name=_name(item))
        total.failures[index] = total.values[index] = failed
        total.spent.include(error)
        return
    except Exception as error:  # an operation of a host may raise anything; only the item fails
        failed = Failed("error", f"{type(error).__name__}: {error}", item=index, name=_name(item))
        total.failures[index] = total.values[index] = failed
        return
    total.values[index] = outcome.value
    total.spent.include(outcome)
    if outcome.failed_items:
        total.partial[index] = [
            Failed("partial", each.message, each.hint, each.span, index) for each in outcome.failed_items
        ]
    if outcome.reused:
        total.reused += 1
    elif is_recorded and (
        outcome.input_hash or outcome.calls
    ):  # anything else is computed again when the run is resumed
        context.caller.item_done(context.step, index, outcome, loop.time() - began)


def _name(item: Any) -> str:
    """Return the beginning of an item as text, by which messages name it."""
    return clipped(" ".join(text_of(item).split()), _NAME)


@define
class _ItemRecord:
    """Saves what an operation does for one item of EACH in the record of the run. Implements ``results.Record``.

    The answer of the operation itself is the answer of the item. Answers to parts of it, such as the reviews of a seed, are saved
    under the step ``STEP[INDEX]``. Names of other steps, which a nested script has, are unchanged.
    """

    record: Record
    step: str
    index: int
    run_id: str = ""
    damage: str = ""
    """Always empty, because the script's run reports damaged records itself."""

    def _place(self, step: str, item: int | None) -> tuple[str, int | None]:
        if step != self.step:
            return step, item
        return (step, self.index) if item is None else (f"{step}[{self.index}]", item)

    def recall(self, step: str, item: int | None, input_hash: str) -> Recorded | None:
        """Return the saved answer of the item, or of a part of it."""
        return self.record.recall(*self._place(step, item), input_hash)

    def item_done(self, step: str, item: int | None, outcome: Outcome, seconds: float) -> None:
        """Save the answer for a part of the item."""
        self.record.item_done(*self._place(step, item), outcome, seconds)

    def step_done(self, result: StepResult, outcome: Outcome | None) -> None:
        """Save how a step of a nested script ended."""
        self.record.step_done(result, outcome)

    def finished(self, run: Run) -> None:
        """Do nothing: the run continues."""

    def close(self) -> None:
        """Do nothing: the script's run closes its record."""
