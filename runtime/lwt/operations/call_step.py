"""The operation CALL, which calls a Python function that the host of the run offers."""

import asyncio
import contextvars
import inspect
import json
import math
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from blake3 import blake3

from ....adapters.llm.keys import hidden, known_keys, mask_keys
from ....lang.catalogue.operations import BUILTIN, COMMON_OPTIONS
from ....lang.diagnostic import nearest
from ....lang.literals import short
from ....lang.source import Span
from ....lang.trees.lwt import Call, Template
from ...results import Failed, Outcome, StepFailed
from ...templates import text_of
from ..files_beside import invalid
from .operation import Context, option_value, read_options

_CALL = BUILTIN["CALL"]
LARGEST = 4_000_000
"""Maximum bytes of the arguments, and of the result, as JSON in UTF-8."""
_LONGEST = 2_000
"""Maximum characters of the message of an exception."""


async def run_call(call: Call, context: Context) -> Outcome:
    """Call the function with the options as keyword arguments. A result that the run has saved is reused without a call.

    A plain function runs in a thread, an async function in the event loop. The arguments and the result are copied as JSON, so
    the function can't change values of the run. After ``timeout`` the step fails; a plain function can't be interrupted, and its
    result is then ignored.
    """
    name = call.arguments[0].constant if len(call.arguments) == 1 and isinstance(call.arguments[0], Template) else None
    if name is None:
        raise invalid("CALL takes the name of a function", call.span, f"for example {_CALL.example}")
    timeout = read_options(call, _CALL).get("timeout")
    function = context.host.functions.get(name)
    if function is None:
        near = nearest(name, context.host.functions)
        there = ", ".join(sorted(context.host.functions)[:8])
        hint = (
            f"did you mean {near}?" if near else f"the functions are {there}" if there else "the run has no functions"
        )
        raise invalid(f"unknown function {short(name)}", call.span, hint)
    given = {
        option.name: option_value(option.value, context.scope)
        for option in call.options
        if option.name not in ("timeout", *COMMON_OPTIONS)
    }
    arguments = _as_json(given, f"the arguments of {name}", call.span)
    digest = blake3(json.dumps(["CALL", name, given], sort_keys=True).encode()).hexdigest(length=16)
    record = context.caller.record
    if record is not None and (earlier := record.recall(context.step, None, digest)) is not None:
        return earlier.again(digest)
    made = await _made(name, function, json.loads(arguments), timeout, call.span)
    value = json.loads(_as_json(made, f"the result of {name}", call.span))
    return Outcome(text_of(value), value, input_hash=digest)


async def _made(
    name: str, function: Callable[..., Any], arguments: Mapping[str, Any], seconds: float | None, span: Span
) -> Any:
    """Return the result of the function. Raises ``StepFailed`` for an exception of the function, and after ``seconds``."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            if _is_async(function):
                return await function(**arguments)
            made = await _in_thread(function, arguments)
            return await made if inspect.isawaitable(made) else made
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise StepFailed(Failed("function", f"{name} was cancelled", span=span)) from None
    except Exception as error:  # the host's function may raise any exception
        if isinstance(error, TimeoutError) and limit.expired():
            hint = "raise timeout=, or make the function faster"
            raise StepFailed(Failed("timeout", f"{name} took longer than {seconds:g} s", hint, span)) from None
        raise StepFailed(Failed("function", f"{name} raised {_in_words(error)}", span=span)) from None


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _in_words(error: Exception) -> str:
    """Return the type and the message of an exception, without API keys."""
    try:
        said = str(error)
    except Exception:  # the exception of a host may be faulty itself
        said = ""
    said = hidden(mask_keys(said[: 2 * _LONGEST]), *known_keys(os.environ))[:_LONGEST]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


class _Ended(Exception):
    """Raised for an exception of a function that is not an ``Exception``, such as ``SystemExit``."""


async def _in_thread(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Call the function in a new thread.

    The thread is a daemon, not a thread of the event loop's pool: otherwise, a function that hangs after its time limit would keep the
    process from ending.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, Exception | None]] = loop.create_future()
    context = contextvars.copy_context()

    def settle(made: Any, error: Exception | None) -> None:
        if not done.done():  # cancelled, or too late
            done.set_result((made, error))

    def work() -> None:
        made, raised = None, None
        try:
            made = context.run(lambda: function(**arguments))
        except Exception as error:
            raised = error
        except BaseException as error:  # SystemExit must not end the thread in silence
            raised = _Ended(f"{type(error).__name__} {error}".strip())
        with suppress(RuntimeError):  # the event loop is closed
            loop.call_soon_threadsafe(settle, made, raised)

    threading.Thread(target=work, name="knotwork CALL", daemon=True).start()
    made, raised = await done
    if raised is not None:
        raise raised
    return made


def _as_json(value: Any, what: str, span: Span) -> str:
    """Return ``value`` as JSON. Raises ``StepFailed`` for any other value, because nothing is converted, and for a large one."""
    if fault := _not_json(value):
        hint = "JSON has objects with string keys, lists, strings, finite numbers, true, false and null"
        raise StepFailed(Failed("function", f"{what} can't be written as JSON: {fault}", hint, span))
    text = json.dumps(value)
    if (size := len(text)) > LARGEST:  # escaped characters make it longer than the UTF-8 text
        size = len(json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    if size > LARGEST:
        message = f"{what}: {size:,} bytes as JSON"
        raise StepFailed(Failed("function", f"{message}; at most {LARGEST:,} are allowed", span=span))
    return text


_DEEPEST = 500
"""Maximum nesting of a value: Python's JSON encoder is recursive."""


def _not_json(value: Any) -> str:
    """Return the reason why ``value`` is not JSON, with the path to the fault; "" if it is JSON."""
    stack: list[tuple[Any, str, int]] = [(value, "", 0)]
    while stack:
        inner, path, depth = stack.pop()
        where = f" at {path}" if path else ""
        if depth > _DEEPEST:
            return "it is nested too deeply"
        kind = type(inner)
        if kind is dict:
            for key, part in inner.items():
                if type(key) is not str:
                    return f"a key is {type(key).__name__}, not a string{where}"
                stack.append((part, f"{path}[{short(key, 40)}]" if depth < 8 else path, depth + 1))
        elif kind is list:
            stack += [(part, f"{path}[{index}]" if depth < 8 else path, depth + 1) for index, part in enumerate(inner)]
        elif kind is float:
            if not math.isfinite(inner):
                return f"{inner} is not a JSON number{where}"
        elif inner is not None and kind not in (str, int, bool):
            return f"{kind.__name__} is not a JSON type{where}"
    return ""
