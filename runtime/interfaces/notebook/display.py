"""Displays an outcome in a notebook as HTML, or as text where HTML is not supported. All content is escaped and limited in size."""

import re
from html import escape
from typing import Any

from attrs import evolve

from ....lang.diagnostic import Diagnostic, picture, printable
from ....lang.source import Source
from ...api.figures import table_of
from ...api.session import DisplaySettings
from ...api.session_data import NOTHING, Outcome, Page, Table
from ..repl.dot_commands import DOT_COMMANDS
from ..repl.tables import Form, flat, is_numeric, value_lines

# Replaces dot commands in messages with their notebook form: ``%kw log`` instead of ``.log``.

_DOT = re.compile(rf"(?<![\w./~-])\.(?=(?:{'|'.join(DOT_COMMANDS)})\b(?![./]))")
_GRAPH = "knotwork repl GRAPH opens one"
_LOCKED = "close that prompt or notebook,"


def with_notebook_commands(outcome: Outcome) -> Outcome:
    """Replace the dot commands in the outcome's messages by notebook commands. The value is unchanged."""
    return evolve(
        outcome,
        message=_notebook_words(outcome.message),
        hint=_notebook_words(outcome.hint),
        summary=_notebook_words(outcome.summary),
        notes=tuple(map(_notebook_words, outcome.notes)),
    )


def _notebook_words(text: str) -> str:
    if not text:
        return text
    text = _DOT.sub("%kw ", text).replace("%kw quit", "%kw close").replace(_GRAPH, "%kw open GRAPH opens one")
    return text.replace(_LOCKED, "close that prompt or notebook (%kw close there),")


CANCELLED = "cancelled; finished work is kept"

_ROWS, _COLUMNS, _CELL = 60, 24, 400
_CHARACTERS = 20_000
_WIDTH = 120
"""Width of the text version of a table, in terminal columns."""
_FAULTS = 30

# Colours are blended with the text colour, so that they are readable on light and dark backgrounds.
_STYLE = (
    "<style>.knotwork{font:13px/1.5 system-ui,sans-serif}.knotwork table{border-collapse:collapse;margin:.3em 0}"
    ".knotwork th,.knotwork td{text-align:left;padding:.15em .8em .15em 0;border-bottom:1px solid rgba(128,128,128,.3);"
    "vertical-align:top;white-space:pre-wrap}.knotwork th{font-weight:600}.knotwork td.r,.knotwork th.r{text-align:right}"
    ".knotwork .soft{opacity:.7}.knotwork pre{font:12px/1.45 ui-monospace,monospace;white-space:pre-wrap;margin:.3em 0}"
    ".knotwork pre.fault{white-space:pre;overflow-x:auto}.knotwork .error,.knotwork .warning,.knotwork .info{font-weight:600}"
    + "".join(
        f".knotwork .{name}{{color:{colour};color:color-mix(in srgb,{colour} 55%,currentColor)}}"
        for name, colour in (("error", "#d8453d"), ("warning", "#c07600"), ("info", "#3b7dd8"))
    )
    + "</style>"
)


def bundle_of(outcome: Outcome, settings: DisplaySettings) -> dict[str, str]:
    """Return a mapping from media types to the outcome as HTML and as text; it is empty if there is nothing to show."""
    outcome = with_notebook_commands(outcome)
    html, lines = list[str](), list[str]()
    for diagnostic in outcome.diagnostics[:_FAULTS]:
        html.append(_fault_html(diagnostic, outcome.source))
        lines.append(safe_text(picture(diagnostic, outcome.source)))
    if len(outcome.diagnostics) > _FAULTS:
        _say(f"{len(outcome.diagnostics) - _FAULTS:,} more diagnostics", "soft", html, lines)
    if outcome.diagnostics and outcome.hint:
        _say(f"help: {outcome.hint}", "soft", html, lines)
    if (fixed := _fixed_text(outcome)) is not None:
        html.append(f'<div class="soft">with the fix:</div><pre>{_text(fixed)}</pre>')
        lines.append(f"with the fix:\n{safe_text(fixed)}")
    if outcome.is_complete and outcome.message:  # otherwise the message is the last line of the cell's output
        _say(_message_line(outcome), "warning", html, lines)
    for note in outcome.notes:
        _say(f"warning: {note}", "warning", html, lines)
    for note in outcome.coverage:
        _say(f"note: {note}", "warning", html, lines)
    if outcome.value is not NOTHING:
        html.append(_value_html(outcome.value, settings))
        lines.append(_value_text(outcome.value, settings))
    summary = outcome.summary
    if settings.timer and outcome.is_good:
        summary = f"{summary} · {outcome.seconds:.3f} s" if summary else f"{outcome.seconds:.3f} s"
    if summary:
        _say(summary, "soft", html, lines)
    if not any(html):
        return {}
    return {
        "text/html": f'{_STYLE}<div class="knotwork">{"".join(html)}</div>',
        "text/plain": "\n".join(line for line in lines if line),
    }


def failure_line(outcome: Outcome, place: str = "") -> str:
    """Return one line that explains why an outcome failed, with the position and a hint; "" if the outcome succeeded.

    ``place`` is the position of the piece; for a diagnostic, the diagnostic's own position is used. Programs that run notebooks see
    only this line.
    """
    outcome = with_notebook_commands(outcome)
    if outcome.status == "cancelled":
        return CANCELLED
    if outcome.diagnostics and not outcome.is_good:
        return f"not run: {_place(outcome)}"
    return _message_line(outcome, f" at {place}" if place else "")


def _message_line(outcome: Outcome, at: str = "") -> str:
    if not outcome.message:
        return "" if outcome.is_complete else outcome.status
    hint = f"; {outcome.hint}" if outcome.hint else ""
    return f"{outcome.status if outcome.is_good else 'error'}: {outcome.message.replace(chr(10), '; ')}{at}{hint}"


def _place(outcome: Outcome) -> str:
    errors = [d for d in outcome.diagnostics if d.severity == "error"] or list(outcome.diagnostics)
    first, source = errors[0], outcome.source
    at = "" if first.span is None else " at {}:{}:{}".format(source.name, *source.position(first.span.start))
    hint = outcome.hint or next(iter(first.hints), "")
    more = f" (and {len(errors) - 1:,} more)" if len(errors) > 1 else ""
    return f"{first.message} ({first.code}){at}{f'; {hint}' if hint else ''}{more}"


def _fixed_text(outcome: Outcome) -> str | None:
    """Return the text with the fix applied, or None if there is no fix.

    None is also returned if the fix would only comment out the fault, or if the outcome's hint says what to do instead.
    """
    is_remark = any(edit.text.lstrip().startswith("#") for edit in outcome.edits)
    return None if is_remark or outcome.hint else (outcome.fixed_text or "").rstrip("\n") or None


def caption_html(line: str) -> str:
    """Return HTML for a one-line remark, such as a caption or the progress line."""
    return f'{_STYLE}<div class="knotwork"><div class="soft">{_text(line)}</div></div>'


def _say(text: str, style: str, html: list[str], lines: list[str]) -> None:
    html.append(f'<div class="{style}">{_text(text).replace(chr(10), "<br>")}</div>')
    lines.append(safe_text(text))


def _fault_html(diagnostic: Diagnostic, source: Source) -> str:
    head, _, rest = safe_text(picture(diagnostic, source)).partition("\n")
    return f'<pre class="fault"><span class="{diagnostic.severity}">{escape(head)}</span>\n{escape(rest)}</pre>'


def safe_text(text: str) -> str:
    """Return any text in a form that can be displayed: terminal control characters are escaped, and the length is limited."""
    if len(text) > _CHARACTERS:
        text = f"{text[:_CHARACTERS]}…\n{len(text) - _CHARACTERS:,} more characters"
    return "\n".join(map(printable, text.split("\n")))


def _text(text: str) -> str:
    return escape(safe_text(text))


def _form(settings: DisplaySettings) -> Form:
    return "table" if settings.mode == "auto" else settings.mode


def _value_html(value: Any, settings: DisplaySettings) -> str:
    table = table_of(value)
    if isinstance(value, Page) or table is None or _form(settings) != "table":
        text = _value_text(value, settings)
        return f"<pre>{escape(text)}</pre>" if text else ""
    return _table_html(table)


def _table_html(table: Table) -> str:
    rows, columns = [list(row[:_COLUMNS]) for row in table.rows[:_ROWS]], table.columns[:_COLUMNS]
    right = [is_numeric([row[number] for row in rows]) for number in range(len(columns))]
    sides = [' class="r"' if each else "" for each in right]
    head = "".join(f"<th{side}>{_cell(name)}</th>" for name, side in zip(columns, sides, strict=True))
    body = "".join(
        "<tr>" + "".join(f"<td{side}>{_cell(item)}</td>" for item, side in zip(row, sides, strict=True)) + "</tr>"
        for row in rows
    )
    more = [
        f"{len(table.rows) - len(rows):,} more rows" if len(table.rows) > len(rows) else "",
        f"{len(table.columns) - len(columns):,} more columns" if len(table.columns) > len(columns) else "",
    ]
    left = " and ".join(part for part in more if part)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" + (
        f'<div class="soft">{left}</div>' if left else ""
    )


def _cell(value: Any) -> str:
    return escape(flat(value, _CELL))


def _value_text(value: Any, settings: DisplaySettings) -> str:
    form = _form(settings)
    lines = value_lines(value, form, _WIDTH if form == "table" else None, safe=True)
    most = _ROWS if lines.noun == "row" else 1_000
    parts = [*lines.head, *(line for number in range(min(lines.count, most)) for line in lines.part(number))]
    if lines.count > most:
        parts.append(f"{lines.count - most:,} more {lines.noun}s")
    if lines.left_out:
        parts.append(f"{len(lines.left_out):,} more column{'' if len(lines.left_out) == 1 else 's'}")
    text = "\n".join(parts)
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}…\n{len(text) - _CHARACTERS:,} more characters"
