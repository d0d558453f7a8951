"""Changes as JSON, as the journal keeps them. What passes here is checked and copied: nobody outside can change it any more."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...state import Change, DeclareKey, Evidence, MergeInto, ReplaceWith, ResetKey, StateError
from .values import whole_copy

__all__ = ["change_of", "written"]


def written(change: Change) -> tuple[bytes, dict[str, Any]]:
    """Return a change as JSON text, and what that text says. Raises ``StateError`` that names the place, for what is no JSON.

    ``{"do": "declare", "key", "type", "description"}``, ``{"do": "reset", "key"}``, ``{"do": "merge" | "replace", "key",
    "value", "evidence"?, "incomplete"?}``.
    """
    if isinstance(change, DeclareKey):
        plain: dict[str, Any] = {
            "do": "declare", "key": change.key, "type": change.type, "description": change.description
        }  # fmt: skip
    elif isinstance(change, ResetKey):
        plain = {"do": "reset", "key": change.key}
    else:
        do = "merge" if isinstance(change, MergeInto) else "replace"
        plain = {"do": do, "key": change.key, "value": change.value}
        evidence = _plain_evidence(change.key, change.evidence)
        if evidence:
            plain["evidence"] = evidence
        if change.incomplete:
            plain["incomplete"] = list(change.incomplete)
    return whole_copy(f"a change of {str(change.key)[:100]!a}", plain)


def _plain_evidence(key: str, evidence: Any) -> list[list[Any]] | dict[str, list[Any]]:
    if isinstance(evidence, Mapping):
        return {name: _group(key, group) for name, group in evidence.items() if group}
    groups = [_group(key, group) for group in evidence]
    while groups and not groups[-1]:
        groups.pop()
    return groups


def _group(key: str, group: Sequence[Evidence]) -> list[Any]:
    if type(group) is list and all([type(each) is dict for each in group]):
        return group  # as nearly all are; it is copied when it is written
    if isinstance(group, list | tuple) or not isinstance(group, Mapping | str | bytes):
        pieces = list(group)
        if all(type(each) is dict or isinstance(each, Mapping) for each in pieces):
            return [each if type(each) is dict else dict(each) for each in pieces]
    raise StateError(f"the evidence for {key} must be lists of objects", status="schema_mismatch")


def change_of(plain: Mapping[str, Any]) -> Change:
    """Return the change that was written. Raises ``ValueError`` or ``KeyError`` for anything else."""
    do = plain["do"]
    if do == "declare":
        return DeclareKey(plain["key"], plain["type"], plain["description"])
    if do == "reset":
        return ResetKey(plain["key"])
    if do == "merge":
        return MergeInto(plain["key"], plain["value"], plain.get("evidence", ()), tuple(plain.get("incomplete", ())))
    if do == "replace":
        return ReplaceWith(plain["key"], plain["value"], plain.get("evidence", ()), tuple(plain.get("incomplete", ())))
    raise ValueError(f"no change is called {do!r}")
