"""Finds the words that the parser allows at the cursor, and the role of a name at the cursor.

The allowed words come from the grammar, not from a table. The role of a name is found by parsing: a mark, and the shortest
ending that the grammar allows, are appended to the text before the cursor. The position of the mark in the tree is the role:
for example, the variable that ``COUNT`` reads, or the field on the left side of a comparison.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias, get_args

import attrs
from attrs import evolve, field, frozen

from ...catalogue.operations import FUNCTIONS, METHODS, Function
from ...evaluate.seed.interpreter import META_KEYS
from ...parse.expr.engine import MAX_LENGTH, Failure, automaton, follow, read
from ...parse.lookahead import Automaton, States
from ...printer.expr_printer import format_expr
from ...source import Source, Span
from ...trees import Node
from ...trees.expr import Call, Expr, Field, MethodCall, Name, Namespace, Slicing, Subscript
from ...trees.seed import Extracted
from ..model import Completion, CompletionKind, Known, Variable, code, excerpt, joined, plain

MARK = "knotwork_is_here"
"""The mark: a name that does not occur in real texts."""

Way: TypeAlias = tuple[tuple[Any, str], ...]
"""The path to the mark: pairs of a node and its field that contains the node of the next pair or, at the end, the mark."""

_WORDY = re.compile(r"[\w`]")
_DEVIATIONS = 16
_LONGEST_READ = 3_000
"""Maximum number of characters before the cursor that are parsed again for each word.

If there are more, the allowed words are offered without parsing, as the grammar writes them.
"""


@frozen
class Tongue:
    """The functions for one language.

    ``read`` returns the tree of a text, or None if the text is invalid. ``written`` returns the canonical text of a tree. ``blank`` is the
    separator between words. The builder may reject an ending; ``joints`` are the terminals that most often make such an ending valid.
    """

    automaton: Automaton
    read: Callable[[str], Any]
    written: Callable[[Any], str]
    blank: str = " "
    joints: frozenset[str] = frozenset()


@frozen
class Before:
    """The relevant text before the word to complete, and the states of the parser after this text."""

    text: str
    states: States


@frozen
class AllowedToken:
    """A word or symbol of the grammar that is allowed at the cursor, and its terminal."""

    terminal: str
    text: str


def _endings(tongue: Tongue, states: States, deviations: int) -> Iterator[list[str]]:
    """Yield the shortest ending, then up to ``deviations`` others.

    The others are needed because the builder may reject the shortest one, such as ``max()``.

    The first of the others continue after the shortest ending, because a column that is not a plain field needs a second ``AS name``. The
    next deviate from it with one of the ``joints``, at any place. All others follow, ordered by the place where they deviate.
    """
    automaton = tongue.automaton
    shortest = automaton.ending(states)
    yield shortest
    if not deviations:
        return
    tried: set[tuple[int, str]] = set()
    places = range(len(shortest))
    for taken, only in (
        (len(shortest), None),
        *((place, tongue.joints) for place in places),
        *((place, None) for place in places),
    ):
        at = automaton.after(states, *shortest[:taken])
        if at is None:
            return
        for name in automaton.accepts(at):
            is_tried = (
                shortest[taken : taken + 1] == [name] or (taken, name) in tried or not automaton.samples.get(name)
            )
            if is_tried or (only is not None and name not in only):
                continue
            after = automaton.after(at, name)
            if after is not None:
                if len(tried) == deviations:
                    return
                tried.add((taken, name))
                yield [*shortest[:taken], name, *automaton.ending(after)]


def _ended(tongue: Tongue, before: Before, written: str, states: States) -> tuple[Any, tuple[str, ...]] | None:
    """Parse the text before the cursor, followed by ``written`` and an ending. Return the tree and the ending, or None."""
    samples = tongue.automaton.samples
    for ending in _endings(tongue, states, _DEVIATIONS if len(before.text) <= _LONGEST_READ else 0):
        tail = tongue.blank.join(samples[name] for name in ending)
        tree = tongue.read(f"{before.text}{written}{tongue.blank}{tail}")
        if tree is not None:
            return tree, tuple(ending)
    return None


def words(tongue: Tongue, before: Before) -> list[AllowedToken]:
    """Return the words and symbols of the grammar that may follow, in the printer's notation.

    Of several synonyms, only those that the printer writes are returned.
    """
    automaton = tongue.automaton
    if len(before.text) > _LONGEST_READ:
        accepted = automaton.accepts(before.states)
        return [
            AllowedToken(name, said) for name in accepted for said in automaton.spellings.get(name, ()) if said.strip()
        ]
    groups: dict[Any, list[tuple[bool, AllowedToken]]] = {}
    for terminal in automaton.accepts(before.states):
        after = automaton.after(before.states, terminal)
        for text in automaton.spellings.get(terminal, ()):
            if after is None or not text.strip() or _touches(before.text, text):
                continue
            read = _ended(tongue, before, text, after)
            if read is None:
                continue
            printed = tongue.written(read[0])
            spelled = next((way for way in (text, text.lower()) if _has(printed, way)), None)
            groups.setdefault(read, []).append((spelled is not None, AllowedToken(terminal, spelled or text)))
    found: list[AllowedToken] = []
    for group in groups.values():
        printed_ones = [each for is_printed, each in group if is_printed]
        found += printed_ones or [each for _, each in group]
    order = {name: place for place, name in enumerate(automaton.samples)}
    return sorted(found, key=lambda each: order[each.terminal])


def _has(printed: str, word: str) -> bool:
    if not word[0].isalnum():
        return word in printed
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", printed) is not None


def _touches(text: str, word: str) -> bool:
    """Return whether ``word``, written directly after ``text``, would form one word with the end of ``text``."""
    return _WORDY.match(text[-1:]) is not None and _WORDY.match(word) is not None


def found_by(tongue: Tongue, before: Before, written: str, *terminals: str) -> tuple[Way, Any] | None:
    """Return the path to the mark in ``written``, and the tree; None if ``written`` is not allowed at the cursor.

    ``terminals`` are the terminals of ``written``.
    """
    after = tongue.automaton.after(before.states, *terminals)
    if after is None or _touches(before.text, written):
        return None
    read = _ended(tongue, before, written, after)
    way = _way(read[0]) if read is not None else None
    return (way, read[0]) if way is not None and read is not None else None


def _way(root: Any) -> Way | None:
    """Return the path to the mark in a tree; None if the tree does not contain the mark."""
    stack: list[tuple[Any, Way]] = [(root, ())]
    while stack:
        value, way = stack.pop()
        if isinstance(value, str):
            if value == MARK:
                return way
        elif isinstance(value, tuple | list):
            stack.extend((each, way) for each in reversed(value))
        elif isinstance(value, Node):
            names = [each.name for each in attrs.fields(type(value)) if each.name != "span"]
            stack.extend((getattr(value, name), (*way, (value, name))) for name in reversed(names))
    return None


# Replaces text after the cursor that a completion already contains: the rest of a word or a string, and its closing characters. With the
# cursor at ``|`` in ``LL|M(``, the completion ``LLM`` gives ``LLM(``, not ``LLMM(``.

_REST = re.compile(r"\w+")
_PATH = re.compile(r"\w+(?:\.\w+)*")
_SIGNS = re.compile(r"[^\w\s]\W*\Z")
_OPENED = frozenset("_.[{($")
_QUOTES = "\"'`"


def over_the_rest(found: tuple[Completion, ...], text: str, offset: int) -> tuple[Completion, ...]:
    """Return the completions. If one contains text that already follows the cursor, its span is extended to replace this text."""
    return found if offset >= len(text) else tuple(_over(each, text, offset) for each in found)


def _over(each: Completion, text: str, offset: int) -> Completion:
    typed = text[each.span.start : offset]
    if not typed or each.span.end != offset:
        return each
    said, at = each.text, offset
    quote = next((sign for sign in _QUOTES if typed.count(sign) % 2), "")
    closed = _closing(text, offset, quote) if quote else None
    if closed is not None:
        # In a prompt, a key is inserted without quotes, even if quotes were typed.
        at = closed + (quote not in said or said.rstrip("]: ").endswith(quote))
    elif typed[-1].isalnum() or typed[-1] in _OPENED:
        rest = (_PATH if "." in said else _REST).match(text, offset)
        at = rest.end() if rest else offset
    if at == offset and not (typed[-1].isalnum() or typed[-1] == "_"):
        return each
    signs = _SIGNS.search(said)
    ending = signs[0].lstrip(quote if closed is not None and quote else "") if signs is not None else ""
    if ending == "}" and text.startswith(".", at):  # in ${name.field}, only the name is replaced
        said = said[:-1]
    at += next((size for size in range(len(ending), 0, -1) if text.startswith(ending[:size], at)), 0)
    return evolve(each, text=said, span=Span(each.span.start, at))


def _closing(text: str, offset: int, quote: str) -> int | None:
    """Return the end of the string that is open at ``offset``; None if the string is not closed on the same line."""
    end = text.find("\n", offset)
    rest = text[offset : end if end >= 0 else len(text)]
    return offset + rest.index(quote) if rest.count(quote) % 2 else None


# Selects and orders candidates. Candidates that begin with the typed text come first, then candidates with a part that begins with
# it, then others.

MOST = 200
"""Maximum number of completions that are returned."""
_LOOKED_AT = 20_000
_LONGEST = 2_000
_PARTS = re.compile(r"[^\W_]+")


@frozen
class Candidate:
    """A possible completion. ``match`` is the string that is compared with the typed text (default: ``text``)."""

    text: str
    kind: CompletionKind
    detail: str = ""
    documentation: str = ""
    match: str = ""
    described: Callable[[], tuple[str, str]] | None = None
    """Returns the detail and the documentation if they are slow to compute. It is called only for returned candidates."""

    @property
    def about(self) -> tuple[str, str]:
        """The detail and the documentation."""
        return (self.detail, self.documentation) if self.described is None else self.described()

    @property
    def compared(self) -> str:
        """The text that is compared with the typed text."""
        return self.match or self.text


def ranked(candidates: Iterable[Candidate], typed: str, span: Span) -> tuple[Completion, ...]:
    """Return the candidates that match ``typed`` as completions.

    At most ``MOST`` are returned, best first. Candidates that match equally well keep their order.
    """
    seen: set[str] = set()
    scored: list[tuple[int, int, Candidate]] = []
    for place, candidate in enumerate(candidates):
        if place >= _LOOKED_AT:
            break
        if candidate.text in seen or len(candidate.text) > _LONGEST:
            continue
        score = _score(typed, candidate.compared)
        if score is not None:
            seen.add(candidate.text)
            scored.append((score, place, candidate))
    scored.sort(key=lambda each: each[:2])
    return tuple(
        Completion(each.text, each.kind, span, *each.about, rank, each.compared)
        for rank, (_, _, each) in enumerate(scored[:MOST])
    )


def _score(typed: str, text: str) -> int | None:
    """Return a score for the match of ``text`` with ``typed``. The best score is 0. Return None if ``text`` does not match."""
    if not typed or text.startswith(typed):
        return 0
    wanted, known = typed.casefold(), text.casefold()
    if known.startswith(wanted):
        return 1
    starts = {match.start() for match in _PARTS.finditer(known)}
    if any(known.startswith(wanted, start) for start in starts):
        return 2
    if len(wanted) < 2:
        return None
    if wanted in known:
        return 3
    return _fuzzy(wanted, known, starts)


def _fuzzy(wanted: str, known: str, starts: set[int]) -> int | None:
    """Return a score above 3; it is higher (worse) if the letters of ``wanted`` are further apart in ``known``.

    Return None if letters are missing, in the wrong order or too far apart, or if the first does not begin a part of ``known``.
    """
    at = next((start for start in sorted(starts) if known[start] == wanted[0]), -1)
    first = at
    for letter in wanted[1:]:
        if at < 0:
            return None
        at = known.find(letter, at + 1)
    return 4 + at - first if 0 <= at - first <= 2 * len(wanted) + 1 and at >= 0 else None


# Completes expressions: separate expressions, and expressions in the strings of a seed.

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z|[0-9][0-9.]*\Z")
_OPEN_STRING = re.compile(r"""(?:[^"']|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')*+["']""", re.DOTALL)
_OPEN_KEY = re.compile(r"""\[\s*(?P<quote>["'])[^"'\\]*\Z""")
_OVER = re.compile(r"\bfor\s+([A-Za-z_]\w*)\s+in\s+([A-Za-z_]\w*)\b")
_CLAUSE = re.compile(r"\bfor\s+([A-Za-z_]\w*)\s+in\b")


@frozen
class ExprScope:
    """The names that an expression can use. ``names`` maps names to short descriptions; ``fields`` are the extracted fields.

    ``context`` are the keys of the context. ``row`` is true if the expression is evaluated for each extraction.
    """

    names: Mapping[str, str] = field(factory=dict)
    fields: Mapping[str, Extracted] = field(factory=dict)
    context: Collection[str] = ()
    row: bool = False
    meta: Collection[str] = META_KEYS
    """The keys of a review's metadata."""


def complete_expr(source: Source, offset: int, known: Known) -> tuple[Completion, ...]:
    """See ``service.complete``."""
    names = {name: excerpt(variable.holds) for name, variable in known.variables.items()}
    context = known.input if isinstance(known.input, Mapping) else {}
    text = source.text[:offset]
    keyed = _keys(text, source.text[offset:], known.variables)
    if keyed is not None:
        begin, candidates = keyed
        return ranked(candidates, text[begin + 1 :], Span(begin, offset))
    found = expr_candidates(text, ExprScope(names, context=[key for key in context if isinstance(key, str)]))
    if found is None:
        return ()
    begin, candidates = found
    return ranked(candidates, text[begin:], Span(begin, offset))


def _keys(text: str, behind: str, variables: Mapping[str, Variable]) -> tuple[int, list[Candidate]] | None:
    """Return the offset where an incomplete string in brackets begins, and candidates for it: the keys of the value before the brackets.

    Return None if ``text`` does not end in such a string. A candidate includes the closing quote and the closing bracket, unless
    ``behind`` has them. ``behind`` is the text after the cursor.
    """
    open_key = _OPEN_KEY.search(text) if len(text) <= MAX_LENGTH else None
    if open_key is None:
        return None
    begin, quote = open_key.start("quote"), open_key["quote"]
    follower = follow(text[:begin])
    if follower is None:
        return None
    before = Before(text[:begin], tuple(follower.states))
    found = found_by(_tongue(), before, f"{quote}{MARK}{quote}", "STRING")
    way = () if found is None else found[0]
    holder = way[-2][0] if len(way) > 1 else None
    if not isinstance(holder, Subscript) or way[-2][1] != "index":
        return None
    clauses = dict(_OVER.findall(text + behind))
    end = "" if behind[:1] == quote else quote if behind.lstrip()[:1] == "]" else f"{quote}]"
    return begin, [
        Candidate(f"{quote}{key}{end}", "field", match=key)
        for key in _keys_of(holder.value, variables, clauses)
        if key.isprintable() and not set(key) & {quote, "\\"}
    ]


def _keys_of(expr: Expr, variables: Mapping[str, Variable], clauses: Mapping[str, str]) -> tuple[str, ...]:
    """Return the keys of the value of ``expr``, a variable, an item of one, or a comprehension's variable; () if they are unknown."""
    is_item = isinstance(expr, Subscript)
    if isinstance(expr, Subscript):
        expr = expr.value
    while isinstance(expr, Slicing):
        expr = expr.value
    if not isinstance(expr, Name):
        return ()
    name = expr.name
    if name not in variables and name in clauses:
        name, is_item = clauses[name], not is_item
    known = variables.get(name)
    return known.fields if known is not None and known.many == is_item else ()


def expr_candidates(text: str, scope: ExprScope) -> tuple[int, list[Candidate]] | None:
    """Return the offset where the incomplete word at the end of ``text`` begins, and candidates for it.

    Return None if nothing is allowed there.
    """
    if len(text) > MAX_LENGTH or _OPEN_STRING.fullmatch(text):
        return None
    word = _WORD.search(text)
    begin = word.start() if word else len(text)
    follower = follow(text[:begin])
    if follower is None:
        return None
    before = Before(text[:begin], tuple(follower.states))
    return begin, [*_names(before, scope), *_words(before)]


def _tongue() -> Tongue:
    return Tongue(automaton(), _read, format_expr)


def _read(text: str) -> Expr | None:
    found = read(text) if len(text) <= MAX_LENGTH else None
    return None if found is None or isinstance(found, Failure) else found


def _words(before: Before) -> Iterator[Candidate]:
    for found in words(_tongue(), before):
        yield Candidate(found.text, "keyword" if found.text[0].isalpha() else "punctuation")


def _names(before: Before, scope: ExprScope) -> Iterator[Candidate]:
    tongue = _tongue()
    forms = ((MARK, ("NAME",)), (f"{MARK}(", ("NAME", "LPAR")), (f"{MARK}=", ("NAME", "EQUALS")))
    for written, terminals in forms:
        found = found_by(tongue, before, written, *terminals)
        if found is not None:
            yield from _name_candidates(found[0], before, scope)
    if tongue.automaton.after(before.states, "NAME", "DOT", "NAME"):
        for namespace, names in _namespaces(scope):
            if _read_as(tongue, before, f"{namespace}.{MARK}"):
                yield from (Candidate(f"{namespace}.{name}", "field", detail, about) for name, detail, about in names)


def _read_as(tongue: Tongue, before: Before, written: str) -> bool:
    found = found_by(tongue, before, written, "NAME", "DOT", "NAME")
    return found is not None and isinstance(found[0][-1][0], Field)


def _namespaces(scope: ExprScope) -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    if scope.row:
        yield "extraction", [(name, each.type, _about(each)) for name, each in scope.fields.items() if _is_name(name)]
        yield "meta", [(name, "of the review", "") for name in scope.meta]
    yield "context", [(key, "of the context", "") for key in scope.context if _is_name(key)]


def _about(extracted: Extracted) -> str:
    values = joined([code(value) for value in extracted.values]) if extracted.values else ""
    return "\n\n".join(each for each in (plain(extracted.doc), values) if each)


def _name_candidates(way: Way, before: Before, scope: ExprScope) -> Iterator[Candidate]:
    holder, attribute = way[-1]
    if isinstance(holder, Name):
        for name in dict.fromkeys(_CLAUSE.findall(before.text)):
            yield Candidate(name, "variable", "of this comprehension")
        yield from (Candidate(name, "variable", detail) for name, detail in scope.names.items() if _is_name(name))
    elif isinstance(holder, Call) and attribute == "function":
        yield from map(_function, FUNCTIONS.values())
    elif isinstance(holder, Call) and attribute == "keywords":
        known = FUNCTIONS.get(holder.function)
        yield from (Candidate(f"{name}=", "option", match=name) for name in (known.keywords if known else ()))
    elif isinstance(holder, MethodCall) and attribute == "method" and not _is_namespace(holder.value):
        yield from (Candidate(each.name, "method", each.signature, plain(each.doc)) for each in METHODS.values())
    elif isinstance(holder, Field) and attribute == "name":
        for namespace, names in _namespaces(scope):
            if namespace == holder.namespace:
                yield from (Candidate(name, "field", detail, about) for name, detail, about in names)


def _is_namespace(expr: Expr) -> bool:
    return isinstance(expr, Name) and expr.name in get_args(Namespace)


@lru_cache(maxsize=4096)
def _is_name(name: str) -> bool:
    found = read(name) if len(name) <= 100 else None
    return isinstance(found, Name)


def _function(each: Function) -> Candidate:
    return Candidate(f"{each.name}(", "function", each.signature, plain(each.doc), match=each.name)
