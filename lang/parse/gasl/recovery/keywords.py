"""Explains keywords that are missing, misspelt or from another language, and describes the allowed keywords."""

import re
import unicodedata

from ....diagnostic import Edit, nearest
from ....source import Span
from ...repairs import Fault, fault, shortened
from ..engine import keywords
from .attempt import VALUES, Correction, Explainer, InvalidStatement, Piece, insert, swap

_CHOICES = {
    "KIND": ("nodes", "edges"), "WAYS": ("paths", "cycles"), "_PATTERNS": ("patterns",),
    "TYPE": ("LIST", "DICT", "COUNTER"), "MODE": ("MERGE", "REPLACE"),
    "STATUS": ("EMPTY", "ERROR", "PARTIAL", "SCHEMA_MISMATCH"), "COLUMN_TYPE": ("TEXT", "INT", "FLOAT", "BOOL", "LIST"),
    "FUNCTION": ("count", "sum", "mean", "min", "max", "median", "stdev", "percentile", "collect"),
    "DIRECTED": ("DESC", "ASC"),
    "COMPASS": ("out", "in", "both"), "SET_OPERATION": ("UNION", "INTERSECT", "EXCEPT"),
    "TEXTUAL": ("CONTAINS", "STARTS_WITH", "ENDS_WITH", "MATCHES"), "GRAPH": ("graph",),
}  # fmt: skip
_DESCRIBED = {
    "IDENTIFIER": "a name", "PATH": "a field or key", "STRING": "a quoted string", "INT": "a whole number",
    "NUMBER": "a number", "VARIABLE": "${a variable}", "EQUALS": "=", "COMPARISON": "another comparison",
    "_COMMA": "a comma", "LPAR": "(", "_LPAR": "(", "RPAR": ")", "LSQB": "[", "_LSQB": "[", "RSQB": "]",
}  # fmt: skip

_SYNONYMS = {
    "ARRAY": "LIST", "TABLE": "LIST", "SEQUENCE": "LIST", "LISTS": "LIST", "MAP": "DICT", "OBJECT": "DICT",
    "HASH": "DICT", "JSON": "DICT", "DICTIONARY": "DICT", "INTEGER": "INT COUNTER", "NUMBER": "FLOAT COUNTER",
    "INT": "COUNTER", "COUNT": "COUNTER", "STRING": "TEXT", "STR": "TEXT", "VARCHAR": "TEXT", "DOUBLE": "FLOAT",
    "REAL": "FLOAT", "BOOLEAN": "BOOL", "AVG": "mean", "AVERAGE": "mean", "TOTAL": "sum", "MINIMUM": "min",
    "MAXIMUM": "max", "FAILURE": "ERROR", "FAIL": "ERROR", "FAILED": "ERROR", "NULL": "EMPTY", "NONE": "EMPTY",
    "OUTGOING": "out", "OUTBOUND": "out", "INCOMING": "in", "INBOUND": "in", "ANY": "both", "UNDIRECTED": "both", "INOUT": "both",
    "OVERWRITE": "REPLACE", "SET": "REPLACE LIST",
    "VERTICES": "nodes", "VERTEX": "nodes", "LOOPS": "cycles", "LOOP": "cycles",
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
"""Maps words that models write by mistake to keywords. If several keywords are listed, the keyword allowed at the place is used."""

_PHRASES = {
    ("GROUP", "BY"): "BY", ("SORT", "BY"): "ORDER BY", ("SORTED", "BY"): "ORDER BY", ("ORDERED", "BY"): "ORDER BY",
    ("WITH", "DESCRIPTION"): "WITH_DESCRIPTION", ("STORE", "AS"): "AS", ("SAVE", "AS"): "AS", ("STORED", "AS"): "AS",
    ("NAMED", "AS"): "AS", ("RETURN", "AS"): "AS", ("SUCH", "THAT"): "WHERE", ("OR", "ELSE"): "ELSE",
    ("MAX", "LENGTH"): "MAXLEN", ("ARE", "LIKE"): "WHERE", ("SCHEMA", "MISMATCH"): "SCHEMA_MISMATCH", ("OF", "TYPE"): "AS",
}  # fmt: skip
_ONCE = frozenset({"DISTINCT", "UNIQUE"})
_FILLERS = frozenset({"ALL", "THE", "AN", "EVERY", "ANY", ":", "THEN", "OF", "VARIABLE", "KEY", "STATE"})
"""Filler words without a meaning in GASL. ``a`` is not included, because it is a common name."""
_TARGET_FILLERS = _FILLERS | _ONCE | {"A"}
"""Filler words before nodes and edges, where names are not allowed and DISTINCT has no effect."""


def _options(s: InvalidStatement) -> list[str]:
    """Return the keywords that are allowed where parsing stopped, as they appear in programs."""
    words: list[str] = []
    for name in s.expected:
        if name in _CHOICES:
            words += _CHOICES[name]
        elif name.lstrip("_") in keywords():
            words.append(name.lstrip("_"))
    return sorted(words)


def expectation(s: InvalidStatement) -> str:
    """Return a description of the text that is allowed where parsing stopped. It names at most eight keywords."""
    if "FIND" in s.expected:
        return "a command"
    described = [_DESCRIBED[name] for name in sorted(s.expected) if name in _DESCRIBED]
    unfit: tuple[str, ...] = ("END", "CATCH", "FINALLY")
    if s.command == "FIND" and any(piece.upper == "CYCLES" for piece in s.pieces[:3]):
        unfit += ("FROM", "SHORTEST", "DIRECTION")
    options = [word for word in _options(s) if word not in unfit]
    parts = [*options[:8], *described[: max(2, 8 - len(options))]]
    if s.expected & {"$END", "_NEWLINE"}:
        parts.append("the end of the line")
    return " or ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def _odd_character(s: InvalidStatement) -> Fault | None:
    """Explain a look-alike letter, an invisible character or a full-width character."""
    if not s.text[s.at : s.at + 1].isascii() and _is_invisible(s.text[s.at]):
        return _invisible(s, s.at)
    start = s.at
    if s.at == s.failure.behind:
        start -= len(re.search(r"\S*\Z", s.text[: s.at])[0])  # type: ignore[index]  # it always matches
    run = re.compile(r"\S+").match(s.text, start)
    word = run[0] if run else s.text[s.at : s.at + 1]
    odd = next((i for i, c in enumerate(word) if not c.isascii() or not c.isprintable()), None)
    if odd is None:
        return None
    letter = word[odd]
    if _is_invisible(letter):
        return _invisible(s, start + odd)
    plain = "".join(map(_plain, word))
    if plain == word or not plain.isascii():
        return None
    message = f"{letter} (U+{ord(letter):04X}) only looks like {_plain(letter)}"
    edits = [swap(start, start + len(word), plain)]
    return s.fix("GASL020", message, Span(start + odd, start + odd + 1), f"write {shortened(plain)}", edits)


def _is_invisible(letter: str) -> bool:
    return unicodedata.category(letter) in ("Cf", "Cc", "Zs", "Zl", "Zp", "Cs")


def _invisible(s: InvalidStatement, at: int) -> Fault | None:
    """Explain an invisible character."""
    letter = s.text[at]
    right = " " if unicodedata.category(letter).startswith("Z") else ""
    every = [swap(i, i + 1, right) for i, c in enumerate(s.text) if c == letter]
    message = f"invisible character U+{ord(letter):04X}"
    hint = "write a normal space" if right else "remove it"
    return s.fix("GASL020", message, Span(at, at + 1), hint, [swap(at, at + 1, right)], every)


_CYRILLIC = (
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0425\u0406"
    "\u0405\u0408\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u0458\u0501"
)
_GREEK = "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
_LOOKALIKES = dict(zip(_CYRILLIC + _GREEK, "ABEKMHOPCTXISJaeopcyxisjdABEZHIKMNOPTYX", strict=True))


def _plain(letter: str) -> str:
    if unicodedata.category(letter) == "Cf":
        return ""
    return _LOOKALIKES.get(letter) or unicodedata.normalize("NFKC", letter)


_TARGETS = ("nodes", "edges", "paths", "patterns", "cycles")


def _target(s: InvalidStatement) -> Fault | None:
    """Explain ``FIND WHERE``, ``FIND node``, ``FIND PERSON``: the target of the search is missing."""
    if "KIND" not in s.expected:
        return None
    piece, following = s.piece(), s.piece(1)
    message, hint = "FIND does not say what to find", "write nodes, edges, paths, patterns or cycles after FIND"
    if piece.kind == "end":
        return fault("GASL011", message, s.at - 1, s.at, hint, s.form)
    word, start = piece.upper, piece.span.start
    if word in _TARGET_FILLERS and following.kind != "end":
        return s.fix("GASL011", f"unexpected {piece}", piece.span, "remove it", [s.removal(0)])
    if word == "SHORTEST" and following.upper in ("PATHS", "PATH"):
        edits = [Edit(piece.span | following.span, "paths SHORTEST")]
        return s.fix("GASL016", "SHORTEST must come after paths", piece.span, "write FIND paths SHORTEST", edits)
    kind = _SYNONYMS.get(word) or nearest(piece.text, _TARGETS)
    if kind in _TARGETS:
        message = f"FIND needs {', '.join(_TARGETS[:-1])} or {_TARGETS[-1]}, not {piece}"
        return s.fault("GASL011", message, piece.span, f"write {kind}", [Edit(piece.span, kind)])
    if word in ("WHERE", "AS", "LIMIT", "ORDER"):
        return s.ambiguity("GASL011", message, piece.span, hint, supposed=[[insert(start, "nodes ")]])
    edits = [insert(start, "paths ")] if word in ("FROM", "SHORTEST", "VIA", "MAXLEN") else []
    return s.fault("GASL011", message, piece.span, hint, edits)


def _phrase(s: InvalidStatement) -> Fault | None:
    """Explain two words in place of one keyword."""
    piece, following = s.piece(), s.piece(1)
    right, span = _PHRASES.get((piece.upper, following.upper)), piece.span | following.span
    if right is None:
        return None
    message = f"{piece} {following} is written {right} in GASL"
    return s.fix("GASL009", message, span, f"write {right}", [Edit(span, right)])


def misspelt(s: InvalidStatement) -> Fault | None:
    """Explain ``WHRE``, ``LIMT``, ``AS ARRAY``."""
    piece = s.piece()
    if piece.kind not in ("word", "sign"):
        return None
    options = _options(s)
    choices = [word for name in s.expected if name in _CHOICES for word in _CHOICES[name]]
    is_choice = bool(s.expected & {"TYPE", "STATUS", "COLUMN_TYPE", "FUNCTION", "COMPASS"})
    code = "GASL015" if is_choice else "GASL009"
    message = f"{piece} is not one of {', '.join(choices)}" if is_choice else f"unexpected {piece}"
    near = nearest(piece.text, options) if piece.kind == "word" and len(piece.text) > 1 else None
    for right, hint in (*((word, "write {}") for word in _fitting(s, piece)), (near, "did you mean {}?")):
        if right and right.upper() != piece.upper:
            found = s.fix(code, message, piece.span, hint.format(right), [_put(s, piece, right)])
            if found:
                return found
    if is_choice and not s.expected & {"IDENTIFIER", "PATH"}:
        return s.fault(code, message, piece.span, f"write one of {', '.join(choices)}")
    return None


def _put(s: InvalidStatement, piece: Piece, right: str) -> Edit:
    """Return the edit that replaces the piece with ``right``. If the piece is a symbol that touches its neighbours, spaces are added."""
    if piece.kind == "word" or not right.isalpha():
        return Edit(piece.span, right)
    start, following = len(s.text[: piece.span.start].rstrip()), s.piece(1)
    return swap(start, piece.span.end if following.kind == "end" else following.span.start, f" {right} ")


def _is_connecting(piece: Piece) -> bool:
    """Return whether the piece is a keyword in capitals, and therefore not a name.

    The keyword may be from GASL or from another language.
    """
    connecting = piece.upper in keywords() or piece.upper in _SYNONYMS or piece.upper in ("OR", "OF", "BETWEEN")
    return piece.kind == "word" and piece.text.isupper() and len(piece.text) > 1 and connecting


_INSERTED = ("_AS", "_WITH", "_USING", "_BY", "WHERE", "_TO", "_THEN", "_IF", "_FIELDS", "_COMPUTE", "_INTO", "_RADIUS",
             "_EXISTS", "_PLAN", "EQUALS", "LIMIT", "_WITH_DESCRIPTION", "ON", "RETURNING", "_COMMA", "_AND")  # fmt: skip


_CONNECTING = frozenset({"AND", "OR", "DESC", "ASC", "HAVING"})
"""Words that may follow a value without AS or a comma between them."""
_LISTING = frozenset({"SELECT", "COUNT", "AGGREGATE", "RANK", "JOIN"})
"""The commands that list values. Between two adjacent values in them, a comma is probably missing, not AS."""


def _left_out(s: InvalidStatement) -> Fault | None:
    """Explain that a word is missing before the piece where parsing stopped. The word is one that makes the statement valid."""
    piece = s.piece()
    for name in _INSERTED if piece.kind != "end" else ():
        if name not in s.expected or (name == "_BY" and "_AS" in s.expected):
            continue
        if name == "EQUALS" and piece.kind not in VALUES:
            continue  # an unquoted string, or an operator of another language
        if name in ("_AS", "_COMMA") and piece.upper in _CONNECTING:
            continue
        if name == "_AS" and "_COMMA" in s.expected and s.command in _LISTING and s.mended_by([_comma_before(s)]):
            continue  # `FIELDS name age AS rows`: more likely two fields than a field with a name
        if (name == "_COMMA" and piece.upper in _SYNONYMS) or piece.upper in ("MINUS", "PLUS", "LESS"):
            continue
        word = _written(name)
        edits = [_comma_before(s) if word == "," else insert(piece.span.start, f"{word} ")]
        if s.mended_by(edits):
            if name == "_AND":
                message, hint = f"AND or OR is missing before {shortened(piece.text)}", "write AND or OR"
                return s.ambiguity("GASL006", message, piece.span, hint, supposed=[edits])
            message = f"{word} is missing before {shortened(piece.text)}"
            return s.fault("GASL006", message, piece.span, f"write {word}", edits)
    return None


def _comma_before(s: InvalidStatement) -> Edit:
    return insert(s.failure.behind, ",")


def _written(name: str) -> str:
    """Return the text of the token ``name``."""
    return {"EQUALS": "=", "_COMMA": ","}.get(name, name.lstrip("_"))


def _order_by(s: InvalidStatement) -> Fault | None:
    """Explain ``RANK papers ORDER BY citations``. The command has the keyword BY where SQL has ORDER BY."""
    piece, following = s.piece(), s.piece(1)
    if piece.upper not in ("ORDER", "SORT", "SORTED", "ORDERED") or following.upper != "BY" or "_BY" not in s.expected:
        return None
    message = f"{s.command} uses BY instead of {piece.upper} BY"
    return s.fix("GASL014", message, piece.span | following.span, "write BY", [s.removal(0)])


def _missing(s: InvalidStatement) -> Fault | None:
    """Explain that the only keyword allowed where parsing stopped is missing, or that the statement is incomplete."""
    piece = s.piece()
    if piece.kind == "end":
        return _missing_at_end(s)
    names = [name for name in _INSERTED if name in s.expected and name not in ("_COMMA", "_AND")]
    is_connected = names == ["_AS"] and piece.upper in _CONNECTING
    if len(names) != 1 or is_connected or s.expected & {"IDENTIFIER", "PATH", "STRING", "$END"}:
        return None
    word = _written(names[0])
    message = f"{word} is missing before {shortened(piece.text)}"
    # A word such as AND or FROM was written instead of the correct word. Its meaning is unclear, so no edit is offered.
    edits = [] if _is_connecting(piece) else [insert(piece.span.start, f"{word} ")]
    return s.fault("GASL006", message, piece.span, s.form or f"write {word}", edits)


_ENDINGS = {
    "_AS": ("AS and a name", "end the command with AS and a name, for example AS found"),
    "_WITH": ("WITH and a name", "add WITH and a name, for example WITH authors"),
    "_USING": ('USING "..."', 'add the instruction: USING "instruction" AS name'),
}
"""Maps each keyword with which the last part of a command begins to a description of the missing part, and a hint."""


def _missing_at_end(s: InvalidStatement) -> Fault | None:
    end = len(s.text.rstrip())
    start, command = max(0, end - 1), s.command or "the command"
    if s.failure.brackets:
        return None
    if s.failure.after == "_AS" and "IDENTIFIER" in s.expected:
        hint = "name the result, for example AS authors"
        return fault("GASL010", "AS must be followed by a name", max(0, end - 2), end, hint, s.form)
    for name, (ending, hint) in _ENDINGS.items():
        if name in s.expected:
            return fault("GASL006", f"{command} must end with {ending}", start, end, hint, s.form)
    if s.expected & {"IDENTIFIER", "PATH"} and "$END" not in s.expected:
        what = "a name" if "IDENTIFIER" in s.expected else "a key or field"
        return fault("GASL010", f"{command} must end with {what}", start, end, s.form)
    return None


def _distinct(s: InvalidStatement) -> Fault | None:
    """Explain ``SELECT people FIELDS DISTINCT city``, ``count(DISTINCT city)`` without brackets, ``COUNT DISTINCT people``."""
    is_read = s.piece(-1).upper in _ONCE and s.failure.after in ("IDENTIFIER", "PATH")
    offset = -1 if is_read else 0
    piece, before, following = s.piece(offset), s.piece(offset - 1), s.piece(offset + 1)
    if piece.upper not in _ONCE:
        return None
    message, span = f"{piece} is in the wrong place", piece.span
    if s.command == "SELECT":
        head = next(one for one in s.pieces if one.upper == "SELECT")
        right = [insert(head.span.end, " DISTINCT"), s.removal(offset)]
        same = [Edit(span, "DISTINCT")] if before.upper == "SELECT" else []
        if same and s.mended_by(same):
            return s.fault("GASL009", f"{piece} is written DISTINCT in GASL", span, "write DISTINCT", same)
        return s.fault("GASL016", message, span, "write SELECT DISTINCT name FIELDS field AS values", right)
    if s.command == "FIND" and before.upper == "FIND":
        return s.fault(
            "GASL008", f"unexpected {piece}", span, "remove it: a search finds each item once", [s.removal(offset)]
        )
    if s.command == "AGGREGATE" and s.failure.after == "FUNCTION" and following.kind == "word":
        call = [swap(s.failure.behind, following.span.end, f"(DISTINCT {following})")]
        return s.fault("GASL003", "the field of a function must be in ( )", span, f"write (DISTINCT {following})", call)
    hint = "COUNT rows BY field AS name lists each value once; AGGREGATE rows COMPUTE count(DISTINCT field) AS n AS name counts them"
    return s.fault("GASL014", f"{s.command or 'this command'} does not accept {piece}", span, hint)


def _filler(s: InvalidStatement) -> Fault | None:
    """Explain ``FIND all nodes``, ``COUNT the authors``."""
    piece = s.piece()
    if piece.upper not in _FILLERS or s.command == "ASSERT":
        return None
    return s.fix("GASL008", f"unexpected {piece}", piece.span, "remove it", [s.removal(0)])


def _filled_name(s: InvalidStatement) -> Fault | None:
    """Explain ``COUNT the authors AS n``. The parser has read the filler word ``the`` as the name of the variable."""
    before, piece = s.piece(-1), s.piece()
    if "TEXTUAL" in s.expected and before.upper != "THE":
        return None  # a field may have this name
    if before.upper not in _FILLERS or piece.kind == "end" or s.failure.after not in ("IDENTIFIER", "PATH"):
        return None
    if _is_connecting(piece) or any(s.mended_by([Edit(piece.span, word)]) for word in _fitting(s, piece)):
        return None
    if _left_out(s):
        return None  # `UPDATE state authors`: a name, followed by a missing word
    return s.fix("GASL008", f"unexpected {before}", before.span, "remove it", [s.removal(-1)])


def _fitting(s: InvalidStatement, piece: Piece) -> list[str]:
    """Return the allowed keywords for which ``piece`` is a synonym."""
    options = _options(s)
    return [word for word in _SYNONYMS.get(piece.upper, "").split() if word in options]


def _between_ends(s: InvalidStatement) -> Fault | None:
    """Explain ``FIND paths BETWEEN a AND b``."""
    found = re.compile(r"BETWEEN[ \t]+([\w.`]+)[ \t]+(?:AND|TO)[ \t]+([\w.`]+)", re.I).match(s.text, s.at)
    if not found or "FROM" not in s.expected:
        return None
    right, span = f"FROM {found[1]} TO {found[2]}", Span(*found.span())
    return s.fix("GASL009", "GASL uses FROM and TO for paths", span, f"write {right}", [Edit(span, right)])


_EXCEPT_FROM = Correction(
    "GASL009",
    "| FROM",
    "EXCEPT ... FROM does not say which items are removed from which",
    "EXCEPT a WITH b AS c removes the items of b from a",
    commands=("EXCEPT",),
)

WORDS: tuple[Explainer, ...] = (_order_by, _target, _phrase, _EXCEPT_FROM, misspelt, _filler, _missing)

FIRST: tuple[Explainer, ...] = (_odd_character, _distinct, _between_ends, _filled_name)
"""Explainers that run before all others except ``DOUBTS``."""

LEFT_OUT: tuple[Explainer, ...] = (_left_out,)
