"""The port of a cache that machines share. Packages can add caches through the entry point group ``GROUP``.

An entry point's name is the scheme of the URLs (``other`` for ``--cache other://...``), and its value is a ``CacheFactory``.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..postgres import reason, without_password
from . import NotConfigured

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "knotwork.caches"
"""The entry point group of plugins."""
_EXTRA_SECONDS = 10.0
"""Seconds that looking up a plugin may take, in addition to ``wait``."""


class StoredAnswer(NamedTuple):
    """An answer in a cache. ``digest`` is a checksum over ``key`` and ``text``, which the reader checks."""

    key: bytes
    text: str
    finish_reason: str
    model: str
    digest: bytes
    prompt_tokens: int
    completion_tokens: int


class SharedCache(Protocol):
    """A cache that machines share. Keys have 32 bytes. A cache belongs to the event loop of its first call.

    No method raises an exception. If the cache fails, it gives one warning; from then on, it finds and stores nothing.
    """

    async def find(self, key: bytes, wait: float = 0.0) -> StoredAnswer | None:
        """Return the answer to a request; None if the caller must make the call.

        If ``wait`` is above 0, the cache may claim the key for the caller, who then calls ``keep`` or ``release`` once, also after an
        error or a cancellation. If another caller holds the claim, the cache waits for its answer, at most ``wait`` seconds. A cache
        without claims ignores ``wait``.
        """
        ...

    def keep(self, answer: StoredAnswer) -> None:
        """Store an answer soon, and then release the claim on its key. An existing answer is not replaced."""
        ...

    def release(self, key: bytes) -> None:
        """Release the claim on a key without an answer, so that another caller makes the call. A key without a claim is ignored."""
        ...

    async def aclose(self) -> None:
        """Store the unsaved answers, release all claims and close the connection; repeated calls are allowed."""
        ...


class CacheFactory(Protocol):
    """The value of an entry point: opens the cache at a URL. ``warn`` receives warnings. It may raise ``NotConfigured``."""

    def __call__(self, url: str, *, warn: Callable[[str], None]) -> SharedCache:
        """Return the cache."""
        ...


def cache_plugin(scheme: str) -> "EntryPoint | None":
    """Return the entry point for URLs with this scheme; None if no installed package has one. The plugin is not imported."""
    from importlib.metadata import entry_points

    return next(iter(entry_points(group=GROUP, name=scheme)), None)


class PluginCache:
    """The cache of a plugin.

    If it raises an exception, it is no longer used; one warning, without the URL's password, is given. Raises ``NotConfigured``
    if the plugin can't be imported or the cache can't be opened.
    """

    def __init__(self, point: "EntryPoint", url: str, warn: Callable[[str], None]) -> None:
        self._url, self._name, self._warn = url, without_password(url), warn
        self._broken = False
        try:
            self._cache: SharedCache = point.load()(url, warn=lambda message: warn(reason(message, url, self._name)))
        except NotConfigured as error:
            raise NotConfigured(reason(error.message, url, self._name), hint=error.hint) from None
        except Exception as error:  # a plugin may raise any exception
            message = f"the cache plugin {point.name} ({point.value}) can't be opened: {self._reason(error)}"
            raise NotConfigured(message) from None

    async def find(self, key: bytes, wait: float = 0.0) -> StoredAnswer | None:
        """Return the plugin's answer."""
        if self._broken:
            return None
        try:
            async with asyncio.timeout(wait + _EXTRA_SECONDS):
                found = await self._cache.find(key, wait)
            return None if found is None else _checked(found)
        except Exception as error:
            self._give_up(error)
            return None

    def keep(self, answer: StoredAnswer) -> None:
        """Store an answer."""
        self._call(lambda: self._cache.keep(answer))

    def release(self, key: bytes) -> None:
        """Release a claim."""
        self._call(lambda: self._cache.release(key))

    async def aclose(self) -> None:
        """Close the plugin's cache."""
        try:
            async with asyncio.timeout(_EXTRA_SECONDS):
                await self._cache.aclose()
        except Exception as error:
            self._give_up(error)

    def _call(self, method: Callable[[], None]) -> None:
        try:
            if not self._broken:
                method()
        except Exception as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        if not self._broken:
            self._broken = True
            self._warn(f"the shared cache {self._name} can't be used and is ignored: {self._reason(error)}")

    def _reason(self, error: Exception) -> str:
        return f"{type(error).__name__}: {reason(str(error), self._url, self._name)}"


def _checked(found: Any) -> StoredAnswer:
    """Return the answer of a plugin. Raises TypeError for other values."""
    answer = StoredAnswer(*found)
    for name, kind in StoredAnswer.__annotations__.items():
        if not isinstance(getattr(answer, name), kind):
            raise TypeError(f"{name} of an answer is not {kind.__name__}")
    return answer
