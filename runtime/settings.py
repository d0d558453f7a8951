"""What a loop may be given beside its request, checked before anything is opened or spent: options, limits, who listens."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from ..lang.diagnostic import nearest
from .events import Events
from .refusals import RequestError, shown

__all__ = ["OPTIONS", "call_options", "check_limits", "check_listeners", "seconds"]

OPTIONS = ("temperature", "max_tokens", "stop", "seed", "timeout", "retries")
"""The port's options that a loop's calls may be given; judges get the last three."""


def call_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of ``OPTIONS`` that are not None. Raises ``RequestError`` for another one, and for a value that is none."""
    if not isinstance(given, Mapping):
        raise RequestError("options", f"names with values are wanted, not {_kind(given)}", '{"temperature": 0}')
    for name in given:
        if name not in OPTIONS:
            like = nearest(str(name), OPTIONS)
            raise RequestError(
                "options", f"unknown option {str(name)[:80]!r}",
                f"did you mean {like!r}?" if like else f"there are: {', '.join(OPTIONS)}",
            )  # fmt: skip
    options = {name: value for name, value in given.items() if value is not None}
    for name, value in options.items():
        fits, wanted = _VALUES[name]
        if not fits(value):
            raise RequestError(name, f"{shown(value)} is no {wanted}")
    return options


def check_limits(given: Mapping[str, Any]) -> None:
    """Raise ``RequestError`` for a limit on calls, tokens or US dollars that is none; None is no limit."""
    for name, (fits, wanted) in _LIMITS.items():
        value = given.get(name)
        if value is not None and not fits(value):
            raise RequestError(name, f"{shown(value)} is no {wanted}")


def check_listeners(events: Any, cancel: Any, on_iteration: Any = None) -> None:
    """Raise ``RequestError`` for what can't be told or asked: it would show only when the first answer is paid for."""
    if events is not None and not isinstance(events, Events):
        hint = "events = Events(); events.subscribe(function)" if callable(events) else ""
        raise RequestError("events", f"an Events is wanted, not {_kind(events)}", hint)
    if cancel is not None and not isinstance(cancel, asyncio.Event):
        raise RequestError("cancel", f"an asyncio.Event is wanted, not {_kind(cancel)}")
    if on_iteration is not None and not callable(on_iteration):
        raise RequestError("on_iteration", f"a function is wanted, not {_kind(on_iteration)}")


def seconds(given: Any) -> float | None:
    """Return a time limit; None where there is none. Raises ``RequestError``."""
    if given is None:
        return None
    if not _number(given) or not given > 0:
        raise RequestError("time_limit", f"{shown(given)} is no number of seconds above 0")
    return None if given > _EVER else float(given)


def _kind(value: Any) -> str:
    """Return the name of a value's type, with its module: there is an Event in asyncio, and one in threading."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


_EVER = 1e9
"""Seconds: more of them are no limit."""


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value  # NaN is not


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and value >= least


def _texts(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, list | tuple) and all(isinstance(each, str) for each in value))


_VALUES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "temperature": (lambda value: _number(value) and 0 <= value <= 2, "number from 0 to 2"),
    "max_tokens": (_whole(1), "whole number above 0"),
    "stop": (_texts, "text, nor a list of texts"),
    "seed": (lambda value: type(value) is int, "whole number"),
    "timeout": (lambda value: _number(value) and value > 0, "number of seconds above 0"),
    "retries": (_whole(0), "whole number from 0 on"),
}
"""What an option's value must be, and what it is called. None is the model's own."""
_LIMITS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "max_calls": (_whole(0), "whole number from 0 on"),
    "max_tokens": (_whole(0), "whole number from 0 on"),
    "max_cost": (lambda value: _number(value) and value >= 0, "number of US dollars from 0 on"),
}
