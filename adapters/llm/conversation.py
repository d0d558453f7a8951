"""Earlier turns of a call: examples and messages, as chat messages or as labelled text that a model continues.

Also determines which options a client can't send.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from . import BadRequest, Options

Example = TypedDict("Example", {"in": str, "out": str})


class Message(TypedDict):
    """An earlier message of a conversation. ``role`` is user or assistant."""

    role: str
    content: str


LABELS = ("Input:", "Output:")
"""The labels of an example, for models that continue a text."""


def earlier_turns(options: Mapping[str, Any] | Options, *, is_wrapped: bool = False) -> list[dict[str, str]]:
    """Return the examples and the earlier messages as chat messages, in the order in which they are sent.

    With ``is_wrapped``, the request wraps answers in an object (``answers.answer_format``), so the answers in examples are wrapped too.
    """
    turns: list[dict[str, str]] = []
    for example in options.get("examples", ()):
        answer = _wrapped(example["out"], options) if is_wrapped else example["out"]
        turns += [{"role": "user", "content": example["in"]}, {"role": "assistant", "content": answer}]
    turns += [{"role": message["role"], "content": message["content"]} for message in options.get("messages", ())]
    return turns


def _wrapped(answer: str, options: Mapping[str, Any] | Options) -> str:
    import json

    return json.dumps({"answer": answer if "choices" in options else json.loads(answer)}, ensure_ascii=False)


def labelled(prompt: str, examples: Sequence[Mapping[str, str]], system: str = "") -> str:
    """Return a text that a model continues with the answer to ``prompt``: the examples with their labels, and a last label to fill in."""
    first, second = LABELS
    parts = [f"{first} {example['in']}\n{second} {example['out']}" for example in examples]
    return "\n\n".join([*([system] if system else []), *parts, f"{first} {prompt}\n{second}"])


def unsupported(client: Any) -> Mapping[str, str]:
    """Return the options that the model behind ``client`` and its layers can't take: a reason for each name."""
    while client is not None:
        if isinstance(found := getattr(client, "unsupported", None), Mapping):
            return found
        client = getattr(client, "_inner", None) or getattr(client, "inner", None)
    return {}


def refusal(client: Any, options: Mapping[str, Any] | Options) -> str:
    """Return the reason why ``client`` can't send a request with ``options``; "" if it can."""
    return next((f"{name}=: {reason}" for name, reason in unsupported(client).items() if name in options), "")


def require_supported(reasons: Mapping[str, str], options: Mapping[str, Any] | Options) -> None:
    """Raise ``BadRequest`` if ``options`` has an option for which ``reasons`` has a reason."""
    for name, reason in reasons.items():
        if name in options:
            raise BadRequest(f"{name}: {reason}", attempts=0)
