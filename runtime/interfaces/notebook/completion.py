"""Tab completion in a magic's cell: the language service's completions, with names of the session and the notebook."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from attrs import evolve
from IPython.core.completer import CompletionContext, SimpleCompletion, SimpleMatcherResult
from IPython.core.interactiveshell import InteractiveShell

from ....lang.service import Completion, Known, Variable, complete
from ...models.factory import SPECS, named_graphs
from ..repl.dot_commands import DOTS, arguments
from ..repl.reader import Language, Piece, expression_of, piece_at
from ..repl.runners import known
from .cells import CELL_FLAGS, NOT_HERE, open_flags
from .line_magics import Verbs
from .session import Room

# Completion of a magic's own arguments: options, graphs, files, and arguments of dot commands.

_FILES = 200
_GRAPHS = "nx:"


def of_cell_line(words: str, room: Room) -> Iterator[str]:
    """Yield completions of ``words``, the text after ``%%gasl``, ``%%lwt`` or ``%%kw``."""
    *before, word = words.split(" ")
    yield from _begun(word, room.names() if before[-1:] == [CELL_FLAGS[-1]] else CELL_FLAGS)


def of_verb(verb: str, rest: str, room: Room) -> Iterator[str] | None:
    """Return completions of ``rest``, the text after a subcommand of ``%kw``; None if that is a text of the languages."""
    match verb:
        case "open":
            return _of_open(rest, room)
        case "report":
            return _begun(_last(rest), ["--force", *_files(_last(rest))])
        case "input" | "value":
            return _begun(_last(rest), room.names())
        case "close" | "evidence":
            return iter(())
        case "check" | "plan":
            return None
        case _:
            return of_dot(verb, rest, room) if verb in DOTS else None


def of_dot(name: str, rest: str, room: Room) -> Iterator[str] | None:
    """Return completions of ``rest``, the text after a dot command; None if that is a text of the languages."""
    dot, word, desk = DOTS.get(name), _last(rest), room.present
    if dot is None or name in NOT_HERE:
        return iter(())
    if dot.takes == "command":
        return None
    if dot.takes == "file":
        return _begun(word, _files(word))
    if desk is None:
        return iter(())
    found, adapter = desk, desk.adapter
    return _begun(
        word, [name for name, _ in arguments(dot, found, lambda: None if adapter is None else adapter.schema)]
    )


def _of_open(rest: str, room: Room) -> Iterator[str]:
    *before, word = rest.split(" ")
    flags = open_flags()
    latest = before[-1] if before else ""
    if flags.get(latest):
        return _begun(word, SPECS if latest == "--llm" else _files(word) if latest in ("--state", "--chunks") else ())
    if word.startswith("-"):
        return _begun(word, flags)
    named = named_graphs() if word.startswith(_GRAPHS) else (_GRAPHS,)
    return _begun(word, [*named, *room.graphs(), *_files(word)])


def _last(text: str) -> str:
    return text.split(" ")[-1]


def _begun(word: str, known: Iterable[str]) -> Iterator[str]:
    return (each for each in dict.fromkeys(known) if each.lower().startswith(word.lower()))


def _files(word: str) -> list[str]:
    """Return files and folders whose names begin with ``word``, except names with blanks, which can't be typed here."""
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
_VERB = re.compile(r"(?P<dot>\.?)(?P<verb>[a-z]+)[ \t]+(?P<rest>.*)\Z")
_DOT = re.compile(r"\s*\.(?P<verb>[A-Za-z]*)\Z")
_DOT_AND_MORE = re.compile(r"\s*\.(?P<verb>[A-Za-z]+)[ \t]+(?P<rest>[^\n]*)\Z")


class Offers:
    """A matcher in IPython's form: it returns the completions at the cursor."""

    matcher_api_version = 2
    matcher_priority = 0
    matcher_identifier = "knotwork"

    def __init__(self, room: Room, verbs: Verbs) -> None:
        self._room, self._verbs = room, verbs
        self.__qualname__ = self.matcher_identifier  # the shell expects matchers to be functions

    def __call__(self, context: CompletionContext) -> SimpleMatcherResult:
        """Return the completions at the cursor. After these magics, Python's own completions are suppressed."""
        text = context.full_text
        at = sum(len(line) + 1 for line in text.split("\n")[: context.cursor_line]) + context.cursor_position
        found, begin = _found(text, at, self._room, self._verbs)
        return SimpleMatcherResult(
            completions=found, matched_fragment=text[begin:at] if begin >= 0 else "", suppress=begin >= 0, ordered=True
        )


def offer(shell: InteractiveShell, room: Room, verbs: Verbs) -> None:
    """Register the completion for these magics in the shell."""
    shell.Completer.custom_matchers.append(Offers(room, verbs))


def withdraw(shell: InteractiveShell) -> None:
    """Remove the completion from the shell."""
    matchers = shell.Completer.custom_matchers
    matchers[:] = [each for each in matchers if not isinstance(each, Offers)]


def _found(text: str, at: int, room: Room, verbs: Verbs) -> tuple[Sequence[SimpleCompletion], int]:
    """Return the completions at the cursor, and the start of the replaced text: -1 outside of these magics."""
    cell = _CELL.match(text)
    if cell is not None and cell.start("line") < at <= cell.end("line"):
        return _ending(of_cell_line(text[cell.start("line") : at].lstrip(), room), text, at)
    if cell is not None and cell["end"] and at >= cell.end():
        magic = cell["magic"]
        language: Language | None = "gasl" if magic == "gasl" else "lwt" if magic == "lwt" else None
        return _of_text(text[cell.end() :], at - cell.end(), cell.end(), language, room)
    start = text.rfind("\n", 0, at) + 1
    line = _LINE.match(text, start)
    if line is None or at < line.end() or cell is not None:
        return (), -1
    end = text.find("\n", at)
    body, offset = text[line.end() : end if end >= 0 else len(text)], at - line.end()
    verb = _VERB.match(body[:offset])
    if verb is not None and verb["verb"] in (DOTS if verb["dot"] else verbs.words):
        offers = of_dot(verb["verb"], verb["rest"], room) if verb["dot"] else of_verb(verb["verb"], verb["rest"], room)
        if offers is not None:
            return _ending(offers, text, at)
        begins = verb.start("rest")
        return _of_text(body[begins:], offset - begins, line.end() + begins, None, room)
    words: list[SimpleCompletion] = []
    if _WORD.match(body[:offset]):
        offered = (word for word in verbs.words if word.startswith(body[:offset]) and word not in NOT_HERE)
        words = [SimpleCompletion(text=word, type="magic") for word in offered]
    found, begin = _of_text(body, offset, line.end(), None, room)
    return [*words, *(found if begin == line.end() or not words else ())], line.end() if words else begin


def _of_text(text: str, at: int, base: int, magic: Language | None, room: Room) -> tuple[list[SimpleCompletion], int]:
    """Return the completions of a text of any language; all replace text from the same position."""
    piece, start = (Piece(text, magic), 0) if magic == "lwt" else piece_at(text, at)
    if piece.language == "dot":
        return _of_dot(piece.text, at - start, base + start, room)
    if piece.language == "remark" and piece.text.strip():
        return [], base + at
    found = list(_of_piece(piece, at - start, magic, room))
    begin = min((each.span.start for each in found), default=at - start)
    return [
        SimpleCompletion(text=piece.text[begin : each.span.start] + each.text, type=each.kind) for each in found
    ], base + start + begin  # fmt: skip


def _of_dot(text: str, at: int, base: int, room: Room) -> tuple[list[SimpleCompletion], int]:
    """Return the completions of a dot command."""
    if (alone := _DOT.match(text[:at])) is not None:
        offers = (f".{name}" for name in DOTS if name.startswith(alone["verb"].lower()) and name not in NOT_HERE)
        return [SimpleCompletion(text=each, type="magic") for each in offers], base + alone.start("verb") - 1
    more = _DOT_AND_MORE.match(text[:at])
    if more is None:
        return [], base + at
    found = of_dot(more["verb"].lower(), more["rest"], room)
    if found is not None:
        return _ending(found, text, at, base)
    begins = more.start("rest")
    return _of_text(text[begins:], at - begins, base + begins, None, room)


def _ending(found: Iterable[str], text: str, at: int, base: int = 0) -> tuple[list[SimpleCompletion], int]:
    """Return completions of the word before the cursor."""
    begin = max(text.rfind(blank, 0, at) for blank in " \t\n") + 1
    return [SimpleCompletion(text=each, type="magic") for each in found], base + begin


def _of_piece(piece: Piece, at: int, magic: Language | None, room: Room) -> Iterator[Completion]:
    desk = room.present
    schema = None if desk is None or desk.adapter is None else desk.adapter.schema
    beside = Known() if desk is None else known(desk, schema)
    held = {name: Variable("a variable of the notebook") for name in room.names() if name not in beside.variables}
    beside = evolve(beside, variables={**beside.variables, **held})
    seen = set[str]()
    languages = {piece.language}
    if re.fullmatch(r"\s*\w*", piece.text[:at]):  # a lone word may begin either language
        languages |= {"gasl"} if magic is not None else {"gasl", "expr"}
    for language in _LANGUAGES:
        if language in languages:
            source = expression_of(piece.text)[1] if language == "expr" else piece.text
            for each in complete(language, source, at, beside):
                if each.text not in seen:
                    seen.add(each.text)
                    yield each
