"""Reads the fields to extract: ``extract.fields`` of the declarative form, ``extraction_fields`` of the formula form."""

from attrs import define

from ...diagnostic import Diagnostic, Edit
from ...seed import Extracted
from ...source import Span
from ..json_tree import JsonNode, JsonPath, path_text
from .meant import meant_for
from .where import kind_of

__all__ = ["Fields"]

MAX_VALUES_OF_ENUM = 1_000
_LONGEST = 200
"""Characters of a value of an enum: it is a word, its meaning is what explains it."""


@define
class Fields:
    """Reads fields whose keys fit; ``found`` takes the faults."""

    found: list[Diagnostic]

    def read(self, node: JsonNode, path: JsonPath) -> Extracted | None:
        """Return a field; None, and why, where it is none."""
        name, values = node.fields["name"], node.fields.get("values")
        kind = node.fields.get("type")
        doc = str(node.value.get("description", ""))
        has_values = values is not None and values.value is not None
        if kind is None or kind.value is None:
            if not has_values:
                hint = 'a field has "values", or a "type": enum, int, float, bool, text or list'
                at = Span(node.start, node.start + 1)
                self._fault("SEED003", f"{path_text(path)} has neither values nor a type", at, hint)
                return None
            return Extracted(name.value, "enum", self._values(values, path), doc, span=node.span)
        if kind.value == "enum":
            if not has_values:
                at = Span(node.start, node.start + 1)
                hint = 'list them, or give each its meaning: {"none": "...", "mild": "..."}'
                self._fault("SEED003", f"{path_text(path)} is an enum without values", at, hint)
                return None
            return Extracted(name.value, "enum", self._values(values, path), doc, span=node.span)
        if has_values:
            edits = (Edit(kind.span, '"enum"'),)
            message = f"{path_text(path)} has values, and only an enum has; its type is {kind.value}"
            self._fault("SEED016", message, kind.span, "write `enum`, or leave the values out", edits=edits)
            return None
        return Extracted(name.value, kind.value, {}, doc, span=node.span)

    def _values(self, node: JsonNode | None, path: JsonPath) -> dict[str, str]:
        at = (*path, "values")
        if node is None or not isinstance(node.value, list | dict):
            if node is not None:
                message = f"{path_text(at)} takes a list, or an object, not {kind_of(node.value)}"
                self._fault("SEED004", message, node.span, edits=_whole(node, at))
            return {}
        if not node.value:
            self._fault("SEED005", f"{path_text(at)} is empty", node.span, "an enum has at least two values")
            return {}
        if len(node.value) > MAX_VALUES_OF_ENUM:
            message = f"{path_text(at)} has {len(node.value):,} values; {MAX_VALUES_OF_ENUM:,} is the most"
            self._fault("SEED007", message, Span(node.start, node.start + 1))
            return {}
        whole = _whole(node, at)
        if whole:
            message = f"{path_text(at)} takes texts, or an object of values and their meanings"
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
                self._fault("SEED004", f"{place} takes a text, not {kind_of(item.value)}", item.span, edits=edits)
                continue
            value = item.value if is_listed else key
            span = item.span if is_listed else node.keys[key]
            if not value.strip():
                self._fault("SEED005", f"{place} is empty", span, "write a word for it, such as none")
            elif len(value) > _LONGEST:
                self._fault(
                    "SEED005",
                    f"{place} has {len(value):,} characters; {_LONGEST} is the most",
                    Span(span.start, span.start + 1),
                )
            elif is_listed and value in made:
                self._fault("SEED005", f"{place} stands twice", span, "leave one out")
            made[value] = "" if is_listed else item.value
        return made

    def _fault(self, code: str, message: str, span: Span, *hints: str, edits: tuple[Edit, ...] = ()) -> None:
        self.found.append(Diagnostic(code, "error", message, span, tuple(hint for hint in hints if hint), edits))


def _whole(node: JsonNode, path: JsonPath) -> tuple[Edit, ...]:
    """Return the edit that writes the values as what they surely mean."""
    meant = meant_for(tuple(path), node.value)
    return (Edit(node.span, meant),) if meant is not None else ()


def _quoted(item: JsonNode) -> tuple[Edit, ...]:
    """Return the edit that makes a text of a scalar."""
    if isinstance(item.value, list | dict) or item.value is None:
        return ()
    return (Edit(Span(item.start, item.start), '"'), Edit(Span(item.end, item.end), '"'))
