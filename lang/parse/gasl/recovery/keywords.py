"""Keywords that are missing, misspelt, or another language's; and the text that describes the allowed ones."""

import re
import unicodedata

from ....diagnostic import Edit, nearest
from ....source import Span
from ...repairs import Fault, fault, shown
from .attempt import Broken, Edits, Piece, swap

_CHOICES = {
    "KIND": ("nodes", "edges"), "_PATHS": ("paths",), "TYPE": ("LIST", "DICT", "COUNTER"), "MODE": ("MERGE", "REPLACE"),
    "STATUS": ("EMPTY", "ERROR", "PARTIAL", "SCHEMA_MISMATCH"), "COLUMN_TYPE": ("TEXT", "INT", "FLOAT", "BOOL", "LIST"),
    "FUNCTION": ("count", "sum", "mean", "min", "max", "median"), "DIRECTED": ("DESC", "ASC"),
    "COMPASS": ("out", "in", "both"), "SET_OPERATION": ("UNION", "INTERSECT", "EXCEPT"),
    "TEXTUAL": ("CONTAINS", "STARTS_WITH", "ENDS_WITH", "MATCHES"), "GRAPH": ("graph",),
}  # fmt: skip
_DESCRIBED = {
    "IDENTIFIER": "a name", "PATH": "a field or key", "STRING": "a text in quotes", "INT": "a whole number",
    "NUMBER": "a number", "VARIABLE": "${a variable}", "EQUALS": "=", "COMPARISON": "another comparison",
    "_COMMA": "a comma", "LPAR": "(", "_LPAR": "(", "RPAR": ")", "LSQB": "[", "_LSQB": "[", "RSQB": "]",
}  # fmt: skip
_SILENT = frozenset({"_NEWLINE", "$END", "COMMENT", "TRAILING", "WHY", "END", "CATCH", "FINALLY"})

_SYNONYMS = {
    "ARRAY": "LIST", "TABLE": "LIST", "SEQUENCE": "LIST", "LISTS": "LIST", "MAP": "DICT", "OBJECT": "DICT",
    "HASH": "DICT", "JSON": "DICT", "DICTIONARY": "DICT", "INTEGER": "INT COUNTER", "NUMBER": "FLOAT COUNTER",
    "INT": "COUNTER", "COUNT": "COUNTER", "STRING": "TEXT", "STR": "TEXT", "VARCHAR": "TEXT", "DOUBLE": "FLOAT",
    "REAL": "FLOAT", "BOOLEAN": "BOOL", "AVG": "mean", "AVERAGE": "mean", "TOTAL": "sum", "MINIMUM": "min",
    "MAXIMUM": "max", "FAILURE": "ERROR", "FAIL": "ERROR", "FAILED": "ERROR", "NULL": "EMPTY", "NONE": "EMPTY",
    "OUTGOING": "out", "OUTBOUND": "out", "INCOMING": "in", "INBOUND": "in", "ANY": "both", "UNDIRECTED": "both",
    "OVERWRITE": "REPLACE", "SET": "REPLACE LIST",
    "VERTICES": "nodes", "VERTEX": "nodes",
    "NODE": "nodes", "ENTITIES": "nodes", "RELATIONSHIPS": "edges", "RELATIONS": "edges", "EDGE": "edges",
    "LINKS": "edges", "PATH": "paths", "ROUTES": "paths", "INTO": "AS", "RETURN": "AS", "->": "AS", "=>": "AS",
    "TOP": "LIMIT", "MAX_LENGTH": "MAXLEN", "MAX_DEPTH": "MAXLEN DEPTH", "HOPS": "DEPTH RADIUS", "IMPORT": "WITH",
    "DESCRIPTION": "WITH_DESCRIPTION", "FROM": "WITH USING", "WITH": "USING TO", "DO": "THEN", "OTHERWISE": "ELSE",
    "HAVING": "WHERE", "FILTER": "WHERE", "IF": "WHERE", "WHEN": "WHERE IF", "SUCH": "WHERE", "COLUMNS": "FIELDS",
    "ATTRIBUTES": "FIELDS", "THROUGH": "VIA", "GROUP": "BY", "PER": "BY", "CALCULATE": "COMPUTE", "EXIST": "EXISTS",
    "PROMPT": "USING", "INSTRUCTION": "USING", "OUTPUT": "RETURNING", "RETURNS": "RETURNING", "USING": "BY WITH COMPUTE ON",
    "BY": "USING ON", "AND": "TO WITH", "TO": "WITH", "LABELS": "INTO",
    "VERTEXES": "nodes", "FOR": "THEN", "ARROW": "AS", ",": "TO WITH", "DEPTH": "RADIUS", "RADIUS": "DEPTH",
}  # fmt: skip
"""Words that models write for a keyword; if several keywords are given, the allowed one is used."""

_PHRASES = {
    ("GROUP", "BY"): "BY", ("SORT", "BY"): "ORDER BY", ("SORTED", "BY"): "ORDER BY", ("ORDERED", "BY"): "ORDER BY",
    ("WITH", "DESCRIPTION"): "WITH_DESCRIPTION", ("STORE", "AS"): "AS", ("SAVE", "AS"): "AS", ("STORED", "AS"): "AS",
    ("NAMED", "AS"): "AS", ("RETURN", "AS"): "AS", ("SUCH", "THAT"): "WHERE", ("OR", "ELSE"): "ELSE",
    ("MAX", "LENGTH"): "MAXLEN", ("ARE", "LIKE"): "WHERE", ("SCHEMA", "MISMATCH"): "SCHEMA_MISMATCH", ("OF", "TYPE"): "AS",
}  # fmt: skip
_ONCE = frozenset({"DISTINCT", "UNIQUE"})
_FILLERS = frozenset({"ALL", "THE", "AN", "EVERY", "ANY", ":", "THEN", "OF", "VARIABLE", "KEY", "STATE"})
"""Words without meaning. ``a`` is not one of them: it is a common name."""
_TARGET_FILLERS = _FILLERS | _ONCE | {"A"}
"""The same before nodes and edges, where names are not allowed, and where each item is found once anyway."""


def _options(b: Broken) -> list[str]:
    """Return the keywords that are allowed at the place, as written."""
    from ..engine import keywords

    words: list[str] = []
    for name in b.expected:
        if name in _CHOICES:
            words += _CHOICES[name]
        elif name.lstrip("_") in keywords():
            words.append(name.lstrip("_"))
    return sorted(words)


def expectation(b: Broken) -> str:
    """Return a description of the text allowed at the place: at most eight words."""
    if "FIND" in b.expected:
        return "a command"
    described = [_DESCRIBED[name] for name in sorted(b.expected) if name in _DESCRIBED]
    options = [word for word in _options(b) if word not in ("END", "CATCH", "FINALLY")]
    said = [*options[:8], *described[: max(2, 8 - len(options))]]
    if b.expected & {"$END", "_NEWLINE"}:
        said.append("the end of the line")
    if len(said) < 2:
        return "".join(said)
    return f"{', '.join(said[:-1])} or {said[-1]}"


def _odd_character(b: Broken) -> Fault | None:
    """Explain a look-alike letter, an invisible character, a full-width sign."""
    unseen = b.text[b.at : b.at + 1]
    if unseen and not unseen.isascii() and unicodedata.category(unseen) in ("Cf", "Cc", "Zs", "Zl", "Zp", "Cs"):
        return _unseen(b, b.at)
    found = re.compile(r"\S+").match(b.text, b.at)
    start = b.at
    if b.at == b.failure.behind:
        start = b.at - len(re.search(r"\S*\Z", b.text[: b.at])[0])  # type: ignore[index]  # it always matches
        found = re.compile(r"\S+").match(b.text, start)
    word = found[0] if found else b.text[b.at : b.at + 1]
    if not word or (word.isascii() and word.isprintable()):
        return None
    odd = next((i for i, c in enumerate(word) if not c.isascii() or not c.isprintable()), 0)
    letter = word[odd]
    if unicodedata.category(letter) in ("Cf", "Cc", "Zs", "Zl", "Zp", "Cs"):
        return _unseen(b, start + odd)
    at = Span(start + odd, start + odd + 1)
    plain, name = "".join(_plain(c) for c in word), f"U+{ord(letter):04X}"
    if plain != word and plain.isascii():
        return b.fix(
            "GASL020",
            f"{letter} ({name}) only looks like {_plain(letter)}",
            at,
            f"write {shown(plain)}",
            [swap(start, start + len(word), plain)],
        )
    return None


def _unseen(b: Broken, at: int) -> Fault | None:
    """Explain an invisible character."""
    letter = b.text[at]
    right = " " if unicodedata.category(letter).startswith("Z") else ""
    every = [swap(i, i + 1, right) for i, c in enumerate(b.text) if c == letter]
    message = f"there is a character here that nobody sees (U+{ord(letter):04X})"
    hint = "write a plain blank" if right else "remove it"
    return b.fix("GASL020", message, Span(at, at + 1), hint, [swap(at, at + 1, right)], every)


_CYRILLIC = (
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0406"
    "\u0405\u0408\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u0458\u0501"
)
_GREEK = "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
_LOOKALIKES = dict(zip(_CYRILLIC + _GREEK, "ABEKMHOPCTXISJaeopcyxisjdABEZHIKMNOPTYX", strict=True))


def _plain(letter: str) -> str:
    if letter in _LOOKALIKES:
        return _LOOKALIKES[letter]
    if unicodedata.category(letter) == "Cf":
        return ""
    return unicodedata.normalize("NFKC", letter)


def _target(b: Broken) -> Fault | None:
    """Explain ``FIND WHERE``, ``FIND node``, ``FIND PERSON``: the target of the search is missing."""
    if "KIND" not in b.expected:
        return None
    piece = b.piece()
    hint = "write nodes, edges or paths behind FIND"
    if piece is None:
        return fault("GASL011", "FIND says not what to find", b.at - 1, b.at, hint, b.form)
    start, end = piece.span.start, piece.span.end
    upper = piece.upper
    known = _SYNONYMS.get(upper) or nearest(piece.text, ("nodes", "edges", "paths"))
    replaced: list[Edits] = [[swap(start, end, known)]] if known in ("nodes", "edges", "paths") else []
    following = b.piece(1)
    if upper in _TARGET_FILLERS and following:
        return b.fix(
            "GASL011",
            f"{piece.text} can't stand here",
            piece.span,
            "remove it",
            [swap(start, following.span.start, "")],
        )
    if upper == "SHORTEST" and b.words(1) in ("PATHS", "PATH") and following:
        edits = [swap(start, following.span.end, "paths SHORTEST")]
        return b.fix("GASL016", "SHORTEST belongs behind paths", piece.span, "write FIND paths SHORTEST", edits)
    if replaced:
        return b.fault(
            "GASL011", f"FIND takes nodes, edges or paths, not {piece.text}", piece.span, f"write {known}", *replaced
        )
    if upper in ("WHERE", "AS", "LIMIT", "ORDER"):
        supposed: Edits = [swap(start, start, "nodes ")]
        return b.doubt("GASL011", "FIND says not what to find", piece.span, hint, supposed=[supposed])
    inserted: list[Edits] = []
    if upper in ("FROM", "SHORTEST", "VIA", "MAXLEN"):
        inserted = [[swap(start, start, "paths ")]]
    return b.fault("GASL011", "FIND says not what to find", piece.span, hint, *inserted)


def _phrase(b: Broken) -> Fault | None:
    """Explain two words in place of one keyword."""
    piece, following = b.piece(), b.piece(1)
    if piece is None or following is None:
        return None
    right = _PHRASES.get((piece.upper, following.upper))
    if right is None:
        return None
    span = Span(piece.span.start, following.span.end)
    said = f"{piece.text} {following.text}"
    return b.fix("GASL009", f"{said} is written {right}", span, f"write {right}", [swap(*_ends(span), right)])


def _misspelt(b: Broken) -> Fault | None:
    """Explain ``WHRE``, ``LIMT``, ``AS ARRAY``."""
    piece = b.piece()
    if piece is None or piece.kind not in ("word", "sign"):
        return None
    options = _options(b)
    listed = [word for name in b.expected if name in _CHOICES for word in _CHOICES[name]]
    synonyms = _fitting(b, piece)
    near = nearest(piece.text, options) if piece.kind == "word" and len(piece.text) > 1 else None
    kind = "GASL015" if listed and b.expected & {"TYPE", "STATUS", "COLUMN_TYPE", "FUNCTION", "COMPASS"} else "GASL009"
    if b.command == "EXCEPT" and piece.upper == "FROM":
        hint = "EXCEPT a WITH b AS c keeps of a what b has not"
        return fault("GASL009", "FROM does not say of which the others are taken away", *_ends(piece.span), hint)
    for right, hint in (*((word, "write {}") for word in synonyms), (near, "did you mean {}?")):
        if right and right.upper() != piece.upper:
            message = f"{piece.text} is not a word of the language here"
            if kind == "GASL015":
                message = f"{piece.text} is none of {', '.join(listed)}"
            edits = [_put(b, piece, right)]
            found = b.fix(kind, message, piece.span, hint.format(right), edits)
            if found:
                return found
    if kind == "GASL015" and not b.expected & {"IDENTIFIER", "PATH"}:
        message = f"{piece.text} is none of {', '.join(listed)}"
        return b.fault(kind, message, piece.span, f"write one of {', '.join(listed)}")
    return None


def _put(b: Broken, piece: Piece, right: str) -> Edit:
    """Return the edit that replaces the piece with ``right``; a sign that touches its neighbours gets blanks around it."""
    if piece.kind == "word" or not right.isalpha():
        return swap(piece.span.start, piece.span.end, right)
    start = len(b.text[: piece.span.start].rstrip())
    following = b.piece(1)
    return swap(start, following.span.start if following else piece.span.end, f" {right} ")


def _is_connecting(piece: Piece) -> bool:
    """Return whether the piece is a connecting word, of this language or of another, and so not a name."""
    from ..engine import keywords

    connecting = piece.upper in keywords() or piece.upper in _SYNONYMS or piece.upper in ("OR", "OF", "BETWEEN")
    return piece.kind == "word" and piece.text.isupper() and len(piece.text) > 1 and connecting


_INSERTED = ("_AS", "_WITH", "_USING", "_BY", "WHERE", "_TO", "_THEN", "_IF", "_FIELDS", "_COMPUTE", "_INTO", "_RADIUS",
             "_EXISTS", "_PLAN", "EQUALS", "LIMIT", "_WITH_DESCRIPTION", "ON", "RETURNING", "_COMMA", "_AND")  # fmt: skip


def _left_out(b: Broken) -> Fault | None:
    """Explain a missing word before the one at the place; with it the statement is valid."""
    piece = b.piece()
    if piece is None:
        return None
    for name in _INSERTED:
        if name not in b.expected or (name == "_BY" and "_AS" in b.expected):
            continue
        if (name == "_COMMA" and piece.upper in _SYNONYMS) or piece.upper in ("MINUS", "PLUS", "LESS"):
            continue
        word = {"EQUALS": "=", "_COMMA": ","}.get(name, name.lstrip("_"))
        edits = [swap(piece.span.start, piece.span.start, f"{word} ")]
        if word == ",":
            edits = [swap(b.failure.behind, b.failure.behind, ",")]
        if b.mended_by(edits):
            if name == "_AND":
                message, either = f"AND or OR is missing before {shown(piece.text)}", "write the one that is meant"
                return b.doubt("GASL006", message, piece.span, either, supposed=[edits])
            return b.fault(
                "GASL006", f"{word} is missing before {shown(piece.text)}", piece.span, f"write {word}", edits
            )
    return None


def _order_by(b: Broken) -> Fault | None:
    """Explain ``RANK papers ORDER BY citations``: SQL's two words in place of the command's keyword."""
    piece, following = b.piece(), b.piece(1)
    if piece is None or following is None or "_BY" not in b.expected or following.upper != "BY":
        return None
    if piece.upper not in ("ORDER", "SORT", "SORTED", "ORDERED"):
        return None
    span = Span(piece.span.start, following.span.end)
    edits = [swap(piece.span.start, following.span.start, "")]
    return b.fix("GASL014", f"{piece.upper} BY is written BY in {b.command}", span, "write BY", edits)


def _missing(b: Broken) -> Fault | None:
    """Explain that the only allowed word is missing at the place, or at the statement's end."""
    piece = b.piece()
    if piece is None:
        return _missing_at_end(b)
    names = [name for name in _INSERTED if name in b.expected and name != "_COMMA"]
    if len(names) != 1 or b.expected & {"IDENTIFIER", "PATH", "STRING", "$END"}:
        return None
    word = {"EQUALS": "=", "_COMMA": ","}.get(names[0], names[0].lstrip("_"))
    message = f"{word} is missing before {shown(piece.text)}"
    # Before AND or FROM nothing is missing: that word replaces the right one, and its meaning is open.
    edits = [] if _is_connecting(piece) else [swap(piece.span.start, piece.span.start, f"{word} ")]
    return b.fault("GASL006", message, piece.span, b.form or f"write {word}", edits)


def _missing_at_end(b: Broken) -> Fault | None:
    end = len(b.text.rstrip())
    start = max(0, end - 1)
    if b.failure.brackets:
        return None
    if b.failure.after == "_AS" and "IDENTIFIER" in b.expected:
        return fault(
            "GASL010", "a name is missing behind AS", max(0, end - 2), end, "name the result, as AS authors", b.form
        )
    wants = {"_AS": ("AS and a name are", "end it with AS and a name, as AS found"),
             "_WITH": ("WITH and a name are", "say with what, as WITH authors"),
             "_USING": ('USING "..." is', 'say how, as USING "instruction" AS name')}  # fmt: skip
    for name, (what, hint) in wants.items():
        if name in b.expected:
            message = f"{what} missing at the end of {b.command or 'the command'}"
            return fault("GASL006", message, start, end, hint, b.form)
    if b.expected & {"IDENTIFIER", "PATH"} and not b.expected & {"$END"}:
        what = "a name" if "IDENTIFIER" in b.expected else "a key or field"
        return fault("GASL010", f"{what} is missing at the end of {b.command or 'the command'}", start, end, b.form)
    return None


def _distinct(b: Broken) -> Fault | None:
    """Explain ``SELECT DISTINCT people FIELDS city``: without the word the meaning would be different."""
    piece = b.piece(-1) if b.words(-1) in _ONCE and b.failure.after in ("IDENTIFIER", "PATH") else b.piece()
    if piece is None or piece.upper not in _ONCE:
        return None
    hint = "COUNT rows BY field AS name has each value of the field once"
    return fault("GASL014", f"{piece.text} is SQL", *_ends(piece.span), hint)


def _filler(b: Broken) -> Fault | None:
    """Explain ``FIND all nodes``, ``COUNT the authors``."""
    piece = b.piece()
    if piece is None or piece.upper not in _FILLERS or b.command == "ASSERT":
        return None
    following = b.piece(1)
    stop = following.span.start if following else piece.span.end
    edits = [swap(piece.span.start, stop, "")]
    return b.fix("GASL008", f"{piece.text} can't stand here", piece.span, "remove it", edits)


def _filled_name(b: Broken) -> Fault | None:
    """Explain ``COUNT the authors AS n``: the filler was read as the name."""
    before, piece = b.piece(-1), b.piece()
    if "TEXTUAL" in b.expected:
        return None  # a field may have this name
    if before is None or piece is None or before.upper not in _FILLERS or b.failure.after not in ("IDENTIFIER", "PATH"):
        return None
    if _is_connecting(piece) or any(b.mended_by([swap(*_ends(piece.span), word)]) for word in _fitting(b, piece)):
        return None
    edits = [swap(before.span.start, piece.span.start, "")]
    if _left_out(b):
        return None  # `UPDATE state authors`: a name, followed by a missing word
    return b.fix("GASL008", f"{before.text} can't stand here", before.span, "remove it", edits)


def _fitting(b: Broken, piece: Piece) -> list[str]:
    """Return the allowed words that others write as the piece."""
    options = _options(b)
    return [word for word in _SYNONYMS.get(piece.upper, "").split() if word in options]


def _between_ends(b: Broken) -> Fault | None:
    """Explain ``FIND paths BETWEEN a AND b``."""
    found = re.compile(r"BETWEEN[ \t]+([\w.`]+)[ \t]+(?:AND|TO)[ \t]+([\w.`]+)", re.I).match(b.text, b.at)
    if not found or "FROM" not in b.expected:
        return None
    right = f"FROM {found[1]} TO {found[2]}"
    return b.fix("GASL009", "paths go FROM one TO another", Span(*found.span()), f"write {right}",
                 [swap(*found.span(), right)])  # fmt: skip


def _ends(span: Span) -> tuple[int, int]:
    return span.start, span.end


WORDS = (_order_by, _target, _phrase, _misspelt, _filler, _missing)

FIRST = (_odd_character, _distinct, _between_ends, _filled_name)
"""Explainers that run before all others."""

LEFT_OUT = (_left_out,)
