"""The service's values in the protocol's words."""

from collections.abc import Iterable, Mapping, Sequence

from lsprotocol import types

from ....lang.catalogue.rules import RULES
from ....lang.diagnostic import Diagnostic, Edit, Severity
from ....lang.service import Completion, Fold, Hover, Symbol, Token
from .texts import Text

__all__ = [
    "TOKEN_TYPES", "completion_item", "document_symbol", "folding_range", "hover_of", "lsp_diagnostic", "text_edits", "token_data",
]  # fmt: skip

SOURCE = "knotwork"

_SEVERITIES: Mapping[Severity, types.DiagnosticSeverity] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}
_Item = types.CompletionItemKind
_ITEMS: Mapping[str, types.CompletionItemKind] = {
    "keyword": _Item.Keyword, "command": _Item.Keyword, "operation": _Item.Function, "function": _Item.Function,
    "method": _Item.Method, "option": _Item.Property, "value": _Item.Value, "variable": _Item.Variable, "step": _Item.Reference,
    "key": _Item.Property, "field": _Item.Field, "measure": _Item.Function, "model": _Item.Constant, "setting": _Item.Property,
    "property": _Item.Property, "name": _Item.Text, "punctuation": _Item.Operator,
}  # fmt: skip
_Symbol = types.SymbolKind
_SYMBOLS: Mapping[str, types.SymbolKind] = {
    "step": _Symbol.Function, "variable": _Symbol.Variable, "key": _Symbol.Key, "command": _Symbol.Event,
    "block": _Symbol.Namespace, "field": _Symbol.Field, "computation": _Symbol.Function, "condition": _Symbol.Boolean,
    "output": _Symbol.Property,
}  # fmt: skip
_TOKENS: Mapping[str, str] = {
    "keyword": "keyword", "command": "macro", "variable": "variable", "step": "class", "function": "function",
    "string": "string", "number": "number", "operator": "operator", "comment": "comment", "property": "property", "type": "type",
}  # fmt: skip
TOKEN_TYPES: Sequence[str] = tuple(_TOKENS.values())
"""The protocol's names for what ``token_data`` tells apart, in the order of their numbers."""
_NUMBERS: Mapping[str, int] = {name: number for number, name in enumerate(_TOKENS)}


def lsp_diagnostic(found: Diagnostic, text: Text, docs: str | None) -> types.Diagnostic:
    """Return a diagnostic: message and hints as its text, its code a link into the reference where ``docs`` says where that is."""
    span = found.span
    where = types.Range(types.Position(0, 0), types.Position(0, 0)) if span is None else text.range(span)
    message = "\n".join((found.message, *(f"help: {hint}" for hint in found.hints)))
    link = types.CodeDescription(href=f"{docs}#{found.code.lower()}") if docs and found.code in RULES else None
    return types.Diagnostic(where, message, _SEVERITIES[found.severity], found.code, link, SOURCE)


def text_edits(edits: Iterable[Edit], text: Text) -> list[types.TextEdit]:
    """Return edits of a text."""
    return [types.TextEdit(text.range(edit.span), edit.text) for edit in edits]


def completion_item(found: Completion, text: Text, *, markdown: bool) -> types.CompletionItem:
    """Return a completion. What typing filters by begins as the text under its span does, or clients would drop it."""
    edit = types.TextEdit(text.range(found.span), found.text)
    kind = types.MarkupKind.Markdown if markdown else types.MarkupKind.PlainText
    is_quoted = text.text[found.span.start : found.span.end][:1] in ('"', "'", "`")
    return types.CompletionItem(
        label=found.text,
        kind=_ITEMS.get(found.kind),
        detail=found.detail or None,
        documentation=types.MarkupContent(kind, found.documentation) if found.documentation else None,
        sort_text=f"{found.rank:04d}",
        filter_text=found.text if is_quoted else found.match or None,
        insert_text_format=types.InsertTextFormat.PlainText,
        text_edit=edit,
    )


def hover_of(found: Hover, text: Text, *, markdown: bool) -> types.Hover:
    """Return a hover."""
    kind = types.MarkupKind.Markdown if markdown else types.MarkupKind.PlainText
    return types.Hover(types.MarkupContent(kind, found.text), text.range(found.span))


def document_symbol(found: Symbol, text: Text) -> types.DocumentSymbol:
    """Return a symbol with what is in it; its name lies within it, as clients demand."""
    whole = found.span | found.name_span
    return types.DocumentSymbol(
        name=found.name or "(no name)",
        kind=_SYMBOLS[found.kind],
        range=text.range(whole),
        selection_range=text.range(found.name_span),
        detail=found.detail or None,
        children=[document_symbol(child, text) for child in found.children] or None,
    )


def folding_range(found: Fold) -> types.FoldingRange:
    """Return a fold; the protocol counts lines from 0."""
    kind = types.FoldingRangeKind.Comment if found.kind == "comment" else types.FoldingRangeKind.Region
    return types.FoldingRange(found.first_line - 1, found.last_line - 1, kind=kind)


def token_data(found: Iterable[Token], text: Text) -> list[int]:
    """Return tokens as the protocol packs them: five numbers each, line and column from the token before."""
    data: list[int] = []
    starts, last = text.starts, len(text.starts)
    number = line = column = 0
    is_plain = text.counts_code_points
    for token in found:
        while number + 1 < last and starts[number + 1] <= token.start:
            number += 1
        end = min(token.end, starts[number + 1]) if number + 1 < last else token.end
        if end <= token.start:
            continue
        begin = token.start - starts[number] if is_plain else text.column(number, token.start)
        size = end - token.start if is_plain else text.column(number, end) - begin
        data += (number - line, begin - column if number == line else begin, size, _NUMBERS[token.type], 0)
        line, column = number, begin
    return data
