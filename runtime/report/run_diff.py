"""Compares two stored runs: which prompts, answers, results and options differ. Runs of any kind that ``runs.journal`` records.

A record of an answer has a hash of its request: prompt, type, model name and options. The texts of prompts come from the event logs, which
runs of scripts and loops have. See ``docs/reference/runs.md#comparing-runs``.
"""

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from attrs import field, frozen

from ..lwt.row_results import FINAL
from ..runs.event_log import read_log
from ..runs.journal import EACH, SEED, Damage, RunError, find_folder, whole_records
from ..seeds.result_store import FILE as RESULTS
from ..seeds.result_store import StoredResults

Change = Literal["same", "changed", "added", "removed", "none", "unknown"]
"""``none``: the step itself makes no call, such as EXPR, or EACH, whose items do. ``unknown``: a run has no hash of the request, such
as for a step that failed before its call."""


@frozen
class StepDiff:
    """The differences of a step, an item, a review or a call. ``place`` names it.

    ``prompt`` and ``answer`` say what changed; ``before`` and ``after`` are the answers, or the reasons of failures (None: the run
    has no such step). ``prompts`` are both prompts, if the runs have them.
    """

    place: str
    prompt: Change
    answer: Change
    before: str | None
    after: str | None
    prompts: tuple[str, str] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the difference as JSON."""
        return {
            "place": self.place, "prompt": self.prompt, "answer": self.answer, "before": self.before, "after": self.after,
            "prompts": None if self.prompts is None else list(self.prompts),
        }  # fmt: skip


@frozen
class RunDiff:
    """The differences between two runs. ``before`` and ``after`` describe the runs (id, kind, name, model, status).

    ``options`` maps the paths of options that differ to both values (None: not set). ``text`` is the unified diff of the scripts or
    seeds ("" if they are equal). ``input`` is whether the inputs differ (None: at least one is unknown). ``steps`` are the places that
    differ; ``counts`` counts all places by what changed in prompt and answer. ``results`` are the contexts, rows or steps whose results
    differ. ``warnings`` are about damaged records.
    """

    before: Mapping[str, str]
    after: Mapping[str, str]
    options: Mapping[str, tuple[Any, Any]]
    text: str
    input: bool | None
    steps: tuple[StepDiff, ...]
    counts: Mapping[str, Mapping[str, int]]
    results: tuple[StepDiff, ...] = ()
    warnings: tuple[str, ...] = field(default=())

    @property
    def is_equal(self) -> bool:
        """Whether the runs differ only in their ids, times and costs."""
        same_model = all(self.before[name] == self.after[name] for name in ("model", "status"))
        return same_model and not (self.options or self.text or self.input or self.steps or self.results)

    def as_json(self) -> dict[str, Any]:
        """Return the differences as JSON."""
        return {
            "before": dict(self.before), "after": dict(self.after), "equal": self.is_equal,
            "options": {name: list(values) for name, values in self.options.items()}, "text": self.text, "input_changed": self.input,
            "counts": {name: dict(each) for name, each in self.counts.items()},
            "steps": [each.as_json() for each in self.steps], "results": [each.as_json() for each in self.results],
            "warnings": list(self.warnings),
        }  # fmt: skip


@frozen
class _Entry:
    """An answer of a run: the hash of its request ("" if there is none), and its text."""

    digest: str
    text: str
    failed: bool = False


@frozen
class _Side:
    """One of the two runs."""

    path: Path
    head: Mapping[str, Any]
    entries: Mapping[str, _Entry]
    status: str
    warnings: tuple[str, ...]

    @property
    def kind(self) -> str:
        return str(self.head.get("kind") or "script")

    def described(self) -> dict[str, str]:
        head = self.head
        texts = {name: str(head.get(name, "")) for name in ("run", "name", "model")}
        return {**texts, "kind": self.kind, "started": str(head.get("time", "")), "status": self.status}


def diff_runs(before: str | Path, after: str | Path, *, base: Path | None = None) -> RunDiff:
    """Compare two stored runs; each is an id or a folder. Raises ``RunError`` for an unknown run, and for runs of different kinds."""
    one, other = _read(find_folder(before, base)), _read(find_folder(after, base))
    kinds = {one.kind, other.kind}
    if len(kinds) > 1:
        raise RunError(
            f"run {one.head['run']} is of kind {one.kind}, run {other.head['run']} of kind {other.kind}",
            "compare runs of the same kind",
        )
    places = list(dict.fromkeys((*one.entries, *other.entries)))
    found = [_compared(place, one.entries.get(place), other.entries.get(place)) for place in places]
    counts: dict[str, dict[str, int]] = {"prompt": {}, "answer": {}}
    for each in found:
        for name, change in (("prompt", each.prompt), ("answer", each.answer)):
            if change == "none":
                continue
            counts[name][change] = counts[name].get(change, 0) + 1
    changed = [each for each in found if not (each.answer == "same" and each.prompt in ("same", "none", "unknown"))]
    texts = _prompts(one.path), _prompts(other.path)
    steps = tuple(_with_prompts(each, *texts) for each in changed)
    hashes = [str(side.head.get("input_hash") or "") for side in (one, other)]
    return RunDiff(
        one.described(), other.described(), _options(one.head, other.head), _text_diff(one.head, other.head),
        hashes[0] != hashes[1] if all(hashes) else None, steps, counts, tuple(_results(one, other)),
        (*one.warnings, *other.warnings),
    )  # fmt: skip


def _read(path: Path) -> _Side:
    head: dict[str, Any] = {}
    entries: dict[str, _Entry] = {}
    calls: dict[str, int] = {}
    status, warnings = "running or interrupted", []
    for place, found in enumerate(whole_records(path)):
        if isinstance(found, Damage):
            warnings.append(f"{path.name}: a damaged record at byte {found.start} is left out")
            continue
        record = found[1]
        if place == 0:
            head = record
            continue
        match record.get("record"):
            case "run_finished":
                status = str(record.get("status"))
            case "run_resumed":
                status = "running or interrupted"
            case _:
                for name, entry in _entries(record, calls):
                    entries[name] = entry
    return _Side(path, head, entries, status, tuple(warnings))


def _entries(record: Mapping[str, Any], calls: dict[str, int]) -> Iterator[tuple[str, _Entry]]:
    """Yield the answers in a record, with the names of their places."""
    match record.get("record"):
        case "step_done" | "item_done" if isinstance(record.get("step"), str):
            item = record.get("item")
            place = f"({record['step']})" + ("" if item is None else f" item {item}")
            failed = record.get("status", "done") not in ("done", "skipped")
            text = f"failed: {record.get('reason', '')}" if failed else str(record.get("output", ""))
            yield place, _Entry(str(record.get("input_hash") or ""), text, failed)
        case "extraction_done":
            fault = str(record.get("failed") or "")
            text = f"failed: {fault}" if fault else _json(record.get("extraction"))
            place = f"context {record.get('context')}, review {record.get('review')}"
            yield place, _Entry(str(record.get("digest") or ""), text, bool(fault))
        case "call_done":  # of an evaluation: the request itself is the place
            key = f"{record.get('candidate')}, repeat {record.get('repeat')}, request {str(record.get('key'))[:16]}"
            calls[key] = calls.get(key, 0) + 1
            place = key if calls[key] == 1 else f"{key}, answer {calls[key]}"
            yield place, _Entry(str(record.get("key") or ""), str(record.get("text", "")))


def _compared(place: str, one: _Entry | None, other: _Entry | None) -> StepDiff:
    if one is None or other is None:
        change: Change = "added" if one is None else "removed"
        return StepDiff(place, change, change, None if one is None else one.text, None if other is None else other.text)
    prompt: Change = "same" if one.digest == other.digest else "changed"
    if not (one.digest and other.digest):
        prompt = "unknown" if one.digest or other.digest or one.failed or other.failed else "none"
    return StepDiff(place, prompt, "same" if one.text == other.text else "changed", one.text, other.text)


def _prompts(path: Path) -> dict[str, str]:
    """Return the prompts in the event log of a run by place; {} without a log."""
    found: dict[str, str] = {}
    try:
        for event in read_log(path):
            if event.get("event") == "call.started" and isinstance(event.get("step"), str):
                item = event.get("item")
                found[f"({event['step']})" + ("" if item is None else f" item {item}")] = str(event.get("prompt", ""))
    except OSError:
        return {}
    return found


def _with_prompts(step: StepDiff, before: Mapping[str, str], after: Mapping[str, str]) -> StepDiff:
    from attrs import evolve

    if step.prompt != "changed" or step.place not in before or step.place not in after:
        return step
    return evolve(step, prompts=(before[step.place], after[step.place]))


_VOLATILE = ("out", "extractions")
"""Options that say where results are written; they don't change the results."""


def _options(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    sides = []
    for head in (one, other):
        made = {name: head.get(name) for name in ("mode",)}
        made |= {f"versions.{name}": value for name, value in (head.get("versions") or {}).items()}
        made |= {name: value for name, value in (head.get("options") or {}).items() if name not in _VOLATILE}
        sides.append(made)
    names = dict.fromkeys((*sides[0], *sides[1]))
    return {
        name: (sides[0].get(name), sides[1].get(name)) for name in names if sides[0].get(name) != sides[1].get(name)
    }


def _text_diff(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    if one.get("script_hash") == other.get("script_hash"):
        return ""
    lines = [str(head.get("script", "")).splitlines() for head in (one, other)]
    before, after = [f"{head.get('name')} ({head.get('run')})" for head in (one, other)]
    return "\n".join(difflib.unified_diff(lines[0], lines[1], before, after, lineterm=""))


def _results(one: _Side, other: _Side) -> Iterator[StepDiff]:
    """Yield the results of contexts or rows that differ."""
    if one.kind not in (SEED, EACH) or other.kind != one.kind:
        return
    sides = [StoredResults.read(side.path / RESULTS) for side in (one, other)]
    for index in sorted({*sides[0].places, *sides[1].places}):
        texts = [_result_text(one.kind, side.document(index)) if index in side.places else None for side in sides]
        if texts[0] != texts[1]:
            names = next(side.names[index][0] for side in sides if index in side.names)
            noun = "row" if one.kind == EACH else "context"
            change: Change = "added" if texts[0] is None else "removed" if texts[1] is None else "changed"
            yield StepDiff(f"{noun} {index} ({names})", "none", change, texts[0], texts[1])


def _result_text(kind: str, document: Mapping[str, Any]) -> str:
    if kind == EACH:
        shown = {"status": document.get("status"), FINAL: document.get(FINAL), "error": document.get("error")}
    else:
        shown = {"status": document.get("status"), "outputs": document.get("outputs"), "errors": document.get("errors")}
    return _json({name: value for name, value in shown.items() if value not in (None, [])})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def unified(before: str, after: str, context: int = 2) -> Sequence[str]:
    """Return the lines of the unified diff of two texts, without its head."""
    made = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=context)
    return [line for line in made if not line.startswith(("---", "+++", "@@"))]
