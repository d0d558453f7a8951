"""The answers of a finished run, which are scored without a call: results of ``seed run``, or ``items.jsonl`` of an evaluation."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from attrs import evolve

from ....adapters.tables.factory import open_table
from ....adapters.tables.port import TableError
from ....lang.trees.seed import FormulaSeed
from ...seeds.reviews import Context, Review
from ...seeds.seed_results import Counts, Extraction, ResultFault, SeedResult, read_results
from .evaluation_report import ITEMS
from .field_scores import Answer, Status
from .gold import Expected, Gold, GoldError, read_label, shown_key
from .seed_target import SeedTarget, field_answer, of_field, output_answer
from .targets import Target

_STATUSES = frozenset(get_args(Status))
Answers = dict[tuple[int, str], Answer]


TABLES = (".csv", ".tsv", ".parquet", ".duckdb", ".gz")


def read_lines(path: Path, seed: FormulaSeed | None = None) -> tuple[list[SeedResult], list[dict[str, Any]]]:
    """Read a file; return the results of a seed and the items of an evaluation. One of the two lists is empty.

    If ``path`` is a folder, it must be the folder of an evaluation's run. If ``path`` is a table, it must be a table of
    extractions (``seed run --extractions``); ``seed`` then gives the types of the fields. Raises ``GoldError``.
    """
    if path.suffix.lower() in TABLES:
        return _extractions(path, seed), []
    file = path / ITEMS if path.is_dir() else path
    try:
        body = file.read_bytes()
    except OSError as error:
        hint = "write results with: knotwork seed run --out FILE.jsonl"
        raise GoldError([f"the results {path} can't be read: {error.strerror}"], hint) from None
    first = next((line for line in body.split(b"\n") if line.strip()), b"")
    try:
        head = json.loads(first)
    except ValueError:
        head = None
    if isinstance(head, dict) and {"key", "field", "status"} <= head.keys():
        return [], [json.loads(line) for line in body.split(b"\n") if line.strip()]
    try:
        found = read_results(body)
    except ResultFault as error:
        raise GoldError(
            [f"{path} has no results: {error.message}"], "write results with: knotwork seed run --out FILE.jsonl"
        ) from None
    if not found:
        raise GoldError([f"{path} has no results"])
    return found, []


def _extractions(path: Path, seed: FormulaSeed | None) -> list[SeedResult]:
    """Return the results in a table of extractions: ``context index review id FIELD... status error``. Raises ``GoldError``."""
    try:
        table = open_table(path)
        columns = [column.name for column in table.columns]
        rows = list(table.rows())
    except TableError as error:
        raise GoldError([error.message], error.hint) from None
    if not {"context", "review", "status"} <= set(columns):
        hint = "score the table of extractions (seed run --extractions FILE), or JSON lines (seed run --out FILE.jsonl)"
        raise GoldError([f"{path} is not a table of extractions: it has no columns context, review and status"], hint)
    fields = {each.name: of_field(each) for each in seed.fields if each.name in columns} if seed is not None else {}
    found: dict[tuple[int, str], list[Extraction]] = {}
    for row in rows:
        key = (int(row.get("index") or 0), str(row["context"]))
        found.setdefault(key, []).append(_extraction(row, fields))
    return [
        SeedResult(name, index, counts=Counts.of(each, len(each)), extractions=tuple(each))
        for (index, name), each in found.items()
    ]


def _extraction(row: Mapping[str, Any], fields: Mapping[str, Expected]) -> Extraction:
    """Return the extraction in a row.

    Cells are converted to the types of ``fields``; a cell that can't be converted is an invalid value.
    """
    values: dict[str, Any] = {}
    invalid: dict[str, str] = {}
    for name, expected in fields.items():
        raw = row.get(name)
        if raw is None or raw == "":
            values[name] = None
            if row.get(f"{name}__raw") not in (None, ""):
                invalid[name] = str(row[f"{name}__raw"])
            continue
        try:
            values[name] = read_label(raw, expected)
        except ValueError:
            values[name], invalid[name] = None, str(raw)
    confidence = {
        name: float(row[f"{name}__confidence"]) for name in fields if row.get(f"{name}__confidence") not in (None, "")
    }
    own = row.get("id")
    failed = str(row.get("error") or "failed") if row["status"] == "failed" else ""
    made = Extraction(
        int(row["review"]), values, {}, invalid, failed, str(row.get("excerpt") or ""), own if own != "" else None
    )
    return evolve(made, confidence=confidence) if confidence else made


def contexts_of(results: Sequence[SeedResult]) -> list[Context]:
    """Return contexts with the reviews in ``results``, to find the reviews of gold keys.

    The texts are only beginnings of reviews.
    """
    contexts = []
    for result in results:
        reviews = tuple(_review(found) for found in result.extractions)
        contexts.append(Context(result.name, result.index, {"name": result.name}, reviews))
    return contexts


def _review(found: Extraction) -> Review:
    return Review(found.review, found.excerpt, found.meta, found.id)


def seed_answers(
    target: SeedTarget, gold: Gold, results: Sequence[SeedResult], name: str
) -> tuple[Answers, tuple[str, ...]]:
    """Return the answers to the gold items that the results of a seed contain, and notes.

    The results of a context are found by its name and, if several contexts have the same name, by its index. A review without
    an extraction counts as dropped by the filter.
    """
    by_name: dict[str, list[SeedResult]] = {}
    for result in results:
        by_name.setdefault(result.name, []).append(result)
    found: Answers = {}
    missing: set[str] = set()
    for item in gold.items:
        place, number = item.place
        context = target.contexts[place]
        same = by_name.get(context.name, [])
        chosen = same[0] if len(same) == 1 else next((each for each in same if each.index == context.index), None)
        if chosen is None:
            missing.add(context.name)
            continue
        for column in item.labels:
            if column not in target.seed.field_by_name:
                found[item.number, column] = output_answer(column, chosen)
                continue
            review = context.reviews[0 if number is None else number]
            extractions = {each.review: each for each in chosen.extractions}
            if not chosen.extractions and chosen.counts.kept:
                raise GoldError(
                    [f"{name} has no extractions, so fields can't be scored"], "run the seed without --brief"
                )
            found[item.number, column] = field_answer(column, review, extractions, None)
    notes = [f"{name} has no result for {len(missing):,} contexts, such as {sorted(missing)[0]}"] if missing else []
    return found, tuple(notes)


def item_answers(
    target: Target, gold: Gold, rows: Sequence[Mapping[str, Any]], name: str
) -> tuple[Answers, tuple[str, ...]]:
    """Return the answers that the items of an earlier evaluation contain (first candidate, first sample), and notes."""
    candidate = next((row.get("candidate") for row in rows), None)
    by_key = {
        (_key(row["key"]), row["field"]): row for row in rows if row.get("candidate") == candidate and not row.get("repeat")
    }  # fmt: skip
    found: Answers = {}
    missing: list[str] = []
    for item in gold.items:
        for column in item.labels:
            row = by_key.get((_key(item.keys), column))
            if row is None:
                missing.append(shown_key(item.keys))
                continue
            status: Any = row["status"] if row["status"] in _STATUSES else "failed"
            found[item.number, column] = Answer(
                row.get("value"), status, str(row.get("error") or ""), row.get("confidence"), None, float(row.get("seconds") or 0.0),
                row.get("cost"),
            )  # fmt: skip
    notes = [f"{name} has no answer for {len(missing):,} labels, such as that of {missing[0]}"] if missing else []
    return found, tuple(notes)


def _key(keys: Mapping[str, Any]) -> str:
    return json.dumps(keys, sort_keys=True, default=str)
