"""From a command to its runner, and from what a runner raises to a status. Seed 003, ``CommandDispatcher``."""

from collections.abc import Awaitable, Mapping
from typing import Any

from attrs import field, frozen

from ..adapters.graph import AdapterError
from ..adapters.llm import BudgetExceeded, LLMError
from ..adapters.state import StateError, StoreError
from ..lang.evaluate.conditions import ConditionError, Unbound
from ..lang.gasl import Command
from .commands import RUNNERS
from .context import Value
from .events import BudgetReached
from .records import STOPPING, ExecutionResult, cut
from .session import Runner, Session

__all__ = ["CommandDispatcher", "failure", "settled"]

_LONGEST = 500
"""Characters that are kept of what a runner raised."""


@frozen
class CommandDispatcher:
    """Runs commands. ``runners`` has the function for every class of command that is not control flow."""

    runners: Mapping[type, Runner] = field(factory=lambda: RUNNERS)

    async def dispatch(self, command: Command, session: Session) -> ExecutionResult:
        """Run ``command`` and bind its value to its variable. What fails is a result; only ``StoreError`` is raised."""
        result = await self._run(command, session)
        into = getattr(command, "into", None)
        if into is not None and isinstance(result.value, Value) and _binds(result):
            session.context.set(into.text, result.value)
        return result

    async def _run(self, command: Command, session: Session) -> ExecutionResult:
        runner = self.runners.get(type(command))
        if runner is None:
            return _failed(f"{type(command).__name__} can't be run here")
        return await settled(runner(command, session), session)


async def settled(work: Awaitable[ExecutionResult], session: Session) -> ExecutionResult:
    """Return what ``work`` gives, or what it raises as a result. Raises ``StoreError``."""
    try:
        return await work
    except StoreError:
        raise
    except Exception as error:  # an adapter or a client may raise anything; it fails its command, not the plan
        return failure(error, session)


def failure(error: Exception, session: Session) -> ExecutionResult:
    """Return the result of a command that raised ``error``: status, message, hint, no traceback."""
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
            return _failed("there is not enough memory for this command", "ask for less: a WHERE, a LIMIT")
        case RecursionError():
            return _failed("a value nests too deeply for this command")
    return _failed(_said(error))


def _binds(result: ExecutionResult) -> bool:
    return result.status not in STOPPING and result.status != "cancelled"


def _failed(message: str, hint: str = "") -> ExecutionResult:
    return ExecutionResult("error", message=cut(message, _LONGEST), hint=cut(hint, _LONGEST))


def _said(error: Any) -> str:
    """Return what ``error`` says in one line; an exception may fail at that too."""
    try:
        text = " ".join(str(error).split())
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
