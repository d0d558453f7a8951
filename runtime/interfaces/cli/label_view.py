"""The terminal screen of ``knotwork label``: a review, the field to label, and a key for each value.

Keys are read one by one, without echo. Notes, and values without a key, are typed in a line at the bottom. The screen is drawn
again after each key and when its size changes. It needs at least 40 columns, but no colours.
"""

import codecs
import contextlib
import os
import select
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from attrs import define, field
from rich.console import Console
from rich.text import Text

from ...api.labels import LabelSession, read_typed
from .output import colour, printable_text

_COMMANDS = {"u": "undo", "s": "skip", "n": "note", "q": "quit"}
_VALUE_KEYS = "123456789abcdefghijklmoprtvwxyz0"
"""Keys for values, in order. They do not include ``?`` and the keys of commands."""
_ENTER, _BACKSPACE, _ESCAPE = "\r\n", "\x7f\x08", "\x1b"
_PAGE_DOWN, _PAGE_UP = (" ", "\x1b[B", "\x1b[6~"), ("\x1b[A", "\x1b[5~")
_LEAST_TEXT = 3
"""Minimum number of lines for the text of a review."""


@define
class LabelView:
    """Shows a session and processes keys. ``run`` reads the terminal's keys; ``press`` processes one key, and draws nothing."""

    session: LabelSession
    name: str
    console: Console
    entry: str | None = None
    """The text typed so far; None while no text is being typed."""
    is_note: bool = False
    message: str = ""
    scroll: int = 0
    closed: bool = field(default=False, init=False)

    def run(self) -> None:
        """Label until the person quits or all reviews are done. Raises ``KeyboardInterrupt`` and ``OSError`` (the terminal is gone)."""
        self._begin()
        with _raw_keys(self._draw) as keys:
            self._draw()
            for key in keys:
                self.press(key)
                if self.closed or self.session.item is None:
                    return
                self._draw()

    def press(self, key: str) -> None:
        """Process a key: a character, or the escape sequence of a special key."""
        self.message = ""
        if self.session.item is None or not key:
            return
        if key in _PAGE_DOWN and (self.entry is None or key != " "):
            self.scroll += self._text_height() - 1
        elif key in _PAGE_UP:
            self.scroll = max(0, self.scroll - self._text_height() + 1)
        elif self.entry is not None:
            self._type(key)
        else:
            self._choose(key)

    # Keys

    def _choose(self, key: str) -> None:
        """Process a key that selects a value or a command. Called while no text is being typed."""
        wanted = self.session.field
        assert wanted is not None  # noqa: S101 - an open item has an open field
        values = dict(zip(_VALUE_KEYS, self._values(), strict=False))
        if key in values:
            self._change(lambda: self.session.label(read_typed(values[key], wanted)))
        elif key in _COMMANDS:
            self._command(key)
        elif key == "-":
            self._change(self.session.pass_field)
        else:
            self.message = f"unknown key; press {self._keys_hint()}"

    def _command(self, key: str) -> None:
        if key == "q":
            self.closed = True
        elif key == "n":
            self.entry, self.is_note = self.session.note(), True
        elif key == "s":
            self._change(self.session.skip)
        else:
            self._change(self._undo)

    def _undo(self) -> None:
        if not self.session.undo():
            self.message = "nothing to undo"

    def _type(self, key: str) -> None:
        """Handle a key press that edits the text of a field. Called while the user types this text."""
        entry = self.entry or ""
        if key in _ENTER:
            self._enter(entry)
        elif key == _ESCAPE:
            self.entry, self.is_note = None, False
            self._begin()
        elif key in _BACKSPACE:
            self.entry = entry[:-1]
        elif not entry and not self.is_note and key in _COMMANDS and self._is_number():
            self.entry = None
            self._command(key)
            if self.entry is None:
                self._begin()
        elif len(key) == 1 and key.isprintable():
            self.entry = entry + key

    def _enter(self, entry: str) -> None:
        if self.is_note:
            self.entry, self.is_note = None, False
            self._change(lambda: self.session.set_note(entry))
            return
        command = entry.strip()
        if command.startswith(":") and command[1:] in _COMMANDS:
            self.entry = None
            self._command(command[1:])
            if self.entry is None:
                self._begin()
            return
        wanted = self.session.field
        assert wanted is not None  # noqa: S101 - an open item has an open field
        if not entry.strip():
            self._change(self.session.pass_field)
            return
        try:
            value = read_typed(entry, wanted)
        except ValueError as error:
            self.message = str(error)
            return
        self._change(lambda: self.session.label(value))

    def _change(self, change: Any) -> None:
        """Make a change, and prepare the next field. If the file can't be written, nothing changes, and a message says so."""
        before = self.session.at
        try:
            change()
        except OSError as error:
            self.message = f"not saved: {error.strerror or error}"
        if self.session.at != before:
            self.scroll = 0
        self._begin()

    def _begin(self) -> None:
        """Start the input of a text if the values of the current field have no keys."""
        wanted = self.session.field
        self.entry = "" if wanted is not None and not self._values() else None

    def _values(self) -> Sequence[str]:
        """Return the values of the current field, if they have keys; an empty sequence if the value is typed."""
        wanted = self.session.field
        if wanted is None:
            return ()
        values = ("true", "false") if wanted.type == "bool" else tuple(wanted.values) if wanted.type == "enum" else ()
        return values if len(values) <= len(_VALUE_KEYS) else ()

    def _is_number(self) -> bool:
        wanted = self.session.field
        return wanted is not None and wanted.type in ("int", "float")

    # The screen

    def lines(self) -> list[Text]:
        """Return the lines of the screen."""
        above, below = self._above(), self._below()
        room = max(_LEAST_TEXT, self.console.height - len(above) - len(below) - 1)
        text = self._review_lines()
        if len(text) > room:
            last = max(0, len(text) - room + 1)
            self.scroll = min(self.scroll, last)
            shown = text[self.scroll : self.scroll + room - 1]
            left = len(text) - self.scroll - len(shown)
            more = f"… {left} more lines (space)" if left else f"… end of {len(text)} lines (up)"
            text = [*shown, Text(more, "dim")]
        return [*above, *text, *below]

    def _draw(self) -> None:
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            self.console.file.write("\x1b[2J\x1b[H")
        for line in self.lines():
            self.console.print(line, no_wrap=True, overflow="ellipsis", crop=True, highlight=False)
        self.console.file.flush()

    def _review_lines(self) -> list[Text]:
        item = self.session.item
        return [] if item is None else self._wrapped(Text(printable_text(item.text)))

    def _wrapped(self, text: Text) -> list[Text]:
        return list(text.wrap(self.console, self.console.width))

    def _text_height(self) -> int:
        return max(_LEAST_TEXT, self.console.height - len(self._above()) - len(self._below()) - 1)

    def _above(self) -> list[Text]:
        item = self.session.item
        if item is None:
            return []
        session, skipped = self.session, self.session.skipped
        head = (
            f"{session.done + 1} of {len(session.items)}"
            + (f" · {skipped} skipped" if skipped else "")
            + f" · {self.name}"
        )
        about = list(dict.fromkeys(filter(None, (item.keys["context"], item.keys["id"]))))
        about += [f"{name} {value}" for name, value in item.about.items()]
        about += [] if item.picked == "random" else [f"picked: {item.picked}"]
        lines = [Text(head, "bold")]
        lines += self._wrapped(Text(printable_text(" · ".join(about)), "dim"))[:2] if about else []
        return [*lines, Text("")]

    def _below(self) -> list[Text]:
        item, wanted = self.session.item, self.session.field
        if item is None or wanted is None:
            return []
        lines = [Text("")]
        if self.session.show:
            said = item.answers.get("", item.answers.get(wanted.name)) if item.answers else "none"
            lines += self._wrapped(Text(printable_text(f"model: {said}"), "yellow"))[:2]
        if labels := self.session.labels():
            lines += self._wrapped(
                Text(printable_text(", ".join(f"{name} = {value}" for name, value in labels.items())), "green")
            )[:2]
        if note := self.session.note():
            lines += self._wrapped(Text(printable_text(f"note: {note}"), "dim"))[:2]
        doc = f": {wanted.doc}" if wanted.doc else ""
        lines += self._wrapped(Text.assemble((printable_text(wanted.name), "bold"), printable_text(doc)))[:3]
        lines += self._choices() if self._values() else [Text(_TYPED.get(wanted.type, "type a value"), "dim")]
        if self.entry is not None:
            lines += self._wrapped(
                Text(f"{'note' if self.is_note else printable_text(wanted.name)}> {printable_text(self.entry)}▏")
            )[-2:]
        lines += self._wrapped(Text(self._footer(), "dim"))
        if self.message:
            lines += self._wrapped(Text(printable_text(self.message), "bold red"))[:2]
        return lines

    def _choices(self) -> list[Text]:
        """Return the lines with the values and their keys.

        Values without meanings that fit into one row share this row; otherwise each value has its own line.
        """
        wanted = self.session.field
        values = self._values()
        assert wanted is not None  # noqa: S101 - values are those of a field
        row = "   ".join(f"{key} {value}" for key, value in zip(_VALUE_KEYS, values, strict=False))
        if len(row) <= self.console.width and not any(wanted.values.values()):
            return [Text(printable_text(row))]
        return [
            Text(printable_text(f"{key} {value}{f': {meaning}' if (meaning := wanted.values.get(value)) else ''}"))
            for key, value in zip(_VALUE_KEYS, values, strict=False)
        ]

    def _footer(self) -> str:
        if self.is_note:
            return "Enter saves the note · Esc leaves it"
        prefix = "" if self._values() or self._is_number() else ":"
        commands = " · ".join(f"{prefix}{key} {what}" for key, what in _COMMANDS.items())
        return f"{commands} · {'-' if self._values() else 'empty'} no label"

    def _keys_hint(self) -> str:
        keys = [key for key, _ in zip(_VALUE_KEYS, self._values(), strict=False)]
        shown = f"{keys[0]} to {keys[-1]}" if len(keys) > 1 else "".join(keys)
        return f"{shown}, u, s, n, q or -"


_TYPED = {
    "int": "type a whole number, then Enter", "float": "type a number, then Enter", "text": "type the text, then Enter",
    "list": "type the elements with ; between them, then Enter", "enum": "type a value, then Enter",
}  # fmt: skip


def console_of() -> Console:
    """Return the console of the screen. It writes to stdout, in colour under the same conditions as the other commands."""
    on = colour(sys.stdout)
    return Console(file=sys.stdout, highlight=False, color_system="auto" if on else None, legacy_windows=False)


# Keys are read in the terminal's unbuffered mode. The earlier mode is always restored at the end.


@contextlib.contextmanager
def _raw_keys(redraw: Callable[[], None]) -> Iterator[Iterator[str]]:
    """Yield an iterator over the keys that are pressed. ``redraw`` is called when the size changes or the process continues.

    Signals take effect only between two keys, so that Ctrl-C never interrupts the writing of a label.
    """
    if sys.platform == "win32":
        yield _windows_keys()
        return
    import termios
    import tty

    handle, before = sys.stdin.fileno(), termios.tcgetattr(sys.stdin.fileno())
    full_screen = os.environ.get("TERM") not in (None, "", "dumb")
    wakeup, wake = os.pipe()
    arrived: list[int] = []

    def note(number: int, frame: object) -> None:
        arrived.append(number)
        os.write(wake, b"!")

    def enter() -> None:
        tty.setcbreak(handle)
        if full_screen:
            sys.stdout.write("\x1b[?1049h\x1b[?25l")

    def after_signal() -> None:
        numbers = set(arrived)
        arrived.clear()
        if signal.SIGINT in numbers:
            raise KeyboardInterrupt
        if signal.SIGCONT in numbers:
            enter()
        redraw()

    handlers = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGWINCH, signal.SIGCONT)}
    try:
        enter()
        yield _posix_keys(handle, wakeup, after_signal)
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for end in (wakeup, wake):
            os.close(end)
        if full_screen:
            sys.stdout.write("\x1b[?25h\x1b[?1049l")
        sys.stdout.flush()


def _posix_keys(handle: int, wakeup: int, after_signal: Callable[[], None]) -> Iterator[str]:
    """Yield the keys that arrive at ``handle``. ``after_signal`` is called between keys when ``wakeup`` becomes readable."""
    decoder, waiting = codecs.getincrementaldecoder("utf-8")("replace"), ""
    while True:
        ready, _, _ = select.select([handle, wakeup], [], [])
        if wakeup in ready:
            os.read(wakeup, 1024)
            after_signal()
            continue
        body = os.read(handle, 1024)
        if not body or body == b"\x04":  # the terminal is gone, or Ctrl-D
            return
        waiting += decoder.decode(body)
        if waiting == _ESCAPE and select.select([handle], [], [], 0.05)[0]:
            waiting += decoder.decode(os.read(handle, 1024))
        while waiting:
            key, waiting = _first_key(waiting)
            yield key


def _first_key(text: str) -> tuple[str, str]:
    """Return the first key in the characters read, and the other characters. An escape sequence counts as one key."""
    if not text.startswith("\x1b[") or len(text) < 3:
        return text[0], text[1:]
    end = next((place for place in range(2, len(text)) if text[place].isalpha() or text[place] == "~"), len(text) - 1)
    return text[: end + 1], text[end + 1 :]


def _windows_keys() -> Iterator[str]:
    import msvcrt

    special = {"H": "\x1b[A", "P": "\x1b[B", "I": "\x1b[5~", "Q": "\x1b[6~"}
    while True:
        key = msvcrt.getwch()  # type: ignore[attr-defined, unused-ignore]
        if key == "\x03":
            raise KeyboardInterrupt
        yield special.get(msvcrt.getwch(), "") if key in ("\x00", "\xe0") else key  # type: ignore[attr-defined, unused-ignore]
