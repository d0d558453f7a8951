"""XML read under guard: no document type and so no entities, bounded depth, bounded tokens, faults with their line.

The expat that comes with Python does the reading. Feeding it small pieces of a huge tag costs quadratic time in the versions
before 2.6, so a tag or comment is bounded too.
"""

from collections.abc import Callable
from xml.parsers import expat

from ...graph import AdapterError

__all__ = ["DEEPEST", "LONGEST_TAG", "Fault", "fault", "parse_xml"]

DEEPEST = 100
"""Elements inside each other at most. NetworkX's own files have 4 levels, yEd's below 20."""

LONGEST_TAG = 16 * 2**20
"""Bytes that a single tag, comment or instruction may take. Text between tags is not bounded by it."""

_PIECE = 2**20

Fault = Callable[[str], AdapterError]


def fault(name: str, line: int | None, message: str, hint: str = "") -> AdapterError:
    """Return an error that says where: ``name:line: message``."""
    place = name if line is None else f"{name}:{line}"
    return AdapterError(f"{place}: {message}", hint=hint)


def parse_xml(
    data: bytes,
    name: str,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None],
    text: Callable[[str], None],
    *,
    parser: "expat.XMLParserType | None" = None,
) -> None:
    """Call ``start``, ``end`` and ``text`` for what ``data`` holds, as expat does, prefixes kept in the names.

    Raises ``AdapterError`` with the line for what is not well-formed, has a document type, or is nested too deep.
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
    view = memoryview(data)
    try:
        for at in range(0, len(data), _PIECE):
            parser.Parse(bytes(view[at : at + _PIECE]), False)
            if at - parser.CurrentByteIndex > LONGEST_TAG:
                raise fault(name, parser.CurrentLineNumber, f"a tag is longer than {LONGEST_TAG // 2**20} MiB")
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise _not_well_formed(error, data, name) from None
    except (LookupError, ValueError, UnicodeError) as error:
        # An encoding that Python has not, or one of more than a byte a character that expat can't read.
        raise fault(name, 1, f"the file's encoding can't be read: {error}", "save it as UTF-8") from None


def _not_well_formed(error: expat.ExpatError, data: bytes, name: str) -> AdapterError:
    message = expat.ErrorString(error.code) or "unreadable"
    match message:
        case "no element found" | "unclosed token" | "unclosed CDATA section":
            message, hint = "the file ends in the middle", "it was cut off: write or fetch it again"
        case "not well-formed (invalid token)":
            hint = (
                "an & must be written &amp;, a < must be written &lt;, and the bytes must be in the declared encoding"
            )
        case "undefined entity":
            message, hint = "an entity that XML does not have", "write the character itself, in UTF-8"
        case "unknown encoding" | "encoding specified in XML declaration is incorrect":
            hint = "save the file as UTF-8"
        case "mismatched tag":
            message, hint = "a closing tag does not match the open one", "close the elements in the order they opened"
        case _:
            hint = ""
    return fault(name, error.lineno, f"not well-formed XML: {message}", hint)
