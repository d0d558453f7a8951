"""The run-time interface of an operation: its signature, its runner, and the runner's context."""

import asyncio
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from ....adapters.state import StateStore
from ....lang.catalogue.operations import COMMON_OPTIONS, OptionSpec, Signature
from ....lang.diagnostic import nearest
from ....lang.source import Span
from ....lang.trees.lwt import Call, ListValue, ObjectValue, Scalar, Template, Value, Word
from ....lang.trees.lwt import Choice as ChoiceValue
from ...gasl.records import STOPPING, ContextStore
from ...models.caller import Caller
from ...results import Failed, Outcome, StepFailed
from ...templates import Scope

if TYPE_CHECKING:
    from ...gasl import GASLExecutor

# Converts a call's arguments and options to Python values.
# The linter reports invalid values before a run. But a script that is still arriving has not been checked as a whole, so an invalid
# value fails its step here.


def invalid(message: str, span: Span, hint: str = "") -> StepFailed:
    """Return the failure of a step whose call is invalid at ``span``."""
    return StepFailed(Failed("operation", message, hint, span))


def constant(value: Value) -> Any:
    """Return the JSON value that ``value`` denotes. Raises ``StepFailed`` if ``value`` has references."""
    if isinstance(value, Scalar):
        return value.value
    if isinstance(value, Template) and value.constant is not None:
        return value.constant
    if isinstance(value, ListValue):
        return [constant(item) for item in value.items]
    if isinstance(value, ObjectValue):
        return {str(constant(key)): constant(entry) for key, entry in value.entries}
    raise invalid("this is not a constant value", value.span)


def read_options(call: Call, signature: Signature) -> dict[str, Any]:
    """Return the call's options as Python values; templates and references are unchanged.

    Options that are common to all operations are omitted, because the run handles them. Raises ``StepFailed``.
    """
    read = {}
    for option in call.options:
        spec = signature.option(option.name)
        if spec is not None and spec is COMMON_OPTIONS.get(option.name):
            continue
        if spec is None:
            like = nearest(option.name, signature.option_names)
            hint = f"did you mean {like}=?" if like else f"available: {', '.join(signature.option_names)}"
            message = f"{signature.name} has no option {option.name}="
            raise invalid(message, option.span, hint)
        read[option.name] = _option(option.value, spec)
    return read


def _option(value: Value, spec: OptionSpec) -> Any:
    if (spec.kind == "template" and isinstance(value, Template)) or spec.kind == "value":
        return value
    if spec.kind == "type":
        if isinstance(value, ChoiceValue):
            return tuple(str(constant(label)) for label in value.labels)
        if isinstance(value, Template):
            label = str(constant(value))
            return label if label in spec.values else (label,)
    if spec.kind in ("type", "name") and isinstance(value, Word | Template):
        word = value.value if isinstance(value, Word) else value.constant
        if word in spec.values:
            return word
    elif spec.kind in ("int", "float") and isinstance(value, Scalar):
        number = value.value
        if isinstance(number, int | float) and not isinstance(number, bool):
            whole = isinstance(number, int) or spec.kind == "float"
            low = spec.minimum is None or number >= spec.minimum
            if whole and low and (spec.maximum is None or number <= spec.maximum):
                return number
    elif spec.kind == "string" and isinstance(value, Template) and value.constant is not None:
        return value.constant
    elif spec.kind in ("checks", "strings"):  # the evaluator parses the checks
        given = constant(value)
        texts = [given] if isinstance(given, str) else given
        few = spec.kind == "checks" or (isinstance(texts, list) and len(texts) <= 4)
        if isinstance(texts, list) and texts and few and all(isinstance(text, str) for text in texts):
            return texts
    allowed = f"one of {', '.join(spec.values)}" if spec.values else _range(spec)
    raise invalid(f"{spec.name}= must be {allowed}", value.span)


def _range(spec: OptionSpec) -> str:
    noun = {"int": "a whole number", "float": "a number", "checks": "a text, or a list of texts"}.get(spec.kind)
    if spec.kind == "strings":
        noun = "a text or a list of up to four"
    bounds = f" from {spec.minimum:g} to {spec.maximum:g}" if None not in (spec.minimum, spec.maximum) else ""
    return f"{noun or 'a text'}{bounds}"


# The graph and the state that the GASL steps of a run share, with a lock.


@define
class Workshop:
    """The graph and the state of a script's run. Only one step uses them at a time.

    ``open`` creates an executor from a state and initial variables. ``run_id`` identifies the run in the state's history, so that a
    resumed run finds the changes that it already made.
    """

    open: "Callable[[StateStore, ContextStore], GASLExecutor]"
    state: StateStore
    run_id: str = ""
    turn: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _committed: frozenset[str] | None = field(default=None, init=False)

    def committed(self) -> frozenset[str]:
        """Return the plans of this run that the state's history had when this method was first called, from earlier attempts."""
        if self._committed is None:
            self._committed = frozenset(
                entry["plan_id"]
                for entry in self.state.history
                if "part" not in entry
                and str(entry.get("plan_id")).startswith(f"{self.run_id}/")
                and entry.get("status") not in _UNDONE
                and not entry.get("rolled_back")
            )
        return self._committed


_UNDONE = STOPPING | {"cancelled"}
"""The statuses of a block that leave the state unchanged."""


@frozen
class Context:
    """The context of a runner: the step's id, the scope of references, the models, and the graph if the run has one.

    ``folder`` is the script's folder, for ``file=``; None: the run reads no files. ``spec`` is the spec of the run's default model as
    the user wrote it, if known.
    """

    step: str
    scope: Scope
    caller: Caller
    workshop: Workshop | None = None
    folder: Path | None = None
    spec: str = ""


Runner = Callable[[Call, Context], Awaitable[Outcome]]


@frozen
class Operation:
    """An operation: its signature and its runner."""

    signature: Signature
    run: Runner = field(repr=False)


# Reads the files named by ``file=``, which must be in the script's folder or below it.

_MOST_BYTES = 2 << 20


def read_beside(name: str, folder: Path | None, suffix: str, call: Call, instead: str = "") -> str:
    """Return the text of the file ``name`` with this ``suffix`` in ``folder`` or below it (None: the run reads no files).

    ``instead`` is a hint with an alternative to a file. Raises ``StepFailed`` for files outside the folder (also through ``..`` or a
    link), for files that are not regular, and for files over 2 MiB.
    """
    if folder is None:
        hint = instead or "files are read only for a script that is a file itself"
        raise invalid("this run reads no files", call.span, hint)
    folder = folder.resolve()
    try:
        path = (folder / name).resolve()
        inside = path.is_relative_to(folder) and path.name.endswith(suffix) and path.name != suffix
    except (OSError, ValueError, RuntimeError):  # a cycle of links, or an invalid file name
        inside = False
    if not inside:
        hint = f"file= must name a {suffix} file in the script's folder"
        raise invalid(f"{name} is not allowed", call.span, hint)
    try:
        there = path.stat()
        if not stat.S_ISREG(there.st_mode):  # reading a pipe would block
            raise invalid(f"{name} can't be read: it is not a regular file", call.span)
        if there.st_size > _MOST_BYTES:
            raise invalid(f"{name} is larger than {_MOST_BYTES >> 20} MiB", call.span)
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise invalid(f"{name} can't be read: {reason}", call.span) from None
