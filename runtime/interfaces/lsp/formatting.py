"""Formatting: the printers' one spelling, as an edit of only the lines that it changes."""

from ....lang.diagnostic import Edit, has_errors
from ....lang.service import Language
from ....lang.source import Source, Span

__all__ = ["format_edit"]


def format_edit(language: Language, source: Source) -> Edit | None:
    """Return the edit that formats a text; None where it is formatted, has errors, or is JSON, which editors format themselves."""
    text = _formatted(language, source)
    if text is None or text == source.text:
        return None
    before, after = source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    most = min(len(before), len(after))
    first = next((index for index in range(most) if before[index] != after[index]), most)
    same = next((index for index in range(most - first) if before[-1 - index] != after[-1 - index]), most - first)
    start = sum(map(len, before[:first]))
    end = len(source.text) - sum(map(len, before[len(before) - same :]))
    return Edit(Span(start, end), "".join(after[first : len(after) - same]))


def _formatted(language: Language, source: Source) -> str | None:
    """Return the formatted text. What it says when read again must be the same: else it is a fault of ours, and raises."""
    if language == "lwt":
        from ....lang.parse.lwt import parse_lwt
        from ....lang.printer.lwt import format_lwt

        script = parse_lwt(source)
        if has_errors(script.diagnostics):
            return None
        text = format_lwt(script)
        is_same = parse_lwt(text).items == script.items
    elif language == "gasl":
        from ....lang.parse.gasl import parse_gasl
        from ....lang.printer.gasl import format_gasl

        program = parse_gasl(source)
        if has_errors(program.diagnostics):
            return None
        text = format_gasl(program)
        is_same = parse_gasl(text).items == program.items
    else:
        return None
    if not is_same:
        raise RuntimeError(f"formatting {source.name} would change what it says")
    return text
