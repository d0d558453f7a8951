"""Rules about variables: they must be bound before they are read, and read before they are overwritten.

A variable should not have the name of a keyword.
"""

from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

from attrs import evolve

from ...diagnostic import Diagnostic, Edit, Severity, is_slip
from ...parse.gasl import keywords
from ...printer.gasl_printer import format_key, format_name, format_text
from ...source import Span
from ...trees import gasl
from ...trees.conditions import Field, Length
from ...trees.gasl import Key, StateType
from .context import Binding, Context, Step, Use, lint

_OFFERED = 8
_COMMON = frozenset({
    "BOOL", "BOTH", "EDGES", "EMPTY", "ERROR", "FLOAT", "GRAPH", "INT", "MAX", "MEAN", "MEDIAN", "MIN", "NODES", "OUT", "PARTIAL",
    "PATHS", "SCHEMA_MISMATCH", "SUM", "TEXT",
})  # fmt: skip
"""Keywords that are also common variable names; they are not reported."""


@lint("GASL050")
def unbound(context: Context) -> Iterator[Diagnostic]:
    """Report names that are never bound."""
    for use in context.flow.uses:
        if use.bindings or use.name in context.first_bindings:
            continue
        near = context.suggestion(use.name, context.bound_names)
        edits = _renamed(context, use, near) if near else []
        hints = _unbound_hints(context, use, near)
        if (node := _as_node(context, use)) is not None:
            hints, edits = [f"write {node} for the node with this id"], [Edit(use.span, node)]
        is_near = near is not None and (
            is_slip(use.name, near) or near.startswith(use.name) or use.name.startswith(near)
        )
        # A command that could not be parsed may bind the name.
        unnamed = None if is_near or node is not None or not context.is_whole else _unnamed_result(context, use)
        if unnamed is not None:
            column, written = unnamed.into.text, format_name(use.name)  # type: ignore[union-attr]  # it binds a name
            word, more = type(unnamed).__name__.upper(), f"AS {format_name(column)} AS {written}"
            hints = [f"AS {column} names the result of {word}; write {more} to name the column too"]
            edits = [Edit(Span(unnamed.span.end, unnamed.span.end), f" AS {written}")]
        yield context.diagnostic("GASL050", f"the variable {use.name} is not bound", use.span, *hints, edits=edits)


def _as_node(context: Context, use: Use) -> str | None:
    """If the name at an end of a path is the id of a node, return the condition for this node; otherwise None."""
    ids = context.schema.all_ids if context.schema is not None else None
    if not isinstance(use.command, gasl.FindPaths) or use.role != "source" or ids is None or use.name not in ids:
        return None
    return f"(id = {format_text(use.name)})"


def _unnamed_result(context: Context, use: Use) -> gasl.Command | None:
    """Return the earlier command that was probably meant to bind the variable of ``use``.

    Return None unless exactly one command fits: its last AS follows a value without a name, and no command reads the variable
    that this AS names. The AS was probably meant to name a column, and the name of the variable is missing.
    """
    missing = {each.name for each in context.flow.uses if not each.bindings and each.name not in context.first_bindings}
    read = {each.name for each in context.flow.uses}
    found = [
        binding.command
        for binding in context.flow.bindings
        if binding.span.end <= use.span.start and binding.name not in read and _may_name_column(binding.command)
    ]
    return found[0] if len(found) == 1 and missing == {use.name} else None


def _may_name_column(command: gasl.Command | None) -> bool:
    """Return whether the last AS of a command directly follows a value without a name."""
    if isinstance(command, gasl.Select):
        return bool(command.columns) and command.columns[-1].name is None and not (command.where or command.sample)
    if isinstance(command, gasl.Count):
        return bool(command.by) and command.by[-1].name is None
    if isinstance(command, gasl.Aggregate):
        return command.computations[-1].name is None
    return isinstance(command, gasl.Unnest) and command.by.name is None


@lint("GASL051")
def used_too_early(context: Context) -> Iterator[Diagnostic]:
    """Report names that only a later command binds."""
    for use in context.flow.uses:
        later = context.first_bindings.get(use.name)
        if use.bindings or later is None:
            continue
        if later.command is use.command:
            message = f"the variable {use.name} is bound only by this command itself"
            hint = "bind it in an earlier command"
        elif later.span.start > use.span.start:
            message = f"the variable {use.name} is used before it is bound in line {context.line(later.span)}"
            hint = "move the command that binds it to an earlier line"
        else:
            message = f"the variable {use.name} is bound in line {context.line(later.span)}, which has no effect on this command"
            hint = "EXPLAIN binds nothing; CATCH and ELSE read only the variables bound before their block"
        yield context.diagnostic("GASL051", message, use.span, hint)


def _unbound_hints(context: Context, use: Use, near: str | None) -> list[str]:
    hints = [f"did you mean {format_name(near)}?"] if near else []
    if use.name in context.keys:
        hints.append(f"{use.name} is a key of the state; commands read variables, ANALYZE reads keys")
    elif not near and (names := _bound_before(context, use)):
        more = ", ..." if len(names) > _OFFERED else ""
        hints.append(f"the variables are {', '.join(names[:_OFFERED])}{more}")
    elif not near and use.role == "source" and isinstance(use.command, gasl.FindPaths):
        hints.append(f"FROM and TO take a variable, or a condition in ( ): (id = {format_text(use.name)})")
    elif not near and use.role != "condition":
        hints.append(f"bind it first: FIND nodes AS {format_name(use.name)}")
    if not near and use.role == "condition":
        types = "TEXT, INT, FLOAT, BOOL or LIST"
        hints.append(
            f"for a value from outside, begin the program with PARAM {format_name(use.name)} and its type: {types}"
        )
    return hints


def _bound_before(context: Context, use: Use) -> list[str]:
    """Return the names that are bound before a use, in the order of binding. Return at most one name more than a hint lists."""
    first = context.first_bindings
    before = takewhile(
        lambda name: name not in first or first[name].span.start < use.command.span.start, context.bound_names
    )
    return list(islice(before, _OFFERED + 1))


def _renamed(context: Context, use: Use, name: str) -> list[Edit]:
    """Return the edit that replaces the name of the variable with ``name``, in a command or in ``${...}``."""
    for written in (format_name(use.name), f"`{use.name}`"):
        at = context.spelled(written, use.span)
        if at is not None and context.text(use.span)[: at.start - use.span.start].strip(" \t") in ("", "${"):
            return [Edit(at, format_name(name))]
    return []


@lint("GASL052")
def overwritten(context: Context) -> Iterator[Diagnostic]:
    """Report results that are overwritten before they are read."""
    for old, new in context.flow.overwritten:
        if isinstance(old.command, gasl.Param) and isinstance(new.command, gasl.Param):
            continue  # GASL098 reports them
        message = f"the variable {new.name} is overwritten before its value from line {context.line(old.span)} is read"
        hint = "rename one of the two variables, or remove the first command"
        yield context.diagnostic("GASL052", message, new.span, hint)


@lint("GASL053")
def on_apart(context: Context) -> Iterator[Diagnostic]:
    """Report an ON that does not directly follow its command. If the status stops the plan, the plan ends before this ON is reached."""
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
            message = f"this ON does not directly follow the command in line {line} that binds {command.source.text}"
            hint = "move it directly after that command: a status that stops the plan stops it before this ON"
            yield context.diagnostic("GASL053", message, command.source.span, hint)


def _is_in(binding: Binding, command: gasl.Command) -> bool:
    return command.span.start <= binding.span.start < command.span.end


@lint("GASL054")
def named_like_keyword(context: Context) -> Iterator[Diagnostic]:
    """Report variables whose name is a keyword. Also report ``len DESC``, because it does not mean the field ``len``."""
    seen: set[str] = set()
    for binding in context.flow.bindings:
        word = binding.name.upper()
        if word in keywords() and word not in _COMMON and binding.name not in seen:
            seen.add(binding.name)
            message = f"the variable {binding.name} has the name of a keyword"
            yield context.diagnostic("GASL054", message, binding.span, "another name is easier to read")
    for node in (node for step in context.steps for node in step.nodes_of(Length)):
        field = node.operand
        if (
            isinstance(field, Field)
            and field.text.upper() in ("DESC", "ASC")
            and context.text(field.span) == field.text
        ):
            message = f"LEN {field.text} is the length of a field {field.text}"
            yield context.diagnostic("GASL054", message, node.span, f"write `len` {field.text} for a field named len")


# Rules about keys of the state: a key must be declared before it is used, with one type, and updated with values of that type.


@lint("GASL055")
def undeclared(context: Context) -> Iterator[Diagnostic]:
    """Report each undeclared key once."""
    known: dict[str, StateType] = dict(context.state or {})
    if context.state is None and not any(True for _ in context.commands(gasl.Declare)):
        return  # the state is unknown
    for step, command in context.commands(gasl.Declare, gasl.Reset, gasl.Update, gasl.Analyze):
        key: Key = command.key  # type: ignore[union-attr]  # these classes have a key
        missing = _missing_parents(key, known)
        if isinstance(command, gasl.Declare):
            if missing:
                yield _undeclared(context, step, Key(missing[-1].parts, span=key.span), missing, [])
        elif key.text not in known:
            kind = _fitting(step)
            yield _undeclared(context, step, key, missing, [(key, kind)])
            known[key.text] = kind
        known.update((parent.text, "DICT") for parent in missing)
        if isinstance(command, gasl.Declare):
            known.setdefault(key.text, command.type)


def _missing_parents(key: Key, known: dict[str, StateType]) -> list[Key]:
    parents = [Key(key.parts[:count]) for count in range(1, min(len(key.parts), 100))]
    return [parent for parent in parents if parent.text not in known]


def _undeclared(
    context: Context, step: Step, key: Key, missing: list[Key], itself: list[tuple[Key, StateType]]
) -> Diagnostic:
    severity: Severity | None = (
        None if context.state is not None else "warning"
    )  # an earlier plan may have declared the key
    near = _near(context, key) if itself else None
    if near is not None:
        parts = near.split(".")
        written = format_key(Key(tuple(parts)))
        edit = Edit(key.span, written)
        message = f"the key {key.text} is not declared"
        return context.diagnostic(
            "GASL055", message, key.span, f"did you mean {written}?", edits=[edit], severity=severity
        )
    if isinstance(step.command, gasl.Analyze):
        message = f"the key {key.text} is not declared"
        return context.diagnostic(
            "GASL055", message, key.span, "UPDATE stores the values that ANALYZE reads", severity=severity
        )
    lines = [f"DECLARE {format_key(parent)} AS DICT" for parent in missing]
    lines += [f"DECLARE {format_key(each)} AS {kind}" for each, kind in itself]
    start = step.statement.span.start
    head = context.program.source.text.rfind("\n", 0, start) + 1
    before = context.program.source.text[head:start]
    indent = before if before.isspace() else ""
    what = "the key" if itself else "the parent key"
    message, hints = f"{what} {key.text} is not declared", [f"add {'; '.join(lines)} before it"]
    edits = [Edit(Span(start, start), "".join(f"{line}\n{indent}" for line in lines))]
    elsewhere = _elsewhere(context, key) if itself else None
    if elsewhere is not None:
        hints.insert(0, f"did you mean {format_key(Key(tuple(elsewhere.split('.'))))}?")
    if elsewhere is not None or not context.is_whole:  # a command that could not be parsed may declare the key
        edits = []
    if itself and (not step.uses or step.uses[0].kind == "unknown"):  # the type is a guess
        edits = []
    return context.diagnostic("GASL055", message, key.span, *hints, edits=edits, severity=severity)


def _elsewhere(context: Context, key: Key) -> str | None:
    """Return the declared key that has the same last part as ``key``, if there is only one.

    Return None if a declared key could contain ``key``.
    """
    if any(".".join(key.parts[:count]) in context.keys for count in range(1, min(len(key.parts), 100))):
        return None
    alike = [name for name in context.keys if name != key.text and name.split(".")[-1] == key.parts[-1]]
    return alike[0] if len(alike) == 1 else None


def _near(context: Context, key: Key) -> str | None:
    """Return the key that was most likely meant.

    This key has a similar name under the same parent, or the same name under a similar parent.
    """
    if context.has_enough:
        return None
    above, last = key.parts[:-1], key.parts[-1]
    parted = [(name.split("."), name) for name in context.keys if name != key.text]
    siblings = {parts[-1]: name for parts, name in parted if tuple(parts[:-1]) == above}
    if len(last) > 2 and (near := context.suggestion(last, sorted(siblings))):
        return siblings[near]
    cousins = {".".join(parts[:-1]): name for parts, name in parted if parts[-1] == last and len(parts) > 1}
    parent = context.suggestion(".".join(above), sorted(cousins)) if above else None
    return cousins[parent] if parent else None


def _fitting(step: Step) -> StateType:
    """Return the key type that fits the value of an update."""
    kind = step.uses[0].kind if step.uses else "unknown"
    if kind == "number" or (step.uses and _is_counts(step.uses[0])):
        return "COUNTER"
    return "DICT" if kind in ("answer", "subgraph", "error") else "LIST"


@lint("GASL056")
def redeclared(context: Context) -> Iterator[Diagnostic]:
    """Report declarations of keys that already have another type."""
    lines: dict[str, Span] = {}
    known: dict[str, StateType] = dict(context.state or {})
    for _, command in context.commands(gasl.Declare):
        if not isinstance(command, gasl.Declare):
            continue
        key, before = command.key.text, known.get(command.key.text)
        if before is not None and before != command.type:
            where = f"in line {context.line(lines[key])}" if key in lines else "in the state"
            message = f"the key {key} is already declared as {before} {where}, not as {command.type}"
            at = context.spelled(command.type, command.span, command.key.span.end)
            edits = [Edit(at, before)] if at else []
            yield context.diagnostic(
                "GASL056", message, command.key.span, "the type of a key can't change", edits=edits
            )
        known.setdefault(key, command.type)
        lines.setdefault(key, command.span)


@lint("GASL057")
def parent_is_no_dict(context: Context) -> Iterator[Diagnostic]:
    """Report keys inside a key that is not a dict."""
    known = _all_types(context)
    for _, command in context.commands(gasl.Declare):
        if isinstance(command, gasl.Declare):
            for count in range(1, min(len(command.key.parts), 100)):
                parent = ".".join(command.key.parts[:count])
                if known.get(parent, "DICT") != "DICT":
                    message = f"{parent} is a {known[parent]}, but only a DICT can contain keys"
                    yield context.diagnostic("GASL057", message, command.key.span, f"declare {parent} as DICT")
                    break


def _all_types(context: Context) -> dict[str, StateType]:
    """Return the type of every key. The type comes from the state, or else from the first DECLARE of the key."""
    types: dict[str, StateType] = dict(context.state or {})
    for _, command in context.commands(gasl.Declare):
        if isinstance(command, gasl.Declare):
            types.setdefault(command.key.text, command.type)
    return types


_WHAT = {
    "nodes": "a list of nodes", "edges": "a list of edges", "paths": "a list of paths", "rows": "a list of rows",
    "number": "a number", "answer": "an object", "subgraph": "an object", "error": "an object",
}  # fmt: skip


@lint("GASL058")
def wrong_shape(context: Context) -> Iterator[Diagnostic]:
    """Report updates with a value that a key of this type can't hold."""
    types = _all_types(context)
    for step, command in context.commands(gasl.Update):
        if not isinstance(command, gasl.Update) or not step.uses or command.key.text not in types:
            continue
        use, kind = step.uses[0], types[command.key.text]
        what = _WHAT.get(use.kind)
        if what is None or _fits(kind, use):
            continue
        message = f"{command.key.text} is a {kind}, which takes {_TAKES[kind]}; {use.name} is {what}"
        yield context.diagnostic("GASL058", message, use.span, _remedy(kind, use))


_TAKES = {
    "LIST": "a list, or an object as one item",
    "DICT": "an object",
    "COUNTER": "a number, or the rows of COUNT ... BY",
}


def _fits(kind: StateType, use: Use) -> bool:
    if kind == "LIST":
        return use.kind != "number"
    if kind == "DICT":
        return use.kind in ("answer", "subgraph", "error")
    return use.kind == "number" or (use.kind == "rows" and (use.columns is None or _is_counts(use)))


def _is_counts(use: Use) -> bool:
    return use.columns is not None and len(use.columns) == 2 and "count" in use.columns


def _remedy(kind: StateType, use: Use) -> str:
    if kind == "COUNTER":
        return f"COUNT {format_name(use.name)} AS n returns a number"
    if kind == "DICT":
        return "store a list in a LIST" if use.kind != "number" else "store a number in a COUNTER"
    return "store a number in a COUNTER"


# A command without AS and a name, and an unbound name after it, are reported as one fault with a fix.

_MISSING = "must end with AS and a name"
_UNBOUND = "GASL050"


def complete_missing_names(
    context: Context, faults: Sequence[Diagnostic], found: Sequence[Diagnostic]
) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """Return the parser's faults and the rules' diagnostics. Faults about a missing name get an edit that adds the name.

    This is done only if exactly one unbound name is used between the command without a name and the next such command.
    Diagnostics about this unbound name are omitted.
    """
    places = [each for each in faults if _is_unnamed(each)]
    if not places:
        return list(faults), list(found)
    unbound: dict[str, int] = {}
    for use in context.flow.uses:
        if not use.bindings and use.name not in context.first_bindings:
            unbound[use.name] = min(use.span.start, unbound.get(use.name, use.span.start))
    given: dict[Diagnostic, str] = {}
    for each, following in zip(places, [*places[1:], None], strict=True):
        end = _start(following) if following is not None else len(context.program.source.text)
        names = [name for name, start in unbound.items() if _start(each) < start < end]
        if len(names) == 1:
            given[each] = names[0]
    explained = [f"the variable {name} is not bound" for name in given.values()]
    mended = [_with_name(each, given[each]) if each in given else each for each in faults]
    return mended, [each for each in found if each.code != _UNBOUND or each.message not in explained]


def _is_unnamed(fault: Diagnostic) -> bool:
    return fault.span is not None and fault.code == "GASL006" and fault.message.endswith(_MISSING)


def _start(fault: Diagnostic) -> int:
    return fault.span.start if fault.span is not None else 0


def _with_name(fault: Diagnostic, name: str) -> Diagnostic:
    end = fault.span.end if fault.span is not None else 0
    written = format_name(name)
    hints = (f"add AS {written} at the end: a later command reads {written}", *fault.hints[1:])
    return evolve(fault, hints=hints, edits=(Edit(Span(end, end), f" AS {written}"),))
