"""``knotwork model bench``: measures how many calls per second a model answers at different numbers of concurrent calls."""

import asyncio
from collections.abc import Callable, Sequence
from math import ceil
from time import perf_counter
from typing import Any

from attrs import define, field, frozen

from ...adapters.llm import BudgetExceeded, LLMError
from ..errors import RequestError
from .clients import ModelOpener

LEVELS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""The numbers of concurrent calls to try."""
PROMPT = "Request {number}: write one short sentence about the number {number}."
"""The default prompt. ``{number}`` makes each prompt unique, so that no server answers from a cache."""
_GROWTH = 1.1
"""Factor by which calls per second must grow from level to level; otherwise the measurement ends after one more level."""
_CLOSE = 0.9
"""The best level is the lowest level with at least this share of the highest number of calls per second."""


@frozen
class BenchLevel:
    """The figures of a level: ``concurrency`` calls at the same time for ``seconds`` seconds.

    ``p50`` and ``p95`` are quantiles of the seconds from request to answer; None if no call was answered. ``failures`` maps
    kinds of failures to numbers of calls. ``tokens`` are the prompt and completion tokens.
    """

    concurrency: int
    answered: int
    seconds: float
    tokens: int
    p50: float | None
    p95: float | None
    failures: dict[str, int] = field(factory=dict)

    @property
    def calls_per_second(self) -> float:
        """The number of answered calls per second."""
        return self.answered / self.seconds if self.seconds else 0.0

    @property
    def tokens_per_second(self) -> float:
        """The number of tokens per second."""
        return self.tokens / self.seconds if self.seconds else 0.0


@frozen
class ModelBench:
    """The result of a measurement. ``best`` is the recommended number of concurrent calls; None if no call was answered.

    ``ended`` is the reason why the measurement ended ("": all levels were measured).
    """

    levels: tuple[BenchLevel, ...]
    best: int | None
    ended: str = ""
    calls: int = 0
    cost: float | None = None


@define
class _Level:
    concurrency: int
    took: list[float] = field(factory=list)
    tokens: int = 0
    failures: dict[str, int] = field(factory=dict)
    budget: str = ""
    reason: str = ""


async def bench_model(
    spec: str, *, levels: Sequence[int] = LEVELS, seconds: float = 3.0, prompt: str = PROMPT, answer_tokens: int = 64,
    on_level: Callable[[BenchLevel], None] = lambda level: None, cancel: asyncio.Event | None = None,
    warn: Callable[[str], None] | None = None, **limits: Any,
) -> ModelBench:  # fmt: skip
    """Call the model ``spec`` at each level for ``seconds`` seconds, and return the figures. No cache is used.

    ``answer_tokens`` is the maximum length of an answer in tokens. ``limits`` are those of ``ModelOpener``.

    The measurement ends early at a limit, if calls fail, or if more concurrent calls make no more calls per second.
    Raises ``RequestError`` and ``NotConfigured`` before any call.
    """
    if not levels or any(type(level) is not int or level < 1 for level in levels):
        raise RequestError("levels", "expected whole numbers above 0", "such as 1,2,4,8")
    if spec.startswith(("replay:", "record:")):
        raise RequestError("spec", "a cassette has no speed to measure", "give the model itself")
    found: list[BenchLevel] = []
    ended, number = "", 0
    async with ModelOpener(warn, cache=False, max_concurrency=max(levels), **limits) as opener:
        client = opener.open(spec)

        async def ask(level: _Level, until: float) -> None:
            nonlocal number
            while perf_counter() < until and not level.budget and not (cancel is not None and cancel.is_set()):
                number += 1
                began = perf_counter()
                try:
                    answer = await client.generate(prompt.replace("{number}", str(number)), max_tokens=answer_tokens)
                except BudgetExceeded as error:
                    level.budget = error.message
                except LLMError as error:
                    if error.kind != "truncated":  # an answer that is as long as allowed is an answer
                        level.failures[error.kind] = level.failures.get(error.kind, 0) + 1
                        level.reason = level.reason or error.message
                        continue
                    level.took.append(perf_counter() - began)
                    level.tokens += error.usage.total
                else:
                    level.took.append(perf_counter() - began)
                    level.tokens += answer.usage.total

        first = _Level(1)
        await ask(first, perf_counter() + 0.001)  # opens the connection, or loads the model
        if not first.took:
            return ModelBench((), None, f"the first call failed: {first.reason or first.budget}", opener.ledger.calls)
        for concurrency in levels:
            level, began = _Level(concurrency), perf_counter()
            await asyncio.gather(*(ask(level, began + seconds) for _ in range(concurrency)))
            took = sorted(level.took)
            found.append(
                BenchLevel(
                    concurrency, len(took), perf_counter() - began, level.tokens, _share(took, 0.5), _share(took, 0.95),
                    level.failures,
                )
            )  # fmt: skip
            on_level(found[-1])
            if cancel is not None and cancel.is_set():
                ended = "interrupted"
            elif level.budget:
                ended = level.budget
            elif level.failures and sum(level.failures.values()) * 20 > len(took):
                ended = f"more than 5 % of the calls failed: {level.reason}"
            elif len(found) > 2 and all(
                found[-1].calls_per_second < before.calls_per_second * _GROWTH for before in found[-3:-1]
            ):
                ended = "more concurrent calls make no more calls per second"
            if ended:
                break
        ledger = opener.ledger
        cost = None if ledger.unpriced else ledger.cost
    return ModelBench(tuple(found), _best(found), ended, ledger.calls, cost)


def _share(took: Sequence[float], share: float) -> float | None:
    """Return the quantile of sorted values (nearest rank); None without values."""
    return took[max(0, ceil(share * len(took)) - 1)] if took else None


def _best(levels: Sequence[BenchLevel]) -> int | None:
    """Return the lowest level without failures whose calls per second are nearly the maximum of such levels."""
    sound = [level for level in levels if level.answered and not level.failures]
    if not sound:
        return None
    most = max(level.calls_per_second for level in sound)
    return next(level.concurrency for level in sound if level.calls_per_second >= _CLOSE * most)
