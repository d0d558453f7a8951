"""Guarded parsing of XML: a document type, and therefore entities, are refused; depth and sizes are bounded; errors have line numbers.

A vocabulary (GraphML, GEXF) gets the elements of a file one after another, so that a large file need not be in memory: it opens
and closes the elements that contain items, and gets each other element as a whole.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol
from xml.parsers import expat

from attrs import define, field

from ..graph import AdapterError
from .formats import DEEPEST, fault

LONGEST_TAG = 16 * 2**20
"""Maximum bytes of a single tag, comment or instruction. The limit does not apply to text between tags.

Before expat 2.6, parsing a huge tag in small pieces takes quadratic time.
"""
MOST_INNER = 1_000_000
"""Maximum number of elements inside an element that is read as a whole."""

_PIECE = 2**20


def parse_xml(
    data: bytes | Iterable[bytes],
    name: str,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None],
    text: Callable[[str], None],
    *,
    parser: "expat.XMLParserType | None" = None,
) -> None:
    """Call ``start``, ``end`` and ``text`` for the content of ``data``, like expat's handlers; names keep their prefixes.

    ``data`` is the complete content, or its consecutive pieces of at most 1 MiB. Raises ``AdapterError`` with the line if ``data`` is not
    well-formed, has a document type, or is nested too deeply.
    """
    parser = parser or expat.ParserCreate()
    depth = 0

    def opened(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > DEEPEST:
            raise fault(name, parser.CurrentLineNumber, f"elements are nested deeper than {DEEPEST}")
        start(tag, attributes)

    def closed(tag: str) -> None:
        nonlocal depth
        depth -= 1
        end(tag)

    def doctype(*_: object) -> None:
        raise fault(
            name,
            parser.CurrentLineNumber,
            "the file has a <!DOCTYPE>, which may define entities",
            "remove the <!DOCTYPE ...> and write the entities out",
        )

    parser.buffer_text = True
    parser.buffer_size = 2**16
    parser.StartElementHandler = opened
    parser.EndElementHandler = closed
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = doctype
    at = 0
    try:
        for piece in _pieces(data) if isinstance(data, bytes) else data:
            parser.Parse(piece, False)
            if at - parser.CurrentByteIndex > LONGEST_TAG:
                raise fault(name, parser.CurrentLineNumber, f"a tag is longer than {LONGEST_TAG // 2**20} MiB")
            at += len(piece)
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise _not_well_formed(error, name) from None
    except (LookupError, ValueError, UnicodeError) as error:
        # The encoding is unknown to Python, or is a multi-byte encoding that expat can't read.
        raise fault(name, 1, f"the file's encoding can't be read: {error}", "save it as UTF-8") from None


def _pieces(data: bytes) -> Iterator[bytes]:
    view = memoryview(data)
    for at in range(0, len(data), _PIECE):
        yield bytes(view[at : at + _PIECE])


def _not_well_formed(error: expat.ExpatError, name: str) -> AdapterError:
    message = expat.ErrorString(error.code) or "unreadable"
    match message:
        case "no element found" | "unclosed token" | "unclosed CDATA section":
            message, hint = "the file is incomplete", "write or fetch it again"
        case "not well-formed (invalid token)":
            hint = (
                "write & as &amp; and < as &lt;, remove control characters, and declare the encoding that the file has"
            )
        case "undefined entity":
            message, hint = "unknown entity", "write the character itself, in UTF-8"
        case "unknown encoding" | "encoding specified in XML declaration is incorrect":
            hint = "save the file as UTF-8"
        case "mismatched tag":
            message, hint = (
                "a closing tag does not match the open tag",
                "close elements in the reverse order of opening",
            )
        case _:
            hint = ""
    return fault(name, error.lineno, f"not well-formed XML: {message}", hint)


@define(eq=False)
class Element:
    """An element with its text and inner elements. ``tag`` has the prefix that the file uses; ``line`` is the line of its start tag."""

    tag: str
    attributes: dict[str, str]
    line: int
    parts: "list[Element | str]" = field(factory=list)

    @property
    def name(self) -> str:
        """The tag without its prefix."""
        return local(self.tag)

    @property
    def is_plain(self) -> bool:
        """Whether the element has no inner elements."""
        return all([part.__class__ is str for part in self.parts])

    @property
    def children(self) -> "list[Element]":
        """The inner elements."""
        return [part for part in self.parts if part.__class__ is not str]  # type: ignore[misc]

    @property
    def own_text(self) -> str:
        """The text outside inner elements."""
        return "".join([part for part in self.parts if isinstance(part, str)])

    @property
    def text(self) -> str:
        """The text, with the text of inner elements."""
        if len(self.parts) == 1 and isinstance(self.parts[0], str):
            return self.parts[0]
        return "".join([part if isinstance(part, str) else part.text for part in self.parts])


def local(tag: str) -> str:
    """Return the name of an element or attribute without its prefix."""
    return tag.rpartition(":")[2] if ":" in tag else tag


class Vocabulary(Protocol):
    """Gets the elements of a file. Names of containers have no prefix."""

    root: str
    containers: frozenset[str]
    """Elements whose content is read element by element."""

    def open(self, name: str, attributes: dict[str, str]) -> bool:
        """Begin a container. If the result is false, the container is skipped."""
        ...

    def close(self, name: str) -> None:
        """End a container."""
        ...

    def content(self, element: Element) -> None:
        """Read another element of the innermost open container."""
        ...

    def stray_text(self, line: int) -> None:
        """Called for text that is directly inside a container."""
        ...


def read_elements(
    data: bytes | Iterable[bytes], name: str, what: str, vocabulary: Vocabulary, parser: "expat.XMLParserType"
) -> None:
    """Pass the elements of ``data`` to ``vocabulary``. ``what`` is the name of the format. Raises ``AdapterError``."""
    whole: list[Element] = []  # the open elements of an element that is read as a whole
    containers, root = vocabulary.containers, vocabulary.root
    skipping = inner = 0
    begun = False

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal skipping, inner, begun
        if skipping:
            skipping += 1
            return
        if whole:
            inner += 1
            if inner > MOST_INNER:
                at = whole[0]
                raise fault(name, at.line, f"<{at.tag[:40]}> contains more than {MOST_INNER:,} elements")
            element = Element(tag, attributes, parser.CurrentLineNumber)
            whole[-1].parts.append(element)
            whole.append(element)
            return
        bare = local(tag)
        if not begun:
            begun = True
            if bare != root:
                hint = f"a {what} file begins with <{root}>"
                raise fault(name, parser.CurrentLineNumber, f"not {what}: the first element is <{tag[:40]}>", hint)
        if bare not in containers:
            inner = 0
            whole.append(Element(tag, attributes, parser.CurrentLineNumber))
        elif not vocabulary.open(bare, attributes):
            skipping = 1

    def end(tag: str) -> None:
        nonlocal skipping
        if skipping:
            skipping -= 1
        elif whole:
            element = whole.pop()
            if not whole:
                vocabulary.content(element)
        else:
            vocabulary.close(local(tag))

    def text(text: str) -> None:
        if whole:
            whole[-1].parts.append(text)
        elif not skipping and not text.isspace():
            vocabulary.stray_text(parser.CurrentLineNumber)

    parse_xml(data, name, start, end, text, parser=parser)
