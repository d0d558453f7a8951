"""What an operation is, seen from the run: its signature, and a runner with what it may use."""

import asyncio
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from ....adapters.state import StateStore
from ....lang.catalogue.operations import COMMON_OPTIONS, OptionSpec, Signature
from ....lang.diagnostic import nearest
from ....lang.trees.lwt import Call, ListValue, ObjectValue, Scalar, Template, Value, Word
from ....lang.trees.lwt import Choice as ChoiceValue
from ...gasl.records import STOPPING, ContextStore
from ...models.caller import Caller
from ...results import Failed, Outcome, StepFailed
from ...templates import Scope

if TYPE_CHECKING:
    from ...gasl import GASLExecutor

__all__ = ["Context", "Operation", "Workshop", "constant", "read_beside", "read_options"]


# A call's arguments and options as Python values.
# The linter has told people about all of this before; a script that is still arriving has not been checked as a whole, so a wrong
# value fails its step here.


def constant(value: Value) -> Any:
    """Return the JSON value that ``value`` writes; raise ``StepFailed`` where it has references."""
    if isinstance(value, Scalar):
        return value.value
    if isinstance(value, Template) and value.constant is not None:
        return value.constant
    if isinstance(value, ListValue):
        return [constant(item) for item in value.items]
    if isinstance(value, ObjectValue):
        return {str(constant(key)): constant(entry) for key, entry in value.entries}
    raise StepFailed(Failed("operation", "this is no constant value", span=value.span))


def read_options(call: Call, signature: Signature) -> dict[str, Any]:
    """Return the call's options as Python values; templates and what leads to a value stay as they are.

    Those that every operation has are the run's business and left out. Raises ``StepFailed``.
    """
    read = {}
    for option in call.options:
        spec = signature.option(option.name)
        if spec is not None and spec is COMMON_OPTIONS.get(option.name):
            continue
        if spec is None:
            like = nearest(option.name, signature.option_names)
            hint = f"did you mean {like}=?" if like else f"there are: {', '.join(signature.option_names)}"
            message = f"{signature.name} has no option {option.name}="
            raise StepFailed(Failed("operation", message, hint, span=option.span))
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
    elif spec.kind == "checks":
        return _checks(value)
    elif spec.kind == "strings":
        given = constant(value)
        texts = [given] if isinstance(given, str) else given
        if isinstance(texts, list) and texts and len(texts) <= 4 and all(isinstance(text, str) for text in texts):
            return texts
    allowed = f"one of {', '.join(spec.values)}" if spec.values else _range(spec)
    raise StepFailed(Failed("operation", f"{spec.name}= must be {allowed}", span=value.span))


def _checks(value: Value) -> list[str]:
    """Return checks as they are written; whoever applies them reads them."""
    given = constant(value)
    texts = [given] if isinstance(given, str) else given
    if isinstance(texts, list) and texts and all(isinstance(text, str) for text in texts):
        return texts
    raise StepFailed(Failed("operation", "check= must be a text, or a list of them", span=value.span))


def _range(spec: OptionSpec) -> str:
    noun = {"int": "a whole number", "float": "a number", "strings": "a text or a list of up to four"}.get(spec.kind)
    bounds = f" from {spec.minimum:g} to {spec.maximum:g}" if None not in (spec.minimum, spec.maximum) else ""
    return f"{noun or 'a text'}{bounds}"


# What GASL steps of one run share: the graph, the state, and whose turn it is.


@define
class Workshop:
    """The graph and the state of a run of a script: steps that use them take turns.

    ``open`` makes an executor on a state that begins with some variables. ``run_id`` names the run in the state, so that a resumed
    run finds what it did before.
    """

    open: "Callable[[StateStore, ContextStore], GASLExecutor]"
    state: StateStore
    run_id: str = ""
    turn: asyncio.Lock = field(factory=asyncio.Lock, init=False)
    _committed: frozenset[str] | None = field(default=None, init=False)

    def committed(self) -> frozenset[str]:
        """Return the plans of earlier attempts at this run that the state has, as it was when this was first asked."""
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
"""Statuses of a block that left the state as it was."""


@frozen
class Context:
    """What a runner may use: the step's id, what references see, the models, and the graph where the run has one.

    ``folder`` is the script's own, where ``file=`` lies; None: the run reads no files. ``spec`` is the run's own model as the user
    wrote it, where that is known.
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
    """An operation: how it is written, and how it runs."""

    signature: Signature
    run: Runner = field(repr=False)


# The files that ``file=`` names: in the script's own folder, or below it, and nowhere else.

_MOST_BYTES = 2 << 20


def read_beside(name: str, folder: Path | None, suffix: str, call: Call, instead: str = "") -> str:
    """Return the text of a file that ends in ``suffix``, in ``folder`` or below it; None: the run reads no files.

    ``instead`` is what can be done without a file. Nothing outside the folder is read, neither by ``..`` nor through a link, no
    file that isn't a regular one, and none over 2 MiB. Raises ``StepFailed``.
    """
    if folder is None:
        hint = instead or "a file is read only for a script that is a file itself"
        raise StepFailed(Failed("operation", "this run reads no files", hint, call.span))
    folder = folder.resolve()
    try:
        path = (folder / name).resolve()
        inside = path.is_relative_to(folder) and path.name.endswith(suffix) and path.name != suffix
    except (OSError, ValueError, RuntimeError):  # a loop of links, or a name that no file can have
        inside = False
    if not inside:
        hint = f"file= names a {suffix} file in the script's own folder"
        raise StepFailed(Failed("operation", f"{name} may not be read", hint, call.span))
    try:
        there = path.stat()
        if not stat.S_ISREG(there.st_mode):  # a pipe would be waited for
            raise StepFailed(Failed("operation", f"{name} can't be read: it is no regular file", span=call.span))
        if there.st_size > _MOST_BYTES:
            raise StepFailed(Failed("operation", f"{name} is larger than {_MOST_BYTES >> 20} MiB", span=call.span))
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise StepFailed(Failed("operation", f"{name} can't be read: {reason}", span=call.span)) from None
