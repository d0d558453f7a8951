"""Explains faulty statements: unknown commands, commands of other languages, markup, brackets, text in the wrong place."""

import json
import re
from contextlib import suppress

from ....catalogue.commands import COMMANDS, FORMS
from ....catalogue.value_functions import VALUE_FUNCTIONS
from ....diagnostic import Edit, nearest
from ....source import Span
from ...repairs import Fault, shortened
from ..lines import BULLET
from .attempt import VALUES, Correction, Edits, Explainer, InvalidStatement, Piece, insert, swap

OTHER_WORDS = {
    "SEARCH": "FIND", "GET": "FIND", "FETCH": "FIND", "LOOKUP": "FIND", "FILTER": "SELECT", "DEFINE": "DECLARE",
    "CREATE": "DECLARE", "INIT": "DECLARE", "CLEAR": "RESET", "EMPTY": "RESET", "SORT": "RANK", "GROUP": "AGGREGATE",
    "CHECK": "ASSERT", "VERIFY": "ASSERT", "EXTRACT": "PROCESS", "LABEL": "CLASSIFY", "SUMMARIZE": "ANALYZE",
    "ANALYSE": "ANALYZE", "MINUS": "EXCEPT", "DIFFERENCE": "EXCEPT", "SUBTRACT": "EXCEPT", "TRAVERSE": "WALK",
    "NEIGHBORS": "WALK", "EXPAND": "WALK", "ABORT": "CANCEL", "IF": "BRANCH IF", "MERGE": "UPDATE", "ADD": "UPDATE",
    "INSERT": "UPDATE", "COMPUTE": "MEASURE", "PROJECT": "SELECT", "UNLESS": "BRANCH IF NOT",
    "PARAMETER": "PARAM", "PARAMETERS": "PARAM", "ARGUMENT": "PARAM",
}  # fmt: skip
"""Maps names of commands in other languages to keywords of GASL."""


def _markup(s: InvalidStatement) -> Fault | None:
    """Explain ``1. FIND``, ``- FIND``, ``**FIND ...**``."""
    if s.failure.offset > 12 or s.text[:1] in "\"'":
        return None
    found = BULLET.match(s.text)
    word = re.match(r"[A-Za-z]+", s.text[found.end() :]) if found else None
    known = (*COMMANDS, *OTHER_WORDS, "TRY")
    if not found or not word or (word[0].upper() not in known and not nearest(word[0], known)):
        return None
    edits, mark = [swap(0, found.end(), "")], found[0].strip()
    if mark[0] in "*`" and s.text.endswith(mark):
        edits.append(swap(len(s.text) - len(mark), len(s.text), ""))
    message = f"unexpected {shortened(found[0])} before the command"
    return s.fix("GASL030", message, Span(0, len(found[0].rstrip())), "remove it", edits, edits[:1])


def _quoted_command(s: InvalidStatement) -> Fault | None:
    """Explain ``"FIND nodes AS x",`` as in the JSON of a plan."""
    if s.at > 1 or s.text[:1] not in "\"'":
        return None
    found = re.match(r"""(?P<all>"(?:[^"\\]|\\.)*"|'[^']*')[ \t]*,?\Z""", s.text)
    if not found:
        return None
    inner = found["all"][1:-1]
    if found["all"][0] == '"':
        with suppress(ValueError):
            inner = json.loads(found["all"])
    whole = Span(0, len(s.text))
    return s.fix("GASL030", "a command cannot be in quotes", whole, "remove the quotes", [Edit(whole, inner)])


def _json(s: InvalidStatement) -> Fault | None:
    """Explain a plan's JSON in place of a program."""
    if s.at > 0 or not re.match(r'[{\[]|"(?:commands|plan_id|why|config|command)"[ \t]*:|[\]}]', s.text):
        return None
    hint = "a program has one command per line; JSON with plan_id, why and commands is a plan"
    return s.fault("GASL014", "this is JSON, not a command", Span(0, min(len(s.text), 30)), hint)


def _assignment(s: InvalidStatement) -> Fault | None:
    """Explain ``authors = FIND nodes``."""
    found = re.match(r"(?:LET[ \t]+)?\$?\{?([A-Za-z_]\w*)\}?[ \t]*(?::=|=|<-)[ \t]*(?=[A-Za-z]+[ \t])", s.text, re.I)
    if not found or s.at > found.end():
        return None
    hint = f"name the result at the end: ... AS {found[1]}"
    edits = [swap(0, found.end(), ""), insert(len(s.text), f" AS {found[1]}")]
    if named := re.search(r"\bAS[ \t]+(\w+)\Z", s.text, re.I):
        if named[1] != found[1]:  # the names differ, and neither name may be lost
            hint = f"AS already names the result {named[1]}: remove {found[0].rstrip()}"
        edits = edits[:1] if named[1] == found[1] else []
    message = "the result of a command is named with AS, not with ="
    return s.fault("GASL014", message, Span(0, found.end()), hint, edits)


def _sql(s: InvalidStatement) -> Fault | None:
    """Explain ``SELECT * FROM nodes WHERE ...``, ``SELECT a, b FROM x``."""
    found = re.match(r"SELECT[ \t]+(?P<fields>\*|[\w.,` \t]+?)[ \t]+FROM\b(?:[ \t]+(?P<source>\w+))?", s.text, re.I)
    if not found:
        return None
    message, span = "SELECT ... FROM is SQL, not GASL", Span(0, found.end())
    fields, source = found["fields"], found["source"]
    if not source:
        return s.fault("GASL014", message, span, "write FIND nodes AS name")
    distinct = re.match(r"DISTINCT[ \t]+", fields, re.I)
    word, fields = ("SELECT DISTINCT", fields[distinct.end() :]) if distinct else ("SELECT", fields)
    kind = {"node": "nodes", "edge": "edges", "path": "paths"}.get(source.lower().rstrip("s"))
    rest = s.text[found.end() :]
    bound = re.search(r"[ \t]*\bAS[ \t]+(\w+)\s*;?\Z", rest, re.I)
    options, name = (rest[: bound.start()], bound[1]) if bound else (rest.rstrip("; \t"), "name")
    options = shortened(options, 60)
    first = f"FIND {kind}" if kind else f"{word if fields != '*' and not options else 'SELECT'} {source}"
    if fields != "*" and (kind or options):
        items = "found" if kind else "rows"
        steps = f"{' '.join(filter(None, (first, options)))} AS {items}, then {word} {items} FIELDS {fields} AS {name}"
        return s.fault("GASL014", message, span, f"write {steps}")
    right = first if fields == "*" else f"{first} FIELDS {fields}"
    hint = f"write {' '.join((right, shortened(rest, 60))).rstrip()}{'' if bound else ' AS name'}"
    # Without this edit, the missing name would be reported as a second fault.
    named = [] if bound else [insert(len(s.text.rstrip("; \t")), " AS found")]
    return s.fault("GASL014", message, span, hint, [Edit(span, right), *named])


def _function_call(s: InvalidStatement) -> Fault | None:
    """Explain ``FIND(nodes, ...)``, ``COUNT(authors)``."""
    found = re.match(r"([A-Za-z_]+)[ \t]*\(", s.text)
    if not found or found[1].upper() not in COMMANDS or found[1].upper() == "ASSERT" or s.at > found.end():
        return None
    inner = re.match(r"[A-Za-z_]+[ \t]*\([ \t]*(\w+)[ \t]*\)", s.text)
    edits = [swap(found.end(1), inner.end(), f" {inner[1]}")] if inner else []
    span, hint = Span(found.end() - 1, found.end()), s.form or "remove the parentheses"
    return s.fault("GASL014", f"{found[1].upper()} is a command, not a function", span, hint, edits)


_SHOWING = ("SHOW", "LIST", "DISPLAY", "PRINT", "RETURN")
_COMMAND_FIRST = "a command begins with its keyword, for example FIND nodes AS x"


def _unknown(s: InvalidStatement) -> Fault | None:
    """Explain a word that is not a command, at the start of a statement or after THEN, ELSE or EXPLAIN."""
    piece = s.piece()
    if piece.kind == "end" or "FIND" not in s.expected:
        return None
    if piece.kind != "word":
        message = f"a command cannot begin with {shortened(piece.text)}"
        return None if s.here else s.fault("GASL001", message, piece.span, _COMMAND_FIRST)
    if piece.upper in _SHOWING:
        return _showing(s, piece)
    message = f"unknown command {shortened(piece.text)}"
    other = OTHER_WORDS.get(piece.upper)
    near = nearest(piece.text, COMMANDS)
    if near and near[0] != piece.upper[0] and not s.mended_by([Edit(piece.span, near)]):
        near = None
    right = other or near
    if not right and len(s.pieces) == 1 and (block := nearest(piece.text, ("TRY", "CATCH", "FINALLY", "END"))):
        return s.fault("GASL001", message, piece.span, f"did you mean {block}?")
    if right:
        rest = re.split(r"\bTHEN\b|:", s.text[piece.span.end :], maxsplit=1, flags=re.IGNORECASE)[0]
        is_open = piece.upper in ("ADD", "INSERT") or (
            # BRANCH IF NOT would negate only the first comparison.
            piece.upper == "UNLESS" and re.search(r"\b(?:AND|OR|BETWEEN)\b|&&|\|", rest, re.IGNORECASE)
        )
        hint = f"write {right}" if other else f"did you mean {right}?"
        found = s.fault("GASL001", message, piece.span, hint, *([] if is_open else [[Edit(piece.span, right)]]))
        if found.diagnostic.edits or other or piece.text.isupper() or s.here:
            return found
    if s.here or piece.text.isupper():
        hint = "the commands are " + ", ".join(COMMANDS)
        if any(re.search(rf"\b{piece}\b", form) for form in FORMS.values()):
            hint = f"{piece} continues a command: move it to the end of the line above"
        return s.fault("GASL001", message, piece.span, hint)
    # No edit: only the author knows whether this is a comment or part of the program.
    hint = f"did you mean {right}?" if right else _COMMAND_FIRST
    return s.ambiguity("GASL001", "this line is not a command", Span(0, len(s.text)), hint, "a comment begins with #")


def _showing(s: InvalidStatement, piece: Piece) -> Fault:
    """Explain ``SHOW orgs``, ``LIST nodes``. These commands belong to other languages and to shells."""
    message, following = f"unknown command {piece}", s.piece(1)
    kind = following.text.lower()
    if kind in ("nodes", "edges", "paths", "all"):
        edits = [Edit(piece.span, "FIND")]
        named = "paths WHERE ... AS name" if kind == "paths" else f"{'nodes' if kind == 'all' else kind} AS name"
        return s.fault("GASL001", message, piece.span, f"write FIND {named}", edits if s.mended_by(edits) else ())
    name = following.text if following.kind == "word" and following.text.isidentifier() else "rows"
    hint = f"write SELECT {name} FIELDS id AS name to get the items of a variable"
    return s.fault("GASL001", message, piece.span, hint)


_BLOCK_WORD = Correction(
    "GASL005",
    "any | TRY",
    "a TRY block cannot be inside another command",
    "write the block on its own lines, or one command here",
    when=lambda s: "TRY" not in s.expected,
)

HEADS: tuple[Explainer, ...] = (
    _quoted_command,
    _json,
    _markup,
    _assignment,
    _sql,
    _function_call,
    _BLOCK_WORD,
    _unknown,
)


# The structure of a statement: brackets, text after its end, options after AS.

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_NAMED = re.compile(r"\bAS[ \t]+(?:[A-Za-z_]\w*|`[^`]+`)[ \t]*", re.IGNORECASE)
_AFTER_BRACKET = re.compile(r"(?<![ \t])[ \t]+(?:AS|LIMIT|ORDER|TO|THEN|AND|OR|VIA|WHERE|MAXLEN)\b")


def _brackets(s: InvalidStatement) -> Fault | None:
    """Explain a missing or mismatched bracket."""
    piece, opened = s.piece(), s.failure.brackets
    if not opened:
        return None
    mark, at = opened[-1]
    right = _CLOSING[mark]
    if piece.text in (")", "]", "}"):
        message = f"{mark} must be closed by {right}, not by {piece}"
        if found := s.fix("GASL003", message, piece.span, f"write {right}", [Edit(piece.span, right)]):
            return found
    last = len(s.text.rstrip())
    words = [m.start() for m in _AFTER_BRACKET.finditer(s.text) if m.start() > at]
    closing = "".join(_CLOSING[sign] for sign, _ in reversed(opened))
    places = sorted({*words[-8:], last, min(s.failure.behind, last)}, reverse=True)
    candidates: list[Edits] = [[insert(place, text)] for place in places for text in {right, closing}]
    message, span, hint = f"{mark} is not closed", Span(at, at + 1), f"write {right} to close it"
    if s.readings(*candidates) > 1:
        several = "it could end in several places, each with a different meaning"
        return s.ambiguity("GASL003", message, span, hint, several, supposed=candidates)
    found = s.fault("GASL003", message, span, hint, *candidates)
    return found if found.diagnostic.edits or piece.kind == "end" else None


def _surplus(s: InvalidStatement) -> Fault | None:
    """Explain a surplus closing bracket."""
    piece = s.piece()
    if s.failure.brackets or piece.text not in (")", "]", "}"):
        return None
    edits, message = [Edit(piece.span, "")], f"{piece} has no opening bracket"
    joining = {one.upper for one in s.pieces} & {"AND", "OR", "NOT", "&&", "||", "!"}
    if len(joining) > 1 and s.mended_by(edits):
        hint = "add the opening bracket, or remove this one"
        return s.ambiguity("GASL003", message, piece.span, hint, supposed=[edits])
    return s.fix("GASL003", message, piece.span, "remove it", edits)


def _unbracketed(s: InvalidStatement) -> Fault | None:
    """Explain ``COMPUTE sum x``, ``lower "x"``, ``INTO "a", "b"``: the brackets are missing."""
    piece, before = s.piece(), s.piece(-1)
    called = VALUE_FUNCTIONS.get(before.text)
    if called is not None and called.least < 2 and piece.kind in VALUES and s.failure.after == "PATH":
        edits = [swap(before.span.end, piece.span.end, f"({piece})")]
        hint = f"write {before}({shortened(piece.text)})"
        return s.fix("GASL003", "the argument of a function must be in ( )", piece.span, hint, edits)
    if s.failure.after == "FUNCTION" and piece.kind == "word" and piece.upper != "AS":
        edits = [swap(s.failure.behind, piece.span.end, f"({piece})")]
        return s.fix("GASL003", "the field of a function must be in ( )", piece.span, f"write ({piece})", edits)
    if s.failure.after not in ("_INTO", "RETURNING") or piece.text in ("(", "[") or piece.kind == "end":
        return None
    stop = re.compile(r"[ \t]+AS[ \t]", re.IGNORECASE).search(s.text, piece.span.start)
    end = stop.start() if stop and s.failure.after == "_INTO" else len(s.text.rstrip())
    span = Span(piece.span.start, end)
    items = s.text[span.start : end]
    edits = [Edit(span, f"({items})")]
    if piece.kind == "string" and piece.span.end == end and "," in piece.text:
        edits = []  # a single label, or several labels in one pair of quotes
    hint = f"write ({shortened(items, 60)})"
    if not (edits and s.mended_by(edits)):
        is_labels = s.failure.after == "_INTO"
        hint = 'write ("a", "b"), with each label in quotes' if is_labels else "put the columns in ( )"
    return s.fault("GASL003", "a list must be in ( )", span, hint, edits)


_NO_CONDITION = Correction(  # no edit: without the word, the command would take all items
    "GASL010",
    "WHERE/VIA/AND/OR/NOT/IF/ASSERT AS/LIMIT/THEN/ORDER |",
    "{0.upper} must be followed by a condition",
    'write a condition, for example name = "x", or remove {0.upper}',
    blamed=(0, 0),
    after=("PATH",),
)


def _behind(s: InvalidStatement) -> Fault | None:
    """Explain text after the end of a statement: a semicolon, an option, or a second command."""
    piece = s.piece()
    if piece.kind == "end" or not s.expected & {"$END", "_NEWLINE"}:
        return None
    start = piece.span.start
    rest, gap = s.text[start:], len(s.text[:start].rstrip())
    if re.fullmatch(r"[;,.:\\|]+\s*", rest):
        message = f"unexpected {shortened(rest.strip())} after the command"
        return s.fix("GASL031", message, piece.span, "remove it", [swap(gap, len(s.text), "")])
    if re.match(r"(?://|--|/\*)", rest):
        span = Span(start, start + 2)
        return s.fix("GASL031", "a comment begins with #", span, "write #", [Edit(span, "#")])
    follows = re.match(r"(?:;|,|&&|\||THEN\b|AND\b)?[ \t]*", rest, re.IGNORECASE)
    begin = start + (follows.end() if follows else 0)
    word = re.match(r"[A-Za-z]+", s.text[begin:])
    if word and word[0].upper() in COMMANDS:
        message, span = f"second command on this line: {word[0]}", Span(start, begin + len(word[0]))
        if found := s.fix("GASL031", message, span, "move it to a new line", [swap(gap, begin, "\n")]):
            return found
    return _late_option(s, start, gap)


def _late_option(s: InvalidStatement, start: int, gap: int) -> Fault | None:
    """Explain ``FIND nodes AS x LIMIT 10``."""
    names = [match for match in _NAMED.finditer(s.text) if gap <= match.end() <= start]
    if not names:
        return None
    tail = s.text[start:].rstrip()
    edits = [insert(names[-1].start(), f"{tail} "), swap(gap, len(s.text), "")]
    message = f"{shortened(tail.split(None, 1)[0])} must come before AS"
    return s.fix("GASL016", message, Span(start, start + len(tail)), "AS and the name come last", edits)


def _early_name(s: InvalidStatement) -> Fault | None:
    """Explain ``PROCESS x AS y USING "..."``."""
    for match in _NAMED.finditer(s.text):
        if match.end() <= s.at + 3 or match.start() <= s.at:
            name, span = match[0].strip(), Span(*match.span())
            edits = [Edit(span, ""), insert(len(s.text.rstrip()), f" {name}")]
            if s.mended_by(edits):
                return s.fault("GASL016", f"{name} must come last", span, "move it to the end", edits)
    return None


def _late_name(s: InvalidStatement) -> Fault | None:
    """Explain ``PROCESS x USING "..." RETURNING (...) AS y``."""
    piece = s.piece()
    named = re.compile(r"[ \t]*(AS[ \t]+\w+)[ \t]*\Z", re.IGNORECASE).search(s.text, piece.span.start)
    if piece.upper != "RETURNING" or not named:
        return None
    edits = [insert(piece.span.start, f"{named[1]} "), swap(named.start(), len(s.text), "")]
    return s.fix("GASL016", "RETURNING must come after AS and the name", piece.span, "move it to the end", edits)


def _by_limit(s: InvalidStatement) -> Fault | None:
    """Explain ``RANK x BY f LIMIT 3 DESC``: an option in the wrong place."""
    piece = s.piece()
    limit = re.search(r"[ \t]+LIMIT[ \t]+\d+[ \t]*\Z", s.text[: piece.span.start], re.IGNORECASE)
    if piece.upper not in ("DESC", "ASC") or not limit:
        return None
    edits = [insert(limit.start(), f" {piece}"), swap(limit.end() - 1, piece.span.end, "")]
    message = f"{piece} must come after the field, before LIMIT"
    return s.fix("GASL016", message, piece.span, "move it before LIMIT", edits)


SHAPE: tuple[Explainer, ...] = (_brackets, _early_name, _behind)

MISPLACED: tuple[Explainer, ...] = (_surplus, _late_name, _by_limit, _unbracketed, _NO_CONDITION)
"""Explainers that run before the explainers of words and values, which would misread these faults."""
