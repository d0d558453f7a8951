"""EACH: one call for each element of a list."""

import asyncio
from typing import Any

from attrs import define, evolve, field

from ...adapters.llm import Usage
from ...lang.catalogue.operations import BUILTIN
from ...lang.trees.lwt import Call, Reference
from ..results import NO_USAGE, Failed, Outcome, StepFailed, add_costs
from ..templates import Scope, resolve, text_of
from .arguments import read_options
from .asking import Prompted, prompted
from .operation import Context

__all__ = ["run_each"]

_ITEMS_IN_FLIGHT = 8
"""``max_concurrency`` of EACH where the script gives none (LWT, "Operations")."""


async def run_each(call: Call, context: Context) -> Outcome:
    """Ask for every item, several at a time; the values stand in the order of the list."""
    items, inner, options = _each_parts(call, context.scope)
    on_error = options.get("on_error", "fail")
    total = _Total([None] * len(items))
    left = iter(range(len(items)))

    async def work() -> None:
        for done, index in enumerate(left, 1):
            await _one_item(inner, context, index, items[index], total)
            if total.failures and on_error == "fail":
                return  # what is in flight ends and is kept for --resume; nothing new begins
            if done % 32 == 0:
                await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(len(items), options.get("max_concurrency", _ITEMS_IN_FLIGHT))):
            group.create_task(work())
    failures = [total.failures[index] for index in sorted(total.failures)]
    if failures and on_error == "fail":
        first = failures[0]
        more = f" (and {len(failures) - 1} more failed)" if len(failures) > 1 else ""
        failed = evolve(first, message=f"item {first.item}: {first.message}{more}")
        raise StepFailed(failed, usage=total.usage, cost=total.cost, calls=total.calls)
    values = total.values
    if on_error == "drop":
        values = [value for value in values if not isinstance(value, Failed)]
    return Outcome(
        text_of(values), values, total.usage, total.cost, total.calls, total.attempts, "", 
        bool(items) and total.reused == len(items), "", tuple(failures),
    )  # fmt: skip


@define
class _Total:
    """What EACH's items gave and cost so far."""

    values: list[Any]
    failures: dict[int, Failed] = field(factory=dict)
    usage: Usage = NO_USAGE
    cost: float | None = None
    calls: int = 0
    attempts: int = 0
    reused: int = 0


def _each_parts(call: Call, scope: Scope) -> "tuple[list[Any], Prompted, dict[str, Any]]":
    arguments = call.arguments
    if len(arguments) != 2 or not isinstance(arguments[0], Reference) or not isinstance(arguments[1], Call):
        hint = f"for example {BUILTIN['EACH'].example}"
        raise StepFailed(Failed("operation", "EACH takes a reference to a list and a call", hint, call.span))
    if arguments[1].operation != "LLM":
        raise StepFailed(Failed("operation", "EACH can only run LLM for each item", span=arguments[1].span))
    return _list_of(arguments[0], scope), prompted(arguments[1]), read_options(call, BUILTIN["EACH"])


def _list_of(reference: Reference, scope: Scope) -> list[Any]:
    """Return the list that ``reference`` leads to. What is no list fails in either mode: there is nothing to map."""
    from ...lang.literals import Reading, kind_of, read

    value = resolve(reference, scope)
    if isinstance(value, str):
        found = read(value)
        if isinstance(found, Reading):
            scope.note(reference, len(reference.accessors), found.how)
            value = found.value
    if isinstance(value, list | tuple):
        return list(value)
    raise StepFailed(Failed("reference", f"EACH needs a list; there is {kind_of(value)}", span=reference.span))


async def _one_item(inner: Prompted, context: Context, index: int, item: Any, total: _Total) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    try:
        request = inner.at(context.scope.at(index, item))
        outcome = await context.caller.ask(context.step, request, index)
    except StepFailed as error:
        failed = evolve(error.failed, item=index)
        total.failures[index] = total.values[index] = failed
        total.usage, total.cost = total.usage + error.usage, add_costs(total.cost, error.cost)
        total.calls += error.calls
        return
    total.values[index] = outcome.value
    total.usage, total.cost = total.usage + outcome.usage, add_costs(total.cost, outcome.cost)
    total.calls, total.attempts = total.calls + outcome.calls, total.attempts + outcome.attempts
    if outcome.reused:
        total.reused += 1
    else:
        context.caller.item_done(context.step, index, outcome, loop.time() - began)
