"""The state store over a journal of JSON records."""

from .open_state import open_store
from .store import JSONStateStore

__all__ = ["JSONStateStore", "open_store"]
