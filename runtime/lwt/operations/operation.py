"""The run-time interface of an operation: its signature, its runner, and the runner's context."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field, frozen

from ....adapters.state import StateStore
from ....lang.catalogue.operations import BUILTIN, COMMON_OPTIONS, OptionSpec, Signature
from ....lang.coercion import Type
from ....lang.diagnostic import nearest
from ....lang.trees.lwt import (
    MISSING,
    Call,
    ListValue,
    ObjectValue,
    Reference,
    Scalar,
    Script,
    Template,
    Value,
    Word,
    json_value,
)
from ....lang.trees.lwt import Choice as ChoiceValue
from ...gasl.records import STOPPING, ContextStore
from ...models.caller import Caller, Request, Spent
from ...results import Failed, Outcome, Record, Recorded, Run, StepFailed, StepResult
from ...templates import Scope, render, value_of
from ..files_beside import invalid

if TYPE_CHECKING:
    from ...gasl import GASLExecutor

# Converts a call's arguments and options to Python values.
# The linter reports invalid values before a run. But a script that is still arriving has not been checked as a whole, so an invalid
# value fails its step here.


VALUES = frozenset({"value", "examples", "messages", "images"})
"""The kinds of options whose values are references or constants; ``option_value`` returns what they stand for."""


def constant(value: Value) -> Any:
    """Return the JSON value that ``value`` denotes. Raises ``StepFailed`` if ``value`` has references."""
    found = json_value(value)
    if found is MISSING:
        raise invalid("this is not a constant value", value.span)
    return found


def option_value(value: Value, scope: Scope) -> Any:
    """Return an option's value with references replaced, also inside lists and objects. Raises ``StepFailed``."""
    if isinstance(value, Reference):
        return value_of(value, scope)
    if isinstance(value, ListValue):
        return [option_value(item, scope) for item in value.items]
    if isinstance(value, ObjectValue):
        return {str(constant(key)): option_value(entry, scope) for key, entry in value.entries}
    return constant(value)


def read_options(call: Call, signature: Signature) -> dict[str, Any]:
    """Return the call's options as Python values; templates and references are unchanged.

    Options that are common to all operations are omitted, because the run handles them. Raises ``StepFailed``.
    """
    read = {}
    for option in call.options:
        spec = signature.option(option.name)
        if spec is not None and spec is COMMON_OPTIONS.get(option.name):
            continue
        if spec is None:
            like = nearest(option.name, signature.option_names)
            hint = f"did you mean {like}=?" if like else f"available: {', '.join(signature.option_names)}"
            message = f"{signature.name} has no option {option.name}="
            raise invalid(message, option.span, hint)
        read[option.name] = _option(option.value, spec)
    return read


def _option(value: Value, spec: OptionSpec) -> Any:
    if spec.kind == "schema" and isinstance(value, ObjectValue):
        return constant(value)
    if (spec.kind == "template" and isinstance(value, Template)) or spec.kind in VALUES:
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
    elif spec.kind in ("checks", "strings", "columns"):  # the evaluator parses the checks
        given = constant(value)
        texts = [given] if isinstance(given, str) else given
        few = spec.kind == "checks" or (isinstance(texts, list) and len(texts) <= 4)
        if isinstance(texts, list) and texts and few and all(isinstance(text, str) for text in texts):
            return texts
    allowed = f"one of {', '.join(spec.values)}" if spec.values else _range(spec)
    raise invalid(f"{spec.name}= must be {allowed}", value.span)


def _range(spec: OptionSpec) -> str:
    noun = {
        "int": "a whole number",
        "float": "a number",
        "checks": "a text, or a list of texts",
        "schema": "an object",
    }.get(spec.kind)
    if spec.kind in ("strings", "columns"):
        noun = "a text or a list of up to four"
    bounds = f" from {spec.minimum:g} to {spec.maximum:g}" if None not in (spec.minimum, spec.maximum) else ""
    return f"{noun or 'a text'}{bounds}"


# The graph and the state that the GASL steps of a run share, with a lock.


@define
class Workshop:
    """The graph and the state of a script's run. Only one step uses them at a time.

    ``open`` creates an executor from a state and initial variables. ``run_id`` identifies the run in the state's history, so
    that a resumed run finds the changes that it has already made.
    """

    open: "Callable[[StateStore, ContextStore], GASLExecutor]"
    state: StateStore
    run_id: str = ""
    turn: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _committed: frozenset[str] | None = field(default=None, init=False)

    def committed(self) -> frozenset[str]:
        """Return the plans that earlier attempts of this run committed. The first call reads the state's history and caches the plans."""
        if self._committed is None:
            self._committed = frozenset(
                entry["plan_id"]
                for entry in self.state.history
                if "part" not in entry
                and str(entry.get("plan_id")).startswith(f"{self.run_id}/")
                and entry.get("status") not in _UNDONE
                and not entry.get("rolled_back")
            )
        return self._committed


_UNDONE = STOPPING | {"cancelled"}
"""The statuses of a block that leave the state unchanged."""


@frozen(slots=False)
class Context:
    """The context of a runner: the step's id, the scope of references, the models, and the graph if the run has one.

    ``folder`` is the script's folder, for ``file=``; if it is None, the run reads no files. ``spec`` is the spec of the run's
    default model as the user wrote it, if known. ``host`` has the operations and functions that the host offers. ``item`` is the
    index of the item if EACH runs the operation. ``scripts`` are the files of the scripts that run each other, the outermost first;
    scripts that do not come from a file have no entry.
    """

    step: str
    scope: Scope
    caller: Caller
    workshop: Workshop | None = None
    folder: Path | None = None
    spec: str = ""
    host: "Host" = field(factory=lambda: Host())
    item: int | None = None
    scripts: tuple[Path, ...] = ()

    @cached_property
    def spent(self) -> Spent:
        """The cost of all calls of ``ask``."""
        return Spent()

    def options(self, call: Call, signature: Signature) -> dict[str, Any]:
        """Return the options of ``call`` as Python values: prompts rendered, references replaced by their values.

        Raises ``StepFailed`` for an invalid option, and for a reference that can't be resolved.
        """
        read = read_options(call, signature)
        kinds = {name: spec.kind for name in read if (spec := signature.option(name)) is not None}
        return {name: self.value(part) if kinds.get(name) in _RENDERED else part for name, part in read.items()}

    def value(self, value: Value) -> Any:
        """Return an argument of the call as a Python value: a prompt as its text, a reference as the value of its step."""
        return render(value, self.scope) if isinstance(value, Template) else option_value(value, self.scope)

    async def ask(self, prompt: str, *, type: Type = "text", model: str | None = None, **options: Any) -> Outcome:
        """Return the answer of a model, with the limits, the cache, the events and the record of the run. Raises ``StepFailed``.

        ``type`` is as for ``LLM``; a tuple of labels is a choice. ``model`` is a name that the host offers (None: the run's model).
        ``options`` are those of the LLM port, such as ``temperature``. The answer is saved, so a resumed run does not repeat the call.
        The step counts the tokens and the cost, whatever the operation returns.
        """
        caller, record = self.caller, self.caller.record
        began = perf_counter()
        if record is not None:
            caller = caller.with_record(_AnswerRecord(record, record.run_id))
        try:
            outcome = await caller.ask(self.step, Request(prompt, type, model, options))
        except StepFailed as error:
            self.spent.include(error)
            raise
        self.spent.include(outcome)
        if record is not None and not outcome.reused:
            record.item_done(self.step, _ANSWERS, outcome, perf_counter() - began)
        return outcome


def run_operation(operation: "Operation", call: Call, context: Context) -> Awaitable[Outcome]:
    """Run an operation. If the operation called models through its context, the outcome has the tokens and the cost of the calls."""
    if call.operation in BUILTIN:
        return operation.run(call, context)  # the built-in operations report the costs themselves
    return _run_with_costs(operation, call, context)


async def _run_with_costs(operation: "Operation", call: Call, context: Context) -> Outcome:
    spent = context.spent
    try:
        outcome = await operation.run(call, context)
    except StepFailed as error:
        if spent.calls > error.calls:
            error.usage, error.cost, error.calls = spent.usage, spent.cost, spent.calls
        raise
    except Exception as error:
        if not spent.calls:
            raise
        reason = Failed("error", f"{call.operation} raised {type(error).__name__}: {error}")
        raise StepFailed(reason, usage=spent.usage, cost=spent.cost, calls=spent.calls) from error
    if spent.calls > outcome.calls:
        return evolve(outcome, usage=spent.usage, cost=spent.cost, calls=spent.calls, attempts=spent.attempts)
    return outcome


_ANSWERS = -1
"""The item number under which the answers to ``Context.ask`` are saved. Their digests distinguish them."""


@define
class _AnswerRecord:
    """Recalls the answers to ``Context.ask`` from the record of the run. Implements ``results.Record``."""

    record: Record
    run_id: str = ""
    damage: str = ""
    """Always empty, because the script's run reports damaged records itself."""

    def recall(self, step: str, item: int | None, input_hash: str) -> Recorded | None:
        """Return the saved answer, or None."""
        return self.record.recall(step, _ANSWERS, input_hash)

    def item_done(self, step: str, item: int | None, outcome: Outcome, seconds: float) -> None:
        """Save an answer."""
        self.record.item_done(step, _ANSWERS, outcome, seconds)

    def step_done(self, result: StepResult, outcome: Outcome | None) -> None:
        """Do nothing: the script's run saves the end of the step."""

    def finished(self, run: Run) -> None:
        """Do nothing: the run continues."""

    def close(self) -> None:
        """Do nothing: the script's run closes its record."""


_RENDERED = ("template", "value")
"""The kinds of options whose values may contain references."""

Runner = Callable[[Call, Context], Awaitable[Outcome]]


@frozen
class Operation:
    """An operation: its signature and its runner, an async function of a call and its context that returns an ``Outcome``.

    A runner that can't do its task raises ``StepFailed``; any other exception fails the step too, with its type and message.
    """

    signature: Signature
    run: Runner = field(repr=False)


@frozen
class Host:
    """The host of a run: the functions that it offers for ``CALL``, and its own operations, both by name."""

    functions: Mapping[str, Callable[..., Any]] = field(factory=dict, repr=False)
    operations: Mapping[str, Operation] = field(factory=dict)
    run_script: Runner | None = field(default=None, repr=False)
    """The runner of ``RUN``; None if scripts can't run other scripts."""
    nested: dict[tuple[Path, bool], Any] = field(factory=dict, init=False, eq=False, repr=False)
    """The scripts that RUN has read, by file and by whether they have an input. Each is checked once, not for every item of EACH."""

    @classmethod
    def of(
        cls, functions: Mapping[str, Callable[..., Any]] | None, operations: "Iterable[Operation] | None" = None
    ) -> "Host":
        """Return a host.

        Raises ``TypeError`` for a value that is not a function or an operation, ``ValueError`` for an invalid or duplicate name.
        """
        given = dict(functions or {})
        for name, function in given.items():
            if not callable(function):
                raise TypeError(f"functions[{name!r}] is {type(function).__name__}, which can't be called")
        named: dict[str, Operation] = {}
        for operation in operations or ():
            if not isinstance(operation, Operation):
                raise TypeError(f"operations= takes Operation objects, not {type(operation).__name__}")
            name = operation.signature.name
            if not re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name):
                raise ValueError(f"{name!r} is not a valid name of an operation: use letters, digits and _")
            if name in BUILTIN or name in named:
                raise ValueError(f"the operation {name} already exists; choose another name")
            named[name] = operation
        return cls(given, named)

    def find(self, name: str) -> Operation:
        """Return an operation: of the host, of the language, or of a plugin. Raises ``StepFailed`` if there is none."""
        from . import find

        return self.operations.get(name) or find(name)

    def signatures(self, script: Script) -> dict[str, Signature] | None:
        """Return the signatures for a check of ``script``: of the language, of plugins, and of the host's operations.

        None if the host has no operations of its own.
        """
        if not self.operations:
            return None
        from . import signatures

        named = {call.operation for _, call in script.calls}
        own = {name: operation.signature for name, operation in self.operations.items()}
        return {**signatures(named - own.keys()), **own}
