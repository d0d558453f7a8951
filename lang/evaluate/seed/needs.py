"""What a step needs: the names of earlier steps that it uses, filters too; and the fields of an extraction that it reads."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from ...expr import Comprehension, Expr, Field, Literal, MethodCall, Name, Subscript
from ...node import Node, walk
from ...seed import Aggregate, Case, DefineFilter, FilterUse, Formula, FormulaSeed, Lookup, SeedStep

__all__ = [
    "EXTRACTIONS",
    "Reads",
    "names_in",
    "needs",
    "parts",
    "reads_extractions",
    "reads_of",
    "reads_of_outputs",
    "unknown_rows",
]

EXTRACTIONS = "extractions"
"""The name under which an expression finds all extractions."""


def needs(step: SeedStep) -> tuple[str, ...]:
    """Return the names that ``step`` uses, each once, in the order of their first use. Some may be no step's name."""
    found: dict[str, None] = {}
    for part in parts(step):
        if isinstance(part, FilterUse):
            found[part.name] = None
        else:
            found |= dict.fromkeys(names_in(part))
    found.pop(EXTRACTIONS, None)
    return tuple(found)


def parts(step: SeedStep) -> tuple[Expr | FilterUse, ...]:
    """Return what ``step`` evaluates, in that order."""
    match step:
        case DefineFilter():
            return step.where
        case Aggregate():
            return (*(step.where or ()), *(() if step.element is None else (step.element,)))
        case Lookup():
            return (step.source,)
        case Case():
            return tuple(rule.test for rule in step.rules)
        case Formula():
            return (step.expr,)
        case _:
            return ()


def reads_extractions(step: SeedStep) -> bool:
    """Say whether ``step`` looks at the extractions itself: an aggregate, a filter, a formula over ``extractions``."""
    if isinstance(step, Aggregate | DefineFilter):
        return True
    return any(EXTRACTIONS in names_in(part) for part in parts(step) if not isinstance(part, FilterUse))


def names_in(expr: Expr) -> tuple[str, ...]:
    """Return the names that ``expr`` takes from outside, each once: no variable of a comprehension."""
    found: dict[str, None] = {}
    stack: list[tuple[Node, frozenset[str]]] = [(expr, frozenset())]
    while stack:
        root, bound = stack.pop()
        inner: list[tuple[Node, frozenset[str]]] = []
        for node in walk(root, lambda node: not isinstance(node, Comprehension)):
            if isinstance(node, Comprehension):
                known = bound
                for clause in node.clauses:
                    inner.append((clause.iterable, known))
                    known |= {clause.name}
                    inner += [(condition, known) for condition in clause.conditions]
                inner.append((node.element, known))
            elif isinstance(node, Name) and node.name not in bound:
                found[node.name] = None
        stack += reversed(inner)
    return tuple(found)


@frozen
class Reads:
    """The fields of an extraction, and the keys of its ``meta``, that are read."""

    fields: frozenset[str] = frozenset()
    meta: frozenset[str] = frozenset()

    def __or__(self, other: "Reads") -> "Reads":
        return Reads(self.fields | other.fields, self.meta | other.meta)

    def unknown(self, row: Mapping[str, Any]) -> bool:
        """Say whether one of them is invalid in ``row``: what it is there is not known."""
        return not (
            self.fields.isdisjoint(row.get("invalid", ())) and self.meta.isdisjoint(row.get("invalid_meta", ()))
        )


def reads_of(seed: FormulaSeed) -> dict[str, Reads]:
    """Return by step what it reads of extractions, itself or by its filters."""
    found: dict[str, Reads] = {}
    filters: dict[str, Reads] = {}
    for step in seed.steps:
        made = _own_reads(step, seed.field_by_name)
        for part in parts(step):
            if isinstance(part, FilterUse):
                made |= filters.get(part.name, Reads())
        found[step.name] = made
        if isinstance(step, DefineFilter):
            filters[step.name] = made
    return found


def reads_of_outputs(seed: FormulaSeed) -> Reads:
    """Return what the steps behind the outputs read of extractions."""
    reads, steps = reads_of(seed), seed.step_by_name
    made, seen, stack = Reads(), set[str](), list(seed.outputs)
    while stack:
        name = stack.pop()
        if name in steps and name not in seen:
            seen.add(name)
            made |= reads[name]
            stack += needs(steps[name])
    return made


def unknown_rows(reads: Mapping[str, Reads], rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return by step over how many of ``rows`` it can't decide, because what it reads is invalid there; only where there are any."""
    doubtful = [row for row in rows if row.get("invalid") or row.get("invalid_meta")]
    if not doubtful:
        return {}
    counts = {name: sum(map(read.unknown, doubtful)) for name, read in reads.items()}
    return {name: count for name, count in counts.items() if count}


def _own_reads(step: SeedStep, known: Collection[str]) -> Reads:
    fields, meta = set[str](), set[str]()
    for part in parts(step):
        if isinstance(part, FilterUse):
            continue
        for node in walk(part):
            if isinstance(node, Field) and node.namespace in ("extraction", "meta"):
                (fields if node.namespace == "extraction" else meta).add(node.name)
        if EXTRACTIONS in names_in(part):
            keys = set(_keys(part))
            fields |= keys & set(known)
            meta |= keys if "meta" in keys else set()
    return Reads(frozenset(fields), frozenset(meta))


def _keys(expr: Expr) -> Iterator[str]:
    """Give the constant keys that ``expr`` looks up: ``e["key"]`` and ``e.get("key")``."""
    for node in walk(expr):
        key = node.index if isinstance(node, Subscript) else None
        if isinstance(node, MethodCall) and node.method == "get" and node.arguments:
            key = node.arguments[0]
        if isinstance(key, Literal) and isinstance(key.value, str):
            yield key.value
