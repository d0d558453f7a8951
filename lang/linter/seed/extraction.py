"""Rules about fields: extracted fields, conditions on them, review metadata, keys of contexts."""

import json
import re
from collections.abc import Iterator
from typing import Any

from ...diagnostic import Diagnostic, Edit
from ...documents.json_tree import JsonNode
from ...documents.seed.validation import meant_condition
from ...evaluate.conditions.comparison import ConditionError, pattern_of
from ...source import NOWHERE, Span
from ...trees import walk
from ...trees.expr import Expr, Field, Literal, Name
from ...trees.seed import Aggregate, DefineFilter, Extracted, FilterUse, Lookup, Reduce, SeedStep, Tally
from ...unicode_forms import canonical, caseless
from .context import Compared, Context, compared, expressions_of, fields_in, lint, lint_of_steps, number_of

_NUMBERS = ("stars", "useful", "year", "month", "age_days")


def _wheres(step: SeedStep) -> Iterator[Expr]:
    """Yield the conditions in a step's ``where``, and the field of an aggregate. Other expressions are checked elsewhere."""
    where = step.where if isinstance(step, DefineFilter | Aggregate | Tally | Reduce) else None
    for part in where or ():
        if not isinstance(part, FilterUse):
            yield part
    if isinstance(step, Aggregate | Tally) and isinstance(step.element, Field):
        yield step.element
    if isinstance(step, Reduce):
        yield from (source for source in step.sources if source is not None)


@lint_of_steps("SEED045")
def unknown_fields(context: Context, step: SeedStep) -> Iterator[Diagnostic]:
    """Report unknown fields and unknown review metadata, in conditions and as the field of an aggregate."""
    known = tuple(context.fields)
    seen: set[int] = set()
    for expr in _wheres(step):
        for namespace, name, node in fields_in(expr):
            if node.span.start in seen and node.span != NOWHERE:
                continue  # a "between" has two nodes for its field
            seen.add(node.span.start)
            is_known = name in context.fields or name in context.unread_fields or not context.has_fields
            if namespace == "extraction" and not is_known:
                yield _unknown(context, node, name, known, "unknown field", "the fields are")
            elif namespace == "meta" and name not in context.meta:
                yield _unknown(context, node, name, context.meta, "a review has no", _META_LISTING)


_META_LISTING = 'other keys are declared as {"meta": {"KEY": "TYPE"}}; a review has'


def _unknown(context: Context, node: Any, name: str, known: tuple[str, ...], message: str, listing: str) -> Diagnostic:
    near = context.suggestion(name, known)
    edits = context.name_edit(node.span, name, near) if near else ()
    shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
    hint = f"did you mean {near}?" if near else f"{listing} {shown}" if known else "nothing is extracted"
    return context.diagnostic("SEED045", f"{message} {name}", node.span, hint, edits=edits)


@lint_of_steps("SEED040")
def unknown_names(context: Context, step: SeedStep) -> Iterator[Diagnostic]:
    """Report unknown names in conditions, and as the source of a lookup."""
    places = [node for expr in _wheres(step) for node in walk(expr) if isinstance(node, Name)]
    if isinstance(step, Lookup) and isinstance(step.source, Name):
        places.append(step.source)
    for node in places:
        if node.name not in context.step_names:
            near = context.suggestion(node.name, context.names)
            hint = f"did you mean {near}?" if near else ""
            if not near and isinstance(step, Lookup):
                near = f"context.{node.name}"
                hint = f"values of the context have the prefix context.: write {near:.100}"
            edits = context.name_edit(node.span, node.name, near) if near else ()
            yield context.diagnostic("SEED040", f"unknown step {node.name}", node.span, hint, edits=edits)


@lint_of_steps("SEED044")
def unlisted(context: Context, step: SeedStep) -> Iterator[Diagnostic]:
    """Report comparisons with values that an enum does not list. In expressions, the expression check reports such comparisons."""
    for expr in _wheres(step):
        for each in compared(expr):
            field = context.fields.get(each.name) if each.namespace == "extraction" else None
            if field is None or field.type != "enum" or not field.values or each.test not in _EQUALITY:
                continue
            listed = set(map(canonical, field.values))
            for value in each.values:
                if isinstance(value, Literal) and isinstance(value.value, str) and canonical(value.value) not in listed:
                    yield _unlisted(context, field, value)


_EQUALITY = ("==", "!=", "in", "not in")


def _unlisted(context: Context, field: Extracted, value: Literal) -> Diagnostic:
    message = f"{field.name} is never {json.dumps(value.value, ensure_ascii=False):.60}"
    tested = meant_condition(str(value.value))
    if tested is not None and tested[1] in field.values and not _is_in_string(context, value.span):
        meant = json.dumps({tested[0]: tested[1]}, ensure_ascii=False)
        return context.diagnostic("SEED044", message, value.span, f"write {meant:.60}", edits=[Edit(value.span, meant)])
    near = context.suggestion(str(value.value), tuple(field.values)) if tested is None else None
    edits = [Edit(value.span, json.dumps(near, ensure_ascii=False))] if near else []
    listed = ", ".join(list(field.values)[:8]) + (", ..." if len(field.values) > 8 else "")
    hint = f"did you mean {near}?" if near else f"its values are {listed}"
    return context.diagnostic("SEED044", message, value.span, hint, edits=edits)


@lint_of_steps("SEED064")
def misfit_comparisons(context: Context, step: SeedStep) -> Iterator[Diagnostic]:
    """Report comparisons that the type of a field does not allow."""
    for expr in expressions_of(step):
        for each in compared(expr):
            kind = _kind(context, each.namespace, each.name)
            if kind is not None:
                yield from _misfit(context, kind, each)


@lint_of_steps("SEED064")
def misfit_elements(context: Context, step: SeedStep) -> Iterator[Diagnostic]:
    """Report sums of values that are not numbers. Report maxima and minima of values that have no order."""
    if not isinstance(step, Aggregate) or not isinstance(step.element, Field):
        return
    element = step.element
    kind = _kind(context, element.namespace, element.name)
    if step.operation == "sum" and kind not in (None, "int", "float"):
        hint = "count the extractions where it is true" if kind == "bool" else "a sum takes numbers"
        yield context.diagnostic("SEED064", f"{element.name} is {_A[kind]} and can't be summed", element.span, hint)
    elif step.operation in ("max", "min") and kind in ("enum", "bool", "list"):
        hint = "convert each value to a number with a case" if kind == "enum" else ""
        yield context.diagnostic("SEED064", f"{element.name} is {_A[kind]}, which has no order", element.span, hint)


_A: dict[Any, str] = {
    "enum": "an enum", "int": "a whole number", "float": "a number", "bool": "true or false", "text": "a string", "list": "a list",
}  # fmt: skip


def _kind(context: Context, namespace: str, name: str) -> str | None:
    if namespace == "meta":
        kind = "float" if name in _NUMBERS else "text" if name == "date" else context.seed.meta.get(name)
        return "float" if kind == "int" else kind
    field = context.fields.get(name)
    return field.type if field is not None else None


def _misfit(context: Context, kind: str, each: Compared) -> Iterator[Diagnostic]:
    if kind == "list" and not any(isinstance(v, Literal) and v.value is None for v in each.values):
        message = f"{each.name} is a list and never equals a single value"
        hint = f'in an expression: "x" in {each.namespace}.{each.name}'
        yield context.diagnostic("SEED064", message, each.subject.span, hint)
        return
    if each.test not in (*_EQUALITY, "is", "is not") and kind in ("enum", "bool"):
        hint = 'list the values: {"in": [...]}' if kind == "enum" else "compare it with true or false"
        message = f"{each.name} is {_A[kind]}, which has no order"
        yield context.diagnostic("SEED064", message, each.subject.span, hint)
        return
    for value in each.values:
        if (told := _wrong(kind, value)) is not None:
            literal, text = value, told
            inside = _is_in_string(context, literal.span)
            text = "" if inside and text.startswith("{") else text
            edits = [Edit(literal.span, context.escaped(text) if inside else text)] if text else []
            hint = f"write {text}" if text else f"compare it with {_A[kind]}"
            message = f"{each.name} is {_A[kind]}, never {_literal_text(literal)}"
            yield context.diagnostic("SEED064", message, literal.span, hint, edits=edits)


def _wrong(kind: str, value: Any) -> str | None:
    """Return None if a field of this kind may have the value ``value``.

    Otherwise return the text of the value that was probably meant, or "" if this is unclear.
    """
    number = number_of(value)
    plain = value.value if isinstance(value, Literal) else number
    if plain is None and number is None:
        return None
    if kind in ("int", "float"):
        if number is not None:
            return None
        tested = meant_condition(plain) if isinstance(plain, str) else None
        if tested is not None and _is_number(tested[1]):
            return f'{{"{tested[0]}": {tested[1]}}}'
        return plain if isinstance(plain, str) and _is_number(plain) else ""
    if kind == "bool":
        if isinstance(plain, bool):
            return None
        text = str(plain).lower()
        return (
            text
            if text in ("true", "false")
            else {"yes": "true", "no": "false", "1": "true", "0": "false"}.get(text, "")
        )
    if isinstance(plain, str):
        return None
    return json.dumps(str(plain).lower() if isinstance(plain, bool) else str(plain)) if kind == "text" else ""


def _is_number(text: str) -> bool:
    try:
        return isinstance(json.loads(text), int | float) and text.strip() == text and text not in ("true", "false")
    except ValueError:
        return False


def _literal_text(value: Any) -> str:
    number = number_of(value)
    shown = json.dumps(number if number is not None else value.value, ensure_ascii=False)
    return shown if len(shown) <= 60 else shown[:59] + "…"


def _is_in_string(context: Context, span: Span) -> bool:
    """Return whether ``span`` is inside a JSON string, and is not a complete value."""
    node = context.node(*context.path_at(span))
    return node is not None and isinstance(node.value, str) and node.start < span.start


@lint("SEED062")
def declared(context: Context) -> Iterator[Diagnostic]:
    """Report fields whose names clash, enums without values or with ambiguous values, and seeds that extract nothing."""
    seen: dict[str, Extracted] = {}
    for field in context.seed.fields:
        node = context.node(*context.path_at(Span(field.span.start, field.span.start))) if context.root else None
        at = node.fields["name"].span if node is not None and "name" in node.fields else field.span
        if field.name in seen:
            yield context.diagnostic("SEED063", f"two fields have the name {field.name}", at, "rename one of them")
        elif field.name == "meta":
            hint = "rename it: in formulas, e['meta'] is the metadata of the review"
            yield context.diagnostic("SEED063", "the field name meta is reserved", at, hint)
        elif field.name.casefold() in {name.casefold() for name in seen}:
            message = f"{field.name} differs from another field only in case"
            yield context.diagnostic("SEED063", message, at, "rename one of them", severity="warning")
        seen.setdefault(field.name, field)
        if field.type == "enum":
            yield from _enum(context, field, at)
    if not context.seed.fields and not context.field_nodes and context.has_fields:
        span = context.root.span if context.root is not None else NOWHERE
        place = Span(span.start, span.start + 1)
        yield context.diagnostic(
            "SEED069", "the seed extracts no fields", place, "without fields, steps can use only meta and context"
        )


def _enum(context: Context, field: Extracted, at: Span) -> Iterator[Diagnostic]:
    if len(field.values) == 1:
        hint = "add a value for reviews where it does not apply, such as none"
        yield context.diagnostic("SEED062", f"the enum {field.name} has only one value", at, hint)
    folded: dict[str, str] = {}
    for value in field.values:
        key = caseless(value.strip())
        if key in folded:
            message = f"the values {folded[key]!r} and {value!r} of {field.name} are the same: case and surrounding spaces are ignored"
            yield context.diagnostic("SEED066", message, at, "remove one of them")
        folded.setdefault(key, value)


@lint("SEED065")
def contexts(context: Context) -> Iterator[Diagnostic]:
    """Report keys that the given contexts do not have, and sources of lookups that are not strings in these contexts."""
    given = context.contexts
    if not given:
        return
    keys = tuple(dict.fromkeys(key for each in given for key in each if key != "reviews"))
    seen: set[int] = set()
    for step, expr in context.expressions():
        for namespace, name, node in fields_in(expr):
            if namespace != "context" or (node.span.start in seen and node.span != NOWHERE):
                continue
            seen.add(node.span.start)
            lacking = sum(name not in each for each in given)
            if lacking == len(given):
                near = context.suggestion(name, keys)
                edits = context.name_edit(node.span, name, near) if near else ()
                hint = f"did you mean {near}?" if near else f"the context has {', '.join(keys[:12])}" if keys else ""
                yield context.diagnostic("SEED065", f"the context has no {name}", node.span, hint, edits=edits)
            elif lacking:
                message = f"{lacking:,} of {len(given):,} contexts have no {name}"
                yield context.diagnostic("SEED065", message, node.span, severity="warning")
            elif isinstance(step, Lookup) and node is step.source:
                odd = next((each[name] for each in given if not _is_text(each[name])), None)
                if odd is not None:
                    message = f"in some contexts, {name} is neither a string nor a list of strings"
                    yield context.diagnostic("SEED065", message, node.span, severity="warning")


def _is_text(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(isinstance(item, str) or item is None for item in value)
    return value is None or isinstance(value, str)


# Rules about reviews: the keywords of the filter, and the prompt.

PLACEHOLDERS = ("review_text", "review_date", "review_stars", "review_useful")
"""Allowed placeholders in a prompt. See ``docs/design/seed.md#extraction``."""
_MOST = 100
"""Maximum number of keywords that are reported. If there are more faulty keywords, they usually have a common cause."""
_PLACEHOLDER = re.compile(r"\{(review_\w{0,40}|[a-z_]{0,20}review\w{0,20}|text|stars|date|useful)\}", re.IGNORECASE)


def _keywords(context: Context) -> JsonNode | None:
    path = ("filter", "keywords") if context.seed.form == "002" else ("filter_keywords",)
    return context.node(*path)


def _prompt(context: Context) -> JsonNode | None:
    return context.node(*(("extract", "prompt") if context.seed.form == "002" else ("extraction_prompt",)))


@lint("SEED057")
def none(context: Context) -> Iterator[Diagnostic]:
    """Report a filter without keywords, which keeps all reviews. A seed that only extracts is meant to read all of them."""
    if context.seed.extracts_only:
        return
    node = _keywords(context)
    around = context.node("filter") if context.seed.form == "002" else None
    if around is not None and not isinstance(around.value, dict):
        return  # the keywords may be under an unknown key
    if node is None and context.has_unknown_keys:
        return
    if not context.seed.keep.keywords and (node is None or node.value == []):
        root = context.root
        span = node.span if node is not None else Span(root.start, root.start + 1) if root is not None else NOWHERE
        hint = "each review costs one model call; keywords select the relevant reviews"
        yield context.diagnostic("SEED057", "the filter has no keywords: all reviews are kept", span, hint)


@lint("SEED056")
def keywords(context: Context) -> Iterator[Diagnostic]:
    """Report keywords that keep too many reviews, and keywords that are listed twice."""
    keep, node = context.seed.keep, _keywords(context)
    items = _items(node)
    seen: dict[str, int] = {}
    told = 0
    for number, word in enumerate(keep.keywords):
        span = items[number].span if number < len(items) else NOWHERE
        folded = caseless(word) if keep.match != "regex" else canonical(word)
        if told >= _MOST:
            return
        if not word.strip():
            told += 1
            yield context.diagnostic("SEED068", "an empty keyword keeps all reviews", span, "remove it",
                                edits=_without(context, node, number))  # fmt: skip
        elif folded in seen:
            told += 1
            message = f"the keyword {word!r:.60} is listed twice"
            yield context.diagnostic(
                "SEED058", message, span, "remove one of them", edits=_without(context, node, number)
            )
        elif keep.match == "substring" and len(word.strip()) <= 3:
            told += 1
            message = f"the keyword {word!r} is part of many other words"
            hint = (
                'write a longer keyword, or "match": "word" in the filter'
                if context.seed.form == "002"
                else "write a longer keyword"
            )
            yield context.diagnostic("SEED056", message, span, hint)
        seen.setdefault(folded, number)


def _items(node: JsonNode | None) -> list[JsonNode]:
    """Return the keywords in the document that are strings."""
    return [item for item in (node.items if node is not None else ()) if isinstance(item.value, str)]


def _without(context: Context, node: JsonNode | None, number: int) -> tuple[Edit, ...]:
    """Return the edit that removes a keyword and its comma from the list. Return () if not all keywords are strings."""
    if node is None or context.root is None:
        return ()
    if len(_items(node)) != len(node.items):
        return ()
    if number:
        return (Edit(Span(node.items[number - 1].end, node.items[number].end), ""),)
    if len(node.items) > 1:
        return (Edit(Span(node.items[0].start, node.items[1].start), ""),)
    return (Edit(node.items[0].span, ""),)


@lint("SEED059")
def patterns(context: Context) -> Iterator[Diagnostic]:
    """Report keywords that are invalid regular expressions."""
    if context.seed.keep.match != "regex":
        return
    node = _keywords(context)
    told = 0
    for number, word in enumerate(context.seed.keep.keywords):
        try:
            pattern_of(word)
        except ConditionError as error:
            told += 1
            items = _items(node)
            span = items[number].span if number < len(items) else NOWHERE
            yield context.diagnostic("SEED059", str(error), span, error.hint or "")
            if told >= 20:
                return


@lint("SEED060")
def prompts(context: Context) -> Iterator[Diagnostic]:
    """Report prompts without the review's text, and unknown placeholders."""
    prompt, node = context.seed.prompt, _prompt(context)
    if prompt is None:
        return
    span = node.span if node is not None else NOWHERE
    near = {"text": "review_text", "stars": "review_stars", "date": "review_date", "useful": "review_useful",
            "review": "review_text"}  # fmt: skip
    found = [match for match in _PLACEHOLDER.finditer(prompt) if match[1] not in PLACEHOLDERS]
    is_without = "{review_text}" not in prompt
    meant = [_suggested_placeholder(context, match[1], near) for match in found[:20]]
    misspelt = meant.index("review_text") if is_without and "review_text" in meant else None
    if misspelt is not None and node is not None:
        match = found.pop(misspelt)
        del meant[misspelt]
        at = context.placed(node, match.start(), match.end(), "").span
        edits: tuple[Edit, ...] = (context.placed(node, match.start(1), match.end(1), "review_text"),)
        message = f"the prompt does not contain the review: {match[0]} is sent unchanged"
        yield context.diagnostic("SEED060", message, at, "did you mean {review_text}?", edits=edits)
    elif is_without:
        hints = ["{review_text} is replaced by the text of the review"]
        edits = ()
        if node is not None:
            edits = (Edit(Span(node.end - 1, node.end - 1), "\\n\\n{review_text}"),)
            hints.append("insert it where the review belongs, for example at the end")
        yield context.diagnostic(
            "SEED060", "the prompt does not contain the review", Span(span.start, span.start + 1), *hints, edits=edits
        )
    for match, name in zip(found, meant, strict=False):
        if not match[1].lower().startswith("review") and not is_without:
            continue  # braces around other words are text
        edits = ()
        if name and node is not None:
            edits = (context.placed(node, match.start(1), match.end(1), name),)
        hint = (
            f"did you mean {{{name}}}?"
            if name
            else f"the placeholders are {', '.join(f'{{{each}}}' for each in PLACEHOLDERS)}"
        )
        at = context.placed(node, match.start(), match.end(), "").span if node is not None else NOWHERE
        yield context.diagnostic(
            "SEED061", f"unknown placeholder {match[0]}; it is sent to the model unchanged", at, hint, edits=edits
        )


def _suggested_placeholder(context: Context, name: str, near: dict[str, str]) -> str | None:
    return near.get(name.lower()) or context.suggestion(name, PLACEHOLDERS)


@lint("SEED067")
def reviews_kept(context: Context) -> Iterator[Diagnostic]:
    """Report how many of the given reviews each keyword keeps."""
    counts, node = context.kept, _keywords(context)
    if counts is None or not context.seed.keep.keywords:
        return
    span = Span(node.start, node.start + 1) if node is not None else NOWHERE
    items = _items(node)
    for number, (word, count) in enumerate(
        list(zip(context.seed.keep.keywords, counts.by_keyword, strict=False))[:_MOST]
    ):
        at = items[number].span if number < len(items) else NOWHERE
        shown = json.dumps(word if len(word) <= 40 else word[:39] + "…", ensure_ascii=False)
        yield context.diagnostic("SEED067", f"{shown} keeps {count:,} of {counts.total:,} reviews", at)
    message = f"all keywords together keep {counts.kept:,} of {counts.total:,} reviews"
    yield context.diagnostic("SEED067", message, span, severity="warning" if counts.total and not counts.kept else None)


@lint("SEED071")
def cut(context: Context) -> Iterator[Diagnostic]:
    """Report how many of the given reviews are truncated."""
    counts, node = context.kept, context.node("review_handling")
    if counts is None or not counts.cut:
        return
    share = counts.cut_characters / counts.characters
    most = context.seed.review_handling.max_length
    message = (
        f"{counts.cut:,} of {counts.kept:,} kept reviews would be cut at {most:,} characters; {share:.0%} of the text of all kept "
        "reviews would not be read"
    )
    hint = 'remove review_handling, or write "strategy": "split": long reviews are then read in parts'
    yield context.diagnostic("SEED071", message, node.span if node is not None else NOWHERE, hint)
