"""A real terminal: a tmux of its own, in which a command runs, is typed at, pasted into and resized; its screen as text."""

import io
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from support.command import environment

__all__ = ["Tmux"]


@dataclass
class Tmux:
    """``knotwork`` with ``args`` in a tmux of ``columns`` and ``rows``. Enter it; at the end its server is gone."""

    args: Sequence[str | Path]
    home: Path
    columns: int = 80
    rows: int = 24
    env: dict[str, str] = field(default_factory=dict)
    socket: str = field(default_factory=lambda: f"knotwork-{uuid4().hex[:12]}")

    def __enter__(self) -> "Tmux":
        env = environment(self.home, TERM="xterm-256color", **self.env)
        words = [
            "env",
            "-i",
            *(f"{name}={value}" for name, value in env.items()),
            sys.executable,
            "-m",
            "knotwork",
            *map(str, self.args),
        ]
        # The shell stays, so that what is left on the screen and the exit code can be seen.
        command = f'{shlex.join(words)}; echo "left with $?"; exec cat'
        self._tmux(
            "-f",
            os.devnull,
            "new-session",
            "-d",
            "-x",
            str(self.columns),
            "-y",
            str(self.rows),
            "-c",
            str(self.home),
            command,
        )
        self._tmux("set-option", "-g", "escape-time", "0")
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], capture_output=True, check=False)

    def type(self, text: str) -> None:
        """Type ``text``, letter by letter."""
        self._tmux("send-keys", "-l", "--", text)

    def keys(self, *names: str) -> None:
        """Press keys by their tmux names: ``Enter``, ``Tab``, ``C-c``, ``Up``."""
        self._tmux("send-keys", *names)

    def line(self, text: str) -> None:
        """Type a line and press Enter."""
        self.type(text)
        self.keys("Enter")

    def paste(self, text: str) -> None:
        """Paste ``text`` as a terminal does, in brackets where the program asked for that."""
        subprocess.run(
            ["tmux", "-L", self.socket, "load-buffer", "-"], input=text.encode(), check=True, capture_output=True
        )
        self._tmux("paste-buffer", "-p", "-r")

    def resize(self, columns: int, rows: int) -> None:
        """Make the terminal another size."""
        self._tmux("resize-window", "-x", str(columns), "-y", str(rows))

    @property
    def screen(self) -> str:
        """What stands on the screen, without trailing blanks."""
        lines = [line.rstrip() for line in self._tmux("capture-pane", "-p").split("\n")]
        return "\n".join(lines).rstrip("\n")

    @property
    def coloured(self) -> str:
        """The screen with its colours, as escape sequences."""
        return self._tmux("capture-pane", "-p", "-e")

    @property
    def scrolled(self) -> str:
        """All that was written, what has left the screen too."""
        return "\n".join(line.rstrip() for line in self._tmux("capture-pane", "-p", "-S", "-").split("\n")).rstrip("\n")

    def still(self, seconds: float = 0.5) -> None:
        """Wait until nothing moves on the screen for that long."""
        before = ""
        while (now := self.coloured) != before:
            before = now
            time.sleep(seconds)

    def picture(self, title: str) -> str:
        """Return the screen as an SVG, which loads nothing."""
        console = Console(record=True, width=self.columns, file=io.StringIO(), legacy_windows=False)
        lines = self.coloured.rstrip("\n").split("\n")
        console.print(Text.from_ansi("\n".join(lines)), end="")
        alone = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
        assert "http" not in alone.replace("http://www.w3.org", "").replace("https://www.textualize.io", "")
        return console.export_svg(title=title, code_format=alone, unique_id="screen")

    def wait(self, *texts: str, seconds: float = 20, times: int = 1, gone: str = "") -> str:
        """Wait until all ``texts`` stand on the screen, each ``times`` times, and ``gone`` does not; return the screen."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            screen = self.screen
            if all(screen.count(text) >= times for text in texts) and not (gone and gone in screen):
                return screen
            time.sleep(0.05)
        raise AssertionError(f"{texts} did not come:\n{self.screen}")

    def _tmux(self, *args: str) -> str:
        done = subprocess.run(["tmux", "-L", self.socket, *args], capture_output=True, check=True)
        return done.stdout.decode()
