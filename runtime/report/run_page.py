"""A run as one page: its head, what each phase took, and all that happened, folded away."""

from .account import Account
from .templates import filled

__all__ = ["render_run"]

_KINDS = {
    "script": "A script that was run", "seed": "A Formula Seed at work", "rank": "A ranking",
    "compile": "A task that was compiled to a seed",
    "ask": "A question about a graph",
}  # fmt: skip


def render_run(run: Account) -> str:
    """Return the page. Its size has a bound, whatever the run's is."""
    return filled("run.html.j2", run=run, kind=_KINDS.get(run.kind, f"A run of kind {run.kind}"), counts=_counts(run))


def _counts(run: Account) -> list[tuple[str, str]]:
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
