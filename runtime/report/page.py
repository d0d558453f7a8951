"""Puts the page together: what the template shows, in the order of reading."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...adapters.graph import GraphAdapter
from .account import Account
from .drawing import draw
from .findings import Group, groups, sources_of, touched
from .steps import told
from .templates import filled

__all__ = ["render"]

_KEYS, _SUPPOSED = 200, 50
"""Keys of the state, and hypotheses, that are told."""


def render(
    state: Mapping[str, Any],
    graph: GraphAdapter | None = None,
    questions: Sequence[Account] = (),
    questions_left_out: int = 0,
) -> str:
    """Return the page for the state object. ``graph`` adds names, kinds and edges to the drawing.

    ``questions`` are those that were asked of the state, the latest first; ``questions_left_out`` counts those that are not told.

    ``history`` may be any sequence: only its beginning and its end are read. The page's size has a bound, whatever the state's is.
    """
    found = groups(state)
    history = state.get("history") or ()
    steps = told(history)
    config = state.get("config", {})
    return filled(
        "page.html.j2",
        query=state.get("query") or "",
        graph=_of(config, "adapter", "path"),
        graph_read=_read(history),
        model=_of(config, "llm", "model"),
        when=_when(state),
        counts=_counts(state, found, history),
        hypotheses=_supposed(history),
        groups=found[:_KEYS],
        keys_left_out=max(0, len(found) - _KEYS),
        drawing=draw(*touched(found), graph),
        steps=steps,
        questions=questions,
        questions_left_out=questions_left_out,
    )


_LOOKED = 100
"""Entries at each end of the history in which a plan says how its graph was read."""


def _read(history: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what loading rewrote in the graphs, each once."""
    told: dict[str, None] = {}
    for entry in (*history[:_LOOKED], *history[max(_LOOKED, len(history) - _LOOKED) :]):
        plan = entry.get("plan") if isinstance(entry, Mapping) else None
        lines = plan.get("graph_read") if isinstance(plan, Mapping) else None
        told |= dict.fromkeys(str(line) for line in lines) if isinstance(lines, list) else {}
    return list(told)


def _of(config: Any, part: str, name: str) -> str:
    inner = config.get(part, {}) if isinstance(config, Mapping) else {}
    return str(inner.get(name) or "") if isinstance(inner, Mapping) else ""


def _when(state: Mapping[str, Any]) -> str:
    begun, ended = (str(state.get(name) or "")[:16].replace("T", " ") for name in ("created_at", "updated_at"))
    return f"Begun {begun}, last changed {ended} (UTC)." if begun else ""


def _supposed(history: Sequence[Any]) -> list[str]:
    entries = (entry for entry in history[:1_000] if isinstance(entry, Mapping) and entry.get("hypothesis"))
    return list(dict.fromkeys(str(entry["hypothesis"])[:1_000] for entry in entries))[:_SUPPOSED]


def _counts(state: Mapping[str, Any], found: Sequence[Group], history: Sequence[Any]) -> list[tuple[str, str]]:
    findings = sum(group.count for group in found)
    answers = _answers(state)
    counts = [
        (findings, "finding" if findings == 1 else "findings"),
        (sum(group.backed for group in found), "with evidence"),
        (sources := sources_of(state), "source named" if sources == 1 else "sources named"),
        (len(history), "step" if len(history) == 1 else "steps"),
        (answers, "answer of a model" if answers == 1 else "answers of a model"),
    ]
    return [(f"{number:,}", what) for number, what in counts]


def _answers(state: Mapping[str, Any]) -> int:
    if isinstance(counted := state.get("answers"), int):
        return counted
    replay = state.get("replay")
    answers = replay.get("answers") if isinstance(replay, Mapping) else None
    return len(answers) if isinstance(answers, Sequence) else 0
