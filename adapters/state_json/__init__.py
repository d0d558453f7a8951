"""The state store, which saves JSON records in a journal."""

from .open_state import open_store
from .store import JSONStateStore

__all__ = ["JSONStateStore", "open_store"]
