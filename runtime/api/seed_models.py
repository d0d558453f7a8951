"""The models that read reviews for a run of a seed: several models that vote, and a stronger model for open cases."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..seeds.compute import SeedTree
    from ..seeds.readers import Panel
    from .clients import ModelOpener

OPTIONS = ("vote", "escalate", "escalate_when")
"""The options of a run that name further models."""


def check_panel(seed: "SeedTree", vote: Any, escalate: Any, escalate_when: Any) -> None:
    """Raise ``RequestError`` for faulty options of a vote or a cascade, before any model is opened."""
    from ...lang.diagnostic import nearest
    from ..errors import RequestError
    from ..seeds.readers import MOST_VOTERS, TRIGGERS

    if vote is not None:
        if isinstance(vote, str) or not isinstance(vote, Sequence):
            raise RequestError("vote", f"expected a list of models, not {type(vote).__name__}")
        if not 2 <= len(vote) <= MOST_VOTERS:
            raise RequestError("vote", f"{len(vote)} models; a vote has 2 to {MOST_VOTERS}", "for one model use llm")
        specs = [each for each in vote if isinstance(each, str)]
        if twice := next((each for each in specs if specs.count(each) > 1), None):
            hint = (
                "a model that reads twice gives the same answer; for two samples of one model use passes: 2 in the seed"
            )
            raise RequestError("vote", f"{twice} is listed twice", hint)
        if seed.passes == 2:
            hint = "with passes: 2, one model reads twice; remove passes from the seed, or use escalate without vote"
            raise RequestError("vote", "the seed has passes: 2", hint)
    if escalate_when is None:
        return
    if escalate is None:
        raise RequestError("escalate_when", "there is no model to escalate to", "name it with escalate")
    given = [escalate_when] if isinstance(escalate_when, str) else list(escalate_when)
    for each in given:
        if each not in TRIGGERS:
            near = nearest(str(each), TRIGGERS)
            hint = f"did you mean {near}?" if near else f"allowed: {', '.join(TRIGGERS)}"
            raise RequestError("escalate_when", f"unknown reason {str(each)[:40]!r}", hint)
    if not given:
        raise RequestError("escalate_when", "the list is empty", f"allowed: {', '.join(TRIGGERS)}")


def panel_of(
    seed: "SeedTree", options: Mapping[str, Any], opener: "ModelOpener", *, is_limited: bool = True
) -> "Panel | None":
    """Return the panel that the ``OPTIONS`` of a run define, with opened clients; None without ``vote`` and ``escalate``.

    A model is a spec, or a custom client, which is called "client N" in the votes. Raises ``RequestError`` and
    ``NotConfigured``.
    """
    from ..models.factory import identity_of
    from ..seeds.readers import TRIGGERS, Model, Panel

    vote, escalate, when = (options.get(name) for name in OPTIONS)
    check_panel(seed, vote, escalate, when)
    if vote is None and escalate is None:
        return None

    def opened(model: Any, name: str) -> Model:
        if isinstance(model, str):
            return Model(model, opener.open(model), identity_of(model))
        return Model(name, opener.open(model) if is_limited else model)

    given = [when] if isinstance(when, str) else when
    reasons = frozenset(each for each in TRIGGERS if given is None or each in given)
    voters = tuple(opened(each, f"client {number}") for number, each in enumerate(vote or (), 1))
    return Panel(voters, None if escalate is None else opened(escalate, "stronger client"), reasons)


@asynccontextmanager
async def open_models(
    seed: "SeedTree", llm: Any, name: str, options: Mapping[str, Any]
) -> AsyncIterator[tuple[Any, str, dict[str, Any]]]:
    """Open the models of a run, and yield its client, the client's name in caches, and the options of ``runtime.seeds.seed_run``.

    ``options`` are the ``RunOptions`` of ``seed.run``.
    With ``batch``, the yielded options have ``batches``, a ``SeedBatches``.
    The models are closed at the end. Raises ``RequestError`` and ``NotConfigured``.
    """
    from ..models.answer_cache import result_cache
    from ..models.factory import identity_of
    from . import seed_batches
    from .clients import AUTO, LIMITS, opener_of
    from .seed_workers import WorkerOptions, open_workers, setup_of

    rest = {key: value for key, value in options.items() if key not in OPTIONS}
    distributed = WorkerOptions.taken(rest)
    batch = seed_batches.taken(rest)
    is_limited = any(each in rest for each in LIMITS if each != "cache") or rest.get("max_concurrency") == AUTO
    check_panel(seed, *(options.get(each) for each in OPTIONS))
    voters = options.get("vote") or ()
    others = [each for each in (*voters, options.get("escalate")) if each is not None]
    main = voters[0] if llm is None and voters else llm
    cache = rest.setdefault("cache", all(isinstance(each, str) for each in (main, *others)))
    if cache is not None and cache is not False:
        _check_names(main, name, others)
    distributed.check([main, *others], rest.get("max_concurrency", 8))
    if batch is not None:
        seed_batches.check([main], cache=cache, workers=distributed.workers, is_panel=bool(others))
        await seed_batches.check_service(main)
    opening: dict[str, Any] = {each: rest[each] for each in ("price", "rate") if each in rest}
    async with opener_of(rest) as opener:
        panel = panel_of(seed, options, opener, is_limited=is_limited)
        rest["cache"] = result_cache(cache, main if isinstance(main, str) else "", "extractions.sqlite")
        rest["prices"] = opener.ledger.prices
        if panel is not None:
            rest["panel"] = panel
        if panel is not None and llm is None and panel.vote:
            client, name = panel.vote[0].client, name or panel.vote[0].identity
        elif isinstance(llm, str):
            client, name = opener.open(llm), name or identity_of(llm)
        else:  # without limits, a custom client is used unchanged
            client = opener.open(llm, name=name) if is_limited else llm
        if batch is not None:
            rest["batches"] = seed_batches.SeedBatches(seed, main, cache, opener, batch)
        if distributed.workers is None:
            yield client, name, rest
            return
        several = {each: options[each] for each in OPTIONS if options.get(each) is not None}
        setup = setup_of(seed, main, name, several, opening, cache, rest)
        async with open_workers(distributed, setup, opener.ledger) as rest["workers"]:
            yield client, name, rest


def _check_names(main: Any, name: str, others: Sequence[Any]) -> None:
    """Raise ``RequestError`` if a run with a cache has a custom client without a name."""
    from ..errors import RequestError

    message = "a custom client has no name to identify it in the cache"
    if not (isinstance(main, str) or name):
        raise RequestError("cache", message, "give model=NAME")
    if not all(isinstance(each, str) for each in others if each is not main):
        raise RequestError("cache", message, "use specs in vote and escalate")
