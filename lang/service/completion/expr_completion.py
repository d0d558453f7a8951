"""Completion in expressions, by themselves and in a seed's strings."""

import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import get_args

from attrs import field, frozen

from ...catalogue.functions import FUNCTIONS, METHODS, Function
from ...evaluate.seed.interpreter import META_KEYS
from ...parse.expr.engine import MAX_LENGTH, Failure, automaton, follow, read
from ...printer.expr import format_expr
from ...source import Source, Span
from ...trees.expr import Call, Expr, Field, MethodCall, Name, Namespace, Slicing, Subscript
from ...trees.seed import Extracted
from ..model import Completion, Known, Variable, code, excerpt, listed, plain
from .place import MARK, Before, Candidate, Tongue, Way, found_by, ranked, words

__all__ = ["ExprScope", "complete_expr", "expr_candidates"]

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z|[0-9][0-9.]*\Z")
_OPEN_STRING = re.compile(r"""(?:[^"']|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')*+["']""", re.DOTALL)
_OPEN_KEY = re.compile(r"""\[\s*(?P<quote>["'])[^"'\\]*\Z""")
_OVER = re.compile(r"\bfor\s+([A-Za-z_]\w*)\s+in\s+([A-Za-z_]\w*)\b")
_CLAUSE = re.compile(r"\bfor\s+([A-Za-z_]\w*)\s+in\b")


@frozen
class ExprScope:
    """What an expression may name. ``names`` and ``fields`` by what they are in a few words; ``row``: it is of one extraction."""

    names: Mapping[str, str] = field(factory=dict)
    fields: Mapping[str, Extracted] = field(factory=dict)
    context: Collection[str] = ()
    row: bool = False


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
    """Return where a string in brackets begins that is under way, and the keys of the value before it; None where there is none.

    A key is written to its closing bracket, but for what stands behind the cursor already.
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
    """Return the keys of a value, as far as it is known what it is: a variable, one of its items, or what a comprehension goes over."""
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
    """Return where what is under way at the end of ``text`` begins, and what may stand there; None where nothing can."""
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
            yield from _named(found[0], before, scope)
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
        yield "meta", [(name, "of the review", "") for name in META_KEYS]
    yield "context", [(key, "of the context", "") for key in scope.context if _is_name(key)]


def _about(extracted: Extracted) -> str:
    values = listed([code(value) for value in extracted.values]) if extracted.values else ""
    return "\n\n".join(each for each in (plain(extracted.doc), values) if each)


def _named(way: Way, before: Before, scope: ExprScope) -> Iterator[Candidate]:
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
