"""Why a value is what it is: each step that it needs, with its formula, its operands, and the reviews behind it.

``explain`` gives the steps in the order in which they are told, each once: the one asked for first, then what it needs.
``telling`` writes them out. See ``docs/design/seed.md#results``.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from typing import Literal as OneOf

import attrs
from attrs import frozen

from ...diagnostic import nearest
from ...expr import Comprehension, Expr, Field, Literal, MethodCall, Name, Subscript
from ...node import Node, walk
from ...printer.expr import format_expr
from ...seed import Aggregate, Case, Const, DefineFilter, FilterUse, Formula, FormulaSeed, Lookup, SeedStep
from ..expr.errors import ExprError
from ..expr.interpreter import evaluate
from ..expr.limits import Meter
from ..expr.values import truth
from .computed import Computed
from .interpreter import Interpreter
from .lookup import Table
from .needs import EXTRACTIONS, names_in, needs, parts
from .rows import Row
from .words import condition_in_words, step_in_words

__all__ = ["Explanation", "Selection", "StepExplanation", "StepKind", "explain"]

StepKind = OneOf["filter", "aggregate", "lookup", "case", "formula", "constant"]


@frozen
class Selection:
    """The rows that an aggregate used: their indices, each with what it gave (1 to a count).

    ``words`` is the comprehension where a formula has one; ``reads`` are the fields that were looked at. ``gave`` says whether
    what they gave is worth telling: not for a count.
    """

    words: str
    used: tuple[tuple[int, Any], ...]
    reads: tuple[str, ...] = ()
    gave: bool = False


@frozen
class StepExplanation:
    """One step: what it computes in words, its value or why it has none, and what that comes from.

    ``operands`` are the names and fields of the context that it uses, with their values. ``rule`` says which rule of a case
    holds; ``matched`` are the keys of a lookup that match, with their values; ``needs`` the steps it uses, filters too.
    """

    name: str
    operation: str
    kind: StepKind
    value: Any = None
    error: str = ""
    operands: tuple[tuple[str, Any], ...] = ()
    rule: str = ""
    matched: tuple[tuple[str, Any], ...] | None = None
    selections: tuple[Selection, ...] = ()
    needs: tuple[str, ...] = ()


@frozen
class Explanation:
    """The steps behind the value ``name``, itself first; ``rows`` is how many extractions there were."""

    name: str
    rows: int
    steps: tuple[StepExplanation, ...]

    @property
    def value(self) -> Any:
        """The value that is explained; None where there is none."""
        return self.steps[0].value


def explain(
    seed: FormulaSeed,
    rows: Sequence[Row],
    context: Mapping[str, Any],
    name: str,
    computed: Computed | None = None,
) -> Explanation:
    """Explain the value of step ``name``, or why it has none.

    ``computed`` is what the computation gave, if it was made already. Raises ``ValueError`` for a name that is no step's.
    """
    if name not in seed.step_by_name:
        near = nearest(name, seed.step_by_name)
        raise ValueError(f"the seed has no step {name}" + (f"; did you mean {near}?" if near else ""))
    told = _told(seed, name)
    return Explanation(name, len(rows), _Explainer(seed, rows, context, told, computed).explained())


def _told(seed: FormulaSeed, name: str) -> dict[str, SeedStep]:
    """Return the step and all that it needs, in the order of telling: depth first, each at its first mention."""
    told: dict[str, SeedStep] = {}
    stack = [name]
    while stack:
        current = stack.pop()
        if current not in told and current in seed.step_by_name:
            told[current] = seed.step_by_name[current]
            stack += reversed(needs(told[current]))
    return told


class _Explainer:
    def __init__(
        self,
        seed: FormulaSeed,
        rows: Sequence[Row],
        context: Mapping[str, Any],
        told: Mapping[str, SeedStep],
        computed: Computed | None,
    ) -> None:
        self.told = told
        self.context = context
        self.run = Interpreter(attrs.evolve(seed, steps=tuple(s for s in seed.steps if s.name in told)), rows, context)
        self.computed = self.run.computed() if computed is None else self.run.resumed(computed)
        self.errors = {error.step: error.message for error in self.computed.errors}

    def explained(self) -> tuple[StepExplanation, ...]:
        return tuple(map(self._step, self.told.values()))

    def _step(self, step: SeedStep) -> StepExplanation:
        told = StepExplanation(
            step.name,
            step_in_words(step),
            _KINDS[type(step)],
            value=self.computed.values.get(step.name),
            error=self.errors.get(step.name, ""),
            operands=tuple(self._operands(step)),
            needs=tuple(need for need in needs(step) if need in self.told),
        )
        if told.error:
            return told
        self.run.meter = Meter(self.run.meter.limits)  # what could be computed can be computed again
        match step:
            case DefineFilter():
                used = tuple((index, True) for index, holds in enumerate(self.run.filters[step.name]) if holds)
                return attrs.evolve(told, selections=(Selection("", used, _reads(parts(step))),))
            case Aggregate():
                gave = step.element is not None
                selection = Selection("", tuple(self.run.elements(step)), _reads(parts(step)), gave)
                return attrs.evolve(told, selections=(selection,))
            case Case():
                return attrs.evolve(told, rule=self._rule(step))
            case Lookup():
                positions = Table.of(step).matching(self.run.evaluated(step.source), self.run.meter)
                return attrs.evolve(told, matched=tuple(step.table[position] for position in positions))
            case Formula():
                return attrs.evolve(told, selections=tuple(self._comprehensions(step.expr)))
            case _:
                return told

    def _operands(self, step: SeedStep) -> Iterator[tuple[str, Any]]:
        """Give the computed values and the fields of the context that ``step`` uses, each once, with what they are."""
        seen: set[str] = set()
        for part in parts(step):
            if isinstance(part, FilterUse):
                continue
            for name in names_in(part):
                if name in self.computed.values and name not in seen:
                    seen.add(name)
                    yield name, self.computed.values[name]
            for node in walk(part):
                if isinstance(node, Field) and node.namespace == "context" and node.name in self.context:
                    written = f"context.{node.name}"
                    if written not in seen:
                        seen.add(written)
                        yield written, self.context[node.name]

    def _rule(self, step: Case) -> str:
        for position, rule in enumerate(step.rules, 1):
            if truth(self.run.evaluated(rule.test)):
                return f"rule {position} of {len(step.rules)} holds: {condition_in_words(rule.test)}"
        return "no rule holds, so the value is that of else"

    def _comprehensions(self, expr: Expr) -> Iterator[Selection]:
        """Give the rows that each comprehension over ``extractions`` used, tried one by one; for another use of them, all rows."""
        for node in walk(expr, lambda node: not isinstance(node, Comprehension)):
            if isinstance(node, Comprehension) and node.clauses[0].iterable == Name(EXTRACTIONS):
                first = attrs.evolve(node.clauses[0], iterable=Name(_ONE))
                alone = attrs.evolve(node, kind="list", clauses=(first, *node.clauses[1:]))
                words = format_expr(attrs.evolve(node, kind="list"))
                gave = not isinstance(node.element, Literal)
                yield Selection(words, tuple(self._given(alone)), _subscripts(node), gave)
            elif isinstance(node, Name | Comprehension) and EXTRACTIONS in names_in(node):
                yield Selection(EXTRACTIONS, tuple((index, 1) for index in range(len(self.run.rows))))

    def _given(self, alone: Comprehension) -> Iterator[tuple[int, Any]]:
        names = dict(self.run.names)
        for index, found in enumerate(self.run.names[EXTRACTIONS]):
            names[_ONE] = [found]
            try:
                given = evaluate(alone, names, context=self.context, meter=self.run.meter)
            except ExprError:  # the formula as a whole has a value: it stopped before this row, or never came here
                continue
            if given:
                yield index, given[0] if len(given) == 1 else given


_KINDS: Mapping[type, StepKind] = {
    DefineFilter: "filter", Aggregate: "aggregate", Lookup: "lookup", Case: "case", Formula: "formula", Const: "constant",
}  # fmt: skip

_ONE = "one of extractions"
"""Stands for a list of one row. No name in a text can have spaces."""


def _reads(read: Sequence[Expr | FilterUse]) -> tuple[str, ...]:
    fields = (node for part in read for node in walk(part) if isinstance(node, Field) and node.namespace != "context")
    return tuple(dict.fromkeys(f"{field.namespace}.{field.name}" for field in fields))


def _subscripts(comprehension: Comprehension) -> tuple[str, ...]:
    """Return the fields that a comprehension over ``extractions`` reads: ``e['f']``, ``e['meta']['k']``, and by ``.get``."""
    variable = Name(comprehension.clauses[0].name)
    found: dict[str, None] = {}
    for node in walk(comprehension):
        owner, key = _key(node)
        if owner == variable and key is not None and key != "meta":
            found[f"extraction.{key}"] = None
        elif owner is not None and _key(owner) == (variable, "meta"):
            found[f"meta.{key}"] = None
    return tuple(found)


def _key(node: Node) -> tuple[Expr | None, str | None]:
    """Return of ``e['key']`` and ``e.get('key')`` what is before the key, and the key; else nothing."""
    key: Expr | None = None
    if isinstance(node, Subscript):
        key = node.index
    elif isinstance(node, MethodCall) and node.method == "get" and node.arguments:
        key = node.arguments[0]
    if isinstance(node, Subscript | MethodCall) and isinstance(key, Literal) and isinstance(key.value, str):
        return node.value, key.value
    return None, None
