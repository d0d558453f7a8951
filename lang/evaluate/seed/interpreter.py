"""A slow and simple interpreter that computes a seed's steps one after the other with the expression interpreter.

The generated function must give the same results; if it fails in any way, this interpreter is used.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs
from attrs import field, frozen

from ...source import NOWHERE, Span
from ...trees import walk
from ...trees.expr import Expr, Field
from ...trees.seed import (
    Aggregate,
    Case,
    Const,
    DefineFilter,
    FilterUse,
    Formula,
    FormulaSeed,
    Lookup,
    Match,
    Reduce,
    SeedStep,
    Tally,
    Where,
)
from ...unicode_forms import canonical, caseless
from ..expr.arithmetic import total
from ..expr.comparison import largest, smallest
from ..expr.interpreter import Evaluator
from ..expr.values import ExprError, Limits, Meter, a, checked_result, short_json, truth, weight
from .step_dependencies import EXTRACTIONS, needs, reads_of, unknown_rows

# Results of aggregates. Neither the value nor the type of a result depends on the order of the elements.


def aggregate(step: Aggregate, elements: Sequence[Any], meter: Meter) -> Any:
    """Return the result of ``step`` for ``elements``, which contain no nulls. Raises ``ExprError`` for elements of a wrong type."""
    if step.operation == "count":
        return len(elements)
    if step.operation == "sum":
        return total(meter, elements)
    return extreme(step.operation, elements, meter) if elements else step.default


def extreme(operation: Literal["max", "min"], values: Sequence[Any], meter: Meter) -> Any:
    """Return the largest or smallest of numbers, or of strings, like ``max`` and ``min`` of a list."""
    return largest(meter, values) if operation == "max" else smallest(meter, values)


def tally(step: Tally, elements: Sequence[Any], meter: Meter) -> list[dict[str, Any]]:
    """Return how often each of ``elements`` occurs, ordered by count, then by value. ``elements`` contain no nulls.

    Items of a list are counted one by one. Equal numbers are one value (an integer, if one of them is). Booleans come before
    numbers, and numbers before strings. Raises ``ExprError`` for other values, such as objects, and if the limits are exceeded.
    """
    counts: dict[tuple[int, Any], list[Any]] = {}
    for each in elements:
        items = each if isinstance(each, list | tuple) else (each,)
        meter.step(len(items))
        for item in items:
            if item is None:
                continue
            counted = counts.setdefault(_tally_key(item, step, meter), [item + 0 if item == 0.0 else item, 0])
            counted[1] += 1
            if isinstance(item, int):
                counted[0] = item
    found = sorted(counts.items(), key=lambda pair: (-pair[1][1], pair[0]))[: step.top]
    return [{"value": value, "count": count} for _, (value, count) in found]


def _tally_key(value: Any, step: Tally, meter: Meter) -> tuple[int, Any]:
    if isinstance(value, bool):
        return 0, value
    if isinstance(value, int | float):
        return 1, value
    if isinstance(value, str):
        meter.characters(len(value))
        return 2, value
    message = f"a tally counts strings, numbers and booleans, not {a(value)}: {short_json(value)}"
    raise ExprError("type", message, span=step.element.span)


# The result of computing a seed: a value for each successful step, and an error for each failed step.


@frozen
class StepError:
    """The reason why a step has no value.

    ``kind`` is the kind of an ``ExprError`` ("division", "type", "name", "key", "index", "value", "limit", "overflow",
    "result"), "reduce" (no model has written the value), "no_values" (the fields that the step reads are invalid in every
    extraction), or "skipped" (the step needs the step ``root``, which has failed). For other kinds ``root`` is the step's own
    name. ``span`` is the position of the fault in the seed's text.
    """

    step: str
    kind: str
    message: str
    hint: str = ""
    span: Span = field(default=NOWHERE, eq=False, repr=False)
    root: str = ""


@frozen
class Computed:
    """Maps the name of each step to its value, and lists the errors, both in the order of the steps. Filters have no value."""

    values: Mapping[str, Any]
    errors: tuple[StepError, ...] = ()
    unknown: Mapping[str, int] = field(factory=dict)
    """Maps a step to the number of rows in which a field that it reads is invalid. A ``where`` counts as false for these rows."""


def copied(value: Any) -> Any:
    """Return a copy of a JSON value in the seed, so that changes to the result do not change the seed."""
    if isinstance(value, list):
        return [copied(each) for each in value]
    if isinstance(value, dict):
        return {key: copied(each) for key, each in value.items()}
    return value


# Reading of the rows: defaults for missing values, and the value of ``extractions``.
# A row is ``{"extraction": {...}, "meta": {...}}``; each successful extraction has one row. ``invalid`` and ``invalid_meta`` in a
# row name the fields and the keys of ``meta`` whose values are unknown (they are null). Other keys (``review``, ``id``,
# ``excerpt``) describe the source of the row; the computation does not use them.

Row = Mapping[str, Any]

META_KEYS = ("stars", "useful", "year", "month", "date", "age_days")
"""The keys of ``meta`` that every review has; their values may be null."""


def meta_keys(seed: FormulaSeed) -> tuple[str, ...]:
    """Return the keys of ``meta`` that ``seed`` may read: ``META_KEYS``, the declared keys, and other keys that its steps use."""
    nodes = (node for step in seed.steps for node in walk(step))
    named = dict.fromkeys(node.name for node in nodes if isinstance(node, Field) and node.namespace == "meta")
    return tuple(dict.fromkeys((*META_KEYS, *seed.meta, *named)))


def complete_rows(seed: FormulaSeed, rows: Sequence[Row]) -> list[dict[str, dict[str, Any]]]:
    """Return the completed ``rows``. A field that the seed declares, or a key of ``meta``, is null if it is missing."""
    fields, meta = dict.fromkeys(seed.row_fields), dict.fromkeys(meta_keys(seed))
    return [{"extraction": {**fields, **row["extraction"]}, "meta": {**meta, **row.get("meta", {})}} for row in rows]


def element(row: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the element of ``extractions`` for a complete row: an object with the extraction's fields and ``meta``."""
    return {**row["extraction"], "meta": row["meta"]}


# Lookup: find the keys of a table that a string, or a string in a list, matches. See ``docs/design/seed.md#compute``.


@frozen
class Table:
    """The table of a lookup, prepared for searches. ``keys`` are in canonical form, and case folded unless the match is exact.

    An empty key matches only the empty string, and only if the match is exact. As a substring, it would match every string.
    """

    match: Match
    keys: tuple[str, ...]
    values: tuple[Any, ...]
    default: Any
    span: Span = attrs.field(eq=False, repr=False)

    @classmethod
    def of(cls, step: Lookup) -> "Table":
        """Prepare the table of ``step``."""
        exact = step.match == "exact"
        keys = tuple(canonical(key) if exact else caseless(key) for key, _ in step.table)
        return cls(step.match, keys, tuple(value for _, value in step.table), step.default, step.source.span)

    def find(self, source: Any, meter: Meter) -> Any:
        """Return the table's value for ``source``, a string or a list of strings, or the default if no key matches.

        A null matches nothing, even in a list. If several keys match, the result is the value of the first of them in the
        table. If the name of the match mode ends in ``_max``, the result is the largest of their values instead. Raises
        ``ExprError`` for a source of another type, and for values that can't be compared.
        """
        found = self.matching(source, meter)
        if not found:
            return self.default
        if self.match in ("substring_max", "word_max") and len(found) > 1:
            return extreme("max", [self.values[position] for position in found], meter)
        return self.values[found[0]]

    def matching(self, source: Any, meter: Meter) -> list[int]:
        """Return the positions of the keys that ``source`` matches, in table order."""
        texts = self._texts(source)
        return [
            position for position, key in enumerate(self.keys) if any(self._holds(key, text, meter) for text in texts)
        ]

    def _texts(self, source: Any) -> list[str]:
        elements = source if isinstance(source, list | tuple) else [source]
        texts = []
        for element in elements:
            if isinstance(element, str):
                texts.append(canonical(element) if self.match == "exact" else caseless(element))
            elif element is not None:
                message = (
                    f"a lookup's source must be a string or a list of strings, not {a(element)}: {short_json(element)}"
                )
                raise ExprError("type", message, span=self.span)
        return texts

    def _holds(self, key: str, text: str, meter: Meter) -> bool:
        meter.step()
        meter.characters(len(text))
        if self.match == "exact":
            return key == text
        if self.match in ("substring_first", "substring_max"):
            return key != "" and key in text
        return _has_word(text, key, meter)


def _has_word(text: str, word: str, meter: Meter) -> bool:
    """Return whether ``text`` contains ``word`` as a whole word, without an adjacent letter, digit or underscore."""
    start = text.find(word) if word else -1
    while start >= 0:
        end = start + len(word)
        if not (start and _joins(text[start - 1], word[0])) and not (end < len(text) and _joins(word[-1], text[end])):
            return True
        meter.step()
        meter.characters(len(word))
        start = text.find(word, start + 1)
    return False


def _joins(left: str, right: str) -> bool:
    return (left.isalnum() or left == "_") and (right.isalnum() or right == "_")


_ROW_STEPS = 1_250
"""Maximum steps per row in a computation over many rows; enough for some 200 aggregates with conditions."""
_ROW_BYTES = 1_000


@frozen
class Reduced:
    """The value that a model wrote for a ``reduce`` step in a run, or the reason why the step has no value."""

    value: Any = None
    error: str = ""


def interpret(
    seed: FormulaSeed, rows: Sequence[Row], context: Mapping[str, Any], *, limits: Limits | None = None,
    reduced: Mapping[str, Reduced] | None = None,
) -> Computed:  # fmt: skip
    """Compute the steps of ``seed`` over ``rows`` in order. The comment above ``META_KEYS`` describes the format of ``rows``.

    A step that fails has no value. The steps that need a failed step are skipped, and all other steps are computed. All steps share one
    meter; the default of ``limits`` is the result of ``step_limits``. ``reduced`` are the values of the ``reduce`` steps by name.
    """
    return Interpreter(seed, rows, context, limits=limits, reduced=reduced).computed()


def step_limits(rows: int) -> Limits:
    """Return the limits of a computation over ``rows`` extractions.

    The limits are those of an expression, raised in proportion to the number of rows. A computation over a few rows may take no
    more steps than one expression.

    With 100,000 rows, the limits are high enough for about 200 aggregates with conditions.
    """
    limits = Limits()
    return attrs.evolve(
        limits, steps=max(limits.steps, _ROW_STEPS * rows), memory=limits.memory + _ROW_BYTES * rows,
        size=max(limits.size, rows),
    )  # fmt: skip


def row_cost(parts: Sequence[Expr | FilterUse]) -> int:
    """Return the number of steps charged in advance for each row: 2, plus the ``weight`` of all ``parts``."""
    return 2 + sum(1 if isinstance(part, FilterUse) else weight(part) for part in parts)


class Interpreter:
    """One computation of a seed. After the computation, the interpreter also reports which rows a step used, for explanations."""

    def __init__(
        self, seed: FormulaSeed, rows: Sequence[Row], context: Mapping[str, Any], *, limits: Limits | None = None,
        reduced: Mapping[str, Reduced] | None = None,
    ) -> None:  # fmt: skip
        self.seed = seed
        self.reduced = reduced or {}
        self.rows = complete_rows(seed, rows)
        self.context = context
        self.meter = Meter(limits or step_limits(len(rows)))
        self.values: dict[str, Any] = {}
        self.names: dict[str, Any] = {EXTRACTIONS: [element(row) for row in self.rows]}
        self.evaluator = Evaluator(self.names, context, self.meter)
        self.filters: dict[str, list[bool]] = {}
        """Maps each filter to its truth value for each row."""
        self.errors: dict[str, StepError] = {}
        self.reads = reads_of(seed)
        self.unknown = unknown_rows(self.reads, rows)

    @property
    def spent(self) -> int:
        """The cost so far, in steps of the meter, plus 1 for each row and each step of the seed."""
        return self.meter.limits.steps - self.meter.left + len(self.rows) + len(self.seed.steps)

    def computed(self) -> Computed:
        """Compute all steps and return the result."""
        for step in self.seed.steps:
            self._compute(step)
        return Computed(self.values, tuple(self.errors.values()), self.unknown)

    def resumed(self, computed: Computed) -> Computed:
        """Reuse the values and errors of an earlier result. Only the filters are computed again."""
        steps = self.seed.step_by_name
        self.values = {name: value for name, value in computed.values.items() if name in steps}
        self.names |= self.values
        self.errors = {error.step: error for error in computed.errors if error.step in steps}
        for step in self.seed.steps:
            if isinstance(step, DefineFilter) and step.name not in self.errors:
                self._compute(step)
        return Computed(self.values, tuple(self.errors.values()), self.unknown)

    def _compute(self, step: SeedStep) -> None:
        failed = next((self.errors[name] for name in needs(step) if name in self.errors), None)
        if failed is not None:
            message = f"{step.name} needs {failed.step}, which has no value"
            self.errors[step.name] = StepError(step.name, "skipped", message, root=failed.root, span=step.span)
            return
        if self.rows and not isinstance(step, DefineFilter) and self.unknown.get(step.name) == len(self.rows):
            self.errors[step.name] = self._no_values(step)
            return
        if isinstance(step, Reduce):
            self._take(step)
            return
        try:
            if isinstance(step, DefineFilter):
                self.filters[step.name] = self.selected(step.where)
            else:
                value = self._value(step)
                self.values[step.name] = self.names[step.name] = (
                    copied(value) if isinstance(step, Const | Lookup | Case) else value
                )
        except ExprError as error:
            self.errors[step.name] = StepError(
                step.name, error.kind, error.message, error.hint, _place(error, step), root=step.name
            )

    def _no_values(self, step: SeedStep) -> StepError:
        """Return the error for a step that has no valid row. Without this error, a result computed from no rows would be wrong."""
        reads = self.reads[step.name]
        names = [*sorted(reads.fields), *(f"meta.{name}" for name in sorted(reads.meta))]
        count = len(self.rows)
        where = "the one extraction" if count == 1 else f"each of the {count:,} extractions"
        message = f"{step.name} has no values: {' or '.join(names)} is invalid in {where}"
        hint = "see `invalid` in each extraction for the original value"
        return StepError(step.name, "no_values", message, hint, step.span, root=step.name)

    def _value(self, step: SeedStep) -> Any:
        match step:
            case Const():
                return step.value
            case Formula():
                return self.evaluated(step.expr)
            case Lookup():
                return Table.of(step).find(self.evaluated(step.source), self.meter)
            case Case():
                rule = next((rule for rule in step.rules if truth(self.evaluated(rule.test))), None)
                return step.otherwise if rule is None else rule.then
            case Aggregate():
                values = [value for _, value in self.elements(step)]
                return checked_result(aggregate(step, values, self.meter), step.span, self.meter)
            case Tally():
                values = [value for _, value in self.elements(step)]
                return checked_result(tally(step, values, self.meter), step.span, self.meter)
            case _:
                raise AssertionError(step)

    def _take(self, step: Reduce) -> None:
        """Accept the value that a model wrote for ``step`` or, without a value, the reason for its absence."""
        found = self.reduced.get(step.name)
        if found is not None and not found.error:
            self.values[step.name] = self.names[step.name] = copied(found.value)
            return
        message = found.error if found is not None else f"{step.name} has no value: a model writes it in a run"
        hint = "" if found is not None else "run the seed with a model (seed run), or use the results of such a run"
        self.errors[step.name] = StepError(step.name, "reduce", message, hint, step.span, root=step.name)

    def evaluated(self, expr: Expr, row: Mapping[str, Any] | None = None) -> Any:
        """Evaluate ``expr`` with the values computed so far, the context and, in an aggregate, one row."""
        return self.evaluator.value(expr, row)

    def selected(self, where: Where | None) -> list[bool]:
        """Return, for each row, whether all conditions of ``where`` are true. The first condition that is not true ends the test."""
        if where is None:
            return [True] * len(self.rows)
        self.meter.step(row_cost(where) * len(self.rows))
        return [all(self._holds(part, index) for part in where) for index in range(len(self.rows))]

    def _holds(self, part: Expr | FilterUse, index: int) -> bool:
        if not isinstance(part, FilterUse):
            return truth(self._of_row(part, index))
        if part.name not in self.filters:
            raise ExprError("name", f"no earlier step defines the filter {part.name}", span=part.span)
        return self.filters[part.name][index] is part.holds

    def elements(self, step: Aggregate | Tally) -> list[tuple[int, Any]]:
        """Return the index and the contribution of each row that ``step`` used. The contribution to a count is 1."""
        used = [index for index, holds in enumerate(self.selected(step.where)) if holds]
        if step.element is None:
            return [(index, 1) for index in used]
        self.meter.step(row_cost((step.element,)) * len(used))
        given = ((index, self._of_row(step.element, index)) for index in used)
        return [(index, value) for index, value in given if value is not None]

    def _of_row(self, expr: Expr, index: int) -> Any:
        try:
            return self.evaluated(expr, self.rows[index])
        except ExprError as error:
            if error.kind == "limit":
                raise
            message = f"{error.message}, in extraction {index}"
            raise ExprError(error.kind, message, hint=error.hint, span=error.span) from error


def _place(error: ExprError, step: SeedStep) -> Span:
    return step.span if error.span is None or error.span == NOWHERE else error.span
