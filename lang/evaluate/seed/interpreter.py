"""The reference: a seed's steps computed one after the other by the interpreter of expressions. Slow and plain.

The generated function is held equal to it, and asks it whenever something fails.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ...expr import Expr
from ...seed import Aggregate, Case, Const, DefineFilter, FilterUse, Formula, FormulaSeed, Lookup, SeedStep, Where
from ...source import NOWHERE, Span
from ..expr.costs import weight
from ..expr.errors import ExprError
from ..expr.interpreter import Evaluator
from ..expr.limits import Limits, Meter
from ..expr.results import checked_result
from ..expr.values import truth
from .aggregates import aggregate
from .computed import Computed, StepError, copied
from .lookup import Table
from .needs import EXTRACTIONS, needs, reads_of, unknown_rows
from .rows import Row, complete_rows, element

__all__ = ["Interpreter", "interpret", "row_cost", "step_limits"]


_ROW_STEPS = 1_250
"""Steps for each row, in a computation over many: some 200 aggregates with conditions."""
_ROW_BYTES = 1_000


def interpret(
    seed: FormulaSeed, rows: Sequence[Row], context: Mapping[str, Any], *, limits: Limits | None = None
) -> Computed:
    """Compute the steps of ``seed`` over ``rows`` (see ``rows``), in their order.

    A step that fails has no value; the steps that need it are skipped, the others are computed. One meter serves all of
    them; ``limits`` are by default those of ``step_limits``.
    """
    return Interpreter(seed, rows, context, limits=limits).computed()


def step_limits(rows: int) -> Limits:
    """Return the limits of a computation over ``rows`` extractions: those of an expression, or more where there are many.

    So few rows as a person can look through cost no more than one expression; of 100,000 every step has its part.
    """
    limits = Limits()
    return attrs.evolve(
        limits, steps=max(limits.steps, _ROW_STEPS * rows), memory=limits.memory + _ROW_BYTES * rows,
        size=max(limits.size, rows),
    )  # fmt: skip


def row_cost(parts: Sequence[Expr | FilterUse]) -> int:
    """Return what a step charges for each row, in advance: 2 and the ``weight`` of all that it may evaluate there."""
    return 2 + sum(1 if isinstance(part, FilterUse) else weight(part) for part in parts)


class Interpreter:
    """One computation. It also says afterwards which rows a step used, which ``explaining`` asks."""

    def __init__(
        self, seed: FormulaSeed, rows: Sequence[Row], context: Mapping[str, Any], *, limits: Limits | None = None
    ) -> None:
        self.seed = seed
        self.rows = complete_rows(seed, rows)
        self.context = context
        self.meter = Meter(limits or step_limits(len(rows)))
        self.values: dict[str, Any] = {}
        self.names: dict[str, Any] = {EXTRACTIONS: [element(row) for row in self.rows]}
        self.evaluator = Evaluator(self.names, context, self.meter)
        self.filters: dict[str, list[bool]] = {}
        """For each filter whether it holds, row by row."""
        self.errors: dict[str, StepError] = {}
        self.reads = reads_of(seed)
        self.unknown = unknown_rows(self.reads, rows)

    @property
    def spent(self) -> int:
        """The steps that the computation took so far, at least 1 for each row and each step."""
        return self.meter.limits.steps - self.meter.left + len(self.rows) + len(self.seed.steps)

    def computed(self) -> Computed:
        """Compute all steps."""
        for step in self.seed.steps:
            self._compute(step)
        return Computed(self.values, tuple(self.errors.values()), self.unknown)

    def resumed(self, computed: Computed) -> Computed:
        """Take over what was computed before, and find out again which rows the filters let through."""
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
        """Return the error of a step for which no row is known: what it gives over nothing is not what it is."""
        reads = self.reads[step.name]
        names = [*sorted(reads.fields), *(f"meta.{name}" for name in sorted(reads.meta))]
        count = len(self.rows)
        where = "the one extraction" if count == 1 else f"each of the {count:,} extractions"
        message = f"{step.name} has no values: {' or '.join(names)} is invalid in {where}"
        hint = "the extractions say under invalid what was written instead"
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
            case _:
                raise AssertionError(step)

    def evaluated(self, expr: Expr, row: Mapping[str, Any] | None = None) -> Any:
        """Return what ``expr`` is over the values computed so far, the context and, in an aggregate, one row."""
        return self.evaluator.value(expr, row)

    def selected(self, where: Where | None) -> list[bool]:
        """Say of each row whether all of ``where`` hold. They are tried in order, up to the first that does not."""
        if where is None:
            return [True] * len(self.rows)
        self.meter.step(row_cost(where) * len(self.rows))
        return [all(self._holds(part, index) for part in where) for index in range(len(self.rows))]

    def _holds(self, part: Expr | FilterUse, index: int) -> bool:
        if not isinstance(part, FilterUse):
            return truth(self._of_row(part, index))
        if part.name not in self.filters:
            raise ExprError("name", f"there is no filter {part.name} before this step", span=part.span)
        return self.filters[part.name][index] is part.holds

    def elements(self, step: Aggregate) -> list[tuple[int, Any]]:
        """Return the rows that ``step`` used, by index, each with what it gave: 1 to a count."""
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
