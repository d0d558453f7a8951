"""Takes off what stands around an answer: what the model thought before it, ``COMPLETE:``, quotes and marks around all of it."""

import json
import re

__all__ = ["behind_complete", "without_thoughts"]

_COMPLETE = re.compile(r"(?P<marks>[\s*_#>\"'`]*)COMPLETE:")
_PAIRS = ("```", "**", "__", '"', "'", "`", "*", "_")
_THOUGHT = re.compile(
    r"<(/?)(think|thinking|thought|thoughts|reasoning|analysis|scratchpad|reflection)>", re.IGNORECASE
)
_ANSWER = re.compile(r'\{|\[\s*["{]|COMPLETE:')
"""Where an answer may begin."""
_ROUNDS = 16
"""Thoughts before an answer that are left out."""


def without_thoughts(text: str) -> str:
    """Return ``text`` without what stands in ``<think>...</think>`` and the like before the answer begins.

    Thoughts that never end are the rest of the text; where the tag that begins them is missing, they are its beginning.
    """
    for _ in range(_ROUNDS):
        begins, tag = _ANSWER.search(text), _THOUGHT.search(text)
        if tag is None or (begins is not None and begins.start() < tag.start() and not _ends_thoughts(text, tag)):
            break
        if tag[1]:
            text = text[tag.end() :].lstrip()
            continue
        ends = (each for each in _THOUGHT.finditer(text, tag.end()) if each[1] and each[2].lower() == tag[2].lower())
        end = next(ends, None)
        text = text[: tag.start()] + ("" if end is None else text[end.end() :].lstrip())
    return text


def _ends_thoughts(text: str, tag: "re.Match[str]") -> bool:
    """Say whether all before a closing tag, which nothing opens, are thoughts: no answer begins the text, and one follows."""
    return bool(tag[1]) and _ANSWER.match(text) is None and _ANSWER.search(text, tag.end()) is not None


def behind_complete(text: str) -> str | None:
    """Return what stands behind the ``COMPLETE:`` that ``text`` begins with, without marks around it; None where it does not."""
    found = _COMPLETE.match(text)
    if found is None:
        return None
    if text.startswith('"'):
        try:
            inner = json.loads(text)
        except ValueError:
            pass
        else:
            return behind_complete(inner)
    answer = text[found.end() :].rstrip()
    marks = re.sub(r"[\s#>]", "", found["marks"])
    if marks:
        answer = answer.removeprefix(marks) if answer.startswith(marks) else answer.removesuffix(marks[::-1])
    if answer.count("```") % 2:
        answer = answer.removesuffix("```")
    return _unmarked(answer)


def _unmarked(text: str) -> str:
    """Return ``text`` without the pairs of marks that stand around the whole of it: ``"Ada" and "Ben"`` has none."""
    text = text.strip()
    for mark in _PAIRS:
        inner = text[len(mark) : -len(mark)]
        if inner and text.startswith(mark) and text.endswith(mark) and mark not in inner:
            return _unmarked(inner)
    return text
