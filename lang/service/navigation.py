"""Definitions, references and renaming of names, outlines, folding and hover text. All languages use the same functions.

A rename is first tried on a copy. In the copy, every other name must still refer to the same thing, and the diagnostics must be the
same as before.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from attrs import evolve

from ..catalogue.commands import BLOCK_FORM, BLOCK_WORDS, FORMS
from ..diagnostic import Diagnostic, Edit, printable
from ..documents.json_tree import JsonNode
from ..parse.repairs import Repaired, repair
from ..source import Source, Span
from ..trees import gasl, walk
from ..trees.gasl import Item, Statement, Try
from . import language_names
from .completion import completions
from .language_names import Names, Occurrence, embedded_texts
from .model import (
    Completion,
    Fold,
    Hover,
    Known,
    Language,
    Place,
    Reading,
    Symbol,
    SymbolKind,
    Text,
    Token,
    Variable,
    block,
    code,
    diagnostics_of,
    excerpt,
    plain,
    read,
)
from .semantic_tokens import tokens_in

_LONGEST = 200


def occurrences_in(language: Language, text: Text) -> Names:
    """Return all names in a text in ``language``, in source order."""
    return names_in(read(language, text))


def names_in(reading: Reading) -> Names:
    """Return all names in a text, in source order."""
    return reading.once("names", _names)


def _names(reading: Reading) -> Names:
    found: Iterable[Occurrence]
    match reading.language:
        case "gasl":
            found = language_names.gasl_occurrences(reading.text, reading.program.items)
        case "lwt":
            found = language_names.lwt_occurrences(reading.text, reading.script.items)
        case "expr":
            tree = reading.expression.expr
            found = () if tree is None else language_names.expr_occurrences(tree, reading.text)
        case "seed":
            found = language_names.seed_occurrences(reading)
    return tuple(sorted(found, key=lambda each: (each.span.start, each.span.end)))


def occurrence_at(found: Sequence[Occurrence], offset: int) -> Occurrence | None:
    """Return the occurrence at ``offset``. If there is none, return the occurrence that ends there."""
    on = next((each for each in found if each.span.covers(offset)), None)
    return on or next((each for each in found if each.span.end == offset), None)


def definition_of(found: Sequence[Occurrence], offset: int) -> Place | None:
    """Return the definition of the name at ``offset``.

    This is the last definition at or above this place or, if there is none, the first definition below it.
    """
    at = occurrence_at(found, offset)
    if at is None:
        return None
    defining = [each.span for each in found if each.thing == at.thing and each.defines]
    above = [span for span in defining if span.start <= at.span.start]
    chosen = above[-1] if above else defining[0] if defining else None
    return Place(chosen, True) if chosen is not None else None


def places(found: Sequence[Occurrence], offset: int) -> tuple[Place, ...]:
    """Return all occurrences of the name at ``offset``."""
    at = occurrence_at(found, offset)
    return () if at is None else tuple(Place(each.span, each.defines) for each in found if each.thing == at.thing)


def renamable_at(reading: Reading, offset: int, known: Known) -> Place | Diagnostic:
    """See ``service.renamable``."""
    found = names_in(reading)
    at = occurrence_at(found, offset)
    if at is None:
        return _refusal("no name at this place can be renamed")
    same = [each for each in found if each.thing == at.thing]
    fault = _fault(at, same, found, at.name, known) or _unreadable(reading, at, same)
    return _refusal(fault, at.span) if fault else Place(at.span, at.defines)


def rename_edits(reading: Reading, offset: int, new: str, known: Known) -> tuple[Edit, ...] | Diagnostic:
    """See ``service.rename``."""
    found = names_in(reading)
    at = occurrence_at(found, offset)
    if at is None:
        return _refusal("no name at this place can be renamed")
    same = [each for each in found if each.thing == at.thing]
    fault = _fault(at, same, found, new, known) or _unreadable(reading, at, same)
    if fault:
        return _refusal(fault, at.span)
    if new == at.name:
        return ()
    edits = [Edit(each.span, each.written(new) or new) for each in same]
    reason = _change_of_meaning(reading, edits, at, new, known)
    return _refusal(reason, at.span) if reason else tuple(edits)


_WORDS = {"computation": "step"}


def _fault(at: Occurrence, same: Sequence[Occurrence], found: Sequence[Occurrence], new: str, known: Known) -> str:
    """Return why the name can't be changed to ``new``; "" if it can."""
    fixed = next((each.fixed for each in same if each.fixed), "")
    if fixed:
        return fixed
    if not any(each.defines for each in same):
        return f"{_short(at.name)} is not defined in this text"
    if not new.strip() or len(new) > _LONGEST:
        return "the name is empty" if not new.strip() else f"the name exceeds {_LONGEST} characters"
    if any(each.written(new) is None for each in same):
        return f"{_short(new)} can't be the name of a {_WORDS.get(at.kind, at.kind)}"
    # Variables of different strings or comprehensions, and columns of different rows, do not conflict. If the new name would
    # capture another variable or column, the check of the copy finds this.
    is_local = at.kind in ("variable", "field") and at.scope
    near = (each for each in found if not is_local or each.scope in (0, at.scope))
    if new != at.name and any(each.name == new and each.kind == at.kind for each in near):
        return f"a {_WORDS.get(at.kind, at.kind)} {_short(new)} already exists"
    if new != at.name and at.kind == "variable" and new in known.variables:
        return f"{_short(new)} is already bound outside this text"
    if at.kind == "variable" and at.name in known.variables and at.scope == 0:
        return f"{_short(at.name)} is also bound outside this text"
    return ""


def _unreadable(reading: Reading, at: Occurrence, same: Sequence[Occurrence]) -> str:
    """Return a reason to refuse the rename if the name occurs in a part of the text that could not be parsed; otherwise ""."""
    if not reading.faults:
        return ""
    words = len(re.findall(rf"(?<!\w){re.escape(at.name)}(?!\w)", reading.text))
    return "" if words == len(same) else "an invalid part of the text contains this name; fix that part first"


def _change_of_meaning(reading: Reading, edits: Sequence[Edit], at: Occurrence, new: str, known: Known) -> str:
    """Return a message if a rename would change anything else; otherwise ""."""
    made = repair(reading.text, edits)
    later_reading = Reading(reading.language, Source(made.text, reading.source.name))
    after = names_in(later_reading)
    places_after = {(*_ends_back(made, each.span), each.kind): each for each in after}
    meant = (places_after.get((edit.span.start, edit.span.end, at.kind)) for edit in edits)
    if any(each is None or each.name != new for each in meant):
        return f"the name {_short(new)} would change the meaning of the text"
    if _identities(names_in(reading)) != _identities(
        each._replace(span=Span(start, end)) for (start, end, _), each in places_after.items()
    ):
        return f"the name {_short(new)} would change the meaning of the text"
    told, now = diagnostics_of(reading, known), diagnostics_of(later_reading, known)
    before = Counter((each.code, each.severity, each.span) for each in told)
    later = Counter((each.code, each.severity, _back(made, each.span)) for each in now)
    if before != later:
        more, less = later - before, before - later
        said = next((each for each in now if (each.code, each.severity, _back(made, each.span)) in more), None)
        if said is not None:
            return f"with the name {_short(new)}, the check would report: {said.message} ({said.code})"
        gone = next(each for each in told if (each.code, each.severity, each.span) in less)
        return f"with the name {_short(new)}, the check would no longer report: {gone.message} ({gone.code})"
    return ""


def _identities(found: Iterable[Occurrence]) -> list[tuple[int, int, str, int]]:
    """Return for each occurrence its start, end and kind, and the start of the first occurrence of the same thing."""
    ordered = sorted(found, key=lambda each: (each.span.start, each.span.end))
    first: dict[tuple[str, str, int], int] = {}
    return [
        (each.span.start, each.span.end, each.kind, first.setdefault(each.thing, each.span.start)) for each in ordered
    ]


def _ends_back(made: Repaired, span: Span) -> tuple[int, int]:
    """Return the original start and end of a span. Unlike ``back_span``, this creates no ``Span``: a file has many names."""
    start = made.back(span.start)
    return start, max(start, made.back(span.end))


def _back(made: Repaired, span: Span | None) -> Span | None:
    return None if span is None else made.back_span(span)


def _refusal(reason: str, span: Span | None = None) -> Diagnostic:
    return Diagnostic("KW005", "error", reason, span)


def _short(name: str) -> str:
    return printable(name if len(name) <= 60 else name[:59] + "…")


# Returns the definitions in a text as an outline.


def symbols_of(reading: Reading) -> tuple[Symbol, ...]:
    """See ``service.symbols``."""
    match reading.language:
        case "gasl":
            return tuple(_items(reading.program.items, reading.text))
        case "lwt":
            return tuple(
                Symbol(
                    step.id,
                    "step",
                    step.span,
                    Span(step.span.start + 1, step.span.start + 1 + len(step.id)),
                    step.call.operation,
                )
                for step in reading.script.steps
            )
        case "seed":
            return tuple(_seed(reading))
        case "expr":
            return ()


_DEEPEST = 60
"""Maximum depth of nested commands in the outline. Faulty texts may be nested more deeply."""


def _items(items: Iterable[Item], text: str, depth: int = 0) -> Iterator[Symbol]:
    for item in items:
        if isinstance(item, Statement):
            yield from _command(item.command, item.span, text, depth)


def _command(command: gasl.Command, span: Span, text: str, depth: int) -> Iterator[Symbol]:
    if depth > _DEEPEST:
        return
    said = excerpt(text[command.span.start : command.span.end])
    if isinstance(command, gasl.Try):
        inner = (*command.body, *(command.caught or ()), *(command.always or ()))
        word = Span(command.span.start, command.span.start + 3)
        yield Symbol("TRY", "block", span, word, children=tuple(_items(inner, text, depth + 1)))
    elif isinstance(command, gasl.Branch):
        for each in (command.then, command.otherwise):
            if each is not None:
                yield from _command(each, each.span, text, depth + 1)
    elif isinstance(command, gasl.On):
        yield from _command(command.then, command.then.span, text, depth + 1)
    elif isinstance(command, gasl.Declare | gasl.Update):
        yield Symbol(command.key.text, "key", span, command.key.span, said)
    else:
        for name in gasl.bound_variables(command):
            yield Symbol(name.text, "variable", span, name.span, said)


def _seed(reading: Reading) -> Iterator[Symbol]:
    root = reading.document.root
    if root is None:
        return
    extract = root.fields.get("extract")
    fields = extract.fields.get("fields") if extract is not None else root.fields.get("extraction_fields")
    yield from _symbols_of_list(fields, "field", "type")
    yield from _symbols_of_list(root.fields.get("reduce"), "computation", "type")
    yield from _symbols_of_list(root.fields.get("compute") or root.fields.get("compute_dag"), "computation", "op")


def _symbols_of_list(node: JsonNode | None, kind: SymbolKind, detail: str) -> Iterator[Symbol]:
    for item in node.items if node is not None else ():
        name = item.fields.get("name")
        if name is not None and isinstance(name.value, str) and name.value:
            about = item.value.get(detail)
            yield Symbol(name.value, kind, item.span, name.span, about if isinstance(about, str) else "")


# Finds the parts of a text that can be folded.

_COMMENTS = re.compile(r"(?:^[ \t]*+#[^\n]*+(?:\n|\Z)){2,}", re.MULTILINE)


def folds_of(reading: Reading) -> tuple[Fold, ...]:
    """See ``service.folds``."""
    source, text, language = reading.source, reading.text, reading.language
    spans: Iterator[tuple[int, int]] = iter(())
    if language != "expr":
        spans = {"gasl": _gasl, "lwt": _lwt, "seed": _seed_folds}[language](reading)
    found = set()
    for start, end in spans:
        first, last = source.position(start)[0], source.position(max(start, end - 1))[0]
        if last > first:
            found.add((first, last, "region"))
    if language in ("gasl", "lwt"):
        for match in _COMMENTS.finditer(text):
            first, last = source.position(match.start())[0], source.position(match.end() - 1)[0]
            found.add((first, last, "comment"))
    return tuple(Fold(first, last, "comment" if kind == "comment" else "region") for first, last, kind in sorted(found))


def _gasl(reading: Reading) -> Iterator[tuple[int, int]]:
    items = reading.program.items
    spans = [item.span for item in items]
    for item in items:
        for node in walk(item):
            if isinstance(node, Try):
                spans.append(node.span)
                for part in (node.body, node.caught or (), node.always or ()):
                    spans += (each.span for each in part)
    for span in spans:
        yield span.start, span.end


def _lwt(reading: Reading) -> Iterator[tuple[int, int]]:
    return ((step.span.start, step.span.end) for step in reading.script.steps)


def _seed_folds(reading: Reading) -> Iterator[tuple[int, int]]:
    root = reading.document.root
    waiting: list[JsonNode] = [root] if root is not None else []
    while waiting:
        node = waiting.pop()
        if node.fields or node.items:
            yield node.start, node.end
            waiting += [*node.fields.values(), *node.items]


# Builds hover text: the description that completion offers for the token, and how often a name is used.

_BRACKETS = re.compile(r"\[[^\[\]\n]*\]")
_OTHER_FORM = ", or "
"""Separates the forms of commands with the same keyword."""
_NAMING = frozenset({"variable", "step", "property", "string"})


def hover_at(reading: Reading, offset: int, known: Known) -> Hover | None:
    """See ``service.hover``."""
    token = _token(tokens_in(reading), offset)
    if token is None or token.type == "comment":
        return None
    if reading.language == "lwt" and token.type == "string" and (inner := _inside(reading, offset, known)) is not None:
        return inner
    named = _accessor(reading.text, token, offset) if reading.language == "lwt" and token.type == "property" else None
    found = _offered(reading, token, named or token.span, known)
    parts = [_about(found, reading, token)] if found is not None else []
    parts += _uses(reading, offset) if token.type in _NAMING else []
    said_parts = [part for part in parts if part]
    return Hover("\n\n".join(said_parts), named or token.span) if said_parts else None


def _offered(reading: Reading, token: Token, span: Span, known: Known) -> Completion | None:
    """Return the completion that would produce the text of ``span`` if the cursor were at the end of ``span``.

    Return None if there is no such completion.
    """
    said = reading.text[span.start : span.end]
    end = span.end
    is_text = said[:1] in "\"'" and len(said) > 1 and said[-1] == said[0]
    end -= is_text or (said.startswith("${") and said.endswith("}"))
    if said.startswith("["):
        end = span.start + len(said.rstrip("]\"'\\"))
        said = said.strip("[]\\")
    wanted = {said, said.strip("\"'`"), said.removeprefix("${").removesuffix("}").strip().strip("`")}
    if token.type in ("keyword", "command", "function", "type"):
        wanted |= {each.casefold() for each in wanted}
    offered = completions(reading, end, known)
    return next((each for each in offered if each.match in wanted or _plain(each.text) in wanted), None)


def _accessor(text: str, token: Token, offset: int) -> Span | None:
    """Return the span of the accessor ``[...]`` at ``offset``; None if there is no accessor. ``token`` spans all accessors."""
    parts = _BRACKETS.finditer(text, token.start, token.end)
    return next((Span(*part.span()) for part in parts if part.start() <= offset <= part.end()), None)


def _inside(reading: Reading, offset: int, known: Known) -> Hover | None:
    """Return the hover text at ``offset`` if this place is in a string with a program or an expression; otherwise None."""
    if "GASL" not in reading.text and "EXPR" not in reading.text:
        return None
    for step in reading.script.steps:
        if not step.span.start <= offset <= step.span.end:
            continue
        for inside in embedded_texts(step, reading.text):
            if not inside.span.start < offset < inside.span.end or (at := inside.inner(offset)) is None:
                continue
            names = {option.name: Variable(excerpt(reading.source.slice(option.value.span))) for option in inside.given}
            beside = evolve(known, variables={}) if inside.language == "gasl" else Known(variables=names)
            found = hover_at(Reading(inside.language, Source(inside.text)), at, beside)
            place = inside.outside(found.span) if found is not None else None
            return Hover(found.text, place) if found is not None and place is not None else None
    return None


def _plain(text: str) -> str:
    return text.rstrip("(=: ").strip('"')


def _token(tokens: Sequence[Token], offset: int) -> Token | None:
    """Return the token at ``offset``, or else the token that ends there."""
    place = bisect_right(tokens, offset, key=lambda token: token.start) - 1
    if place < 0:
        return None
    token = tokens[place]
    if offset < token.end:
        before = tokens[place - 1] if place else None
        return before if before is not None and token.type == "operator" and before.end == offset else token
    return token if token.end == offset else None


def _about(found: Completion, reading: Reading, token: Token) -> str:
    name = code(found.match or _plain(found.text) or found.text)
    if found.kind == "command":
        return block(found.detail.replace(_OTHER_FORM, "\n"), reading.language)
    if found.kind in ("variable", "step") and found.documentation:
        return f"**{found.kind}** {name}\n\n{found.documentation}"
    if not found.detail and (found.kind == "keyword" or not found.documentation):
        form = _form(reading, token) if reading.language == "gasl" else ""
        parts = (f"**{found.kind}** {name}, in\n\n{form}" if form else "", found.documentation)
        return "\n\n".join(filter(None, parts))  # the word alone adds no information
    head = f"**{found.kind}** {name}" + (f" · {plain(found.detail)}" if found.detail else "")
    return f"{head}\n\n{found.documentation}" if found.documentation else head


def _form(reading: Reading, token: Token) -> str:
    """Return the syntax of the command that contains the keyword ``token``, as a code block; "" if the command is unknown."""
    tokens = tokens_in(reading)
    place = bisect_right(tokens, token.start, key=lambda each: each.start) - 1
    word, before = (reading.text[each.start : each.end].upper() for each in (token, tokens[max(place - 1, 0)]))
    if word in BLOCK_WORDS or (word == "ANY" and before == "CATCH"):
        return block(BLOCK_FORM, "gasl")
    commands = (each for each in reversed(tokens[: place + 1]) if each.type == "command")
    if word == "ELSE":  # ELSE follows another command inside BRANCH
        commands = (each for each in commands if reading.text[each.start : each.end].upper() == "BRANCH")
    command = next(commands, None)
    if command is None:
        return ""
    forms = FORMS.get(reading.text[command.start : command.end].upper(), "").split(_OTHER_FORM)
    second = reading.text[command.end :].split(maxsplit=1)[:1]
    own = (
        [form for form in forms if second and second[0].lower() in form.split()[1:2][0].split("|")] if forms[0] else []
    )
    return block("\n".join(own or forms), "gasl") if forms[0] else ""


def _uses(reading: Reading, offset: int) -> list[str]:
    """If a name is defined at ``offset``, return a sentence that says how often it is used. Otherwise return an empty list."""
    found = names_in(reading)
    at = occurrence_at(found, offset)
    if at is None:
        return []
    same = [each for each in found if each.thing == at.thing]
    uses = sum(not each.defines for each in same)
    if not at.defines:
        return []
    used = "used once" if uses == 1 else f"used {uses:,} times" if uses else "not used in this text"
    kind = "step" if at.kind == "computation" else at.kind
    return [f"**{kind}** {code(at.name)}, defined here, {used}"]
