"""Caches that packages add through the entry point group ``knotwork.caches``."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from knotwork.adapters.llm import NotConfigured
from knotwork.adapters.llm.cache import Cached
from knotwork.runtime.errors import RequestError
from knotwork.runtime.models.answer_cache import SharedCaches, answer_cache
from support.installed_plugin import install_plugin
from support.scripted import Scripted

PLUGIN = """
class Memory:
    stored, opened, closed, released = {}, [], 0, []

    def __init__(self, url, *, warn):
        self.opened.append(url)
        if "absent" in url:
            raise OSError(f"can't connect to {url}")
        if "chatty" in url:
            warn(f"slow: {url}")
        self.fails = "broken" in url

    async def find(self, key, wait=0.0):
        if self.fails:
            raise OSError("no route to hunter2")
        return self.stored.get(key)

    def keep(self, answer):
        self.stored[answer.key] = answer

    def release(self, key):
        self.released.append(key)

    async def aclose(self):
        Memory.closed += 1
"""


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    points = {"memory": "memory_plugin:Memory", "gone": "no_such_module:X"}
    install_plugin(tmp_path, monkeypatch, "memory_plugin", PLUGIN, "knotwork.caches", points)
    monkeypatch.delitem(__import__("sys").modules, "memory_plugin", raising=False)
    import memory_plugin  # type: ignore[import-not-found]

    return memory_plugin.Memory


def asked(url: str, file: Path, inner: Any, warnings: list[str]) -> Any:
    async def main() -> Any:
        client = Cached(inner, file, "openai:m", shared=SharedCaches().open(url, warnings.append))
        try:
            return await client.generate("hi")
        finally:
            await client.aclose()

    return asyncio.run(main())


def test_answers_are_stored_and_found(tmp_path: Path, memory: Any) -> None:
    inner, warnings = Scripted("hello"), []
    first, second = (asked("memory://here", tmp_path / f"{name}.sqlite", inner, warnings) for name in "ab")
    assert (first.cached, second.cached, second.text, len(inner.calls), memory.closed) == (
        False, True, "hello", 1, 2,
    )  # fmt: skip
    assert warnings == []


def test_a_failed_call_releases_its_key(tmp_path: Path, memory: Any) -> None:
    with pytest.raises(ValueError, match="no"):
        asked("memory://here", tmp_path / "a.sqlite", Scripted(ValueError("no")), [])
    assert len(memory.released) == 1


@pytest.mark.parametrize("found", [("too", "short"), 5, (b"k", 1, "stop", "m", b"", 1, 1)])
def test_an_answer_of_another_shape_is_ignored(tmp_path: Path, memory: Any, found: Any) -> None:
    class Everywhere(dict):  # type: ignore[type-arg]
        def get(self, key: Any, default: Any = None) -> Any:
            return found

    memory.stored, warnings = Everywhere(), []
    assert asked("memory://here", tmp_path / "a.sqlite", Scripted("own"), warnings).text == "own"
    assert len(warnings) == 1


def test_what_it_raises_is_one_warning_without_the_password(tmp_path: Path) -> None:
    warnings: list[str] = []
    url = "memory://me:hunter2@broken"
    assert asked(url, tmp_path / "a.sqlite", Scripted("own"), warnings).text == "own"
    (said,) = warnings
    assert said.startswith("the shared cache memory://me@broken can't be used and is ignored: OSError: ")
    assert "hunter2" not in said
    asked("memory://me:hunter2@chatty", tmp_path / "b.sqlite", Scripted("own"), warnings)
    assert warnings[1:] == ["slow: memory://me@chatty"]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("memory://me:hunter2@absent", "the cache plugin memory (memory_plugin:Memory) can't be opened: OSError: can't connect to"),
        ("gone://host", "the cache plugin gone (no_such_module:X) can't be opened: ModuleNotFoundError: No module named"),
        ("nobody://me:hunter2@host", "no installed package has a cache for nobody://me@host"),
    ],
)  # fmt: skip
def test_a_plugin_that_cannot_be_opened(url: str, said: str) -> None:
    with pytest.raises(NotConfigured) as error:
        SharedCaches().open(url, pytest.fail)
    assert error.value.message.startswith(said)
    assert "hunter2" not in error.value.message


def test_its_urls_are_accepted_by_the_options() -> None:
    found = answer_cache("memory://host/x", "openai:m", {})
    assert found is not None
    assert found.shared == "memory://host/x"
    with pytest.raises(RequestError, match="the URL memory://me@host has a password"):
        answer_cache("memory://me:hunter2@host", "openai:m", {})
