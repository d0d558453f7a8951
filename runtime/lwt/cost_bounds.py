"""Bounds on the tokens and the cost of a script's run, computed from the prompts that are known before any call.

A part of a prompt may be the answer of another step. Its upper bound is then the ``max_tokens`` of that step, 1,024 by default,
for each call of that step. Tokens are estimated from the size of the texts. Repeated requests are not included.
"""

import re
from collections.abc import Callable
from typing import Any

from attrs import frozen

from ...adapters.llm import Usage
from ...adapters.llm.budget import IMAGE_TOKENS, USUAL_ANSWER, Price
from ...lang.trees.lwt import Call, Scalar, Step, Template
from .dry_run import UNKNOWN, UNKNOWN_END, DryRun, PlannedCall

_LEAST_BYTES, _MOST_BYTES = 3, 5
"""Assumed minimum and maximum number of bytes of a token."""


@frozen
class CostBounds:
    """The minimum and maximum of the prompt tokens, the completion tokens and the cost in US dollars.

    A maximum is None if the number of calls is not known. ``cost`` is None if a price is not known. ``answer`` is the assumed
    maximum number of tokens of an answer.
    """

    prompt: tuple[int, int | None]
    completion: tuple[int, int | None]
    cost: tuple[float, float | None] | None
    answer: int = USUAL_ANSWER

    def as_json(self) -> dict[str, Any]:
        """Return the bounds as a JSON object."""
        return {
            "prompt_tokens_range": list(self.prompt), "completion_tokens_range": list(self.completion),
            "cost_range": None if self.cost is None else [None if each is None else round(each, 6) for each in self.cost],
            "answer_tokens_at_most": self.answer,
        }  # fmt: skip


def cost_bounds(found: DryRun, price_of: Callable[[str], Price | None]) -> CostBounds:
    """Return the bounds of a dry run. ``price_of`` maps the name of a step's model ("": the default) to its price (None: unknown)."""
    prompt, completion, cost, answers = [0, 0], [0, 0], [0.0, 0.0], [0]
    is_open, is_priced = bool(found.open_ends), True
    lengths: dict[str, int] = {}  # maps each earlier step to the maximum tokens of its output
    for step in found.steps:
        if step.inner is not None and step.most:
            inner = cost_bounds(step.inner, price_of)
            fewest = 0 if step.is_conditional or step.least == 0 else step.times
            is_open, is_priced = is_open or inner.prompt[1] is None, is_priced and inner.cost is not None
            answers.append(inner.answer)
            for times, end in ((fewest, 0), (step.times, 1)):
                prompt[end] += times * (inner.prompt[end] or 0)
                completion[end] += times * (inner.completion[end] or 0)
                cost[end] += times * ((inner.cost[end] or 0.0) if inner.cost is not None else 0.0)
            lengths[step.step.id] = step.times * (inner.completion[1] or 0)
            continue
        if step.most == 0:
            lengths[step.step.id] = sum(lengths.values())  # its value is computed from outputs of earlier steps
            continue
        longest = _number(step.step, "max_tokens") or USUAL_ANSWER
        answers.append(longest)
        least = 0 if step.is_conditional else step.least if step.least is not None else step.most or 0
        low, high = _prompt_size(step.calls, lengths)
        lengths[step.step.id] = max(1, step.most or 0) * longest
        is_open = is_open or not step.calls
        sizes = ((least * low, least), ((step.most or 0) * high, (step.most or 0) * longest))
        price = price_of(_text(step.step, "model"))
        is_priced = is_priced and price is not None
        for end, (asked, answered) in enumerate(sizes):
            prompt[end] += round(asked)
            completion[end] += answered
            cost[end] += 0.0 if price is None else price.of_calls(Usage(round(asked), answered))
    most = (None, None, None) if is_open else (prompt[1], completion[1], cost[1])
    return CostBounds(
        (prompt[0], most[0]), (completion[0], most[1]), (cost[0], most[2]) if is_priced else None, max(answers) or USUAL_ANSWER
    )  # fmt: skip


def _prompt_size(calls: tuple[PlannedCall, ...], lengths: dict[str, int]) -> tuple[float, float]:
    """Return the minimum and maximum prompt tokens of a call, averaged over the known calls.

    ``lengths`` has the maximum number of tokens of each earlier step's output.
    """
    low = high = 0.0
    for call in calls:
        text = "".join((call.prompt, *call.options.values()))
        parts = text.replace(UNKNOWN_END, UNKNOWN).split(UNKNOWN)
        size = sum(len(part.encode(errors="replace")) for part in parts[::2])
        low += size / _MOST_BYTES
        high += size / _LEAST_BYTES + sum(_length(part, lengths) for part in parts[1::2])
        high += IMAGE_TOKENS * call.images
    return (low / len(calls), high / len(calls)) if calls else (0.0, 0.0)


_STEP = re.compile(r"\{?\((\w+)\)")


def _length(reference: str, lengths: dict[str, int]) -> int:
    """Return the maximum number of tokens of a part that is not known yet, such as ``{(a)}``."""
    found = _STEP.match(reference)
    return lengths.get(found[1], USUAL_ANSWER) if found else USUAL_ANSWER


def _option(step: Step, name: str) -> Any:
    """Return the value of an option of the step's call, or of the call inside EACH; None if it is not set."""
    inner = step.call.arguments[-1] if step.call.operation == "EACH" and step.call.arguments else None
    for call in (inner, step.call):
        if isinstance(call, Call) and (found := call.option(name)) is not None:
            return found
    return None


def _number(step: Step, name: str) -> int | None:
    value = _option(step, name)
    return value.value if isinstance(value, Scalar) and type(value.value) is int else None


def _text(step: Step, name: str) -> str:
    value = _option(step, name)
    return (value.constant or "") if isinstance(value, Template) else ""
