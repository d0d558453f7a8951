"""Reads the gold table of an evaluation, and binds its labelled items to the items of the target."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...lang.documents.cases import SUFFIX, Case, read_cases
from ...lang.source import Source
from ..loops.evaluate.gold import Gold, GoldError, read_gold
from ..loops.evaluate.script_target import rows_of_cases
from ..loops.evaluate.targets import Target

__all__ = ["bound_gold", "gold_rows"]


def gold_rows(source: Any, query: str | None, encoding: str) -> tuple[str, list[str], list[dict[str, Any]]]:
    """Return the name, the columns and the rows of the gold table. Raises ``TableError`` and ``GoldError``."""
    from ...adapters.tables.factory import open_table

    if (
        isinstance(source, Iterable)
        and isinstance(source, list | tuple)
        and all(isinstance(each, Mapping) for each in source)
    ):
        rows = [dict(each) for each in source]
        columns = list(dict.fromkeys(str(name) for row in rows for name in row))
        return "the gold table", columns, rows
    if isinstance(source, str | Path) and str(source).endswith(SUFFIX):
        rows = rows_of_cases(_cases(Path(source), encoding))
        return str(source), list(dict.fromkeys(name for row in rows for name in row)), rows
    table = open_table(source, query=query, encoding=encoding)
    try:
        return table.name, [column.name for column in table.columns], list(table.rows())
    finally:
        table.close()


def _cases(path: Path, encoding: str) -> tuple[Case, ...]:
    """Return the test cases of a file. Raises ``GoldError`` for faults, and ``OSError``."""
    read = read_cases(Source(path.read_text(encoding=encoding), str(path)))
    faults = [
        f"{path}, line {read.source.position(each.span.start if each.span else 0)[0]}: {each.message}"
        for each in read.diagnostics if each.severity == "error"
    ]  # fmt: skip
    if faults:
        raise GoldError(faults[:20], f"knotwork check {path} shows the places")
    return read.cases


def bound_gold(target: Target, name: str, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Gold:
    """Return the labelled items, bound to the items of ``target``. Raises ``GoldError``."""
    expected = target.expected(columns, rows)
    try:
        gold = read_gold(columns, rows, expected, target.keys(columns), target.bind, name=name, what=target.name)
    except GoldError as error:
        raise GoldError(error.faults, error.hint or _group_hint(target, error)) from None
    faults = target.faults(gold)
    if faults:
        more = [f"and {len(faults) - 20:,} more faults"] if len(faults) > 20 else []
        raise GoldError([*(f"{name}, {fault}" for fault in faults[:20]), *more])
    return gold


def _group_hint(target: Target, error: GoldError) -> str:
    """Return a hint if contexts are unknown because no column groups the rows of a flat table; else ""."""
    contexts = getattr(target, "contexts", ())
    if "unknown context" not in error.message or any(len(each.reviews) != 1 for each in contexts):
        return ""
    return "each row of the contexts is a context of its own; --group COL (Python: group=) puts the rows with equal values together"
