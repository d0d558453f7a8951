"""The operations that a script may call, seen from the run: a registry of runners, and the three that are built in.

A runner is ``async (call, context) -> Outcome`` and raises ``StepFailed``. A plugin offers an ``Operation`` under the
entry point group ``knotwork.operations``, by the name that scripts call; it is loaded when a script names it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from attrs import define, evolve, field, frozen

from ..adapters.llm import Usage
from ..lang.diagnostic import nearest
from ..lang.lwt import Call, ListValue, ObjectValue, Reference, Scalar, Template, Value, Word
from ..lang.lwt import Choice as ChoiceValue
from ..lang.operations import BUILTIN, OptionSpec, Signature
from .calls import Caller, Request
from .results import NO_USAGE, Failed, Outcome, StepFailed, add_costs
from .templates import Scope, render, resolve, text_of

__all__ = ["OPERATIONS", "Context", "Operation", "constant", "find", "read_options", "signatures"]


@frozen
class Context:
    """What a runner may use: the step's id, what references see, and the models."""

    step: str
    scope: Scope
    caller: Caller


Runner = Callable[[Call, Context], Awaitable[Outcome]]


@frozen
class Operation:
    """An operation: how it is written, and how it runs."""

    signature: Signature
    run: Runner = field(repr=False)


# Arguments and options. The linter has told people about all of this before; a script that is still arriving has not
# been checked as a whole, so a wrong value fails its step here.


def constant(value: Value) -> Any:
    """Return the JSON value that ``value`` writes; raise ``StepFailed`` where it has references."""
    if isinstance(value, Scalar):
        return value.value
    if isinstance(value, Template) and value.constant is not None:
        return value.constant
    if isinstance(value, ListValue):
        return [constant(item) for item in value.items]
    if isinstance(value, ObjectValue):
        return {str(constant(key)): constant(entry) for key, entry in value.entries}
    raise StepFailed(Failed("operation", "this is no constant value", span=value.span))


def read_options(call: Call, signature: Signature) -> dict[str, Any]:
    """Return the call's options as Python values; templates stay templates. Raises ``StepFailed``."""
    read = {}
    for option in call.options:
        spec = signature.options.get(option.name)
        if spec is None:
            like = nearest(option.name, signature.options)
            hint = f"did you mean {like}=?" if like else f"there are: {', '.join(signature.options) or 'none'}"
            message = f"{signature.name} has no option {option.name}="
            raise StepFailed(Failed("operation", message, hint, span=option.span))
        read[option.name] = _option(option.value, spec)
    return read


def _option(value: Value, spec: OptionSpec) -> Any:
    if spec.kind == "template" and isinstance(value, Template):
        return value
    if spec.kind == "type":
        if isinstance(value, ChoiceValue):
            return tuple(str(constant(label)) for label in value.labels)
        if isinstance(value, Template):
            label = str(constant(value))
            return label if label in spec.values else (label,)
    if spec.kind in ("type", "name") and isinstance(value, Word | Template):
        word = value.value if isinstance(value, Word) else value.constant
        if word in spec.values:
            return word
    elif spec.kind in ("int", "float") and isinstance(value, Scalar):
        number = value.value
        if isinstance(number, int | float) and not isinstance(number, bool):
            whole = isinstance(number, int) or spec.kind == "float"
            low = spec.minimum is None or number >= spec.minimum
            if whole and low and (spec.maximum is None or number <= spec.maximum):
                return number
    elif spec.kind == "string" and isinstance(value, Template) and value.constant is not None:
        return value.constant
    elif spec.kind == "strings":
        given = constant(value)
        texts = [given] if isinstance(given, str) else given
        if isinstance(texts, list) and texts and len(texts) <= 4 and all(isinstance(text, str) for text in texts):
            return texts
    allowed = f"one of {', '.join(spec.values)}" if spec.values else _range(spec)
    raise StepFailed(Failed("operation", f"{spec.name}= must be {allowed}", span=value.span))


def _range(spec: OptionSpec) -> str:
    noun = {"int": "a whole number", "float": "a number", "strings": "a text or a list of up to four"}.get(spec.kind)
    bounds = f" from {spec.minimum:g} to {spec.maximum:g}" if None not in (spec.minimum, spec.maximum) else ""
    return f"{noun or 'a text'}{bounds}"


# LLM


@frozen
class _Prompted:
    """An LLM call read once: what is rendered for each request, and what stays the same."""

    prompt: Template
    system: Template | None
    request: Request

    def at(self, scope: Scope) -> Request:
        prompt = render(self.prompt, scope)
        request = self.request
        if self.system is not None:
            options = {**request.options, "system": render(self.system, scope)}
            return Request(prompt, request.kind, request.model, options)
        return Request(prompt, request.kind, request.model, request.options)


_LLM = BUILTIN["LLM"]


def _prompted(call: Call) -> _Prompted:
    if len(call.arguments) != 1 or not isinstance(call.arguments[0], Template):
        raise StepFailed(Failed("operation", "LLM takes one prompt", f"for example {_LLM.example}", call.span))
    options = read_options(call, _LLM) if call.options else {}
    kind, model, system = options.pop("type", "text"), options.pop("model", None), options.pop("system", None)
    return _Prompted(call.arguments[0], system, Request("", kind, model, options))


async def _llm(call: Call, context: Context) -> Outcome:
    if not call.options and len(call.arguments) == 1 and isinstance(prompt := call.arguments[0], Template):
        request = Request(render(prompt, context.scope))  # most calls: nothing but a prompt
    else:
        request = _prompted(call).at(context.scope)
    return await context.caller.ask(context.step, request)


# CONST


async def _const(call: Call, context: Context) -> Outcome:
    if len(call.arguments) != 1:
        raise StepFailed(Failed("operation", "CONST takes one value", span=call.span))
    value = constant(call.arguments[0])
    return Outcome(text_of(value), value)


# EACH

_ITEMS_IN_FLIGHT = 8
"""``max_concurrency`` of EACH where the script gives none (LWT, "Operations")."""


async def _each(call: Call, context: Context) -> Outcome:
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


def _each_parts(call: Call, scope: Scope) -> "tuple[list[Any], _Prompted, dict[str, Any]]":
    arguments = call.arguments
    if len(arguments) != 2 or not isinstance(arguments[0], Reference) or not isinstance(arguments[1], Call):
        hint = f"for example {BUILTIN['EACH'].example}"
        raise StepFailed(Failed("operation", "EACH takes a reference to a list and a call", hint, call.span))
    if arguments[1].operation != "LLM":
        raise StepFailed(Failed("operation", "EACH can only run LLM for each item", span=arguments[1].span))
    return _list_of(arguments[0], scope), _prompted(arguments[1]), read_options(call, BUILTIN["EACH"])


def _list_of(reference: Reference, scope: Scope) -> list[Any]:
    """Return the list that ``reference`` leads to. What is no list fails in either mode: there is nothing to map."""
    from ..lang.ladder import Reading, kind_of, read

    value = resolve(reference, scope)
    if isinstance(value, str):
        found = read(value)
        if isinstance(found, Reading):
            scope.note(reference, len(reference.accessors), found.how)
            value = found.value
    if isinstance(value, list | tuple):
        return list(value)
    raise StepFailed(Failed("reference", f"EACH needs a list; there is {kind_of(value)}", span=reference.span))


async def _one_item(inner: _Prompted, context: Context, index: int, item: Any, total: _Total) -> None:
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


OPERATIONS: Mapping[str, Operation] = {
    "LLM": Operation(_LLM, _llm),
    "CONST": Operation(BUILTIN["CONST"], _const),
    "EACH": Operation(BUILTIN["EACH"], _each),
}
"""The built-in operations by name."""

GROUP = "knotwork.operations"
"""The entry point group of plugins."""


def find(name: str) -> Operation:
    """Return the operation called ``name``: a built-in one, else a plugin's. Raises ``StepFailed``."""
    found = OPERATIONS.get(name) or _plugin(name)
    if found is None:
        like = nearest(name, OPERATIONS)
        raise StepFailed(Failed("operation", f"there is no operation {name}", f"did you mean {like}?" if like else ""))
    return found


def _plugin(name: str) -> Operation | None:
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP, name=name):
        try:
            loaded = point.load()
        except Exception as error:  # a plugin's import may raise anything
            message = f"the plugin for {name} ({point.value}) can't be loaded: {type(error).__name__}: {error}"
            raise StepFailed(Failed("operation", message)) from error
        if isinstance(loaded, Operation):
            return loaded
        raise StepFailed(Failed("operation", f"the plugin for {name} ({point.value}) is no Operation"))
    return None


def signatures(names: "set[str]") -> dict[str, Signature]:
    """Return the signatures of the built-in operations and of the plugins among ``names``: what a check goes by."""
    known = {name: operation.signature for name, operation in OPERATIONS.items()}
    for name in sorted(names - known.keys()):
        try:
            plugin = _plugin(name)
        except StepFailed:
            continue
        if plugin is not None:
            known[name] = plugin.signature
    return known
