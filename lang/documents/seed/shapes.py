"""Says how a part of a seed is not of its shape, with what its author meant; checks names and words of which there are few."""

import json
from collections.abc import Sequence
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, get_args

from attrs import define, evolve, field

from ...diagnostic import Diagnostic, Edit, nearest
from ...seed import FieldType, KeepMatch, Match, Strategy
from ...source import Span
from ..json_tree import JsonNode, JsonPath, path_text
from ..shape import Misfit, fitted
from .meant import meant_for, meant_operation

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["Shapes"]

_MOST = 100
"""Misfits that are told, and keys of an object; a document with more has one cause."""
_SHOWN = 100
"""Characters of an edit that are also shown as a hint."""
_CODES = {"unknown": "SEED002", "missing": "SEED003", "type": "SEED004", "value": "SEED005"}
_CHOICES: dict[str, tuple[str, ...]] = {
    "type": get_args(FieldType), "strategy": get_args(Strategy), "match": get_args(Match),
    "filter.match": get_args(KeepMatch),
}  # fmt: skip
_MEANT = {
    "string": "text", "str": "text", "number": "float", "integer": "int", "boolean": "bool", "array": "list", "choice": "enum",
    "category": "enum", "categorical": "enum", "substring": "substring_first", "word": "word_first", "truncate": "truncate_head",
    "aggregate": "sum", "filter": "define_filter", "formula": "expr", "compute": "expr", "constant": "const", "literal": "const",
    "switch": "case", "conditional": "case", "map": "lookup", "table": "lookup",
}  # fmt: skip
"""Other spellings of types, matches and operations."""
_MEANT_KEYS = {
    "if": "when", "condition": "when", "value": "then", "result": "then", "default": "else", "otherwise": "else",
    "formula": "expr", "expression": "expr", "expr": "formula", "options": "values", "choices": "values", "enum": "values",
    "doc": "description", "steps": "compute", "name": "task_name",
    "meaning": "description", "filter": "where", "conditions": "where", "filters": "where", "cases": "rules", "kind": "type",
    "operation": "op", "id": "name", "mapping": "table", "map": "table", "input": "source", "source": "field",
    "prompt": "extraction_prompt",
}  # fmt: skip
"""Other spellings of keys."""
_PARTS = {"keywords": "filter", "fields": "extract"}
"""What is often written at the root, and the part that it is of."""


@define
class Shapes:
    """Checks parts of one document against their shapes; ``found`` takes what is wrong. ``outputs``: the key of the outputs."""

    root: JsonNode
    outputs: str
    found: list[Diagnostic]
    told: int = 0
    renamed: list[JsonPath] = field(factory=list, init=False)
    """Where a key was taken for another: the document's tree is not what its text says there."""

    @property
    def has_enough(self) -> bool:
        """Whether no more misfits are told."""
        return self.told >= _MOST

    def fits(self, model: "type[BaseModel]", node: JsonNode, path: JsonPath) -> bool:
        """Tell what doesn't fit, and return whether all does."""
        if len(node.fields) > _MOST:
            message = f"{path_text(path)} has {len(node.fields):,} keys; {_MOST} is the most"
            self.found.append(Diagnostic("SEED007", "error", message, Span(node.start, node.start + 1)))
            return False
        if self.has_enough:
            from pydantic import ValidationError

            try:
                model.model_validate(node.value)
            except ValidationError:
                return False
            return True
        fits, found = fitted(model, node, path)
        while any([self._renamed(misfit) for misfit in found]):
            fits, found = fitted(model, node, path)
        for misfit in found:
            self._tell(misfit)
        return fits

    def _renamed(self, misfit: Misfit) -> bool:
        """Tell of a misspelt key and read on as if it were the one that was meant: what follows from it is no other fault."""
        parent = self.root.at(misfit.path[:-1])
        if misfit.kind != "unknown" or parent is None:
            return False
        hints, edits = (misfit.hints, misfit.edits) if misfit.edits else self._meant_key(misfit)
        meant, written = json.loads(edits[0].text) if len(edits) == 1 and edits[0].text else None, misfit.path[-1]
        if meant is None or meant in parent.fields:
            return False
        self._tell(evolve(misfit, hints=hints, edits=edits))
        self.renamed.append(misfit.path)
        mappings: tuple[Any, ...] = (
            parent.value,
            parent.fields,
            parent.keys,
        )  # our own: the text is read anew each time
        for mapping in mappings:
            mapping[meant] = mapping.pop(written)
        return True

    def _tell(self, misfit: Misfit) -> None:
        kind = misfit.kind
        self.told += 1
        last = misfit.path[-1] if misfit.path else ""
        place = "filter.match" if tuple(misfit.path) == ("filter", "match") else str(last)
        if kind == "value" and place in _CHOICES:
            self._choose(misfit.path, _CHOICES[place])
            return
        message, hints = misfit.message, misfit.hints
        if kind == "value" and last == "passes":
            message, hints = "passes is 1 or 2", ("2 extracts twice, and a third call reconciles what differs",)
        if kind == "value" and last == "allow_invalid":
            message, hints = (
                "allow_invalid is a share, from 0 to 1",
                ("0.05 allows 5 % of the kept reviews to lack a field",),
            )
        edits = misfit.edits
        if kind == "type" and last == "name":
            hints, edits = (), ()  # a number in quotes is no name either
        elif kind == "unknown" and not edits:
            hints, edits = self._meant_key(misfit)
            edits = edits or self._into_rules(misfit) or self._into_part(misfit)
        node = self.root.at(misfit.path) if kind == "type" else None
        whole = meant_for(tuple(misfit.path), node.value) if node is not None else None
        if node is not None and whole is not None:
            hints, edits = (f"write `{whole}`",) if len(whole) <= _SHOWN else (), (Edit(node.span, whole),)
        if kind == "value" and last == "max_length":
            message, hints = "review_handling.max_length is 1 at least, and 10,000,000 at most", ()
        self.found.append(Diagnostic(_CODES[kind], "error", message, misfit.span, hints, edits))

    def _into_part(self, misfit: Misfit) -> tuple[Edit, ...]:
        """Return the edits that put keywords or fields that stand at the root where they belong."""
        node, meant = self.root.at(misfit.path), _PARTS.get(str(misfit.path[-1]))
        if (
            len(misfit.path) != 1
            or node is None
            or meant is None
            or meant in self.root.fields
            or self.outputs != "output"
        ):
            return ()
        before, after = (
            Edit(Span(node.start, node.start), f'{{"{misfit.path[0]}": '),
            Edit(Span(node.end, node.end), "}"),
        )
        return (Edit(misfit.span, f'"{meant}"'), before, after)

    def _into_rules(self, misfit: Misfit) -> tuple[Edit, ...]:
        """Return the edits that put a case's ``"default": x`` into its rules, as else."""
        parent, key = self.root.at(misfit.path[:-1]), misfit.path[-1]
        if parent is None or key not in ("default", "else", "otherwise") or "rules" not in parent.fields:
            return ()
        rules = parent.fields["rules"].items
        if not rules or any("else" in rule.fields for rule in rules):
            return ()
        begins = sorted((at.start, parent.fields[name].end) for name, at in parent.keys.items())
        number = begins.index((parent.keys[key].start, parent.fields[key].end))
        gone = Span(begins[number - 1][1], begins[number][1]) if number else Span(begins[0][0], begins[1][0])
        text = json.dumps(parent.fields[key].value, ensure_ascii=False)
        end = Span(rules[-1].end, rules[-1].end)
        return (Edit(gone, ""), Edit(end, f', {{"else": {text}}}')) if len(text) <= 10_000 else ()

    def _meant_key(self, misfit: Misfit) -> tuple[tuple[str, ...], tuple[Edit, ...]]:
        """Return hints and edits of a key that other languages have for one of ours."""
        meant = _MEANT_KEYS.get(str(misfit.path[-1]).lower())
        parent = self.root.at(misfit.path[:-1])
        listed = misfit.hints[-1].removeprefix("the keys here are ").split(", ") if misfit.hints else []
        if meant is None or meant not in listed or parent is None or meant in parent.fields:
            return misfit.hints, ()
        return (f"did you mean `{meant}`?", *misfit.hints), (Edit(misfit.span, json.dumps(meant)),)

    def _choose(self, path: JsonPath, choices: tuple[str, ...], fitting: Sequence[str] = ()) -> None:
        """Say that a word is none of those there are; one of ``fitting`` was rather meant."""
        node = self.root.at(path)
        if node is None:
            return
        near = None
        if isinstance(node.value, str):
            meant = _MEANT.get(node.value.lower())
            near = meant if meant in choices else nearest(node.value, fitting) or nearest(node.value, choices)
            values = self.root.at((*path[:-1], "values")) if path[-1] == "type" else None
            if values is not None and near in (None, "text"):
                near = "enum"
        shown = json.dumps(node.value, ensure_ascii=False)
        shown = shown if len(shown) <= 60 else shown[:59] + "…"
        average = ("count and sum what is averaged, and divide in an expr",)
        is_average = path[-1] == "op" and str(node.value).lower() in ("avg", "average", "mean")
        hints = (
            *((f"did you mean `{near}`?",) if near else average if is_average else ()),
            f"there are {', '.join(choices)}",
        )
        edits = (Edit(node.span, json.dumps(near)),) if near else ()
        message = f"{path_text(path)}: there is no {'operation' if path[-1] == 'op' else path[-1]} {shown}"
        self.found.append(Diagnostic("SEED008", "error", message, node.span, hints, edits))

    def operation(
        self, item: JsonNode, path: JsonPath, operations: "dict[str, type[BaseModel]]"
    ) -> "type[BaseModel] | None":
        """Return the shape of a step; None, and why, where its operation is missing or unknown."""
        if not isinstance(item.value, dict):
            self.fits(operations["const"], item, path)
            return None
        operation = item.fields.get("op")
        if operation is None:
            self._no_operation(item, path, operations)
            return None
        found = operations.get(operation.value) if isinstance(operation.value, str) else None
        if found is None:
            keys = set(item.fields)
            fitting = [name for name, model in operations.items() if keys <= set(model.model_fields)]
            self._choose((*path, "op"), tuple(operations), fitting)
        return found

    def _no_operation(self, item: JsonNode, path: JsonPath, operations: "dict[str, type[BaseModel]]") -> None:
        at, hints = Span(item.start, item.start + 1), [f"op is one of {', '.join(operations)}"]
        edits: tuple[Edit, ...] = ()
        misnamed = [key for key, each in item.fields.items() if key != "name" and each.value in [*operations]]
        meant = meant_operation(item.fields)
        if len(misnamed) == 1:
            edits, hints = (
                (Edit(item.keys[misnamed[0]], '"op"'),),
                [f"did you mean `op` for {misnamed[0]:.40}?", *hints],
            )
        elif meant is not None:
            hints = [f'write `"op": "{meant}"`']
            edits = (Edit(Span(item.start + 1, item.start + 1), f'"op": "{meant}", '),)
            if "formula" in item.fields:
                hints = ['a formula is written {"name": ..., "op": "expr", "expr": ...} here']
                edits = (*edits, Edit(item.keys["formula"], '"expr"'))
        self.found.append(Diagnostic("SEED003", "error", f"{path_text(path)}.op is missing", at, tuple(hints), edits))

    def is_name(self, node: JsonNode, path: JsonPath) -> bool:
        """Say whether a name is one, and tell where it is not."""
        name = node.value
        if name.isascii() and name.isidentifier() and not name.startswith("__"):
            return True
        made = "".join(each if each.isascii() and (each.isalnum() or each == "_") else "_" for each in name).strip("_")
        fixed = made if made.isidentifier() else f"n_{made}" if made else ""
        fixed += "_" * iskeyword(fixed)
        outputs = self.root.at((self.outputs,))
        used = [each for each in (outputs.items if outputs is not None else ()) if each.value == name]
        edits = tuple(Edit(each.span, json.dumps(fixed)) for each in (node, *used)) if fixed else ()
        shown = json.dumps(name if len(name) <= 40 else name[:39] + "…", ensure_ascii=False)
        message = f"{path_text(path)}: {shown} is no name"
        hint = "a name has letters of A to Z, digits and underscores, and begins with a letter or one underscore"
        hints = (*((f"write `{fixed}`",) if fixed else ()), hint)
        self.found.append(Diagnostic("SEED009", "error", message, node.span, hints, edits))
        return False
