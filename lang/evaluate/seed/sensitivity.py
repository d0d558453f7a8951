"""Sensitivity analysis: find the single extractions whose removal or modification changes an output.

Each row is removed once, and each of its enums and booleans is set to every other value that it can have. Equal rows are tried only once.
Changes that affect no requested output are not reported. See ``docs/design/seed.md#sensitivity``.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import frozen

from ...diagnostic import nearest
from ...trees import walk
from ...trees.expr import Call, Comprehension, Expr, Field, Name
from ...trees.seed import FilterUse, FormulaSeed
from ..expr.comparison import equal
from ..expr.values import Meter
from .fused_engine import Compute
from .interpreter import Computed, Interpreter, Reduced, Row
from .step_dependencies import EXTRACTIONS, parts

Run = Callable[[Sequence[Row], Mapping[str, Any]], Computed]
"""A function that computes all steps over rows and a context, such as ``Compute.run``."""

_STEPS = 50_000_000
"""Default maximum number of steps of all computations together. At least ``_LEAST`` computations are made in any case."""
_LEAST = 20


@frozen
class OutputChange:
    """An output before and after a change. If the output has no value, the value is None and the error gives the reason."""

    name: str
    before: Any
    after: Any
    error_before: str = ""
    error_after: str = ""

    @property
    def size(self) -> float:
        """The absolute change of a number; infinity for other types."""
        if _is_number(self.before) and _is_number(self.after):
            return abs(float(self.after) - float(self.before))
        return float("inf")


@frozen
class Flip:
    """A single edit of one row that changes at least one output.

    ``index`` is the index of the row. ``same`` are the indices of equal rows, for which the same change has the same effect. If the row is
    removed, ``field`` is "". Otherwise, the value of ``field`` changes from ``before`` to ``after``.
    """

    index: int
    outputs: tuple[OutputChange, ...]
    field: str = ""
    before: Any = None
    after: Any = None
    same: tuple[int, ...] = ()


@frozen
class Sensitivity:
    """The changes that affect an output, largest effect first.

    ``possible`` is the number of possible changes. ``tried`` is the number of changes that were computed.
    """

    flips: tuple[Flip, ...]
    outputs: tuple[str, ...]
    tried: int
    possible: int


@frozen
class _Trial:
    index: int
    same: tuple[int, ...]
    field: str = ""
    before: Any = None
    after: Any = None


def sensitivity(
    seed: FormulaSeed,
    rows: Sequence[Row],
    context: Mapping[str, Any],
    *,
    outputs: Sequence[str] | None = None,
    run: Run | None = None,
    limit: int | None = None,
    reduced: Mapping[str, Reduced] | None = None,
) -> Sensitivity:
    """Try each single change of ``rows`` and return those that change ``outputs``.

    By default, ``outputs`` are the seed's verdicts. A verdict is an output that failed, or whose value is a string or a
    boolean. At most ``limit`` changes are computed; by default, as many as about 50,000,000 steps allow. First each row is
    removed, then the fields of each row are changed. ``run`` computes ``seed``; by default, the seed is compiled here. Raises
    ``ValueError`` if a name in ``outputs`` is not a step with a value. ``reduced`` are the values of the ``reduce`` steps,
    which no change affects.
    """
    reference = Interpreter(seed, rows, context, reduced=reduced)
    before = reference.computed()
    checked = _checked_outputs(seed, before, outputs)
    trials = _trials(seed, rows)
    most = max(_LEAST, _STEPS // max(1, reference.spent)) if limit is None else max(0, limit)
    computing = run or partial(Compute.of(seed).run, reduced=reduced)
    flips = []
    for trial in trials[:most]:
        changes = _changes(checked, before, computing(_changed(rows, trial), context))
        if changes:
            flips.append(Flip(trial.index, changes, trial.field, trial.before, trial.after, trial.same))
    return Sensitivity(tuple(sorted(flips, key=_effect)), checked, min(most, len(trials)), len(trials))


def _checked_outputs(seed: FormulaSeed, before: Computed, outputs: Sequence[str] | None) -> tuple[str, ...]:
    if outputs is None:
        failed = {error.step for error in before.errors}
        return tuple(name for name in seed.outputs if name in failed or isinstance(before.values.get(name), str | bool))
    for name in outputs:
        if name not in seed.value_by_name:
            near = nearest(name, seed.step_by_name)
            raise ValueError(f"the seed does not compute {name}" + (f"; did you mean {near}?" if near else ""))
    return tuple(outputs)


def _trials(seed: FormulaSeed, rows: Sequence[Row]) -> list[_Trial]:
    """Return all changes to try. If no step can distinguish several rows, only the first of these rows is changed."""
    read = _fields_read(seed)
    groups: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        groups.setdefault(_likeness(row, index, read), []).append(index)
    alike = [(first, tuple(same)) for first, *same in groups.values()]
    left_out = [_Trial(first, same) for first, same in alike]
    return left_out + [
        _Trial(first, same, name, current, other)
        for first, same in alike
        for name, values in _alternatives(seed, read)
        for current in (rows[first]["extraction"].get(name),)
        for other in values
        if other != current
    ]


@frozen
class _Read:
    """The fields that steps read by name.

    ``whole`` is true if a formula reads ``extractions``; ``ordered`` is true if the result of a formula may depend on the order of the
    extractions.
    """

    fields: frozenset[tuple[str, str]]
    whole: bool
    ordered: bool


def _fields_read(seed: FormulaSeed) -> _Read:
    exprs = [part for step in seed.steps for part in parts(step) if not isinstance(part, FilterUse)]
    fields = frozenset((node.namespace, node.name) for e in exprs for node in walk(e) if isinstance(node, Field))
    uses = sum(1 for expr in exprs for node in walk(expr) if node == Name(EXTRACTIONS))
    orderless = sum(1 for expr in exprs for node in walk(expr) if _is_orderless(node))
    return _Read(fields, uses > 0, uses != orderless)


_ORDERLESS = frozenset({"all", "any", "len", "max", "median", "min", "set", "sorted", "stdev", "sum", "variance"})


def _is_orderless(node: Any) -> bool:
    """Return whether ``node`` is a call over ``extractions`` whose result does not depend on their order."""
    if not isinstance(node, Call) or node.function not in _ORDERLESS or len(node.arguments) != 1:
        return False
    if any(name == "key" for name, _ in node.keywords):  # elements with equal keys stay in their order
        return False
    argument: Expr = node.arguments[0]
    if isinstance(argument, Comprehension):
        return argument.clauses[0].iterable == Name(EXTRACTIONS)
    return node.function == "len" and argument == Name(EXTRACTIONS)


def _likeness(row: Row, index: int, read: _Read) -> str:
    if read.ordered:
        return str(index)
    extraction, meta = row["extraction"], row.get("meta", {})
    if not read.whole:
        extraction = {name: extraction.get(name) for namespace, name in read.fields if namespace == "extraction"}
        meta = {name: meta.get(name) for namespace, name in read.fields if namespace == "meta"}
    try:
        return json.dumps([extraction, meta], sort_keys=True)
    except (TypeError, ValueError, RecursionError):  # not JSON or too deep: unequal to all other rows
        return str(index)


def _alternatives(seed: FormulaSeed, read: _Read) -> Iterator[tuple[str, tuple[Any, ...]]]:
    for found in seed.fields:
        if read.whole or ("extraction", found.name) in read.fields:
            if found.type == "enum":
                yield found.name, tuple(found.values)
            elif found.type == "bool":
                yield found.name, (True, False)


def _changed(rows: Sequence[Row], trial: _Trial) -> list[Row]:
    before, row, after = rows[: trial.index], rows[trial.index], rows[trial.index + 1 :]
    if not trial.field:
        return [*before, *after]
    return [*before, {**row, "extraction": {**row["extraction"], trial.field: trial.after}}, *after]


def _changes(outputs: Sequence[str], before: Computed, after: Computed) -> tuple[OutputChange, ...]:
    was, has = _reasons(before), _reasons(after)
    made = (
        OutputChange(name, before.values.get(name), after.values.get(name), was.get(name, ""), has.get(name, ""))
        for name in outputs
    )
    return tuple(
        change
        for change in made
        if bool(change.error_before) != bool(change.error_after) or not equal(Meter(), change.before, change.after)
    )


def _reasons(computed: Computed) -> dict[str, str]:
    return {error.step: error.message for error in computed.errors}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _effect(flip: Flip) -> tuple[Any, ...]:
    """Return the sort key of a change.

    The key consists of the number of changed outputs that are not numbers, the largest change of a number, and the position.
    """
    verdicts = sum(1 for change in flip.outputs if change.size == float("inf"))
    largest = max((change.size for change in flip.outputs if change.size < float("inf")), default=0.0)
    return (-verdicts, -largest, flip.index, flip.field, json.dumps(flip.after))
