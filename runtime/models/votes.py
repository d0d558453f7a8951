"""Votes: several samples of the same request, of which the most frequent answer is chosen."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from attrs import evolve

from ...adapters.llm.middleware import model_spec
from ..events import AnswerVoted
from ..results import Outcome, StepFailed, Vote
from .caller import Caller, Request, Spent


def warn_of_equal_samples(caller: Caller, step: str, request: Request) -> None:
    """Warn if all samples of ``request`` will be equal. Called once for a step, also if EACH repeats its call."""
    if model_spec(caller.client(request)).startswith("local") and "temperature" not in request.options:
        caller.warn(step, "the local model answers at temperature 0, so the samples are equal; set temperature=")


async def ask_samples(caller: Caller, step: str, request: Request, count: int, item: int | None = None) -> Outcome:
    """Return the most frequent of ``count`` answers to ``request``; of equally frequent answers, the one with the smallest number.

    Every sample is a separate call: it is cached separately (the option ``sample``), and counts in limits and costs. Texts are
    compared without white space around them, other answers by their values. If a sample fails, the step fails: a vote with fewer samples
    would not be the requested one. Finished samples are recorded, so that a resumed run asks only for the missing ones.
    """
    requests = [_numbered(request, number) for number in range(count)]
    spent = Spent()
    results: Sequence[Outcome | BaseException]
    if item is None:
        results = await asyncio.gather(
            *(_sample(caller, step, each, None) for each in requests), return_exceptions=True
        )
    else:  # one after the other, so that the limit of concurrent calls of EACH holds
        results = await _in_turn(caller, step, requests, item)
    failed: StepFailed | None = None
    answers: list[Outcome] = []
    for number, result in enumerate(results, 1):
        if isinstance(result, StepFailed):
            spent.include(result)
            if failed is None:
                message = f"sample {number} of {count}: {result.failed.message}"
                failed = StepFailed(evolve(result.failed, message=message))
        elif isinstance(result, BaseException):
            raise result
        else:
            spent.include(result)
            answers.append(result)
    if failed is not None:
        raise StepFailed(failed.failed, usage=spent.usage, cost=spent.cost, calls=spent.calls)
    chosen, counts = most_frequent(answers, is_text=request.kind == "text")
    vote = Vote(step, item, tuple(answer.output for answer in answers), tuple(counts), chosen)
    caller.trace.votes.append(vote)
    if caller.events:
        caller.events.emit(AnswerVoted(step, vote.samples, vote.counts, chosen, item))
    return evolve(
        answers[chosen], usage=spent.usage, cost=spent.cost, calls=spent.calls, attempts=spent.attempts,
        reused=all(answer.reused for answer in answers),
        input_hash=evolve(request, options={**request.options, "n": count}).digest() if caller.record is not None else "",
    )  # fmt: skip


async def _in_turn(caller: Caller, step: str, requests: Sequence[Request], item: int) -> list[Outcome | BaseException]:
    """Return the outcomes of the requests, up to the first failure."""
    results: list[Outcome | BaseException] = []
    for request in requests:
        try:
            results.append(await _sample(caller, step, request, item))
        except StepFailed as error:
            return [*results, error]
    return results


def _numbered(request: Request, number: int) -> Request:
    """Return the request for a sample. The seed of a sample is the given seed plus its number, because equal seeds give equal answers."""
    if not number:
        return request
    more = {"sample": number}
    if "seed" in request.options:
        more["seed"] = request.options["seed"] + number
    return evolve(request, options={**request.options, **more})


async def _sample(caller: Caller, step: str, request: Request, item: int | None) -> Outcome:
    loop = asyncio.get_running_loop()
    began = loop.time()
    outcome = await caller.ask(step, request, item)
    if not outcome.reused:
        caller.item_done(step, item, outcome, loop.time() - began)
    return outcome


def most_frequent(answers: Sequence[Outcome], *, is_text: bool) -> tuple[int, list[int]]:
    """Return the index of the first of the most frequent answers, and for each answer the number of answers that equal it."""
    keys = [answer.output.strip() if is_text else _canonical(answer.value) for answer in answers]
    counts = [keys.count(key) for key in keys]
    return counts.index(max(counts)), counts


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
