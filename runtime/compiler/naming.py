"""Checks that conditions, outputs and nodes have in common: names, and references to what is known of a review."""

import json
import keyword
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from attrs import define, field

from ...lang.catalogue.functions import FUNCTIONS
from ...lang.diagnostic import Diagnostic, Edit, nearest
from ...lang.documents.json_tree import JsonNode, JsonPath, path_text
from ...lang.documents.seed.validation import Shapes
from ...lang.evaluate.seed.interpreter import META_KEYS
from ...lang.evaluate.seed.step_dependencies import EXTRACTIONS

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Names", "References", "fits", "found"]

_RESERVED = (
    frozenset(FUNCTIONS)
    | frozenset(keyword.kwlist)
    | {"extraction", "meta", "context", EXTRACTIONS, "true", "false", "null"}
)
_MOST = 50
"""Different names that are looked for; a document with more unknown ones has one cause."""


def found(
    code: str, path: JsonPath, message: str, node: JsonNode, hint: str = "", edits: Iterable[Edit] = ()
) -> Diagnostic:
    """Make an error about what stands at ``path``, under the code that the same fault of a seed has."""
    return Diagnostic(code, "error", f"{path_text(path)}: {message}", node.span, (hint,) if hint else (), tuple(edits))


def fits(shapes: Shapes, model: "type[BaseModel]", node: JsonNode, path: JsonPath) -> bool:
    """Tell what of ``node`` doesn't fit. True where it is an object with all that is required: faulty JSON is told elsewhere."""
    required = {name for name, info in model.model_fields.items() if info.is_required()}
    return shapes.fits(model, node, path) and required <= node.fields.keys()


@define
class Names:
    """The names of one document: each a name, given once, and no word that means something else."""

    shapes: Shapes
    told: list[Diagnostic]
    taken: dict[str, JsonPath] = field(factory=dict)

    def take(self, node: JsonNode, path: JsonPath) -> str | None:
        """Take the name at ``path``; None, and why, where it is none."""
        if not isinstance(node.value, str) or not self.shapes.is_name(node, path):
            return None
        name = node.value
        if name in self.taken:
            where = path_text(self.taken[name])
            self.told.append(
                found(
                    "SEED042",
                    path,
                    f"the name {name} is given at {where} already",
                    node,
                    "give one of the two another name",
                )
            )
            return None
        self.taken[name] = path
        if name in _RESERVED:
            new = f"{name}_value"
            message = f"{name} means something else in expressions"
            self.told.append(
                found("SEED043", path, message, node, f"call it {new}", [Edit(node.span, json.dumps(new))])
            )
        return name


@define
class References:
    """What may be referred to: ``extraction.FIELD``, ``meta.KEY``, ``context.KEY`` and ``names``."""

    fields: Collection[str]
    names: Collection[str]
    told: list[Diagnostic]
    _missed: int = 0

    def check(self, node: JsonNode, path: JsonPath) -> str | None:
        """Return the reference at ``path`` as it counts (without a filter's ``$``); None, and why, where there is no such thing."""
        text = node.value
        if not isinstance(text, str):
            return None
        name = text.removeprefix("$")
        if name in self.names:
            return name
        space, dot, key = name.partition(".")
        if dot and space == "context" and key:
            return name
        if dot and space == "meta" and key in META_KEYS:
            return name
        if dot and space == "extraction" and key in self.fields:
            return name
        self._unknown(node, path, name)
        return None

    def _unknown(self, node: JsonNode, path: JsonPath, name: str) -> None:
        space, dot, key = name.partition(".")
        self._missed += 1
        bare = key if dot else name
        if bare in self.fields and space != "meta":
            meant: str | None = f"extraction.{bare}"
        elif bare in META_KEYS:
            meant = f"meta.{bare}"
        elif self._missed > _MOST:
            meant = None
        elif dot and space == "extraction":
            near = nearest(key, self.fields)
            meant = f"extraction.{near}" if near else None
        elif dot and space == "meta":
            near = nearest(key, META_KEYS)
            meant = f"meta.{near}" if near else None
        else:
            meant = nearest(name, [*self.names, *(f"extraction.{each}" for each in self.fields)])
        code = "SEED045" if dot and space in ("extraction", "meta") else "SEED040"
        shown = json.dumps(name if len(name) <= 60 else name[:59] + "…", ensure_ascii=False)
        edits = [Edit(node.span, json.dumps(meant))] if meant else []
        hint = f"did you mean {meant}?" if meant else self._there_are(space if dot else "")
        self.told.append(found(code, path, f"there is no {shown}", node, hint, edits))

    def _there_are(self, space: str) -> str:
        if space == "meta":
            return f"a review has {', '.join(META_KEYS)}"
        known = (
            list(self.fields)
            if space == "extraction"
            else [*self.names, *(f"extraction.{each}" for each in self.fields)]
        )
        shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
        return f"there are {shown}, meta.KEY and context.KEY" if known else "there are only meta.KEY and context.KEY"
