"""The values of the options ``examples=``, ``messages=`` and ``images=`` of ``LLM``: their forms and their limits.

The linter checks constants with these functions, and a run checks the values of references.
"""

from collections.abc import Callable
from typing import Any

from .literals import kind_of, short

MOST_EXAMPLES = 50
"""Maximum number of examples of a call."""
MOST_MESSAGES = 200
"""Maximum number of earlier messages of a call."""
MOST_IMAGES = 8
"""Maximum number of images of a call."""
ROLES = ("system", "user", "assistant")
"""The roles of a message."""

IMAGES_FORM = 'for example `images={(input)}["photo"]`'
EXAMPLES_FORM = 'for example `examples=[{"in": "Lovely!", "out": "glad"}]`'
MESSAGES_FORM = 'for example `messages=[{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi!"}]`'


def examples_fault(value: Any, misfit: Callable[[Any], str] | None = None) -> str:
    """Return the first fault of a list of examples, as the end of a sentence about it; "" if there is none.

    An example is an object with the keys ``in`` and ``out``. ``in`` is a text or another JSON value, but not empty. ``misfit`` returns
    the reason why an ``out`` does not fit the type of the answer, or "".
    """
    if not isinstance(value, list):
        return f'takes a list of objects with "in" and "out", not {kind_of(value)}'
    if len(value) > MOST_EXAMPLES:
        return f"takes at most {MOST_EXAMPLES} examples, not {len(value):,}"
    for number, example in enumerate(value, 1):
        if not isinstance(example, dict):
            return f'takes objects with "in" and "out", but example {number} is {kind_of(example)}'
        if fault := _keys_fault(example, ("in", "out")):
            return f"has a fault in example {number}: {fault}"
        for name in ("in", "out"):
            if _is_blank(example[name]):
                return f'has a fault in example {number}: "{name}" is empty'
        if misfit is not None and (reason := misfit(example["out"])):
            return f'has a fault in example {number}: "out" does not fit the type of the answer: {reason}'
    return ""


def messages_fault(value: Any, *, has_system: bool = False) -> str:
    """Return the first fault of a list of messages, as the end of a sentence about it; "" if there is none.

    A message is an object with the keys ``role`` and ``content``, a text that is not empty. Only the first message may have the role
    system, and only if the call has no system prompt (``has_system``).
    """
    if not isinstance(value, list):
        return f'takes a list of objects with "role" and "content", not {kind_of(value)}'
    if len(value) > MOST_MESSAGES:
        return f"takes at most {MOST_MESSAGES} messages, not {len(value):,}"
    for number, message in enumerate(value, 1):
        if not isinstance(message, dict):
            return f'takes objects with "role" and "content", but message {number} is {kind_of(message)}'
        if fault := _keys_fault(message, ("role", "content")):
            return f"has a fault in message {number}: {fault}"
        role, content = message["role"], message["content"]
        if not isinstance(role, str) or role not in ROLES:
            shown = short(role) if isinstance(role, str) else kind_of(role)
            return f"has a fault in message {number}: the role is one of {', '.join(ROLES)}, not {shown}"
        if not isinstance(content, str):
            return f'has a fault in message {number}: "content" is {kind_of(content)}, not a text'
        if _is_blank(content):
            return f'has a fault in message {number}: "content" is empty'
        if role == "system" and number > 1:
            return f"has a fault in message {number}: only the first message may have the role system"
        if role == "system" and has_system:
            return "has a message with the role system, but the call has a system prompt already"
    return ""


def images_fault(value: Any) -> str:
    """Return the fault of an image or a list of images, as the end of a sentence about it; "" if there is none.

    An image is a text: the path of a file, or a data URL. Addresses of web pages are refused: the content behind an address can change, so
    that it could not be part of the key of the cache, and a server on the user's network would fetch any address that a text contains.
    """
    values = value if isinstance(value, list) else [value]
    if not 1 <= len(values) <= MOST_IMAGES:
        return f"takes one to {MOST_IMAGES} images, not {len(values)}"
    for image in values:
        if not isinstance(image, str):
            return f"takes texts: the path of a file, or a data URL, not {kind_of(image)}"
        if not image.strip():
            return "has an empty text instead of an image"
        if "://" in image[:40]:
            return "takes the path of a file, or a data URL, not an address"
    return ""


def _keys_fault(value: dict[Any, Any], names: tuple[str, str]) -> str:
    missing = next((name for name in names if name not in value), None)
    if missing is not None:
        keys = f"; it has {', '.join(short(str(key), 40) for key in [*value][:4])}" if value else ""
        return f'"{missing}" is missing{keys}'
    more = next((str(key) for key in value if key not in names), None)
    return "" if more is None else f'the key {short(more)} is unknown; the keys are "{names[0]}" and "{names[1]}"'


def _is_blank(value: Any) -> bool:
    return isinstance(value, str) and not value.strip()
