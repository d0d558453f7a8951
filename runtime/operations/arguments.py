"""A call's arguments and options as Python values.

The linter has told people about all of this before; a script that is still arriving has not been checked as a whole, so a
wrong value fails its step here.
"""

from typing import Any

from ...lang.catalogue.operations import COMMON_OPTIONS, OptionSpec, Signature
from ...lang.diagnostic import nearest
from ...lang.trees.lwt import Call, ListValue, ObjectValue, Scalar, Template, Value, Word
from ...lang.trees.lwt import Choice as ChoiceValue
from ..results import Failed, StepFailed

__all__ = ["constant", "read_options"]


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
