"""Estimates the kept reviews, calls, tokens, cost and time of a run of a seed, and measures tokens on a paid sample."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from . import run_here

if TYPE_CHECKING:
    from ...adapters.llm.budget import Price
    from ..seeds.compute import SeedTree
    from ..seeds.cost_estimate import Estimate
    from ..seeds.extraction_prompts import Ask


def estimate(
    seed: "SeedTree",
    contexts: Iterable[Any],
    *,
    price: Any = None,
    model: str = "",
    ask: "Ask" = "auto",
    rate: float | None = None,
    vote: Sequence[Any] | None = None,
    escalate: Any = None,
    escalate_when: Sequence[str] | None = None,
    max_tokens: int | None = None,
    max_cost: float | None = None,
) -> "Estimate":
    """Estimate the reviews, calls, tokens and cost of a run without calling a model.

    ``model`` is a spec; its price is looked up unless ``price`` is given, as for ``run``. ``rate`` is the maximum number of calls
    a minute; ``seconds_at_rate`` in the result is how long the calls take at this rate. ``vote``, ``escalate`` and
    ``escalate_when`` are as for ``run``: ``models`` in the result lists the figures for each model. The number of reviews that
    a stronger model decides is not known before the run, so the number of its calls is between 0 and ``calls_at_most``.
    ``stages`` has upper bounds for the calls, tokens and cost of ``resolve`` and ``reduce``, which are not included in the
    other figures. ``max_tokens`` and ``max_cost`` are the limits of the run: with such a limit, an answer has at most 1,024
    tokens, which bounds the cost of ``reduce``. Raises ``ContextError``, ``RequestError`` and ``NotConfigured``.
    """
    from ..limits import check_limits
    from ..models.factory import identity_of
    from ..seeds.cost_estimate import Reader
    from ..seeds.cost_estimate import estimate as reckon
    from ..seeds.readers import TRIGGERS
    from .seed_models import check_panel
    from .seed_tables import contexts_of_seed

    check_panel(seed, vote, escalate, escalate_when)
    check_limits({"max_tokens": max_tokens, "max_cost": max_cost})

    def reader(each: Any, name: str) -> Reader:
        spec = each if isinstance(each, str) else ""
        if spec:
            identity_of(spec)  # refuses a key before a message repeats it
        return Reader(spec, spec or name, price_of(price, spec))

    readers = [reader(each, f"client {number}") for number, each in enumerate(vote or (), 1)]
    given = [escalate_when] if isinstance(escalate_when, str) else escalate_when
    when = [each for each in TRIGGERS if given is None or each in given]
    model = model or (readers[0].model if readers else "")
    return reckon(
        seed, contexts_of_seed(seed, contexts)[0], price=price_of(price, model), model=model, ask=ask, rate=rate, vote=readers,
        escalate=None if escalate is None else reader(escalate, "stronger client"), escalate_when=when,
        is_limited=max_tokens is not None or max_cost is not None,
    )  # fmt: skip


async def measure(
    seed: "SeedTree",
    contexts: Iterable[Any],
    *,
    llm: Any,
    sample: int = 20,
    random_state: int = 0,
    max_concurrency: int | Literal["auto"] = 8,
    strict_types: bool = False,
    **limits: Any,
) -> "Estimate":
    """Estimate a run, and measure the tokens of a sample of kept reviews with real calls. **These calls are paid.**

    ``sample`` is the number of reviews in the sample. ``llm`` is a spec or a client. ``limits`` are ``max_calls``,
    ``max_tokens``, ``max_cost``, ``price``, ``rate`` and ``cache``, as for ``lwt.run``: if a limit is too low, the sample is
    smaller. ``cache`` (default: True for a spec) stores the answers, so that neither the run nor a second measurement pays for
    them again. The attribute ``sample`` of the estimate has the measured tokens. It also has the tokens and the cost for all kept
    reviews, with 95 % intervals. ``random_state`` determines which reviews are sampled.

    Raises ``SeedError``, ``ContextError``, ``RequestError`` and ``NotConfigured``.
    """
    from ..errors import RequestError, short_repr
    from ..models.factory import identity_of
    from ..seeds.compute import require
    from ..seeds.cost_estimate import estimate as reckon
    from ..seeds.token_sample import ReviewPicker
    from ..seeds.token_sample import measure as measured
    from . import check_names
    from .clients import LIMITS, automatic, concurrency_of, opener_of
    from .seed_tables import contexts_of_seed

    require(seed)
    if type(sample) is not int or sample < 1:
        raise RequestError("sample", f"{short_repr(sample)} is not a whole number above 0")
    max_concurrency = concurrency_of(max_concurrency)
    if type(random_state) is not int:
        raise RequestError("random_state", f"{short_repr(random_state)} is not a whole number")
    check_names(limits, LIMITS)
    rate, given = limits.get("rate"), {"cache": isinstance(llm, str), **limits}
    async with opener_of({**given, **automatic(max_concurrency)}) as opener:
        client = opener.open(llm)
        model = llm if isinstance(llm, str) else ""
        price = opener.ledger.prices.get(model or "custom client") or price_of(limits.get("price"), model)
        picker = ReviewPicker(seed, sample, random_state)
        found = reckon(
            seed, picker.watch(contexts_of_seed(seed, contexts)[0]), price=price, model=model, rate=rate,
            is_limited=opener.ledger.limits_size,
        )  # fmt: skip
        found.sample = await measured(
            seed, picker.picked(), client, found, model=identity_of(model) if model else "", price=price,
            max_concurrency=max_concurrency, strict_types=strict_types,
        )  # fmt: skip
    return found


def measure_sync(seed: "SeedTree", contexts: Iterable[Any], *, llm: Any, **options: Any) -> "Estimate":
    """Call ``measure`` from synchronous code. In async code and notebooks, use ``await seed.measure(...)``."""
    return run_here(lambda: measure(seed, contexts, llm=llm, **options), "seed.measure")


def price_of(price: Any, model: str) -> "Price | None":
    """Return ``price`` as a ``Price``; without it, the price of ``model`` (None: unknown). Raises ``RequestError``."""
    from ...adapters.llm.budget import Price
    from ...adapters.llm.prices import find_price
    from .clients import price_pair

    if price is None:
        return find_price(model) if model else None
    return price if isinstance(price, Price) else Price(*price_pair(price))
