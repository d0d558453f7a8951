"""The third step: the seed, read and checked as any seed is, and against what the first step wants.

See ``docs/design/seed.md#compiler``.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence

from attrs import field, frozen

from ...lang.diagnostic import Diagnostic, Edit, has_errors, nearest, sort_key
from ...lang.documents.json_text import read_json
from ...lang.documents.json_tree import JsonNode
from ...lang.documents.seed import read_seed
from ...lang.linter.seed import check as lint
from ...lang.source import Source, Span
from ...lang.trees.seed import FormulaSeed
from .conditions import Conditions
from .graph import Graph
from .results import Judged

__all__ = ["Check", "SeedJudge", "final"]

Check = Callable[[FormulaSeed], Sequence[Diagnostic]]
"""Says all that is wrong with a seed; one that has contexts says also what only they show."""

_OTHER_FORM = "written with Python formulas (the older form); it was converted to declarative steps"


@frozen
class SeedJudge:
    """Judges answers to the third step. The errors include those of ``check``; outputs that the first step wants must be there."""

    conditions: Conditions
    graph: Graph
    check: Check = field(default=lint)

    def __call__(self, text: str) -> Judged:
        """Read and check an answer. Never raises for what it says."""
        written = read_json(Source(text, "<seed>"))
        if has_errors(written.diagnostics):  # what a broken text would say as a seed is a guess; it is mended first
            return Judged(None, written.diagnostics, written.source)
        read = read_seed(written.source)
        seed = read.seed or read.draft
        if seed is None:
            return Judged(None, read.diagnostics, read.source)
        found = dict.fromkeys((*self.check(seed), *read.diagnostics))
        if isinstance(seed.tree, JsonNode) and not any(each.code == "SEED002" for each in found):
            found = dict.fromkeys(self._agreeing(seed, seed.tree, list(found)))
        diagnostics = tuple(sorted(found, key=sort_key))
        if has_errors(diagnostics) or read.seed is None:
            return Judged(None, diagnostics, read.source)
        if seed.form == "000":
            from ...lang.documents.seed import convert

            rewritten = json.dumps(convert(seed).document, ensure_ascii=False, indent=2)
            return Judged(None, diagnostics, read.source, rewritten=(rewritten, _OTHER_FORM))
        return Judged(seed, diagnostics, read.source)

    def _agreeing(self, seed: FormulaSeed, root: JsonNode, found: list[Diagnostic]) -> Iterator[Diagnostic]:
        """Yield what was found, and what of the outputs is not as the first step wants it."""
        wanted, key = self.conditions.outputs, "output" if seed.form == "002" else "output_fields"
        steps = root.fields.get("compute" if seed.form == "002" else "compute_dag")
        names = [each.value.get("name") for each in steps.items if isinstance(each.value, dict)] if steps else []
        listed = root.fields.get(key)
        lost = {json.dumps(name) for name in wanted if name not in names}
        # that no step has an output's name is told below, the other way round: the output keeps its name
        yield from (
            each
            for each in found
            if not (each.code == "SEED049" and each.span is not None and seed.source.slice(each.span) in lost)
        )
        spare = [name for name in names if isinstance(name, str) and name not in wanted]
        for name in wanted:
            if name not in names:
                yield self._lost(name, spare, seed.source, steps, root)
            elif listed is not None and isinstance(listed.value, list) and name not in listed.value:
                text = (", " if listed.items else "") + json.dumps(name)
                edit = Edit(Span(listed.end - 1, listed.end - 1), text)
                message = f"{key}: the task wants {name}"
                yield Diagnostic("SEED049", "error", message, listed.span, (f"put {name} in",), (edit,))

    def _lost(self, name: str, spare: list[str], source: Source, steps: JsonNode | None, root: JsonNode) -> Diagnostic:
        near = nearest(name, spare)
        edits = (
            tuple(Edit(Span(*at.span()), name) for at in re.finditer(rf"\b{re.escape(near)}\b", source.text))
            if near
            else ()
        )
        start = (steps or root).start
        hint = f"did you mean {near}? an output keeps its name" if near else f"add a step {name}"
        return Diagnostic(
            "SEED049",
            "error",
            f"the task wants {name}, and no step has that name",
            Span(start, start + 1),
            (hint,),
            edits,
        )

    def notes(self, seed: FormulaSeed) -> list[str]:
        """Say in words where a good seed is not what the steps before said: nothing of the task should be lost on the way."""
        told = []
        for name, planned in self.conditions.fields.items():
            made = seed.field_by_name.get(name)
            if made is None:
                if name not in self.graph.unneeded:
                    told.append(f"the field {name} of the first step is not in the seed")
            elif gone := [value for value in planned.values if value not in made.values]:
                told.append(f"the field {name} is without {', '.join(gone[:6])}, which the first step has")
        nodes = [each["name"] for each in self.graph.document["nodes"]]
        if missing := [name for name in nodes if name not in seed.step_by_name]:
            shown = ", ".join(missing[:8]) + (", ..." if len(missing) > 8 else "")
            told.append(f"of the graph, the seed has no {shown}")
        return told


def final(seed: FormulaSeed, name: str, check: Check) -> tuple[FormulaSeed, str, tuple[Diagnostic, ...]]:
    """Return the seed with ``name`` as its task's name (where that is not empty), its JSON, and what is doubtful about it."""
    document = dict(seed.document)
    if name:
        document = {"task_name": name, **{key: value for key, value in document.items() if key != "task_name"}}
    text = json.dumps(document, ensure_ascii=False, indent=2)
    read = read_seed(Source(text, "<seed>"))
    if read.seed is None:  # it was a good one, and only its name is another
        raise AssertionError(f"a seed that was good is none any more: {read.diagnostics[:1]}")
    found = dict.fromkeys((*check(read.seed), *read.diagnostics))
    diagnostics = tuple(sorted(found, key=sort_key))
    return read.seed, text, diagnostics
