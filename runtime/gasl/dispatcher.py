"""Calls the runner of a command, binds its value, and maps exceptions to statuses. See ``docs/design/gasl.md#execution``."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic

from attrs import evolve, field, frozen

from ...adapters.graph import AdapterError
from ...adapters.llm import BudgetExceeded, LLMError
from ...adapters.state import StateError, StoreError
from ...lang.evaluate.conditions import ConditionError, Tally, Unbound, counted
from ...lang.linter.gasl.contents import UNKNOWN, Contents, contents_of
from ...lang.linter.gasl.written_names import with_written_names
from ...lang.trees import walk
from ...lang.trees.conditions import Variable
from ...lang.trees.gasl import (
    Analyze,
    Assert,
    Branch,
    Classify,
    Command,
    Name,
    Param,
    Process,
    Require,
    Update,
    bound_variables,
)  # fmt: skip
from ..events import BudgetReached
from ..excerpts import cut
from .commands import RUNNERS
from .commands.evidence import picked
from .records import STOPPING, ExecutionResult, Runner, Session, Value
from .relation import Relation, head_of

_REASONS = 3
"""Maximum number of reasons in a message; the ``incomplete`` of the value has all reasons."""
_LONGEST = 500
"""Maximum characters of an exception's message."""


@frozen
class CommandDispatcher:
    """Runs commands. ``runners`` maps each command class, except those for control flow, to its function."""

    runners: Mapping[type, Runner] = field(factory=lambda: RUNNERS)

    async def dispatch(self, command: Command, session: Session) -> ExecutionResult:
        """Run ``command`` and bind its value to its variable. Failures are returned as results; only ``StoreError`` is raised."""
        command = with_written_names(command, lambda: session.graph.schema)
        with _limited_source(command, session):
            return await self._dispatch(command, session)

    async def _dispatch(self, command: Command, session: Session) -> ExecutionResult:
        # Determined first, as the command may rebind a name that it reads.
        sources, made = incomplete_sources(command, session), _contents(command, session)
        runner = self.runners.get(type(command))
        if runner is None:
            result = _failed(f"{type(command).__name__} can't be run here")
        else:
            with counted(None if isinstance(command, Analyze | Classify | Process) else _ending(session)) as tally:
                result = await settled(runner(command, session), session)
            result = with_mismatches(result, tally)
        into = next(bound_variables(command), None)
        result = _with_reason(result, into.text if into is not None else "")
        if isinstance(command, Update) and result.status == "success":
            sources |= _incomplete_keys(command.key.text, session, sources)
        result = resting_on(result, sources, fails=isinstance(command, Assert))
        if into is not None and isinstance(result.value, Value) and result.status not in {*STOPPING, "cancelled"}:
            # PARAM recognises its own values by identity.
            value = result.value if isinstance(command, Param) else evolve(result.value, contents=made)
            session.context.set(into.text, value)
        return _shown(result, into.text if into is not None else "", session)


_GRACE = 0.5
"""A command without a partial result ends this many seconds after ``timeout_s``; one with a partial result ends earlier."""


def _ending(session: Session) -> Callable[[], None]:
    """Return a function that raises ``TimeoutError`` if the command has to end because it timed out or was cancelled."""
    seconds, cancel = session.caps.timeout_s, session.cancel
    ends = monotonic() + seconds + _GRACE

    def look() -> None:
        if cancel is not None and cancel.is_set():
            raise TimeoutError("the command was cancelled")
        if monotonic() > ends:
            raise TimeoutError(f"the command took longer than timeout_s ({seconds:g} s)")

    return look


def _contents(command: Command, session: Session) -> Contents:
    """Return the linter's ``Contents`` of a command's result: its kind and its fields."""
    names = [getattr(command, part, None) for part in ("source", "left", "right", "start", "end", "edges")]
    sources = [session.context.contents(name.text) or UNKNOWN for name in names if isinstance(name, Name)]
    return contents_of(command, sources, session.graph.schema)


@contextmanager
def _limited_source(command: Command, session: Session) -> Iterator[None]:
    """Limit the items that UPDATE keeps, and that PROCESS and CLASSIFY send to a model, to the first ``max_results``.

    While the command runs, the variable has only these items and is marked as incomplete.
    """
    most = session.caps.max_results
    name = command.source.text if isinstance(command, Update | Process | Classify) else ""
    value = session.context.value(name)
    if value is None or not isinstance(value.held, list | Relation) or len(value.held) <= most:
        yield
        return
    done = "kept" if isinstance(command, Update) else "sent to a model"
    reason = f"only the first {most:,} of {value.count:,} items of {name} were {done}, limited by max_results"
    cut = evolve(
        value,
        value=head_of(value.held, most),
        evidence=picked(value, range(most)),
        incomplete=(*value.incomplete, reason),
    )
    session.context.set(name, cut)
    try:
        yield
    finally:
        if session.context.value(name) is cut:
            session.context.set(name, value)


def with_mismatches(result: ExecutionResult, tally: Tally) -> ExecutionResult:
    """Add to the summary, for each operation in a condition, the number of rows in which a value has the wrong type.

    Values of several types that order or group rows are added too, and examples of all these values.
    """
    return evolve(result, summary={**result.summary, **tally.counts}) if tally.counts else result


def incomplete_sources(command: Command, session: Session) -> dict[str, tuple[str, ...]]:
    """Return the incomplete variables (also those in ``${...}``) and keys that a command reads, each with its reasons."""
    sources = dict(session.resting)
    if isinstance(command, Require):  # an incomplete value still exists
        return sources
    into = getattr(command, "into", None)
    read = command.condition if isinstance(command, Branch) else command
    for node in walk(read):
        name = node.name if isinstance(node, Variable) else node.text if isinstance(node, Name) else None
        value = session.context.value(name) if name is not None and node is not into else None
        if name is not None and value is not None and value.incomplete:
            sources[name] = value.incomplete
    if isinstance(command, Analyze):
        sources |= _incomplete_keys(command.key.text, session, sources)
    return sources


def _incomplete_keys(key: str, session: Session, sources: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the incomplete keys at or below ``key`` with their reasons. Omit keys whose reasons all occur in ``sources``."""
    snapshot = session.state.snapshot()
    if snapshot.kind(key) is None:
        return {}
    known = {reason for reasons in sources.values() for reason in reasons}
    held = {each.key: each.incomplete for each in snapshot.declared(key)}
    return {name: reasons for name, reasons in held.items() if set(reasons) - known}


def _shown(result: ExecutionResult, name: str, session: Session) -> ExecutionResult:
    """If a result has more than ``max_results`` items, return it as ``partial``, because the record shows only the first items.

    The variable has all items, so the results of later commands are not incomplete.
    """
    most, value = session.caps.max_results, result.value
    if value is None or not isinstance(value.held, list | Relation) or value.count <= most or result.status in STOPPING:
        return result
    message = (
        f"the record shows the first {most:,} of {value.count:,} items, limited by max_results; {name} has all of them"
    )
    return evolve(
        result,
        status="partial",
        shown=most,
        summary={**result.summary, "shown": most},
        caps_hit=(*result.caps_hit, "max_results"),
        message="; ".join(filter(None, (result.message, message))),
        hint=result.hint
        or f"later commands use all items of {name}; SET adapter.caps.max_results higher to show or keep more",
    )


def _with_reason(result: ExecutionResult, name: str) -> ExecutionResult:
    """Return a partial result with its reason added to the ``incomplete`` of its value. Return other results unchanged."""
    if result.status != "partial" or not isinstance(result.value, Value):
        return result
    cut_short = result.message.removesuffix("; there may be more")
    count = f" at {result.count:,} {'item' if result.count == 1 else 'items'}" if result.count is not None else ""
    said = (
        f"was {cut_short}{count}"
        if result.caps_hit and cut_short.startswith("cut short by")
        else f"is partial: {result.message}"
    )
    reason = cut(f"{name or 'the result'} {said}", _LONGEST)
    return evolve(result, value=evolve(result.value, incomplete=(*result.value.incomplete, reason)))


def resting_on(
    result: ExecutionResult, sources: Mapping[str, tuple[str, ...]], *, fails: bool = False
) -> ExecutionResult:
    """Return ``result`` as ``partial``, with the names and reasons of the incomplete ``sources`` that it depends on.

    ``fails`` is true for an assertion: a failed assertion keeps its status, and only the names and reasons are added.
    """
    if not sources or result.status == "cancelled" or (result.status in STOPPING and not fails):
        return result
    reasons = tuple(dict.fromkeys(reason for each in sources.values() for reason in each))
    names = tuple(sources)
    message = f"{result.message}; it {_dependency(names, reasons)}" if result.message else _dependency(names, reasons)
    one = "it" if len(names) == 1 else "them"
    hint = result.hint or f"to complete {one}, raise the cap or narrow the condition, and run the commands again"
    value = result.value
    if value is not None:
        value = evolve(value, incomplete=tuple(dict.fromkeys((*value.incomplete, *reasons))))
    status = result.status if fails and result.status != "success" else "partial"
    return evolve(result, status=status, value=value, message=message, hint=hint, incomplete_from=names)


def _dependency(names: Sequence[str], reasons: Sequence[str]) -> str:
    more = f"; {len(reasons) - _REASONS} more reasons" if len(reasons) > _REASONS else ""
    which = "which is" if len(names) == 1 else "which are"
    return f"depends on {' and '.join(names)}, {which} incomplete: {'; '.join(reasons[:_REASONS])}{more}"


async def settled(work: Awaitable[ExecutionResult], session: Session) -> ExecutionResult:
    """Return the result of ``work``; an exception becomes a failed result. Raises ``StoreError``."""
    try:
        return await work
    except StoreError:
        raise
    except Exception as error:  # any exception of an adapter or client fails only its command
        return failure(error, session)


def failure(error: Exception, session: Session) -> ExecutionResult:
    """Return the result of a command that raised ``error``: status, message and hint, but no traceback."""
    match error:
        case Unbound():
            return ExecutionResult("binding_failure", message=error.message, hint=error.hint)
        case StateError():
            return ExecutionResult(error.status, message=error.message, hint=error.hint)
        case ConditionError() | AdapterError():
            return _failed(error.message, error.hint)
        case LLMError():
            if isinstance(error, BudgetExceeded) and session.events:
                session.events.emit(BudgetReached(session.label, error.message, error.limit))
            return ExecutionResult(
                "error",
                message=error.message,
                hint=error.hint,
                kind=error.kind,
                usage=error.usage,
                calls=error.attempts,
            )
        case TimeoutError():
            return _failed(str(error) or "the command took too long")
        case MemoryError():
            return _failed("not enough memory for this command", "reduce the result with WHERE or LIMIT")
        case RecursionError():
            return _failed("a value is nested too deeply for this command")
    try:
        text = " ".join(str(error).split())
    except Exception:  # ``str(error)`` failed
        text = ""
    return _failed(f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _failed(message: str, hint: str = "") -> ExecutionResult:
    return ExecutionResult("error", message=cut(message, _LONGEST), hint=cut(hint, _LONGEST))
