"""Rules about names. Each name must be defined exactly once, and before it is used. A name that is defined should also be used."""

import keyword
from collections.abc import Iterator, Sequence

from ...catalogue.operations import RESERVED_FUNCTIONS
from ...diagnostic import Diagnostic, Edit, has_errors
from ...documents.json_tree import JsonNode
from ...evaluate.seed.step_dependencies import EXTRACTIONS, names_in, parts
from ...source import NOWHERE, Span
from ...trees import Node, walk
from ...trees.expr import Comparison, Expr, Literal, Name
from ...trees.seed import Aggregate, Case, DefineFilter, FilterUse, Formula, Reduce, SeedStep
from ..expr import check_expr
from .context import Context, lint, lint_of_steps, name_in

_NAMESPACES = frozenset({"extraction", "meta", "context"})
_WORDS = frozenset(keyword.kwlist) | {"true", "false", "null"}


@lint_of_steps("SEED040")
def undefined(context: Context, step: SeedStep) -> Iterator[Diagnostic]:
    """Report unknown filters in conditions. Other rules report unknown names."""
    for part in parts(step):
        if isinstance(part, FilterUse) and part.name not in context.known:
            near = context.suggestion(part.name, context.filters)
            edits = context.name_edit(_key_of(context, part), part.name, near) if near else ()
            hint = f"did you mean ${near}?" if near else _listing(context.filters, "filter")
            message = f"unknown filter {part.name}"
            yield context.diagnostic("SEED040", message, part.span, hint, edits=edits)


def _listing(names: Sequence[str], what: str) -> str:
    shown = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
    return f"the {what}s are {shown}" if names else f"the seed has no {what}"


def _key_of(context: Context, use: FilterUse) -> Span:
    """Return the span of the key in ``"$F": true``."""
    path = context.path_at(use.span)
    span = context.root.key_span(path) if context.root is not None else None
    return span or use.span


@lint("SEED041")
def forward(context: Context) -> Iterator[Diagnostic]:
    """Report steps that use the value of a later step, or their own value."""
    cycles: dict[str, int] = {}
    moved: set[str] = set()
    for index, step in enumerate(context.seed.steps):
        for name in context.uses[index]:
            later = context.positions.get(name, -1)
            if later < index:
                continue
            node = context.use(index, name)
            cycles = cycles or _cycles(context)  # computed on demand, because few seeds use a later step
            if later == index:
                yield context.diagnostic(
                    "SEED041", f"{name} uses itself", node.span, "a step can use only earlier steps"
                )
                continue
            if cycles.get(name, -1) == cycles.get(step.name, -2):
                message = f"{name} and {step.name} depend on each other{_way(context, name, step.name)}"
                yield context.diagnostic("SEED041", message, node.span, "remove one of the two dependencies")
                continue
            is_movable = name not in moved and not isinstance(step, Reduce)
            edits = _move(context, later, index) if is_movable else ()
            moved.add(name)
            hint = _where_to(context, name, step.name, later, index)
            if isinstance(step, Reduce):
                hint = "reduce runs before compute: its where can use only extraction., meta. and context."
            yield context.diagnostic("SEED041", f"{name} is used before it is computed", node.span, hint, edits=edits)


def _cycles(context: Context) -> dict[str, int]:
    """Map each step to a number. Steps that depend on each other have the same number. This is Tarjan's algorithm, without recursion."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    number: dict[str, int] = {}
    path: list[str] = []
    for start in context.positions:
        stack = [(start, iter(_needs(context, start)))] if start not in order else []
        while stack:
            name, rest = stack[-1]
            if name not in order:
                order[name] = low[name] = len(order)
                path.append(name)
            following = next((each for each in rest if each not in number), None)
            if following is None:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[name])
                if low[name] == order[name]:
                    while name not in number:
                        number[path.pop()] = order[name]
            elif following in order:
                low[name] = min(low[name], order[following])
            else:
                stack.append((following, iter(_needs(context, following))))
    return number


def _needs(context: Context, name: str) -> list[str]:
    return [each for each in context.uses[context.positions[name]] if each in context.positions]


_SHOWN = 6
"""Maximum number of steps that a message about a cycle or about the right order lists."""


def _way(context: Context, start: str, goal: str) -> str:
    """Return the shortest dependency path from ``start`` to ``goal`` as text; "" if the path is long."""
    came: dict[str, str] = {start: ""}
    reached = [start]
    for _ in range(_SHOWN):
        nearer: list[str] = []
        for name in reached:
            if name == goal:
                way = [name]
                while came[way[-1]]:
                    way.append(came[way[-1]])
                return f": {' → '.join((goal, *reversed(way)))}"
            for need in _needs(context, name):
                if need not in came:
                    came[need] = name
                    nearer.append(need)
        reached = nearer[:100]
    return ""


def _where_to(context: Context, name: str, user: str, later: int, index: int) -> str:
    own = [need for need in context.uses[later] if context.positions.get(need, -1) >= index]
    if not own:
        return f"move {name} before {user}"
    return f"the right order is {', '.join((*own, name, user))}" if len(own) <= _SHOWN else ""


def _move(context: Context, later: int, index: int) -> tuple[Edit, ...]:
    """Return the edits that move the step at ``later`` before the step at ``index``.

    Return () if the moved step uses a step at or after ``index``.
    """
    steps = context.seed.steps
    if context.root is None or any(context.positions.get(need, -1) >= index for need in context.uses[later]):
        return ()
    there, here = context.step_node(steps[later]), context.step_node(steps[index])
    if there is None or here is None:
        return ()
    number = context.number[there.start]
    before = context.step_nodes[number - 1]
    text = context.seed.source.text
    gap = text[before.end : there.start]
    return (
        Edit(Span(here.start, here.start), text[there.start : there.end] + gap),
        Edit(Span(before.end, there.end), ""),
    )


@lint("SEED042")
def twice(context: Context) -> Iterator[Diagnostic]:
    """Report names that are defined twice."""
    for index, step in enumerate(context.seed.steps):
        first = context.positions[step.name]
        if first != index:
            is_reduced = isinstance(context.seed.steps[first], Reduce)
            where = f"{'reduce' if is_reduced else context.steps_key}[{_number(context, first)}]"
            message = f"the name {step.name} is already used in {where}"
            yield context.diagnostic("SEED042", message, context.span_of(step, "name"), "rename one of the two steps")


def _number(context: Context, index: int) -> int:
    return context.number.get(context.seed.steps[index].span.start, index)


@lint("SEED043")
def reserved(context: Context) -> Iterator[Diagnostic]:
    """Report reserved names."""
    for step in context.seed.steps:
        if step.name in RESERVED_FUNCTIONS:
            what = "a function"
        elif step.name in _NAMESPACES:
            what = "a namespace"
        elif step.name == EXTRACTIONS:
            what = "the list of all extractions"
        elif step.name in _WORDS:
            what = "a keyword of expressions"
        else:
            continue
        new = f"{step.name}_value"
        while new in context.names:
            new += "_"
        edits = _renamed(context, step, new)
        hint = f"rename it to {new}" if edits else "rename it"
        yield context.diagnostic("SEED043", f"{step.name} is {what}", context.span_of(step, "name"), hint, edits=edits)


def _renamed(context: Context, step: SeedStep, new: str) -> tuple[Edit, ...]:
    """Return the edits that rename a step everywhere; () if another step has the same name."""
    node = context.step_node(step)
    if node is None or sum(each.name == step.name for each in context.seed.steps) > 1:
        return ()
    edits = {Edit(node.fields["name"].span, f'"{new}"')}
    if step.name != EXTRACTIONS:  # in an expression, this name means the list of extractions
        for _, expr in context.expressions():
            if step.name in names_in(expr):
                edits |= {
                    Edit(each.span, new) for each in walk(expr) if isinstance(each, Name) and each.name == step.name
                }
    for output in _output_nodes(context):
        if output.value == step.name:
            edits.add(Edit(output.span, f'"{new}"'))
    return tuple(sorted(edits, key=lambda edit: edit.span))


def _output_nodes(context: Context) -> Sequence[JsonNode]:
    node = context.node(context.outputs_key)
    return node.items if node is not None else ()


@lint_of_steps("SEED047")
def filters(context: Context, step: SeedStep) -> Iterator[Diagnostic]:
    """Report filters that are used as values, and values that are used as filters."""
    for part in parts(step):
        if isinstance(part, FilterUse):
            if context.are_filters.get(part.name) is False:
                message = f"{part.name} is a value, but $ is the prefix of filters"
                edits = context.name_edit(_key_of(context, part), f"${part.name}", part.name)
                yield context.diagnostic("SEED047", message, part.span, f"write `{part.name}`", edits=edits)
            continue
        for name in names_in(part):
            if context.are_filters.get(name):
                message = f"{name} is a filter and has no value"
                node = name_in(part, name)
                edits = (
                    context.name_edit(node.span, name, f"${name}") if _is_plain_use(context, part, node.span) else ()
                )
                hint = f'use a filter in a where: {{"${name}": true}}'
                yield context.diagnostic("SEED047", message, node.span, hint, edits=edits)


def _is_plain_use(context: Context, part: Node, at: Span) -> bool:
    """Return whether a condition is ``"F": true`` or ``"F": false``. ``F`` is then probably a filter without its ``$``."""
    if not isinstance(part, Comparison) or not isinstance(part.rest[0][1], Literal):
        return False
    path = context.path_at(at)
    value = context.node(*path)
    return isinstance(path[-1:][0] if path else None, str) and value is not None and isinstance(value.value, bool)


@lint("SEED048")
def unused(context: Context) -> Iterator[Diagnostic]:
    """Report steps that neither an output nor another step uses."""
    if has_errors(context.seed.diagnostics) or not context.seed.outputs:
        return  # a step that could not be read may use the other steps
    used = {name for uses in context.uses for name in uses} | set(context.seed.outputs)
    values = _values(context)
    misnamed = used - context.step_names
    used |= {context.suggestion(name, values) or "" for name in misnamed}
    for step in context.seed.steps:
        if step.name not in used:
            hint = f"remove it, or add {step.name} to {context.outputs_key}"
            if isinstance(step, DefineFilter):
                hint = f'remove it, or use it in a where: {{"${step.name}": true}}'
            message = f"{step.name} is not used"
            yield context.diagnostic("SEED048", message, context.span_of(step, "name"), hint)


def _values(context: Context) -> tuple[str, ...]:
    """Return the names of the steps that have a value."""
    return tuple(step.name for step in context.seed.steps if not isinstance(step, DefineFilter))


@lint("SEED049")
def outputs(context: Context) -> Iterator[Diagnostic]:
    """Report outputs that no step defines, and repeated outputs."""
    nodes = _output_nodes(context)
    node = context.node(context.outputs_key)
    is_empty = bool(context.seed.steps) if context.root is None else node is not None and node.value == []
    if not context.seed.outputs and is_empty:
        span = node.span if node is not None else NOWHERE
        yield context.diagnostic("SEED050", "the seed has no output", span, "list the steps whose values are returned")
    if context.root is not None and not context.seed.steps and not context.step_nodes:
        steps = context.node(context.steps_key)
        if steps is None or steps.value != []:
            return  # the missing steps are reported instead
    values = _values(context)
    seen: set[str] = set()
    for place, name in enumerate(context.seed.outputs):
        span = nodes[place].span if place < len(nodes) and nodes[place].value == name else NOWHERE
        step = context.seed.step_by_name.get(name)
        if isinstance(step, DefineFilter):
            message = f"{name} is a filter and has no value"
            yield context.diagnostic(
                "SEED049", message, span, f'count it: {{"op": "count", "where": {{"${name}": true}}}}'
            )
        elif step is None and name not in context.unread and not context.has_nameless:
            near = context.suggestion(name, values)
            edits = [Edit(span, f'"{near}"')] if near and near not in context.seed.outputs else []
            hint = f"did you mean {near}?" if edits else _listing(values, "step")
            yield context.diagnostic("SEED049", f"unknown step {name:.100}", span, hint, edits=edits)
        elif name in seen:
            yield context.diagnostic(
                "SEED049", f"{name} is listed twice", span, "remove one of the two", severity="warning"
            )
        seen.add(name)


# The diagnostics of the expression check, with their places in the document.


@lint_of_steps("EXPR050")
def expressions(context: Context, step: SeedStep) -> Iterator[Diagnostic]:
    """Yield the diagnostics of the expression check.

    The expression check accepts the names of later steps, because another rule reports a wrong order.
    """
    exprs: tuple[Expr, ...]
    match step:
        case Formula():
            exprs, is_row = (step.expr,), False
        case Case():
            exprs, is_row = tuple(rule.test for rule in step.rules), False
        case Aggregate() if step.element is not None:
            exprs, is_row = (step.element,), True
        case _:
            return
    fields = context.fields if context.has_fields and not context.unread_fields else None  # None: some are unknown
    for expr in exprs:
        for found in check_expr(expr, names=context.known, row=is_row, fields=fields, meta=context.meta):
            yield context.in_expression(found)
