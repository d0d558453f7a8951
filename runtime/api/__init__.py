"""The public modules, ``knotwork.lwt`` and its siblings, and what they share: names that are loaded on first use, sync twins."""

from collections.abc import Callable, Coroutine, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ..events import Events

__all__ = ["heard", "run_here", "when_named"]

T = TypeVar("T")


def when_named(module: str, rooms: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a module's ``__getattr__``: a name of ``rooms`` is loaded from its room, "lang.trees.lwt".

    "lang.lwt:Other" is for a name that is another one there.
    """

    def load(name: str) -> Any:
        if name not in rooms:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        room, _, other = rooms[name].partition(":")
        return getattr(import_module(f"...{room}", __package__), other or name)

    return load


def run_here(begin: Callable[[], Coroutine[Any, Any, T]], instead: str) -> T:
    """Run what ``begin`` makes to its end, in an event loop of its own. Raises ``RuntimeError`` where one is running already."""
    import asyncio  # who only reads and checks needs none

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(begin())
    raise RuntimeError(f"an event loop is running here: use `await {instead}(...)`")


def heard(events: "Events | None") -> Callable[[str], None]:
    """Return who hears what a person should know of the opening: the subscribers, else the log, which is stderr where nobody set it up."""
    if events is None:
        import logging

        return logging.getLogger("knotwork").warning

    def warn(text: str) -> None:
        from ..events import Warned

        events.emit(Warned("", text))

    return warn
