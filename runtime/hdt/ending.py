"""A question that has its answer already, told again from what was kept: no model is asked, and nothing is run."""

from typing import Any

from .keeping import Kept
from .results import Asked, Explored, Finding, Supposed

__all__ = ["told_again"]


def told_again(kept: Kept) -> Asked:
    """Return the result that was kept; its figures are this attempt's, which are none."""
    end: dict[str, Any] = kept.finished or {}
    supposed, search = end.get("supposed"), end.get("search")
    return Asked(
        kept.question, "complete", str(end.get("answer", "")), supposed=None if supposed is None else Supposed(**supposed),
        cited=tuple(end.get("cited", ())),
        evidence=tuple(Finding(each["key"], each["item"], tuple(each["evidence"])) for each in end.get("evidence", ())),
        steps=tuple(kept.steps), earlier=len(kept.steps), run_id=kept.run_id, state=str(end.get("state", "")),
        uncited=tuple(end.get("uncited", ())), warnings=tuple(kept.damage),
        search=None if search is None else Explored(**search, tree=kept.tree),
        incomplete=tuple(end.get("incomplete", ())),
    )  # fmt: skip
