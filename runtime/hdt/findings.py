"""What the answer rests on: the findings of the state with the evidence beside them, in brief, those that the answer names first."""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from ...adapters.state import Snapshot
from ..records import excerpt
from .results import Finding

__all__ = ["findings", "incomplete"]

_KEYS, _EACH, _PIECES = 12, 5, 3
_TEXT = 200
_NAMES = ("id", "name", "label", "title")


def findings(state: Snapshot, cited: Sequence[str] = ()) -> tuple[Finding, ...]:
    """Return findings of the keys that hold any, at most five of each; cited keys and ids first. Large lists are sampled."""
    named = set(cited)
    declared = [each for each in state.declared() if each.size]
    declared.sort(key=lambda each: (each.key not in named, each.key.partition(".")[0] not in named))
    return tuple(found for each in declared[:_KEYS] for found in _of(state, each.key, each.type, named))


def incomplete(state: Snapshot, cited: Sequence[str] = ()) -> tuple[str, ...]:
    """Return why what an answer rests on is not the whole: of the keys that it cites, or of all where it cites no key."""
    marked = [each for each in state.declared() if each.incomplete]
    keys = {each.key for each in state.declared()}
    named = {name for name in cited if name in keys}
    if named:
        marked = [
            each
            for each in marked
            if any(f"{each.key}.".startswith(f"{name}.") or f"{name}.".startswith(f"{each.key}.") for name in named)
        ]
    return tuple(f"{each.key} is incomplete: {'; '.join(each.incomplete)}" for each in marked)


def _of(state: Snapshot, key: str, kind: str, named: set[str]) -> list[Finding]:
    value, beside = state.get(key), state.evidence(key)
    if kind == "LIST":
        cited = [at for at, item in enumerate(value) if named and _name(item) in named]
        places = list(dict.fromkeys([*cited[:_EACH], *range(min(_EACH, len(value)))]))[:_EACH]
        return [
            Finding(key, excerpt(value[at], _TEXT), _pieces(beside[at] if at < len(beside) else ())) for at in places
        ]
    if kind == "COUNTER":
        if not isinstance(value, Mapping):
            return [Finding(key, excerpt(value, _TEXT), _pieces(beside or ()))]
        first = sorted(value.items(), key=lambda pair: pair[0] not in named)[:_EACH]
        return [
            Finding(f"{key}.{name}", count, _pieces([p for p in beside or () if p.get("key", name) == name]))
            for name, count in first
        ]
    children = {each.key for each in state.declared(key)}
    own = ((name, inner) for name, inner in value.items() if f"{key}.{name}" not in children)
    return [
        Finding(f"{key}.{name}", excerpt(inner, _TEXT), _pieces(beside.get(name, ())))
        for name, inner in islice(own, _EACH)
    ]


def _name(item: Any) -> str:
    if not isinstance(item, Mapping):
        return str(item)
    return next((str(item[name]) for name in _NAMES if item.get(name) is not None), "")


def _pieces(pieces: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    return tuple(excerpt(dict(piece), _TEXT) for piece in pieces[:_PIECES])
