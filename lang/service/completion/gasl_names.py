"""Names and values allowed at a place in a GASL command: variables, keys, the graph's fields and values, measures, settings."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property, partial
from itertools import islice

from attrs import frozen

from ...catalogue.commands import SETTINGS
from ...catalogue.schema import Attribute
from ...linter.gasl.arguments import MEASURES, fields_of
from ...linter.gasl.conditions import tested
from ...linter.gasl.context import Flow, Step, Use, trace
from ...linter.gasl.graph import BUILT_IN, DEGREES
from ...parse.gasl.engine import Read, read
from ...parse.gasl.lines import HEAD_LINE, chunk_at
from ...parse.gasl.nodes import identifier
from ...printer.gasl_printer import format_condition, format_key, format_name
from ...trees import gasl
from ...trees.conditions import Comparison, Constant, Field, NullTest, Variable
from ...trees.gasl import Key, Name, Path, Statement
from ..model import Known, block, excerpt, of_attribute, plain, value_text
from .place import MARK, Candidate, Way

# Finds what the commands above the cursor bind, without parsing them. Only commands on which the current command depends are parsed.

_NAME = r"(?:[A-Za-z_][A-Za-z0-9_]*|`(?:[^`\r\n]|``)+`)"
_BINDS = re.compile(
    r""""(?:[^"\\\r\n]|\\[^\r\n])*+"|'(?:[^'\\\r\n]|\\[^\r\n])*+'|\#[^\n]*+"""
    rf"""|\bDECLARE[ \t]++(?P<key>{_NAME}(?:\.{_NAME})*)[ \t]++AS[ \t]++(?P<type>LIST|DICT|COUNTER)\b"""
    rf"""|\bAS[ \t]++(?P<name>{_NAME})""",
    re.IGNORECASE,
)
_MOST_READ = 20
"""Maximum number of statements that are parsed for one completion."""
_LINES_BACK = 60


@frozen
class Bindings:
    """The names bound in a text. ``variables`` maps each variable to the offset of its last binding, ``keys`` each key to its type."""

    variables: dict[str, int]
    keys: dict[str, str]


def bindings_in(text: str, stop: int) -> Bindings:
    """Return the variables bound and the keys declared before ``stop``. The text may be invalid."""
    found = Bindings({}, {})
    for match in _BINDS.finditer(text, 0, stop):
        if name := match["name"]:
            found.variables.pop(name := identifier(name), None)  # moves a bound name to the end
            found.variables[name] = match.start("name")
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
    """Return the statements that bind ``names``, and those on which they depend, in source order. At most twenty are parsed."""
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


_WITH_FIELDS = 3
"""Maximum number of variables whose fields are determined, because this parses a variable's statement and its dependencies."""


@frozen(slots=False)
class GaslScope:
    """Finds the names available at a place, from the text, the bindings before the place, and data from outside the text (``known``).

    ``typed`` is the text typed so far.
    """

    text: str
    bound: Bindings
    known: Known
    typed: str = ""

    def candidates(self, way: Way, items: tuple[Statement, ...]) -> Iterator[Candidate]:
        """Yield the candidates for the mark at the end of ``way``. ``items`` is the parsed statement that contains the mark."""
        holder, name = way[-1]
        around = way[-2] if len(way) > 1 else (None, "")
        if isinstance(holder, Name) and around[1] != "into":
            yield from self.variables()
        elif isinstance(holder, Variable):
            yield from self.in_braces()
        elif isinstance(holder, gasl.Measure) and name == "algorithm":
            known = MEASURES if self.known.measures is None else self.known.measures
            yield from (Candidate(format_name(each), "measure", match=each) for each in known)
        elif isinstance(holder, Key):
            if isinstance(around[0], gasl.SetCommand):
                yield from self.settings()
            elif not isinstance(around[0], gasl.Declare):
                yield from self.keys()
        elif isinstance(holder, Field | Path):
            yield from self.fields(way, items)
        elif isinstance(holder, Constant | gasl.SetCommand):
            yield from self.values(way, items)

    def variables(self) -> Iterator[Candidate]:
        """Yield the variables that are bound before the place, the latest binding first."""
        for name, offset in reversed(self.bound.variables.items()):
            yield Candidate(format_name(name), "variable", match=name, described=partial(self._statement_text, offset))
        for name, variable in self.known.variables.items():
            if name not in self.bound.variables and _can_be_written(name):
                yield Candidate(format_name(name), "variable", excerpt(variable.holds), match=name)

    def _statement_text(self, offset: int) -> tuple[str, str]:
        said = statement_text(self.text, offset)
        return excerpt(said), block(said, "gasl", 600)

    def in_braces(self) -> Iterator[Candidate]:
        """Yield ``${name}`` for every variable, and ``${name.field}`` if the fields are known."""
        for each in self.variables():
            text = f"${{{each.text}}}"
            yield Candidate(text, "variable", each.detail, each.documentation, each.match, each.described)
        begun = self.typed.partition(".")
        for each in islice((each for each in self.variables() if not begun[1] or each.match == begun[0]), _WITH_FIELDS):
            for field in self._columns(each.match):
                text = f"${{{each.text}.{format_name(field)}}}"
                yield Candidate(text, "field", f"of {each.match}", match=f"{each.match}.{field}")

    def _columns(self, name: str) -> tuple[str, ...]:
        if name in self.known.variables and name not in self.bound.variables:
            return self.known.variables[name].fields
        flow = self._flow(statements_for(self.text, [name], self.bound))
        bound = next((each for each in reversed(flow.bindings) if each.name == name), None)
        if bound is None or bound.columns or self.known.schema is None:
            return bound.columns or () if bound is not None else ()
        known = {"nodes": self._node, "edges": self._edge}.get(bound.kind)
        return () if known is None else tuple(dict.fromkeys((*known, *sorted(BUILT_IN[bound.kind]))))

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
        holder = way[-1][0]
        for parts, attribute, detail in self._fields_at(way, items):
            tested = format_condition(NullTest(Field(parts)))[
                : -len(" IS NULL")
            ]  # in a condition some words need backticks
            said = tested if isinstance(holder, Field) else format_key(Path(parts))
            about = of_attribute(attribute) if attribute else ""
            yield Candidate(said, "field", detail, about, match=".".join(parts))

    def values(self, way: Way, items: tuple[Statement, ...]) -> Iterator[Candidate]:
        """Yield the frequent values of the field that is compared, or the possible values of a setting."""
        command = next((node for node, _ in reversed(way) if isinstance(node, gasl.SetCommand)), None)
        if command is not None:
            if command.key.text == "llm.model":
                yield from (Candidate(value_text(name), "model", match=name) for name in self.known.models or ())
            return
        test = next((node for node, _ in reversed(way) if isinstance(node, Comparison)), None)
        if test is None or not isinstance(test.left, Field):
            return
        name = ".".join(test.left.path)
        schema = self.known.schema
        found = [each for parts, each, _ in self._fields_at(way, items, test.left) if each and ".".join(parts) == name]
        for attribute in found[:1]:
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

    def constants(self, way: Way, items: tuple[Statement, ...]) -> frozenset[str] | None:
        """Return which of TRUE, FALSE and NULL fit at the mark; None if this is unknown."""
        if any(isinstance(node, gasl.SetCommand) for node, _ in way):
            return frozenset()
        test = next((node for node, _ in reversed(way) if isinstance(node, Comparison)), None)
        if test is None or not isinstance(test.left, Field):
            return None
        name = ".".join(test.left.path)
        at = self._fields_at(way, items, test.left)
        known = next((each for parts, each, _ in at if each is not None and ".".join(parts) == name), None)
        if known is None:
            is_count = test.left.path[-1] in (*DEGREES, "length") and self.known.schema is not None
            return frozenset() if is_count else None
        return frozenset({"TRUE", "FALSE"}) if "boolean" in known.types else frozenset()

    def _fields_at(
        self, way: Way, items: tuple[Statement, ...], field: Field | None = None
    ) -> Iterator[tuple[tuple[str, ...], Attribute | None, str]]:
        """Yield the field paths allowed at the mark (or in place of ``field``), each with its attribute (if known) and a description."""
        step = self._step(way, items)
        if step is None:
            return
        holder = field or way[-1][0]
        nodes = [node for node, _ in way]
        if isinstance(holder, Field):
            for condition, on in tested(step):
                if any(node is condition for node in nodes):
                    use = step.uses[0] if on in ("rows", "unknown") and step.uses else None
                    yield from self._of(on, use, holder.quantifier is not None)
        elif isinstance(step.command, gasl.Find):
            yield from self._of(step.command.kind, None)
        else:
            source = next((name for name, path in fields_of(step.command) if path is holder), None)
            use = step.use_of(source)
            if use is not None:
                yield from self._of({"edges": "edge items", "paths": "path items"}.get(use.kind, use.kind), use)

    def _step(self, way: Way, items: tuple[Statement, ...]) -> Step | None:
        nodes = [node for node, _ in way]
        words = {name.text for node in nodes for name in _names_of(node)}
        before = statements_for(self.text, [name for name in words if name != MARK], self.bound)
        flow = self._flow((*before, *items))
        return next((step for step in reversed(flow.steps) if any(step.command is node for node in nodes)), None)

    def _of(
        self, what: str, use: Use | None, quantified: bool = False
    ) -> Iterator[tuple[tuple[str, ...], Attribute | None, str]]:
        columns = self._columns_of(use)
        if columns:
            yield from ((_parts(name), None, "a field of these rows") for name in columns)
        if self.known.schema is None:
            return
        if quantified:
            yield from self._attributes(self._node, ("node",), "of nodes")
            yield from self._attributes(self._edge, ("edge",), "of edges")
        elif what == "nodes":
            yield from self._attributes(self._node, (), "of nodes")
            yield from (
                ((name,), None, "of every node") for name in sorted(BUILT_IN["nodes"]) if name not in self._node
            )
        elif what in ("edges", "edge items"):
            yield from self._attributes(self._edge, (), "of edges")
            yield from (
                ((name,), None, "of every edge") for name in sorted(BUILT_IN["edges"]) if name not in self._edge
            )
        if what in ("edges", "paths"):
            for end in ("source", "target"):
                yield from self._attributes(self._node, (end,), f"of the {end}")
        if what in ("paths", "path items"):
            yield ("length",), None, "of every path"

    def _columns_of(self, use: Use | None) -> tuple[str, ...]:
        if use is None:
            return ()
        if use.columns is None and all(binding.command is None for binding in use.bindings):
            variable = self.known.variables.get(use.name)
            return variable.fields if variable is not None else ()
        return use.columns or ()

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


def _names_of(node: object) -> Iterator[Name]:
    for attribute in ("source", "left", "right", "start", "end"):
        name = getattr(node, attribute, None)
        if isinstance(name, Name):
            yield name


def _parts(name: str) -> tuple[str, ...]:
    """Return a column's name as the parts of a path, because ``right.weight`` needs no backticks as a path."""
    parts = tuple(name.split("."))
    return parts if all(parts) else (name,)


def _can_be_written(name: str) -> bool:
    return bool(name) and "\n" not in name and "\r" not in name
