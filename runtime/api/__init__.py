"""The public modules (``knotwork.lwt`` and others). They share the functions of this module, such as lazy loading of names."""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ..events import Events

__all__ = ["check_names", "load_on_first_use", "run_here", "warning_reporter"]

T = TypeVar("T")


def load_on_first_use(module: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for ``module`` that loads names on first use. ``modules`` maps each name to the module that defines it.

    For the value "lang.trees.lwt", the name itself is loaded from that module; for "lang.trees.lwt:Other", the name ``Other``
    is loaded.
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        path, _, other = modules[name].partition(":")
        return getattr(import_module(f"...{path}", __package__), other or name)

    return load


def run_here(begin: Callable[[], Coroutine[Any, Any, T]], instead: str) -> T:
    """Run the coroutine that ``begin`` returns in a new event loop. Raises ``RuntimeError`` inside a running event loop."""
    import asyncio  # imported here: reading and checking a text need no event loop

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(begin())
    raise RuntimeError(f"an event loop is running here: use `await {instead}(...)`")


def warning_reporter(events: "Events | None") -> Callable[[str], None]:
    """Return a function that sends a warning to the subscribers of ``events``; if it is None, to the logger ``knotwork``."""
    if events is None:
        import logging

        return logging.getLogger("knotwork").warning

    def warn(text: str) -> None:
        from ..events import Warned

        events.emit(Warned("", text))

    return warn


def check_names(given: Iterable[str], known: Sequence[str], aliases: Mapping[str, str] | None = None) -> None:
    """Raise ``RequestError`` if a setting in ``given`` is unknown. ``aliases`` maps wrong names to the settings probably meant."""
    from ...lang.diagnostic import nearest
    from ..errors import RequestError

    for name in given:
        if name not in known:
            like = (aliases or {}).get(name) or nearest(name, known)
            hint = f"did you mean {like!r}?" if like else f"the settings are: {', '.join(known)}"
            raise RequestError(name[:80], "unknown setting", hint)
