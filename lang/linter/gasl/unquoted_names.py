"""Finds names that need backticks but have none: names with spaces or signs, and names that are keywords.

``WHERE Modularity Class = 2`` is a syntax error, and ``WHERE birth-year > 1900`` is a subtraction of two unknown fields. If the graph,
the rows or the program have such a name, each place is tried with backticks. If that removes faults, one diagnostic per name replaces them.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from attrs import evolve

from ...diagnostic import Diagnostic, Edit
from ...parse.repairs import repair
from ...printer.gasl_names import PLAIN, backticked, format_name
from ...source import Source, Span
from .context import Context

_FAULTS = frozenset({"GASL070", "GASL073", "GASL076", "GASL078", "GASL079", "GASL096"})
"""Codes of warnings that may have the same cause as an error: a name that is read as something else."""
_OTHER = r"""`(?:[^`\r\n]|``)+`|"(?:[^"\\\r\n]|\\[^\r\n])*"|'(?:[^'\\\r\n]|\\[^\r\n])*'|\$\{[^}\r\n]*\}|\#[^\r\n]*"""
"""Text in which no name is missing its backticks: names in backticks, strings, variables and comments."""
_SYNTAX = 100
"""The weight of a syntax error. A fault of a valid command has the weight 1."""
_MOST, _MOST_KEYWORDS = 200, 8
"""Maximum number of places in a program, and of places of keywords in a line, that are tried."""


Check: TypeAlias = Callable[[Context], list[Diagnostic]]


def with_backticks(context: Context, found: Sequence[Diagnostic], check: Check) -> list[Diagnostic]:
    """Return the diagnostics ``found`` of a program, with one diagnostic for each name that lacks its backticks.

    ``check`` returns the diagnostics of a context. It is called for the program with backticks; spans refer to the original text.
    """
    faulty = _faults(context, found)
    names = _names(context) if faulty else {}
    if not names:
        return list(found)
    edits = [edit for edit in _places(context, names) if _line(context, edit) in faulty][:_MOST]
    left = _faults(trial := _edited(context, edits), check(trial)) if edits else faulty
    accepted = [edit for edit in edits if left[_line(context, edit)] < faulty[_line(context, edit)]]
    done = {_line(context, edit) for edit in accepted}
    others = {line: weight for line, weight in faulty.items() if line not in done}
    accepted += _keywords(context, names, others, check)
    if not accepted:
        return list(found)
    text = context.program.source.text
    back = repair(text, accepted).back_span
    return [
        *(_diagnostic(text, edit) for edit in accepted),
        *(each.moved(back) for each in check(_edited(context, accepted))),
    ]


def _diagnostic(text: str, edit: Edit) -> Diagnostic:
    name = " ".join(text[edit.span.start : edit.span.end].split())
    return Diagnostic(
        "GASL033", "error", f"{name} is a name that needs backticks", edit.span, (f"write {edit.text}",), (edit,)
    )


def _names(context: Context) -> dict[str, str]:
    """Map the names that need backticks to their texts: names of the graph and of rows, and names in backticks in the program."""
    from ...parse.gasl import keywords

    schema, known = context.schema, list[str]()
    attributes = {**schema.node_attributes, **schema.edge_attributes} if schema is not None else {}
    for columns in (*context.fields.values(), *(each.columns for each in context.contents.values())):
        known += columns or ()
    known += (name for binding in context.flow.bindings for name in binding.columns or ())
    known += (name.replace("``", "`") for name in re.findall(r"`((?:[^`\r\n]|``)+)`", context.program.source.text))
    written = {}
    for name in dict.fromkeys([*attributes, *known]):
        parts = name.split(".")
        if not name.strip() or len(name.splitlines()) > 1 or (len(parts) > 1 and all(map(PLAIN.fullmatch, parts))):
            continue
        if not PLAIN.fullmatch(name) or name.upper() in keywords():
            above = attributes.get(parts[0])
            is_nested = len(parts) > 1 and all(parts) and above is not None and "object" in above.types
            written[name] = ".".join(map(format_name, parts)) if is_nested else backticked(name)
    return written


def _places(context: Context, names: Mapping[str, str]) -> list[Edit]:
    """Return the edits that put names with spaces or signs in backticks; of names at one place, the longest.

    A name is also found in other case, unless several names differ only in case.
    """
    text, signed = context.program.source.text, {name: names[name] for name in names if not PLAIN.fullmatch(name)}
    exact = _found(text, signed, 0)
    forms = Counter(_form(name, re.IGNORECASE) for name in signed)
    single = {name: signed[name] for name in signed if forms[_form(name, re.IGNORECASE)] == 1}
    others = [
        edit
        for edit in _found(text, single, re.IGNORECASE)
        if all(edit.span.end <= each.span.start or each.span.end <= edit.span.start for each in exact)
    ]
    return sorted([*exact, *others], key=lambda edit: edit.span.start)


def _found(text: str, names: Mapping[str, str], flags: int) -> list[Edit]:
    """Return the edits at the places of ``names`` outside strings, comments and backticks. Runs of blanks are equal."""
    if not names:
        return []
    ordered = sorted(names, key=len, reverse=True)
    pattern = re.compile(rf"{_OTHER}|(?P<name>{'|'.join(map(_pattern, ordered))})", flags)
    written = {_form(name, flags): names[name] for name in ordered}
    matches = ((match, written.get(_form(match[0], flags))) for match in pattern.finditer(text) if match["name"])
    return [Edit(Span(*match.span()), name) for match, name in matches if name is not None]


def _form(name: str, flags: int) -> str:
    form = " ".join(name.split())
    return form.casefold() if flags else form


def _pattern(name: str) -> str:
    words = r"[ \t]+".join(map(re.escape, name.split()))
    return (r"(?<!\w)" if re.match(r"\w", name) else "") + words + (r"(?!\w)" if re.search(r"\w\Z", name) else "")


def _keywords(context: Context, names: Mapping[str, str], faulty: Mapping[int, int], check: Check) -> list[Edit]:
    """Return the edits for names that are keywords. A line gets an edit only if exactly one place, or all together, make it readable."""
    by_line: dict[int, list[Edit]] = {}
    for edit in _found(context.program.source.text, {name: names[name] for name in names if PLAIN.fullmatch(name)}, 0):
        if (line := _line(context, edit)) in faulty:
            by_line.setdefault(line, []).append(edit)
    accepted = []
    for line, edits in list(by_line.items())[:_MOST_KEYWORDS]:
        trials = [(edit, _edited(context, [edit])) for edit in edits[:_MOST_KEYWORDS]]
        fits = [edit for edit, trial in trials if _faults(trial, check(trial))[line] < min(_SYNTAX, faulty[line])]
        if (
            not fits
            and len(edits) > 1
            and _faults(trial := _edited(context, edits), check(trial))[line] < min(_SYNTAX, faulty[line])
        ):
            accepted += edits
        accepted += fits if len(fits) == 1 else []
    return accepted


def _edited(context: Context, edits: Iterable[Edit]) -> Context:
    from ...parse.gasl import parse_gasl

    source = context.program.source
    return evolve(context, program=parse_gasl(Source(repair(source.text, edits).text, source.name)))


def _line(context: Context, edit: Edit) -> int:
    return context.program.source.position(edit.span.start)[0]


def _faults(context: Context, found: Iterable[Diagnostic]) -> Counter[int]:
    """Return the weights of the faults in each line that has faults."""
    weights: Counter[int] = Counter()
    for each in found:
        if each.span is not None and (each.severity == "error" or each.code in _FAULTS):
            weights[context.program.source.position(each.span.start)[0]] += _SYNTAX if each.code < "GASL050" else 1
    return weights
