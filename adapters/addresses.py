"""Addresses of hosts and services."""

import os
from collections.abc import Mapping
from ipaddress import ip_address

__all__ = ["is_loopback", "service_address"]

_SERVICES: Mapping[str, str] = {
    "OPENAI_BASE_URL": "https://api.openai.com/v1",
    "ANTHROPIC_BASE_URL": "https://api.anthropic.com",
}


def is_loopback(host: str) -> bool:
    """Return whether ``host`` (a name, or an address as written in a URL) always refers to this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def service_address(base_url: str | None, variable: str) -> str:
    """Return the address of a service, as its SDK finds it: ``base_url``, else the ``variable`` in the environment, else its own."""
    return base_url or os.environ.get(variable) or _SERVICES[variable]
