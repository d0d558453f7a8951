"""Explanation of a computed value: each step that the value needs, with its formula, its operands, and the reviews it used.

``explain`` returns each step once, in display order: the requested step first, then its dependencies. ``as_text`` and ``as_json`` of the
result write out the steps. See ``docs/design/seed.md#results``.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from typing import Literal as OneOf

import attrs
from attrs import frozen

from ...diagnostic import nearest, printable
from ...printer.expr_printer import format_expr
from ...trees import Node, walk
from ...trees.expr import (
    BoolChain,
    Comparison,
    Comprehension,
    Expr,
    Field,
    ListDisplay,
    Literal,
    MethodCall,
    Name,
    Not,
    Subscript,
)
from ...trees.seed import (
    Aggregate,
    Case,
    Const,
    DefineFilter,
    FilterUse,
    Formula,
    FormulaSeed,
    Lookup,
    Reduce,
    SeedStep,
    Tally,
)
from ..expr.interpreter import evaluate
from ..expr.values import ExprError, Meter, short_json, truth
from .interpreter import Computed, Interpreter, Reduced, Row, Table
from .step_dependencies import EXTRACTIONS, names_in, needs, parts

# Descriptions of computations in words, such as "count of extractions where severity is mild or severe".

_TESTS = {"==": "is", "!=": "is not", "<": "is below", "<=": "is at most", ">": "is above", ">=": "is at least"}
_AGGREGATES = {"sum": "sum of", "max": "maximum of", "min": "minimum of"}
_LOOKUPS = {
    "exact": "value of the first key that is exactly",
    "substring_first": "value of the first key found in",
    "substring_max": "largest value of the keys found in",
    "word_first": "value of the first key found as a word in",
    "word_max": "largest value of the keys found as words in",
}


def step_in_words(step: SeedStep) -> str:
    """Return a description of the computation of ``step``, without its name and value."""
    match step:
        case DefineFilter():
            return f"extractions{_where(step.where)}"
        case Aggregate(operation="count"):
            return f"count of extractions{_where(step.where)}"
        case Aggregate():
            element = "" if step.element is None else f" {_subject(step.element)}"
            default = "" if step.operation == "sum" or step.default is None else f"; default {short_json(step.default)}"
            return f"{_AGGREGATES[step.operation]}{element} over extractions{_where(step.where)}{default}"
        case Lookup():
            return f"{_LOOKUPS[step.match]} {format_expr(step.source)}; default {short_json(step.default)}"
        case Case():
            return "value of the first true rule"
        case Formula():
            return format_expr(step.expr)
        case Const():
            return "a constant"
        case Tally():
            most = "" if step.top is None else f"; the {step.top:,} most frequent values"
            return f"number of extractions for each value of {_subject(step.element)}{_where(step.where)}{most}"
        case Reduce():
            read = ", ".join("the text" if source is None else _subject(source) for source in step.sources)
            return f"written by the model about {read} of extractions{_where(step.where)}"


def _where(where: Sequence[Expr | FilterUse] | None) -> str:
    return f" where {' and '.join(condition_in_words(part) for part in where)}" if where else ""


def condition_in_words(part: Expr | FilterUse) -> str:
    """Return a condition in words if it has a simple form. Otherwise, return the text of the expression."""
    match part:
        case FilterUse():
            return f"{part.name} {'holds' if part.holds else 'does not hold'}"
        case Not():
            return f"not ({condition_in_words(part.operand)})"
        case BoolChain():
            nested = (condition_in_words(operand) for operand in part.operands)
            return f" {part.operator} ".join(
                f"({words})" if isinstance(operand, BoolChain) else words
                for operand, words in zip(part.operands, nested, strict=True)
            )
        case Comparison(first=Field() | Name() as subject, rest=((test, operand),)):
            words = _comparison(test, operand)
            return f"{_subject(subject)} {words}" if words else format_expr(part)
        case Comparison(first=Literal() as low, rest=(("<=", Field() | Name() as subject), ("<=", Literal() as high))):
            return f"{_subject(subject)} is from {_literal(low)} to {_literal(high)}"
        case Field() | Name():
            return f"{_subject(part)} is true"
        case _:
            return format_expr(part)


def _comparison(test: str, operand: Expr) -> str:
    if isinstance(operand, ListDisplay) and test in ("in", "not in") and operand.items:
        literals = [item for item in operand.items if isinstance(item, Literal)]
        if len(literals) != len(operand.items):
            return ""
        *firsts, last = map(_literal, literals)
        several = f"{', '.join(firsts)} {'or' if test == 'in' else 'nor'} {last}" if firsts else last
        return f"is {several}" if test == "in" else f"is {'neither ' if firsts else 'not '}{several}"
    if not isinstance(operand, Literal):
        return ""
    if operand.value is None:
        return {"==": "is null", "is": "is null", "!=": "is not null", "is not": "is not null"}.get(test, "")
    return f"{_TESTS[test]} {_literal(operand)}" if test in _TESTS else ""


def _literal(literal: Literal) -> str:
    value = literal.value
    return value if isinstance(value, str) and value.isidentifier() else short_json(value)


def _subject(expr: Expr) -> str:
    return expr.name if isinstance(expr, Field) and expr.namespace == "extraction" else format_expr(expr)


StepKind = OneOf["filter", "aggregate", "lookup", "case", "formula", "constant", "reduced"]


@frozen
class Selection:
    """The rows that an aggregate used: the index and the contribution of each row. The contribution to a count is 1.

    ``words`` is the text of the comprehension, if the formula contains one. ``reads`` are the fields that it read. ``gave`` is
    true if the contributions should be shown; it is false for a count.
    """

    words: str
    used: tuple[tuple[int, Any], ...]
    reads: tuple[str, ...] = ()
    gave: bool = False


@frozen
class StepExplanation:
    """One step: its description, its value or the reason why it has no value, and the sources of the value.

    ``operands`` are the names and context fields that the step uses, with their values. ``rule`` says which rule of a case applies.
    ``matched`` are the matching keys of a lookup, with their values. ``needs`` are the steps that the step uses, including filters.
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
    """The step ``name``, followed by all steps that it needs. ``rows`` is the number of extractions."""

    name: str
    rows: int
    steps: tuple[StepExplanation, ...]

    @property
    def value(self) -> Any:
        """The explained value; None if the step has no value."""
        return self.steps[0].value

    def as_json(self) -> dict[str, Any]:
        """Return ``{name, value, rows, steps: [...]}``. Each step has those attributes of ``StepExplanation`` that are not empty."""
        steps = [_step_json(step) for step in self.steps]
        return {"name": self.name, "value": self.value, "rows": self.rows, "steps": steps}

    def as_text(self, rows: Sequence[Row], *, reviews: int = 5) -> str:
        """Return the explanation as text for a terminal.

        Each step is shown once, below a step that needs it, with up to ``reviews`` reviews.

        ``rows`` are the rows of the computation; their ``review``, ``id`` and ``excerpt`` are shown if present.
        """
        steps = {step.name: step for step in self.steps}
        lines: list[str] = []
        rendered: set[str] = set()
        stack = [(self.name, 0)]
        while stack:
            name, depth = stack.pop()
            step, indent = steps[name], "  " * min(depth, _DEEPEST)
            if name in rendered:
                lines.append(f"{indent}{_head(step)} (see above)")
                continue
            rendered.add(name)
            lines += [f"{indent}{_head(step)}", *(f"{indent}  {line}" for line in _body(step, self, rows, reviews))]
            stack += [(need, depth + 1) for need in reversed(step.needs)]
        return "\n".join(printable(line if len(line) <= _LINE else line[: _LINE - 1] + "…") for line in lines)


def explain(
    seed: FormulaSeed,
    rows: Sequence[Row],
    context: Mapping[str, Any],
    name: str,
    computed: Computed | None = None,
    reduced: Mapping[str, Reduced] | None = None,
) -> Explanation:
    """Explain the value of step ``name``, or the reason why it has no value.

    ``computed`` is the result of an earlier computation, if available; ``reduced`` are the values of the ``reduce`` steps.
    Raises ``ValueError`` if no step has this name.
    """
    if name not in seed.step_by_name:
        near = nearest(name, seed.step_by_name)
        raise ValueError(f"the seed has no step {name}" + (f"; did you mean {near}?" if near else ""))
    steps = _steps_in_display_order(seed, name)
    return Explanation(name, len(rows), _Explainer(seed, rows, context, steps, computed, reduced).explained())


def _steps_in_display_order(seed: FormulaSeed, name: str) -> dict[str, SeedStep]:
    """Return the step ``name`` and all its dependencies in display order: depth first, each step at its first mention."""
    steps: dict[str, SeedStep] = {}
    stack = [name]
    while stack:
        current = stack.pop()
        if current not in steps and current in seed.step_by_name:
            steps[current] = seed.step_by_name[current]
            stack += reversed(needs(steps[current]))
    return steps


class _Explainer:
    def __init__(
        self,
        seed: FormulaSeed,
        rows: Sequence[Row],
        context: Mapping[str, Any],
        steps: Mapping[str, SeedStep],
        computed: Computed | None,
        reduced: Mapping[str, Reduced] | None,
    ) -> None:
        self.steps = steps
        self.context = context
        needed = attrs.evolve(seed, steps=tuple(s for s in seed.steps if s.name in steps))
        self.run = Interpreter(needed, rows, context, reduced=reduced)
        self.computed = self.run.computed() if computed is None else self.run.resumed(computed)
        self.errors = {error.step: error.message for error in self.computed.errors}

    def explained(self) -> tuple[StepExplanation, ...]:
        return tuple(map(self._step, self.steps.values()))

    def _step(self, step: SeedStep) -> StepExplanation:
        explanation = StepExplanation(
            step.name,
            step_in_words(step),
            _KINDS[type(step)],
            value=self.computed.values.get(step.name),
            error=self.errors.get(step.name, ""),
            operands=tuple(self._operands(step)),
            needs=tuple(need for need in needs(step) if need in self.steps),
        )
        if explanation.error:
            return explanation
        self.run.meter = Meter(self.run.meter.limits)  # the repeated computation must stay within the limits
        match step:
            case DefineFilter():
                used = tuple((index, True) for index, holds in enumerate(self.run.filters[step.name]) if holds)
                return attrs.evolve(explanation, selections=(Selection("", used, _reads(parts(step))),))
            case Reduce():
                used = tuple((index, True) for index, holds in enumerate(self.run.selected(step.where)) if holds)
                return attrs.evolve(explanation, selections=(Selection("", used, _reads(parts(step))),))
            case Aggregate() | Tally():
                gave = step.element is not None
                selection = Selection("", tuple(self.run.elements(step)), _reads(parts(step)), gave)
                return attrs.evolve(explanation, selections=(selection,))
            case Case():
                return attrs.evolve(explanation, rule=self._rule(step))
            case Lookup():
                positions = Table.of(step).matching(self.run.evaluated(step.source), self.run.meter)
                return attrs.evolve(explanation, matched=tuple(step.table[position] for position in positions))
            case Formula():
                return attrs.evolve(explanation, selections=tuple(self._comprehensions(step.expr)))
            case _:
                return explanation

    def _operands(self, step: SeedStep) -> Iterator[tuple[str, Any]]:
        """Yield the computed values and the context fields that ``step`` uses, each once, as pairs of name and value."""
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
                return f"rule {position} of {len(step.rules)} is true: {condition_in_words(rule.test)}"
        return "no rule is true; the value comes from else"

    def _comprehensions(self, expr: Expr) -> Iterator[Selection]:
        """Yield the rows that each comprehension over ``extractions`` uses.

        If ``extractions`` is used in another way, all rows are used.
        """
        for node in walk(expr, lambda node: not isinstance(node, Comprehension)):
            if isinstance(node, Comprehension) and node.clauses[0].iterable == Name(EXTRACTIONS):
                first = attrs.evolve(node.clauses[0], iterable=Name(_ONE))
                alone = attrs.evolve(node, kind="list", clauses=(first, *node.clauses[1:]))
                words = format_expr(attrs.evolve(node, kind="list"))
                gave = not isinstance(node.element, Literal)
                yield Selection(words, tuple(self._selected_rows(alone)), _subscripts(node), gave)
            elif isinstance(node, Name | Comprehension) and EXTRACTIONS in names_in(node):
                yield Selection(EXTRACTIONS, tuple((index, 1) for index in range(len(self.run.rows))))

    def _selected_rows(self, alone: Comprehension) -> Iterator[tuple[int, Any]]:
        names = dict(self.run.names)
        for index, found in enumerate(self.run.names[EXTRACTIONS]):
            names[_ONE] = [found]
            try:
                given = evaluate(alone, names, context=self.context, meter=self.run.meter)
            except ExprError:  # the formula as a whole has a value, so it did not evaluate this row
                continue
            if given:
                yield index, given[0] if len(given) == 1 else given


_KINDS: Mapping[type, StepKind] = {
    DefineFilter: "filter", Aggregate: "aggregate", Lookup: "lookup", Case: "case", Formula: "formula", Const: "constant",
    Tally: "aggregate", Reduce: "reduced",
}  # fmt: skip

_ONE = "one of extractions"
"""The name of a list that contains one row. The name has spaces, so it can't clash with a name in an expression."""


def _reads(read: Sequence[Expr | FilterUse]) -> tuple[str, ...]:
    fields = (node for part in read for node in walk(part) if isinstance(node, Field) and node.namespace != "context")
    return tuple(dict.fromkeys(f"{field.namespace}.{field.name}" for field in fields))


def _subscripts(comprehension: Comprehension) -> tuple[str, ...]:
    """Return the fields that a comprehension over ``extractions`` reads: ``e['f']``, ``e['meta']['k']``, also with ``.get``."""
    variable = Name(comprehension.clauses[0].variable or _ONE)
    found: dict[str, None] = {}
    for node in walk(comprehension):
        owner, key = _key(node)
        if owner == variable and key is not None and key != "meta":
            found[f"extraction.{key}"] = None
        elif owner is not None and _key(owner) == (variable, "meta"):
            found[f"meta.{key}"] = None
    return tuple(found)


def _key(node: Node) -> tuple[Expr | None, str | None]:
    """If ``node`` is ``e['key']`` or ``e.get('key')``, return ``e`` and the key; for any other node, return (None, None)."""
    key: Expr | None = None
    if isinstance(node, Subscript):
        key = node.index
    elif isinstance(node, MethodCall) and node.method == "get" and node.arguments:
        key = node.arguments[0]
    if isinstance(node, Subscript | MethodCall) and isinstance(key, Literal) and isinstance(key.value, str):
        return node.value, key.value
    return None, None


# Output of an explanation as JSON or as indented text, from the seed's output down to the reviews.

_DEEPEST = 12
"""Maximum number of indentation levels. A deeper chain of steps continues at the last level."""

_LINE = 1_000
"""Maximum number of characters of a line; a longer line is cut."""

_PARTS = 3
"""Maximum number of parts of a long review that are shown."""
_EXCERPT = 90
"""Maximum number of characters of a review that are shown."""


def _head(step: StepExplanation) -> str:
    if step.error:
        return f"{step.name} has no value: {step.error}"
    if step.kind == "filter":
        return f"{step.name} holds for {len(step.selections[0].used)} extractions"
    return f"{step.name} = {short_json(step.value)}{', a constant' if step.kind == 'constant' else ''}"


def _body(step: StepExplanation, explanation: Explanation, rows: Sequence[Row], reviews: int) -> list[str]:
    operands = "".join(f", {name} = {short_json(value)}" for name, value in step.operands)
    equals = f"{short_json(step.value)} = " if step.kind == "formula" and not step.error else ""
    if step.kind == "constant":
        return []
    lines = [f"{equals}{step.operation}{operands}"]
    if step.rule:
        lines.append(step.rule)
    if step.matched is not None:
        keys = ", ".join(f"{short_json(key)} gives {short_json(value)}" for key, value in step.matched[:reviews])
        more = f", and {len(step.matched) - reviews} more" if len(step.matched) > reviews else ""
        lines.append(f"matched: {keys}{more}" if keys else "no key matches; the default is used")
    several = len(step.selections) > 1
    for selection in step.selections:
        over = f"{selection.words}: " if several else ""
        lines += _evidence(over, selection, explanation.rows, rows, reviews)
    return lines


def _evidence(over: str, selection: Selection, of: int, rows: Sequence[Row], reviews: int) -> list[str]:
    lines = [f"{over}{len(selection.used)} of {of} extractions"]
    for index, given in selection.used[:reviews]:
        lines.append(f"  {_row(index, given, rows[index], selection)}")
    if len(selection.used) > reviews:
        lines.append(f"  and {len(selection.used) - reviews} more")
    return lines


def _row(index: int, given: Any, row: Row, selection: Selection) -> str:
    name = f"review {row['review']}" if "review" in row else f"extraction {index}"
    known = f" {short_json(row['id'])}" if row.get("id") not in (None, "") else ""
    fields = ", ".join(_read(row, read) for read in selection.reads)
    gave = f" gave {short_json(given)}" if selection.gave else ""
    excerpt = str(row.get("excerpt") or "")
    quoted = f": {short_json(excerpt, _EXCERPT)}" if excerpt else ""
    return f"{name}{known}{gave}{f' ({fields})' if fields else ''}{quoted}"


def _read(row: Row, read: str) -> str:
    namespace, _, name = read.partition(".")
    invalid = row.get("invalid" if namespace == "extraction" else "invalid_meta") or {}
    said = f" (invalid: {short_json(invalid[name])})" if name in invalid else ""
    spans, parts = row.get("parts") or (), (row.get("decided") or {}).get(name, ()) if namespace == "extraction" else ()
    places = [f"{spans[part][0]:,} to {spans[part][1]:,}" for part in parts if part < len(spans)]
    where = (
        f" at characters {' and '.join(places[:_PARTS])}{' and more' if len(places) > _PARTS else ''}" if places else ""
    )
    return f"{name if namespace == 'extraction' else read} {short_json(row.get(namespace, {}).get(name))}{said}{where}"


def _step_json(step: StepExplanation) -> dict[str, Any]:
    plain: dict[str, Any] = {"name": step.name, "kind": step.kind, "operation": step.operation}
    plain |= {"error": step.error} if step.error else {} if step.kind == "filter" else {"value": step.value}
    if step.operands:
        plain["operands"] = dict(step.operands)
    if step.rule:
        plain["rule"] = step.rule
    if step.matched is not None:
        plain["matched"] = dict(step.matched)
    if step.selections:
        plain["selections"] = [_selection_json(selection) for selection in step.selections]
    if step.needs:
        plain["needs"] = list(step.needs)
    return plain


def _selection_json(selection: Selection) -> dict[str, Any]:
    plain: dict[str, Any] = {"over": selection.words} if selection.words else {}
    plain["used"] = [index for index, _ in selection.used]
    if selection.gave:
        plain["gave"] = [given for _, given in selection.used]
    return {**plain, "reads": list(selection.reads)}
