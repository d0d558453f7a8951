"""Names and values that are allowed at the cursor in a GASL command: variables, keys, the graph's fields and values, measures, settings."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property, partial
from itertools import chain, islice
from typing import get_args

from attrs import frozen

from ...catalogue.commands import SETTINGS
from ...catalogue.measures import MEASURES, MeasureSetting
from ...catalogue.schema import Attribute
from ...linter.gasl.context import Flow, Step, trace
from ...linter.gasl.fields import Scope, tested_in, values_of
from ...linter.gasl.graph import BUILT_IN, DEGREES
from ...parse.gasl.engine import Read, read
from ...parse.gasl.lines import HEAD_LINE, chunk_at
from ...parse.gasl.nodes import identifier
from ...printer.gasl_printer import format_condition, format_name, format_text
from ...trees import gasl
from ...trees.conditions import (
    Binary,
    Call,
    Comparison,
    Condition,
    Constant,
    Field,
    Increasing,
    Length,
    Negative,
    Value,
    Variable,
)
from ...trees.gasl import Command, Key, Name, Statement
from ..model import Known, block, excerpt, of_attribute, plain, value_text
from .place import MARK, Candidate, Way

# Finds what the commands above the cursor bind, without parsing them. Only commands on which the current command depends are parsed.

_NAME = r"(?:[A-Za-z_][A-Za-z0-9_]*+|`(?:[^`\r\n]|``)++`)"
_BINDS = re.compile(
    r""""(?:[^"\\\r\n]|\\[^\r\n])*+"|'(?:[^'\\\r\n]|\\[^\r\n])*+'|\#[^\n]*+"""
    rf"""|\bDECLARE[ \t]++(?P<key>{_NAME}(?:\.{_NAME})*)[ \t]++AS[ \t]++(?P<type>LIST|DICT|COUNTER)\b"""
    rf"""|^[ \t]*+PARAM[ \t]++(?P<param>{_NAME})"""
    rf"""|\bAS[ \t]++(?P<name>{_NAME})(?![ \t]*+,|[ \t]++(?:AS|WHERE|SAMPLE|COMPUTE|ON)\b)""",
    re.IGNORECASE | re.MULTILINE,
)
"""Finds declared keys and bound variables. If another option follows an ``AS``, the ``AS`` names a column, not a variable."""
_MOST_READ = 20
"""Maximum number of statements that are parsed for one completion."""
_LINES_BACK = 60


@frozen
class Bindings:
    """The names bound in a text. ``variables`` maps each variable to the offset of its last binding; ``keys`` maps keys to types."""

    variables: dict[str, int]
    keys: dict[str, str]


def bindings_in(text: str, stop: int) -> Bindings:
    """Return the variables bound and the keys declared before ``stop``. The text may be invalid."""
    found = Bindings({}, {})
    for match in _BINDS.finditer(text, 0, stop):
        if name := match["name"] or match["param"]:
            found.variables.pop(name := identifier(name), None)  # moves a bound name to the end
            found.variables[name] = match.start("name" if match["name"] else "param")
        elif key := match["key"]:
            found.keys[key] = match["type"].upper()
    return found


def statement_text(text: str, offset: int) -> str:
    """Return the text of the statement that contains ``offset``."""
    start = text.rfind("\n", 0, offset) + 1
    at = start
    for _ in range(_LINES_BACK):
        if at == 0 or HEAD_LINE.match(text, at):
            break
        at = text.rfind("\n", 0, at - 1) + 1
    start = at if HEAD_LINE.match(text, at) else start
    chunk = chunk_at(text, start, in_block=True)
    return text[chunk.start : max(chunk.end, offset)]


def statements_for(text: str, names: Iterable[str], bound: Bindings) -> list[Statement]:
    """Return the statements that bind ``names``, and the statements that these depend on, in source order.

    At most twenty statements are parsed.
    """
    found: dict[int, list[Statement]] = {}
    waiting, seen = list(names), set(names)
    while waiting and len(found) < _MOST_READ:
        offset = bound.variables.get(waiting.pop())
        if offset is None or offset in found:
            continue
        piece = statement_text(text, offset)
        done = read(piece)
        found[offset] = [item for item in done.result if isinstance(item, Statement)] if isinstance(done, Read) else []
        more = [name for name in _known_names(piece, bound.variables) if name not in seen]
        seen.update(more)
        waiting += more
    return [statement for offset in sorted(found) for statement in found[offset]]


def _known_names(piece: str, known: Collection[str]) -> list[str]:
    words = re.findall(r"`(?:[^`\r\n]|``)+`|\w+", piece)
    return [name for name in dict.fromkeys(map(identifier, words)) if name in known]


_BEGUN = re.compile(r"(?P<name>[^.\[]+)(?P<place>(?:\[-?[0-9]+\])?)\.")
"""Matches ``total.`` and ``total[0].`` at the beginning of a variable's path."""
_READ = frozenset({"source", "left", "right", "start", "end", "edges"})
"""The attributes of commands that contain the name of a variable that the command reads."""
_WITH_FIELDS = 3
"""Maximum number of variables whose fields are determined. For each, its statement and all that this depends on are parsed."""


@frozen(slots=False)
class GaslScope:
    """Finds the names that are available at a place.

    It searches the text, the bindings before the place, and data from outside the text (``known``).

    ``typed`` is the text typed so far.
    """

    text: str
    bound: Bindings
    known: Known
    typed: str = ""

    def candidates(self, way: Way, items: tuple[Statement, ...]) -> Iterator[Candidate]:
        """Yield the candidates for the mark at the end of ``way``. ``items`` is the parsed statement that contains the cursor's mark."""
        holder, name = way[-1]
        around = way[-2] if len(way) > 1 else (None, "")
        if isinstance(holder, Name):
            if around[1] in _READ and isinstance(around[0], get_args(Command)):
                yield from self.variables()
        elif isinstance(holder, Variable):
            yield from self.in_braces()
        elif isinstance(holder, gasl.Measure):
            yield from self.algorithms() if name == "algorithm" else self.algorithm_settings(holder)
        elif isinstance(holder, gasl.PatternNode | gasl.PatternEdge):
            yield from self.pattern_parts(way)
        elif isinstance(holder, Key):
            if isinstance(around[0], gasl.SetCommand):
                yield from self.settings()
            elif not isinstance(around[0], gasl.Declare):
                yield from self.keys()
        elif isinstance(holder, Field):
            yield from self.fields(way, items)
        elif isinstance(holder, Constant | gasl.SetCommand):
            yield from self.values(way, items)

    def variables(self) -> Iterator[Candidate]:
        """Yield the variables that are bound before the place, latest binding first."""
        for name, offset in reversed(self.bound.variables.items()):
            yield Candidate(format_name(name), "variable", match=name, described=partial(self._statement_text, offset))
        for name, variable in self.known.variables.items():
            if name not in self.bound.variables and _can_be_written(name):
                yield Candidate(format_name(name), "variable", excerpt(variable.holds), match=name)

    def algorithms(self) -> Iterator[Candidate]:
        """Yield the MEASURE algorithms."""
        known = MEASURES if self.known.measures is None else self.known.measures
        yield from (Candidate(format_name(each), "measure", match=each) for each in known)

    def algorithm_settings(self, command: gasl.Measure) -> Iterator[Candidate]:
        """Yield the settings of the command's algorithm. Settings that the command already has are omitted."""
        spec = MEASURES.get(command.algorithm)
        taken = {name for name, _ in command.settings}
        for name, setting in spec.settings.items() if spec is not None else ():
            if name not in taken:
                yield Candidate(f"{name} = ", "option", _described_setting(setting), match=name)

    def pattern_parts(self, way: Way) -> Iterator[Candidate]:
        """Yield the labels, types, fields and names that fit at the cursor in a pattern."""
        holder, part = way[-1]
        schema = self.known.schema
        if part == "labels" and schema is not None:
            counted = schema.labels if isinstance(holder, gasl.PatternNode) else schema.relations
            for label, count in counted.items():
                if _can_be_written(label):
                    yield Candidate(format_name(label), "value", f"{count:,}", match=label)
        elif part == "properties":
            names = dict.fromkeys(("id", *self._node))
            for name in filter(_can_be_written, names):
                attribute = self._node.get(name)
                about = of_attribute(attribute) if attribute else ""
                yield Candidate(f"{format_name(name)}: ", "field", "of nodes", about, match=name)
        elif part == "name" and isinstance(holder, gasl.PatternNode):
            command = next(node for node, _ in way if isinstance(node, gasl.FindPatterns))
            nodes = (node for pattern in command.patterns for node in pattern.nodes)
            for node_name in dict.fromkeys(node.name for node in nodes if node.name not in (None, MARK)):
                yield Candidate(format_name(node_name or ""), "name", "the same node", match=node_name or "")

    def _statement_text(self, offset: int) -> tuple[str, str]:
        said = statement_text(self.text, offset)
        return excerpt(said), block(said, "gasl", 600)

    def in_braces(self) -> Iterator[Candidate]:
        """Yield ``${name}`` for every variable, and ``${name.field}`` if the fields are known."""
        for each in self.variables():
            text = f"${{{each.text}}}"
            yield Candidate(text, "variable", each.detail, each.documentation, each.match, each.described)
        begun = _BEGUN.match(self.typed)
        named = (each for each in self.variables() if begun is None or each.match == begun["name"])
        place = begun["place"] if begun is not None else ""
        for each in islice(named, _WITH_FIELDS):
            for field in self._columns(each.match):
                text = f"${{{each.text}{place}.{format_name(field)}}}"
                yield Candidate(text, "field", f"of {each.match}", match=f"{each.match}{place}.{field}")

    def _columns(self, name: str) -> tuple[str, ...]:
        if name in self.known.variables and name not in self.bound.variables:
            return self.known.variables[name].fields
        flow = self._flow(statements_for(self.text, [name], self.bound))
        bound = next((each for each in reversed(flow.bindings) if each.name == name), None)
        if bound is None or bound.columns or self.known.schema is None:
            return bound.columns or () if bound is not None else ()
        known = {"nodes": self._node, "edges": self._edge}.get(bound.kind)
        return () if known is None else tuple(dict.fromkeys((*known, *sorted(BUILT_IN[bound.kind] - DEGREES))))

    def _flow(self, items: Iterable[Statement]) -> Flow:
        given = {name: variable.fields for name, variable in self.known.variables.items() if variable.fields}
        return trace(items, self.known.variables, schema=self.known.schema, fields=given)

    def keys(self) -> Iterator[Candidate]:
        """Yield the declared keys of the state."""
        described = self.known.state or {}
        for key, kind in {**{key: each.type for key, each in described.items()}, **self.bound.keys}.items():
            about = plain(described[key].description) if key in described else ""
            yield Candidate(key, "key", kind, about)

    def settings(self) -> Iterator[Candidate]:
        """Yield the settings of a plan."""
        for setting in SETTINGS.values():
            yield Candidate(setting.key, "setting", setting.kind, plain(setting.doc))

    # The fields and values that conditions and commands may name.

    def fields(self, way: Way, items: tuple[Statement, ...]) -> Iterator[Candidate]:
        """Yield the fields that the input of the command has."""
        for parts, attribute, detail in self._fields_at(way, items, way[-1][0]):
            about = of_attribute(attribute) if attribute else ""
            yield Candidate(format_condition(Field(parts)), "field", detail, about, match=".".join(parts))

    def values(self, way: Way, items: tuple[Statement, ...]) -> Iterator[Candidate]:
        """Yield the frequent values of the field that is compared, or the possible values of a setting."""
        around = way[-2][0] if len(way) > 1 else None
        if isinstance(around, gasl.Measure):
            spec = MEASURES.get(around.algorithm)
            own = (name for name, value in around.settings if value.value == MARK)
            setting = spec.settings.get(next(own, "")) if spec is not None else None
            yield from (
                Candidate(format_text(word), "value", match=word) for word in (setting.words if setting else ())
            )
            return
        command = next((node for node, _ in reversed(way) if isinstance(node, gasl.SetCommand)), None)
        if command is not None:
            if command.key.text == "llm.model":
                yield from (Candidate(value_text(name), "model", match=name) for name in self.known.models or ())
            return
        schema = self.known.schema
        attribute = self._tested_attribute(way, items)
        if attribute is not None:
            of_kinds = (
                schema.labels
                if schema and attribute is schema.node_attributes.get(schema.label_attribute or "")
                else {}
            )
            counted = {**dict(attribute.values), **of_kinds}
            for value, count in counted.items():
                yield Candidate(
                    value_text(value), "value", f"{count:,}", match=str(value) if isinstance(value, str) else ""
                )

    def _tested_attribute(self, way: Way, items: tuple[Statement, ...]) -> Attribute | None:
        """Return the attribute that is compared with the constant at the cursor, in a comparison or in a pattern such as ``{id: "A1"}``."""
        around = way[-2][0] if len(way) > 1 else None
        if isinstance(around, gasl.PatternNode):
            own = (name for name, value in around.properties if isinstance(value, Constant) and value.value == MARK)
            return self._node.get(next(own, ""))
        test = _comparison(way)
        if test is None or not isinstance(test.left, Field):
            return None
        fields = self._fields_at(way, items, test.left)
        return next((each for parts, each, _ in fields if each and ".".join(parts) == test.left.text), None)

    def constants(self, way: Way, items: tuple[Statement, ...]) -> frozenset[str] | None:
        """Return those of TRUE, FALSE and NULL that fit at the cursor. Return None if this is unknown."""
        if any(isinstance(node, gasl.SetCommand) for node, _ in way):
            return frozenset()
        around, part = way[-2] if len(way) > 1 else (None, "")
        if isinstance(around, gasl.Param):
            return frozenset({"TRUE", "FALSE", "NULL"} if around.type == "BOOL" else {"NULL"})
        if isinstance(around, Call):
            return None if around.function in ("if", "coalesce") else frozenset()
        test = _comparison(way)
        if test is None or isinstance(around, Binary | Negative | Length) or part == "left":
            return frozenset()
        if not isinstance(test.left, Field):
            return None
        name = ".".join(test.left.path)
        at = self._fields_at(way, items, test.left)
        known = next((each for parts, each, _ in at if each is not None and ".".join(parts) == name), None)
        if known is None:
            is_count = test.left.path[-1] in (*DEGREES, "length") and self.known.schema is not None
            return frozenset() if is_count else None
        return frozenset({"TRUE", "FALSE"}) if "boolean" in known.types else frozenset()

    def _fields_at(
        self, way: Way, items: tuple[Statement, ...], field: Field
    ) -> Iterator[tuple[tuple[str, ...], Attribute | None, str]]:
        """Yield the paths of the fields that are allowed in place of ``field``.

        With each path, its attribute (None if unknown) and a description are yielded.
        """
        step = self._step(way, items)
        if step is None:
            return
        nodes = [node for node, _ in way]
        roots: Iterator[tuple[Condition | Value, Scope]] = chain(tested_in(step), values_of(step))
        scope = next((scope for root, scope in roots if any(node is root for node in nodes)), None)
        if field.quantifier is not None or any(isinstance(node, Increasing) for node in nodes):
            yield from self._attributes(self._node, ("node",), "of nodes")
            yield from self._attributes(self._edge, ("edge",), "of edges")
        elif scope is not None:
            yield from self._of(scope)

    def _step(self, way: Way, items: tuple[Statement, ...]) -> Step | None:
        nodes = [node for node, _ in way]
        words = {name.text for node in nodes for name in _names_of(node)}
        before = statements_for(self.text, [name for name in words if name != MARK], self.bound)
        flow = self._flow((*before, *items))
        return next((step for step in reversed(flow.steps) if any(step.command is node for node in nodes)), None)

    def _of(self, scope: Scope) -> Iterator[tuple[tuple[str, ...], Attribute | None, str]]:
        held = scope.contents
        if scope.on in ("rows", "patterns", "unknown"):
            for name in self._columns_of(scope):
                yield _parts(name), None, "a name in the pattern" if scope.on == "patterns" else "a field of these rows"
            for name, part in held.parts.items():
                known = {"nodes": self._node, "edges": self._edge}.get(part, {})
                yield from self._attributes(known, _parts(name), f"of {name}")
                built_in = BUILT_IN.get(part, frozenset()) - (frozenset() if scope.on == "patterns" else DEGREES)
                yield from (((*_parts(name), own), None, f"of {name}") for own in sorted(built_in) if own not in known)
        else:
            yield from ((_parts(name), None, _COMPUTED.get(name, "a field of these items")) for name in held.more)
        if self.known.schema is None:
            return
        if scope.on == "nodes":
            yield from self._attributes(self._node, (), "of nodes")
        elif scope.on in ("edges", "edge items"):
            yield from self._attributes(self._edge, (), "of edges")
        kind = scope.on.removesuffix(" items") + "s" * scope.on.endswith(" items")
        known = {"nodes": self._node, "edges": self._edge}.get(kind, {})
        own_fields = BUILT_IN.get(kind, ()) if scope.on != "paths" else ("length",)
        for name in sorted(own_fields):
            if name not in known:
                yield (name,), None, _COMPUTED.get(name, f"of every {kind[:-1]}")
        if kind in ("edges", "paths"):
            for end in ("source", "target"):
                yield from self._attributes(self._node, (end,), f"of the {end}")

    def _columns_of(self, scope: Scope) -> tuple[str, ...]:
        if scope.contents.columns is None and scope.name not in self.bound.variables:
            variable = self.known.variables.get(scope.name)
            return variable.fields if variable is not None else ()
        return scope.contents.columns or ()

    @cached_property
    def _node(self) -> Mapping[str, Attribute]:
        return self.known.schema.node_attributes if self.known.schema else {}

    @cached_property
    def _edge(self) -> Mapping[str, Attribute]:
        return self.known.schema.edge_attributes if self.known.schema else {}

    def _attributes(
        self, known: Mapping[str, Attribute], before: tuple[str, ...], detail: str
    ) -> Iterator[tuple[tuple[str, ...], Attribute | None, str]]:
        for name, attribute in known.items():
            parts = (*before, *name.split("."))
            if all(map(_can_be_written, parts)):
                yield parts, attribute, detail


_COMPUTED = {
    "degree": "the number of edges of a node; computed, not stored",
    "in_degree": "the number of edges to a node; computed, not stored",
    "out_degree": "the number of edges from a node; computed, not stored",
    "length": "the number of edges of a path",
    "cost": "the sum of the costs of a path's edges",
    "depth": "the number of edges from the nearest start",
    "parent": "the previous node on the way to this node",
}
"""Maps the names of fields that commands compute to descriptions."""


def _comparison(way: Way) -> Comparison | None:
    """Return the innermost comparison around the cursor, or None."""
    return next((node for node, _ in reversed(way) if isinstance(node, Comparison)), None)


def _described_setting(setting: MeasureSetting) -> str:
    """Return the values of a setting, and its default."""
    if setting.words:
        return " or ".join(format_text(word) for word in setting.words)
    return f"{setting.minimum:g} to {setting.maximum:g}; default {setting.default}"


def _names_of(node: object) -> Iterator[Name]:
    for attribute in _READ:
        name = getattr(node, attribute, None)
        if isinstance(name, Name):
            yield name


def _parts(name: str) -> tuple[str, ...]:
    """Split a column's name into the parts of a path. For example, ``right.weight`` needs no backticks if written as a path."""
    parts = tuple(name.split("."))
    return parts if all(parts) else (name,)


def _can_be_written(name: str) -> bool:
    return bool(name) and "\n" not in name and "\r" not in name
