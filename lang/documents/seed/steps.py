"""Reads the steps of a seed. Operations of the declarative form are converted to trees; formulas are parsed as they are."""

import re
from collections.abc import Callable, Collection
from typing import Any

from attrs import define

from ...diagnostic import Diagnostic, Edit, nearest
from ...evaluate.seed.interpreter import META_KEYS
from ...source import Span
from ...trees.expr import Expr, Field, Name
from ...trees.seed import Aggregate, Case, Const, DefineFilter, Extracted, Formula, Lookup, SeedStep, Tally
from ..json_tree import JsonNode, JsonPath, path_text
from .expressions import Texts
from .validation import meant_for
from .where import Cases, Wheres, kind_of

MAX_TABLE = 5_000
_LONGEST = 200
"""Maximum length in characters of a name, including its namespace."""
_REFERENCE = re.compile(r"(?:(?P<space>context|extraction|meta)\.)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)")

_DOTTED = re.compile(r"(?P<space>[A-Za-z_]\w*)\.(?P<name>[A-Za-z_]\w*)", re.ASCII)
_SUBSCRIPT = re.compile(r"(?P<space>[A-Za-z_]\w*)\[(?P<quote>[\"'])(?P<name>[A-Za-z_]\w*)(?P=quote)\]", re.ASCII)


@define
class Steps:
    """Reads steps whose keys are valid. Each operation has its own method. ``found`` collects the faults."""

    found: list[Diagnostic]
    texts: Texts
    wheres: Wheres
    cases: Cases
    meta: Collection[str] = ()
    """The declared keys of the reviews' metadata."""

    def read(self, node: JsonNode, path: JsonPath) -> SeedStep | None:
        """Return a step of the declarative form; None, with a diagnostic, if the step is invalid."""
        made = _READERS[node.fields["op"].value](self, node, path, node.fields["name"].value)
        return made

    def formula(self, node: JsonNode, path: JsonPath, key: str = "formula") -> Formula | None:
        """Return a step that is an expression: a step of the formula form, or an ``expr`` step of the declarative form."""
        expr = self.texts.read(node.fields[key], (*path, key))
        if expr is None:
            return None
        return Formula(node.fields["name"].value, expr, node.fields[key].value, span=node.span)

    def _fault(self, code: str, message: str, span: Span, *hints: str, edits: tuple[Edit, ...] = ()) -> None:
        self.found.append(Diagnostic(code, "error", message, span, tuple(hint for hint in hints if hint), edits))

    def _expr(self, node: JsonNode, path: JsonPath, name: str) -> SeedStep | None:
        return self.formula(node, path, "expr")

    def _const(self, node: JsonNode, path: JsonPath, name: str) -> SeedStep | None:
        return Const(name, node.fields["value"].value, span=node.span)

    def _filter(self, node: JsonNode, path: JsonPath, name: str) -> SeedStep | None:
        parts = [key for key in ("extraction", "where") if node.value.get(key) is not None]
        if not parts:
            hint = 'add "extraction": {FIELD: VALUE} or "where"'
            self._fault("SEED003", f"{path_text(path)} has no condition", Span(node.start, node.start + 1), hint)
            return None
        made = [self.wheres.read(node.fields[key], (*path, key), key == "extraction") for key in parts]
        return DefineFilter(name, tuple(each for where in made for each in where), span=node.span)

    def _where(self, node: JsonNode, path: JsonPath) -> Any:
        where = node.fields.get("where")
        return None if where is None or where.value is None else self.wheres.read(where, (*path, "where"))

    def _count(self, node: JsonNode, path: JsonPath, name: str) -> SeedStep | None:
        return Aggregate(name, "count", None, self._where(node, path), span=node.span)

    def _aggregate(self, node: JsonNode, path: JsonPath, name: str) -> SeedStep | None:
        operation = node.fields["op"].value
        where = self._where(node, path)
        element = self._element(node, path)
        if element is None:
            return None
        return Aggregate(name, operation, element, where, node.value.get("default"), span=node.span)

    def _element(
        self,
        node: JsonNode,
        path: JsonPath,
    ) -> Expr | None:
        given = [key for key in ("expr", "field") if node.value.get(key) is not None]
        at = Span(node.start, node.start + 1)
        if len(given) == 2:
            self._fault(
                "SEED017", f"{path_text(path)} has an expr and a field", node.keys["field"], "remove one of them"
            )
            return None
        if not given:
            hint = 'add "field": "meta.year" or "expr": "5 - meta.stars"'
            self._fault("SEED003", f"{path_text(path)} has neither an expr nor a field", at, hint)
            return None
        key = given[0]
        if key == "expr":
            return self.texts.read(node.fields[key], (*path, key))
        return self._field_of_row(node, path, key)

    def _field_of_row(self, node: JsonNode, path: JsonPath, key: str) -> Field | None:
        """Read ``extraction.FIELD`` or ``meta.KEY``; None, with a diagnostic, if it is invalid."""
        found = self._reference(node.fields[key], (*path, key), ("extraction", "meta"))
        if isinstance(found, Name):
            text = node.fields[key]
            meant = f"extraction.{found.name}" if found.name in self.wheres.fields else f"meta.{found.name}"
            is_known = found.name in self.wheres.fields or found.name in META_KEYS or found.name in self.meta
            edits = (Edit(text.span, f'"{meant}"'),) if is_known else ()
            hint = f"write `{meant}`" if is_known else "an earlier step has one value, not one for each extraction"
            message = f"{path_text((*path, key))} must be extraction.FIELD or meta.KEY"
            self._fault("SEED018", message, text.span, hint, edits=edits)
            return None
        return found

    def _tally(self, node: JsonNode, path: JsonPath, name: str) -> SeedStep | None:
        where = self._where(node, path)
        element = self._field_of_row(node, path, "field")
        return None if element is None else Tally(name, element, node.value.get("top"), where, span=node.span)

    def _reference(self, node: JsonNode, path: JsonPath, spaces: tuple[str, ...]) -> Field | Name | None:
        """Read a name, with or without a namespace. If the name is invalid, report it and return None."""
        match = _REFERENCE.fullmatch(node.value) if len(node.value) <= _LONGEST else None
        where = path_text(path)
        if match is None:
            bare = self._bare(node.value, spaces)
            edits = (Edit(node.span, f'"{bare}"'),) if bare else ()
            hint = f"write `{bare}`" if bare else "an earlier expr step can compute it"
            is_blank = bare == node.value.strip()
            what = "a name without spaces around it" if is_blank else "a name, not an expression"
            self._fault("SEED018", f"{where} must be {what}", node.span, hint, edits=edits)
            return None
        space, name = match["space"], match["name"]
        if space is not None and space not in spaces:
            kinds = " or ".join(f"{each}." for each in spaces)
            self._fault(
                "SEED018",
                f"{where}: {space} belongs to a single extraction; use {kinds} or the name of a step",
                node.span,
            )
            return None
        span = Span(node.start + 1, node.end - 1)
        return Field(space, name, span=span) if space else Name(name, span=span)  # type: ignore[arg-type]

    def _bare(self, written: str, spaces: tuple[str, ...]) -> str | None:
        """Return the name that was meant by ``" N "``, ``"contex.city"`` or ``"context['city']"``; None if this is unclear."""
        written = written.strip()
        if len(written) > _LONGEST:
            return None
        match = _SUBSCRIPT.fullmatch(written) or _DOTTED.fullmatch(written)
        space = nearest(match["space"], spaces) if match is not None else None
        meant = f"{space}.{match['name']}" if match is not None and space else written.removeprefix("$")
        return meant if _REFERENCE.fullmatch(meant) else None

    def _lookup(self, node: JsonNode, path: JsonPath, name: str) -> SeedStep | None:
        source = self._reference(node.fields["source"], (*path, "source"), ("context",))
        if source is None:
            return None
        size = len(node.fields["table"].fields)
        if size > MAX_TABLE:
            at = node.fields["table"].start
            self._fault(
                "SEED007",
                f"{path_text((*path, 'table'))} has {size:,} keys, more than the maximum of {MAX_TABLE:,}",
                Span(at, at + 1),
            )
            return None
        match = node.value.get("match", "exact")
        table = tuple(node.fields["table"].value.items())
        return Lookup(name, source, table, match, node.value.get("default"), span=node.span)

    def _case(self, node: JsonNode, path: JsonPath, name: str) -> SeedStep | None:
        source: Field | Name | None = None
        if node.value.get("source") is not None:
            source = self._reference(node.fields["source"], (*path, "source"), ("context",))
            if source is None:
                return None
        rules, otherwise = self.cases.read(node.fields["rules"], (*path, "rules"), source)
        return Case(name, rules, None if otherwise is None else otherwise.value, span=node.span)


_READERS: dict[str, Callable[[Steps, JsonNode, JsonPath, str], SeedStep | None]] = {
    "define_filter": Steps._filter, "count": Steps._count, "sum": Steps._aggregate, "max": Steps._aggregate,
    "min": Steps._aggregate, "lookup": Steps._lookup, "expr": Steps._expr, "const": Steps._const, "case": Steps._case,
    "tally": Steps._tally,
}  # fmt: skip


# Reads the fields to extract: ``extract.fields`` of the declarative form, ``extraction_fields`` of the formula form.

MAX_VALUES_OF_ENUM = 1_000
_LONGEST_FIELD = 200
"""Maximum length in characters of a value of an enum. A value is a word; its meaning may be longer."""


@define
class Fields:
    """Reads fields whose keys are valid; ``found`` collects the faults."""

    found: list[Diagnostic]

    def read(self, node: JsonNode, path: JsonPath) -> Extracted | None:
        """Return a field; None, with a diagnostic, if the field is invalid."""
        name, values = node.fields["name"], node.fields.get("values")
        kind = node.fields.get("type")
        doc = str(node.value.get("description", ""))
        ordered = node.value.get("ordered") is True
        has_values = values is not None and values.value is not None
        if kind is None or kind.value is None:
            if not has_values:
                hint = 'a field needs "values", or a "type": enum, int, float, bool, text or list'
                at = Span(node.start, node.start + 1)
                self._fault("SEED003", f"{path_text(path)} has neither values nor a type", at, hint)
                return None
            return Extracted(name.value, "enum", self._values(values, path), doc, ordered, span=node.span)
        if kind.value == "enum":
            if not has_values:
                at = Span(node.start, node.start + 1)
                hint = 'list them, or give each a meaning: {"none": "...", "mild": "..."}'
                self._fault("SEED003", f"{path_text(path)} is an enum without values", at, hint)
                return None
            return Extracted(name.value, "enum", self._values(values, path), doc, ordered, span=node.span)
        if has_values:
            edits = (Edit(kind.span, '"enum"'),)
            message = f"{path_text(path)} has values, but its type is {kind.value}; only an enum has values"
            self._fault("SEED016", message, kind.span, "write `enum`, or remove the values", edits=edits)
            return None
        return Extracted(name.value, kind.value, {}, doc, ordered, span=node.span)

    def _values(self, node: JsonNode | None, path: JsonPath) -> dict[str, str]:
        at = (*path, "values")
        if node is None or not isinstance(node.value, list | dict):
            if node is not None:
                message = f"{path_text(at)} must be a list or an object, not {kind_of(node.value)}"
                self._fault("SEED004", message, node.span, edits=_replacement_edits(node, at))
            return {}
        if not node.value:
            self._fault("SEED005", f"{path_text(at)} is empty", node.span, "an enum needs at least two values")
            return {}
        if len(node.value) > MAX_VALUES_OF_ENUM:
            message = f"{path_text(at)} has {len(node.value):,} values, more than the maximum of {MAX_VALUES_OF_ENUM:,}"
            self._fault("SEED007", message, Span(node.start, node.start + 1))
            return {}
        whole = _replacement_edits(node, at)
        if whole:
            message = f"{path_text(at)} must be a list of strings, or an object that maps values to meanings"
            self._fault(
                "SEED004",
                message,
                node.span,
                f"write `{whole[0].text}`" if len(whole[0].text) <= 100 else "",
                edits=whole,
            )
            return {}
        made: dict[str, str] = {}
        pairs = node.fields.items() if isinstance(node.value, dict) else (("", item) for item in node.items)
        for number, (key, item) in enumerate(pairs):
            is_listed = isinstance(node.value, list)
            place = path_text((*at, number if is_listed else key))
            if not isinstance(item.value, str):
                edits = _quoted(item) if is_listed else ()
                self._fault("SEED004", f"{place} must be a string, not {kind_of(item.value)}", item.span, edits=edits)
                continue
            value = item.value if is_listed else key
            span = item.span if is_listed else node.keys[key]
            if not value.strip():
                self._fault("SEED005", f"{place} is empty", span, "write a word, for example none")
            elif len(value) > _LONGEST_FIELD:
                self._fault(
                    "SEED005",
                    f"{place} has {len(value):,} characters, more than the maximum of {_LONGEST_FIELD}",
                    Span(span.start, span.start + 1),
                )
            elif is_listed and value in made:
                self._fault("SEED005", f"duplicate value {place}", span, "remove one of them")
            made[value] = "" if is_listed else item.value
        return made

    def _fault(self, code: str, message: str, span: Span, *hints: str, edits: tuple[Edit, ...] = ()) -> None:
        self.found.append(Diagnostic(code, "error", message, span, tuple(hint for hint in hints if hint), edits))


def _replacement_edits(node: JsonNode, path: JsonPath) -> tuple[Edit, ...]:
    """Return the edit that replaces the values with the intended values; () if the intention is unclear."""
    meant = meant_for(tuple(path), node.value)
    return (Edit(node.span, meant),) if meant is not None else ()


def _quoted(item: JsonNode) -> tuple[Edit, ...]:
    """Return the edits that put quotes around a scalar; () for null, lists and objects."""
    if isinstance(item.value, list | dict) or item.value is None:
        return ()
    return (Edit(Span(item.start, item.start), '"'), Edit(Span(item.end, item.end), '"'))
