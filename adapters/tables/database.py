"""A restricted DuckDB database (extra ``data``). It can read only the named files, and spills to a private temporary folder."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .port import MissingExtra

if TYPE_CHECKING:
    import duckdb

MEMORY = "256MB"
"""Memory that DuckDB may use before it spills to the temporary folder."""


def import_duckdb(what: str) -> Any:
    """Import duckdb. Raises ``MissingExtra``, whose message begins with ``what``."""
    try:
        import duckdb
    except ImportError:
        raise MissingExtra(what, "data") from None
    return duckdb


class Database:
    """A DuckDB connection that can access only ``files`` and ``database``, and that spills to a private folder."""

    folder: str | None = None

    def __init__(self, what: str, files: Sequence[Path] = (), database: Path | None = None) -> None:
        module = import_duckdb(what)
        self.folder = tempfile.mkdtemp(prefix="knotwork-")
        settings: dict[str, Any] = {
            "memory_limit": MEMORY, "threads": 2, "temp_directory": self.folder, "autoload_known_extensions": False,
            "autoinstall_known_extensions": False, "python_enable_replacements": False,
        }  # fmt: skip
        try:
            if database is None:
                self.connection: duckdb.DuckDBPyConnection = module.connect(config=settings)
            else:
                self.connection = module.connect(str(database), read_only=True, config=settings)
            if files:
                allowed = [name for file in files for name in {str(file), literal_path(file)}]
                self.connection.execute("SET allowed_paths = ?", [allowed])
            self.connection.execute("SET enable_external_access = false")
            self.connection.execute("SET lock_configuration = true")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection and remove the temporary folder; may be called more than once."""
        connection = getattr(self, "connection", None)
        if connection is not None:
            connection.close()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def __del__(self) -> None:
        self.close()


def literal_path(path: Path) -> str:
    """Return a path with pattern characters escaped, because DuckDB would expand them."""
    return "".join(f"[{character}]" if character in "*?[" else character for character in str(path))
