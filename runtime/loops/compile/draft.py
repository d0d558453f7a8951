"""The third step: reads the seed, checks it like any seed, and compares it with the first step.

See ``docs/design/seed.md#compiler``.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence

from attrs import field, frozen

from ....lang.diagnostic import Diagnostic, Edit, apply_edits, has_errors, is_slip, nearest, sort_key
from ....lang.documents.json_text import read_json
from ....lang.documents.json_tree import JsonNode
from ....lang.documents.seed import read_seed
from ....lang.linter.seed import check as lint
from ....lang.source import Source, Span
from ....lang.trees.seed import FormulaSeed
from ...excerpts import clipped
from .compile_results import CheckedAnswer, Fix
from .computation_graph import Graph
from .conditions import Conditions

Check = Callable[[FormulaSeed], Sequence[Diagnostic]]
"""Returns all diagnostics of a seed; a check with contexts also reports the faults that only the contexts reveal."""

_OTHER_FORM = "written with Python formulas (the older form); it was converted to declarative steps"


@frozen
class SeedJudge:
    """Checks answers to the third step: reports the errors that ``check`` finds, and missing outputs of the first step."""

    conditions: Conditions
    graph: Graph
    check: Check = field(default=lint)

    def __call__(self, text: str) -> CheckedAnswer:
        """Read and check an answer. Faults in the answer never raise an exception."""
        written = read_json(Source(text, "<seed>"))
        if has_errors(written.diagnostics):  # broken JSON is repaired before the seed is checked
            return CheckedAnswer(None, written.diagnostics, written.source)
        read = read_seed(written.source)
        seed = read.seed or read.draft
        if seed is None:
            return CheckedAnswer(None, read.diagnostics, read.source)
        found = dict.fromkeys((*self.check(seed), *read.diagnostics))
        if isinstance(seed.tree, JsonNode) and not any(each.code == "SEED002" for each in found):
            found = dict.fromkeys(self._agreeing(seed, seed.tree, list(found)))
        diagnostics = tuple(sorted(found, key=sort_key))
        if has_errors(diagnostics) or read.seed is None:
            return CheckedAnswer(None, diagnostics, read.source)
        if seed.form == "000":
            from ....lang.documents.seed import convert

            rewritten = json.dumps(convert(seed).document, ensure_ascii=False, indent=2)
            return CheckedAnswer(None, diagnostics, read.source, rewritten=(rewritten, _OTHER_FORM))
        return CheckedAnswer(seed, diagnostics, read.source)

    def _agreeing(self, seed: FormulaSeed, root: JsonNode, found: list[Diagnostic]) -> Iterator[Diagnostic]:
        """Yield ``found``, and an error for each output of the first step that the seed lacks."""
        wanted, key = self.conditions.outputs, "output" if seed.form == "002" else "output_fields"
        steps = root.fields.get("compute" if seed.form == "002" else "compute_dag")
        names = [each.value.get("name") for each in steps.items if isinstance(each.value, dict)] if steps else []
        listed = root.fields.get(key)
        lost = {json.dumps(name) for name in wanted if name not in names}
        # The error "an output has no step" is dropped here: the error below suggests renaming a step, not the output.
        yield from (
            each
            for each in found
            if not (each.code == "SEED049" and each.span is not None and seed.source.slice(each.span) in lost)
        )
        spare = [name for name in names if isinstance(name, str) and name not in wanted]
        for name in wanted:
            if name not in names:
                yield self._missing_output(name, spare, seed.source, steps, root)
            elif listed is not None and isinstance(listed.value, list) and name not in listed.value:
                text = (", " if listed.items else "") + json.dumps(name)
                edit = Edit(Span(listed.end - 1, listed.end - 1), text)
                message = f"{key}: the output {name} of the task is missing"
                yield Diagnostic("SEED049", "error", message, listed.span, (f"add {name}",), (edit,))

    def _missing_output(
        self, name: str, spare: list[str], source: Source, steps: JsonNode | None, root: JsonNode
    ) -> Diagnostic:
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
            f"no step computes the output {name} of the task",
            Span(start, start + 1),
            (hint,),
            edits,
        )

    def notes(self, seed: FormulaSeed) -> list[str]:
        """Return remarks on the fields, enum values and nodes of the earlier steps that a valid seed lacks."""
        told = []
        for name, planned in self.conditions.fields.items():
            made = seed.field_by_name.get(name)
            if made is None:
                if name not in self.graph.unneeded:
                    told.append(f"the field {name} of the first step is not in the seed")
            elif gone := [value for value in planned.values if value not in made.values]:
                told.append(f"the field {name} lacks {', '.join(gone[:6])}, which the first step lists")
        nodes = [each["name"] for each in self.graph.document["nodes"]]
        if missing := [name for name in nodes if name not in seed.step_by_name]:
            shown = ", ".join(missing[:8]) + (", ..." if len(missing) > 8 else "")
            told.append(f"the seed lacks these nodes of the graph: {shown}")
        return told


def final(seed: FormulaSeed, name: str, check: Check) -> tuple[FormulaSeed, str, tuple[Diagnostic, ...]]:
    """Return the seed, its JSON, and its warnings. If ``name`` is not empty, the seed gets it as its task name."""
    document = dict(seed.document)
    if name:
        document = {"task_name": name, **{key: value for key, value in document.items() if key != "task_name"}}
    text = json.dumps(document, ensure_ascii=False, indent=2)
    read = read_seed(Source(text, "<seed>"))
    if read.seed is None:  # the seed had no errors, and only its task name has changed
        raise AssertionError(f"renaming the task made the seed invalid: {read.diagnostics[:1]}")
    found = dict.fromkeys((*check(read.seed), *read.diagnostics))
    diagnostics = tuple(sorted(found, key=sort_key))
    return read.seed, text, diagnostics


# Repairs an answer without a call: applies the edits offered by its diagnostics, if the edits are certain. Each fix is reported.
# An edit that guesses a name is certain only if the two names are one typo apart: "negatve" is "negative", but "neutral"
# might mean any value of an enum, so its repair is left to the model.

_ROUNDS = 40
_GUESSES = frozenset({
    "SEED002", "SEED008", "SEED040", "SEED044", "SEED045", "SEED047", "SEED049", "EXPR050", "EXPR051", "EXPR052", "EXPR054", "EXPR056",
    "EXPR057", "EXPR058", "EXPR059",
})  # fmt: skip
"""Codes of diagnostics whose edits may guess a name."""
_WORD = re.compile(r"""["'$]{0,2}[\w .]{1,200}["']?""")
_SHOWN = 80
_BRACKETS = 3
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|[\[\]{}]', re.DOTALL)
"""A quoted string, or a bracket outside quotes."""


@frozen
class FixedDraft:
    """An answer after the fixes; the remaining errors are in ``judged``."""

    judged: CheckedAnswer
    mended: tuple[Fix, ...] = ()


def fix_draft(text: str, judge: Callable[[str], CheckedAnswer]) -> FixedDraft:
    """Check ``text`` and apply the certain edits of its errors; repeat this as long as the text gets better (``_is_better``)."""
    judged, told = judge(text), list[Fix]()
    for _ in range(_ROUNDS):
        if judged.rewritten is not None:
            text, why = judged.rewritten
            told.append(Fix("", why))
            judged = judge(text)
            continue
        source = judged.source.text
        chosen = _apart(_certain(judged))
        if not chosen:
            closed = _closed(judged, judge)
            if closed is None:
                break
            judged, put_in = closed
            told.append(put_in)
            continue
        after = judge(apply_edits(source, [edit for each in chosen for edit in each.edits]))
        if len(chosen) > 1 and not _is_better(after, judged):  # one edit may undo another's fix
            chosen = chosen[:1]
            after = judge(apply_edits(source, chosen[0].edits))
        if not _is_better(after, judged):
            break
        told += [_fix_of(each, source) for each in chosen]
        judged = after
    return FixedDraft(judged, tuple(told))


def _closed(judged: CheckedAnswer, judge: Callable[[str], CheckedAnswer]) -> tuple[CheckedAnswer, Fix] | None:
    """Append the missing closing brackets if the text ends with a closing bracket and nothing else is missing; otherwise return None.

    A closing bracket at the end shows that the model itself ended the answer. A truncated answer, which may end anywhere, never
    reaches this function.
    """
    text = judged.source.text.rstrip()
    if len(judged.errors) != 1 or not judged.errors[0].code.startswith("JSON") or text[-1:] not in ("]", "}"):
        return None
    missing = _missing(text)
    if not 0 < len(missing) <= _BRACKETS:
        return None
    after = judge(text + missing)
    if any(each.code.startswith("JSON") for each in after.errors):
        return None
    return after, Fix(judged.errors[0].code, clipped(judged.errors[0].message, 300), f"`{missing}` inserted")


def _missing(text: str) -> str:
    """Return the closing brackets that ``text`` lacks at its end; "" if its brackets don't match."""
    open_: list[str] = []
    for found in _BRACKET.finditer(text):
        mark = found[0]
        if mark in ("{", "["):
            open_.append("}" if mark == "{" else "]")
        elif mark in ("}", "]") and (not open_ or open_.pop() != mark):
            return ""
    return "".join(reversed(open_))


def _certain(judged: CheckedAnswer) -> list[Diagnostic]:
    """Return the errors with certain fixes; omit expressions with other errors, because a partial fix may change the meaning."""
    sure = [each for each in judged.errors if each not in judged.offered and is_certain(each, judged.source.text)]
    left = {_place(each) for each in judged.errors if each.code.startswith("EXPR") and each not in sure}
    return [each for each in sure if not each.code.startswith("EXPR") or _place(each) not in left]


def _place(diagnostic: Diagnostic) -> str:
    """Return the path at the beginning of a message about an expression."""
    return diagnostic.message.partition(": ")[0]


def _is_better(after: CheckedAnswer, before: CheckedAnswer) -> bool:
    """Return whether ``after`` has fewer errors than ``before``, or the same number of errors that are all new or begin later.

    A check reports only a few errors at a time, so new or later errors mean progress.
    """
    broken, still = _broken(before), _broken(after)
    if broken != still:
        return still < broken  # errors can only be counted in text that is valid JSON
    if len(after.errors) != len(before.errors):
        return len(after.errors) < len(before.errors)
    seen = {(each.code, each.message) for each in before.errors}
    return not any((each.code, each.message) in seen for each in after.errors) or _first_position(
        after
    ) > _first_position(before)


def _broken(judged: CheckedAnswer) -> int:
    return sum(each.code.startswith("JSON") for each in judged.errors)


def _first_position(judged: CheckedAnswer) -> int:
    return min((each.span.start for each in judged.errors if each.span is not None), default=0)


def is_certain(diagnostic: Diagnostic, text: str) -> bool:
    """Return whether the edits of a diagnostic about ``text`` are certain: they need no decision by a model or a person."""
    if not diagnostic.edits:
        return False
    return diagnostic.code not in _GUESSES or all(_is_alike(edit, text) for edit in diagnostic.edits)


def _is_alike(edit: Edit, text: str) -> bool:
    old, new = text[edit.span.start : edit.span.end], edit.text
    if not old or not _WORD.fullmatch(old) or not _WORD.fullmatch(new):
        return True  # not a guess at a name: text is inserted, or rewritten in another form
    one, other = _bare_name(old), _bare_name(new)
    if one == other or (min(len(one), len(other)) >= 3 and one in (other, other.rpartition(".")[2])):
        return True
    return is_slip(one, other)


def _bare_name(name: str) -> str:
    return re.sub(r"[\s_\"'$]", "", name).casefold()


def _apart(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Return the diagnostics whose edits don't overlap the edits of an earlier diagnostic: a fix is applied completely or not at all."""
    made: list[Diagnostic] = []
    taken: list[Edit] = []
    for each in found:
        if not any(_overlap(edit, other) for edit in each.edits for other in taken):
            made.append(each)
            taken += each.edits
    return made


def _overlap(one: Edit, other: Edit) -> bool:
    a, b = one.span, other.span
    return (a.start < b.end and b.start < a.end) or (a.start == b.start and (a.end == a.start or b.end == b.start))


def _fix_of(diagnostic: Diagnostic, text: str) -> Fix:
    edits = diagnostic.edits
    old = clipped(text[edits[0].span.start : edits[0].span.end], _SHOWN)
    new = clipped(edits[0].text, _SHOWN)
    how = f"`{old}` replaced by `{new}`" if old and new else f"`{old}` removed" if old else f"`{new}` inserted"
    more = f", and {len(edits) - 1} more" if len(edits) > 1 else ""
    return Fix(diagnostic.code, clipped(diagnostic.message, 300), how + more)
