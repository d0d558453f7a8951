"""The context of the lints for GASL: the program, its variables and keys, the graph, the state and the limits."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, TypeAlias, TypeVar

import attrs
from attrs import define, field, frozen

from ...catalogue.commands import Kind
from ...catalogue.schema import Schema
from ...diagnostic import Edit
from ...source import NOWHERE, Span
from ...trees import Node, gasl, walk
from ...trees.conditions import And, Comparison, Condition, Increasing, Not, NullTest, Or, Variable
from ...trees.gasl import Command, Declare, Item, Name, Program, Statement, StateType
from ..framework import LintContext, Lints
from .contents import UNKNOWN, Contents, contents_of

_N = TypeVar("_N", bound=Node)
_T = TypeVar("_T")

# The variables of a program at run time: the commands that bind and read them, and the kinds of their values. They are found in
# one walk in execution order. A command in a BRANCH, an ON or a CATCH may or may not run, so a name can have several bindings
# or none. A fault is reported only if it is certain.


@frozen(eq=False)
class Binding:
    """A variable that a command binds, and the contents of the variable."""

    name: str
    span: Span
    command: Command | None
    contents: Contents = UNKNOWN

    @property
    def kind(self) -> Kind:
        """Return the kind of the value."""
        return self.contents.kind

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Return all fields that the rows of the value may have, if known."""
        return self.contents.columns


@frozen(eq=False)
class Use:
    """A place where a command reads a name, with the bindings that are possible there.

    ``sure`` is true if the name is bound no matter which branches run.
    """

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
        return self.contents.columns

    @property
    def contents(self) -> Contents:
        """Return the contents of the variable. If several bindings are possible, return only what their contents have in common."""
        if len(self.bindings) == 1:
            return self.bindings[0].contents
        more = (name for binding in self.bindings for name in binding.contents.more)
        return Contents(self.kind, more=tuple(dict.fromkeys(more)))


@frozen(eq=False)
class Step:
    """A command, its statement, and the places where it reads names.

    ``before`` is the previous statement on the same level. ``nodes`` are the nodes in the tree of the command, without those of commands
    inside it.
    """

    command: Command
    statement: Statement
    before: Statement | None
    uses: tuple[Use, ...]
    nodes: tuple[Node, ...]
    _results: dict[str, Any] = field(factory=dict, init=False, repr=False)

    def use_of(self, name: Name | None) -> Use | None:
        """Return the read of ``name`` by the command, or None."""
        return next((use for use in self.uses if name is not None and use.span is name.span), None)

    def nodes_of(self, kind: type[_N]) -> list[_N]:
        """Return the nodes of a class in the tree of the command, in source order."""
        return [node for node in self.nodes if isinstance(node, kind)]

    def once(self, name: str, find: Callable[[], Iterable[_T]]) -> tuple[_T, ...]:
        """Return the results of ``find``. It runs only once for each ``name``, because many rules need the same results."""
        known: tuple[_T, ...] | None = self._results.get(name)
        if known is None:
            known = self._results[name] = tuple(find())
        return known


@define(eq=False)
class Flow:
    """The result of the walk: the commands, their bindings, and the overwritten bindings.

    ``steps`` lists outer commands before the commands inside them. ``overwritten`` pairs each overwritten binding with its
    replacement.
    """

    steps: list[Step] = field(factory=list)
    bindings: list[Binding] = field(factory=list)
    overwritten: list[tuple[Binding, Binding]] = field(factory=list)

    @property
    def uses(self) -> Iterator[Use]:
        """Yield every read of a name in execution order."""
        return (use for step in self.steps for use in step.uses)


@define(eq=False)
class _Scope:
    """The names that are bound in a block, or in a command that may not run.

    A scope reads the names of outer scopes, but does not change them.
    """

    around: "_Scope | None" = None
    names: dict[str, tuple[tuple[Binding, ...], bool]] = field(factory=dict)

    def look_up(self, name: str) -> tuple[tuple[Binding, ...], bool]:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.around
        return (), False

    def join(self, *branches: "_Scope") -> None:
        """Merge the bindings of alternative ``branches``, of which exactly one runs."""
        for name in dict.fromkeys(name for branch in branches for name in branch.names):
            found = [branch.names.get(name) or self.look_up(name) for branch in branches]
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
    contents: Mapping[str, Contents] | None = None,
) -> Flow:
    """Walk the program.

    ``given`` are names that are bound before the program runs; ``perhaps`` are names that unreadable text may bind. ``schema``
    is the schema of the graph. ``fields`` maps given names to the fields of their items, if known. ``contents`` has entries for
    those given names that an earlier command bound: the result of ``contents_of`` for that command.
    """
    walker = _Walker(schema)
    known, bound = fields or {}, contents or {}
    scope = _Scope()
    for name in perhaps:
        scope.names[name] = ((Binding(name, NOWHERE, None),), False)
    for name in given:
        held = bound.get(name) or Contents("rows" if name in known else "unknown")
        if held.columns is None and held.kind == "rows":
            held = attrs.evolve(held, columns=known.get(name))
        scope.names[name] = ((Binding(name, NOWHERE, None, held),), True)
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
        """Walk a command and its children. The recursion is bounded, because the parser limits the nesting depth."""
        nodes = tuple(_own_nodes(command))
        uses = tuple(self.uses(command, nodes, scope))
        self.flow.steps.append(Step(command, statement, before, uses, nodes))
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
            caught.names["error"] = ((Binding("error", NOWHERE, None, Contents("error")),), True)
            self.block(command.caught, caught)
            begun.names.update(caught.names)
            scope.join(body, begun)
        if command.always is not None:
            always = _Scope(scope)
            self.block(command.always, always)
            scope.names.update(always.names)

    def uses(self, command: Command, nodes: Iterable[Node], scope: _Scope) -> Iterator[Use]:
        for name, span, role in _reads(command, nodes):
            bindings, sure = scope.look_up(name)
            self.read.update(bindings)
            yield Use(name, span, command, role, bindings, sure)

    def bind(self, name: Name, command: Command, uses: tuple[Use, ...], scope: _Scope) -> None:
        contents = contents_of(command, [use.contents for use in uses if use.role == "source"], self.schema)
        made = Binding(name.text, name.span, command, contents)
        self.flow.bindings.append(made)
        old, sure = scope.names.get(name.text, ((), False))
        if sure and len(old) == 1 and old[0].command is not None and old[0] not in self.read:
            self.flow.overwritten.append((old[0], made))
        scope.names[name.text] = ((made,), True)


_Role: TypeAlias = Literal["source", "on", "require", "condition"]


def _own_nodes(command: Command) -> Iterator[Node]:
    """Yield the nodes in the tree of a command. Nodes of commands inside it are omitted."""
    if isinstance(command, gasl.Branch):
        return walk(command.condition)
    return iter(()) if isinstance(command, gasl.Try | gasl.On | gasl.Explain) else walk(command)


def _reads(command: Command, nodes: Iterable[Node]) -> Iterator[tuple[str, Span, _Role]]:
    """Yield the names that a command itself reads. ``nodes`` are its own nodes. Names that only its children read are omitted."""
    role: _Role = "on" if isinstance(command, gasl.On) else "require" if isinstance(command, gasl.Require) else "source"
    for attribute in ("source", "left", "right", "start", "end", "edges"):
        name = getattr(command, attribute, None)
        if isinstance(name, Name):
            yield name.text, name.span, role
    for node in nodes:
        if isinstance(node, Variable):
            yield node.name, node.span, "condition"


_CONDITION = (And, Comparison, Increasing, Not, NullTest, Or)
Tested: TypeAlias = Literal["nodes", "edges", "paths", "patterns", "items", "variables"]


def conditions_of(command: Command) -> Iterator[tuple[Condition, Tested]]:
    """Yield each condition of a command itself (not of its children), with the items that the condition tests."""
    items: Tested = "items"
    if isinstance(command, gasl.Find):
        items = command.kind
    elif isinstance(command, gasl.FindPaths | gasl.FindCycles):
        items = "paths"
    elif isinstance(command, gasl.FindPatterns):
        items = "patterns"
    tested: dict[str, Tested] = {
        "start": "nodes", "end": "nodes", "via": "edges", "where": items, "condition": "variables",
    }  # fmt: skip
    for attribute, on in tested.items():
        condition = getattr(command, attribute, None)
        if isinstance(condition, _CONDITION):
            yield condition, on


@attrs.frozen(slots=False)
class Context(LintContext):
    """A program under check. Data that several rules use are computed once.

    ``schema``, ``state``, ``ceiling``, ``measures`` and ``models`` are None if unknown. ``variables`` are the names bound before the
    program runs. ``fields`` maps these names to all fields of their items, if known. ``contents`` maps these names to their contents.
    """

    program: Program
    schema: Schema | None = None
    state: Mapping[str, StateType] | None = None
    ceiling: Mapping[str, float] | None = None
    measures: Collection[str] | None = None
    variables: Collection[str] = ()
    models: Collection[str] | None = None
    fields: Mapping[str, tuple[str, ...]] = {}
    contents: Mapping[str, Contents] = {}

    def text(self, span: Span) -> str:
        """Return the source text at ``span``; "" if the program was not parsed from text."""
        return self.program.source.text[span.start : span.end]

    def replaced(self, span: Span, name: str) -> Edit:
        """Return the edit that replaces a field with ``name``; parentheses around the field are kept."""
        shown = self.text(span)
        before, after = (len(shown) - len(rest) for rest in (shown.lstrip("( \t\r\n"), shown.rstrip(") \t\r\n")))
        return Edit(Span(span.start + before, span.end - after), name)

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
        """Return the result of walking the program: its commands, and the variables that it has at run time."""
        perhaps = () if self.is_whole else _names_after_as(self.program.source.text)
        return trace(
            self.program.items, self.variables, perhaps, schema=self.schema, fields=self.fields, contents=self.contents
        )

    @property
    def steps(self) -> list[Step]:
        """Return every command with its statement and the names that it reads, outer commands first."""
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
        """Yield a pair of step and command for each command of these classes."""
        return ((step, step.command) for step in self.steps if isinstance(step.command, kinds))


lint: Lints[Context] = Lints()


def _names_after_as(text: str) -> set[str]:
    """Return the words after AS and PARAM in a text that could not be read completely; they may be names of variables."""
    import re

    found = re.finditer(r"\bAS\s+(?:`([^`\n]+)`|(\w+))|^[ \t]*PAR\w*[ \t]+(\w+)(?:[ \t]+(\w+))?", text, re.I | re.M)
    return {name for match in found for name in match.groups() if name}
