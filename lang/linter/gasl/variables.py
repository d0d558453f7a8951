"""Rules about variables: bound before they are read, read before they are bound anew, named so that people see them."""

from collections.abc import Iterator
from itertools import islice, takewhile

from ... import gasl
from ...diagnostic import Diagnostic, Edit
from ...printer.gasl import format_name
from .flow import Binding, Use
from .registry import Context, Lint, lint

__all__ = ["LINTS"]

_OFFERED = 8
_KEYWORDS = frozenset({
    "AGGREGATE", "ALL", "ANALYZE", "AND", "ANY", "AS", "ASC", "ASSERT", "BRANCH", "BY", "CANCEL", "CATCH",
    "CLASSIFY", "COMPUTE", "CONNECT", "CONTAINS", "COUNT", "COUNTER", "DECLARE", "DEPTH", "DESC", "DICT",
    "DIRECTION", "EDGES", "ELSE", "END", "ENDS_WITH", "EXCEPT", "EXISTS", "EXPLAIN", "FALSE", "FIELDS", "FINALLY",
    "FIND", "FROM", "GRAPH", "IF", "IN", "INTERSECT", "INTO", "IS", "JOIN", "LEN", "LIMIT", "LIST", "MATCHES",
    "MAXLEN", "MEASURE", "MERGE", "NODES", "NONE", "NOT", "NULL", "ON", "OR", "ORDER", "PATHS", "PLAN", "PROCESS",
    "RADIUS", "RANK", "REPLACE", "REQUIRE", "RESET", "RETURNING", "SELECT", "SET", "SHORTEST", "STARTS_WITH",
    "SUBGRAPH", "THEN", "TO", "TRUE", "TRY", "UNION", "UPDATE", "USING", "VIA", "WALK", "WHERE", "WITH",
    "WITH_DESCRIPTION",
})  # fmt: skip
_COMMON = frozenset({"NODES", "EDGES", "PATHS", "GRAPH"})
"""Keywords that everyone calls a variable by, and no reader mistakes."""


@lint("GASL050")
def unbound(context: Context) -> Iterator[Diagnostic]:
    """Names that nothing binds."""
    for use in context.flow.uses:
        if use.bindings or use.name in context.first_bindings:
            continue
        near = context.suggestion(use.name, context.bound_names)
        edits = _renamed(context, use, near) if near else []
        yield context.found("GASL050", f"nothing binds the variable {use.name}", use.span, *_unbound_hints(context, use, near),
                            edits=edits)  # fmt: skip


@lint("GASL051")
def used_too_early(context: Context) -> Iterator[Diagnostic]:
    """Names that are bound only by a later command."""
    for use in context.flow.uses:
        later = context.first_bindings.get(use.name)
        if use.bindings or later is None:
            continue
        if later.command is use.command:
            message, hint = f"the variable {use.name} is bound only by this command itself", "bind it first"
        elif later.span.start > use.span.start:
            message = f"the variable {use.name} is used before it is bound, in line {context.line(later.span)}"
            hint = "put the command that binds it first"
        else:
            message = f"the variable {use.name} is bound only where this command isn't reached, in line {context.line(later.span)}"
            hint = "EXPLAIN binds nothing; a CATCH and an ELSE see what stands before them"
        yield context.found("GASL051", message, use.span, hint)


def _unbound_hints(context: Context, use: Use, near: str | None) -> list[str]:
    hints = [f"did you mean {format_name(near)}?"] if near else []
    if use.name in context.keys:
        hints.append(f"{use.name} is a key of the state; commands read variables, ANALYZE reads keys")
    elif not near and (names := _bound_before(context, use)):
        more = ", ..." if len(names) > _OFFERED else ""
        hints.append(f"there are: {', '.join(names[:_OFFERED])}{more}")
    elif not near:
        hints.append(f"bind it first: FIND nodes AS {format_name(use.name)}")
    return hints


def _bound_before(context: Context, use: Use) -> list[str]:
    """Return the first names that are bound before a use; names stand in the order of binding."""
    first = context.first_bindings
    before = takewhile(
        lambda name: name not in first or first[name].span.start < use.command.span.start, context.bound_names
    )
    return list(islice(before, _OFFERED + 1))


def _renamed(context: Context, use: Use, name: str) -> list[Edit]:
    """Return the edit that puts ``name`` where the variable is read, in a command or in ``${...}``."""
    for written in (format_name(use.name), f"`{use.name}`"):
        at = context.spelled(written, use.span)
        if at is not None and context.text(use.span)[: at.start - use.span.start].strip(" \t") in ("", "${"):
            return [Edit(at, format_name(name))]
    return []


@lint("GASL052")
def overwritten(context: Context) -> Iterator[Diagnostic]:
    """Results that are lost before anyone looks at them."""
    for old, new in context.flow.overwritten:
        message = f"the variable {new.name} is bound anew before what line {context.line(old.span)} put there is used"
        hint = "give one of the two another name, or leave the first command out"
        yield context.found("GASL052", message, new.span, hint)


@lint("GASL053")
def on_apart(context: Context) -> Iterator[Diagnostic]:
    """An ON that doesn't follow the command it speaks of: a status that stops has stopped the plan by then."""
    above = {id(step.statement): step.before for step in context.steps}
    for step, command in context.commands(gasl.On):
        if not isinstance(command, gasl.On) or command is not step.statement.command:
            continue
        use = step.use_of(command.source)
        if (
            use is None
            or not use.bindings
            or command.status == "PARTIAL"
            or any(b.command is None for b in use.bindings)
        ):
            continue
        before = step.before
        while (
            before is not None and isinstance(on := before.command, gasl.On) and on.source.text == command.source.text
        ):
            before = above[id(before)]
        if before is not None and not any(_is_in(binding, before.command) for binding in use.bindings):
            line = context.line(use.bindings[-1].span)
            message = f"this ON stands apart from the command that binds {command.source.text}, in line {line}"
            hint = "put it directly behind that command: a status that stops has stopped the plan before"
            yield context.found("GASL053", message, command.source.span, hint)


def _is_in(binding: Binding, command: gasl.Command) -> bool:
    return command.span.start <= binding.span.start < command.span.end


@lint("GASL054")
def named_like_keyword(context: Context) -> Iterator[Diagnostic]:
    """Variables that look like a word of the language."""
    seen: set[str] = set()
    for binding in context.flow.bindings:
        word = binding.name.upper()
        if word in _KEYWORDS and word not in _COMMON and binding.name not in seen:
            seen.add(binding.name)
            message = f"the variable {binding.name} is named like a word of the language"
            yield context.found("GASL054", message, binding.span, "another name reads more easily")


LINTS: tuple[Lint, ...] = (unbound, used_too_early, overwritten, on_apart, named_like_keyword)
