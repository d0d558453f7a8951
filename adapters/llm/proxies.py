"""The proxies that the environment names: which requests go through them, and what is said if they can't be used.

A request to this machine never goes through a proxy, and neither does one to a host in ``NO_PROXY``.
"""

import os
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx2
from attrs import field, frozen

from ..addresses import is_loopback
from . import NotConfigured

__all__ = ["Proxy", "client_for", "proxy_of"]

C = TypeVar("C", bound=httpx2.AsyncClient)


@frozen
class Proxy:
    """A proxy of the environment. ``url`` may contain a password; a message names the proxy by ``name``."""

    variable: str
    url: str = field(repr=False)

    @property
    def name(self) -> str:
        """The variable and the address, without a user and a password."""
        return f"the proxy {self.url.rpartition('@')[2]} ({self.variable})"


def proxy_of(url: str) -> Proxy | None:
    """Return the proxy through which requests to ``url`` go; None if they go straight to the host."""
    proxies = getproxies()
    parts = urlsplit(url)
    host = parts.hostname or ""
    if not proxies or is_loopback(host) or proxy_bypass(host):
        return None
    for scheme in (parts.scheme, "all"):
        if address := proxies.get(scheme):
            variable = f"{scheme}_proxy"
            return Proxy(variable if variable in os.environ else variable.upper(), address)
    return None


def client_for(url: str, make: Callable[[Proxy | None], C]) -> C:
    """Return the HTTP client that ``make`` returns for the proxy of ``url``. Raises ``NotConfigured`` if the proxy can't be used."""
    proxy = proxy_of(url)
    if proxy is None:
        return make(None)
    try:
        return make(proxy)
    except ImportError:
        wrong, hint = "is a SOCKS proxy, which needs the package socksio", "pip install socksio, or "
    except ValueError:
        wrong, hint = "has no address of the form http://HOST:PORT or socks5://HOST:PORT", ""
    raise NotConfigured(
        f"{proxy.name} {wrong}", hint=f"{hint}unset {proxy.variable}, or add the model's host to NO_PROXY"
    )
