"""The graph port's adapter for NetworkX."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .adapter import NetworkXAdapter
    from .loader import Loaded, LoadReport, load

__all__ = ["LoadReport", "Loaded", "NetworkXAdapter", "load"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that a search does not load the file readers, and a reader not the search."""
    if name == "NetworkXAdapter":
        from .adapter import NetworkXAdapter

        return NetworkXAdapter
    if name in ("LoadReport", "Loaded", "load"):
        from . import loader

        return getattr(loader, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
