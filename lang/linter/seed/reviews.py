"""Rules about reviews: which are kept, and what is asked of each."""

import json
import re
from collections.abc import Iterator

from ...diagnostic import Diagnostic, Edit
from ...documents.json_tree import JsonNode
from ...evaluate.conditions.comparison import ConditionError, pattern_of
from ...source import NOWHERE, Span
from .context import Context, Lint, lint

__all__ = ["LINTS", "PLACEHOLDERS"]

PLACEHOLDERS = ("review_text", "review_date", "review_stars", "review_useful")
"""What stands in braces in a prompt. See ``docs/design/seed.md#extraction``."""
_MOST = 100
"""Keywords that are told of; of more there is one cause."""
_PLACEHOLDER = re.compile(r"\{(review_\w{0,40}|[a-z_]{0,20}review\w{0,20}|text|stars|date|useful)\}", re.IGNORECASE)


def _keywords(context: Context) -> JsonNode | None:
    path = ("filter", "keywords") if context.seed.form == "002" else ("filter_keywords",)
    return context.node(*path)


def _prompt(context: Context) -> JsonNode | None:
    return context.node(*(("extract", "prompt") if context.seed.form == "002" else ("extraction_prompt",)))


@lint("SEED057")
def none(context: Context) -> Iterator[Diagnostic]:
    """A filter without keywords, which keeps all reviews."""
    node = _keywords(context)
    around = context.node("filter") if context.seed.form == "002" else None
    if around is not None and not isinstance(around.value, dict):
        return  # the keywords may be in it
    if node is None and context.has_unknown_keys:
        return
    if not context.seed.keep.keywords and (node is None or node.value == []):
        root = context.root
        span = node.span if node is not None else Span(root.start, root.start + 1) if root is not None else NOWHERE
        hint = "each review is one call; keywords keep the reviews that may tell something"
        yield context.found("SEED057", "there are no keywords: all reviews are kept", span, hint)


@lint("SEED056")
def keywords(context: Context) -> Iterator[Diagnostic]:
    """Keywords that keep too much, or nothing more than others."""
    keep, node = context.seed.keep, _keywords(context)
    items = _items(node)
    seen: dict[str, int] = {}
    told = 0
    for number, word in enumerate(keep.keywords):
        span = items[number].span if number < len(items) else NOWHERE
        folded = word.casefold() if keep.match != "regex" else word
        if told >= _MOST:
            return
        if not word.strip():
            told += 1
            yield context.found("SEED068", "an empty keyword keeps all reviews", span, "leave it out",
                                edits=_without(context, node, number))  # fmt: skip
        elif folded in seen:
            told += 1
            message = f"the keyword {word!r:.60} stands twice"
            yield context.found("SEED058", message, span, "leave one out", edits=_without(context, node, number))
        elif keep.match == "substring" and len(word.strip()) <= 3:
            told += 1
            message = f"{word!r} is also a part of many other words"
            hint = (
                'take a longer keyword, or "match": "word" in the filter'
                if context.seed.form == "002"
                else "take a longer one"
            )
            yield context.found("SEED056", message, span, hint)
        seen.setdefault(folded, number)


def _items(node: JsonNode | None) -> list[JsonNode]:
    """Return the keywords in the document, without what is none."""
    return [item for item in (node.items if node is not None else ()) if isinstance(item.value, str)]


def _without(context: Context, node: JsonNode | None, number: int) -> tuple[Edit, ...]:
    """Return the edit that takes an element and its comma out of a list."""
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
    """Keywords that are to be regular expressions, and are none."""
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
            yield context.found("SEED059", str(error), span, error.hint or "")
            if told >= 20:
                return


@lint("SEED060")
def prompts(context: Context) -> Iterator[Diagnostic]:
    """Prompts that don't say the review, and placeholders that there are not."""
    prompt, node = context.seed.prompt, _prompt(context)
    if prompt is None:
        return
    span = node.span if node is not None else NOWHERE
    near = {"text": "review_text", "stars": "review_stars", "date": "review_date", "useful": "review_useful",
            "review": "review_text"}  # fmt: skip
    found = [match for match in _PLACEHOLDER.finditer(prompt) if match[1] not in PLACEHOLDERS]
    is_without = "{review_text}" not in prompt
    meant = [_meant(context, match[1], near) for match in found[:20]]
    misspelt = meant.index("review_text") if is_without and "review_text" in meant else None
    if misspelt is not None and node is not None:
        match = found.pop(misspelt)
        del meant[misspelt]
        at = context.placed(node, match.start(), match.end(), "").span
        edits: tuple[Edit, ...] = (context.placed(node, match.start(1), match.end(1), "review_text"),)
        message = f"the prompt doesn't say the review: {match[0]} is sent as it stands"
        yield context.found("SEED060", message, at, "did you mean {review_text}?", edits=edits)
    elif is_without:
        hints = ["{review_text} stands for the review"]
        edits = ()
        if node is not None:
            edits = (Edit(Span(node.end - 1, node.end - 1), "\\n\\n{review_text}"),)
            hints.append("put it where the review is to stand, such as at the end")
        yield context.found(
            "SEED060", "the prompt doesn't say the review", Span(span.start, span.start + 1), *hints, edits=edits
        )
    for match, name in zip(found, meant, strict=False):
        if not match[1].lower().startswith("review") and not is_without:
            continue  # other braces are text
        edits = ()
        if name and node is not None:
            edits = (context.placed(node, match.start(1), match.end(1), name),)
        hint = f"did you mean {{{name}}}?" if name else f"there are {', '.join(f'{{{each}}}' for each in PLACEHOLDERS)}"
        at = context.placed(node, match.start(), match.end(), "").span if node is not None else NOWHERE
        yield context.found("SEED061", f"{match[0]} is no placeholder, and is sent as it stands", at, hint, edits=edits)


def _meant(context: Context, name: str, near: dict[str, str]) -> str | None:
    return near.get(name.lower()) or context.suggestion(name, PLACEHOLDERS)


@lint("SEED067")
def kept(context: Context) -> Iterator[Diagnostic]:
    """What each keyword keeps of the reviews given."""
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
        yield context.found("SEED067", f"{shown} keeps {count:,} of {counts.total:,} reviews", at)
    message = f"all keywords together keep {counts.kept:,} of {counts.total:,} reviews"
    yield context.found("SEED067", message, span, severity="warning" if counts.total and not counts.kept else None)


@lint("SEED071")
def cut(context: Context) -> Iterator[Diagnostic]:
    """Reviews of those given that are not read to their end."""
    counts, node = context.kept, context.node("review_handling")
    if counts is None or not counts.cut:
        return
    share = counts.cut_characters / counts.characters
    most = context.seed.review_handling.max_length
    message = (
        f"{counts.cut:,} of {counts.kept:,} kept reviews would be cut at {most:,} characters; {share:.0%} of the text of those kept"
        " would not be read"
    )
    hint = 'leave review_handling out, or write "strategy": "split": long reviews are read in parts then'
    yield context.found("SEED071", message, node.span if node is not None else NOWHERE, hint)


LINTS: tuple[Lint, ...] = (none, keywords, patterns, prompts, kept, cut)
