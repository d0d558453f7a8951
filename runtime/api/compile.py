"""Implementation of ``seed.compile``: opens the model under its limits, reads contexts, opens the cache."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from attrs import evolve

from ...adapters.llm.budget import Price
from ...adapters.llm.strict_schema import means_of
from ...lang.diagnostic import Diagnostic, nearest
from ...lang.trees.seed import FormulaSeed
from ..errors import RequestError
from ..events import Events
from ..limits import call_options, check_limits, check_listeners, seconds
from ..loops.compile.compile_results import Compiled
from ..loops.compile.compile_store import Compilations, CompileRequest, start
from ..loops.compile.compiler import compile_task
from ..models.caller import Caller
from ..models.factory import identity_of
from ..results import Trace
from ..runs.journal import logged
from ..seeds.compute import check, load
from ..seeds.reviews import read_context
from .clients import Clients, Warnings, file_of

ANSWER_TOKENS = 8192
"""Tokens that an answer may have under a limit on tokens or cost, where a budget would grant no more than a short text's."""
_LIMITS = ("max_calls", "max_tokens", "max_cost")
_NAMES = (
    "llm",
    "model",
    "name",
    "repairs",
    "example",
    *_LIMITS,
    "price",
    "rate",
    "options",
    "cache",
    "events",
    "cancel",
    "time_limit",
    "record",
)
_EXAMPLES = 100
"""Maximum number of contexts that each draft is checked against."""


def checker(example: Iterable[Any] | None) -> Callable[[FormulaSeed], list[Diagnostic]]:
    """Return a function that checks a seed, also against the first 100 contexts of ``example``. Raises ``ContextError``."""
    if example is None:
        return check
    if not isinstance(example, Iterable):
        raise RequestError("example", f"a list of contexts is wanted, not {type(example).__name__}")
    contexts = [each for each, _ in zip(example, range(_EXAMPLES), strict=False)]
    for number, each in enumerate(contexts):
        read_context(each, number)
    return lambda seed: check(seed, contexts)


async def compile_seed(
    task: str,
    llm: Any,
    model: str,
    name: str,
    repairs: int,
    example: Iterable[Any] | None,
    *,
    price: Price | None = None,
    rate: float | None = None,
    options: Mapping[str, Any] | None = None,
    cache: str | Path | None = None,
    events: Events | None = None,
    cancel: Any = None,
    time_limit: float | None = None,
    record: bool = False,
    **limits: Any,
) -> Compiled:
    """Compile ``task``; the arguments are those of ``knotwork.seed.compile``."""
    _check_names(limits)
    request = CompileRequest(task, name, repairs)
    checked = checker(example)
    time_limit = seconds(time_limit)
    check_limits(limits)
    check_listeners(events, cancel)
    asked = call_options({} if options is None else options)
    if not isinstance(model, str):
        raise RequestError("model", f"a text is wanted, not {type(model).__name__}")
    if not isinstance(record, bool):
        raise RequestError("record", f"True or False is wanted, not {type(record).__name__}")
    if cache is not None and not (model or llm is None or isinstance(llm, str)):
        raise RequestError("cache", "a custom client has no name that a cache could know it by", "give model=NAME")
    if limits.get("max_tokens") is not None or limits.get("max_cost") is not None:
        asked.setdefault("max_tokens", ANSWER_TOKENS)
    warned = Warnings(events)
    async with Clients(llm, (), warned, price=price, rate=rate, **limits) as models:
        known = model or (identity_of(models.spec) if models.spec else "")
        kept = Compilations(file_of("cache", cache), known, warn=warned) if cache is not None else None
        recorder = start(request, model=known) if record else None
        heard = Events() if recorder is not None and events is None else events
        try:
            with logged(heard, recorder.path) if recorder is not None and heard is not None else nullcontext():
                made = await compile_task(
                    request, Caller(models.llm, {}, heard, Trace(), 1), check=checked, options=asked, events=heard,
                    cancel=cancel, time_limit=time_limit, cache=kept, means=means_of(models.spec or llm),
                )  # fmt: skip
            if recorder is not None:
                recorder.ended(made)
        finally:
            if recorder is not None:
                recorder.close()
            if kept is not None:
                await kept.aclose()
    read = load(made.seed) if made.seed is not None else None  # one that can check itself
    return evolve(made, seed=read, warnings=(*made.warnings, *warned.messages))


def _check_names(given: Mapping[str, Any]) -> None:
    """Raise ``RequestError`` for an unknown argument."""
    for name in given:
        if name not in _LIMITS:
            like = nearest(name, _NAMES)
            hint = f"did you mean {like!r}?" if like else f"there are: {', '.join(_NAMES)}"
            raise RequestError(name[:80], "there is no such option", hint)
