"""Results and extractions as tables. The types of the columns come from the seed, not from the values. See ``docs/reference/tables.md``."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
from attrs import field, frozen

from ...adapters.tables.cells import text_of, typed
from ...adapters.tables.port import Column, ColumnType
from ...lang.evaluate.seed.output_types import OutputType, output_types
from ...lang.trees.seed import FormulaSeed
from .result_store import ResultSource
from .seed_results import is_unasked

COUNTS = ("reviews", "kept", "extracted", "invalid", "failed", "not_asked", "cut")
_USAGE = ("calls", "prompt_tokens", "completion_tokens")
_NAME: Sequence[tuple[str, ColumnType]] = (("name", "text"),)
_OWN: Sequence[tuple[str, ColumnType]] = (("index", "int"), ("status", "text"))
_LAST: Sequence[tuple[str, ColumnType]] = (
    *((name, "int") for name in (*COUNTS, *_USAGE)), ("estimated", "bool"), ("cost", "float"), ("errors", "json"),
    ("failed_reviews", "json"),
)  # fmt: skip
_OUTPUTS: Mapping[OutputType, ColumnType] = {
    "count": "int",
    "number": "float",
    "text": "text",
    "bool": "bool",
    "json": "json",
}
_FIELDS: Mapping[str, ColumnType] = {
    "int": "int",
    "float": "float",
    "bool": "bool",
    "enum": "text",
    "text": "text",
    "list": "json",
}


@frozen
class TableOfResults:
    """The results of a seed as a table: a row for each context.

    ``group`` are the group columns of the contexts; the values of these columns keep their types. The first columns are the
    group columns, or the name of the context if there are none: the name of a group is formed from its columns. If the name of
    a column is already taken, the column gets a prefix: ``group_`` for a group column, ``run_`` for the others.
    """

    seed: FormulaSeed
    group: tuple[Column, ...] = ()
    columns: tuple[Column, ...] = field(init=False)
    _outputs: tuple[tuple[str, ColumnType], ...] = field(init=False)

    @_outputs.default
    def _default_outputs(self) -> tuple[tuple[str, ColumnType], ...]:
        return tuple((name, _OUTPUTS[kind]) for name, kind in output_types(self.seed).items())

    @columns.default
    def _default_columns(self) -> tuple[Column, ...]:
        taken = {name for name in self.seed.outputs}
        leading = () if self.group else _NAME
        own = {name: _free(name, "run_", taken) for name, _ in (*leading, *_OWN, *_LAST)}
        taken |= set(own.values())
        first = [Column(own[name], kind) for name, kind in leading]
        for column in self.group:
            first.append(Column(_free(column.name, "group_", taken), column.type, column.source_type))
            taken.add(first[-1].name)
        outputs = [Column(name, _OUTPUTS[kind]) for name, kind in output_types(self.seed).items()]
        return (
            *first, *(Column(own[name], kind) for name, kind in _OWN), *outputs, *(Column(own[name], kind) for name, kind in _LAST)
        )  # fmt: skip

    def row(self, document: Mapping[str, Any]) -> list[Any]:
        """Return the row of one result, given as JSON."""
        outputs, counts, usage = document["outputs"], document["counts"], document.get("usage", {})
        context = document.get("context") or {}
        errors = document["errors"]
        failed = [found.get("id", found["review"]) for found in document["extractions"] if found.get("failed")]
        return [
            *([_group_value(context, self.group, place, document["name"]) for place in range(len(self.group))] or [document["name"]]),
            document["index"], document["status"],
            *(value_of(outputs.get(name), kind) for name, kind in self._outputs),
            *(counts.get(name, 0) for name in COUNTS), *(usage.get(name, 0) for name in _USAGE),
            usage.get("estimated", False), document.get("cost"),
            orjson.dumps(errors).decode() if errors else None, orjson.dumps(failed).decode() if failed else None,
        ]  # fmt: skip

    def rows(self, source: ResultSource) -> Iterator[list[Any]]:
        """Yield the rows of all results."""
        return map(self.row, source.documents())


@frozen
class TableOfExtractions:
    """The extractions of a seed as a table: a row for each kept review.

    ``raw`` are the fields with a column ``FIELD__raw``: those with a value that was coerced or is invalid. ``confidence`` are
    the fields with a column ``FIELD__confidence``. ``id_type`` is the type of the reviews' ids.
    """

    seed: FormulaSeed
    raw: frozenset[str] = frozenset()
    confidence: frozenset[str] = frozenset()
    id_type: ColumnType = "text"
    columns: tuple[Column, ...] = field(init=False)

    @classmethod
    def of(cls, seed: FormulaSeed, source: ResultSource, id_type: ColumnType = "text") -> "TableOfExtractions":
        """Return the table for these results, which are read once to find the columns ``FIELD__raw`` and ``FIELD__confidence``."""
        raw, confidence = set[str](), set[str]()
        for document in source.documents():
            for found in document["extractions"]:
                raw.update(found.get("invalid", ()), found.get("coerced", ()))
                confidence.update(found.get("confidence", ()))
        return cls(seed, frozenset(raw), frozenset(confidence), id_type)

    @columns.default
    def _default_columns(self) -> tuple[Column, ...]:
        first = [Column("context"), Column("index", "int"), Column("review", "int"), Column("id", self.id_type)]
        last = [Column(name) for name in ("status", "error", "read_as", "excerpt")]
        taken = {column.name for column in (*first, *last)}
        fields = []
        for name, each in self.seed.row_fields.items():
            shown = _free(name, "field_", taken)
            fields.append(Column(shown, _FIELDS[each.type]))
            if name in self.raw:
                fields.append(Column(f"{shown}__raw"))
            if name in self.confidence:
                fields.append(Column(f"{shown}__confidence", "float"))
        return (*first, *fields, *last)

    def rows(self, source: ResultSource) -> Iterator[list[Any]]:
        """Yield the rows of all extractions."""
        for document in source.documents():
            for found in document["extractions"]:
                yield self._row(document, found)

    def _row(self, document: Mapping[str, Any], found: Mapping[str, Any]) -> list[Any]:
        values, invalid, coerced = found["extraction"], found.get("invalid", {}), found.get("coerced", {})
        confidence = found.get("confidence", {})
        cells: list[Any] = []
        for name, each in self.seed.row_fields.items():
            cells.append(value_of(values.get(name), _FIELDS[each.type]))
            if name in self.raw:
                cells.append(invalid.get(name, coerced.get(name)))
            if name in self.confidence:
                cells.append(confidence.get(name))
        failed = found.get("failed", "")
        status = "not_asked" if is_unasked(failed) else "failed" if failed else "invalid" if invalid else "extracted"
        error = failed or ("; ".join(f"{name}: invalid value" for name in invalid) if invalid else None)
        own = found.get("id")
        if self.id_type != "int":
            own = None if own is None else str(own)
        return [
            document["name"], document["index"], found["review"], own, *cells, status, error or None, found.get("read_as", "exact"),
            found.get("excerpt", ""),
        ]  # fmt: skip


def value_of(value: Any, kind: ColumnType) -> Any:
    """Return a JSON value as a cell of a column of type ``kind``.

    In a ``json`` column, every value except null is JSON text.
    """
    if value is None:
        return None
    if kind == "json":
        return orjson.dumps(value).decode()
    if kind == "float" and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def _group_value(context: Mapping[str, Any], group: Sequence[Column], place: int, name: str) -> Any:
    """Return the value of a group column. ``name`` is the name of the context; it contains the values of all group columns."""
    column = group[place]
    if column.name == "name":  # the context's own name has taken the place of the value
        before = "".join(f"{text_of(context.get(other.name))} / " for other in group[:place])
        after = "".join(f" / {text_of(context.get(other.name))}" for other in group[place + 1 :])
        text = name.removeprefix(before).removesuffix(after)
        return None if text == "" else typed(text, column.type if column.type in ("int", "float", "bool") else "text")
    value = context.get(column.name)
    return None if value is None or (value == "" and column.type != "text") else value


def _free(name: str, prefix: str, taken: "set[str] | frozenset[str]") -> str:
    while name in taken:
        name = f"{prefix}{name}"
    return name
