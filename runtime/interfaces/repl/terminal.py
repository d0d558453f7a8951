"""The terminal prompt: history with search, colours, completion, keys."""

import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, get_args

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application, get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter, get_common_complete_suffix
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, completion_is_selected, has_completions, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import Layout, Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.lexers import Lexer
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.styles import Style

from ....lang.diagnostic import nearest, printable
from ....lang.service import Language as ServiceLanguage
from ....lang.service import complete, tokens
from ....lang.service.model import TokenType
from ...api.files import create_private_file
from ...api.pieces import Piece, expression_of, is_complete, piece_at, pieces
from ...api.session import Session, has_api_key
from ...api.session_runs import check, known
from ...api.workspace import Schema
from .dot_commands import DOT_COMMANDS, DotCommand, argument_values, dot_fault
from .tables import Lines

# The keys of the prompt: Enter runs a complete text, Tab completes or fixes.

_INDENT = "  "


def bindings() -> KeyBindings:
    """Return the key bindings."""
    keys = KeyBindings()

    @keys.add("enter", filter=~is_searching & ~completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_ready(buffer.text, buffer.document.is_cursor_at_the_end or not buffer.document.text_after_cursor.strip()):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    @keys.add("enter", filter=~is_searching & completion_is_selected)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None  # accept the completion without running the text

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("escape", filter=has_completions, eager=True)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.cancel_completion()

    @keys.add("tab", filter=~has_completions & Condition(_at_indent))
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text(_INDENT)

    @keys.add("tab", filter=~has_completions & ~Condition(_at_indent))
    def _(event: KeyPressEvent) -> None:
        # Synchronous, unlike prompt_toolkit's own completion, where the next keystrokes could arrive before the completion.
        buffer = event.current_buffer
        found = list(buffer.completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
        # Completions that continue the word take precedence over those that only contain it.
        further = [each for each in found if each.text.startswith(_typed(buffer.document, each))]
        if len(found) == 1 or len(further) == 1:
            buffer.apply_completion((further or found)[0])
        elif found:
            buffer.insert_text(get_common_complete_suffix(buffer.document, found))
            buffer.start_completion(insert_common_part=False)

    return keys


def _typed(document: Document, completion: Completion) -> str:
    """Return the text before the cursor that ``completion`` replaces."""
    text = document.text_before_cursor
    return text[len(text) + completion.start_position :]


def _at_indent() -> bool:
    """Return whether only spaces precede the cursor in a line other than the first. At such a position, Tab indents."""
    document = get_app().current_buffer.document
    return document.cursor_position_row > 0 and not document.current_line_before_cursor.strip()


def is_ready(text: str, at_end: bool) -> bool:
    """Return whether Enter runs ``text``: the text is empty or complete, or it ends with two empty lines.

    If the cursor is not at the end of the text (``at_end`` is False), Enter runs only a complete single line.
    """
    if not text.strip():
        return True
    if not at_end:
        return "\n" not in text and _is_all_complete(text)
    return text.endswith("\n\n") or _is_all_complete(text)


def _is_all_complete(text: str) -> bool:
    last = None
    for last in pieces(text):  # noqa: B007 - only the last piece can be incomplete
        pass
    return last is None or is_complete(last.text)


# Syntax colours during typing: maps the language service's tokens to prompt_toolkit styles.

STYLE = Style.from_dict(
    {
        "keyword": "ansiblue", "command": "ansiblue bold", "variable": "ansicyan", "step": "ansicyan bold", "function": "ansiyellow",
        "string": "ansigreen", "number": "ansimagenta", "operator": "", "comment": "ansibrightblack italic", "property": "ansicyan",
        "type": "ansiyellow", "dot": "ansimagenta bold", "prompt": "ansigreen bold", "hint": "ansibrightblack",
        "completion-menu": "bg:ansibrightblack ansiwhite", "completion-menu.completion.current": "bg:ansiblue ansiwhite",
    }
)  # fmt: skip
"""Colours from the terminal's own palette, which are readable on dark and light backgrounds."""

_LONGEST = 20_000
"""Maximum number of characters of a coloured text; a longer text is shown without colours."""
_TYPES = frozenset(get_args(TokenType))


class Colours(Lexer):
    """Colours the text at the prompt."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """Return a function that returns the styled parts of the line with a given number."""
        lines = coloured(document.text)
        return lambda number: lines[number] if number < len(lines) else []


def coloured(text: str) -> list[StyleAndTextTuples]:
    """Return the lines of ``text``; each line is a list of (style, text) pairs."""
    plain: list[StyleAndTextTuples] = [[("", line)] for line in text.split("\n")]
    if len(text) > _LONGEST:
        return plain
    for piece in pieces(text):
        for number, line in enumerate(_coloured_piece(piece)):
            at = piece.first_line - 1 + number
            if at < len(plain):
                plain[at] = line
    return plain


def _coloured_piece(piece: Piece) -> list[StyleAndTextTuples]:
    if piece.language == "dot":
        name, space, rest = piece.text.partition(" ")
        return [[("class:dot", name), ("", space + rest)]]
    if piece.language == "comment":
        return [[("class:comment", line)] for line in piece.text.split("\n")]
    lines: list[StyleAndTextTuples] = [[]]
    done = 0
    for token in tokens(piece.language, piece.text):
        _put(lines, piece.text[done : token.span.start], "")
        _put(
            lines, piece.text[token.span.start : token.span.end], f"class:{token.type}" if token.type in _TYPES else ""
        )
        done = token.span.end
    _put(lines, piece.text[done:], "")
    return lines


def _put(lines: list[StyleAndTextTuples], text: str, style: str) -> None:
    for number, part in enumerate(text.split("\n")):
        if number:
            lines.append([])
        if part:
            lines[-1].append((style, part))


# Tab completions: from the language service, dot commands and their arguments, and fixes of errors.

_DOT = re.compile(r"\s*\.(?P<name>[A-Za-z]*)\Z")
_DOT_AND_MORE = re.compile(r"\s*\.(?P<name>[A-Za-z]+)\s+(?P<rest>.*)\Z", re.DOTALL)
_ONE_WORD = re.compile(r"\s*[A-Za-z_]*\Z")
_DETAIL = 60

Fix = Callable[[], str]
"""Returns the text that fixes the latest error; "" if no fix is known."""


class PromptCompleter(Completer):
    """Completes the text before the cursor. ``schema`` returns the graph's schema, or None until it is available."""

    def __init__(self, session: Session, fix: Fix, schema: Callable[[], Schema | None]) -> None:
        self._session = session
        self._fix = fix
        self._schema = schema
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield the completions at the cursor, the best first."""
        text = document.text_before_cursor
        if not document.text.strip():
            fix = self._fix()
            if fix:
                yield Completion(fix, -len(text), display=_menu_text(fix), display_meta="the fix")
                return
        named = _DOT.match(text)
        if named is not None:
            found_dots = [dot for dot in DOT_COMMANDS.values() if dot.name.startswith(named["name"].lower())]
            for dot in found_dots:
                yield _completion(f".{dot.name}", -len(named["name"]) - 1, dot.summary)
            if not found_dots:
                yield from self._fix_completions(document)
            return
        more = _DOT_AND_MORE.match(text)
        if more is not None and "\n" not in text:
            dot_found = DOT_COMMANDS.get(more["name"].lower())
            if dot_found is None:
                yield from self._fix_completions(document)
            else:
                yield from self._dot_completions(dot_found, more["rest"], complete_event)
            return
        found = list(self._language_completions(document))
        # If the cursor is inside a word, the user wants to complete the word; otherwise the user may want to fix an error.
        if (
            not any(each.start_position for each in found)
            and not document.text_after_cursor.strip()
            and not text[-1:].isspace()
        ):
            yield from self._fix_completions(document)
        yield from found

    def _language_completions(self, document: Document) -> Iterator[Completion]:
        """Yield the language service's completions. For a single word, both commands and expressions are completed."""
        text, at = document.text, document.cursor_position
        piece, start = piece_at(text, at)
        body, offset = piece.text, at - start
        wanted: tuple[ServiceLanguage, ...]
        if _ONE_WORD.match(body[:offset]):
            wanted = ("gasl", "expr")
        elif piece.language in ("gasl", "lwt", "expr"):
            wanted = (piece.language,)
        else:
            return
        known_names, seen = known(self._session, self._schema()), set[str]()
        for language in wanted:
            source = expression_of(body)[1] if language == "expr" else body
            for found in complete(language, source, offset, known_names):
                if found.text in seen or (language == "expr" and len(wanted) > 1 and found.kind == "punctuation"):
                    continue
                seen.add(found.text)
                yield _completion(
                    found.text, found.span.start - offset, found.detail or found.kind, found.match or found.text
                )

    def _fix_completions(self, document: Document) -> Iterator[Completion]:
        """Yield the fixed text if the text is complete and has errors that can be fixed."""
        text = document.text
        if self._schema() is None and self._session.adapter is not None:
            return
        whole = list(pieces(text))
        if len(whole) != 1 or not is_complete(text):
            return
        found = dot_fault(text) if whole[0].language == "dot" else check(whole[0], self._session)
        mended = None if found is None else found.fixed_text
        if mended is not None and mended.strip() != text.strip():
            yield Completion(mended, -document.cursor_position, display=_menu_text(mended), display_meta="the fix")

    def _dot_completions(self, dot: DotCommand, rest: str, event: CompleteEvent) -> Iterator[Completion]:
        if dot.takes == "file":
            yield from self._paths.get_completions(Document(rest, len(rest)), event)
            return
        if dot.takes == "command":
            yield from self._language_completions(Document(rest, len(rest)))
            return
        word = rest.split(" ")[-1]
        known = list(argument_values(dot, self._session, self._schema))
        found = [each for each in known if each[0].lower().startswith(word.lower())]
        if not found:
            near = nearest(word, [offered for offered, _ in known])
            found = [(near, "the fix")] if near is not None else []
        for offered, detail in found:
            yield _completion(offered, -len(word), detail)


def _completion(text: str, start: int, detail: str, shown: str = "") -> Completion:
    return Completion(text, start, display=_menu_text(shown or text), display_meta=_menu_text(detail))


def _menu_text(text: str) -> str:
    """Return ``text`` as one line for a menu: safe for the terminal, and shortened."""
    flat = printable(" ".join(text.split()))
    return flat if len(flat) <= _DETAIL else flat[: _DETAIL - 1] + "…"


class Dropped(Exception):
    """Raised on Ctrl-C at the prompt: the typed text is discarded, as in a shell."""


def make_prompt(
    session: Session, fix: Fix, schema: Callable[[], Schema | None], history: Path | None, *, colour: bool
) -> "PromptSession[str]":
    """Return the prompt. ``history`` is the history file (None: the history stays in memory); only its owner can read the file.

    The prompt raises ``Dropped`` on Ctrl-C and ``EOFError`` on Ctrl-D.
    """
    return PromptSession(
        message=[("class:prompt", "knotwork> ")],
        prompt_continuation=_continued,
        multiline=True,
        lexer=Colours(),
        style=STYLE,
        color_depth=None if colour else ColorDepth.DEPTH_1_BIT,
        completer=PromptCompleter(session, fix, schema),
        complete_while_typing=False,
        complete_in_thread=False,  # completion takes milliseconds; in a thread it would race with the next keystrokes
        auto_suggest=AutoSuggestFromHistory(),
        enable_history_search=True,
        history=_history(history),
        key_bindings=bindings(),
        reserve_space_for_menu=6,
        interrupt_exception=Dropped,  # a KeyboardInterrupt would end the event loop
    )


def _continued(width: int, line_number: int, wrap_count: int) -> StyleAndTextTuples:
    # No dots are shown where the terminal wraps a long line, because no new line of the text begins there.
    return [("class:hint", ("" if wrap_count else "...").rjust(max(width - 1, 3)) + " ")]


class _SafeFileHistory(FileHistory):
    """A history in a file. If the file can't be written, the history is kept in memory and the prompt continues."""

    def store_string(self, string: str) -> None:
        """Add an input to the file, unless it repeats the previous input or contains an API key."""
        strings = self.get_strings()
        if len(strings) > 1 and strings[-2] == string:
            return
        if has_api_key(string):
            return
        try:
            super().store_string(string)
        except OSError:
            return

    def load_history_strings(self) -> Any:
        """Return the inputs of earlier sessions, latest first."""
        try:
            return list(super().load_history_strings())
        except (OSError, ValueError):
            return []


def _history(path: Path | None) -> History:
    if path is None:
        return InMemoryHistory()
    try:
        create_private_file(path)
    except OSError:
        return InMemoryHistory()
    return _SafeFileHistory(str(path))


# The pager prints a page, and waits for a key before it prints the next page.

Answer = Literal["more", "all", "stop"]
_LEAST = 4


async def ask_key(text: str) -> Answer:
    """Show ``text`` at the bottom of the screen until a key selects how to continue; then remove the text."""
    keys = KeyBindings()
    for pressed, answer in _KEYS.items():

        @keys.add(pressed)
        def _(event: KeyPressEvent, answer: Answer = answer) -> None:
            event.app.exit(result=answer)

    window = Window(FormattedTextControl([("reverse", text)]), height=1)
    app: Application[Answer] = Application(Layout(window), key_bindings=keys, erase_when_done=True)
    return await app.run_async(handle_sigint=False)  # the caller handles SIGINT


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
    """Print ``lines`` one page at a time. Return the number of parts (rows or lines) that were printed.

    ``height`` returns the terminal's height, which may change. Printing also ends when ``stopped`` returns True. Lines that fit on
    one page are printed without asking. ``ask`` asks the user how to continue after a page.
    """
    for line in lines.head:
        say(line)
    page_lines, every, number = max(height() - len(lines.head) - 3, _LEAST), False, 0
    while number < lines.count and not stopped():
        part = lines.part(number)
        if not every and page_lines < len(part) and number:
            question = f" {lines.noun}s 1-{number:,} of {lines.count:,} · Enter: more · a: all · q: stop "
            sys.stdout.flush()
            answer = await ask(question)
            if answer == "stop":
                return number
            every, page_lines = answer == "all", max(height() - len(lines.head) - 2, _LEAST)
            for line in () if every else lines.head:
                say(line)
        for line in part:
            say(line)
        page_lines -= len(part)
        number += 1
    return number
