"""Commands and clauses of Cypher, GQL and SQL, and their GASL equivalents. An edit is offered only if it preserves the meaning."""

import re

from ....diagnostic import Edit, nearest
from ....source import Span
from ...repairs import Fault
from .attempt import Correction, Explainer, InvalidStatement, condition_of, is_readable, is_value, swap
from .foreign_syntax import COMPARING

_NAMES = re.compile(r"[ \t]*(?:\*|\w+(?:[ \t]*,[ \t]*\w+)*)[ \t]*")
_WRITING = re.compile(r"\b(?:SET|DELETE|DETACH|REMOVE|MERGE|CREATE)\b", re.IGNORECASE)
_CLAUSES = re.compile(r"\b(?:MATCH|WITH|UNWIND|OPTIONAL)\b", re.IGNORECASE)
_COMPLETE_ONLY = "FIND patterns finds only complete matches"
_LEFT_JOIN = "LEFT JOIN keeps the rows without a match; EXCEPT keeps only these rows"
_CYPHER = "MATCH is Cypher, not GASL"


def _match(s: InvalidStatement) -> Fault | None:
    """Explain ``MATCH (p:PERSON)-[r]->(q) WHERE ... RETURN p``."""
    begin = re.match(r"(OPTIONAL[ \t]+)?MATCH\b", s.text, re.IGNORECASE)
    if begin is None:
        return None
    if begin[1]:
        return s.fault("GASL014", _COMPLETE_ONLY, Span(0, 8), _LEFT_JOIN)
    span, rest = Span(0, 5), _STRING.sub("", s.text[5:])
    if _WRITING.search(rest):
        return s.fault("GASL014", _CHANGES, Span(0, len(s.text)), _KEEPING)
    body = s.text[5:].rstrip("; \t")
    returned = re.search(r"\bRETURN\b", body, re.IGNORECASE)
    result = body[returned.end() :] if returned else ""
    tested = re.search(r"\bWHERE\b", body, re.IGNORECASE)
    steps = "then SELECT, AGGREGATE or RANK for the rest of RETURN"
    if _CLAUSES.search(rest):
        hint = "write FIND patterns ... AS rows for one MATCH, and a command for each further step"
        hint += f"; for OPTIONAL MATCH, {_LEFT_JOIN}" if re.search(r"\bOPTIONAL\b", rest, re.IGNORECASE) else ""
        return s.fault("GASL014", _CYPHER, span, hint)
    body = body[: returned.start()] if returned else body
    pattern, condition = (body[: tested.start()], body[tested.end() :]) if tested else (body, "")
    pattern, where = pattern.strip(), f" WHERE {condition.strip()}" if condition else ""
    if length := _LENGTHS.search(pattern):
        return s.fault(
            "GASL014", _CYPHER, span, f"a pattern has a fixed number of edges: {_paths_for(pattern, length)}"
        )
    right = f"FIND patterns {pattern}{where} AS rows"
    if (alone := re.fullmatch(r"\(([A-Za-z_]\w*)\)", pattern)) and not where:
        right = f"FIND nodes AS {alone[1]}"
    if not is_readable(right):
        return s.fault("GASL014", _CYPHER, span, "write FIND patterns (a:LABEL)-[r:TYPE]->(b) WHERE ... AS rows")
    is_whole = returned is None or _NAMES.fullmatch(result) is not None
    edits = [Edit(Span(0, len(s.text.rstrip("; \t"))), right)] if is_whole else []
    return s.fault("GASL014", _CYPHER, span, f"write {right}" if is_whole else f"write {right}, {steps}", edits)


_STRING = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""")


def _target_pattern(s: InvalidStatement) -> Fault | None:
    """Explain ``FIND (a)-[r]->(b) AS rows``, ``FIND pattern (a)-->(b) AS rows``."""
    found = re.match(r"((?:EXPLAIN[ \t]++)?FIND[ \t]*+)([A-Za-z]*+[ \t]*+)\(", s.text, re.IGNORECASE)
    if found is None or s.at > found.end() + 1 or found[2].strip().upper() in ("NODES", "EDGES", "PATTERNS"):
        return None
    words = found[2].strip()
    if words and not nearest(words, ("patterns",)):
        return None
    edits = [swap(found.end(1), found.end(2), " " * (not found[1][-1].isspace()) + "patterns ")]
    if not s.mended_by(edits):
        return None
    message = f"FIND needs patterns before a pattern, not {words}" if words else "FIND does not say what to find"
    span = Span(found.start(2), found.end(2) + (not words))
    return s.fault("GASL011", message, span, f"write FIND patterns {s.text[found.end(2) :][:60]}", edits)


_LENGTHS = re.compile(
    r"\*[ \t]*\d*(?:[ \t]*\.\.[ \t]*\d*)?(?=[ \t]*\])|(?<=[>\]-])[ \t]*\{[ \t]*\d*[ \t]*,?[ \t]*\d*[ \t]*\}"
)


def _variable_length(s: InvalidStatement) -> Fault | None:
    """Explain ``-[r:KNOWS*1..3]->`` and ``->{1,3}``."""
    found = next((each for each in _LENGTHS.finditer(s.text) if each.start() <= s.at <= each.end()), None)
    if found is None or not _is_pattern(s):
        return None
    hint = _paths_for(s.text, found)
    return s.fault("GASL014", "a pattern has a fixed number of edges", Span(*found.span()), hint)


def _paths_for(pattern: str, found: re.Match[str]) -> str:
    """Return the hint for a pattern with a variable number of edges. ``found`` is the match of this number."""
    relation = re.search(r":[ \t]*`?(\w+)`?[ \t]*\Z", pattern[: found.start()].rstrip("]->"))
    via = f' VIA relation = "{relation[1]}"' if relation else ""
    most = (re.findall(r"[0-9]+", found[0]) or ["3"])[-1]
    return f"write FIND paths FROM (...) TO (...){via} MAXLEN {most} AS name"


def _is_pattern(s: InvalidStatement) -> bool:
    return s.command == "FIND" and any(piece.upper == "PATTERNS" for piece in s.pieces[:3])


def _condition_in_element(s: InvalidStatement) -> Fault | None:
    """Explain ``(p:PERSON WHERE p.age > 3)``, ``-[r WHERE r.amount > 3]->``."""
    piece = s.piece()
    if piece.upper != "WHERE" or not s.failure.brackets or not _is_pattern(s):
        return None
    close = _closing(s, piece.span.end)
    if close is None:
        return None
    condition = s.text[piece.span.end : close].strip()
    message, span = "a condition must come after the patterns", Span(piece.span.start, close)
    hint = f"write WHERE {condition} after the patterns"
    start = len(s.text[: piece.span.start].rstrip())
    edits = [swap(start, close, "")]
    outer, end = _outer_condition(s, close)
    if end is None:
        return s.fault("GASL014", message, span, hint)
    if outer is None:
        edits.append(swap(end, end, f" WHERE {condition}"))
    else:
        edits += [swap(outer, outer, f" ({condition}) AND ("), swap(end, end, ")")]
        if outer < len(s.text) and s.text[outer].isspace():
            edits[-2] = swap(outer, outer + 1, f" ({condition}) AND (")
    return s.fault("GASL014", message, span, hint, edits)


_DEPTHS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


def _closing(s: InvalidStatement, start: int) -> int | None:
    """Return the offset of the bracket that closes the bracket around ``start``, or None."""
    depth = 0
    for piece in s.pieces:
        if piece.span.start >= start:
            depth += _DEPTHS.get(piece.text, 0)
            if depth < 0:
                return piece.span.start
    return None


def _outer_condition(s: InvalidStatement, start: int) -> tuple[int | None, int | None]:
    """Return the start and the end of the command's condition.

    Without WHERE, the start is None, and the end is the offset at which to insert WHERE. An unknown end is None.
    """
    depth, begins = -1, None
    for piece in s.pieces:
        if piece.span.start < start:
            continue
        depth += _DEPTHS.get(piece.text, 0) if piece.span.start > start else 0
        depth = 0 if piece.span.start == start else depth
        if depth == 0 and piece.upper == "WHERE" and begins is None:
            begins = piece.span.end
        elif depth == 0 and piece.upper in ("ORDER", "LIMIT", "AS"):
            return begins, len(s.text[: piece.span.start].rstrip())
    return begins, None


_ELEMENT = r"\([^()]*\)"
_LINK = r"[ \t]*+<?-++[ \t]*+(?:\[[^\[\]]*+\][ \t]*+)?-*+>?[ \t]*+"
_TESTED_PATTERN = re.compile(rf"(?:NOT[ \t]+)?(?:EXISTS[ \t]*[({{]?[ \t]*)?{_ELEMENT}{_LINK}{_ELEMENT}", re.IGNORECASE)


def _pattern_in_condition(s: InvalidStatement) -> Fault | None:
    """Explain ``WHERE NOT (a)-->(c)``."""
    where = re.search(r"\bWHERE\b", s.text, re.IGNORECASE)
    found = _TESTED_PATTERN.search(s.text, where.end()) if where else None
    if found is None or not found.start() <= s.at <= found.end() + 1 or not re.search(r"-->|<--|-\[|\]-|--", found[0]):
        return None
    return s.fault("GASL014", "a condition cannot contain a pattern", Span(*found.span()), _EXCEPT)


_EXCEPT = (
    "find the patterns with two commands, AS a and AS b; then EXCEPT a WITH b ON field AS name keeps the rows of a without a "
    "match in b, and INTERSECT keeps the rows of a with a match"
)


def _exists_pattern(s: InvalidStatement) -> Fault | None:
    """Explain ``WHERE NOT EXISTS {(a)-->(c)}``."""
    found = re.search(r"(?:NOT[ \t]+)?EXISTS[ \t]*[{(][ \t]*(?:MATCH|\()", s.text, re.IGNORECASE)
    if found is None or not found.start() <= s.at <= found.end():
        return None
    return s.fault("GASL014", _COMPLETE_ONLY, Span(*found.span()), _EXCEPT)


_SUBQUERY = re.compile(
    r"(?P<exists>(?:NOT[ \t]+)?EXISTS[ \t]*)?[({][ \t]*SELECT\b(?:[ \t]+(?P<field>[\w.]+)[ \t]+FROM[ \t]+(?P<source>\w+)[ \t]*[)}])?",
    re.IGNORECASE,
)


def _subquery(s: InvalidStatement) -> Fault | None:
    """Explain ``country IN (SELECT country FROM x)``, ``NOT EXISTS (SELECT ...)``."""
    found = next((each for each in _SUBQUERY.finditer(s.text) if each.start() <= s.at), None)
    if found is None:
        return None
    hint = "bind the inner rows to a variable, and write IN ${name.field}"
    hint = hint if not found["exists"] else f"{hint}, or EXCEPT a WITH b ON field AS name"
    edits = []
    if found["source"] and not found["exists"] and found["source"].upper().rstrip("S") not in ("NODE", "EDGE"):
        right = f"${{{found['source']}.{found['field']}}}"
        hint, edits = f"write {right}", [Edit(Span(*found.span()), right)]
    return s.fault("GASL014", "GASL has no subqueries", Span(*found.span()), hint, edits)


def _case(s: InvalidStatement) -> Fault | None:
    """Explain ``CASE WHEN a > 1 THEN b ELSE c END``, ``CASE a WHEN 1 THEN b ELSE c END``."""
    first = next((at for at, piece in enumerate(s.pieces) if piece.upper == "CASE" and _is_case(s, at)), None)
    last = next(
        (at for at, piece in enumerate(s.pieces) if first is not None and at > first and piece.upper == "END"), None
    )
    if first is None or last is None or not s.pieces[first].span.start <= s.at <= s.pieces[last].span.end:
        return None
    head, whole = s.pieces[first].span, s.pieces[first].span | s.pieces[last].span
    parts = _parts_of_case(s, first, last)
    hint = "write if(condition, a, b), with another if in place of b for the next WHEN"
    right = _as_if(parts) if parts else ""
    edits = [Edit(whole, right)] if right and "..." not in right else []
    return s.fault("GASL014", "CASE is SQL, not GASL", head, f"write {right}" if right else hint, edits)


def _is_case(s: InvalidStatement, at: int) -> bool:
    """Return whether WHEN follows the word CASE. If WHEN follows, CASE is not the name of a field."""
    following = [piece.upper for piece in s.pieces[at + 1 :]]
    return "WHEN" in following and "END" in following


def _parts_of_case(s: InvalidStatement, first: int, last: int) -> list[tuple[str, str]]:
    """Return the keywords of a CASE, each with the text after it. If the CASE contains another CASE, return an empty list."""
    marks = [at for at in range(first, last) if s.pieces[at].upper in ("CASE", "WHEN", "THEN", "ELSE")]
    ends = [s.pieces[at].span.start for at in (*marks[1:], last)]
    parts = [
        (s.pieces[at].upper, s.text[s.pieces[at].span.end : end].strip()) for at, end in zip(marks, ends, strict=True)
    ]
    return parts if sum(word == "CASE" for word, _ in parts) == 1 else []


def _as_if(parts: list[tuple[str, str]]) -> str:
    """Return the text of the calls of ``if`` that are equivalent to a CASE. Return "" if a part of the CASE is not valid GASL."""
    (_, subject), *rest = parts
    other = rest.pop()[1] if rest and rest[-1][0] == "ELSE" else "..."
    pairs = list(zip(rest[::2], rest[1::2], strict=False))
    if len(rest) % 2 or not pairs or any((one[0], two[0]) != ("WHEN", "THEN") for one, two in pairs):
        return ""
    if (subject and not is_value(subject)) or (other != "..." and not is_value(other)):
        return ""
    for (_, test), (_, value) in reversed(pairs):
        test = f"{subject} = {test}" if subject else test
        if condition_of(test) is None or not is_value(value):
            return ""
        other = f"if({test}, {value}, {other})"
    return other


def _conditional(s: InvalidStatement) -> Fault | None:
    """Explain Python's ``a if x > 1 else b``."""
    piece = s.piece()
    ending = next((each for each in s.pieces[s.here + 1 :] if each.upper == "ELSE"), None)
    then = s.value_before(piece.span.start) if piece.upper == "IF" and "_IF" not in s.expected else None
    if ending is None or then is None:
        return None
    message, span = "a conditional value of Python is written if(condition, a, b) in GASL", piece.span
    other, test = s.value_after(ending.span.end), s.text[piece.span.end : ending.span.start].strip()
    if other is None or condition_of(test) is None:
        return s.fault("GASL014", message, span, "write if(condition, a, b)")
    right, around = f"if({test}, {s.slice(then)}, {s.slice(other)})", then | other
    # Python reads ``x == a if c else b`` as ``(x == a) if c else b``.
    if s.after(other.end).upper in ("IF", "ELSE"):
        return s.fault("GASL014", message, span, "write if(condition, a, if(condition, b, c))")
    is_open = s.before(then.start).upper in COMPARING
    return s.fault("GASL014", message, span, f"write {right}", [] if is_open else [Edit(around, right)])


def _all_counted(s: InvalidStatement) -> Fault | None:
    """Explain ``count(*)``."""
    found = next(
        (m for m in re.finditer(r"\bcount\([ \t]*\*[ \t]*\)", s.text, re.I) if m.start() <= s.at <= m.end()), None
    )
    if found is None:
        return None
    span, message = Span(*found.span()), "count(*) is SQL, not GASL"
    if s.command == "AGGREGATE":
        return s.fix("GASL014", message, span, "write count()", [Edit(span, "count()")])
    if found.start() == 0:
        return s.fault("GASL014", message, span, "write COUNT name AS n for the number of items in a variable")
    return s.fault("GASL014", message, span, "write AGGREGATE rows COMPUTE count() AS n AS name, or COUNT rows AS n")


_READS = "a GASL program can't read or write files"
_FILES = "several files run one after another; knotwork run prints the results, and UPDATE keeps them in the state"
_CHANGES = "GASL does not change the graph"
_KEEPING = "store results with UPDATE; MEASURE ... ON rows measures a derived graph"
_JOIN = "{0.upper} JOIN is SQL, not GASL"

_SQL = "{1.upper} is SQL, not GASL"
_FIRST_OF_EACH = "write RANK x BY a DESC LIMIT 1 PER b AS y: the first of each b"
_AFTERWARDS = "write SELECT rows WHERE ... AS name after this command"
_EXCHANGED = "write LEFT JOIN with the two variables exchanged"
_BOTH_SIDES = (
    "write LEFT JOIN a WITH b ON field AS rows, and EXCEPT b WITH a ON field AS others for the rows that only b has"
)
_WITH_ON = "write JOIN a WITH b ON field AS name, with a field that both have"
_UNNEST = "write UNNEST name BY list_field AS name"
_PATTERNS = "write FIND patterns (p:LABEL) AS name, or FIND nodes WHERE ... AS name"


def _join(word: str, right: str, hint: str) -> Correction:
    return Correction("GASL014", f"| {word} JOIN", _JOIN, hint, right, edited=(0, 1), must_help=False)


QUERY_LANGUAGES: tuple[Explainer, ...] = (
    _match, _target_pattern, _variable_length, _condition_in_element, _subquery, _exists_pattern, _pattern_in_condition,
    _case, _conditional, _all_counted,
    Correction("GASL014", "| OPTIONAL MATCH/(", _COMPLETE_ONLY, _LEFT_JOIN),
    Correction("GASL014", "INSERT | INTO any", _CHANGES, _KEEPING, blamed=(0, 0)),
    Correction("GASL014", "| INSERT INTO any", _CHANGES, _KEEPING, allowed="FIND"),
    Correction("GASL014", "UPDATE word | SET word =", _CHANGES, _KEEPING, blamed=(0, 0)),
    Correction("GASL014", "LEFT | ANTI JOIN", _SQL, "write EXCEPT a WITH b ON field AS name", "EXCEPT", must_help=False),
    Correction("GASL014", "LEFT | SEMI JOIN", _SQL, "write INTERSECT a WITH b ON field AS name", "INTERSECT", must_help=False),
    _join("SEMI", "INTERSECT", "write INTERSECT a WITH b ON field AS name"),
    _join("ANTI", "EXCEPT", "write EXCEPT a WITH b ON field AS name"),
    _join("INNER", "JOIN", "write JOIN"),
    Correction("GASL014", "LEFT | OUTER JOIN", _SQL, "write LEFT JOIN", "LEFT JOIN", must_help=False),
    Correction("GASL014", "| RIGHT OUTER/JOIN", _JOIN, _EXCHANGED, allowed="FIND"),
    Correction("GASL014", "| FULL OUTER/JOIN", _JOIN, _BOTH_SIDES, allowed="FIND"),
    Correction("GASL014", "| OUTER/CROSS/NATURAL JOIN", _JOIN, _WITH_ON, allowed="FIND"),
    Correction("GASL014", "any | OVER (", _SQL, _FIRST_OF_EACH, blamed=(1, 1)),
    Correction("GASL014", "any | HAVING", _SQL, _AFTERWARDS, blamed=(1, 1)),
    Correction("GASL014", "| CREATE/DELETE/DETACH/REMOVE/DROP any", _CHANGES, _KEEPING, allowed="FIND"),
    Correction("GASL014", "| MERGE (", _CHANGES, _KEEPING, allowed="FIND"),
    Correction("GASL014", "| EXPORT/LOAD/IMPORT/INCLUDE/WRITE any", _READS, _FILES, allowed="FIND"),
    Correction("GASL014", "| CALL any", "GASL has no procedures", "MEASURE graph USING algorithm AS name", allowed="FIND"),
    Correction("GASL014", "| UNWIND any", "UNWIND is Cypher, not GASL", _UNNEST, allowed="FIND"),
    Correction("GASL014", "FIND NODES | ( any :", "a pattern needs FIND patterns", _PATTERNS, blamed=(2, 2)),
)  # fmt: skip
"""Explainers that run before all others: their faults contain words that other explainers would misread."""
