"""Where a server listens: the socket, made before anything else is, and its address as clients write it."""

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["NoPort", "listening", "url_of"]


class NoPort(Exception):
    """The server can't listen where it should."""


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Give a socket that takes connections at this address. Raises ``NoPort``."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        made = socket.socket(family, kind, protocol)
    except OSError as error:
        raise NoPort(f"{host} is no address of this machine: {error.strerror}") from None
    with made:
        try:
            if sys.platform != "win32":  # there it would let a second server take the port
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
            made.listen(2048)
        except OSError as error:
            raise NoPort(f"can't listen on {host}:{port}: {(error.strerror or str(error)).lower()}") from None
        made.setblocking(False)
        yield made


def url_of(made: socket.socket) -> str:
    """Return the URL of what listens at ``made``, without a path."""
    host, port = made.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
