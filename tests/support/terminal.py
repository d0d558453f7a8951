"""A command on a terminal of its own: what it wrote, what stands on the screen in the end, and signals on the way."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from support.command import environment

__all__ = ["Terminal", "screen_of"]

_PIECE = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\r|\n|[^\x1b\r\n]+|\x1b")


@dataclass
class Terminal:
    """``knotwork`` with ``args`` on a terminal of ``rows`` and ``columns``. ``when``: a text, and what is done once it is seen."""

    args: Sequence[str | Path]
    home: Path
    rows: int = 24
    columns: int = 100
    env: dict[str, str] = field(default_factory=dict)
    when: Sequence[tuple[str, Callable[["Terminal"], None]]] = ()
    written: str = ""
    code: int = 0

    def run(self, timeout: float = 40) -> "Terminal":
        """Run it to its end, at most ``timeout`` seconds, and return this."""
        self._parent, child = pty.openpty()
        self.resize(self.columns)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "knotwork", *map(str, self.args)],
            stdin=subprocess.DEVNULL, stdout=child, stderr=child, cwd=self.home, env=environment(self.home, TERM="xterm", **self.env),
        )  # fmt: skip
        os.close(child)
        late = threading.Timer(timeout, self._process.kill)
        late.start()
        try:
            self._read()
            self.code = self._process.wait(timeout)
        finally:
            late.cancel()
            self._process.kill()
            self._process.wait()
            os.close(self._parent)
        return self

    def interrupt(self) -> None:
        """Do what Ctrl-C does."""
        self._process.send_signal(signal.SIGINT)

    def resize(self, columns: int) -> None:
        """Make the terminal as wide as that."""
        fcntl.ioctl(self._parent, termios.TIOCSWINSZ, struct.pack("HHHH", self.rows, columns, 0, 0))

    @property
    def screen(self) -> str:
        """What stands there in the end."""
        return screen_of(self.written, self.columns)

    def _read(self) -> None:
        seen, left = b"", list(self.when)
        while True:
            try:
                part = os.read(self._parent, 65536)
            except OSError:  # the other end is closed
                return
            if not part:
                return
            seen += part
            self.written = seen.decode(errors="replace")
            while left and left[0][0] in self.written:
                left.pop(0)[1](self)


def screen_of(written: str, columns: int) -> str:
    """Return the lines that a terminal shows after ``written``; a control sequence that a display does not need is a fault."""
    lines, row, column = [""], 0, 0
    for found in _PIECE.finditer(written):
        text, kind = found[0], found[2]
        if text == "\r":
            column = 0
        elif text == "\n":
            row += 1
        elif kind == "K":
            lines[row] = ""
        elif kind == "A":
            row = max(0, row - int(found[1] or 1))
        elif text.startswith("\x1b"):
            assert kind in ("m", "h", "l"), repr(text)
        else:
            for character in text:
                if column == columns:
                    row, column = row + 1, 0
                    lines += [""] * (row + 1 - len(lines))
                lines[row] = lines[row][:column].ljust(column) + character + lines[row][column + 1 :]
                column += 1
        lines += [""] * (row + 1 - len(lines))
    return "\n".join(line.rstrip() for line in lines)
