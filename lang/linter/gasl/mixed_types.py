"""Attributes of the graph whose values have several types: comparisons leave values out, sorting and grouping separate them."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve

from ...catalogue.schema import Schema
from ...diagnostic import Diagnostic, Edit
from ...evaluate.conditions import look_up
from ...evaluate.conditions.other_types import other_forms
from ...evaluate.conditions.values import MOST_EXAMPLES, example_of, id_text
from ...printer.gasl_printer import format_text
from ...trees import gasl
from ...trees.conditions import And, Call, Comparison, Condition, Constant, Field, NullTest, Or
from .conditions import kind_of_value, word_of
from .context import Context, Step, lint
from .fields import constants_of, fields_read, increasing_of
from .graph import KINDS, Place, attribute_of, is_id, place_of, tests

_KIND_TESTS: Mapping[str, tuple[tuple[str, Any], ...]] = {
    "text": ((">=", ""),), "number": ((">=", 0), ("<", 0)), "boolean": ((">=", False),),
}  # fmt: skip
"""Comparisons that are true for all values of a kind and for no other value."""
_ORDERED = ("number", "text", "boolean", "list", "object")
"""The kinds in the order in which values are sorted."""
_EQUALITY = frozenset({"=", "!=", "IN", "NOT IN"})
_MOST_COUNTED = 1_000


@lint("GASL099")
def mixed_types(context: Context) -> Iterator[Diagnostic]:
    """Report comparisons, orders and groups by an attribute whose values have several types."""
    for _, test, place, schema in tests(context):
        kinds = kinds_of(place, schema)
        if len(kinds) < 2:
            continue
        for constant in constants_of(test):
            if test.operator in _EQUALITY:
                yield from _other_forms(context, test, place, schema, constant)
            elif found := _left_out(kinds, test.operator, constant):
                yield _of_comparison(context, test, place, schema, constant, found)
    for step in context.steps:
        yield from _of_orders(context, step)
        for increasing, scope in increasing_of(step):
            at = place_of(evolve(increasing.field, quantifier="all"), scope, context.schema) if context.schema else None
            kinds = kinds_of(at, context.schema) if at is not None and context.schema is not None else {}
            if at is not None and context.schema is not None and len(kinds) > 1:
                some = _examples(at, context.schema, {kind: count for kind, count in list(kinds.items())[1:]})
                message = (
                    f"{_described(at, context.schema)}; a path with values of different types is not increasing{some}"
                )
                yield context.diagnostic("GASL099", message, increasing.field.span, severity="warning")


def kinds_of(place: Place, schema: Schema) -> Mapping[str, int]:
    """Return the kinds of the values of an attribute or of an id, with their counts, the most frequent kind first."""
    attribute = attribute_of(place, schema)
    types = schema.id_types if attribute is None and is_id(place) else {} if attribute is None else attribute.types
    kinds: Counter[str] = Counter()
    for name, count in types.items():
        if name in KINDS:
            kinds[KINDS[name]] += count
    return dict(sorted(kinds.items(), key=lambda pair: (-pair[1], _ORDERED.index(pair[0]))))


def _left_out(kinds: Mapping[str, int], operator: str, constant: Constant) -> dict[str, int]:
    """Return the kinds of values for which a comparison is unknown, unless it is unknown for all kinds."""
    kind = kind_of_value(constant.value)
    taken = {kind} if operator in ("<", "<=", ">", ">=") else {"text"}
    if operator == "CONTAINS":
        taken = {"list", "text"} if kind == "text" else {"list"}
    found = {name: count for name, count in kinds.items() if name not in taken}
    return found if len(found) < len(kinds) and kind != "null" else {}


def _of_comparison(
    context: Context, test: Comparison, place: Place, schema: Schema, constant: Constant, left_out: Mapping[str, int]
) -> Diagnostic:
    counts = " and ".join(_counted(kind, count) for kind, count in left_out.items())
    shown = _written(constant.value)
    message = f"{_described(place, schema)}; the comparison with {shown} leaves out {counts}{_examples(place, schema, left_out)}"
    hint = ""
    if (
        kind_of_value(constant.value) == "number"
        and set(left_out) == {"text"}
        and _are_numbers(test.left, place, schema)
    ):
        field = context.text(test.left.span)
        hint = f"write number({field}) {test.operator} {shown} to read the strings as numbers"
    return context.diagnostic("GASL099", message, test.left.span, hint, severity="warning")


def _are_numbers(field: Any, place: Place, schema: Schema) -> bool:
    """Return whether number() reads every string of an attribute, and can be written around ``field``. False if this is unknown."""
    if not isinstance(field, Field) or field.quantifier is not None or schema.all_ids is None:
        return False
    at = Field(place.path)
    others = And((Comparison(at, ">=", Constant("")), NullTest(Call("number", (at,)))))
    return not _found(place, schema, others, 1)


def _described(place: Place, schema: Schema) -> str:
    kinds, noun = kinds_of(place, schema), _noun(place, schema)
    first, *rest = ((word_of(kind), count) for kind, count in kinds.items())
    nouns = noun if first[1] == 1 else f"{noun}s"
    others = (f"{_a(word)} in {count:,}" for word, count in rest)
    return f"{'.'.join(place.path)} is {' and '.join([f'{_a(first[0])} in {first[1]:,} {nouns}', *others])}"


def _noun(place: Place, schema: Schema) -> str:
    return "edge" if place.whose == "edges" and not (place.path[0] in ("source", "target") and is_id(place)) else "node"


def _a(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def _counted(kind: str, count: int) -> str:
    return f"{count:,} {word_of(kind)}{'' if count == 1 else 's'}"


def _written(value: Any) -> str:
    return (
        format_text(value[:60])
        if isinstance(value, str)
        else "true"
        if value is True
        else "false"
        if value is False
        else str(value)
    )


def _examples(place: Place, schema: Schema, kinds: Mapping[str, int]) -> str:
    """Return the first values of the kinds, with their items, in parentheses; "" if the graph is not open."""
    tests = [pair for kind in kinds for pair in _KIND_TESTS.get(kind, ())]
    if not tests:
        return ""
    at = Field(place.path)
    leaves = tuple(Comparison(at, operator, Constant(value)) for operator, value in tests)  # type: ignore[arg-type]  # an operator
    found = _found(place, schema, leaves[0] if len(leaves) == 1 else Or(leaves), MOST_EXAMPLES)
    more = ", …" if sum(kinds.values()) > len(found) else ""
    return f" ({', '.join(found)}{more})" if found else ""


def _found(place: Place, schema: Schema, condition: Condition, most: int) -> list[str]:
    """Return descriptions of the first nodes or edges that satisfy a condition on an attribute; empty if the graph is not open."""
    if schema.all_ids is None:
        return []
    items = schema.all_ids.matching("edges" if place.whose == "edges" else "nodes", condition, most)
    ends = ("source", "target") if place.whose == "edges" else ("id",)
    return [example_of(" → ".join(id_text(item.get(end)) for end in ends), look_up(item, place.path)) for item in items]


def _other_forms(
    context: Context, test: Comparison, place: Place, schema: Schema, constant: Constant
) -> Iterator[Diagnostic]:
    """Report a value that the attribute also has in another type: 1 and "1", true and "true"."""
    listed = {_key(each.value) for each in constants_of(test)}
    is_there = bool(_found(place, schema, Comparison(Field(place.path), "=", constant), 1))
    attribute = attribute_of(place, schema)
    is_known = attribute is not None and attribute.distinct == len(attribute.values)
    if not is_there and (
        is_known or (attribute is None and schema.all_ids is not None and constant.value not in schema.all_ids)
    ):
        return  # GASL071 reports a value that the attribute or the id never has
    forms, found = list[str](), list[str]()
    for form in other_forms(constant.value):
        some = (
            _found(place, schema, Comparison(Field(place.path), "=", Constant(form)), _MOST_COUNTED)
            if _key(form) not in listed
            else []
        )
        forms += [_written(form)] if some else []
        found += some
    if not found:
        return
    shown, others = _written(constant.value), " and ".join(forms)
    count = f"{len(found):,} {place.whose if len(found) != 1 else place.whose[:-1]}"
    examples = ", ".join(found[:MOST_EXAMPLES]) + (", …" if len(found) > MOST_EXAMPLES else "")
    message = f"{_described(place, schema)}; {shown} is not equal to {others}, the value in {count} ({examples})"
    field, sign = context.text(test.left.span), "NOT IN" if test.operator == "!=" else "IN"
    hint = f"add {', '.join(forms)} to the list for all of them"
    if test.operator in ("=", "!="):
        hint = f"write {field} {sign} ({', '.join((shown, *forms))}) for all of them"
    edits = [] if is_there else [Edit(constant.span, forms[0])]
    hint = hint if is_there else f"did you mean {forms[0]}?"
    yield context.diagnostic("GASL099", message, constant.span, hint, edits=edits, severity="warning")


def _key(value: Any) -> tuple[str, Any]:
    return kind_of_value(value), value if isinstance(value, str | int | float) else None


def _has_other_forms(place: Place, schema: Schema) -> bool:
    """Return whether the attribute may have a value in two types. False only if all values are known."""
    attribute = attribute_of(place, schema)
    if attribute is None or attribute.distinct != len(attribute.values):
        return True
    known = {_key(value) for value, _ in attribute.values}
    return any(_key(form) in known for value, _ in attribute.values for form in other_forms(value))


def _of_orders(context: Context, step: Step) -> Iterator[Diagnostic]:
    """Report the fields by which a command sorts, groups, joins or aggregates, if their values have several types."""
    command, schema = step.command, context.schema
    if schema is None:
        return
    roles = {id(value): role for role, value in _roles(command) if isinstance(value, Field)}
    for read in fields_read(context, step):
        role = roles.get(id(read.field))
        place = place_of(read.field, read.scope, schema) if role is not None else None
        kinds = kinds_of(place, schema) if place is not None and place.path else {}
        if place is None or len(kinds) < 2:
            continue
        if role in ("groups", "joins") and not _has_other_forms(place, schema):
            continue
        field = context.text(read.field.span)
        others = {kind: count for kind, count in kinds.items() if kind != _first_kind(kinds)}
        some = _examples(place, schema, others)
        if role == "sorts":
            counts = " and ".join(_counted(kind, count) for kind, count in others.items())
            effect = f"sorting puts {counts}{some} after the {word_of(_first_kind(kinds))}s"
        elif role == "aggregates":
            effect = f"the function takes values of one type{some}"
        else:
            effect = f"values of different types are never equal{some}"
        is_readable = set(kinds) == {"number", "text"} and _are_numbers(read.field, place, schema)
        hint = f"write number({field}) to read the strings as numbers" if is_readable else ""
        yield context.diagnostic(
            "GASL099", f"{_described(place, schema)}; {effect}", read.field.span, hint, severity="warning"
        )


def _first_kind(kinds: Mapping[str, int]) -> str:
    return min(kinds, key=_ORDERED.index)


def _roles(command: gasl.Command) -> Iterator[tuple[str, Any]]:
    """Yield the values of a command that must be comparable with each other, with what the command does with them."""
    orders: Sequence[Any] = command.by if isinstance(command, gasl.Rank) else getattr(command, "order", ()) or ()
    yield from (("sorts", each.value) for each in orders if isinstance(each, gasl.Order))
    if isinstance(command, gasl.Join | gasl.SetOperation):
        for pair in command.on:
            yield from (("joins", value) for value in (pair.left, pair.other))
    if isinstance(command, gasl.Aggregate | gasl.Count):
        yield from (("groups", getattr(each, "value", each)) for each in command.by or ())
    if isinstance(command, gasl.Aggregate):
        functions = ("sum", "mean", "min", "max", "median", "stdev", "percentile")
        yield from (("aggregates", each.value) for each in command.computations if each.function in functions)
    yield from (("groups", value) for value in getattr(command, "per", ()) or ())
