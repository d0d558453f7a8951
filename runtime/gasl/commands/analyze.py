"""ANALYZE: a model answers from a bounded excerpt of a state key and cites the parts that its answer is based on."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from attrs import frozen

from ....adapters.state import Evidence, Snapshot, StateError
from ....lang.diagnostic import nearest
from ....lang.evaluate.conditions import identity
from ....lang.trees.gasl import Analyze
from ...excerpts import clipped, excerpt
from ..records import ExecutionResult, Runner, Session, Status, Value
from .bindings import Refused, refusing
from .evidence import Lazy, united
from .model_answers import analysis
from .model_calls import (
    Answer,
    Asker,
    Unanswered,
    analyze_schema,
    build_analyze_prompt,
    build_repair_prompt,
    own_id,
    prompt_items,
)

_CHARACTERS = 8_000
_ITEMS = 60
"""Maximum number of sampled items of one list."""
_PARTS = 200
_PART = 800


@frozen
class _Part:
    """A part of the state that the prompt shows: its key, its value, and its name in evidence."""

    key: str
    name: Any
    value: Any
    field: str | None = None


@refusing
async def run_analyze(command: Analyze, session: Session) -> ExecutionResult:
    """Run ANALYZE: return ``{"answer", "rationale", "evidence"}``; ``evidence`` lists the cited parts of the state.

    A part is listed by its id or, if it has none, by its name (``key[3]``). If an answer cites parts that were not shown, the
    model is called once more. Citations that are still wrong are dropped, and the status is ``partial``.
    """
    key, snapshot = command.key.text, session.state.snapshot()
    if snapshot.kind(key) is None:
        names = [declaration.key for declaration in snapshot.declared()]
        like = nearest(key, names)
        hint = f"did you mean {like}?" if like else f"add DECLARE {key} AS LIST, DICT or COUNTER"
        raise Refused("binding_failure", f"the state has no key {key}", hint)
    parts, lines, omitted = _excerpt(key, snapshot)
    if not parts:
        return ExecutionResult("empty", Value(None), 0, {"count": 0}, message=f"{key} is empty: no model was called")
    seen = prompt_items(parts, [part.name for part in parts])
    references = seen.references
    text = "\n".join(f"{reference} {line}" for reference, line in zip(references, lines, strict=True))
    if omitted:
        text += f"\n… [{omitted}]"
    reasons = dict.fromkeys(reason for each in snapshot.declared(key) for reason in each.incomplete)
    if reasons:
        text += f"\n… [the data is incomplete: {clipped('; '.join(reasons), _PART)}]"
    prompt, schema = build_analyze_prompt(text, command.instruction, first=references[0]), analyze_schema(references)
    known, asker = seen.known(range(len(parts))), Asker(session)
    answer, found, cited, faults = await _answer_with_repair(asker, prompt, schema, known)
    if isinstance(answer, Unanswered):
        failed = answer.failed
        status: Status = "schema_mismatch" if failed.kind == "bad_answer" else "error"
        return asker.metered(ExecutionResult(status, message=failed.message, hint=failed.hint, kind=failed.kind))
    if found is None:
        return asker.metered(ExecutionResult("schema_mismatch", message=f"the answer does not fit: {faults[0]}"))
    value = {**found, "evidence": [parts[index].name for index in cited]}
    ids = [part.name for part in parts]

    def evidence(_: int) -> Sequence[Evidence]:
        piece = answer.evidence(asker.temperature, ids, [ids[index] for index in cited])
        return (piece, *united([_own_evidence(snapshot, parts[index]) for index in cited]))

    return asker.metered(
        ExecutionResult(
            "partial" if faults else "success",
            Value(value, Lazy(1, evidence)),
            1,
            {"count": 1, "shown": len(parts), "cited": len(cited)},
            message=f"evidence was dropped: {'; '.join(faults[:3])}" if faults else omitted,
            failed_items=tuple({"id": None, "reason": fault} for fault in faults),
        )
    )


async def _answer_with_repair(
    asker: Asker, prompt: str, schema: dict[str, Any], known: dict[str, int]
) -> tuple[Answer | Unanswered, dict[str, Any] | None, tuple[int, ...], tuple[str, ...]]:
    """Return the answer (or an ``Unanswered`` instead), the parsed result, the citations and the errors."""
    try:
        answer, judged = await _ask(asker, prompt, schema, known)
    except Unanswered as unanswered:
        return unanswered, None, (), ()
    if judged[2] and not answer.repaired:
        asker.retried(judged[2][0])
        try:
            second, rejudged = await _ask(asker, build_repair_prompt(prompt, answer.text, judged[2]), schema, known)
        except Unanswered:
            pass  # the first answer may be usable with its correct citations
        else:
            if rejudged[0] is not None:
                answer, judged = second, rejudged
    return answer, *judged


async def _ask(asker: Asker, prompt: str, schema: dict[str, Any], known: dict[str, int]) -> tuple[Answer, Any]:
    try:
        answer = await asker.ask(prompt, schema=schema)
    except Unanswered as unanswered:
        if unanswered.answer is None:
            raise
        judged = analysis(unanswered.answer.text, known)
        if judged[0] is None:
            raise
        return unanswered.answer, judged
    return answer, analysis(answer.text, known)


def _excerpt(key: str, snapshot: Snapshot) -> tuple[list[_Part], list[str], str]:
    """Return the selected parts of the state, their lines in the prompt, and notes on the omitted parts."""
    parts: list[_Part] = []
    lines: list[str] = []
    size = left = 0
    notes: list[str] = []
    for part in islice(_parts(key, snapshot, notes), _PARTS):
        where = part.name if part.field is None and part.name == part.key else part.key
        line = f"{where} {excerpt(part.value, _PART)}"
        if size + len(line) > _CHARACTERS:
            left += 1
            continue
        size += len(line)
        parts.append(part)
        lines.append(line)
    if left:
        notes.append(f"{left:,} parts more")
    return parts, lines, "; ".join(notes)


def _parts(key: str, snapshot: Snapshot, notes: list[str]) -> Iterator[_Part]:
    """Yield the parts of the state under a key and under the keys declared in it."""
    for declaration in snapshot.declared(key):
        at = declaration.key
        if declaration.type == "LIST":
            length, items = snapshot.sample(at, _ITEMS)
            if length > len(items):
                notes.append(f"{at} has {length:,} items; {len(items)} of them are shown")
            positions = _positions(at, items, length, snapshot)
            for item, position in zip(items, positions, strict=True):
                yield _Part(at, position, item)
        elif declaration.type == "COUNTER":
            value = snapshot.get(at)
            if value not in (0, {}, None):
                yield _Part(at, at, value)
        elif declaration.size:
            for name, value in islice(_own_fields(at, snapshot), _PARTS):
                yield _Part(at, f"{at}.{name}", {name: value}, name)


def _positions(key: str, items: Sequence[Any], length: int, snapshot: Snapshot) -> Sequence[Any]:
    """Return the name of each item of a sample in evidence: the item's own id or, without an id, ``key[index]``."""
    own = [own_id(item) for item in items]
    if None not in own:
        return own
    indices: Mapping[Any, int] = {}
    if length > len(items):
        wanted = {identity(item) for item in items}
        every = enumerate(snapshot.get(key))
        indices = {known: at for at, item in every if (known := identity(item)) in wanted}
    return [
        name if name is not None else f"{key}[{indices.get(identity(item), at)}]"
        for at, (name, item) in enumerate(zip(own, items, strict=True))
    ]


def _own_fields(key: str, snapshot: Snapshot) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a DICT that are not declared keys."""
    declared = {declaration.key for declaration in snapshot.declared(key)}
    value = snapshot.get(key)
    if isinstance(value, dict):
        yield from ((name, inner) for name, inner in value.items() if f"{key}.{name}" not in declared)


def _own_evidence(snapshot: Snapshot, part: _Part) -> Sequence[Evidence]:
    """Return the evidence that the state stores for a part."""
    try:
        beside = snapshot.evidence(part.key)
    except StateError:
        return ()
    if isinstance(beside, dict):
        return beside.get(part.field, ()) if part.field is not None else ()
    if not beside:
        return ()
    if snapshot.kind(part.key) == "COUNTER":
        return united([[piece] for piece in beside])
    wanted = identity(part.value)
    index = next((at for at, item in enumerate(snapshot.get(part.key)) if identity(item) == wanted), None)
    return beside[index] if index is not None and index < len(beside) else ()


RUNNERS: dict[type, Runner] = {
    Analyze: run_analyze,
}
