"""Rules about the contents of strings, and about invisible characters.

The rules check the source text between the quotes, because the tree does not preserve it.
"""

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...diagnostic import Diagnostic, Edit
from ...embedded_code import embedded_program
from ...parse.lwt.recovery.references import SLIPS, path_of
from ...parse.lwt.shapes import ID
from ...source import Source, Span
from ...trees.lwt import ABSENT, MISSING, Reference, Template, Text, Word
from .context import Context, lint
from .expressions import expression_strings, outside, placeholder

if TYPE_CHECKING:
    from ...trees.gasl import Program


def _register_slip(code: str) -> None:
    @lint(code)
    def slips(context: Context) -> Iterator[Diagnostic]:
        # In lenient mode the parser has already repaired and reported these faults.
        if context.script.mode == "strict":
            yield from (slip for slip in context.slips if slip.code == code)


for _code in sorted(SLIPS):
    _register_slip(_code)


@lint("LWT041")
def lookalike(context: Context) -> Iterator[Diagnostic]:
    """Report references in the syntax of other languages, and dots after references. In a GASL program ``${name}`` is allowed."""
    programs = [value.span for call, _ in context.calls if call.operation == "GASL" for value in call.arguments]
    for found in (*context.lookalikes, *_dotted(context)):
        if not (programs and found.span and any(span.covers(found.span.start) for span in programs)):
            yield found


_DOTTED = re.compile(r"(?:\.[a-z_]\w{0,60}){1,9}")
_SUFFIX = re.compile(
    r"\.(?:c|com|cpp|css|csv|de|docx|gif|go|html?|in[io]|java|jpe?g|jsonl?|js|log|lwt|md|mp[34]|net|org|pdf|php|png|pptx|py|rb?|"
    r"rs|sh|sql|svg|tar|tex|toml|tsv?|txt|wav|xlsx?|xml|ya?ml|zip)\Z"
)


def _dotted(context: Context) -> Iterator[Diagnostic]:
    """Report ``{(input)}.name`` if the value before the dot may have keys. File suffixes such as ``{(file)}.txt`` are allowed."""
    text = context.script.source.text
    if ")}." not in text and "]." not in text:
        return
    for raw in context.strings(")}.", "]."):
        for before, part in itertools.pairwise(raw.template.parts):
            if not isinstance(before, Reference) or not isinstance(part, Text) or not part.value.startswith("."):
                continue
            start = part.span.start
            found = _DOTTED.match(text, start, part.span.end)
            if not found or _SUFFIX.match(found[0]) or not _has_keys(context, before):
                continue
            right = path_of(found[0], text[raw.template.span.start])
            span = Span(start, found.end())
            message = f"`{found[0]}` after `{{({before.name})}}` is read as text, not as a path"
            hint = f"for a part of ({before.name}), write `{text[before.span.start : before.span.end]}{right}`"
            yield context.diagnostic("LWT041", message, span, hint, edits=[Edit(span, right)])


def _has_keys(context: Context, reference: Reference) -> bool:
    if reference.name in ("input", "item"):
        return reference.name == "item" or context.input in (MISSING, ABSENT) or isinstance(context.input, dict | list)
    step = context.steps.get(reference.name)
    kind = step.call.option("type") if step else None
    return isinstance(kind, Word) and kind.value == "json"


_INNER_HEAD = re.compile(rf"\n[ \t]*+\({ID}\)[ \t]*+=[ \t]*+[A-Za-z_]\w*+\(")


@lint("LWT028")
def head_inside_prompt(context: Context) -> Iterator[Diagnostic]:
    """Report lines in a prompt that look like a step."""
    for raw in context.strings("\n"):
        if ")" in raw.text and (found := _INNER_HEAD.search(raw.text)):
            start = raw.offset + found.start() + len(found[0]) - len(found[0].lstrip())
            line = context.script.source.position(raw.template.span.start)[0]
            message = f"this line looks like a step, but it is inside the string that begins in line {line}"
            hint = "if it is a step, close the string above it with a quote and `)`"
            yield context.diagnostic("LWT028", message, Span(start, raw.offset + found.end()), hint)


_LATEX = (
    "abla|atural|e|earrow|eg|eq|ewline|ewcommand|exists|geq|i|leq|mid|oindent|onumber|ot|otin|parallel|prec|rightarrow|"
    "subseteq|u|warrow|ode|orm|sim|cong|leftarrow|Rightarrow|Leftarrow"
)
_LATEX_T = (
    "an|anh|au|binom|ext|ext[a-z]{1,8}|extcolor|frac|hanks|heta|hickapprox|hicksim|herefore|ilde|imes|iny|itle|o|op|"
    "oday|riangle|riangleq|rianglelefteq|t|able|abular|ag|ikz"
)
_BACKSLASH_LETTER = re.compile(rf"(?<!\\)(?:\\\\)*+\\(?:n(?!(?:{_LATEX})(?![a-z]))|t(?!(?:{_LATEX_T})(?![a-z])))")


@lint("LWT029")
def backslash_n(context: Context) -> Iterator[Diagnostic]:
    r"""Report ``\n`` and ``\t``, unless they begin a LaTeX command. There is one diagnostic for each string, with all its edits."""
    expressions: set[int] | None = None
    for raw in context.strings("\\n", "\\t"):
        if expressions is None:
            expressions = {id(template) for template in expression_strings(context)}
        if id(raw.template) in expressions:
            continue  # in an expression, `\n` is an escape
        spans = [
            Span(raw.offset + found.end() - 2, raw.offset + found.end())
            for found in _BACKSLASH_LETTER.finditer(raw.text)
        ]
        if not spans:
            continue
        text = context.script.source.text
        edits = [Edit(span, "\n" if text[span.end - 1] == "n" else "\t") for span in spans]
        mark = context.script.source.slice(spans[0])
        what = "a newline" if mark == "\\n" else "a tab"
        more = f" ({len(spans)} of them in this string)" if len(spans) > 1 else ""
        message = f"`{mark}` in a string is a backslash and a letter, not {what}{more}"
        hint = "break the line in the string" if mark == "\\n" else "write a tab character"
        yield context.diagnostic("LWT029", message, spans[0], hint, edits=edits)


_OPENED = re.compile(
    r"""\[(?:\\?"(?:[^"\\\]\n]{0,60}(?=[\]\n]|\Z)|[^"\\\n]{0,60}\\?"(?=[^\]]|\Z))|\\?'(?:[^'\\\]\n]{0,60}(?=[\]\n]|\Z)|[^'\\\n]{0,60}\\?'(?=[^\]]|\Z))"""
    r"""|-?\d*:?-?\d+(?![\w\]:,.])|-?\d+:(?![\w\]:,.-])|\w{1,60}\Z)"""
)
"""Matches the beginning of an unclosed accessor: ``[3'``, ``["a``, ``['a y``."""


_BEGUN = re.compile(r"\[\w[^\s\[\]]{0,60}")


def _unclosed(context: Context, before: Reference, start: int, end: int, shown: str) -> Diagnostic:
    message = (
        f"`{shown if len(shown) <= 40 else shown[:37] + '...'}` begins a path into ({before.name}), but is not closed"
    )
    hints = ('close it with `]`, as in `[3]` or `["key"]`', "for text, write `\\[`")
    return context.diagnostic("LWT030", message, Span(start, end), *hints, severity="error")


@lint("LWT030")
def not_an_accessor(context: Context) -> Iterator[Diagnostic]:
    """Report brackets after a reference that are read as text."""
    text = context.script.source.text
    for raw in context.strings("["):
        parts = raw.template.parts
        for before, part in itertools.pairwise(parts):
            if isinstance(before, Reference) and isinstance(part, Text) and part.value.startswith("["):
                start = part.span.start
                if not text.startswith("[", start):
                    continue
                end = text.find("]", start, min(part.span.end, start + 200))
                opened = _OPENED.match(text, start, part.span.end)
                if opened and (
                    end < 0 or "\n" in text[start:end] or text[start + 1] in "\"'\\" or text[opened.end()] in "\"'"
                ):
                    yield _unclosed(context, before, start, opened.end(), text[start : opened.end()])
                    continue
                if end < 0:
                    if word := _BEGUN.match(text, start, part.span.end):
                        yield _unclosed(context, before, start, word.end(), word[0])
                    elif part.value == "[" and part is not parts[-1]:
                        message = f"a path into ({before.name}) can't contain a reference, so `[` is read as text"
                        hint = f'use an expression: EXPR("xs[i]", xs={{({before.name})}}, i=...); for text, write `\\[`'
                        yield context.diagnostic("LWT030", message, part.span, hint, severity="warning")
                    continue
                shown = text[start : end + 1]
                message = f"`{shown if len(shown) <= 40 else shown[:37] + '...'}` is not a path into ({before.name}), and is read as text"
                hints = ("for text, write `\\[`", 'for a key, write it in quotes: `["..."]`')
                edits = [Edit(Span(start, start), "\\")]
                yield context.diagnostic("LWT030", message, Span(start, end + 1), *hints, edits=edits)


@lint("LWT034")
def empty_prompt(context: Context) -> Iterator[Diagnostic]:
    """Report prompts without text."""
    if not any(map(_says_nothing, context.templates)):
        return  # as in most scripts
    for call, _ in context.calls:
        signature = context.operations.get(call.operation)
        if signature is None:
            continue
        for parameter, value in zip(signature.parameters, call.arguments, strict=False):
            if parameter.kind == "template" and isinstance(value, Template) and _says_nothing(value):
                message = f"the {parameter.name} of this {call.operation} is empty"
                yield context.diagnostic("LWT034", message, value.span, "write the task for the model")


def _says_nothing(template: Template) -> bool:
    first = template.parts[0] if template.parts else None
    if isinstance(first, Reference) or (first is not None and first.value.strip()):
        return False  # true of most prompts
    return template.constant is not None and not template.constant.strip()


_OPTION = re.compile(r"""["'][ \t]*+,[ \t]*+(?P<name>[a-z_]{2,30})[ \t]*+=""")


@lint("LWT040")
def option_in_prompt(context: Context) -> Iterator[Diagnostic]:
    """Report prompts that end with text like an option. Only prompts whose quotes were repaired are examined."""
    repaired = sorted(d.span.start for d in context.script.diagnostics if d.code == "LWT004" and d.span)
    if not repaired or context.script.mode != "lenient":
        return
    for raw in context.strings("="):
        span = raw.template.span
        if not any(span.covers(place) for place in repaired[:100]):
            continue
        # Options are at the end of a call, so only the end of a long prompt is searched.
        found = _OPTION.search(raw.text, max(0, len(raw.text) - 300))
        if found and any(found["name"] in signature.option_names for signature in context.operations.values()):
            at = Span(raw.offset + found.start("name"), raw.offset + len(raw.text))
            message = f"`{found['name']}=` looks like an option, but it is part of the prompt"
            hint = "a quote after a backslash does not end the string: for an option, remove the backslash"
            yield context.diagnostic("LWT040", message, at, hint)


_ODD = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]"
    "|\r(?!\n)"
)
_MOST_ODD = 100
"""Maximum number of odd characters reported; text with more odd characters is not a script."""


@lint("LWT035")
def odd_character(context: Context) -> Iterator[Diagnostic]:
    """Report control characters, invisible characters that change the text direction, and unpaired surrogates."""
    text = context.script.source.text
    if text.replace("\n", "").isprintable():
        return  # printable text has no odd characters
    for count, found in enumerate(_ODD.finditer(text)):
        if count >= _MOST_ODD:
            return
        code = ord(found[0])
        span = Span(found.start(), found.end())
        if 0xD800 <= code <= 0xDFFF:
            message = f"a lone surrogate (U+{code:04X}) is not a character"
            yield context.diagnostic("LWT035", message, span, "write the complete character", severity="error")
            continue
        what = "a control character" if code < 0xA0 else "an invisible character"
        edits = [] if found[0] == "\r" else [Edit(span, "")]
        message = f"the script contains {what} (U+{code:04X}) here"
        yield context.diagnostic("LWT035", message, span, "remove it", edits=edits)


# Rules about programs inside scripts, in the strings of ``GASL`` calls.


@lint("LWT042")
def faulty_program(context: Context) -> Iterator[Diagnostic]:
    """Report the faults that the parser and the checks of GASL find in a program, at their place in the script."""
    calls = [call for call, _ in context.calls if call.operation == "GASL" and call.arguments]
    if not calls:
        return
    from ...parse.gasl import parse_gasl
    from ..gasl import check

    for call in calls:
        template = call.arguments[0]
        if not isinstance(template, Template):
            continue
        inner = embedded_program(template)
        program = parse_gasl(Source(inner.text(placeholder), context.script.source.name))
        names = [name for name, _ in inner.variables]
        for found in (*check(program, variables=names), *_parameters_without_value(program)):
            yield outside(context, "LWT042", template, inner, found, _on_line_breaks(template))


def _parameters_without_value(program: "Program") -> Iterator[Diagnostic]:
    """Yield an error for each parameter without a default, because a script can't give values to the parameters of its programs."""
    from ...trees.gasl import Param

    for statement in program.statements:
        command = statement.command
        if isinstance(command, Param) and command.default is None:
            message = f"the parameter {command.name.text} has no value: a script passes no parameters"
            hint = "write a default (PARAM name INT = 5), or write a reference, {(step)}, instead of the parameter"
            yield Diagnostic("GASL050", "error", message, command.span, hints=(hint,))


def _on_line_breaks(template: Template) -> Iterator[str]:
    r"""Yield a hint about line breaks, if the text has ``\n`` in place of a line break."""
    if any(isinstance(part, Text) and _WRITTEN_BREAK.search(part.value) for part in template.parts):
        yield r"break the line in the string, which may have several lines; \n is not a line break there"


_WRITTEN_BREAK = re.compile(r"\\n\s*[A-Z#]")
