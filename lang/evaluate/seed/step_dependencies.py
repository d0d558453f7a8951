"""Dependencies of a step: the earlier steps and filters that it uses, and the extraction fields that it reads."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from ...dependencies import Diagram as Graph
from ...trees import Node, walk
from ...trees.expr import Comprehension, Expr, Field, Literal, MethodCall, Name, Subscript
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

EXTRACTIONS = "extractions"
"""Name of the list of all extractions in expressions."""


def needs(step: SeedStep) -> tuple[str, ...]:
    """Return the names that ``step`` uses, each once, in order of first use. Steps with these names need not exist."""
    found: dict[str, None] = {}
    for part in parts(step):
        if isinstance(part, FilterUse):
            found[part.name] = None
        else:
            found |= dict.fromkeys(names_in(part))
    found.pop(EXTRACTIONS, None)
    return tuple(found)


def parts(step: SeedStep) -> tuple[Expr | FilterUse, ...]:
    """Return the expressions that ``step`` evaluates, in order."""
    match step:
        case DefineFilter():
            return step.where
        case Aggregate():
            return (*(step.where or ()), *(() if step.element is None else (step.element,)))
        case Tally():
            return (*(step.where or ()), step.element)
        case Reduce():
            return (*(step.where or ()), *(source for source in step.sources if source is not None))
        case Lookup():
            return (step.source,)
        case Case():
            return tuple(rule.test for rule in step.rules)
        case Formula():
            return (step.expr,)
        case _:
            return ()


def reads_extractions(step: SeedStep) -> bool:
    """Return whether ``step`` reads the extractions directly. Aggregates, filters and formulas over ``extractions`` do."""
    if isinstance(step, Aggregate | DefineFilter | Tally | Reduce):
        return True
    return any(EXTRACTIONS in names_in(part) for part in parts(step) if not isinstance(part, FilterUse))


def names_in(expr: Expr) -> tuple[str, ...]:
    """Return the free names of ``expr``, each once. The variables of a comprehension are not free."""
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
                    known |= set(clause.names)
                    inner += [(condition, known) for condition in clause.conditions]
                inner.append((node.element, known))
            elif isinstance(node, Name) and node.name not in bound:
                found[node.name] = None
        stack += reversed(inner)
    return tuple(found)


@frozen
class Reads:
    """The fields of an extraction and the keys of its ``meta`` that a step reads."""

    fields: frozenset[str] = frozenset()
    meta: frozenset[str] = frozenset()

    def __or__(self, other: "Reads") -> "Reads":
        return Reads(self.fields | other.fields, self.meta | other.meta)

    def unknown(self, row: Mapping[str, Any]) -> bool:
        """Return whether one of these fields or keys is invalid in ``row``. The value of an invalid field or key is unknown."""
        return not (
            self.fields.isdisjoint(row.get("invalid", ())) and self.meta.isdisjoint(row.get("invalid_meta", ()))
        )


def reads_of(seed: FormulaSeed) -> dict[str, Reads]:
    """Map each step to the fields and keys of extractions that it reads, directly or through its filters."""
    found: dict[str, Reads] = {}
    filters: dict[str, Reads] = {}
    for step in seed.steps:
        made = _own_reads(step, seed.row_fields)
        for part in parts(step):
            if isinstance(part, FilterUse):
                made |= filters.get(part.name, Reads())
        found[step.name] = made
        if isinstance(step, DefineFilter):
            filters[step.name] = made
    return found


def reads_of_outputs(seed: FormulaSeed) -> Reads:
    """Return the fields and keys of extractions that the output steps read, directly or through the steps that they need.

    The outputs of a seed that only extracts are all its fields, and the declared keys of ``meta``.
    """
    if seed.extracts_only:
        return Reads(frozenset(seed.row_fields), frozenset(seed.meta))
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
    """Map steps to the number of ``rows`` in which a field or key that they read is invalid. Steps without such rows are omitted."""
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
    """Yield the constant keys that ``expr`` looks up: ``e["key"]`` and ``e.get("key")``."""
    for node in walk(expr):
        key = node.index if isinstance(node, Subscript) else None
        if isinstance(node, MethodCall) and node.method == "get" and node.arguments:
            key = node.arguments[0]
        if isinstance(key, Literal) and isinstance(key.value, str):
            yield key.value


# The graph of a seed's steps, for drawings: the steps that each step uses, down to the extractions and the context.

_CONTEXT = "context"


def step_graph(seed: FormulaSeed) -> Graph:
    """Map each step to the steps that it uses. ``extractions`` and ``context`` count as steps if they are used.

    A step that uses a filter is connected to that filter instead of to the extractions.
    """
    steps = seed.step_by_name
    graph: dict[str, tuple[str, ...]] = {EXTRACTIONS: (), _CONTEXT: ()}
    for step in seed.steps:
        used = tuple(need for need in needs(step) if need in steps)
        filtered = any(isinstance(steps[need], DefineFilter) for need in used)
        inputs = [EXTRACTIONS] if reads_extractions(step) and not filtered else []
        if any(isinstance(node, Field) and node.namespace == "context" for node in walk(step)):
            inputs.append(_CONTEXT)
        graph[step.name] = (*inputs, *used)
    read = {source for sources in graph.values() for source in sources}
    return {name: sources for name, sources in graph.items() if name in steps or name in read}


def needed_steps(graph: Graph, outputs: tuple[str, ...]) -> set[str]:
    """Return ``outputs`` and all their direct and indirect dependencies."""
    needed: set[str] = set()
    stack = [name for name in outputs if name in graph]
    while stack:
        name = stack.pop()
        if name not in needed:
            needed.add(name)
            stack += graph[name]
    return needed


def operations_of(seed: FormulaSeed, graph: Graph) -> dict[str, str]:
    """Return the operation of each node of the graph, for drawings."""
    named = {step.name: _operation(step) for step in seed.steps}
    return {name: named.get(name, "input") for name in graph}


def _operation(step: SeedStep) -> str:
    match step:
        case DefineFilter():
            return "define_filter"
        case Aggregate():
            return step.operation
        case Lookup():
            return "lookup"
        case Case():
            return "case"
        case Const():
            return "const"
        case Tally():
            return "tally"
        case Reduce():
            return "reduce"
        case _:
            return "expr"
