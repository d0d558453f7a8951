"""A real PostgreSQL server in a folder of its own, reached through a socket in that folder."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["BINARIES", "PGBOUNCER", "Server"]

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
"""The folders of the installed versions."""


PGBOUNCER = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin")
"""The program of the connection pool; None if it is not installed."""


class Server:
    """A running server. ``url`` is its database, with a password that the server does not ask for."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="kw-pg-")
        self._options: dict[str, Any] = {
            "cwd": self.folder, "env": {"PATH": "/usr/bin:/bin", "HOME": self.folder, "LC_ALL": "C"}, "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
        }  # fmt: skip
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(self.folder, "nobody")
            self._options |= {"user": "nobody", "extra_groups": []}
        self.url = f"postgresql://kw:hunter2@/postgres?host={self.folder}"
        self._running: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> "Server":
        words = ["-D", f"{self.folder}/data", "-U", "kw", "-A", "trust", "-E", "UTF8", "--no-sync"]
        subprocess.run([BINARIES[-1] / "initdb", *words], check=True, **self._options)
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self) -> None:
        """Start the server and wait until it answers."""
        import psycopg

        words = ["-D", f"{self.folder}/data", "-k", self.folder, "-c", "listen_addresses=", "-c", "fsync=off"]
        self._running = subprocess.Popen([BINARIES[-1] / "postgres", *words], **self._options)
        for _ in range(400):
            try:
                psycopg.connect(self.url).close()
                return
            except psycopg.OperationalError:
                assert self._running.poll() is None
                time.sleep(0.05)
        raise AssertionError("the server does not answer")

    @contextlib.contextmanager
    def pooled(self) -> Iterator[str]:
        """Run a pgbouncer with three connections in transaction mode, and yield the URL of the database behind it."""
        assert PGBOUNCER is not None
        folder = Path(self.folder, "pool")
        folder.mkdir()
        if os.geteuid() == 0:
            shutil.chown(folder, "nobody")
        (folder / "pool.ini").write_text(
            f"[databases]\npostgres = host={self.folder} dbname=postgres user=kw\n[pgbouncer]\nlisten_addr =\nauth_type = any\n"
            f"unix_socket_dir = {folder}\nlisten_port = 6432\npool_mode = transaction\ndefault_pool_size = 3\n"
        )
        running = subprocess.Popen([PGBOUNCER, folder / "pool.ini"], **self._options)
        try:
            for _ in range(400):
                if (folder / ".s.PGSQL.6432").exists():
                    break
                assert running.poll() is None
                time.sleep(0.05)
            yield f"postgresql://kw@/postgres?host={folder}&port=6432"
        finally:
            running.kill()
            running.wait(10)
            shutil.rmtree(folder)

    def rows(self, query: str, *values: Any) -> list[Any]:
        """Run a query, and return its rows."""
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(query, values or None)  # type: ignore[call-overload]
            return list(cursor.fetchall()) if cursor.description else []

    def stop(self) -> None:
        """Stop the server without waiting for open connections."""
        if self._running is not None and self._running.poll() is None:
            self._running.send_signal(signal.SIGINT)
            self._running.wait(30)
