"""The prompt itself: history with search, colours, completion, keys."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.output.color_depth import ColorDepth

from .....adapters.llm.keys import has_key, mask_keys
from .....adapters.permissions import private_folder
from .....lang.catalogue.schema import Schema
from ..desk import Desk
from .completing import Fix, Offers
from .keys import bindings
from .lexing import STYLE, Colours

__all__ = ["Dropped", "make_prompt"]


class Dropped(Exception):
    """Ctrl-C at the prompt: what was typed is dropped, as in a shell."""


def make_prompt(
    desk: Desk, fix: Fix, schema: Callable[[], Schema | None], history: Path | None, *, colour: bool
) -> "PromptSession[str]":
    """Return the prompt. ``history`` is its file, None keeps it in memory; nobody else may read it.

    Raises ``Dropped`` at Ctrl-C and ``EOFError`` at Ctrl-D.
    """
    return PromptSession(
        message=[("class:prompt", "knotwork> ")],
        prompt_continuation=_continued,
        multiline=True,
        lexer=Colours(),
        style=STYLE,
        color_depth=None if colour else ColorDepth.DEPTH_1_BIT,
        completer=Offers(desk, fix, schema),
        complete_while_typing=False,
        complete_in_thread=False,  # it takes milliseconds; beside the loop it would race with what is typed next
        auto_suggest=AutoSuggestFromHistory(),
        enable_history_search=True,
        history=_history(history),
        key_bindings=bindings(),
        reserve_space_for_menu=6,
        interrupt_exception=Dropped,  # a KeyboardInterrupt would end the event loop
    )


def _continued(width: int, line_number: int, wrap_count: int) -> StyleAndTextTuples:
    # A line that is merely folded by the terminal begins no new one.
    return [("class:hint", ("" if wrap_count else "...").rjust(max(width - 1, 3)) + " ")]


class _Kept(FileHistory):
    """A history on the disk; where it can't be written, what is typed is kept in memory and nobody is stopped."""

    def store_string(self, string: str) -> None:
        """Add a text, but for one that is the same as before, and for a line with a key in it."""
        strings = self.get_strings()
        if len(strings) > 1 and strings[-2] == string:
            return
        if mask_keys(string) != string or (string.lstrip().startswith(".llm") and has_key(string, os.environ)):
            return
        try:
            super().store_string(string)
        except OSError:
            return

    def load_history_strings(self) -> Any:
        """Return what was typed in earlier sessions, the latest first."""
        try:
            return list(super().load_history_strings())
        except (OSError, ValueError):
            return []


def _history(path: Path | None) -> History:
    if path is None:
        return InMemoryHistory()
    try:
        private_folder(path.parent)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return InMemoryHistory()
    return _Kept(str(path))
