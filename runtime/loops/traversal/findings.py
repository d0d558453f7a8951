"""The evidence for an answer: the findings in the state with their evidence, cited findings first.

``support_of`` checks an answer's citations: a citation names a key, a field or an item of the state, or a command's result.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from attrs import frozen

from ....adapters.state import Declaration, Snapshot, StateStore
from ...excerpts import abridged
from .plan_answer import Completed
from .traversal_results import Finding, Step

_KEYS, _EACH, _PIECES = 12, 5, 3
_TEXT = 200
_NAMES = ("id", "name", "label", "title")
_GOOD = ("success", "partial", "empty")
_SHOWN_KEYS = 20
_ABOUT = ("kind", "model", "temperature", "prompt_hash", "at")
"""Fields of evidence that describe how the evidence was found."""
_MARKS = " \t\n\"'`*_.,;:"
_PREFIX = re.compile(r"(?:the\s+)?(?:state|variables?|keys?)\s*(?:[.:]|\s)\s*(?=\S)", re.IGNORECASE)
_HEAD = re.compile(r"\$?\{?([^\s:=(\[{},;]+)\}?\s*(?:[:=(\[]|$)")
"""The name that begins a citation: ``hubs``, ``${hubs}``, ``hubs[0]``, ``hubs: Valjean``."""


@frozen
class Support:
    """The support for an answer. ``cited`` are citations of known data; ``unknown`` are citations of unknown data.

    ``fault`` is a clause that says why the answer is unsupported; "" if it is supported. ``advice`` tells the model what to do.
    """

    cited: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    fault: str = ""
    advice: str = ""


def support_of(completed: Completed, state: StateStore, steps: Sequence[Step]) -> Support:
    """Check an answer's citations against the state and the command results of the steps.

    An empty key supports an answer if a command wrote the key, or if a command found nothing, so that "nobody" can be an answer. An
    answer without citations is supported if a command of this question found something.
    """
    snapshot = state.snapshot()
    declared = snapshot.declared()
    has = _listed(declared)
    results = list(_results(steps))
    if not completed.cited:
        if any(not _is_empty(entry) for entry in results):
            return Support()
        why = "the commands of this question found nothing" if results else "no command of this question read the graph"
        return Support(fault=f"the answer cites no evidence, and {why}", advice=_advice(has))
    names = _names(snapshot, declared, results)
    known = tuple(
        each for each in completed.cited if _key_of(each, snapshot, declared, results) or each.strip() in names
    )
    unknown = tuple(each for each in completed.cited if each not in known)
    if not known:
        return Support((), unknown, f"the answer cites {_quoted(unknown)}, {_not_found(unknown)}", _advice(has))
    nothing = _looked_in_vain(state, results)
    hollow = [each for each in known if _is_hollow(each, state, snapshot, declared, results, nothing)]
    if len(hollow) == len(known):
        empty = "which is empty" if len(hollow) == 1 else "which are empty"
        fault = f"the answer cites {_quoted(hollow)}, {empty}, and no command has tried to fill {'it' if len(hollow) == 1 else 'them'}"
        return Support((), completed.cited, fault, _advice(has))
    if unknown:
        advice = f"the answer also cites {_quoted(unknown)}, {_not_found(unknown)}; {_advice(has)}"
        return Support(known, unknown, "", advice)
    return Support(known)


def _not_found(unknown: Sequence[str]) -> str:
    return f"which {'is' if len(unknown) == 1 else 'are'} not found in the state or in the results of commands"


def _advice(has: str) -> str:
    return (
        f'{has}; cite in "evidence" the keys and ids that support the answer, '
        "or answer with a plan whose commands find them"
    )


def _listed(declared: Sequence[Declaration]) -> str:
    if not declared:
        return "the state has no keys"
    told = [f"{each.key} ({each.type}, {each.size:,})" for each in declared[:_SHOWN_KEYS]]
    more = f" and {len(declared) - _SHOWN_KEYS:,} more" if len(declared) > _SHOWN_KEYS else ""
    return f"the state has {', '.join(told)}{more}"


def _quoted(cited: Sequence[str]) -> str:
    told = [f'"{abridged(each, 80)}"' for each in cited[:5]]
    return f"{', '.join(told)}{f' and {len(cited) - 5} more' if len(cited) > 5 else ''}"


def _results(steps: Sequence[Step]) -> Iterator[Mapping[str, Any]]:
    """Yield the history entries of commands that bound a variable to a result; the result may be empty."""
    for step in steps:
        for entry in step.entries:
            if entry.get("variable") and entry.get("status") in _GOOD:
                yield entry


def _is_empty(entry: Mapping[str, Any]) -> bool:
    count = (entry.get("summary") or {}).get("count")
    return entry.get("status") == "empty" or count == 0 or entry.get("output") in ([], {}, "")


def _key_of(cited: str, state: Snapshot, declared: Sequence[Declaration], results: Sequence[Mapping[str, Any]]) -> str:
    """Return what a citation begins with: a key, the path of a field in a key, or a variable; "" if it begins with none of them."""
    for path in _paths(cited):
        if any(each.key == path for each in declared) or any(entry["variable"] == path for entry in results):
            return path
        if _has_field(path, state, declared):
            return path
    return ""


def _paths(cited: str) -> Iterator[str]:
    """Yield the keys that a citation may name: the citation itself and its leading name, with or without ``state.``."""
    bare = cited.strip(_MARKS)
    for text in dict.fromkeys((bare, _PREFIX.sub("", bare, count=1))):
        yield text
        if (found := _HEAD.match(text)) is not None:
            yield found[1].strip(_MARKS)


def _has_field(path: str, state: Snapshot, declared: Sequence[Declaration]) -> bool:
    above = max((each.key for each in declared if path.startswith(f"{each.key}.")), key=len, default="")
    if not above:
        return False
    value = state.get(above)
    for name in path[len(above) + 1 :].split("."):
        if not isinstance(value, Mapping) or name not in value:
            return False
        value = value[name]
    return True


def _names(state: Snapshot, declared: Sequence[Declaration], results: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return all strings and numbers in the state, its evidence and the command results: ids, names, sources and others."""
    made: set[str] = set()
    for each in declared:
        value = state.get(each.key)
        if isinstance(value, Mapping):
            made.update(map(str, value))
        _scalars(value, made)
        _scalars(state.evidence(each.key), made, _ABOUT)
    for entry in results:
        _scalars(entry.get("output"), made)
    return made


def _scalars(value: Any, into: set[str], but: Sequence[str] = ()) -> None:
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, Mapping):
            left += (inner for name, inner in each.items() if name not in but)
        elif isinstance(each, list | tuple):
            left += each
        elif each is not None and not isinstance(each, bool):
            into.add(str(each).strip())


def _looked_in_vain(state: StateStore, results: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether at least one command found nothing. In that case, an empty key of the state is a finding, too."""
    found = (*results, *(entry for entry in state.history if entry.get("variable") and entry.get("status") in _GOOD))
    return any(map(_is_empty, found))


def _is_hollow(
    cited: str,
    state: StateStore,
    snapshot: Snapshot,
    declared: Sequence[Declaration],
    results: Sequence[Mapping[str, Any]],
    nothing: bool,
) -> bool:
    """Return whether a citation names a declared, empty key that no command wrote; False if a command found nothing (``nothing``)."""
    key = _key_of(cited, snapshot, declared, results)
    if nothing or not any(each.key == key for each in declared) or _holds(snapshot.get(key)):
        return False
    summaries = [entry.get("summary") or {} for entry in state.history if entry.get("status") in _GOOD]
    return not any("mode" in each and f"{each.get('key')}.".startswith(f"{key}.") for each in summaries)


def _holds(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds, value.values()))
    return bool(value)


def results_of(steps: Sequence[Step]) -> tuple[Finding, ...]:
    """Return the last results of commands, for an answer whose evidence the state does not store."""
    found = list(_results(steps))[-_EACH:]
    return tuple(
        Finding(str(each["variable"]), abridged(each.get("output"), _TEXT), (_command(each),)) for each in found
    )


def _command(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": "command", "command": abridged(entry.get("command"), _TEXT), "status": entry.get("status")}


def findings(state: Snapshot, cited: Sequence[str] = ()) -> tuple[Finding, ...]:
    """Return findings from the non-empty keys, at most five per key, cited keys and ids first. Large lists are sampled."""
    named = {*cited, *(text for each in cited for text in _paths(each))}
    declared = [each for each in state.declared() if each.size or each.key in named]
    declared.sort(key=lambda each: (each.key not in named, each.key.partition(".")[0] not in named))
    return tuple(found for each in declared[:_KEYS] for found in _findings_of_key(state, each.key, each.type, named))


def incomplete(state: Snapshot, cited: Sequence[str] = ()) -> tuple[str, ...]:
    """Return why the evidence for an answer is incomplete: the reasons of the cited keys, or of all keys if no key is cited."""
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


def _findings_of_key(state: Snapshot, key: str, kind: str, named: set[str]) -> list[Finding]:
    value, beside = state.get(key), state.evidence(key)
    if not _holds(value) and key in named:
        return [Finding(key, abridged(value, _TEXT), _pieces(beside or ()) if kind == "COUNTER" else ())]
    if kind == "LIST":
        cited = [at for at, item in enumerate(value) if named and _name(item) in named]
        places = list(dict.fromkeys([*cited[:_EACH], *range(min(_EACH, len(value)))]))[:_EACH]
        return [
            Finding(key, abridged(value[at], _TEXT), _pieces(beside[at] if at < len(beside) else ())) for at in places
        ]
    if kind == "COUNTER":
        if not isinstance(value, Mapping):
            return [Finding(key, abridged(value, _TEXT), _pieces(beside or ()))]
        first = sorted(value.items(), key=lambda pair: pair[0] not in named)[:_EACH]
        return [
            Finding(f"{key}.{name}", count, _pieces([p for p in beside or () if p.get("key", name) == name]))
            for name, count in first
        ]
    children = {each.key for each in state.declared(key)}
    own = ((name, inner) for name, inner in value.items() if f"{key}.{name}" not in children)
    return [
        Finding(f"{key}.{name}", abridged(inner, _TEXT), _pieces(beside.get(name, ())))
        for name, inner in islice(own, _EACH)
    ]


def _name(item: Any) -> str:
    if not isinstance(item, Mapping):
        return str(item)
    return next((str(item[name]) for name in _NAMES if item.get(name) is not None), "")


def _pieces(pieces: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    return tuple(abridged(dict(piece), _TEXT) for piece in pieces[:_PIECES])
