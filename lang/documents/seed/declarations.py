"""Reads the parts of a seed around its steps: declared metadata, examples, resolved fields and reduced values."""

import re
from collections.abc import Mapping
from typing import Any, get_args

from attrs import define

from ...diagnostic import Diagnostic
from ...source import Span
from ...trees.expr import Field
from ...trees.seed import Example, MetaType, Reduce, Resolve
from ..json_tree import JsonNode, JsonPath, path_text
from .validation import Shapes
from .where import Wheres, kind_of

MAX_EXAMPLES = 20
MAX_STAGES = 20
"""Maximum number of entries of ``resolve``, and of ``reduce``."""
MAX_META = 200
_LONGEST_EXAMPLE = 8_000
"""Maximum number of characters of the text of an example."""
_SOURCE = re.compile(r"(?P<space>extraction|meta)\.(?P<name>[A-Za-z_][A-Za-z0-9_]{0,100})")
_KEY = re.compile(r"(?!__)[A-Za-z_][A-Za-z0-9_]{0,99}")


@define
class Declarations:
    """Reads the parts around the steps of ``root``. ``found`` collects the faults; ``shapes`` checks the shape of an entry."""

    root: JsonNode
    shapes: Shapes
    found: list[Diagnostic]

    def meta(self) -> Mapping[str, MetaType]:
        """Return the declared keys of the reviews' metadata with their types."""
        node = self.root.at(("meta",))
        if (
            node is None
            or not isinstance(node.value, dict)
            or not self._within(node, ("meta",), len(node.fields), MAX_META)
        ):
            return {}
        types: Mapping[Any, MetaType] = {each: each for each in get_args(MetaType)}
        made: dict[str, MetaType] = {}
        for key, value in node.fields.items():
            at: JsonPath = ("meta", key)
            if not _KEY.fullmatch(key):
                shown = key if len(key) <= 40 else key[:39] + "…"
                hint = "a name consists of letters A to Z, digits and underscores; rename the column"
                self._fault("SEED009", f"meta: {shown!r} is not a valid name", node.keys[key], hint)
            elif not isinstance(value.value, str):
                hint = f"it is the type of the key: {', '.join(types)}"
                self._fault(
                    "SEED004", f"{path_text(at)} must be a string, not {kind_of(value.value)}", value.span, hint
                )
            elif value.value not in types:
                self.shapes.choose(at, tuple(types), what="type")
            else:
                made[key] = types[value.value]
        return made

    def examples(self) -> tuple[Example, ...]:
        """Return the examples of ``extract``."""
        from .model import ExampleModel

        path: JsonPath = ("extract", "examples")
        made = []
        for number, item in enumerate(self._items(path, MAX_EXAMPLES)):
            at = (*path, number)
            if not self.shapes.fits(ExampleModel, item, at):
                continue
            text = item.fields["text"]
            if not text.value.strip():
                self._fault("SEED005", f"{path_text((*at, 'text'))} is empty", text.span)
            elif len(text.value) > _LONGEST_EXAMPLE:
                size = f"{len(text.value):,} characters, more than the maximum of {_LONGEST_EXAMPLE:,}"
                self._fault("SEED007", f"{path_text((*at, 'text'))} has {size}", Span(text.start, text.start + 1))
            else:
                made.append(Example(text.value, item.fields["extraction"].value, span=item.span))
        return tuple(made)

    def resolve(self) -> tuple[Resolve, ...]:
        """Return the entries of ``resolve``, which map the different spellings in a field to one name."""
        from .model import ResolveModel

        made = []
        for number, item in enumerate(self._items(("resolve",), MAX_STAGES)):
            at: JsonPath = ("resolve", number)
            if not self.shapes.fits(ResolveModel, item, at) or not self.shapes.is_name(item.fields["as"], (*at, "as")):
                continue
            given = item.value
            made.append(
                Resolve(
                    given["field"].removeprefix("extraction."), given["as"], given.get("method", "llm"),
                    given.get("scope", "context"), float(given.get("same_above", 0.95)), float(given.get("ask_above", 0.6)),
                    span=item.span,
                )
            )  # fmt: skip
        return tuple(made)

    @property
    def names(self) -> frozenset[str]:
        """Return the names of the reduced values, including those that can't be read."""
        written = (item.value.get("name") for item in self._all(("reduce",)) if isinstance(item.value, dict))
        return frozenset(name for name in written if isinstance(name, str))

    def reduce(self, wheres: Wheres) -> tuple[Reduce, ...]:
        """Return the values that a model writes about a context; ``wheres`` reads their conditions."""
        from .model import ReduceModel

        made = []
        for number, item in enumerate(self._items(("reduce",), MAX_STAGES)):
            at: JsonPath = ("reduce", number)
            if not self.shapes.fits(ReduceModel, item, at) or not self.shapes.is_name(
                item.fields["name"], (*at, "name")
            ):
                continue
            given, where = item.value, item.fields.get("where")
            sources = [self._source(each, (*at, "from", place)) for place, each in enumerate(item.fields["from"].items)]
            read = [each[0] for each in sources if each is not None]
            if len(read) < len(sources):
                continue
            made.append(
                Reduce(
                    given["name"], tuple(read), given["prompt"], given.get("type", "text"),
                    None if where is None or where.value is None else wheres.read(where, (*at, "where")),
                    given.get("cite", False), span=item.span,
                )
            )  # fmt: skip
        return tuple(made)

    def _source(self, node: JsonNode, path: JsonPath) -> tuple[Field | None] | None:
        """Return the field that a reduced value reads, in a tuple; (None,) for the text of the review; None if it is invalid."""
        match = _SOURCE.fullmatch(node.value)
        if match is not None:
            return (Field(match["space"], match["name"], span=Span(node.start + 1, node.end - 1)),)  # type: ignore[arg-type]
        if node.value == "text":
            return (None,)
        self._fault(
            "SEED018", f"{path_text(path)} must be extraction.FIELD, meta.KEY or text", node.span,
            f"write `extraction.{node.value}`" if _KEY.fullmatch(node.value) else "",
        )  # fmt: skip
        return None

    def _all(self, path: JsonPath) -> list[JsonNode]:
        node = self.root.at(path)
        return list(node.items) if node is not None and isinstance(node.value, list) else []

    def _items(self, path: JsonPath, most: int) -> list[JsonNode]:
        items, node = self._all(path), self.root.at(path)
        return items if node is None or self._within(node, path, len(items), most) else []

    def _within(self, node: JsonNode, path: JsonPath, size: int, most: int) -> bool:
        if size > most:
            message = f"{path_text(path)} has {size:,} elements, more than the maximum of {most:,}"
            self._fault("SEED007", message, Span(node.start, node.start + 1))
        return size <= most

    def _fault(self, code: str, message: str, span: Span, *hints: str) -> None:
        self.found.append(Diagnostic(code, "error", message, span, tuple(hint for hint in hints if hint)))
