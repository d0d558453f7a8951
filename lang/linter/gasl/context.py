"""The context of the lints for GASL: the program, its variables and keys, the graph, the state and the limits."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Literal, TypeAlias

import attrs
from attrs import define, field, frozen

from ...catalogue.commands import BY_NODE, Kind
from ...catalogue.schema import Schema
from ...source import NOWHERE, Span
from ...trees import Node, gasl, walk
from ...trees.conditions import And, Comparison, Condition, Not, NullTest, Or, Variable
from ...trees.gasl import Command, Declare, Item, Name, Program, Statement, StateType
from ..framework import LintContext, Lints

# The variables of a program at run time: the commands that bind and read them, and the kinds of their values.
# They are found in one walk in execution order. A command in a BRANCH, an ON or a CATCH may or may not run, so a name can have
# several bindings or none. Only certain faults are reported, not possible ones.


@frozen(eq=False)
class Binding:
    """A name that a command binds. ``columns`` are all fields that the rows of its value may have, if known."""

    name: str
    span: Span
    command: Command | None
    kind: Kind
    columns: tuple[str, ...] | None = None


@frozen(eq=False)
class Use:
    """One read of a name by a command, with the possible bindings. ``sure``: the name is bound on every way to the command."""

    name: str
    span: Span
    command: Command
    role: Literal["source", "on", "require", "condition"]
    bindings: tuple[Binding, ...]
    sure: bool

    @property
    def kind(self) -> Kind:
        """Return the kind that all bindings share, else "unknown"."""
        kinds = {binding.kind for binding in self.bindings}
        return kinds.pop() if len(kinds) == 1 else "unknown"

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Return the fields of the rows in the variable, if known."""
        return self.bindings[0].columns if len(self.bindings) == 1 else None


@frozen(eq=False)
class Step:
    """A command with its statement and its reads of names. ``before`` is the previous statement on the same level."""

    command: Command
    statement: Statement
    before: Statement | None
    uses: tuple[Use, ...]

    def use_of(self, name: Name | None) -> Use | None:
        """Return the read of ``name`` by the command, or None."""
        return next((use for use in self.uses if name is not None and use.span is name.span), None)


@define(eq=False)
class Flow:
    """The result of the walk: all commands (outer commands first), all bindings, and each overwritten binding with its successor."""

    steps: list[Step] = field(factory=list)
    bindings: list[Binding] = field(factory=list)
    overwritten: list[tuple[Binding, Binding]] = field(factory=list)

    @property
    def uses(self) -> Iterator[Use]:
        """Yield every read of a name in execution order."""
        return (use for step in self.steps for use in step.uses)


@define(eq=False)
class _Scope:
    """The names in a block or in a command that may run. A scope reads the names of outer scopes, but does not change them."""

    around: "_Scope | None" = None
    names: dict[str, tuple[tuple[Binding, ...], bool]] = field(factory=dict)

    def look_up(self, name: str) -> tuple[tuple[Binding, ...], bool]:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.around
        return (), False

    def join(self, *ways: "_Scope") -> None:
        """Add the bindings of all ``ways``; exactly one of them has run."""
        for name in dict.fromkeys(name for way in ways for name in way.names):
            found = [way.names.get(name) or self.look_up(name) for way in ways]
            bindings = tuple(dict.fromkeys(binding for each, _ in found for binding in each))
            self.names[name] = (bindings, all(sure for _, sure in found))


def nests_within(items: Iterable[Item], deepest: int) -> bool:
    """Return whether commands are nested at most ``deepest`` levels deep."""
    level: list[Node] = list(items)
    for _ in range(deepest):
        commands = [item.command if isinstance(item, Statement) else item for item in level]
        level = [inner for command in commands for inner in _held(command)]
        if not level:
            return True
    return False


def _held(command: Node) -> tuple[Node, ...]:
    """Return the children of a command: the items of its blocks, or the commands inside it."""
    if isinstance(command, gasl.Try):
        return (*command.body, *(command.caught or ()), *(command.always or ()))
    if isinstance(command, gasl.Branch):
        return (command.then,) if command.otherwise is None else (command.then, command.otherwise)
    if isinstance(command, gasl.On):
        return (command.then,)
    return (command.command,) if isinstance(command, gasl.Explain) else ()


def trace(
    items: Iterable[Item],
    given: Iterable[str] = (),
    perhaps: Iterable[str] = (),
    *,
    schema: Schema | None = None,
    fields: Mapping[str, tuple[str, ...]] | None = None,
) -> Flow:
    """Walk the program. ``given`` are names that are bound before it runs; ``perhaps`` are names that unreadable text may bind.

    ``schema`` is the schema of the graph. ``fields`` maps given names to the fields of their items, where known.
    """
    walker = _Walker(schema)
    known = fields or {}
    scope = _Scope()
    for name in perhaps:
        scope.names[name] = ((Binding(name, NOWHERE, None, "unknown"),), False)
    for name in given:
        kind: Kind = "rows" if name in known else "unknown"
        scope.names[name] = ((Binding(name, NOWHERE, None, kind, known.get(name)),), True)
    walker.block(items, scope)
    return walker.flow


@define(eq=False)
class _Walker:
    schema: Schema | None = None
    flow: Flow = field(factory=Flow)
    read: set[Binding] = field(factory=set)

    def block(self, items: Iterable[Item], scope: _Scope) -> None:
        before: Statement | None = None
        for item in items:
            if isinstance(item, Statement):
                self.command(item.command, item, before, scope)
                before = item

    def command(self, command: Command, statement: Statement, before: Statement | None, scope: _Scope) -> None:
        """Walk a command and its children. Recursive: the parser limits the depth."""
        uses = tuple(self.uses(command, scope))
        self.flow.steps.append(Step(command, statement, before, uses))
        if isinstance(command, gasl.Try):
            self.try_block(command, scope)
        elif isinstance(command, gasl.On):
            then = _Scope(scope)
            self.command(command.then, statement, before, then)
            scope.join(then, _Scope(scope))
        elif isinstance(command, gasl.Branch):
            then, otherwise = _Scope(scope), _Scope(scope)
            self.command(command.then, statement, before, then)
            if command.otherwise is not None:
                self.command(command.otherwise, statement, before, otherwise)
            scope.join(then, otherwise)
        elif isinstance(command, gasl.Explain):
            self.command(command.command, statement, before, _Scope(scope))  # this command does not run
        else:
            for name in gasl.bound_variables(command):
                self.bind(name, command, uses, scope)

    def try_block(self, command: gasl.Try, scope: _Scope) -> None:
        body = _Scope(scope)
        self.block(command.body, body)
        if command.caught is None:
            scope.names.update(body.names)
        else:
            begun = _Scope(scope)
            begun.join(body, _Scope(begun))
            caught = _Scope(begun)
            caught.names["error"] = ((Binding("error", NOWHERE, None, "error"),), True)
            self.block(command.caught, caught)
            begun.names.update(caught.names)
            scope.join(body, begun)
        if command.always is not None:
            always = _Scope(scope)
            self.block(command.always, always)
            scope.names.update(always.names)

    def uses(self, command: Command, scope: _Scope) -> Iterator[Use]:
        for name, span, role in _reads(command):
            bindings, sure = scope.look_up(name)
            self.read.update(bindings)
            yield Use(name, span, command, role, bindings, sure)

    def bind(self, name: Name, command: Command, uses: tuple[Use, ...], scope: _Scope) -> None:
        kind, columns = _result(command, uses, self.schema)
        made = Binding(name.text, name.span, command, kind, columns)
        self.flow.bindings.append(made)
        old, sure = scope.names.get(name.text, ((), False))
        if sure and len(old) == 1 and old[0].command is not None and old[0] not in self.read:
            self.flow.overwritten.append((old[0], made))
        scope.names[name.text] = ((made,), True)


_Role: TypeAlias = Literal["source", "on", "require", "condition"]


def _reads(command: Command) -> Iterator[tuple[str, Span, _Role]]:
    """Yield the names that a command itself reads, without the names that its children read."""
    role: _Role = "on" if isinstance(command, gasl.On) else "require" if isinstance(command, gasl.Require) else "source"
    for attribute in ("source", "left", "right", "start", "end"):
        name = getattr(command, attribute, None)
        if isinstance(name, Name):
            yield name.text, name.span, role
    for condition, _ in conditions_of(command):
        for node in walk(condition):
            if isinstance(node, Variable):
                yield node.name, node.span, "condition"


_CONDITION = (And, Comparison, Not, NullTest, Or)
Tested: TypeAlias = Literal["nodes", "edges", "paths", "items", "variables"]


def conditions_of(command: Command) -> Iterator[tuple[Condition, Tested]]:
    """Yield each condition of a command itself (not of its children), with the items that the condition tests."""
    items: Tested = "items"
    if isinstance(command, gasl.Find):
        items = command.kind
    elif isinstance(command, gasl.FindPaths):
        items = "paths"
    tested: dict[str, Tested] = {
        "start": "nodes", "end": "nodes", "via": "edges", "where": items, "condition": "variables",
    }  # fmt: skip
    for attribute, on in tested.items():
        condition = getattr(command, attribute, None)
        if isinstance(condition, _CONDITION):
            yield condition, on


def _result(command: Command, uses: tuple[Use, ...], schema: Schema | None) -> tuple[Kind, tuple[str, ...] | None]:
    """Return the kind of a command's result, and the fields of its rows (None if not certain)."""
    gives = BY_NODE[type(command)].gives
    if gives == "source":
        return (uses[0].kind, uses[0].columns) if uses and uses[0].bindings else ("unknown", None)
    columns: tuple[str, ...] | None = None
    match command:
        case gasl.Find():
            gives = command.kind
        case gasl.SelectFields():
            columns = tuple(path.text for path in command.fields)
        case gasl.Count(by=None):
            gives = "number"
        case gasl.Count(by=gasl.Path() as by):
            gives, columns = "rows", _grouped(by.text, ("count",))
        case gasl.Aggregate():
            made = (c.function if c.field is None else f"{c.function}_{c.field.text}" for c in command.computations)
            columns = _grouped(command.by.text, tuple(made))
        case gasl.Measure():
            columns = ("id", command.algorithm)
        case gasl.SetOperation():
            kinds = [use.kind for use in uses[:2]]
            if len(kinds) == 2 and (kinds[0] == kinds[1] or command.kind != "UNION"):
                gives = kinds[0]
                columns = _all([use.columns for use in uses[: 2 if command.kind == "UNION" else 1]])
        case gasl.Join():
            left, right = (fields_in(use, schema) for use in uses[:2])
            renamed = None if left is None or right is None else gasl.joined_names(left, right, command)
            columns = _all([left, None if renamed is None else tuple(renamed.values())])
        case gasl.Classify():
            items = fields_in(uses[0], schema) if uses else None
            columns = None if items is None else _labelled(items)
    return gives or "unknown", columns


def fields_in(use: Use, schema: Schema | None) -> tuple[str, ...] | None:
    """Return all fields that the items of a variable may have; None if unknown."""
    if use.columns is not None or use.kind not in ("nodes", "edges", "paths"):
        return use.columns
    if use.kind == "paths":
        return "source", "target", "length", "nodes", "edges"
    if schema is None:
        return None
    if use.kind == "nodes":
        return tuple(dict.fromkeys(("id", *schema.node_attributes)))
    return tuple(dict.fromkeys(("source", "target", *(("key",) if schema.multi else ()), *schema.edge_attributes)))


def _all(sides: Iterable[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    names: dict[str, None] = {}
    for side in sides:
        if side is None:
            return None
        names.update(dict.fromkeys(side))
    return tuple(names)


def _labelled(items: tuple[str, ...]) -> tuple[str, ...]:
    """Return the fields of classified items. A field ``label`` that the items already have becomes ``item.label``."""
    kept = "item.label"
    while kept in items:
        kept = f"item.{kept}"
    names = (kept if name == "label" else name for name in items)
    return (*names, "label")


def _grouped(by: str, made: tuple[str, ...]) -> tuple[str, ...]:
    while by in made:
        by = f"by.{by}"
    return (by, *made)


@attrs.frozen(slots=False)
class Context(LintContext):
    """A program under check. Data that several rules use are computed once.

    ``schema``, ``state``, ``ceiling``, ``measures`` and ``models`` are None if unknown. ``variables`` are the names bound before the
    program runs; ``fields`` maps them to all fields of their items, where known.
    """

    program: Program
    schema: Schema | None = None
    state: Mapping[str, StateType] | None = None
    ceiling: Mapping[str, float] | None = None
    measures: Collection[str] | None = None
    variables: Collection[str] = ()
    models: Collection[str] | None = None
    fields: Mapping[str, tuple[str, ...]] = {}

    def text(self, span: Span) -> str:
        """Return the source text at ``span``; "" if the program was not parsed from text."""
        return self.program.source.text[span.start : span.end]

    def spelled(self, word: str, within: Span, after: int = 0) -> Span | None:
        """Return the span of the first ``word`` in ``within`` that begins at ``after`` or later, or None."""
        at = self.program.source.text.find(word, max(within.start, after), within.end)
        return Span(at, at + len(word)) if at >= 0 else None

    def line(self, span: Span) -> int:
        """Return the line in which ``span`` begins."""
        return self.program.source.position(span.start)[0]

    @cached_property
    def is_whole(self) -> bool:
        """Return whether all commands could be read."""
        return not any(diagnostic.severity == "error" for diagnostic in self.program.diagnostics)

    @cached_property
    def flow(self) -> Flow:
        """Return the result of the walk: the commands of the program, and its variables at run time."""
        perhaps = () if self.is_whole else _names_behind_as(self.program.source.text)
        return trace(self.program.items, self.variables, perhaps, schema=self.schema, fields=self.fields)

    @property
    def steps(self) -> list[Step]:
        """Return every command with its statement and its reads of names, outer commands first."""
        return self.flow.steps

    @cached_property
    def bound_names(self) -> tuple[str, ...]:
        """Return all names that are bound before the program runs or that the program binds."""
        return tuple(dict.fromkeys((*self.variables, *(binding.name for binding in self.flow.bindings))))

    @cached_property
    def first_bindings(self) -> dict[str, Binding]:
        """Return the first binding of each name that the program binds."""
        found: dict[str, Binding] = {}
        for binding in self.flow.bindings:
            found.setdefault(binding.name, binding)
        return found

    @cached_property
    def keys(self) -> frozenset[str]:
        """Return all keys that are in the state or that the program declares."""
        declared = (step.command.key.text for step in self.steps if isinstance(step.command, Declare))
        return frozenset((*declared, *(self.state or ())))

    def commands(self, *kinds: type) -> Iterator[tuple[Step, Command]]:
        """Yield the commands of these classes, each after its step."""
        return ((step, step.command) for step in self.steps if isinstance(step.command, kinds))


lint: Lints[Context] = Lints()


def _names_behind_as(text: str) -> set[str]:
    """Return the words after AS in a text that could not be read completely; they may be names of variables."""
    import re

    return {match[1] or match[2] for match in re.finditer(r"\bAS\s+(?:`([^`\n]+)`|(\w+))", text, re.IGNORECASE)}
