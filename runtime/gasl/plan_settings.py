"""``SET``: one setting of the plan under way, within its range and never above the host's ceiling."""

from collections.abc import Mapping
from typing import Any

import attrs

from ...lang.catalogue.settings import SETTINGS, fault_of
from ...lang.diagnostic import nearest
from ...lang.trees.gasl import SetCommand
from .records import ExecutionResult
from .session import Session

__all__ = ["apply", "ceiling_of", "in_force"]

_CAPS = "adapter.caps."


def ceiling_of(session: Session) -> dict[str, float]:
    """Return the host's ceiling by the keys of SET, for the check."""
    return {f"{_CAPS}{name}": value for name, value in attrs.asdict(session.ceiling).items()}


def in_force(session: Session) -> dict[str, Any]:
    """Return what a replay has to set before it begins: caps, ceiling, options, and the models' names."""
    return {
        "caps": attrs.asdict(session.caps),
        "ceiling": attrs.asdict(session.ceiling),
        "options": dict(session.options),
        "models": sorted(session.models),
        "llm": session.llm is not None,
    }


def apply(command: SetCommand, session: Session) -> ExecutionResult:
    """Change one setting until the plan ends."""
    key, value = command.key.text, command.value
    setting = SETTINGS.get(key)
    if setting is None:
        like = nearest(key, SETTINGS)
        return _refused(f"there is no setting {key}", f"did you mean {like}?" if like else _offered(SETTINGS))
    if (fault := fault_of(setting, value)) is not None:
        return _refused(f"{key} {fault}")
    if key.startswith(_CAPS):
        return _cap(key, value, session)
    if key == "llm.model":
        return _model(str(value), session)
    if key == "llm.max_concurrency":
        before: Any = session.max_concurrency
        session.max_concurrency = int(value or 1)
    else:
        name = key.removeprefix("llm.")
        before = session.options.get(name)
        session.options[name] = value
    return _done(key, value, before)


def _cap(key: str, value: Any, session: Session) -> ExecutionResult:
    name = key.removeprefix(_CAPS)
    most = getattr(session.ceiling, name)
    if value > most:
        return _refused(f"{key} may be at most {most:,} here, not {value:,}", f"SET {key} = {most}")
    before = getattr(session.caps, name)
    change: dict[str, Any] = {name: float(value) if isinstance(before, float) else value}
    session.caps = attrs.evolve(session.caps, **change)
    session.chosen |= {name}
    return _done(key, value, before)


def _model(name: str, session: Session) -> ExecutionResult:
    if name not in session.models:
        like = nearest(name, session.models)
        hint = f"did you mean {like}?" if like else _offered(session.models) or "the host offers none by name"
        return _refused(f"no model is offered under the name {name}", hint)
    before, session.options["model"] = session.options.get("model"), name
    return _done("llm.model", name, before)


def _offered(names: Mapping[str, Any]) -> str:
    return f"there are: {', '.join(sorted(names))}" if names else ""


def _done(key: str, value: Any, before: Any) -> ExecutionResult:
    return ExecutionResult(summary={"set": key, "value": value} | ({} if before is None else {"before": before}))


def _refused(message: str, hint: str = "") -> ExecutionResult:
    return ExecutionResult("error", message=message, hint=hint)
