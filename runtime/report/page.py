"""Assembles the page: the values that the template shows, in reading order."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from ...adapters.graph import GraphAdapter
from ...lang.diagnostic import printable
from .account import Account
from .drawings import draw
from .findings import Group, groups, sources_of, touched
from .steps import told

# The templates of the pages: all values are escaped, and control characters are made visible.


def filled(template: str, **values: Any) -> str:
    """Return the template of this name, filled with ``values``. An undefined name in it is an error."""
    return str(_environment().get_template(template).render(values))


@cache
def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files(__package__ or "")
    loader = FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8"))
    return Environment(autoescape=True, undefined=StrictUndefined, finalize=_shown, loader=loader)


def _shown(value: Any) -> Any:
    """Make control characters, and characters that change the writing direction, visible."""
    return "\n".join(map(printable, value.split("\n"))) if type(value) is str else value


_KEYS, _SUPPOSED = 200, 50
"""Maximum number of keys of the state, and of hypotheses, that are shown."""


def render(
    state: Mapping[str, Any],
    graph: GraphAdapter | None = None,
    questions: Sequence[Account] = (),
    questions_left_out: int = 0,
) -> str:
    """Return the page for the state object. ``graph`` adds names, kinds and edges to the drawing.

    ``questions`` are the questions about the state, the latest first; ``questions_left_out`` counts those not shown.

    ``history`` may be any sequence: only its beginning and end are read. The size of the page is bounded, whatever the state's
    size.
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
"""Number of entries at each end of the history that are searched for how a plan's graph was read."""


def _read(history: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the distinct changes that loading made to the graphs."""
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


# A run as one page: its head, the figures of each phase, and all entries, collapsed.

_KINDS = {
    "script": "A script that was run", "seed": "A Formula Seed at work", "rank": "A ranking",
    "compile": "A task that was compiled to a seed",
    "ask": "A question about a graph",
}  # fmt: skip


def render_run(run: Account) -> str:
    """Return the page. Its size is bounded, whatever the run's size."""
    return filled(
        "run.html.j2", run=run, kind=_KINDS.get(run.kind, f"A run of kind {run.kind}"), counts=_run_counts(run)
    )


def _run_counts(run: Account) -> list[tuple[str, str]]:
    spent = run.totals
    counts = [
        (f"{spent.calls:,}", "call of a model" if spent.calls == 1 else "calls of a model"),
        (f"{spent.tokens:,}", "tokens"),
        (f"${spent.cost:.4f}" if spent.cost is not None else "?", "cost"),
        (f"{spent.seconds:,.1f} s", "in all phases"),
    ]
    if spent.cached:
        counts.append((f"{spent.cached:,}", "answers from the cache"))
    return counts + [(number, what) for what, number in run.facts]
