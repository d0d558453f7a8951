"""The context of the lints for seeds: the seed, its source document, and the contexts that it will run on."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

import attrs

from ...diagnostic import Diagnostic, Edit, Severity, nearest
from ...documents.json_tree import JsonNode, JsonPath, StringMap, path_text
from ...evaluate.seed.interpreter import META_KEYS
from ...evaluate.seed.step_dependencies import EXTRACTIONS, names_in, needs, parts
from ...source import NOWHERE, Span
from ...trees import Node, walk
from ...trees.expr import (
    Arithmetic,
    Call,
    Clause,
    Comparison,
    Comprehension,
    Expr,
    Field,
    ListDisplay,
    Literal,
    Name,
    Negative,
    Subscript,
    Test,
    TupleDisplay,
)
from ...trees.seed import Aggregate, DefineFilter, Extracted, FilterUse, Formula, FormulaSeed, SeedStep
from ..framework import LintContext, Lints, Suggestions

# Facts about a single step that do not depend on its position: its names, its expressions, and whether it counts.

# Comparisons of extracted fields or review metadata with literals.


@attrs.frozen
class Compared:
    """A comparison of a field with literals. ``subject`` is the node of the field, and ``name`` is the field's name.

    ``test`` is the operator, and ``values`` are the literals. ``turned`` is true if the literal is on the left side, and the field on the
    right side.
    """

    namespace: str
    name: str
    subject: Node
    test: Test
    values: tuple[Literal | Negative, ...]
    is_list: bool = False
    turned: bool = False


def compared(expr: Expr) -> Iterator[Compared]:
    """Yield the comparisons of fields with literals. A field is written ``extraction.f`` or, for a row ``e``, ``e['f']``."""
    rows = rows_in(expr)
    for node in walk(expr):
        if not isinstance(node, Comparison):
            continue
        left: Expr = node.first
        for test, right in node.rest:
            subject, values, turned = _field(left, rows), _literals(right), False
            if subject is None and test not in ("in", "not in"):
                subject, values, turned = _field(right, rows), _literals(left), True
            if subject is not None and values is not None:
                is_list = test in ("in", "not in")
                at = right if turned else left
                if is_list == isinstance(left if turned else right, ListDisplay | TupleDisplay):
                    yield Compared(*subject, at, test, values, is_list, turned)
            left = right


def rows_in(expr: Expr) -> frozenset[str]:
    """Return the variables of comprehensions whose values are extractions."""
    return frozenset(
        clause.variable
        for node in walk(expr)
        if isinstance(node, Comprehension)
        for clause in node.clauses
        if clause.iterable == Name(EXTRACTIONS) and clause.variable is not None
    )


def fields_in(expr: Expr) -> Iterator[tuple[str, str, Node]]:
    """Yield the namespace, the name and the node of every ``extraction.f``, ``meta.k`` and ``context.k``."""
    for node in walk(expr):
        if isinstance(node, Field):
            yield node.namespace, node.name, node


def number_of(expr: Expr) -> float | int | None:
    """Return the value of a number literal, which may have a minus before it; None for any other node."""
    if isinstance(expr, Negative):
        inner = number_of(expr.operand)
        return None if inner is None else -inner
    if isinstance(expr, Literal) and isinstance(expr.value, int | float) and not isinstance(expr.value, bool):
        return expr.value
    return None


def _field(expr: Expr, rows: frozenset[str]) -> tuple[str, str] | None:
    if isinstance(expr, Field) and expr.namespace != "context":
        return expr.namespace, expr.name
    if isinstance(expr, Subscript) and isinstance(expr.value, Name) and expr.value.name in rows:
        key = expr.index
        if isinstance(key, Literal) and isinstance(key.value, str):
            return "extraction", key.value
    return None


def _literals(expr: Expr) -> tuple[Any, ...] | None:
    items = expr.items if isinstance(expr, ListDisplay | TupleDisplay) else (expr,)
    fits = all(isinstance(item, Literal) or number_of(item) is not None for item in items)
    return tuple(items) if fits else None


@attrs.frozen(eq=False)
class Facts:
    """Facts about a step: ``names`` are all names in it, ``uses`` are the names that it uses, in source order."""

    names: frozenset[str]
    uses: tuple[str, ...]


def facts_of(step: SeedStep) -> Facts:
    """Return the facts about a step."""
    nodes = [node for part in parts(step) for node in (walk(part) if isinstance(part, Node) else ())]
    said = {node.name for node in nodes if isinstance(node, Name | FilterUse)}
    said.update(name for node in nodes if isinstance(node, Clause) for name in node.names)
    return Facts(frozenset({step.name, *said}), tuple(uses_of(step)))


def uses_of(step: SeedStep) -> Mapping[str, Node]:
    """Return the names that a step uses, each with the first node that has this name."""
    found: dict[str, Node] = dict.fromkeys(needs(step), step)
    for part in reversed(parts(step)):
        if isinstance(part, FilterUse):
            found[part.name] = part
            continue
        free = frozenset(names_in(part))
        found |= {
            node.name: node for node in reversed(list(walk(part))) if isinstance(node, Name) and node.name in free
        }
    return found


def expressions_of(step: SeedStep) -> tuple[Expr, ...]:
    """Return the expressions of a step, including its conditions."""
    return tuple(part for part in parts(step) if not isinstance(part, FilterUse))


def name_in(part: Expr | FilterUse, name: str) -> Node:
    """Return the first node in ``part`` that has this name. If there is none, return ``part`` itself."""
    if isinstance(part, FilterUse):
        return part
    return next((node for node in walk(part) if isinstance(node, Name) and node.name == name), part)


def counts(step: SeedStep, before: Collection[str]) -> bool:
    """Return whether a step counts something or adds up counts. ``before`` are the names of the earlier steps that do so."""
    if isinstance(step, Aggregate):
        return step.operation == "count"
    return isinstance(step, Formula) and (_is_count(step.expr) or _is_sum_of(step.expr, before))


def _is_count(expr: Expr) -> bool:
    if not isinstance(expr, Call) or len(expr.arguments) != 1:
        return False
    inner = expr.arguments[0]
    if expr.function == "len":
        return inner == Name(EXTRACTIONS) or isinstance(inner, Comprehension)
    return expr.function == "sum" and isinstance(inner, Comprehension) and number_of(inner.element) == 1


def _is_sum_of(expr: Expr, counts: Collection[str]) -> bool:
    if not isinstance(expr, Arithmetic):
        return False
    operands = [expr.first, *(operand for _, operand in expr.rest)]
    return all(operator == "+" for operator, _ in expr.rest) and all(
        isinstance(operand, Name) and operand.name in counts for operand in operands
    )


@attrs.frozen
class FilterCounts:
    """The result of the filter on ``total`` reviews.

    The filter keeps ``kept`` of these reviews. ``by_keyword`` says how many reviews each single keyword keeps. The kept reviews
    have ``characters`` characters. ``cut`` of the kept reviews would be truncated, and would lose ``cut_characters`` characters
    in total.
    """

    by_keyword: Sequence[int]
    kept: int
    total: int
    characters: int = 0
    cut: int = 0
    cut_characters: int = 0


@attrs.frozen(slots=False)
class Context(LintContext):
    """A seed under check. Data that several rules use are computed once.

    ``contexts`` and ``kept`` are None if the contexts of the run are unknown.
    """

    seed: FormulaSeed
    contexts: Sequence[Mapping[str, Any]] | None = None
    kept: FilterCounts | None = None
    _suggestions: Suggestions = attrs.field(factory=lambda: Suggestions(near=_near), init=False, eq=False, repr=False)
    _nodes: dict[int, Mapping[str, Node]] = attrs.field(factory=dict, init=False, eq=False, repr=False)

    # Diagnostics

    def diagnostic(
        self, code: str, message: str, span: Span | None, *hints: str, edits: Iterable[Edit] = (),
        severity: Severity | None = None,
    ) -> Diagnostic:  # fmt: skip
        """Return a diagnostic, by default with the catalogue's severity. The message of the diagnostic begins with the path of its place.

        ``edits`` are edits of the document.
        """
        place = span if self.root is not None and span != NOWHERE else None
        path = self.path_at(place) if place is not None else ()
        placed = f"{path_text(path)}: {message}" if path else message
        return super().diagnostic(code, placed, place, *hints, edits=edits, severity=severity)

    def in_expression(self, diagnostic: Diagnostic) -> Diagnostic:
        """Convert a diagnostic of an expression to a diagnostic of the document.

        Its message includes the path, and its edits are escaped for JSON.
        """
        if self.root is None or diagnostic.span is None:
            return attrs.evolve(diagnostic, edits=())
        edits = tuple(Edit(edit.span, self.escaped(edit.text)) for edit in diagnostic.edits)
        where = path_text(self.path_at(diagnostic.span))
        return attrs.evolve(diagnostic, message=f"{where}: {diagnostic.message}", edits=edits)

    def escaped(self, text: str) -> str:
        """Return ``text`` escaped for use inside a JSON string."""
        return json.dumps(text, ensure_ascii=False)[1:-1]

    def placed(self, node: JsonNode, start: int, end: int, text: str) -> Edit:
        """Return the edit of the document that replaces characters ``start`` to ``end`` of the string in ``node`` with ``text``."""
        return StringMap(self.seed.source.text, node.span).edit(Edit(Span(start, end), text))

    def name_edit(self, span: Span, name: str, text: str) -> tuple[Edit, ...]:
        """Return the edit that replaces the last ``name`` at ``span`` with ``text``.

        Return () if ``name`` is written with escapes at this place.
        """
        at = self.seed.source.text.rfind(name, span.start, span.end)
        return (Edit(Span(at, at + len(name)), text),) if at >= 0 else ()

    # The document

    @cached_property
    def root(self) -> JsonNode | None:
        """Return the document as a tree; None for a seed that was built in code."""
        tree = self.seed.tree
        return tree if isinstance(tree, JsonNode) else None

    def path_at(self, span: Span) -> JsonPath:
        """Return the path of a value of the document. This value is the innermost one in which, or in whose key, ``span`` begins."""
        path: list[str | int] = []
        node = self.root
        while node is not None:
            key: str | int | None = _index_at(node.items, span.start)
            if key is None:
                key = next((each for each in node.fields if _covers(node, each, span.start)), None)
            if key is None:
                break
            path.append(key)
            node = node.at((key,))
        return path

    def node(self, *path: str | int) -> JsonNode | None:
        """Return the node at a path of the document."""
        return self.root.at(path) if self.root is not None else None

    @property
    def steps_key(self) -> str:
        """Return the key of the list of steps."""
        return "compute" if self.seed.form == "002" else "compute_dag"

    @property
    def outputs_key(self) -> str:
        """Return the key of the list of outputs."""
        return "output" if self.seed.form == "002" else "output_fields"

    @cached_property
    def step_nodes(self) -> Sequence[JsonNode]:
        """Return the steps in the document, including those that could not be read."""
        node = self.node(self.steps_key)
        return node.items if node is not None else ()

    @cached_property
    def _reduced_nodes(self) -> Mapping[int, JsonNode]:
        """Map the start offset of each reduced value in the document to its node."""
        node = self.node("reduce")
        return {each.start: each for each in (node.items if node is not None else ())}

    @cached_property
    def number(self) -> dict[int, int]:
        """Map the start offset of each step in the document to the index of the step."""
        return {node.start: index for index, node in enumerate(self.step_nodes)}

    def step_node(self, step: SeedStep) -> JsonNode | None:
        """Return the node of ``step``; None for a step that was built in code."""
        index = self.number.get(step.span.start)
        if index is None or self.root is None:
            return self._reduced_nodes.get(step.span.start) if self.root is not None else None
        return self.step_nodes[index]

    def span_of(self, step: SeedStep, *keys: str) -> Span:
        """Return the span of a value in ``step``: the value under the first of ``keys`` that it has.

        If it has none of them, return the span of the step's first character.
        """
        node = self.step_node(step)
        if node is None:
            return step.span
        return next((node.fields[key].span for key in keys if key in node.fields), Span(node.start, node.start + 1))

    # Names

    @cached_property
    def positions(self) -> dict[str, int]:
        """Map each name to the index, in ``seed.steps``, of the first step that has this name."""
        found: dict[str, int] = {}
        for index, step in enumerate(self.seed.steps):
            found.setdefault(step.name, index)
        return found

    @cached_property
    def unread(self) -> frozenset[str]:
        """Return the names of steps that could not be read."""
        nodes = (*self.step_nodes, *self._reduced_nodes.values())
        written = (node.value.get("name") for node in nodes if isinstance(node.value, dict))
        return frozenset(name for name in written if isinstance(name, str)) - set(self.positions)

    @cached_property
    def has_nameless(self) -> bool:
        """Return whether the seed has a step whose name could not be read. Such a step may have any name."""
        return any(
            not isinstance(node.value, dict) or not isinstance(node.value.get("name"), str) for node in self.step_nodes
        )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return all names of steps."""
        return (*self.positions, *sorted(self.unread))

    @cached_property
    def step_names(self) -> frozenset[str]:
        """Return all names of steps, as a set for look-ups."""
        return frozenset(self.names)

    @cached_property
    def known(self) -> frozenset[str]:
        """Return all names that an expression may use."""
        return frozenset((*self.names, EXTRACTIONS))

    @cached_property
    def facts(self) -> Sequence[Facts]:
        """Return the facts about each step of ``seed.steps``."""
        return [facts_of(step) for step in self.seed.steps]

    @cached_property
    def uses(self) -> Sequence[Sequence[str]]:
        """Return, for each step of ``seed.steps``, the names that the step uses."""
        return [each.uses for each in self.facts]

    def use(self, index: int, name: str) -> Node:
        """Return the first node with the name ``name`` in the step at ``index``."""
        if (nodes := self._nodes.get(index)) is None:
            nodes = self._nodes[index] = uses_of(self.seed.steps[index])
        return nodes[name]

    @cached_property
    def are_filters(self) -> Mapping[str, bool]:
        """Map the name of each step that could be read to whether the step is a filter."""
        return {step.name: isinstance(step, DefineFilter) for step in self.seed.steps}

    @cached_property
    def filters(self) -> tuple[str, ...]:
        """Return the names of the filters."""
        return tuple(step.name for step in self.seed.steps if isinstance(step, DefineFilter))

    @cached_property
    def counts(self) -> frozenset[str]:
        """Return the names of the steps that count rows, or that add such counts."""
        found: set[str] = set()
        for step in self.seed.steps:
            if counts(step, found):
                found.add(step.name)
        return frozenset(found)

    def expressions(self) -> Iterator[tuple[SeedStep, Expr]]:
        """Yield every expression with its step."""
        for step in self.seed.steps:
            for expr in expressions_of(step):
                yield step, expr

    @property
    def field_nodes(self) -> Sequence[JsonNode]:
        """Return the fields in the document, including those that could not be read."""
        node = self.node(*(("extract", "fields") if self.seed.form == "002" else ("extraction_fields",)))
        return node.items if node is not None else ()

    @cached_property
    def unread_fields(self) -> frozenset[str]:
        """Return the names of fields that could not be read, including those that ``resolve`` adds."""
        resolve = self.node("resolve")
        nodes = (("name", self.field_nodes), ("as", resolve.items if resolve is not None else ()))
        written = (node.value.get(key) for key, items in nodes for node in items if isinstance(node.value, dict))
        return frozenset(name for name in written if isinstance(name, str)) - set(self.fields)

    @cached_property
    def has_unknown_keys(self) -> bool:
        """Return whether the document has an unknown key.

        A part of the seed that seems to be missing may be written under an unknown key.
        """
        return any(each.code == "SEED002" for each in self.seed.diagnostics)

    @cached_property
    def has_fields(self) -> bool:
        """Return whether the extracted fields are known. The fields are unknown if the list of fields could not be read."""
        path = ("extract", "fields") if self.seed.form == "002" else ("extraction_fields",)
        nodes = [self.node(*path[:end]) for end in range(1, len(path) + 1)]
        written = [node for node in nodes if node is not None]
        if not written or self.root is None:
            return not self.has_unknown_keys
        return len(written) == len(nodes) and isinstance(written[-1].value, list)

    @cached_property
    def fields(self) -> Mapping[str, Extracted]:
        """Return a mapping from names to the fields of an extraction: the extracted fields, and those that ``resolve`` adds."""
        return self.seed.row_fields

    @cached_property
    def meta(self) -> tuple[str, ...]:
        """Return the keys of a review's metadata: those that every review has, and the declared keys."""
        return tuple(dict.fromkeys((*META_KEYS, *self.seed.meta, *self._unread_meta)))

    @property
    def _unread_meta(self) -> tuple[str, ...]:
        """Return the declared keys whose type could not be read."""
        node = self.node("meta")
        return tuple(node.fields) if node is not None and isinstance(node.value, dict) else ()


lint: Lints[Context] = Lints()
OfStep: TypeAlias = Callable[[Context, SeedStep], Iterable[Diagnostic]]
"""A function that finds the faults in one step. Its result depends only on the step, the fields and the meaning of its names."""


def lint_of_steps(code: str) -> Callable[[OfStep], OfStep]:
    """Return a decorator that registers a function as a lint for ``code``. The function is called for each step."""

    def register(find: OfStep) -> OfStep:
        lint(code)(lambda context: (found for step in context.seed.steps for found in find(context, step)))
        return find

    return register


def _near(name: str, known: Collection[str]) -> str | None:
    return nearest(name, known) or _beginning(name, known)


def _beginning(name: str, known: Collection[str]) -> str | None:
    """Return the only known name that is a prefix of ``name``, or that begins with ``name``; None if there is not exactly one.

    For example, ``n_total`` is a prefix of ``n_total_incidents``. The shorter name must have at least four characters.
    """
    found = [
        each for each in known if min(len(each), len(name)) >= 4 and (each.startswith(name) or name.startswith(each))
    ]
    return found[0] if len(found) == 1 else None


def _index_at(items: Sequence[JsonNode], offset: int) -> int | None:
    low, high = 0, len(items)
    while low < high:
        middle = (low + high) // 2
        if items[middle].end <= offset:
            low = middle + 1
        else:
            high = middle
    return low if low < len(items) and items[low].start <= offset else None


def _covers(node: JsonNode, key: str, offset: int) -> bool:
    return node.keys[key].start <= offset < max(node.fields[key].end, node.keys[key].end)
