"""Formatting: the printers' one spelling, as an edit of only the lines that it changes."""

from ....lang.diagnostic import Edit, has_errors
from ....lang.service import Reading
from ....lang.source import Source, Span

__all__ = ["format_edit"]


def format_edit(reading: Reading) -> Edit | None:
    """Return the edit that formats a text; None where it is formatted, has errors, or is JSON, which editors format themselves."""
    source, text = reading.source, _formatted(reading)
    if text is None or text == source.text:
        return None
    before, after = source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    most = min(len(before), len(after))
    first = next((index for index in range(most) if before[index] != after[index]), most)
    same = next((index for index in range(most - first) if before[-1 - index] != after[-1 - index]), most - first)
    start = sum(map(len, before[:first]))
    end = len(source.text) - sum(map(len, before[len(before) - same :]))
    return Edit(Span(start, end), "".join(after[first : len(after) - same]))


def _formatted(reading: Reading) -> str | None:
    """Return the formatted text. What it says when read again must be the same: else it is a fault of ours, and raises."""
    if reading.language not in ("lwt", "gasl") or has_errors(reading.faults):
        return None
    if reading.language == "lwt":
        from ....lang.printer.lwt import format_lwt

        text = format_lwt(reading.script)
    else:
        from ....lang.printer.gasl import format_gasl

        text = format_gasl(reading.program)
    again = reading.changed(Source(text, reading.source.name))
    is_same = (
        again.script.items == reading.script.items
        if reading.language == "lwt"
        else again.program.items == reading.program.items
    )
    if not is_same:
        raise RuntimeError(f"formatting {reading.source.name} would change what it says")
    return text
