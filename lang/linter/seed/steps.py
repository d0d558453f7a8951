"""Rules about single steps: divisions, defaults, unreachable rules, tables."""

from collections.abc import Iterator, Sequence
from typing import Any

from attrs import frozen

from ...diagnostic import Diagnostic, Edit
from ...evaluate.seed.step_dependencies import names_in
from ...source import Span
from ...trees import walk
from ...trees.expr import Arithmetic, Comparison, Conditional, Expr, Name
from ...trees.seed import Aggregate, Case, Lookup, SeedStep
from .context import Context, expressions_of, lint_of_steps, number_of


@lint_of_steps("SEED051")
def divisions(context: Context, step: SeedStep) -> Iterator[Diagnostic]:
    """Report divisions by a count if no condition tests the count, because it may be zero."""
    counts = context.counts
    for expr in expressions_of(step):
        guarded = {
            id(inner): set(names_in(condition))
            for node in walk(expr)
            if isinstance(node, Conditional)
            for condition, _ in node.branches
            for inner in walk(node)
        }
        for node in walk(expr):
            if not isinstance(node, Arithmetic):
                continue
            by = next((each for operator, each in node.rest if operator in ("/", "//", "%") and isinstance(each, Name)
                       and each.name in counts and each.name not in guarded.get(id(node), ())), None)  # fmt: skip
            if isinstance(by, Name):
                yield _division(context, expr, node, by)


def _division(context: Context, expr: Expr, node: Arithmetic, operand: Name) -> Diagnostic:
    text = context.seed.source.slice(node.span) if context.root is not None else ""
    edits = []
    hint = f"write `x / {operand.name} if {operand.name} > 0 else 0`"
    if text and "\\" not in text:
        guarded = f"{text} if {operand.name} > 0 else 0"
        guarded = guarded if node is expr else f"({guarded})"
        edits = [Edit(node.span, guarded)]
        hint = f"write `{guarded}`" if len(guarded) <= 100 else hint
    message = f"{operand.name} may be 0, which would make this division an error"
    return context.diagnostic("SEED051", message, operand.span, hint, edits=edits)


@lint_of_steps("SEED052")
def without_default(context: Context, step: SeedStep) -> Iterator[Diagnostic]:
    """Report steps that have no explicit default, and are therefore null if nothing matches."""
    node = context.step_node(step)
    is_said = node is not None and "default" in node.fields
    if isinstance(step, Aggregate) and step.operation in ("max", "min") and step.default is None and not is_said:
        message = f"{step.name} has no default, so it is null if nothing matches"
        hint = 'add a default, such as "default": 0'
        yield context.diagnostic("SEED052", message, context.span_of(step, "op"), hint)
    elif isinstance(step, Lookup) and step.default is None and not is_said:
        message = f"{step.name} has no default, so it is null if no key matches"
        yield context.diagnostic("SEED052", message, context.span_of(step, "op"), 'add a "default"')


@lint_of_steps("SEED053")
def without_else(context: Context, step: SeedStep) -> Iterator[Diagnostic]:
    """Report cases without an ``else``. Such a case is null if no rule is true."""
    if not isinstance(step, Case):
        return
    node = context.step_node(step)
    rules = node.fields["rules"].items if node is not None and "rules" in node.fields else ()
    if step.otherwise is None and not any("else" in rule.fields for rule in rules):
        message = f"{step.name} has no else, so it is null if no rule is true"
        yield context.diagnostic("SEED053", message, context.span_of(step, "op"), 'add {"else": ...} as the last rule')


@frozen
class _Range:
    """The range of numbers for which a rule is true. Each of the two bounds is inclusive or exclusive."""

    low: float
    high: float
    with_low: bool
    with_high: bool

    def has(self, other: "_Range") -> bool:
        low = self.low < other.low or (self.low == other.low and (self.with_low or not other.with_low))
        high = self.high > other.high or (self.high == other.high and (self.with_high or not other.with_high))
        return low and high


_ENDS = float("-inf"), float("inf")


def _range(test: Expr) -> tuple[Expr, _Range] | None:
    """Return the operand that a test compares with a number, and the range of numbers for which the test is true.

    Return None for other tests.
    """
    if not isinstance(test, Comparison) or len(test.rest) != 1:
        return None
    (operator, right), left = test.rest[0], test.first
    number = number_of(right)
    if number is None:
        number, left = number_of(left), right
        operator = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(operator, operator)  # type: ignore[assignment]
    if number is None:
        return None
    ranges = {
        "<": _Range(_ENDS[0], number, False, False), "<=": _Range(_ENDS[0], number, False, True),
        ">": _Range(number, _ENDS[1], False, False), ">=": _Range(number, _ENDS[1], True, False),
        "==": _Range(number, number, True, True),
    }  # fmt: skip
    return (left, ranges[operator]) if operator in ranges else None


_MOST_TESTS = 200


@lint_of_steps("SEED054")
def unreachable_rules(context: Context, step: SeedStep) -> Iterator[Diagnostic]:
    """Report rules of a case that are never reached. Whenever such a rule is true, an earlier rule is true as well."""
    if not isinstance(step, Case):
        return
    node = context.step_node(step)
    nodes = {each.start: each for each in (node.fields["rules"].items if node is not None else ())}
    tests = [rule.test for rule in step.rules]
    ranges = [_range(test) for test in tests[:_MOST_TESTS]]
    for index, _ in enumerate(ranges):
        before = _taken_by(tests, ranges, index)
        if before is None:
            continue
        first, rule = step.rules[before], step.rules[index]
        is_same = ranges[before] == ranges[index] if ranges[index] is not None else True
        there, here = nodes.get(first.span.start), nodes.get(rule.span.start)
        edits: tuple[Edit, ...] = ()
        place = "an earlier rule"
        if there is not None and here is not None:
            place = f"rules[{_index(node, first.span.start)}]"
            text = context.seed.source.text
            if not is_same:
                edits = (
                    Edit(there.span, text[here.start : here.end]),
                    Edit(here.span, text[there.start : there.end]),
                )
        what = "has the same test" if is_same else "is true whenever this rule is true"
        hint = "remove one of them" if is_same else "move it before that rule"
        yield context.diagnostic("SEED054", f"this rule is never reached: {place} {what}", rule.span, hint, edits=edits)


def _index(node: Any, start: int) -> int:
    return next(number for number, each in enumerate(node.fields["rules"].items) if each.start == start)


def _taken_by(tests: Sequence[Expr], ranges: Sequence[tuple[Expr, _Range] | None], index: int) -> int | None:
    """Return the index of the first earlier test that is true whenever the test at ``index`` is true, or None."""
    mine = ranges[index]
    for first in range(index):
        other = ranges[first]
        if mine is not None and other is not None:
            if other[0] == mine[0] and other[1].has(mine[1]):
                return first
        elif tests[first] == tests[index]:
            return first
    return None


@lint_of_steps("SEED054")
def unreachable_branches(context: Context, step: SeedStep) -> Iterator[Diagnostic]:
    """Report branches that are never reached in conditionals such as ``a if x else b if y else c``."""
    for expr in expressions_of(step):
        inner: set[int] = set()
        for node in walk(expr):
            if not isinstance(node, Conditional) or id(node) in inner:
                continue
            tests, last = [test for test, _ in node.branches], node.otherwise
            while isinstance(last, Conditional):  # a conditional in parentheses
                inner.add(id(last))
                tests += [test for test, _ in last.branches]
                last = last.otherwise
            ranges = [_range(test) for test in tests[:_MOST_TESTS]]
            for index, _ in enumerate(ranges):
                before = _taken_by(tests, ranges, index)
                if before is not None:
                    is_same = tests[before] == tests[index]
                    what = "has the same test" if is_same else "is true whenever this branch is true"
                    message = f"this branch is never reached: an earlier branch {what}"
                    hint = "the first true test determines the value"
                    yield context.diagnostic("SEED054", message, tests[index].span, hint)


@lint_of_steps("SEED055")
def tables(context: Context, step: SeedStep) -> Iterator[Diagnostic]:
    """Report faults in the tables of lookups: empty tables, keys that are never reached, values that can't be compared."""
    if not isinstance(step, Lookup):
        return
    node = context.step_node(step)
    keys = node.fields["table"].keys if node is not None and "table" in node.fields else {}
    at = context.span_of(step, "table")
    if not step.table:
        yield context.diagnostic("SEED055", "the table is empty", Span(at.start, at.start + 1), "add keys with values")
        return
    if step.match in ("substring_max", "word_max"):
        yield from _greatest(context, step, at)
    if "" in keys or any(key == "" for key, _ in step.table):
        message = f"an empty key matches {'only an empty string' if step.match == 'exact' else 'nothing'}"
        yield context.diagnostic("SEED055", message, keys.get("", at), "the default is used if no key matches",
                            severity="warning")  # fmt: skip
    if step.match != "exact":
        yield from _folded(context, step, keys, at)
    kinds = {_kind(value) for _, value in step.table}
    if step.default is not None and len(kinds) == 1 and _kind(step.default) not in kinds and len(step.table) > 1:
        message = f"the default is {_kind(step.default)}, but all values of the table are {_PLURAL[kinds.pop()]}"
        yield context.diagnostic("SEED055", message, context.span_of(step, "default"), severity="warning")


def _greatest(context: Context, step: Lookup, at: Span) -> Iterator[Diagnostic]:
    odd = next((key for key, value in step.table if _kind(value) != "a number"), None)
    if odd is not None and {_kind(value) for _, value in step.table} != {"a string"}:
        node = context.step_node(step)
        span = node.fields["table"].fields[odd].span if node is not None else at
        kind = _kind(dict(step.table)[odd])
        message = f"the lookup returns the largest value, but the value of {odd!r:.40} is {kind}"
        yield context.diagnostic("SEED055", message, span, 'write numbers, or "match": "substring_first"')


def _folded(context: Context, step: Lookup, keys: Any, at: Span) -> Iterator[Diagnostic]:
    seen: dict[str, str] = {}
    is_part = step.match == "substring_first"
    for key, _ in step.table[:1_000]:
        folded = key.casefold()
        if folded in seen:
            message = f"{seen[folded]!r:.40} and {key!r:.40} are the same key: case is ignored"
            yield context.diagnostic("SEED055", message, keys.get(key, at), "remove one of them", severity="warning")
        elif is_part and (inner := next((each for each in seen if each and each in folded), None)) is not None:
            message = f"{key!r:.40} is never reached: the earlier key {seen[inner]!r:.40} is part of it"
            hint = "move it before that key, because the first match is used"
            yield context.diagnostic("SEED055", message, keys.get(key, at), hint, severity="warning")
        seen.setdefault(folded, key)


_PLURAL = {
    "a number": "numbers", "a string": "strings", "a boolean": "booleans", "a list": "lists", "an object": "objects", "null": "null",
}  # fmt: skip


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    return "a string" if isinstance(value, str) else "a list" if isinstance(value, list | tuple) else "an object"
