"""Checks a loop's options, limits and listeners before anything is opened or paid for. Also decides when a loop ends early."""

import asyncio
from collections.abc import Callable, Coroutine, Hashable, Mapping
from time import perf_counter
from typing import Any, Literal, TypeVar

from attrs import define, field

from ..lang.diagnostic import nearest
from .errors import RequestError, is_number, short_repr
from .events import Events

OPTIONS = ("temperature", "max_tokens", "stop", "seed", "timeout", "retries")
"""The options of the LLM port that a loop's calls can set. Judges get only the last three options."""


def call_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given options that are not None. Raises ``RequestError`` for a name not in ``OPTIONS`` or an invalid value."""
    if not isinstance(given, Mapping):
        raise RequestError("options", f"expected a mapping of options, not {_kind(given)}", '{"temperature": 0}')
    for name in given:
        if name not in OPTIONS:
            like = nearest(str(name), OPTIONS)
            raise RequestError(
                "options", f"unknown option {str(name)[:80]!r}",
                f"did you mean {like!r}?" if like else f"the options are {', '.join(OPTIONS)}",
            )  # fmt: skip
    options = {name: value for name, value in given.items() if value is not None}
    for name, value in options.items():
        fits, wanted = _VALUES[name]
        if not fits(value):
            raise RequestError(name, f"expected a {wanted}, not {short_repr(value)}")
    return options


def check_limits(given: Mapping[str, Any]) -> None:
    """Raise ``RequestError`` for an invalid limit on calls, tokens or US dollars; None means no limit."""
    for name, (fits, wanted) in _LIMITS.items():
        value = given.get(name)
        if value is not None and not fits(value):
            raise RequestError(name, f"expected a {wanted}, not {short_repr(value)}")


def check_listeners(events: Any, cancel: Any, on_iteration: Any = None) -> None:
    """Raise ``RequestError`` for an invalid listener. Without this check, the listener would fail only after the first paid answer."""
    if events is not None and not isinstance(events, Events):
        hint = "events = Events(); events.subscribe(function)" if callable(events) else ""
        raise RequestError("events", f"expected an Events object, not {_kind(events)}", hint)
    if cancel is not None and not isinstance(cancel, asyncio.Event):
        raise RequestError("cancel", f"expected an asyncio.Event, not {_kind(cancel)}")
    if on_iteration is not None and not callable(on_iteration):
        raise RequestError("on_iteration", f"expected a function, not {_kind(on_iteration)}")


def checked_time_limit(given: Any) -> float | None:
    """Return the time limit in seconds; None (no limit) for None or more than 1e9 seconds. Raises ``RequestError`` for an invalid limit."""
    if given is None:
        return None
    if not is_number(given) or not given > 0:
        raise RequestError("time_limit", f"expected a number of seconds above 0, not {short_repr(given)}")
    return None if given > 1e9 else float(given)


def _kind(value: Any) -> str:
    """Return the name of a value's type. The name includes the module, because asyncio and threading both have an Event."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _whole_number(least: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and value >= least


_VALUES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "temperature": (lambda value: is_number(value) and 0 <= value <= 2, "number from 0 to 2"),
    "max_tokens": (_whole_number(1), "whole number above 0"),
    "stop": (
        lambda value: (
            isinstance(value, str) or (isinstance(value, list | tuple) and all(isinstance(each, str) for each in value))
        ),
        "string or a list of strings",
    ),
    "seed": (lambda value: type(value) is int, "whole number"),
    "timeout": (lambda value: is_number(value) and value > 0, "number of seconds above 0"),
    "retries": (_whole_number(0), "whole number, 0 or greater,"),
}
"""Maps each option to a check of its value and a description of valid values. None selects the model's default and is not checked."""
_LIMITS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "max_calls": (_whole_number(0), "whole number, 0 or greater,"),
    "max_tokens": (_whole_number(0), "whole number, 0 or greater,"),
    "max_cost": (lambda value: is_number(value) and value >= 0, "number of US dollars, 0 or greater,"),
}


# The conditions that end every loop: a time limit, a cancellation event, repeated rounds. When ``Deadline.within`` returns,
# no part of the task is still running.

_Made = TypeVar("_Made")


@define
class Deadline:
    """Ends work early, on cancellation or at a time limit; ``by`` is the reason. The time limit counts from this object's creation."""

    cancel: asyncio.Event | None
    time_limit: float | None
    by: Literal["", "cancelled", "time"] = ""
    _began: float = field(factory=perf_counter)

    async def within(self, work: Coroutine[Any, Any, _Made]) -> _Made | None:
        """Return the result of ``work``. If ``work`` was stopped or never started, return None; ``by`` is then the reason."""
        if self.cancel is None and self.time_limit is None:
            return await work
        if self.is_over():
            work.close()
            return None
        task = asyncio.ensure_future(work)
        try:
            await self.wait_for(task)
            return task.result() if task.done() else None
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def wait_for(self, task: "asyncio.Future[Any]") -> None:
        """Wait until ``task`` is done or the wait ends early; ``by`` is then the reason. The task itself is not cancelled."""
        waiting = asyncio.ensure_future(self.cancel.wait()) if self.cancel is not None else None
        left = None if self.time_limit is None else max(0.0, self.time_limit - (perf_counter() - self._began))
        both = {each for each in (task, waiting) if each is not None}
        try:
            await asyncio.wait(both, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                self.by = "cancelled" if waiting is not None and waiting.done() else "time"
        finally:
            if waiting is not None:
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)

    def is_over(self) -> bool:
        """Return whether no more work may start; ``by`` is then the reason."""
        if self.cancel is not None and self.cancel.is_set():
            self.by = "cancelled"
        elif self.time_limit is not None and perf_counter() - self._began >= self.time_limit:
            self.by = "time"
        return bool(self.by)


@define
class Repetition:
    """Counts consecutive rounds of a loop without a new result.

    After two such rounds, the prompt tells the model so; after three, the loop ends.
    """

    count: int = 0
    _seen: set[Hashable] = field(factory=set, init=False)

    def take(self, *results: Hashable) -> int:
        """Add the results of a round; return the number of consecutive rounds, up to this one, without a new result.

        A round without any results leaves the count unchanged.
        """
        if not results:
            return self.count
        fresh = [each for each in results if each not in self._seen]
        self._seen.update(results)
        self.count = 0 if fresh else self.count + 1
        return self.count

    @property
    def is_told(self) -> bool:
        """Whether the prompt must tell the model about the repetition."""
        return self.count >= 2

    @property
    def is_over(self) -> bool:
        """Whether the loop must end."""
        return self.count >= 3
