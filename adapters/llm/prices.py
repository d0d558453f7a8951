"""Looks up the price of a model in the data of ``genai-prices``, without a request to any server.

The package is optional (``knotwork[prices]``) and takes 0.4 s to import, so it is imported only for a model that may cost
money. Prices are for uncached, unbatched text tokens: cached input, for which services charge less, is counted at the full
price, so that a limit on cost holds. Batches count at half of the price.
See ``docs/reference/models.md#prices``.
"""

import os
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from .budget import Price, has_prices

PACKAGE = "genai-prices"
FREE = Price(0.0, 0.0, source="no service is called")
"""The price of a local model, and of recorded answers."""

_SERVICES = {"openai": "OPENAI_BASE_URL", "anthropic": "ANTHROPIC_BASE_URL"}
"""Maps each service to the environment variable that may contain another address for it."""


def find_price(spec: str, environ: Mapping[str, str] = os.environ) -> Price | None:
    """Return the price of the model ``spec``; None if the price is unknown or ``genai-prices`` is not installed.

    ``local`` and ``replay`` cost nothing; ``record`` costs what its model costs. For an address (``URL#MODEL``, or a service's
    address in ``environ``), the price is that of the service at this address; if no known service has this address, the price
    is unknown. If a price depends on the time of day, the highest price of the day is returned. The price of a model that is
    also charged per request is unknown.
    """
    spec = spec.strip()
    scheme, _, model = spec.partition(":")
    if scheme in ("local", "replay"):
        return FREE
    if scheme == "record":
        return find_price(model.partition(",")[2], environ)
    if "#" in spec:
        address, _, model = spec.partition("#")
        return _looked_up(model, "", address)
    if scheme not in _SERVICES or not model:
        return None
    return _looked_up(model, scheme, environ.get(_SERVICES[scheme], "").strip())


def _looked_up(model: str, service: str, address: str) -> Price | None:
    """Return the price of ``model`` at ``address`` (if not empty) or of ``service``; None if unknown."""
    if (address and _is_private(address)) or not has_prices():
        return None
    from genai_prices import Usage, calc_price

    now = datetime.now(UTC)
    where: dict[str, Any] = {"provider_api_url": address} if address else {"provider_id": service}
    try:
        found = calc_price(Usage(input_tokens=0, output_tokens=0), model, genai_request_timestamp=now, **where)
    except (LookupError, ValueError):
        return None
    day = [now, *(now.replace(minute=0, second=0) + timedelta(hours=hour) for hour in range(24))]
    prices = [_price(vars(found.model.get_prices(moment))) for moment in day]
    known = [price for price in prices if price is not None]
    if len(known) != len(prices):
        return None
    source = f"{PACKAGE} {version(PACKAGE)}, {found.provider.id}/{found.model.id}"
    tiers = max((price.tiers for price in known), key=lambda each: each[0][1:] if each else (0.0, 0.0))
    return Price(
        max(price.prompt for price in known), max(price.completion for price in known), tiers, source, now.date().isoformat()
    )  # fmt: skip


def _price(written: Mapping[str, Any]) -> Price | None:
    """Convert a price from the package to a ``Price``; None for a model without text tokens, or with a price per request."""
    prompt, completion = written.get("input_mtok"), written.get("output_mtok")
    if prompt is None or completion is None or written.get("requests_kcount"):
        return None
    starts = sorted({tier.start for side in (prompt, completion) for tier in getattr(side, "tiers", ())})
    tiers = tuple((start, _side(prompt, start), _side(completion, start)) for start in starts)
    return Price(_side(prompt, 0), _side(completion, 0), tiers)


def _side(written: Any, start: int) -> float:
    """Return US dollars per million tokens for prompts of more than ``start`` tokens (0: the base price)."""
    found = getattr(written, "base", written)
    for tier in getattr(written, "tiers", ()):
        found = tier.price if tier.start <= start else found
    return float(found)


def _is_private(address: str) -> bool:
    """Return whether an address belongs to this machine or to a private network. No public price exists for such an address."""
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        return True
    try:
        return not ip_address(host).is_global
    except ValueError:
        return host == "localhost" or "." not in host
