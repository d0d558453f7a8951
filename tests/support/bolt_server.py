"""A real server that speaks Bolt: ArcadeDB from the package ``arcadedb-embedded``, whose wheel has its own Java."""

import os
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

USER, PASSWORD, DATABASE = "root", "playwithdata", "g"
START_SECONDS = 120.0


def installed() -> Path | None:
    """The folder of the package, None if it is not installed or its wheel has no Java for this machine."""
    found = find_spec("arcadedb_embedded")
    folder = Path(next(iter(found.submodule_search_locations or ()))) if found is not None else None
    return folder if folder is not None and (folder / "jre" / "bin" / "java").exists() else None


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


class BoltServer:
    """A server process with one database. ``kill`` ends it at once, ``start`` starts it again on the same port and data."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self.http = free_port(), free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def url(self, options: str = "") -> str:
        return f"bolt://{USER}@127.0.0.1:{self.port}/{DATABASE}{options}"

    def start(self) -> None:
        package = installed()
        assert package is not None
        settings = {
            "server.rootPassword": PASSWORD,
            "server.rootPath": self.folder,
            "server.databaseDirectory": self.folder / "databases",
            "server.defaultDatabases": f"{DATABASE}[root]",
            "server.plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
            "bolt.port": self.port,
            "bolt.host": "127.0.0.1",
            "server.httpIncomingHost": "127.0.0.1",
            "server.httpIncomingPort": self.http,
        }
        command = [str(package / "jre" / "bin" / "java"), "-Xmx300m", "-Djava.awt.headless=true"]
        command += [f"-Darcadedb.{name}={value}" for name, value in settings.items()]
        command += ["-cp", str(package / "jars" / "*"), "com.arcadedb.server.ArcadeDBServer"]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={"PATH": os.environ["PATH"]},
            )
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            assert self.process.poll() is None, (self.folder / "server.log").read_text(errors="replace")[-2000:]
            try:
                self.write("RETURN 1")
                return
            except Exception:
                time.sleep(0.2)
        raise AssertionError("the server did not start")

    def write(self, text: str, **values: Any) -> None:
        """Run a statement as a writer."""
        self.write_all([(text, values)])

    def write_all(self, statements: Sequence[tuple[str, dict[str, Any]]]) -> None:
        """Run statements as a writer, on one connection."""
        import neo4j

        address = f"bolt://127.0.0.1:{self.port}"
        with (
            neo4j.GraphDatabase.driver(address, auth=(USER, PASSWORD)) as driver,
            driver.session(database=DATABASE) as each,
        ):
            for text, values in statements:
                each.run(text, values).consume()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class Relay:
    """Passes bytes between a port and the server. If ``cut_after`` is set, connections break after that many bytes of answers."""

    def __init__(self, server: int) -> None:
        self.server = server
        self.cut_after: int | None = None
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])

    def __enter__(self) -> "Relay":
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.server))
            for source, target, counted in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._pass, args=(source, target, counted), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        passed = 0
        with source, target:
            try:
                while data := source.recv(65_536):
                    passed += len(data)
                    if counted and self.cut_after is not None and passed > self.cut_after:
                        break
                    target.sendall(data)
            except OSError:
                pass
            for each in (source, target):
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)


@contextmanager
def bolt_server() -> Iterator[BoltServer]:
    with tempfile.TemporaryDirectory(prefix="knotwork-bolt-") as folder:
        server = BoltServer(Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.kill()
