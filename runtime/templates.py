"""Substitution: renders prompts from templates, and resolves accessors into values.

Rendering is one pass over the parsed template, not over text: inserted outputs are never scanned for references. See
``docs/design/lwt.md#meaning``.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import define, field

from ..lang.catalogue.operations import BUILTIN
from ..lang.diagnostic import nearest
from ..lang.literals import Reading, Unreadable, kind_of, read, short
from ..lang.source import Span
from ..lang.trees.lwt import Accessor, Index, Key, Mode, Reference, Slice, Step, Template, Text
from .results import Access, Failed, StepFailed, StepResult, Trace, plain

if TYPE_CHECKING:
    from ..lang.parse.expr import ExprRead

LONGEST = 4_000_000
"""Maximum characters of a rendered template. Without a limit, a short template that repeats a long input could fill the memory."""


@define
class Scope:
    """The values visible to references: the input (None: no input), the results so far, and the current item of EACH.

    ``warn(step, message)`` receives the warnings of lenient mode. ``readings`` caches the values read from step outputs, and
    ``texts`` caches the input as JSON, so that a thousand references read or write them only once. ``steps`` are the syntax trees
    of the steps in ``results``. ``expressions`` maps the text of each expression in the script to the parsed expression.
    """

    step: str
    input: Any
    results: Mapping[str, StepResult]
    trace: Trace
    warn: Callable[[str, str], None]
    mode: Mode = "strict"
    readings: dict[str, Reading | Unreadable] = field(factory=dict)
    texts: dict[str, str] = field(factory=dict)
    item: Any = None
    index: int | None = None
    steps: Mapping[str, Step] = field(factory=dict)
    expressions: "dict[str, ExprRead]" = field(factory=dict)

    def of(self, step: str) -> "Scope":
        """Return this scope for another step, without an item; the caches are shared."""
        return Scope(
            step, self.input, self.results, self.trace, self.warn, self.mode, self.readings, self.texts, None, None, self.steps,
            self.expressions,
        )  # fmt: skip

    def at(self, index: int, item: Any) -> "Scope":
        """Return this scope for one item of EACH."""
        return Scope(
            self.step, self.input, self.results, self.trace, self.warn, self.mode, self.readings, self.texts, item, index, self.steps,
            self.expressions,
        )  # fmt: skip

    def note(self, reference: Reference, accessors: int, how: str) -> None:
        """Record how the text was read for ``reference`` and its first ``accessors`` accessors."""
        self.trace.note(Access(self.step, reference_text(reference, accessors), how))


def render(template: Template, scope: Scope) -> str:
    """Return the template's text with every reference replaced.

    If a reference can't be resolved, raises ``StepFailed`` in strict mode; in lenient mode, gives a warning and inserts nothing.
    """
    parts = []
    for part in template.parts:
        if isinstance(part, Text):
            parts.append(part.value)
        elif not part.accessors and part.name in scope.results:
            parts.append(scope.results[part.name].output)
        else:
            parts.append(_substituted(part, scope))
    if (size := sum(map(len, parts))) > LONGEST:
        raise StepFailed(
            Failed("operation", f"the text would have {size:,} characters", f"at most {LONGEST:,}", template.span)
        )
    return "".join(parts)


def _substituted(reference: Reference, scope: Scope) -> str:
    whole_input = reference.name == "input" and not reference.accessors
    if whole_input and "input" in scope.texts:
        return scope.texts["input"]
    try:
        text = text_of(resolve(reference, scope), reference)
        if whole_input:
            scope.texts["input"] = text
        return text
    except StepFailed as error:
        if scope.mode == "strict" or error.failed.kind != "reference":
            raise
        scope.note(reference, len(reference.accessors), "missing")
        scope.warn(scope.step, f"{error.failed.message}; nothing was inserted")
        return ""


def resolve(reference: Reference, scope: Scope) -> Any:
    """Return the value of ``reference``; raise ``StepFailed`` if the reference can't be resolved.

    If the step was skipped because its condition is false, the value is null, with or without accessors.
    """
    value = _base(reference, scope)
    if value is None and reference.accessors and _is_left_out(reference.name, scope):
        scope.note(reference, len(reference.accessors), "skipped")
        return None
    for position, accessor in enumerate(reference.accessors):
        if isinstance(value, str):
            value = _read(value, reference, position, scope)
            if isinstance(accessor, Slice) and isinstance(value, str):
                scope.note(reference, position + 1, "text")
        value = _step_into(value, accessor, reference, position, scope)
    return value


def _is_left_out(step: str, scope: Scope) -> bool:
    return step in scope.results and scope.results[step].unmet


def value_of(reference: Reference, scope: Scope) -> Any:
    """Return the JSON value of ``reference`` in an expression.

    A value keeps its type. The answer of a step without ``type=`` is a string that may contain a value: the value is read in the same
    way as for an accessor, and the string is unchanged if it contains no value. If the reference can't be resolved, raises
    ``StepFailed`` in strict mode; in lenient mode, gives a warning and returns null.
    """
    try:
        value = plain(resolve(reference, scope))
    except StepFailed as error:
        if scope.mode == "strict" or error.failed.kind != "reference":
            raise
        scope.note(reference, len(reference.accessors), "missing")
        scope.warn(scope.step, f"{error.failed.message}; null was used")
        return None
    if not isinstance(value, str) or reference.accessors or not _is_untyped(scope.steps.get(reference.name)):
        return value
    found = _reading(value, reference.name, True, scope)
    if isinstance(found, Unreadable):
        return value
    scope.note(reference, 0, found.how)
    return found.value


def _is_untyped(step: Step | None) -> bool:
    """Return whether the step's output is a model's answer without a requested type."""
    if step is None or step.call.operation in BUILTIN.keys() - {"LLM"}:
        return False
    return step.call.option("type") is None


def text_of(value: Any, reference: Reference | None = None) -> str:
    """Return ``value`` as text for a prompt: a string unchanged, any other value as JSON, a ``Failed`` as null."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(plain(value), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        where = f"{reference_text(reference)}: " if reference else ""
        span = reference.span if reference else None
        raise StepFailed(Failed("input", f"{where}the value can't be written as JSON: {reason}", span=span)) from None


def reference_text(reference: Reference, accessors: int | None = None) -> str:
    """Return the reference as written in a script, with its first ``accessors`` accessors (None: all); a long list is shortened."""
    shown = reference.accessors[: len(reference.accessors) if accessors is None else accessors]
    marks = [_mark(accessor) for accessor in (shown if len(shown) <= 12 else shown[:6] + shown[-6:])]
    if len(shown) > 12:
        marks.insert(6, "…")
    return f"{{({reference.name})}}{''.join(marks)}"


def _mark(accessor: Accessor) -> str:
    if isinstance(accessor, Key):
        return f"[{short(accessor.value)}]"
    if isinstance(accessor, Index):
        return f"[{accessor.value}]"
    start = "" if accessor.start is None else accessor.start
    stop = "" if accessor.stop is None else accessor.stop
    return f"[{start}:{stop}]"


def _base(reference: Reference, scope: Scope) -> Any:
    name = reference.name
    if name == "input":
        if scope.input is None:
            message = f"{reference_text(reference)}: the run has no input"
            raise StepFailed(
                Failed("input", message, "give an input: --input FILE, or input= in Python", reference.span)
            )
        return scope.input
    if name == "item" and scope.index is not None:
        return scope.item
    if name == "index" and scope.index is not None:
        return scope.index
    result = scope.results.get(name)
    if result is None:
        raise _missing(reference, 0, f"the step ({name}) has no output")
    return result.value


def _read(text: str, reference: Reference, position: int, scope: Scope) -> Any:
    """Read ``text`` as a value for the accessor at ``position``; for a slice, plain text is returned unchanged."""
    found = _reading(text, reference.name, position == 0 and reference.name not in ("item", "index"), scope)
    sliced = isinstance(reference.accessors[position], Slice)
    if isinstance(found, Reading) and (not sliced or isinstance(found.value, list | str) or _is_object(text, found)):
        scope.note(reference, position + 1, found.how)
        return found.value
    if sliced:
        return text
    reason = found.reason if isinstance(found, Unreadable) else ""
    raise _missing(reference, position, f"the text can't be read as a value: {reason}; it is {short(text.strip())}")


def _is_object(text: str, found: Reading) -> bool:
    """Return whether the entire text is an object, which can't be sliced. Prose that contains an object is not an object."""
    return isinstance(found.value, dict) and (found.how != "fence" or text.lstrip().startswith(("```", "~~~")))


def _reading(text: str, name: str, whole: bool, scope: Scope) -> Reading | Unreadable:
    """Return the value in ``text``. If ``text`` is the ``whole`` output of the step ``name``, the value is cached."""
    found = scope.readings.get(name) if whole else None
    if found is None:
        found = read(text)
        if whole:
            scope.readings[name] = found
    return found


def _step_into(value: Any, accessor: Accessor, reference: Reference, position: int, scope: Scope) -> Any:
    if isinstance(accessor, Key) and accessor.value == "index" and scope.index is not None and isinstance(value, list):
        accessor = Index(scope.index, span=accessor.span)  # in EACH, [index] is the item's position
        if not -len(value) <= scope.index < len(value):
            what = f"index is {scope.index} here, and {_length(value)}"
            raise _missing(reference, position, what)
    if isinstance(accessor, Key):
        if not isinstance(value, dict):
            raise _missing(reference, position, f"the value is {_described(value)}, which has no keys")
        if accessor.value in value:
            return value[accessor.value]
        raise _missing(reference, position, *_no_key(accessor.value, value))
    if isinstance(accessor, Slice) and isinstance(value, str):
        return value[accessor.start : accessor.stop]
    if not isinstance(value, list | tuple):
        hint = ""
        if isinstance(accessor, Index) and isinstance(value, dict) and str(accessor.value) in value:
            hint = f'the object has this key; write ["{accessor.value}"]'
        part = "element" if isinstance(accessor, Index) else "slice"
        what = f"the value is {_described(value)}, not a list, so it has no {part}"
        kind = "reference" if value is None or isinstance(value, str | Failed) else "access"
        raise _missing(reference, position, what, hint, kind)
    if isinstance(accessor, Slice):
        return list(value[accessor.start : accessor.stop])
    if -len(value) <= accessor.value < len(value):
        return value[accessor.value]
    raise _missing(reference, position, _length(value))


def _length(value: Sequence[Any]) -> str:
    return f"the list has {len(value)} element{'' if len(value) == 1 else 's'}, counted from 0"


def _described(value: Any) -> str:
    if isinstance(value, Failed):
        return "a failed item"
    return kind_of(value) if not isinstance(value, str) else f"the text {short(value)}"


def _no_key(key: str, value: dict[Any, Any]) -> tuple[str, str]:
    keys = [k for k in value if isinstance(k, str)]
    shown = ", ".join(short(k, 40) for k in keys[:8])
    more = f" and {len(keys) - 8} more" if len(keys) > 8 else ""
    there = f"the keys are {shown}{more}" if keys else "the object is empty"
    like = nearest(key, keys[:10_000])
    return f"unknown key {short(key)}; {there}", f"did you mean [{short(like)}]?" if like else ""


def _missing(reference: Reference, position: int, what: str, hint: str = "", kind: str = "reference") -> StepFailed:
    span: Span = reference.span
    if position < len(reference.accessors) and reference.accessors[position].span.end:
        span = reference.accessors[position].span
    return StepFailed(Failed(kind, f"{reference_text(reference, position + 1)}: {what}", hint, span))
