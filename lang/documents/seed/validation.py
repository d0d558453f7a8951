"""Reports parts of a seed that have the wrong shape, and suggests fixes. Also checks names, and words from fixed lists."""

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, get_args

from attrs import define, evolve

from ...diagnostic import Diagnostic, Edit, nearest
from ...source import Span
from ...trees.seed import FieldType, KeepMatch, Match, Strategy
from ..json_tree import JsonNode, JsonPath, path_text
from ..shape import Misfit, fitted

if TYPE_CHECKING:
    from pydantic import BaseModel

# Converts a part of a seed from another shape to the intended shape, if that is certain. An edit then replaces the complete part.
# Models write parts in other shapes, such as an object of fields instead of a list, or one string with names and commas.

_LARGEST = 20_000
"""Maximum number of characters in an edit. The author has to rewrite larger parts."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ORDER = ("==", "!=", ">=", "<=", ">", "<")
"""The comparison operators of a test."""
_WORDS = {
    "less than or equal to": "<=", "greater than or equal to": ">=", "more than or equal to": ">=", "at most": "<=",
    "at least": ">=", "less than": "<", "greater than": ">", "more than": ">", "smaller than": "<", "fewer than": "<",
    "not equal to": "!=", "equal to": "==", "equals": "==", "below": "<", "under": "<", "above": ">", "over": ">",
    "=<": "<=", "=>": ">=", "<>": "!=", "===": "==", "!==": "!=", "≤": "<=", "≥": ">=", "≠": "!=",
}  # fmt: skip
"""Maps operators written as words, and operators of other languages, to valid operators. A longer key comes before its prefixes."""
_WORDY = re.compile(
    r"\s*(?:(?!is\s)(?P<name>[A-Za-z_][\w.]{0,200})\s+)?(?:is\s+)?(?P<words>"
    + "|".join(re.escape(words) + (r"(?!\w)" if words[-1].isalpha() else "") for words in sorted(_WORDS, key=len, reverse=True))
    + r")\s*(?P<value>-?\d[\d.]{0,30}|\"[^\"]{0,100}\"|'[^']{0,100}')\s*",
    re.IGNORECASE,
)  # fmt: skip
_WRITTEN_TEST = re.compile(r"\s*(?P<test>==|!=|>=|<=|>|<)\s*(?P<value>\S(?:.{0,198}\S)?)\s*", re.DOTALL)


def meant_for(path: tuple[str | int, ...], value: Any) -> str | None:
    """Return the value that the author probably meant at ``path`` of a seed, as JSON text. Return None if it is uncertain."""
    keys = tuple("#" if isinstance(part, int) else part for part in path)
    for places, change in _CHANGES:
        if keys in places:
            made = change(value)
            text = None if made is None else json.dumps(made, ensure_ascii=False)
            return text if text is None or len(text) <= _LARGEST else None
    return None


def _names(value: Any) -> list[str] | None:
    """Return a list of names that was written as a string, ``"a, b"``, or as an object, ``{"a": "a"}``. Return None for any other value."""
    if isinstance(value, str) and "," in value:
        return [part.strip() for part in value.split(",") if part.strip()] or None
    if isinstance(value, dict) and value and all(isinstance(each, str) for each in value.values()):
        return list(dict.fromkeys(value.values()))
    return None


def _name_in_object(value: Any) -> str | None:
    name = value.get("name") if isinstance(value, dict) and len(value) <= 3 else None
    return name if isinstance(name, str) else None


def _fields(value: Any) -> list[Any] | None:
    if not isinstance(value, dict) or not value or not all(_NAME.fullmatch(name) for name in value):
        return None
    made = [
        {"name": name, **each} if isinstance(each, dict) else {"name": name, "values": each}
        for name, each in value.items()
    ]
    return made if all("values" in each or "type" in each for each in made) else None


def _steps(value: Any) -> list[Any] | None:
    is_named = isinstance(value, dict) and value and all(isinstance(each, dict) for each in value.values())
    return [{"name": name, **each} for name, each in value.items()] if is_named else None


def _rules(value: Any) -> list[Any] | None:
    if not isinstance(value, dict) or not value:
        return None
    return [
        {"else": then} if when in ("else", "default") else {"when": when, "then": then} for when, then in value.items()
    ]


def _values(value: Any) -> Any:
    if isinstance(value, str):
        parts = [part.strip() for part in re.split(r"[,|]", value) if part.strip()]
        return parts if len(parts) > 1 else None
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        return None
    pairs = [(each.get("value", each.get("name")), each.get("description", each.get("meaning", ""))) for each in value]
    made = {word: doc for word, doc in pairs if isinstance(word, str) and isinstance(doc, str)}
    return made if made and len(made) == len(value) else None


def _table(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, list) or not value or not all(isinstance(each, dict) for each in value):
        return None
    made = {
        each["key"]: each["value"]
        for each in value
        if isinstance(each.get("key"), str) and set(each) == {"key", "value"}
    }
    return made if len(made) == len(value) else None


def _within(key: str) -> Callable[[Any], dict[str, Any] | None]:
    return lambda value: {key: value} if isinstance(value, list) else None


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, str) and re.fullmatch(r"\s*[0-9]{1,9}\s*", value, re.ASCII) else None


def _where(value: Any) -> dict[str, Any] | None:
    return meant_where(value, (*ORDER, "in", "not_in"))


_CHANGES: tuple[tuple[Collection[tuple[str, ...]], Callable[[Any], Any]], ...] = (
    ({("output",), ("output_fields",), ("filter", "keywords"), ("filter_keywords",)}, _names),
    ({("output", "#"), ("output_fields", "#")}, _name_in_object),
    ({("extract", "fields"), ("extraction_fields",)}, _fields),
    ({("extract", "fields", "#", "values"), ("extraction_fields", "#", "values")}, _values),
    ({("compute", "#", "table")}, _table),
    ({("compute",), ("compute_dag",), ("reduce",)}, _steps),
    ({("compute", "#", "rules")}, _rules),
    ({("compute", "#", "where"), ("reduce", "#", "where")}, _where),
    ({("extract",)}, _within("fields")),
    ({("filter",)}, _within("keywords")),
    ({("passes",), ("review_handling", "max_length")}, _number),
)


def meant_where(value: Any, operators: Collection[str]) -> dict[str, Any] | None:
    """Return the ``where`` probably meant by a list of conditions, ``"$F"`` or ``{"field", "op", "value"}``; None if unclear."""
    if isinstance(value, str):
        match = re.fullmatch(r"(\$[A-Za-z_][A-Za-z0-9_]{0,100})", value.strip())
        return {match[1]: True} if match else None
    parts = value if isinstance(value, list) else [value]
    made: dict[str, Any] = {}
    for part in parts[:100]:
        if not isinstance(part, dict):
            return None
        tested = _tested(part, operators)
        for key, condition in (tested or part).items():
            if key in made:
                return None
            made[key] = condition
    return made if made and len(parts) <= 100 and made != value else None


def _tested(part: Mapping[str, Any], operators: Collection[str]) -> dict[str, Any] | None:
    """Return ``{"extraction.f": {"==": 1}}`` for ``{"field": "extraction.f", "op": "==", "value": 1}``."""
    subject = part.get("field", part.get("name"))
    operator = part.get("op", part.get("operator"))
    if len(part) != 3 or "value" not in part or not isinstance(subject, str) or operator not in operators:
        return None
    return {subject: part["value"] if operator == "==" else {operator: part["value"]}}


def meant_test(text: str, source: str | None) -> str | None:
    """Return the test that was probably meant by ``"S is less than 4"``, ``"=< 4"`` or ``">= 4 and < 8"``.

    ``source`` is the value that the case tests.
    """
    if len(text) > 300:
        return None
    match = _WORDY.fullmatch(text)
    if match is not None and match["name"] in (None, source):
        return f"{_WORDS[match['words'].lower()]} {match['value']}"
    parts = re.split(r"\s+(and|or)\s+", text.strip())
    if source is None or len(parts) < 3 or not all(_WRITTEN_TEST.fullmatch(part) for part in parts[::2]):
        return None
    return " ".join(part if number % 2 else f"{source} {part}" for number, part in enumerate(parts))


def meant_condition(text: str) -> tuple[str, str] | None:
    """Return the operator and the value of a condition in one string, such as ``">= 2023"``; None for any other string."""
    match = _WRITTEN_TEST.fullmatch(text)
    return (match["test"], match["value"].strip("\"'")) if match is not None and match["test"] in ORDER else None


_TELLING = (("table", "lookup"), ("rules", "case"), ("extraction", "define_filter"))


def meant_operation(keys: Collection[str]) -> str | None:
    """Return the operation that the keys of a step imply; None if this is unclear."""
    for key, operation in _TELLING:
        if key in keys:
            return operation
    rest = set(keys) - {"name"}
    return "expr" if rest in ({"expr"}, {"formula"}) else "const" if rest == {"value"} else None


_OTHER_FORM = {
    "output_fields": "output", "filter_keywords": "filter", "extraction_fields": "extract",
}  # fmt: skip


def other_form(key: str) -> tuple[str, str, str] | None:
    """Return the equivalent of a key in the other form, and two texts to add before and after its value.

    Return None if the key has no equivalent.
    """
    if key in _OTHER_FORM:
        within = {"filter_keywords": "keywords", "extraction_fields": "fields"}.get(key)
        return _OTHER_FORM[key], f'{{"{within}": ' if within else "", "}" if within else ""
    return ("output_fields", "", "") if key == "output" else None


_MOST = 100
"""Maximum number of reported misfits, and of keys in an object. More misfits usually have one common cause."""
_SHOWN = 100
"""Maximum length in characters of an edit that is also shown in a hint."""
_CODES = {"unknown": "SEED002", "missing": "SEED003", "type": "SEED004", "value": "SEED005"}
_CHOICES: dict[str, tuple[str, ...]] = {
    "type": get_args(FieldType), "strategy": get_args(Strategy), "match": get_args(Match),
    "filter.match": get_args(KeepMatch), "method": ("llm", "fuzzy"), "scope": ("context", "run"),
}  # fmt: skip
_MEANT = {
    "string": "text", "str": "text", "number": "float", "integer": "int", "boolean": "bool", "array": "list", "choice": "enum",
    "category": "enum", "categorical": "enum", "substring": "substring_first", "word": "word_first", "truncate": "truncate_head",
    "aggregate": "sum", "filter": "define_filter", "formula": "expr", "compute": "expr", "constant": "const", "literal": "const",
    "histogram": "tally", "counter": "tally", "value_counts": "tally", "frequencies": "tally", "counts": "tally",
    "switch": "case", "conditional": "case", "map": "lookup", "table": "lookup",
}  # fmt: skip
"""Maps invalid names of types, match modes and operations to the valid names that were meant."""
_MEANT_KEYS = {
    "if": "when", "condition": "when", "value": "then", "result": "then", "default": "else", "otherwise": "else",
    "formula": "expr", "expression": "expr", "expr": "formula", "options": "values", "choices": "values", "enum": "values",
    "doc": "description", "steps": "compute", "name": "task_name",
    "meaning": "description", "filter": "where", "conditions": "where", "filters": "where", "cases": "rules", "kind": "type",
    "operation": "op", "id": "name", "mapping": "table", "map": "table", "input": "source", "source": "field",
    "prompt": "extraction_prompt",
}  # fmt: skip
"""Maps invalid names of keys to the valid names that were meant."""
_PARTS = {"keywords": "filter", "fields": "extract"}
"""Maps each key that is often misplaced at the root to the key of the part where it belongs."""


@define
class Shapes:
    """Checks the parts of one document against their shapes.

    ``found`` collects the faults. ``outputs`` is the key under which the document lists its outputs.
    """

    root: JsonNode
    outputs: str
    found: list[Diagnostic]
    reported: int = 0
    """Number of misfits reported so far, including renamed keys."""

    @property
    def has_enough(self) -> bool:
        """Return whether the limit of reported misfits is reached."""
        return self.reported >= _MOST

    def fits(self, model: "type[BaseModel]", node: JsonNode, path: JsonPath) -> bool:
        """Report all misfits of ``node``. Return True if there are none."""
        if len(node.fields) > _MOST:
            message = f"{path_text(path)} has {len(node.fields):,} keys, more than the maximum of {_MOST}"
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
        """If a key is misspelt, report it, and rename it in the tree.

        A renamed key causes no further faults. Return whether it was renamed.
        """
        parent = self.root.at(misfit.path[:-1])
        if misfit.kind != "unknown" or parent is None:
            return False
        hints, edits = (misfit.hints, misfit.edits) if misfit.edits else self._meant_key(misfit)
        meant, written = json.loads(edits[0].text) if len(edits) == 1 and edits[0].text else None, misfit.path[-1]
        if meant is None or meant in parent.fields:
            return False
        self._tell(evolve(misfit, hints=hints, edits=edits))
        mappings: tuple[Any, ...] = (
            parent.value,
            parent.fields,
            parent.keys,
        )  # safe to modify: the text is parsed again each time
        for mapping in mappings:
            mapping[meant] = mapping.pop(written)
        return True

    def _tell(self, misfit: Misfit) -> None:
        kind = misfit.kind
        self.reported += 1
        last = misfit.path[-1] if misfit.path else ""
        place = "filter.match" if tuple(misfit.path) == ("filter", "match") else str(last)
        reducing = misfit.path[:1] == ("reduce",) and place == "type"
        if kind == "value" and (place in _CHOICES or reducing):
            self.choose(misfit.path, ("text", "list") if reducing else _CHOICES[place])
            return
        message, hints = misfit.message, misfit.hints
        if kind == "value" and last == "passes":
            message, hints = "passes must be 1 or 2", ("2 extracts twice, and a third call reconciles the differences",)
        if kind == "value" and last == "allow_invalid":
            message, hints = (
                "allow_invalid must be from 0 to 1",
                ("0.05 allows 5 % of the kept reviews to lack a field",),
            )
        edits = misfit.edits
        if kind == "type" and last == "name":
            hints, edits = (), ()  # with quotes, a number is still not a name
        elif kind == "unknown" and not edits:
            hints, edits = self._meant_key(misfit)
            edits = edits or self._into_rules(misfit) or self._into_part(misfit)
        node = self.root.at(misfit.path) if kind == "type" else None
        whole = meant_for(tuple(misfit.path), node.value) if node is not None else None
        if node is not None and whole is not None:
            hints, edits = (f"write `{whole}`",) if len(whole) <= _SHOWN else (), (Edit(node.span, whole),)
        if kind == "value" and last == "top":
            message, hints = (
                f"{path_text(misfit.path)} must be from 1 to 10,000",
                ("without top, all values are returned",),
            )
        if kind == "value" and last in ("same_above", "ask_above"):
            message, hints = (
                f"{path_text(misfit.path)} must be from 0 to 1",
                ("1 is the similarity of equal spellings",),
            )
        if kind == "value" and last == "max_length":
            message, hints = "review_handling.max_length must be from 1 to 10,000,000", ()
        self.found.append(Diagnostic(_CODES[kind], "error", message, misfit.span, hints, edits))

    def _into_part(self, misfit: Misfit) -> tuple[Edit, ...]:
        """Return the edits that move keywords or fields from the root of the document into the correct part."""
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
        """Return the edits that change ``"default": x`` of a case to an ``else`` among its rules."""
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
        """Return hints and edits for a key of another language. The hints name the valid key with the same meaning."""
        meant = _MEANT_KEYS.get(str(misfit.path[-1]).lower())
        parent = self.root.at(misfit.path[:-1])
        listed = misfit.hints[-1].removeprefix("allowed keys: ").split(", ") if misfit.hints else []
        if meant is None or meant not in listed or parent is None or meant in parent.fields:
            return misfit.hints, ()
        return (f"did you mean `{meant}`?", *misfit.hints), (Edit(misfit.span, json.dumps(meant)),)

    def choose(
        self, path: JsonPath, choices: tuple[str, ...], fitting: Sequence[str] = (), *, what: str | None = None
    ) -> None:
        """Report an unknown word. Suggest a similar word, first from ``fitting``, then from ``choices``."""
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
        average = ("compute sum and count, and divide them in an expr",)
        is_average = path[-1] == "op" and str(node.value).lower() in ("avg", "average", "mean")
        hints = (
            *((f"did you mean `{near}`?",) if near else average if is_average else ()),
            f"allowed: {', '.join(choices)}",
        )
        edits = (Edit(node.span, json.dumps(near)),) if near else ()
        message = f"{path_text(path)}: unknown {what or ('operation' if path[-1] == 'op' else path[-1])} {shown}"
        self.found.append(Diagnostic("SEED008", "error", message, node.span, hints, edits))

    def operation(
        self, item: JsonNode, path: JsonPath, operations: "dict[str, type[BaseModel]]"
    ) -> "type[BaseModel] | None":
        """Return the shape of a step. If its operation is missing or unknown, report this and return None."""
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
            self.choose((*path, "op"), tuple(operations), fitting)
        return found

    def _no_operation(self, item: JsonNode, path: JsonPath, operations: "dict[str, type[BaseModel]]") -> None:
        at, hints = Span(item.start, item.start + 1), [f"op must be one of {', '.join(operations)}"]
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
                hints = ['a formula is written {"name": ..., "op": "expr", "expr": ...} in this form']
                edits = (*edits, Edit(item.keys["formula"], '"expr"'))
        self.found.append(Diagnostic("SEED003", "error", f"{path_text(path)}.op is missing", at, tuple(hints), edits))

    def is_name(self, node: JsonNode, path: JsonPath) -> bool:
        """Return whether a name is valid; report an invalid name."""
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
        message = f"{path_text(path)}: {shown} is not a valid name"
        hint = (
            "a name consists of letters A to Z, digits and underscores; it can't begin with a digit or two underscores"
        )
        hints = (*((f"write `{fixed}`",) if fixed else ()), hint)
        self.found.append(Diagnostic("SEED009", "error", message, node.span, hints, edits))
        return False
