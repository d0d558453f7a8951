"""A page at a time: prints what fits, and asks for a key before it goes on."""

import sys
from collections.abc import Awaitable, Callable
from typing import Literal

from prompt_toolkit.application import Application
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl

from .outcome import Lines

__all__ = ["Answer", "ask_key", "paged"]

Answer = Literal["more", "all", "stop"]
_LEAST = 4


async def ask_key(text: str) -> Answer:
    """Show ``text`` at the foot until a key says how to go on; then it is gone."""
    keys = KeyBindings()
    for pressed, answer in _KEYS.items():

        @keys.add(pressed)
        def _(event: KeyPressEvent, answer: Answer = answer) -> None:
            event.app.exit(result=answer)

    window = Window(FormattedTextControl([("reverse", text)]), height=1)
    app: Application[Answer] = Application(Layout(window), key_bindings=keys, erase_when_done=True)
    return await app.run_async(handle_sigint=False)  # whoever runs this hears it


_KEYS: dict[str, Answer] = {
    "enter": "more", "space": "more", "pagedown": "more", "down": "more", "a": "all", "q": "stop", "Q": "stop", "escape": "stop",
    "c-c": "stop", "c-d": "stop",
}  # fmt: skip


async def paged(
    lines: Lines,
    height: Callable[[], int],
    say: Callable[[str], None],
    stopped: Callable[[], bool] = lambda: False,
    ask: Callable[[str], Awaitable[Answer]] = ask_key,
) -> int:
    """Print ``lines`` a page at a time; return how many of their parts were printed. ``height`` gives the terminal's, which may change.
    It ends, too, when ``stopped`` says so.

    What fits on a page is printed at once.
    """
    for line in lines.head:
        say(line)
    room, every, number = max(height() - len(lines.head) - 3, _LEAST), False, 0
    while number < lines.count and not stopped():
        part = lines.part(number)
        if not every and room < len(part) and number:
            told = f" {lines.noun}s 1-{number:,} of {lines.count:,} · Enter: more · a: all · q: stop "
            sys.stdout.flush()
            answer = await ask(told)
            if answer == "stop":
                return number
            every, room = answer == "all", max(height() - len(lines.head) - 2, _LEAST)
            for line in () if every else lines.head:
                say(line)
        for line in part:
            say(line)
        room -= len(part)
        number += 1
    return number
