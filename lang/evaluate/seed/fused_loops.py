"""Writes one loop over the rows that computes several reductions at once.

Enum fields have few combinations of values. For each combination, the results of the conditions and the increments of the
counters (packed into one integer) are cached. Other conditions are compiled one by one; a condition that several reductions
share is tested once.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from attrs import define, evolve, field, frozen

from ...trees.expr import Expr, Field, Name
from ...trees.seed import Extracted, Lookup
from ..expr.comparison import extreme_of
from ..expr.generator_types import ANYTHING, CHECKED, FOREIGN, NULL, PLAIN, Code, Fallback, Kind, uncommon_test, union
from ..expr.generator_writer import Unsupported, Writer
from ..expr.values import Limits, Meter, checked_result
from .fusion import Reduction, discrete_fields
from .interpreter import Row, Table, copied, step_limits

# Functions that a seed's generated function calls. They raise ``Fallback`` to use the interpreter.

MOST_REMEMBERED = 4_096
"""Maximum number of combinations of enum values whose results are cached."""
_SHORT = 255
_SPARE = 1_000_000
"""Bytes reserved for values that do not depend on the number of rows."""


def bounded(rows: int, per_row: int, fixed: int, memory: int) -> int:
    """Guard: return the number of steps that remain if each row takes ``per_row`` steps and the rest takes ``fixed`` steps.

    Both the steps and the memory must be within the limits. ``memory`` is the number of bytes that the lists need for each row.
    """
    return _left(step_limits(rows), rows, per_row, fixed, memory)


def _left(limits: Limits, rows: int, per_row: int, fixed: int, memory: int) -> int:
    left = limits.steps - rows * per_row - fixed
    if left < 0 or rows * memory > limits.memory - _SPARE:
        raise Fallback
    return left


def measured(rows: int, per_row: int, fixed: int, memory: int) -> Meter:
    """Return a meter for the parts whose cost is not known in advance; all other costs are already charged."""
    limits = step_limits(rows)
    meter = Meter(limits)
    meter.left = _left(limits, rows, per_row, fixed, memory)
    meter.room -= rows * memory + _SPARE
    return meter


def elements_of(rows: Sequence[Row], fields: Mapping[str, None], meta: Mapping[str, None]) -> list[dict[str, Any]]:
    """Return the value of ``extractions``. A single expression completes each row and converts it to its element."""
    return [{**fields, **row["extraction"], "meta": {**meta, **row.get("meta", {})}} for row in rows]


def remembered(*values: Any) -> bool:
    """Guard: return whether ``values`` may be a cache key.

    A key may contain only strings and nulls, because true and 1 would be the same key.
    """
    keep = True
    for value in values:
        if value.__class__ is str:
            if len(value) > _SHORT:
                raise Fallback
        elif value is not None:
            if value.__class__ not in PLAIN:
                raise Fallback
            keep = False
    return keep


def greatest(values: list[Any], *default: Any) -> Any:
    """Return the largest number, like ``max`` of a list. For an empty list, return the default if one is given."""
    if default and not values:
        return default[0]
    return extreme_of(max, max(values), values)


def least(values: list[Any], *default: Any) -> Any:
    """Return the smallest number, like ``min`` of a list. For an empty list, return the default if one is given."""
    if default and not values:
        return default[0]
    return extreme_of(min, min(values), values)


def finder(step: Lookup) -> Callable[[Meter, Any], Any]:
    """Return a function ``(meter, source) -> value`` with the results of ``Table.find``.

    The returned function searches a short string faster.
    """
    table = Table.of(step)
    ranked = _ranked(table)
    cost = 2 * len(table.keys)

    def find(meter: Meter, source: Any) -> Any:
        if ranked is None or source.__class__ is not str or len(source) > _SHORT or not source.isascii():
            return table.find(checked_result(source, None, meter), meter)
        meter.step(cost)
        text = source.casefold()
        for key, value in ranked:
            if key in text:
                return value
        return table.default

    return find


def _ranked(table: Table) -> list[tuple[str, Any]] | None:
    """Return the keys and values in an order in which the first matching key has the result; None if there is no such order."""
    pairs = [(key, value) for key, value in zip(table.keys, table.values, strict=True) if key]
    if table.match == "substring_first":
        return pairs
    if table.match != "substring_max" or not all(
        value.__class__ is int or value.__class__ is float for _, value in pairs
    ):
        return None
    # As in ``extreme``, an integer comes before an equal float, and 0.0 before -0.0.
    return sorted(
        pairs, key=lambda pair: (-pair[1], *((1, -math.copysign(1, pair[1])) if isinstance(pair[1], float) else (0, 0)))
    )


SPACE: Mapping[str, Any] = {
    function.__name__: function for function in (bounded, copied, elements_of, greatest, least, measured, remembered)
}
"""Functions for the generated code of seeds, in addition to the functions for the code of expressions."""


# Enum fields have few values, so the results of all conditions are computed once for each combination of values, and cached.


@frozen
class Atom:
    """A condition as code.

    If ``free`` is true, the condition can't fail, so it may be tested before others. ``reads`` are the locals that the condition needs.
    """

    text: str
    free: bool
    reads: tuple[str, ...] = ()


@define(eq=False)
class Group:
    """A group of enum fields, with the counters and conditions that depend on the combination of their values.

    The result for a combination is a tuple: the increments of all counters packed into one integer, and a boolean per condition.
    """

    number: int
    prefix: str
    fields: tuple[str, ...]
    counters: dict[tuple[Expr, ...], int] = field(factory=dict)
    """Maps the conditions of each counter to the bit offset of the counter."""
    _flags: dict[tuple[Expr, ...], str] = field(factory=dict)

    @property
    def name(self) -> str:
        """The name of the group, the prefix of its local names."""
        return f"{self.prefix}f{self.number}"

    @property
    def memory(self) -> str:
        """The name of the cache dict."""
        return f"{self.name}_memory"

    @property
    def total(self) -> str:
        """The name of the local that holds the packed counters, summed over the rows."""
        return f"{self.name}_total"

    @property
    def increment(self) -> str:
        """The name of the local that holds the packed increments for one row."""
        return f"{self.name}_counters"

    @property
    def used(self) -> bool:
        """Whether the group has a counter or a condition."""
        return bool(self.counters or self._flags)

    def atom(self, parts: tuple[Expr, ...]) -> Atom:
        """Return the code of a condition that is true if all of ``parts`` are true."""
        return Atom(self._flags.setdefault(parts, f"{self.name}_{len(self._flags)}"), True, (self.name,))

    def lines(self, keep: Callable[[Any], str]) -> list[str]:
        """Return the lines that look up the result for the values of the fields in ``e``. A missing field is null."""
        keys = [keep(name) for name in self.fields]
        targets = ", ".join([*([self.increment] if self.counters else []), *self._flags.values()])
        return [
            "try:", f" {targets} = {self.memory}[{', '.join(f'e[{key}]' for key in keys)}]",
            "except (KeyError, TypeError):", f" {targets} = {self.name}_means({', '.join(f'e.get({key})' for key in keys)})",
        ]  # fmt: skip

    def function(self, writer: Writer) -> list[str]:
        """Return the lines of the function that computes and caches the result for a combination."""
        locals_ = {name: f"v{at}" for at, name in enumerate(self.fields)}

        def resolve(node: Name | Field) -> Code:
            if not isinstance(node, Field):
                raise Unsupported
            return Code(locals_[node.name], ANYTHING, simple=True, total=True)

        def held(parts: tuple[Expr, ...]) -> str:
            return "(" + " and ".join(writer.inside(resolve, part).text for part in parts) + ")"

        means = [held(parts) for parts in self._flags]
        if self.counters:
            counted = [f"({writer.keep(1 << shift)} if {held(parts)} else 0)" for parts, shift in self.counters.items()]
            means.insert(0, f"({' + '.join(counted)})")
        names = ", ".join(locals_.values())
        most = MOST_REMEMBERED // (1 + (len(self.counters) + len(self._flags)) // 16)
        return [
            f"def {self.name}_means({names}):",
            f" keep = remembered({names})",
            f" means = {', '.join(means)}",
            f" if keep and len({self.memory}) < {most}:",
            f"  {self.memory}[{names}] = means",
            " return means",
        ]


_COUNTER_BITS = 32
"""Number of bits of a counter of rows."""
_MOST_COMBINATIONS = 1_024
_DEEPEST = 30
_NUMERIC_META = frozenset({"stars", "useful", "year", "month", "age_days"})


@frozen
class Action:
    """Lines of code that run for each row for which all ``atoms`` are true. ``reads`` are the locals that the lines need."""

    atoms: tuple[Atom, ...]
    lines: tuple[str, ...]
    reads: tuple[str, ...]


@define
class Loop:
    """The reductions of one loop, and the loop's code. ``name_code`` returns the code of names and of context fields."""

    fields: Mapping[str, Extracted]
    writer: Writer
    name_code: Callable[[Name | Field], Code]
    prefix: str
    _results: dict[Reduction, tuple[str, Code | None, tuple[str, ...]]] = field(factory=dict)
    _groups: list[Group] = field(factory=list)
    _locals: dict[Field, str] = field(factory=dict)
    _loads: dict[str, tuple[tuple[str, ...], list[str]]] = field(factory=dict)
    """Maps each local name to the locals that it needs and the lines that load it."""
    _reads: list[str] = field(factory=list)
    _before: list[str] = field(factory=list)
    _after: list[str] = field(factory=list)

    def add(self, reduction: Reduction) -> tuple[str, Kind | None]:
        """Add a reduction.

        Return the name of the local that holds the reduction's result after the loop, and the kind of the result's elements.
        """
        if reduction not in self._results:
            element = None if reduction.element is None else self._code_of(reduction.element)
            self._results[reduction] = (self.writer.local("a"), element, self._read())
        name, element, _ = self._results[reduction]
        return name, None if element is None else element.kind.without("null")

    def kind_of(self, element: Expr) -> Kind:
        """Return the kind of ``element`` if it is not null."""
        kind = self._code_of(element).kind.without("null")
        self._reads.clear()
        return kind

    def _code_of(self, expr: Expr) -> Code:
        """Return the code of an expression over one row."""
        return self.writer.inside(self._resolve, expr)

    def _read(self) -> tuple[str, ...]:
        """Return the locals that were read since the previous call of this method."""
        reads = tuple(dict.fromkeys(self._reads))
        self._reads.clear()
        return reads

    def _resolve(self, node: Name | Field) -> Code:
        if isinstance(node, Name) or node.namespace == "context":
            return self.name_code(node)
        if node not in self._locals:
            self._locals[node] = self._load(node)
        name = self._locals[node]
        self._reads.append(name)
        kind = union(CHECKED, NULL) if self._numeric(node) else FOREIGN
        return Code(name, kind, simple=True, total=True)

    def _numeric(self, node: Field) -> bool:
        if node.namespace == "meta":
            return node.name in _NUMERIC_META
        return node.name in self.fields and self.fields[node.name].type in ("int", "float")

    def _load(self, node: Field) -> str:
        name, record = self.writer.local("r"), "e" if node.namespace == "extraction" else "m"
        key = self.writer.keep(node.name)
        lines = ["try:", f" {name} = {record}[{key}]", "except KeyError:", f" {name} = None"]
        if self._numeric(node):
            whole = node.namespace == "meta" or self.fields[node.name].type == "int"
            lines.append(f"if {uncommon_test(name, whole=whole)}: is_number_or_null({name})")
        self._loads[name] = ((record,), lines)
        return name

    def lines(self) -> list[str]:
        """Return the lines of the loop, with the lines before and after it."""
        keep = self.writer.keep
        self._loads["e"] = ((), [f"e = row[{keep('extraction')}]", "if e.__class__ is not dict: fail()"])
        self._loads["m"] = (
            (),
            ["try:", f" m = row[{keep('meta')}]", "except KeyError:", " m = {}", "if m.__class__ is not dict: fail()"],
        )
        enums = {
            name: len(found.values) + 1 for name, found in self.fields.items() if found.type == "enum" and found.values
        }
        self._group(enums)
        actions = [self._action(reduction) for reduction in self._results if not self._packed(reduction, enums)]
        body: list[str] = []
        loaded: set[str] = set()
        for group in self._groups:
            self._loads[group.name] = (("e",), group.lines(keep))
            if group.counters:
                self._need([group.name], loaded, body)
                self._before.append(f"{group.total} = 0")
                body.append(f"{group.total} += {group.increment}")
        body += self._block(actions, loaded, 0)
        if not body:
            return self._before
        return [*self._before, "for row in rows:", *(f" {line}" for line in body), *self._after]

    def functions(self) -> tuple[list[str], dict[str, Any]]:
        """Return the lines of the functions that the loop calls, and the namespace of these functions. Call ``lines`` first."""
        lines = [line for group in self._groups if group.used for line in group.function(self.writer)]
        return lines, {group.memory: {} for group in self._groups}

    def _group(self, enums: Mapping[str, int]) -> None:
        """Put the enum fields that conditions read into groups. Each group has few combinations of values."""
        for reduction in self._results:
            for part in reduction.where:
                names = discrete_fields(part, enums)
                if names and not any(names <= set(group.fields) for group in self._groups):
                    self._join(names, enums)

    def _packed(self, reduction: Reduction, enums: Mapping[str, int]) -> bool:
        """Return whether a reduction needs no work for each row. The result of such a reduction is a counter of a group after the loop."""
        name, _, _ = self._results[reduction]
        names = [discrete_fields(part, enums) for part in reduction.where]
        if reduction.kind == "check":
            return None not in names
        if reduction.kind not in ("count", "exists"):
            return False
        if not reduction.where:
            self._before.append(f"{name} = {'n' if reduction.kind == 'count' else 'n > 0'}")
            return True
        for group in self._groups:
            if all(found is not None and found <= set(group.fields) for found in names):
                shift = group.counters.setdefault(reduction.where, _COUNTER_BITS * len(group.counters))
                counted = f"({group.total} >> {shift} & {2**_COUNTER_BITS - 1})"
                self._after.append(f"{name} = {counted}{'' if reduction.kind == 'count' else ' > 0'}")
                return True
        return False

    def _join(self, names: frozenset[str], enums: Mapping[str, int]) -> None:
        """Add fields to the first group that stays within the limit of combinations."""
        for group in self._groups:
            together = {*group.fields, *names}
            if math.prod(enums[name] for name in together) <= _MOST_COMBINATIONS:
                group.fields = tuple(sorted(together))
                return
        if math.prod(enums[name] for name in names) <= MOST_REMEMBERED:
            self._groups.append(Group(len(self._groups), self.prefix, tuple(sorted(names))))

    def _action(self, reduction: Reduction) -> Action:
        name, element, reads = self._results[reduction]
        atoms = self._atoms(reduction.where)
        if reduction.kind == "count":
            self._before.append(f"{name} = 0")
            return Action(atoms, (f"{name} += 1",), ())
        if reduction.kind == "exists":
            self._before.append(f"{name} = False")
            return Action(atoms, (f"{name} = True",), ())
        if element is None:
            return Action(atoms, ("pass",), ())
        self._before.append(f"{name} = []")
        return Action(atoms, tuple(self._appended(reduction, name, element)), reads)

    def _appended(self, reduction: Reduction, name: str, element: Code) -> list[str]:
        """Return the lines that append an element to the list ``name``."""
        indent, lines = "", []
        if reduction.skip and element.kind.may("null"):
            if not element.simple:
                local = self.writer.local()
                lines.append(f"{local} = {element.text}")
                element = Code(local, element.kind, simple=True)
            lines.append(f"if {element.text} is not None:")
            indent, element = " ", evolve(element, kind=element.kind.without("null"))
        if reduction.kind == "numbers" or element.kind.without("null").numeric:
            element = self.writer.number(element)
        text = (self.writer.result(element) if reduction.skip else element).text
        return [*lines, f"{indent}{name}.append({text})"]

    def _atoms(self, where: Sequence[Expr]) -> tuple[Atom, ...]:
        """Return the conditions in order. Leading conditions that depend only on a group become one condition per group."""
        leading: dict[Group, list[Expr]] = {}
        atoms: list[Atom] = []
        for part in where:
            names = discrete_fields(part, self.fields)
            group = next((group for group in self._groups if names and names <= set(group.fields)), None)
            if group is None:
                text = self.writer.result(self._code_of(part)).text
                atoms.append(Atom(text, False, self._read()))
            elif atoms:
                atoms.append(group.atom((part,)))
            else:
                leading.setdefault(group, []).append(part)
        return (*(group.atom(tuple(parts)) for group, parts in leading.items()), *atoms)

    def _block(self, actions: Sequence[Action], loaded: set[str], depth: int) -> list[str]:
        """Return the lines of ``actions``. The condition that most actions share is tested once for all these actions."""
        lines: list[str] = []
        rest = list(actions)
        for action in [each for each in rest if not each.atoms]:
            self._need(action.reads, loaded, lines)
            lines += action.lines
        rest = [each for each in rest if each.atoms]
        while rest:
            atom, shared = _most_shared(rest)
            if shared == 1 or depth > _DEEPEST:
                for action in rest:
                    lines += self._alone(action, loaded)
                return lines
            group = [evolve(each, atoms=_without(each.atoms, atom)) for each in rest if atom in _first(each)]
            rest = [each for each in rest if atom not in _first(each)]
            self._need(atom.reads, loaded, lines)
            lines.append(f"if {atom.text}:")
            lines += [f" {line}" for line in self._block(group, set(loaded), depth + 1)]
        return lines

    def _alone(self, action: Action, loaded: set[str]) -> list[str]:
        """Return the lines of one action. Locals that a condition needs are loaded only if the earlier conditions are true."""
        known, lines, indent = loaded, list[str](), ""
        tests: list[str] = []
        parts: tuple[Atom | Action, ...] = (*action.atoms, action)
        for part in parts:
            load: list[str] = []
            if tests and (part is action or not known.issuperset(part.reads)):
                lines.append(f"{indent}if {' and '.join(tests)}:")
                # Locals that are loaded inside the `if` are not available after it.
                indent, tests, known = f"{indent} ", [], set(known)
            self._need(part.reads, known, load)
            lines += [f"{indent}{line}" for line in load]
            if isinstance(part, Atom):
                tests.append(part.text)
        return [*lines, *(f"{indent}{line}" for line in action.lines)]

    def _need(self, names: Sequence[str], loaded: set[str], lines: list[str]) -> None:
        for name in names:
            if name not in loaded:
                needs, load = self._loads[name]
                self._need(needs, loaded, lines)
                lines += load
                loaded.add(name)


def _most_shared(actions: Sequence[Action]) -> tuple[Atom, int]:
    """Return the condition that the largest number of ``actions`` may test first, and this number."""
    counts: dict[Atom, int] = {}
    for action in actions:
        for atom in _first(action):
            counts[atom] = counts.get(atom, 0) + 1
    best = max(counts, key=lambda atom: counts[atom])
    return best, counts[best]


def _first(action: Action) -> Sequence[Atom]:
    """Return the conditions that may be tested first.

    All conditions before the first one that can fail may be tested first; at least one condition is returned.
    """
    return list(takewhile(lambda atom: atom.free, action.atoms)) or action.atoms[:1]


def _without(atoms: tuple[Atom, ...], atom: Atom) -> tuple[Atom, ...]:
    return tuple(each for each in atoms if each != atom)
