"""Quick fixes: the edits of diagnostics, one by one and all at once, and comments that silence what is no fault."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from lsprotocol import types

from ....lang.catalogue.rules import RULES
from ....lang.diagnostic import Diagnostic, Edit, compatible, has_errors, printable
from ....lang.service import Reading
from ....lang.source import Source, Span
from .documents import Snapshot
from .protocol import lsp_diagnostic
from .published import Findings

__all__ = ["action_title", "code_actions", "fix_all", "format_edit"]

_FIX_ALL = "source.fixAll.knotwork"
_MOST = 50
_LONGEST, _TOLD = 40, 2
"""Characters of a text, and edits, that a title tells of."""
_INDENT = re.compile(r"[ \t]*")


def code_actions(
    findings: Findings,
    span: Span,
    wanted: Sequence[str] | None,
    docs: str | None,
    changes: Callable[[Snapshot, Iterable[Edit]], types.WorkspaceEdit],
) -> Iterator[types.CodeAction]:
    """Yield what can be done about what was found under ``span``; ``wanted`` are the kinds that the client asks for.

    ``changes`` writes edits of a text as the client takes them.
    """
    snapshot, text = findings.snapshot, findings.snapshot.text
    touched = [each for each in findings.diagnostics if _touches(each, span)][:_MOST]
    if _is_wanted(types.CodeActionKind.QuickFix, wanted):
        for found in touched:
            if found.edits:
                said = lsp_diagnostic(found, text, docs)
                change = changes(snapshot, found.edits)
                yield types.CodeAction(
                    action_title(found.edits, text.text),
                    types.CodeActionKind.QuickFix,
                    [said],
                    is_preferred=True,
                    edit=change,
                )
        for found in touched:
            if snapshot.language != "seed" and (edit := _ignore(findings, found)) is not None:
                said = lsp_diagnostic(found, text, docs)
                title = f"silence {found.code} here"
                yield types.CodeAction(title, types.CodeActionKind.QuickFix, [said], edit=changes(snapshot, (edit,)))
    if _is_wanted(_FIX_ALL, wanted) and (edits := fix_all(findings.diagnostics)):
        yield types.CodeAction("fix all that has a sure fix", _FIX_ALL, edit=changes(snapshot, edits))


def action_title(edits: Sequence[Edit], text: str) -> str:
    """Say what edits of a text do. A hint tells a person what to think about; a title, what happens at once."""
    done = [_action(edit, text) for edit in edits]
    more = len(done) - _TOLD
    return "; ".join(done[:_TOLD]) + (f"; and {more} more" if more > 0 else "")


def _action(edit: Edit, text: str) -> str:
    old, new = text[edit.span.start : edit.span.end], edit.text
    if not old:
        return f"insert {_said(new)}"
    return f"replace {_said(old)} by {_said(new)}" if new else f"remove {_said(old)}"


def _said(text: str) -> str:
    if not text.strip():
        return "a line break" if "\n" in text else "a blank"
    flat = " ".join(text.split())
    return printable(flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 1]}…")


def fix_all(found: Iterable[Diagnostic]) -> list[Edit]:
    """Return the edits of all diagnostics that can be made together, by place."""
    taken = [edit for each in compatible(found) for edit in each.edits]
    return sorted(taken, key=lambda edit: (edit.span.start, edit.span.end))


def _touches(found: Diagnostic, span: Span) -> bool:
    where = found.span or Span(0, 0)
    return where.start <= span.end and span.start <= where.end


def _is_wanted(kind: str, wanted: Sequence[str] | None) -> bool:
    """Say whether a client that asks for ``wanted`` takes ``kind``: kinds are a tree, written with dots."""
    return wanted is None or any(kind == each or kind.startswith(f"{each}.") for each in wanted)


def _ignore(findings: Findings, found: Diagnostic) -> Edit | None:
    """Return the edit that puts an ignore comment above the item in which ``found`` lies; None for what can't be silenced."""
    if found.span is None or found.severity == "error" or found.code not in RULES:
        return None
    source = findings.snapshot.source
    item = next((each for each in findings.items if each.start <= found.span.start < each.end), None)
    if item is None:
        return None
    line = source.line_span(source.position(item.start)[0])
    indent = _INDENT.match(source.text, line.start, line.end)
    text = f"{indent[0] if indent else ''}# knotwork: ignore[{found.code}]\n"
    return Edit(Span(line.start, line.start), text)


# Formatting: the printers' one spelling, as an edit of only the lines that it changes.


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
