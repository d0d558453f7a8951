"""Faulty first words of a statement: not a command, a misspelt one, one of another language, markup before it."""

import json
import re

from ....catalogue.commands import COMMANDS, FORMS
from ....diagnostic import nearest
from ....source import Span
from ...repairs import Fault, fault, shown
from ..lines import BULLET
from .attempt import Broken, Edits, Piece, swap

_OTHER_WORDS = {
    "SEARCH": "FIND", "GET": "FIND", "FETCH": "FIND", "LOOKUP": "FIND", "FILTER": "SELECT", "DEFINE": "DECLARE",
    "CREATE": "DECLARE", "INIT": "DECLARE", "CLEAR": "RESET", "EMPTY": "RESET", "SORT": "RANK", "GROUP": "AGGREGATE",
    "CHECK": "ASSERT", "VERIFY": "ASSERT", "EXTRACT": "PROCESS", "LABEL": "CLASSIFY", "SUMMARIZE": "ANALYZE",
    "ANALYSE": "ANALYZE", "MINUS": "EXCEPT", "DIFFERENCE": "EXCEPT", "SUBTRACT": "EXCEPT", "TRAVERSE": "WALK",
    "NEIGHBORS": "WALK", "EXPAND": "WALK", "ABORT": "CANCEL", "IF": "BRANCH IF", "MERGE": "UPDATE", "ADD": "UPDATE",
    "INSERT": "UPDATE", "COMPUTE": "MEASURE", "PROJECT": "SELECT", "UNLESS": "BRANCH IF NOT",
}  # fmt: skip
"""Names of commands in other languages."""


def _markup(b: Broken) -> Fault | None:
    """Explain ``1. FIND``, ``- FIND``, ``**FIND ...**``."""
    if b.failure.offset > 12 or b.text[:1] in "\"'":
        return None
    found = BULLET.match(b.text)
    word = re.match(r"[A-Za-z]+", b.text[found.end() :]) if found else None
    known = (*COMMANDS, *_OTHER_WORDS, "TRY")
    if not found or not word or (word[0].upper() not in known and not nearest(word[0], known)):
        return None
    edits = [swap(0, found.end(), "")]
    mark = found[0].strip()
    if mark[0] in "*`" and b.text.endswith(mark):
        edits.append(swap(len(b.text) - len(mark), len(b.text), ""))
    message = f"{shown(found[0])} stands before the command"
    return b.fix("GASL030", message, Span(0, len(found[0].rstrip())), "remove it", edits, edits[:1])


def _quoted(b: Broken) -> Fault | None:
    """Explain ``"FIND nodes AS x",`` as in the JSON of a plan."""
    if b.at > 1 or b.text[:1] not in "\"'":
        return None
    found = re.match(r"""(?P<all>"(?:[^"\\]|\\.)*"|'[^']*')[ \t]*,?\Z""", b.text)
    if not found:
        return None
    try:
        inner = json.loads(found["all"]) if found["all"][0] == '"' else found["all"][1:-1]
    except ValueError:
        inner = found["all"][1:-1]
    message = "the command stands in quotes"
    return b.fix("GASL030", message, Span(0, len(b.text)), "write it without them", [swap(0, len(b.text), inner)])


def _json(b: Broken) -> Fault | None:
    """Explain a plan's JSON in place of a program."""
    if b.at > 0 or not re.match(r'[{\[]|"(?:commands|plan_id|why|config|command)"[ \t]*:|[\]}]', b.text):
        return None
    hint = "a program is commands, one a line; JSON with plan_id, why and commands is a plan"
    return fault("GASL014", "this is JSON, not a command", 0, min(len(b.text), 30), hint)


def _assigned(b: Broken) -> Fault | None:
    """Explain ``authors = FIND nodes``."""
    found = re.match(r"(?:LET[ \t]+)?\$?\{?([A-Za-z_]\w*)\}?[ \t]*(?::=|=|<-)[ \t]*(?=[A-Za-z]+[ \t])", b.text, re.I)
    if not found or b.at > found.end():
        return None
    hint = f"the result is named at the end: ... AS {found[1]}"
    end = len(b.text)
    edits = [swap(0, found.end(), ""), swap(end, end, f" AS {found[1]}")]
    if named := re.search(r"\bAS[ \t]+(\w+)\Z", b.text, re.I):
        if named[1] != found[1]:  # of two different names neither may be lost
            hint = f"AS names the result {named[1]}: leave out {found[0].rstrip()}"
        edits = edits[:1] if named[1] == found[1] else []
    return b.fault("GASL014", "a command is not assigned", Span(0, found.end()), hint, edits)


def _sql(b: Broken) -> Fault | None:
    """Explain ``SELECT * FROM nodes WHERE ...``, ``SELECT a, b FROM x``."""
    found = re.match(r"SELECT[ \t]+(?P<what>\*|[\w.,` \t]+?)[ \t]+FROM\b(?:[ \t]+(?P<from>\w+))?", b.text, re.I)
    if not found:
        return None
    source = found["from"]
    if not source:
        return fault("GASL014", "SELECT ... FROM is SQL", 0, found.end(), "write FIND nodes AS name")
    kind = {"node": "nodes", "edge": "edges", "path": "paths"}.get(source.lower().rstrip("s"))
    rest = b.text[found.end() :]
    bound = re.search(r"[ \t]*\bAS[ \t]+(\w+)\s*;?\Z", rest, re.I)
    unnamed, last = (rest[: bound.start()], bound[1]) if bound else (rest.rstrip("; \t"), "name")
    if kind and found["what"] == "*":
        right = f"FIND {kind}"
    elif kind:
        right = f"FIND {kind}{shown(unnamed, 60) and ' '}{shown(unnamed, 60)} AS found, then SELECT found FIELDS {found['what']} AS {last}"
        return fault("GASL014", "SELECT ... FROM is SQL", 0, found.end(), f"write {right}")
    elif found["what"] == "*":
        right = f"SELECT {source}"
    elif unnamed.strip():
        right = f"SELECT {source} {shown(unnamed, 60)} AS rows, then SELECT rows FIELDS {found['what']} AS {last}"
        return fault("GASL014", "SELECT ... FROM is SQL", 0, found.end(), f"write {right}")
    else:
        right = f"SELECT {source} FIELDS {found['what']}"
    named = "" if re.search(r"\bAS[ \t]+\w+\s*;?\Z", rest, re.I) else " AS name"
    message, hint = "SELECT ... FROM is SQL", f"write {' '.join((right, shown(rest, 60))).rstrip()}{named}"
    # Without its name the command would be reported a second time for lacking one
    end = len(b.text.rstrip("; \t"))
    edits = [swap(0, found.end(), right), *([swap(end, end, " AS found")] if named else [])]
    return b.fault("GASL014", message, Span(0, found.end()), hint, edits)


def _cypher(b: Broken) -> Fault | None:
    """Explain ``MATCH (n:PERSON) WHERE ... RETURN n``."""
    if not re.match(r"(?:OPTIONAL[ \t]+)?MATCH\b|FIND[ \t]*\(\w*:", b.text, re.I):
        return None
    label = re.search(r"\(\w*:(\w+)", b.text)
    tested = f' WHERE entity_type = "{label[1]}"' if label else " WHERE ..."
    name = re.search(r"\bRETURN[ \t]+(\w+)", b.text, re.I)
    kind = "paths" if "]-" in b.text or "--" in b.text else "nodes"
    if kind == "paths":
        hint = "write FIND paths WHERE source.entity_type = ... AND target.entity_type = ... AS name"
    else:
        hint = f"write FIND nodes{tested} AS {name[1] if name else 'name'}"
    return fault("GASL014", "MATCH is Cypher", 0, 5, hint)


def _called(b: Broken) -> Fault | None:
    """Explain ``FIND(nodes, ...)``, ``COUNT(authors)``."""
    found = re.match(r"([A-Za-z_]+)[ \t]*\(", b.text)
    if not found or found[1].upper() not in COMMANDS or found[1].upper() in ("ASSERT",) or b.at > found.end():
        return None
    inner = re.match(r"[A-Za-z_]+[ \t]*\([ \t]*(\w+)[ \t]*\)", b.text)
    edits = [swap(found.end(1), inner.end(), f" {inner[1]}")] if inner else []
    span = Span(found.end() - 1, found.end())
    return b.fault("GASL014", f"{found[1].upper()} is not a function", span, b.form or "write it with blanks", edits)


def _block_word(b: Broken) -> Fault | None:
    """Explain ``BRANCH ... THEN TRY``: a block inside a command."""
    if b.words() != "TRY" or b.here == 0 or "TRY" in b.expected:
        return None
    piece = b.pieces[b.here]
    message = "a TRY block can't stand inside another command"
    hint = "write the block on lines of its own, or one command here"
    return fault("GASL005", message, piece.span.start, piece.span.end, hint)


def _unknown(b: Broken) -> Fault | None:
    """Explain a first word, or one after THEN, ELSE and EXPLAIN, that is not a command."""
    piece = b.piece()
    if piece is None or "FIND" not in b.expected:
        return None
    if piece.kind != "word":
        if b.here:
            return None
        message, hint = f"{shown(piece.text)} begins no command", "a command begins with its word, as FIND nodes AS x"
        return fault("GASL001", message, *_ends(piece.span), hint)
    if piece.upper in _SHOWING:
        return _showing(b, piece)
    other = _OTHER_WORDS.get(piece.upper)
    near = nearest(piece.text, COMMANDS)
    if near and near[0] != piece.upper[0] and not b.mended_by([swap(piece.span.start, piece.span.end, near)]):
        near = None
    right = other or near
    if not right and len(b.pieces) == 1 and (block := nearest(piece.text, ("TRY", "CATCH", "FINALLY", "END"))):
        return fault(
            "GASL001", f"there is no command {shown(piece.text)}", *_ends(piece.span), f"did you mean {block}?"
        )
    if right:
        edit = [swap(piece.span.start, piece.span.end, right)]
        hint = f"write {right}" if other else f"did you mean {right}?"
        rest = re.split(r"\bTHEN\b|:", b.text[piece.span.end :], maxsplit=1, flags=re.IGNORECASE)[0]
        is_open = piece.upper in ("ADD", "INSERT") or (
            # NOT applies only to the first comparison.
            piece.upper == "UNLESS" and re.search(r"\b(?:AND|OR|BETWEEN)\b|&&|\|", rest, re.IGNORECASE)
        )
        candidates = () if is_open else (edit,)
        found = b.fault("GASL001", f"there is no command {piece.text}", piece.span, hint, *candidates)
        if found.diagnostic.edits or other or piece.text.isupper() or b.here:
            return found
    if b.here or piece.text.isupper():
        hint = "the commands are " + ", ".join(COMMANDS)
        if any(re.search(rf"\b{piece.text}\b", form) for form in FORMS.values()):
            hint = f"{piece.text} goes on with a command: write it on the line above"
        return fault("GASL001", f"there is no command {shown(piece.text)}", *_ends(piece.span), hint)
    # No edit: only the author knows whether this is a comment or a part of the program.
    hint = f"did you mean {right}?" if right else "a command begins with its word, as FIND nodes AS x"
    return fault("GASL001", "this line is not a command", 0, len(b.text), hint, "a remark is a line that starts with #")


_SHOWING = ("SHOW", "LIST", "DISPLAY", "PRINT", "RETURN")


def _showing(b: Broken, piece: Piece) -> Fault:
    """Explain ``SHOW orgs``, ``LIST nodes``: the words of other languages and of shells."""
    message, following = f"there is no command {piece.text}", b.piece(1)
    kind = following.text.lower() if following else ""
    if kind in ("nodes", "edges", "paths", "all"):
        edits = [swap(*_ends(piece.span), "FIND")]
        named = "paths WHERE ... AS name" if kind == "paths" else f"{'nodes' if kind == 'all' else kind} AS name"
        return fault(
            "GASL001",
            message,
            *_ends(piece.span),
            f"write FIND {named}",
            edits=b.best(edits) if b.mended_by(edits) else (),
        )
    name = following.text if following and following.kind == "word" and following.text.isidentifier() else "rows"
    return fault("GASL001", message, *_ends(piece.span), f"SELECT {name} FIELDS id AS name gives what a variable holds")


def _ends(span: Span) -> tuple[int, int]:
    return span.start, span.end


HEADS = (_quoted, _json, _markup, _assigned, _sql, _cypher, _called, _block_word, _unknown)


# The structure of a statement: brackets, text after its end, options after AS.

_CLOSING = {"(": ")", "[": "]"}
_NAMED = re.compile(r"\bAS[ \t]+(?:[A-Za-z_]\w*|`[^`]+`)[ \t]*", re.IGNORECASE)


def _brackets(b: Broken) -> Fault | None:
    """Explain a missing, surplus or mismatched bracket."""
    piece = b.piece()
    opened = b.failure.brackets
    if opened:
        mark, at = opened[-1]
        right = _CLOSING[mark]
        if piece and piece.text in ")]}":
            edits = [swap(piece.span.start, piece.span.end, right)]
            found = b.fix(
                "GASL003", f"{mark} is closed by {right}, not by {piece.text}", piece.span, f"write {right}", edits
            )
            if found:
                return found
        last = len(b.text.rstrip())
        words = [
            m.start()
            for m in re.finditer(r"[ \t]+(?:AS|LIMIT|ORDER|TO|THEN|AND|OR|VIA|WHERE|MAXLEN)\b", b.text)
            if m.start() > at
        ]
        closing = "".join(_CLOSING[sign] for sign, _ in reversed(opened))
        places = sorted({*words[-8:], last, min(b.failure.behind, last)}, reverse=True)
        candidates: list[Edits] = [[swap(place, place, text)] for place in places for text in {right, closing}]
        hint = f"put {right} where it ends"
        if b.readings(*candidates) > 1:
            several = "it may end in several places, and each gives another condition"
            return b.doubt("GASL003", f"{mark} is never closed", Span(at, at + 1), hint, several, supposed=candidates)
        found = b.fault("GASL003", f"{mark} is never closed", Span(at, at + 1), hint, *candidates)
        if found.diagnostic.edits or piece is None:
            return found
        return None
    return None


def _surplus(b: Broken) -> Fault | None:
    """Explain a surplus closing bracket."""
    piece = b.piece()
    if b.failure.brackets:
        return None
    if piece and piece.text in (")", "]", "}"):
        gone = [swap(piece.span.start, piece.span.end, "")]
        connecting = {one.upper for one in b.pieces} & {"AND", "OR", "NOT", "&&", "||", "!"}
        if len(connecting) > 1 and b.mended_by(gone):
            hint = "put the opening bracket where it belongs, or remove this one"
            return b.doubt("GASL003", f"{piece.text} closes nothing", piece.span, hint, supposed=[gone])
        return b.fix(
            "GASL003",
            f"{piece.text} closes nothing",
            piece.span,
            "remove it",
            gone,
        )
    return None


def _unbracketed(b: Broken) -> Fault | None:
    """Explain ``COMPUTE sum x``, ``INTO "a", "b"``: the brackets are missing."""
    piece = b.piece()
    if piece is None:
        return None
    start, end = piece.span.start, piece.span.end
    if b.failure.after == "FUNCTION" and piece.kind == "word" and piece.upper != "AS":
        edits = [swap(b.failure.behind, end, f"({piece.text})")]
        return b.fix("GASL003", "the field of a computation stands in ( )", piece.span, f"write ({piece.text})", edits)
    if b.failure.after not in ("_INTO", "RETURNING") or piece.text in "([":
        return None
    stop = re.compile(r"[ \t]+AS[ \t]", re.IGNORECASE).search(b.text, start)
    end = stop.start() if stop and b.failure.after == "_INTO" else len(b.text.rstrip())
    edits = [swap(start, end, f"({b.text[start:end]})")]
    if piece.kind == "string" and piece.span.end == end and "," in piece.text:
        edits = []  # one label, or several in one pair of quotes
    hint = f"write ({shown(b.text[start:end], 60)})"
    if not (edits and b.mended_by(edits)):
        hint = (
            'write ("a", "b"), each label in quotes' if b.failure.after == "_INTO" else "write ( ) around the columns"
        )
    return b.fault("GASL003", "a list stands in ( )", Span(start, end), hint, edits)


def _no_condition(b: Broken) -> Fault | None:
    """Explain ``WHERE AS x``, ``a = 1 AND AS x``."""
    before, head = b.piece(-1), b.piece(-2)
    if (
        before is None
        or head is None
        or before.upper not in ("AS", "LIMIT", "THEN", "ORDER")
        or b.failure.after != "PATH"
    ):
        return None
    if head.upper not in ("WHERE", "VIA", "AND", "OR", "NOT", "IF", "ASSERT"):
        return None
    # Without the word the command would be valid, but take everything: the intended condition is unknown.
    message = f"a condition is missing behind {head.upper}"
    hint = f'write one, as name = "x", or leave {head.upper} out'
    return fault("GASL010", message, head.span.start, head.span.end, hint)


def _behind(b: Broken) -> Fault | None:
    """Explain text after the statement's end: a semicolon, an option, a second command."""
    piece = b.piece()
    if piece is None or not b.expected & {"$END", "_NEWLINE"}:
        return None
    rest = b.text[piece.span.start :]
    start = piece.span.start
    gap = start - (len(b.text[:start]) - len(b.text[:start].rstrip()))
    if re.fullmatch(r"[;,.:\\|]+\s*", rest):
        message = f"{shown(rest.strip())} stands behind the command"
        return b.fix("GASL031", message, piece.span, "remove it", [swap(gap, len(b.text), "")])
    if re.match(r"(?://|--|/\*)", rest):
        edits = [swap(start, start + 2, "#")]
        return b.fix("GASL031", "a remark begins with #", Span(start, start + 2), "write #", edits)
    follows = re.match(r"(?:;|,|&&|\||THEN\b|AND\b)?[ \t]*", rest, re.IGNORECASE)
    after = rest[follows.end() :] if follows else rest
    word = re.match(r"[A-Za-z]+", after)
    if word and word[0].upper() in COMMANDS and follows:
        edits = [swap(gap, start + follows.end(), "\n")]
        message = f"a second command begins on this line: {word[0]}"
        found = b.fix("GASL031", message, Span(start, start + follows.end() + len(word[0])), "begin a new line", edits)
        if found:
            return found
    return _late_option(b, start, gap)


def _late_option(b: Broken, start: int, gap: int) -> Fault | None:
    """Explain ``FIND nodes AS x LIMIT 10``."""
    named = None
    for match in _NAMED.finditer(b.text):
        if match.end() <= start and match.end() >= gap:
            named = match
    if named is None:
        return None
    tail = b.text[start:].rstrip()
    edits = [swap(named.start(), named.start(), f"{tail} "), swap(gap, len(b.text), "")]
    word = tail.split(None, 1)[0]
    message = f"{shown(word)} stands behind AS"
    return b.fix("GASL016", message, Span(start, start + len(tail)), "AS and the name come last", edits)


def _early_name(b: Broken) -> Fault | None:
    """Explain ``PROCESS x AS y USING "..."``."""
    for match in _NAMED.finditer(b.text):
        if match.end() <= b.at + 3 or match.start() <= b.at:
            end = len(b.text.rstrip())
            named = match[0].strip()
            edits = [swap(match.start(), match.end(), ""), swap(end, end, f" {named}")]
            found = b.fix(
                "GASL016",
                f"{named} stands too early",
                Span(match.start(), match.end()),
                "AS and the name come last",
                edits,
            )
            if found and b.mended_by(edits):
                return found
    return None


def _late_name(b: Broken) -> Fault | None:
    """Explain ``PROCESS x USING "..." RETURNING (...) AS y``."""
    if b.words() == "RETURNING":
        start = b.pieces[b.here].span.start
        named_last = re.compile(r"[ \t]*(AS[ \t]+\w+)[ \t]*\Z", re.IGNORECASE).search(b.text, start)
        if named_last:
            edits = [swap(start, start, f"{named_last[1]} "), swap(named_last.start(), len(b.text), "")]
            return b.fix(
                "GASL016",
                "RETURNING belongs behind AS and the name",
                b.pieces[b.here].span,
                "move it to the end",
                edits,
            )
    return None


def _by_limit(b: Broken) -> Fault | None:
    """Explain ``RANK x BY f LIMIT 3 DESC``, ``ORDER BY f DESC`` in a command without ORDER BY: an option in the wrong place."""
    piece = b.piece()
    if piece is None or piece.upper not in ("DESC", "ASC"):
        return None
    found = re.search(r"[ \t]+LIMIT[ \t]+\d+[ \t]*\Z", b.text[: piece.span.start], re.IGNORECASE)
    if not found:
        return None
    edits = [swap(found.start(), found.start(), f" {piece.text}"), swap(found.end() - 1, piece.span.end, "")]
    return b.fix("GASL016", f"{piece.text} belongs behind the field, before LIMIT", piece.span, "move it there", edits)


SHAPE = (_brackets, _early_name, _behind)

MISPLACED = (_surplus, _late_name, _by_limit, _unbracketed, _no_condition)
"""Explainers that run before those of words and values, which would misread these faults."""
