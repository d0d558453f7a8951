"""Reads a Formula Seed, 000 or 002, from JSON, and reports faults with their positions in the JSON.

The keys determine the form. Each part is checked against its shape. Valid parts are read even if others are invalid. Therefore one check
can report all faults.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, get_args

from attrs import define, field, frozen

from ...diagnostic import Diagnostic, Edit, has_errors, nearest, sort_key
from ...source import Source, Span
from ...trees.seed import (
    IN_PARTS,
    DefineFilter,
    Extracted,
    FilterUse,
    Form,
    FormulaSeed,
    Keep,
    KeepMatch,
    ReviewHandling,
    SeedStep,
    Strategy,
)
from ..json_text import not_json, read_json
from ..json_tree import JsonNode, JsonPath, JsonRead, path_text
from .declarations import Declarations
from .expressions import Texts
from .steps import Fields, Steps
from .validation import Shapes, other_form
from .where import Cases, Wheres

if TYPE_CHECKING:
    from pydantic import BaseModel

MAX_STEPS = 1_000
MAX_FIELDS = 200
MAX_KEYWORDS = 5_000
MAX_RULES = 1_000
"""Maximum number of rules of all cases together."""
MAX_FILTER = 1_000
"""Maximum number of conditions of a filter, including those of the filters that it uses, counted at each use."""
MAX_EXPRESSIONS = 100_000
"""Maximum number of characters of all expressions together."""


@frozen
class SeedRead:
    """Result of reading a seed. ``seed`` is None if the document is not a valid seed.

    In that case ``draft`` contains the parts and steps that could be read. A draft can be checked too, so one check reports all faults.
    The spans of ``diagnostics`` refer to ``source``, the document.
    """

    seed: FormulaSeed | None
    draft: FormulaSeed | None
    diagnostics: tuple[Diagnostic, ...]
    source: Source

    @property
    def ok(self) -> bool:
        """Return whether the seed was read without an error."""
        return self.seed is not None


@frozen
class _Keys:
    """The keys of the parts of a seed, in one of the two forms."""

    fields: tuple[str, ...]
    keywords: tuple[str, ...]
    prompt: tuple[str, ...]
    steps: str
    outputs: str


_KEYS: dict[Form, _Keys] = {
    "002": _Keys(("extract", "fields"), ("filter", "keywords"), ("extract", "prompt"), "compute", "output"),
    "000": _Keys(("extraction_fields",), ("filter_keywords",), ("extraction_prompt",), "compute_dag", "output_fields"),
}
_OWN: dict[Form, tuple[str, ...]] = {
    "002": ("filter", "extract", "compute", "output"),
    "000": ("filter_keywords", "extraction_fields", "extraction_prompt", "compute_dag", "output_fields"),
}


def read_seed(source: "Source | str | Mapping[str, Any]") -> SeedRead:
    """Read a seed from JSON text, or from a Python object, which is written as JSON first. Never raises an error for a faulty seed."""
    if isinstance(source, Mapping):
        reason = not_json(source)
        if reason is not None:
            fault = Diagnostic("SEED001", "error", f"the seed cannot be written as JSON: {reason}")
            return SeedRead(None, None, (fault,), Source("", "<seed>"))
        source = Source(json.dumps(source, ensure_ascii=False, indent=2), "<seed>")
    elif isinstance(source, str):
        source = Source(source, "<seed>")
    return seed_in(read_json(source))


def seed_in(read: JsonRead) -> SeedRead:
    """Read a seed from a JSON document that is already parsed."""
    source = read.source
    if read.root is None:
        return SeedRead(None, None, read.diagnostics, source)
    found = list(read.diagnostics)
    if not isinstance(read.root.value, dict):
        hint = "a seed has filter, extract, compute and output"
        found.append(
            Diagnostic(
                "SEED001", "error", "a seed must be an object", Span(read.root.start, read.root.start + 1), (hint,)
            )
        )
        return SeedRead(None, None, tuple(sorted(found, key=sort_key)), source)
    form = _form(read.root, found)
    if form is None:
        return SeedRead(None, None, tuple(sorted(found, key=sort_key)), source)
    reader = _Reader(source, read.root, form, found)
    draft = reader.seed()
    if draft is None or has_errors(draft.diagnostics):
        return SeedRead(None, draft, tuple(sorted(found, key=sort_key)), source)
    return SeedRead(draft, None, draft.diagnostics, source)


def _form(root: JsonNode, found: list[Diagnostic]) -> Form | None:
    """Return the form that uses the keys of the document. If there are keys of both forms, report this and return None."""
    old, new = ([key for key in _OWN[form] if key in root.fields] for form in ("000", "002"))
    if old and new:
        message = f"the keys belong to two different forms of seeds: {', '.join(old)} and {', '.join(new)}"
        fewer = old if len(old) <= len(new) else new
        hints = tuple(
            f"{form} has the keys {', '.join(keys)}"
            for form, keys in zip(("one form", "the other form"), _OWN.values(), strict=True)
        )
        edits = _in_other_form(root, fewer)
        found.append(Diagnostic("SEED006", "error", message, root.keys[fewer[0]], hints, edits))
        return None
    if old or new:
        return "000" if old else "002"
    near = [nearest(key, [*_OWN["000"], *_OWN["002"]]) for key in list(root.fields)[:20]]
    return "000" if sum(each in _OWN["000"] for each in near) > sum(each in _OWN["002"] for each in near) else "002"


def _in_other_form(root: JsonNode, keys: list[str]) -> tuple[Edit, ...]:
    """Return the edits that replace ``keys`` with the keys of the other form.

    Return () if a key has no equivalent there, or if its new name is already in use.
    """
    edits: list[Edit] = []
    for key in keys:
        node, other = root.fields[key], other_form(key)
        if other is None or other[0] in root.fields:
            return ()
        new, before, after = other
        edits.append(Edit(root.keys[key], json.dumps(new)))
        edits += [Edit(Span(node.start, node.start), before), Edit(Span(node.end, node.end), after)] if before else []
    return tuple(edits)


@define
class _Reader:
    source: Source
    root: JsonNode
    form: Form
    found: list[Diagnostic]
    """The diagnostics; at first, those of the JSON text."""
    shapes: Shapes = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.shapes = Shapes(self.root, _KEYS[self.form].outputs, self.found)

    def seed(self) -> FormulaSeed | None:
        from .model import OPERATIONS, FieldModel, Seed000Model, Seed002Model

        keys = _KEYS[self.form]
        model = Seed000Model if self.form == "000" else Seed002Model
        if not self._within_limits(keys):
            return None
        fits = self.shapes.fits(model, self.root, ())
        self._missing_parts(frozenset(each.alias or name for name, each in model.model_fields.items()))
        if not fits and not self._within_limits(keys):  # ``fits`` may have corrected a misspelt key
            return None
        steps_node, fields_node = self._list((keys.steps,)), self._list(keys.fields)
        fields = self._fields(fields_node, keys.fields, FieldModel)
        parts = Declarations(self.root, self.shapes, self.found)
        meta, resolve = parts.meta(), parts.resolve()
        known = frozenset((*(each.name for each in fields), *(each.target for each in resolve)))
        reader = self._reader(steps_node, parts.names, known, frozenset(meta))
        reduce = parts.reduce(reader.wheres)
        steps = (*reduce, *self._steps(steps_node, keys.steps, reader, OPERATIONS))
        self._no_large_filters(steps)
        self._nothing_twice()
        document = self.root.value
        handling = document.get("review_handling")
        outputs = self._list((keys.outputs,))
        prompt = self._at(keys.prompt)
        return FormulaSeed(
            task_name=str(document.get("task_name", "")),
            keep=self._keep(keys),
            fields=fields,
            prompt=prompt.value if prompt is not None and isinstance(prompt.value, str) else None,
            meta=meta,
            examples=parts.examples(),
            resolve=resolve,
            review_handling=self._handling(handling),
            passes=2 if document.get("passes") == 2 else 1,
            allow_invalid=_share(document.get("allow_invalid")),
            steps=steps,
            outputs=tuple(each.value for each in outputs.items if isinstance(each.value, str)) if outputs else (),
            form=self.form,
            source=self.source,
            document=document,
            tree=self.root,
            diagnostics=tuple(sorted(self.found, key=sort_key)),
        )

    def _missing_parts(self, known: frozenset[str]) -> None:
        """Report that steps or outputs are missing. A seed that only extracts has neither; reduced values need no steps."""
        present = self.root.fields
        lacking = [key for key in ("compute", "output") if key not in present] if self.form == "002" else []
        fields = self._list(_KEYS[self.form].fields)
        extracts = fields is not None and bool(fields.items) and "reduce" not in present and known.issuperset(present)
        if (len(lacking) == 2 and extracts) or (lacking == ["compute"] and "reduce" in present):
            return
        for key in lacking:
            what = (
                "the steps, in the order of their dependencies"
                if key == "compute"
                else "the names of the steps to return"
            )
            at = Span(self.root.start, self.root.start + 1)
            self.found.append(Diagnostic("SEED003", "error", f"{key} is missing", at, (f"it is {what}",)))

    def _no_large_filters(self, steps: tuple[SeedStep, ...]) -> None:
        sizes: dict[str, int] = {}
        for step in steps:
            if isinstance(step, DefineFilter):
                size = sum(sizes.get(part.name, 1) if isinstance(part, FilterUse) else 1 for part in step.where)
                sizes[step.name] = size if size <= MAX_FILTER else 1
                if size > MAX_FILTER:
                    message = f"the filter {step.name} has more than {MAX_FILTER:,} conditions, including those of its filters"
                    at = Span(step.span.start, step.span.start + 1)
                    self.found.append(Diagnostic("SEED007", "error", message, at))

    def _nothing_twice(self) -> None:
        """Remove diagnostics that are equal to an earlier one."""
        self.found[:] = list(dict.fromkeys(self.found))

    def _at(self, path: JsonPath) -> JsonNode | None:
        return self.root.at(path)

    def _list(self, path: JsonPath) -> JsonNode | None:
        node = self._at(path)
        return node if node is not None and isinstance(node.value, list) else None

    def _keep(self, keys: _Keys) -> Keep:
        node, match = self._list(keys.keywords), self._at(("filter", "match"))
        words = tuple(each.value for each in node.items if isinstance(each.value, str)) if node else ()
        span = node.span if node else self.root.span
        how = next((each for each in get_args(KeepMatch) if match is not None and match.value == each), Keep().match)
        return Keep(words, how, span=span)

    def _handling(self, handling: Any) -> ReviewHandling:
        if not isinstance(handling, dict):
            return IN_PARTS
        length, strategy = handling.get("max_length", 2000), handling.get("strategy", "truncate_head")
        fits = isinstance(length, int) and not isinstance(length, bool) and strategy in get_args(Strategy)
        node = self.root.fields["review_handling"]
        return ReviewHandling(length, strategy, span=node.span) if fits else IN_PARTS

    def _within_limits(self, keys: _Keys) -> bool:
        steps, fields, keywords = (self._list(path) for path in ((keys.steps,), keys.fields, keys.keywords))
        is_within = True
        for node, path, most in (
            (steps, (keys.steps,), MAX_STEPS), (fields, keys.fields, MAX_FIELDS), (keywords, keys.keywords, MAX_KEYWORDS),
            (self._list((keys.outputs,)), (keys.outputs,), MAX_STEPS),
        ):  # fmt: skip
            if node is not None and len(node.items) > most:
                is_within = False
                self._too_much(
                    f"{path_text(path)} has {len(node.items):,} elements, more than the maximum of {most:,}", node
                )
        items = steps.items if steps else ()
        rules = [rule for item in items if "rules" in item.fields for rule in item.fields["rules"].items]
        if steps is not None and len(rules) > MAX_RULES:
            is_within = False
            self._too_much(f"the cases have {len(rules):,} rules, more than the maximum of {MAX_RULES:,}", steps)
        texts = [
            part.fields[key] for part in (*items, *rules) for key in ("expr", "formula", "when") if key in part.fields
        ]
        length = sum(len(node.value) for node in texts if isinstance(node.value, str))
        if steps is not None and length > MAX_EXPRESSIONS:
            is_within = False
            self._too_much(
                f"the expressions have {length:,} characters, more than the maximum of {MAX_EXPRESSIONS:,}", steps
            )
        return is_within

    def _too_much(self, message: str, node: JsonNode) -> None:
        self.found.append(Diagnostic("SEED007", "error", message, Span(node.start, node.start + 1)))

    # Parts

    def _fields(self, node: JsonNode | None, path: JsonPath, model: "type[BaseModel]") -> tuple[Extracted, ...]:
        reader = Fields(self.found)
        made = []
        for number, item in enumerate(node.items if node else ()):
            at = (*path, number)
            if self.shapes.fits(model, item, at) and self.shapes.is_name(item.fields["name"], (*at, "name")):
                made.append(reader.read(item, at))
        return tuple(each for each in made if each is not None)

    def _reader(
        self, node: JsonNode | None, before: frozenset[str], fields: frozenset[str], meta: frozenset[str]
    ) -> Steps:
        """Return the reader of the steps in ``node``; ``before`` are the names of values that exist before the steps."""
        from .model import Else, When

        items = node.items if node else ()
        names = before | {name for item in items if isinstance(name := _name_of(item), str)}
        texts = Texts(self.source, self.found)
        cases = Cases(names, texts, lambda rule, at, is_else: self.shapes.fits(Else if is_else else When, rule, at))
        return Steps(self.found, texts, Wheres(names, fields, self.found), cases, meta)

    def _steps(
        self, node: JsonNode | None, key: str, reader: Steps, operations: "dict[str, type[BaseModel]]"
    ) -> tuple[SeedStep, ...]:
        from .model import Step000Model

        made: list[SeedStep] = []
        for number, item in enumerate(node.items if node else ()):
            at: JsonPath = (key, number)
            if self.form == "000":
                fits = self.shapes.fits(Step000Model, item, at)
            else:
                model = self.shapes.operation(item, at, operations)
                fits = model is not None and self.shapes.fits(model, item, at)
            if not fits or not self.shapes.is_name(item.fields["name"], (*at, "name")):
                continue
            step = reader.formula(item, at) if self.form == "000" else reader.read(item, at)
            if step is not None:
                made.append(step)
        return tuple(made)


def _name_of(item: JsonNode) -> Any:
    return item.value.get("name") if isinstance(item.value, dict) else None


def _share(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= 1 else 0.0
