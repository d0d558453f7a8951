"""The graph adapter for NetworkX."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .adapter import NetworkXAdapter
    from .load_report import Loaded, LoadReport
    from .loader import load

__all__ = ["LoadReport", "Loaded", "NetworkXAdapter", "load"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that a search loads no file readers, and a file reader no search."""
    if name == "NetworkXAdapter":
        from .adapter import NetworkXAdapter

        return NetworkXAdapter
    if name == "load":
        from .loader import load

        return load
    if name in ("LoadReport", "Loaded"):
        from . import load_report

        return getattr(load_report, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
