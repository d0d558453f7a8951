"""Tab completion in cells with magics: the language service's completions, with names from the session and the notebook."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from attrs import evolve
from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult
from IPython.core.interactiveshell import InteractiveShell

from ....lang.service import Completion, Known, Variable, complete
from ...api.pieces import Language, Piece, expression_of, piece_at
from ...api.session import SPECS
from ...api.session_runs import known
from ...api.workspace import named_graphs
from ..repl.dot_commands import DOT_COMMANDS, argument_values
from .cells import UNAVAILABLE
from .line_magics import CELL_FLAGS, LineMagics, open_flags
from .session import NotebookSession

# Completes the arguments of magics: options, graphs, files, and the arguments of dot commands.

_FILES = 200
_GRAPHS = "nx:"


def cell_line_completions(words: str, notebook: NotebookSession) -> Iterator[str]:
    """Yield completions of ``words``, the text after ``%%gasl``, ``%%lwt`` or ``%%kw``."""
    *before, word = words.split(" ")
    yield from _beginning_with(word, notebook.names() if before[-1:] == [CELL_FLAGS[-1]] else CELL_FLAGS)


def subcommand_completions(subcommand: str, rest: str, notebook: NotebookSession) -> Iterator[str] | None:
    """Return completions of ``rest``, the text after a subcommand of ``%kw``; None if ``rest`` is text in one of the languages."""
    match subcommand:
        case "open":
            return _open_completions(rest, notebook)
        case "report":
            return _beginning_with(_last(rest), ["--force", *_files(_last(rest))])
        case "input" | "value":
            return _beginning_with(_last(rest), notebook.names())
        case "close" | "evidence":
            return iter(())
        case "check" | "plan":
            return None
        case _:
            return dot_completions(subcommand, rest, notebook) if subcommand in DOT_COMMANDS else None


def dot_completions(name: str, rest: str, notebook: NotebookSession) -> Iterator[str] | None:
    """Return completions of ``rest``, the text after a dot command; None if ``rest`` is text in one of the languages."""
    dot, word, session = DOT_COMMANDS.get(name), _last(rest), notebook.current
    if dot is None or name in UNAVAILABLE:
        return iter(())
    if dot.takes == "command":
        return None
    if dot.takes == "file":
        return _beginning_with(word, _files(word))
    if session is None:
        return iter(())
    found, adapter = session, session.adapter
    return _beginning_with(
        word, [name for name, _ in argument_values(dot, found, lambda: None if adapter is None else adapter.schema)]
    )


def _open_completions(rest: str, notebook: NotebookSession) -> Iterator[str]:
    *before, word = rest.split(" ")
    flags = open_flags()
    latest = before[-1] if before else ""
    if flags.get(latest):
        return _beginning_with(
            word, SPECS if latest == "--llm" else _files(word) if latest in ("--state", "--chunks") else ()
        )
    if word.startswith("-"):
        return _beginning_with(word, flags)
    named = named_graphs() if word.startswith(_GRAPHS) else (_GRAPHS,)
    return _beginning_with(word, [*named, *notebook.graphs(), *_files(word)])


def _last(text: str) -> str:
    return text.split(" ")[-1]


def _beginning_with(word: str, known: Iterable[str]) -> Iterator[str]:
    return (each for each in dict.fromkeys(known) if each.lower().startswith(word.lower()))


def _files(word: str) -> list[str]:
    """Return files and folders whose names begin with ``word``. Names with spaces are omitted, because they can't be typed here."""
    folder, name = os.path.split(word)
    try:
        with os.scandir(os.path.expanduser(folder) or ".") as found:
            names = sorted(f"{each.name}{os.sep if each.is_dir() else ''}" for each in found if " " not in each.name)
    except OSError:
        return []
    shown = (each for each in names if each.startswith(name) and (name or not each.startswith(".")))
    return [os.path.join(folder, each) for each in list(shown)[:_FILES]]


_CELL = re.compile(r"\s*%%(?P<magic>gasl|lwt|kw)\b(?P<line>[^\n]*)(?P<end>\n|\Z)")
_LINE = re.compile(r"(?:[^\n]*=)?\s*%kw[ \t]+")
_LANGUAGES: tuple[Literal["gasl", "lwt", "expr"], ...] = ("gasl", "lwt", "expr")
_WORD = re.compile(r"[a-z]*\Z")
_SUBCOMMAND = re.compile(r"(?P<dot>\.?)(?P<name>[a-z]+)[ \t]+(?P<rest>.*)\Z")
_DOT = re.compile(r"\s*\.(?P<name>[A-Za-z]*)\Z")
_DOT_AND_MORE = re.compile(r"\s*\.(?P<name>[A-Za-z]+)[ \t]+(?P<rest>[^\n]*)\Z")


class MagicCompleter:
    """A matcher for IPython, which returns the completions at the cursor."""

    matcher_api_version = 2
    matcher_priority = 0
    matcher_identifier = "knotwork"

    def __init__(self, notebook: NotebookSession, line_magics: LineMagics) -> None:
        self._notebook, self._line_magics = notebook, line_magics
        self.__qualname__ = self.matcher_identifier  # the shell expects matchers to be functions

    def __call__(self, context: CompletionContext) -> SimpleMatcherResult:
        """Return the completions at the cursor. After these magics, Python's own completions are suppressed."""
        text = context.full_text
        at = sum(len(line) + 1 for line in text.split("\n")[: context.cursor_line]) + context.cursor_position
        found, begin = _completions_at(text, at, self._notebook, self._line_magics)
        return SimpleMatcherResult(
            completions=found, matched_fragment=text[begin:at] if begin >= 0 else "", suppress=begin >= 0, ordered=True
        )


def register(shell: InteractiveShell, notebook: NotebookSession, line_magics: LineMagics) -> None:
    """Register the completion for these magics in the shell."""
    shell.Completer.custom_matchers.append(MagicCompleter(notebook, line_magics))


def unregister(shell: InteractiveShell) -> None:
    """Remove the completion from the shell."""
    matchers = shell.Completer.custom_matchers
    matchers[:] = [each for each in matchers if not isinstance(each, MagicCompleter)]


def _completions_at(
    text: str, at: int, notebook: NotebookSession, line_magics: LineMagics
) -> tuple[Sequence[SimpleCompletion], int]:
    """Return the completions at the cursor, and the start of the replaced text (-1 outside these magics)."""
    cell = _CELL.match(text)
    if cell is not None and cell.start("line") < at <= cell.end("line"):
        return _ending(cell_line_completions(text[cell.start("line") : at].lstrip(), notebook), text, at)
    if cell is not None and cell["end"] and at >= cell.end():
        magic = cell["magic"]
        language: Language | None = "gasl" if magic == "gasl" else "lwt" if magic == "lwt" else None
        return _text_completions(text[cell.end() :], at - cell.end(), cell.end(), language, notebook)
    start = text.rfind("\n", 0, at) + 1
    line = _LINE.match(text, start)
    if line is None or at < line.end() or cell is not None:
        return (), -1
    end = text.find("\n", at)
    body, offset = text[line.end() : end if end >= 0 else len(text)], at - line.end()
    subcommand = _SUBCOMMAND.match(body[:offset])
    if subcommand is not None and subcommand["name"] in (DOT_COMMANDS if subcommand["dot"] else line_magics.words):
        complete_arguments = dot_completions if subcommand["dot"] else subcommand_completions
        found_words = complete_arguments(subcommand["name"], subcommand["rest"], notebook)
        if found_words is not None:
            return _ending(found_words, text, at)
        begins = subcommand.start("rest")
        return _text_completions(body[begins:], offset - begins, line.end() + begins, None, notebook)
    words: list[SimpleCompletion] = []
    if _WORD.match(body[:offset]):
        offered = (word for word in line_magics.words if word.startswith(body[:offset]) and word not in UNAVAILABLE)
        words = [SimpleCompletion(text=word, type="magic") for word in offered]
    found, begin = _text_completions(body, offset, line.end(), None, notebook)
    return [*words, *(found if begin == line.end() or not words else ())], line.end() if words else begin


def _text_completions(
    text: str, at: int, base: int, magic: Language | None, notebook: NotebookSession
) -> tuple[list[SimpleCompletion], int]:
    """Return completions for text in any of the languages, and the start of the text that all these completions replace."""
    piece, start = (Piece(text, magic), 0) if magic == "lwt" else piece_at(text, at)
    if piece.language == "dot":
        return _dot_text_completions(piece.text, at - start, base + start, notebook)
    if piece.language == "comment" and piece.text.strip():
        return [], base + at
    found = list(_piece_completions(piece, at - start, magic, notebook))
    begin = min((each.span.start for each in found), default=at - start)
    return [
        SimpleCompletion(text=piece.text[begin : each.span.start] + each.text, type=each.kind) for each in found
    ], base + start + begin  # fmt: skip


def _dot_text_completions(
    text: str, at: int, base: int, notebook: NotebookSession
) -> tuple[list[SimpleCompletion], int]:
    """Return completions for a dot command, and the start of the text that they replace."""
    if (alone := _DOT.match(text[:at])) is not None:
        found_words = (
            f".{name}" for name in DOT_COMMANDS if name.startswith(alone["name"].lower()) and name not in UNAVAILABLE
        )
        return [SimpleCompletion(text=each, type="magic") for each in found_words], base + alone.start("name") - 1
    more = _DOT_AND_MORE.match(text[:at])
    if more is None:
        return [], base + at
    found = dot_completions(more["name"].lower(), more["rest"], notebook)
    if found is not None:
        return _ending(found, text, at, base)
    begins = more.start("rest")
    return _text_completions(text[begins:], at - begins, base + begins, None, notebook)


def _ending(found: Iterable[str], text: str, at: int, base: int = 0) -> tuple[list[SimpleCompletion], int]:
    """Return ``found`` as completions of the word before the cursor, and the start of this word."""
    begin = max(text.rfind(blank, 0, at) for blank in " \t\n") + 1
    return [SimpleCompletion(text=each, type="magic") for each in found], base + begin


def _piece_completions(
    piece: Piece, at: int, magic: Language | None, notebook: NotebookSession
) -> Iterator[Completion]:
    session = notebook.current
    schema = None if session is None or session.adapter is None else session.adapter.schema
    known_names = Known() if session is None else known(session, schema)
    held = {name: Variable("a notebook variable") for name in notebook.names() if name not in known_names.variables}
    known_names = evolve(known_names, variables={**known_names.variables, **held})
    seen = set[str]()
    languages = {piece.language}
    if re.fullmatch(r"\s*\w*", piece.text[:at]):  # a single word may begin a text in either language
        languages |= {"gasl"} if magic is not None else {"gasl", "expr"}
    for language in _LANGUAGES:
        if language in languages:
            source = expression_of(piece.text)[1] if language == "expr" else piece.text
            for each in complete(language, source, at, known_names):
                if each.text not in seen:
                    seen.add(each.text)
                    yield each
