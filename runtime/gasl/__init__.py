"""Runs GASL commands and plans one after the other, and keeps what happened."""

from typing import TYPE_CHECKING, Any

from .errors import ExecutionError, ParseError, PlanError

if TYPE_CHECKING:
    from .executor import GASLExecutor

__all__ = ["ExecutionError", "GASLExecutor", "ParseError", "PlanError"]


def __getattr__(name: str) -> Any:
    """Import the executor when it is asked for: whoever only reads programs needs its errors, and no event loop."""
    if name == "GASLExecutor":
        from .executor import GASLExecutor

        return GASLExecutor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
