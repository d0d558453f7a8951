"""Where the answers of models are cached: a local file, and optionally a database that machines share."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from ...adapters.llm import NotConfigured
from ...adapters.llm.shared_cache import PluginCache, SharedCache, cache_plugin
from ...adapters.postgres import SCHEMES, has_password, without_password
from ...adapters.user_folders import at_home, cache_folder
from ..errors import RequestError

__all__ = ["AnswerCache", "SharedCaches", "answer_cache", "call_cache", "result_cache"]

VARIABLE = "KNOTWORK_CACHE"
"""The environment variable with the default of ``cache``."""
_FORMS = "sqlite:///PATH or postgresql://HOST/DATABASE"


@frozen
class AnswerCache:
    """The file of the call cache, and the URL of the shared cache behind it ("": none). The URL may contain a password."""

    file: Path
    shared: str = field(default="", repr=False)


def call_cache(spec: str) -> Path | None:
    """Return the user's file of the call cache; None for a cassette, because a cassette contains the answers itself and may be edited."""
    if spec.startswith(("replay:", "record:")):
        return None
    return cache_folder() / "answers.sqlite"


def result_cache(given: Any, spec: str, name: str, environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the file that caches results other than the answers in ``answer_cache(given, spec)``; None if nothing is cached.

    The user's results are in the file ``name``, next to the user's answers. A file that ``given`` or ``KNOTWORK_CACHE`` names
    has both the answers and the results. Raises the same exceptions as ``answer_cache``.
    """
    cache = answer_cache(given, spec, environ)
    if cache is None:
        return None
    return cache.file.with_name(name) if cache.file == call_cache(spec) else cache.file


def answer_cache(given: Any, spec: str, environ: Mapping[str, str] = os.environ) -> AnswerCache | None:
    """Return the cache for the answers of ``spec``; None if they are not cached.

    ``given`` is None or False (no cache), True (``KNOTWORK_CACHE``, else the user's file), a path, or a URL: ``sqlite:///PATH``
    is a file, ``postgresql://HOST/DATABASE`` a shared cache behind the user's file, like the URLs of plugins
    (``adapters.llm.shared_cache``). Raises ``RequestError``, also for a ``given`` URL with a password, and ``NotConfigured`` if
    ``KNOTWORK_CACHE`` is faulty. The URL in ``KNOTWORK_CACHE`` may have a password.
    """
    if given is None or given is False or (own := call_cache(spec)) is None:
        return None
    named = given is not True
    place = given if named else environ.get(VARIABLE, "").strip()
    if not place:
        return AnswerCache(own)
    if not isinstance(place, str | os.PathLike):
        raise RequestError("cache", f"expected a file or a URL, not {type(place).__name__}")
    text = os.fspath(place)
    if not isinstance(text, str):
        return AnswerCache(Path(place))
    text = at_home(text)
    if "://" not in text:
        return AnswerCache(Path(text))
    if text.startswith("sqlite:///") and len(text) > len("sqlite:///"):
        return AnswerCache(Path(text.removeprefix("sqlite:///")))
    if not text.startswith(SCHEMES) and cache_plugin(text.partition("://")[0]) is None:
        said = f"a cache can't have the scheme {text.partition('://')[0]!r:.40}"
        if named:
            raise RequestError("cache", said, f"use {_FORMS}")
        raise NotConfigured(f"{VARIABLE}: {said}", hint=f"use {_FORMS}")
    if named and has_password(text):
        raise RequestError(
            "cache",
            f"the URL {without_password(text)} has a password, which others can read",
            f"set PGPASSWORD, write it into ~/.pgpass, or set {VARIABLE} to the URL",
        )
    return AnswerCache(own, text)


class SharedCaches:
    """The open caches of one opener, one per URL. The opener's models share a connection, and a failure gives one warning."""

    def __init__(self) -> None:
        self._open: dict[str, tuple[SharedCache, list[_Handle]]] = {}

    def open(self, url: str, warn: Callable[[str], None]) -> SharedCache:
        """Return a handle of the cache at ``url``. Closing the last handle closes the cache. Raises ``NotConfigured``."""
        if url not in self._open:
            self._open[url] = (_opened(url, warn), [])
        cache, handles = self._open[url]
        handles.append(_Handle(cache, lambda handle: self._close(url, handle)))
        return handles[-1]

    async def _close(self, url: str, handle: "_Handle") -> None:
        cache, handles = self._open[url]
        handles.remove(handle)
        if not handles:
            del self._open[url]
            await cache.aclose()


class _Handle:
    """A model's handle of an open cache."""

    def __init__(self, cache: SharedCache, close: Callable[["_Handle"], Any]) -> None:
        self.find, self.keep, self.release = cache.find, cache.keep, cache.release
        self._close = close
        self._is_closed = False

    async def aclose(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            await self._close(self)


def _opened(url: str, warn: Callable[[str], None]) -> SharedCache:
    if url.startswith(SCHEMES):
        from ...adapters.llm.shared_answers import SharedAnswers

        return SharedAnswers(url, warn=warn)
    point = cache_plugin(url.partition("://")[0])
    if point is None:
        raise NotConfigured(f"no installed package has a cache for {without_password(url)}")
    return PluginCache(point, url, warn)
