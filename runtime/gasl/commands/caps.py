"""Results that a cap cut short, and the messages about them."""

from collections.abc import Callable, Sequence
from time import monotonic

from attrs import evolve

from ....adapters.graph import Caps
from ..records import ExecutionResult, Session

_CAPS = {
    "max_path_length": "max_path_length ({0.max_path_length})",
    "max_results": "max_results ({0.max_results:,})",
    "max_rows": "max_rows ({0.max_rows:,})",
    "max_examined": "max_examined ({0.max_examined:,})",
    "max_paths": "max_paths ({0.max_paths:,})",
    "timeout_s": "timeout_s ({0.timeout_s:g} s)",
}


def caps_message(hit: Sequence[str], caps: Caps) -> str:
    """Return a message that names the caps that cut a result short; "" if no cap was hit."""
    if not hit:
        return ""
    named = [_CAPS[name].format(caps) if name in _CAPS else name for name in hit]
    return f"cut short by {' and '.join(named)}; there may be more"


LOOK = 4096
"""Number of rows between two checks of the clock."""


def clock(session: Session) -> Callable[[], bool]:
    """Return a function that says whether the command must end: it was cancelled, or ``timeout_s`` passed since this call."""
    ends, cancel = monotonic() + session.caps.timeout_s, session.cancel
    return lambda: monotonic() > ends or (cancel is not None and cancel.is_set())


def cut_short(result: ExecutionResult, session: Session, cap: str = "max_rows") -> ExecutionResult:
    """Return ``result`` with the status ``partial``, because a cap limited it."""
    hint = f"use fewer items, or SET adapter.caps.{cap} higher"
    return evolve(
        result, status="partial", caps_hit=(cap,), message=caps_message((cap,), session.caps), hint=result.hint or hint
    )
