"""Finds the names in a text, and their positions."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from attrs import field, frozen

from ..catalogue.operations import BUILTIN
from ..documents.json_tree import JsonNode, StringMap
from ..embedded_code import embedded_expression, embedded_program
from ..linter.expr.expression_context import Context, row_part
from ..linter.lwt.expressions import Places, placeholder
from ..parse.expr import parse_expr
from ..parse.gasl import parse_gasl
from ..parse.lwt.shapes import ID
from ..source import Source, Span
from ..trees import Node, gasl, walk
from ..trees.conditions import Variable
from ..trees.expr import Comprehension, Expr, Field
from ..trees.expr import Name as ExprName
from ..trees.gasl import Item, Key, Name, Program
from ..trees.lwt import RESERVED, Call, Comment, Option, Step, Template, references
from .columns import column_places, written_name
from .model import Language, Reading, SymbolKind


def unquoted(name: str) -> str | None:
    """Return ``name`` if it needs no quotes, otherwise None.

    Such a name has only ASCII letters, digits and ``_``, and no digit at the start.
    """
    return name if name.isidentifier() and name.isascii() else None


class Occurrence(NamedTuple):
    """An occurrence of ``name`` at ``span``. Occurrences with the same kind, name and scope refer to the same thing.

    ``written`` converts a name to the notation of this place, or returns None if it is not allowed there. If the name can't be
    renamed, ``fixed`` is the reason; otherwise it is "". A file has thousands of occurrences, so they are tuples.
    """

    kind: SymbolKind
    name: str
    span: Span
    defines: bool = False
    scope: int = 0
    written: Callable[[str], str | None] = unquoted
    fixed: str = ""

    @property
    def thing(self) -> tuple[str, str, int]:
        """The identity of the thing that the name refers to: its kind, its name and its scope."""
        return self.kind, self.name, self.scope


Names: TypeAlias = tuple[Occurrence, ...]
"""All names in a text, in source order."""


# Finds the programs and expressions in the strings of a script, and maps positions in them to positions in the script.

_FARTHEST = 300
"""Maximum number of characters by which escapes and references may move a position."""


@frozen
class EmbeddedText:
    """A string in ``call`` that is a program or an expression. ``text`` is its value, with names in place of references.

    ``given`` are the options that define the values an expression can use.
    """

    language: Language
    text: str
    call: Call
    span: Span
    given: tuple[Option, ...]
    _places: Places = field(repr=False, eq=False)

    def outside(self, span: Span) -> Span | None:
        """Return the place in the script of the part ``span`` of the text.

        Return None if the script does not contain this part verbatim.
        """
        return self._places.verbatim(span)

    def inner(self, offset: int) -> int | None:
        """Convert an offset in the script to an offset in the text. Return None if no place in the text corresponds to it."""
        guess = offset - self.span.start
        # Because of escapes and references, the text and its source in the script have different lengths.
        wanted = Span(offset, offset)
        return next((at for at in _around(guess, len(self.text)) if self.outside(Span(at, at)) == wanted), None)


def _around(guess: int, most: int) -> Iterator[int]:
    for away in range(min(most, _FARTHEST) + 1):
        for at in {guess - away, guess + away}:
            if 0 <= at <= most:
                yield at


def embedded_texts(item: Step | Comment, text: str) -> Iterator[EmbeddedText]:
    """Yield the programs and expressions in a step of the script ``text``."""
    if isinstance(item, Comment):
        return
    for call in walk(item):
        if not isinstance(call, Call) or call.operation not in ("GASL", "EXPR") or not call.arguments:
            continue
        template = call.arguments[0]
        if not isinstance(template, Template):
            continue
        if call.operation == "GASL":
            program = embedded_program(template)
            yield EmbeddedText(
                "gasl", program.text(placeholder), call, template.span, (), Places(Source(text), program)
            )
            continue
        said = embedded_expression(template)
        own = BUILTIN["EXPR"].option_names
        given = tuple(option for option in call.options if option.name not in own)
        yield EmbeddedText("expr", said.text(placeholder), call, template.span, given, Places(Source(text), said))


# Finds the names in a GASL program: variables, and keys of the state.

_IN_BRACES = re.compile(r"\$\{[ \t]*(?P<name>[A-Za-z_][A-Za-z0-9_]*|`(?:[^`\r\n]|``)+`)")
_STATE_KEY = "a state key can't be renamed, because stored data uses its name"
_OF_SCRIPT = "other steps of the script may read this column by its name"
_ERROR_NAME = "the name error is set by CATCH and can't be renamed"


def gasl_occurrences(text: str, items: tuple[Item, ...]) -> Iterator[Occurrence]:
    """Yield the names in the items of a program. Parts of ``text`` that could not be parsed have no items."""
    for item in items:
        for node in walk(item):
            into = node.name if isinstance(node, gasl.Param) else getattr(node, "into", None)
            for child in _name_nodes(node):
                if isinstance(child, Name):
                    fixed = _ERROR_NAME if child.text == "error" and child is not into else ""
                    yield Occurrence(
                        "variable", child.text, child.span, child is into, written=written_name, fixed=fixed
                    )
                elif isinstance(child, Key) and not isinstance(node, gasl.SetCommand):
                    yield Occurrence("key", child.text, child.span, isinstance(node, gasl.Declare), fixed=_STATE_KEY)
            if isinstance(node, Variable) and (match := _IN_BRACES.match(text, node.span.start)):
                yield Occurrence("variable", node.name, Span(*match.span("name")), written=written_name)
    for name, span, column, defines, written, fixed in column_places(text, items):
        yield Occurrence("field", name, span, defines, column + 1, written, fixed)


def _name_nodes(node: Node) -> Iterator[Node]:
    if isinstance(node, gasl.Param):
        yield node.name
        return
    for attribute in ("source", "left", "right", "start", "end", "edges", "key", "into"):
        child = getattr(node, attribute, None)
        if isinstance(child, Name | Key):
            yield child


# Finds the names in an expression: the variables of its comprehensions, and the values given to it.

_FOR = re.compile(r"(?:for\s|,)\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*")


def expr_occurrences(expr: Expr, text: str) -> Iterator[Occurrence]:
    """Yield the names in the expression. Values from outside it have scope 0. A comprehension's variable has the scope of its clause."""
    stack: list[tuple[Node, Mapping[str, int]]] = [(expr, {})]
    while stack:
        node, bound = stack.pop()
        if isinstance(node, ExprName):
            scope = bound.get(node.name, 0)
            fixed = "" if scope else "the value comes from outside the expression"
            yield Occurrence("variable", node.name, node.span, scope=scope, fixed=fixed)
        if not isinstance(node, Comprehension):
            stack += [(child, bound) for child in _children(node)]
            continue
        for clause in node.clauses:
            stack.append((clause.iterable, bound))
            scope, at = clause.span.start + 1, clause.span.start
            bound = {**bound, **dict.fromkeys(clause.names, scope)}
            for name in clause.names:
                match = _FOR.match(text, at)
                if match is not None:
                    at = match.end()
                    yield Occurrence("variable", name, Span(*match.span("name")), True, scope)
            stack += [(condition, bound) for condition in clause.conditions]
        stack.append((node.element, bound))


def fields_in(expr: Expr, text: str) -> Iterator[tuple[str, Span]]:
    """Yield the names of extracted fields in the expression (``extraction.x`` and ``e["x"]``), with the spans of the names."""
    for place in Context(expr).places:
        node = place.node
        if isinstance(node, Field) and node.namespace == "extraction":
            yield node.name, Span(node.span.end - len(node.name), node.span.end)
        elif (part := row_part(place)) is not None and part[0] == "extraction":
            span = part[2].span
            if text[span.start + 1 : span.end - 1] == part[1]:
                yield part[1], Span(span.start + 1, span.end - 1)


def _children(node: Node) -> list[Node]:
    return [child for child in walk(node, lambda each: each is node) if child is not node]


# Finds the names in a script: its steps, the names in references, and the variables of programs and expressions in its strings.


def lwt_occurrences(text: str, items: tuple[Step | Comment, ...]) -> Iterator[Occurrence]:
    """Yield the names in the items of a script. Parts of ``text`` that could not be parsed have no items."""
    has_others = "GASL" in text or "EXPR" in text
    for step in items:
        if isinstance(step, Comment):
            continue
        place = step.span.start + 1
        yield Occurrence("step", step.id, Span(place, place + len(step.id)), True, written=_id)
        for reference in references(step):
            place, name = reference.span.start + 2, reference.name
            fixed = f"{name} is not a step" if name in RESERVED else ""
            yield Occurrence("step", name, Span(place, place + len(name)), written=_id, fixed=fixed)
        for inside in embedded_texts(step, text) if has_others else ():
            yield from _program(inside) if inside.language == "gasl" else _expression(inside)


def _program(inside: EmbeddedText) -> Iterator[Occurrence]:
    program: Program = parse_gasl(Source(inside.text))
    for each in gasl_occurrences(inside.text, program.items):
        if (place := inside.outside(each.span)) is not None:
            scope = inside.span.start + 1 + each.scope
            fixed = _OF_SCRIPT if each.kind == "field" else each.fixed
            yield each._replace(span=place, scope=scope, fixed=fixed)


def _expression(inside: EmbeddedText) -> Iterator[Occurrence]:
    """Yield the names in an expression, and the names of the options of its call. An option defines the value with the same name."""
    own = inside.call.span.start + 1
    for option in inside.given:
        start = option.span.start
        yield Occurrence("variable", option.name, Span(start, start + len(option.name)), True, own)
    tree = parse_expr(inside.text).expr
    for each in expr_occurrences(tree, inside.text) if tree is not None else ():
        if (place := inside.outside(each.span)) is not None:
            yield each._replace(span=place, scope=inside.span.start + 1 + each.scope if each.scope else own, fixed="")


def _id(name: str) -> str | None:
    return name if re.fullmatch(ID, name) and name not in RESERVED else None


# Finds the names in a seed: its steps, including filters, and its extracted fields. They occur in strings and in expressions.

_EXPRESSIONS = ("expr", "formula", "when")
_TAKEN = frozenset({"extractions"})


def seed_occurrences(reading: Reading) -> Iterator[Occurrence]:
    """Yield the names in the part of the seed that can be read."""
    text, root = reading.text, reading.document.root
    if root is None:
        return
    extract = root.fields.get("extract")
    declared = extract.fields.get("fields") if extract is not None else root.fields.get("extraction_fields")
    for node in declared.items if declared is not None else ():
        yield from _string(text, node.fields.get("name"), "field", defines=True)
    examples = extract.fields.get("examples") if extract is not None else None
    for node in examples.items if examples is not None else ():
        if "extraction" in node.fields:
            yield from _where(text, node.fields["extraction"], "extraction", set())
    resolve = root.fields.get("resolve")
    for node in resolve.items if resolve is not None else ():
        yield from _string(text, node.fields.get("field"), "field")
        yield from _string(text, node.fields.get("as"), "field", defines=True)
    steps = root.fields.get("compute") or root.fields.get("compute_dag")
    reduce = root.fields.get("reduce")
    items = (*(reduce.items if reduce is not None else ()), *(steps.items if steps is not None else ()))
    names = {
        item.value["name"] for item in items if isinstance(item.value, dict) and isinstance(item.value.get("name"), str)
    }
    for item in items:
        yield from _step(reading, item, names)
    outputs = root.fields.get("output") or root.fields.get("output_fields")
    for node in outputs.items if outputs is not None else ():
        yield from _string(text, node, "computation")


def _step(reading: Reading, item: JsonNode, names: set[str]) -> Iterator[Occurrence]:
    text = reading.text
    yield from _string(text, item.fields.get("name"), "computation", defines=True)
    source, field = item.fields.get("source"), item.fields.get("field")
    if source is not None and source.value in names:
        yield from _string(text, source, "computation")
    if field is not None and isinstance(field.value, str) and field.value.startswith("extraction."):
        yield from _string(text, field, "field", before="extraction.")
    sources = item.fields.get("from")
    for each in sources.items if sources is not None else ():
        if isinstance(each.value, str) and each.value.startswith("extraction."):
            yield from _string(text, each, "field", before="extraction.")
    for key in ("where", "extraction"):
        if key in item.fields:
            yield from _where(text, item.fields[key], key, names)
    rules = item.fields.get("rules")
    for part in (item, *(rules.items if rules is not None else ())):
        for key in _EXPRESSIONS:
            if key in part.fields:
                yield from _names_of_expression(reading, part.fields[key])


def _where(text: str, node: JsonNode, key: str, names: set[str]) -> Iterator[Occurrence]:
    for said, span in node.keys.items():
        literal = JsonNode(said, span.start, span.end)
        if said.startswith("$"):
            yield from _string(text, literal, "computation", before="$")
        elif said.startswith("extraction."):
            yield from _string(text, literal, "field", before="extraction.")
        elif key == "extraction" and "." not in said:
            yield from _string(text, literal, "field")
        elif said in names:
            yield from _string(text, literal, "computation")


def _string(
    text: str, node: JsonNode | None, kind: str, *, before: str = "", defines: bool = False
) -> Iterator[Occurrence]:
    """Yield the name in a string, which follows the prefix ``before``. Strings with escapes are skipped."""
    if node is None or not isinstance(node.value, str):
        return
    name = node.value[len(before) :]
    if name and text[node.start : node.end] == json.dumps(node.value, ensure_ascii=False):
        span = Span(node.start + 1 + len(before), node.end - 1)
        if kind == "field":
            yield Occurrence("field", name, span, defines)
        else:
            yield Occurrence("computation", name, span, defines)


def _names_of_expression(reading: Reading, node: JsonNode) -> Iterator[Occurrence]:
    if not isinstance(node.value, str):
        return
    said, shift = node.value, 0
    read = reading.parsed(said)
    if read.expr is None:
        said, shift = f"0 {said}", 2  # in a case with a source, a rule begins with a comparison operator
        read = reading.parsed(said)
    if read.expr is None:
        return
    located = StringMap(reading.text, node.span)
    for each in expr_occurrences(read.expr, said):
        span = located.located(each.span.shift(-shift))
        if each.scope:
            yield Occurrence("variable", each.name, span, each.defines, node.start + each.scope)
        elif each.name not in _TAKEN:
            yield Occurrence("computation", each.name, span)
    for name, place in fields_in(read.expr, said):
        yield Occurrence("field", name, located.located(place.shift(-shift)))
