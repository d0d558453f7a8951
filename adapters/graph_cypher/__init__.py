"""Graphs in databases that understand Cypher, opened by a URL. Importing this package imports no database library."""

from typing import TYPE_CHECKING

from .address import is_database, parse_address

if TYPE_CHECKING:
    from .adapter import CypherAdapter

__all__ = ["is_database", "open_database"]


def open_database(url: str, strict: bool = False) -> "CypherAdapter":
    """Open the database of a URL (``ladybug:PATH``, ``bolt://user@host:7687/db``), to read from it.

    See ``CypherAdapter`` for ``strict``. Raises ``AdapterError``.
    """
    from .adapter import CypherAdapter

    address = parse_address(url)
    if address.scheme == "ladybug":
        from .ladybug_database import LadybugDatabase

        return CypherAdapter(LadybugDatabase(address), address, strict)
    from .bolt_database import BoltDatabase

    return CypherAdapter(BoltDatabase(address), address, strict)
