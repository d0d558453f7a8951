"""Runs GASL commands and plans in order, and records the results."""

from typing import TYPE_CHECKING, Any

from .errors import ExecutionError, ParseError, PlanError

if TYPE_CHECKING:
    from .executor import GASLExecutor

__all__ = ["ExecutionError", "GASLExecutor", "ParseError", "PlanError"]


def __getattr__(name: str) -> Any:
    """Import the executor on first access, because code that only reads programs needs the errors but no event loop."""
    if name == "GASLExecutor":
        from .executor import GASLExecutor

        return GASLExecutor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
