"""What Tab offers: the language service's completions, the dot commands and what they take, and the fix of the latest error."""

import re
from collections.abc import Callable, Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from .....lang.catalogue.schema import Schema
from .....lang.diagnostic import nearest, printable
from .....lang.service import Language as ServiceLanguage
from .....lang.service import complete
from ..checking import check
from ..desk import Desk
from ..dots import DOTS, Dot, unknown
from ..dots.offering import arguments
from ..knowing import known
from ..reading import expression_of, is_whole, piece_at, pieces

__all__ = ["Fix", "Offers"]

_DOT = re.compile(r"\s*\.(?P<name>[A-Za-z]*)\Z")
_DOT_AND_MORE = re.compile(r"\s*\.(?P<name>[A-Za-z]+)\s+(?P<rest>.*)\Z", re.DOTALL)
_ONE_WORD = re.compile(r"\s*[A-Za-z_]*\Z")
_DETAIL = 60

Fix = Callable[[], str]
"""Gives the text that mends the latest error, empty where there is none."""


class Offers(Completer):
    """Completes what stands before the cursor. ``schema`` gives the graph's, None as long as it is not there."""

    def __init__(self, desk: Desk, fix: Fix, schema: Callable[[], Schema | None]) -> None:
        self._desk = desk
        self._fix = fix
        self._schema = schema
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield what may stand at the cursor, the best first."""
        text = document.text_before_cursor
        if not document.text.strip():
            fix = self._fix()
            if fix:
                yield Completion(fix, -len(text), display=_shown(fix), display_meta="the fix")
                return
        named = _DOT.match(text)
        if named is not None:
            found_dots = [dot for dot in DOTS.values() if dot.name.startswith(named["name"].lower())]
            for dot in found_dots:
                yield _offer(f".{dot.name}", -len(named["name"]) - 1, dot.summary)
            if not found_dots:
                yield from self._mended(document)
            return
        more = _DOT_AND_MORE.match(text)
        if more is not None and "\n" not in text:
            dot_found = DOTS.get(more["name"].lower())
            if dot_found is None:
                yield from self._mended(document)
            else:
                yield from self._of_dot(dot_found, more["rest"], complete_event)
            return
        found = list(self._of_language(document))
        # Who is in the midst of a word wants to end it; who stands behind what is wrong wants it mended.
        if (
            not any(each.start_position for each in found)
            and not document.text_after_cursor.strip()
            and not text[-1:].isspace()
        ):
            yield from self._mended(document)
        yield from found

    def _of_language(self, document: Document) -> Iterator[Completion]:
        """Yield what the service knows: where only a word is there yet, of commands and of expressions."""
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
        beside, seen = known(self._desk, self._schema()), set[str]()
        for language in wanted:
            source = expression_of(body)[1] if language == "expr" else body
            for found in complete(language, source, offset, beside):
                if found.text in seen or (language == "expr" and len(wanted) > 1 and found.kind == "punctuation"):
                    continue
                seen.add(found.text)
                yield _offer(
                    found.text, found.span.start - offset, found.detail or found.kind, found.match or found.text
                )

    def _mended(self, document: Document) -> Iterator[Completion]:
        """Yield the text with its fix, where it is whole and wrong."""
        text = document.text
        if self._schema() is None and self._desk.adapter is not None:
            return
        whole = list(pieces(text))
        if len(whole) != 1 or not is_whole(text):
            return
        found = unknown(text) if whole[0].language == "dot" else check(whole[0], self._desk)
        mended = None if found is None else found.mended
        if mended is not None and mended.strip() != text.strip():
            yield Completion(mended, -document.cursor_position, display=_shown(mended), display_meta="the fix")

    def _of_dot(self, dot: Dot, rest: str, event: CompleteEvent) -> Iterator[Completion]:
        if dot.takes == "file":
            yield from self._paths.get_completions(Document(rest, len(rest)), event)
            return
        if dot.takes == "command":
            yield from self._of_language(Document(rest, len(rest)))
            return
        word = rest.split(" ")[-1]
        known = list(arguments(dot, self._desk, self._schema))
        found = [each for each in known if each[0].lower().startswith(word.lower())]
        if not found:
            near = nearest(word, [offered for offered, _ in known])
            found = [(near, "the fix")] if near is not None else []
        for offered, detail in found:
            yield _offer(offered, -len(word), detail)


def _offer(text: str, start: int, detail: str, shown: str = "") -> Completion:
    return Completion(text, start, display=_shown(shown or text), display_meta=_shown(detail))


def _shown(text: str) -> str:
    """Return anybody's text as a line of a menu."""
    flat = printable(" ".join(text.split()))
    return flat if len(flat) <= _DETAIL else flat[: _DETAIL - 1] + "…"
