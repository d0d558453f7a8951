"""Removes a model's thoughts from its answer. The rules hold for every answer, typed or not."""

import re

from .answers import BLANK, CutOff, Span, complete_objects, fenced_blocks, is_json_value

_THOUGHT = re.compile(
    r"(?P<open><(?:think|thinking|thoughts?|reasoning|seed:think)\s*>|\[THINK\]|\u25c1think\u25b7|<\|begin_of_thought\|>"
    r"|<\|channel\|>analysis<\|message\|>)"
    r"|</(?:think|thinking|thoughts?|reasoning|seed:think)\s*>|\[/THINK\]|\u25c1/think\u25b7|<\|end_of_thought\|>"
    r"|<\|channel\|>final<\|message\|>",
    re.IGNORECASE,
)
"""The tags around a model's thoughts. Other tags (``<analysis>``, ``<scratchpad>``) are text, because prompts ask for them."""
_OPENINGS = ("<think>", "<thinking>", "<thought>", "<thoughts>", "<reasoning>", "<seed:think>", "[think]", "\u25c1think\u25b7",
             "<|begin_of_thought|>", "<|channel|>analysis<|message|>")  # fmt: skip
_INLINE_CODE = re.compile(r"(?<!`)`[^`\n]++`(?!`)")
_ENDED = re.compile(r"(?:^|\n|[.!?\u2026)\]}>][\"'*_]?)[ \t]*+\Z")
"""Matches the text before a tag that follows a complete sentence, a tag or a line break."""
_BEFORE = 80


def answer_after_thoughts(text: str) -> str | CutOff:
    """Return ``text`` without the model's thoughts; ``CutOff`` if the thoughts are not closed.

    Thoughts are a block (``<think>...</think>`` and similar, see ``_THOUGHT``) at the beginning of the answer, at the beginning
    of a line or after a sentence, and all text before a closing tag without an opening tag. A tag in code, in a JSON value or
    inside a sentence is text. Text without thoughts is returned unchanged. The result is empty if there is only thinking.
    """
    if (
        ("<" not in text and "[" not in text and "\u25c1" not in text)
        or _THOUGHT.search(text) is None
        or is_json_value(text)
    ):
        return text
    begin = _after_first_blocks(text)
    rest = text[begin:]
    kept = _literal_spans(rest)
    parts: list[str] = []
    start, is_text, index, opening = 0, False, 0, ""
    for tag in _THOUGHT.finditer(rest):
        while index < len(kept) and kept[index][1] <= tag.start():
            index += 1
        if not opening and index < len(kept) and kept[index][0] <= tag.start():
            continue
        if tag["open"]:
            is_text = not opening and not _ENDED.search(rest[max(0, tag.start() - _BEFORE) : tag.start()])
            if not opening and not is_text:
                parts.append(rest[start : tag.start()])
                opening = tag[0]
        elif opening or not (is_text or _is_word(rest, tag)):
            parts = parts if opening else []
            start, opening = _after_blank(rest, tag.end()), ""
        else:
            is_text = False
    if opening:
        return CutOff(f"it ends inside the thinking: the end of {opening} is missing")
    return "".join([*parts, rest[start:]]) if begin or start else text


def _after_first_blocks(text: str) -> int:
    """Return the offset after the complete blocks of thoughts at the beginning of ``text``; 0 if there are none."""
    end, is_open = 0, False
    for tag in _THOUGHT.finditer(text):
        if is_open:
            if not tag["open"]:
                end, is_open = _after_blank(text, tag.end()), False
        elif tag["open"] and _after_blank(text, end) == tag.start():
            is_open = True
        else:
            break
    return end


def shown_beginning(text: str) -> str:
    """Return the part of an incomplete answer that may be shown: "" while the answer may be thoughts, and the text after them."""
    rest = text[_after_first_blocks(text) :]
    bare = rest.lstrip(BLANK)
    tag = _THOUGHT.match(bare)
    is_open = (tag is not None and bool(tag["open"])) or (
        len(bare) < 32 and any(each.startswith(bare.lower()) for each in _OPENINGS)
    )
    return "" if not bare or is_open else rest


def _after_blank(text: str, position: int) -> int:
    while position < len(text) and text[position] in BLANK:
        position += 1
    return position


def _literal_spans(text: str) -> list[Span]:
    """Return the spans of code and of JSON objects in ``text``, in order."""
    spans = [outer for outer, _ in fenced_blocks(text)]
    spans += [found.span() for found in _INLINE_CODE.finditer(text)] if "`" in text else []
    spans += complete_objects(text)
    merged: list[Span] = []
    for start, end in sorted(spans):
        if not merged or start >= merged[-1][1]:
            merged.append((start, end))
        elif end > merged[-1][1]:
            merged[-1] = (merged[-1][0], end)
    return merged


def _is_word(text: str, tag: "re.Match[str]") -> bool:
    """Return whether a closing tag is a word of a sentence: ``Write </think> after it``."""
    before, after = text[max(0, tag.start() - _BEFORE) : tag.start()], text[tag.end() : tag.end() + 1]
    if before.endswith(("'", '"', "`", "\u201c", "\u2018", "\u00ab", "(")):
        return True
    return before.endswith((" ", "\t")) and after in tuple(" \t.,;:)?!") and not _ENDED.search(before)
