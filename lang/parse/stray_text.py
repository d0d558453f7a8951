"""Which lines outside of commands and steps are text by all signs, so that nothing is lost where they become remarks.

A line that only may be text gets no such edit: who makes the edits of a check without a look would run a program with a
part of it left out.
"""

import re

__all__ = ["is_ended", "is_remark", "reads_as_text"]

_ASKED = (
    "SHOW LIST DISPLAY PRINT RETURN GIVE TELL ASK DESCRIBE SUMMARIZE SORT ORDER FILTER GET FETCH SEARCH LOOKUP LOAD SAVE STORE"
    " KEEP PUT ADD INSERT MERGE CREATE DEFINE DROP DELETE REMOVE CLEAR CALL RUN EXECUTE USE EXPORT IMPORT OUTPUT WRITE READ"
    " TAKE GROUP SUM AVERAGE COMPUTE CALCULATE COMPARE CHECK VERIFY EXTRACT LABEL TRAVERSE EXPAND FOLLOW LIMIT WHERE AND OR THEN"
    " ELSE"
)
_REQUESTS = frozenset(_ASKED.split())
"""First words of a line that asks for something: left out, something would be missing."""

_TOLD = re.compile(
    r"\b(?:is|are|was|were|be|been|will|would|can|could|should|must|may|might|has|have|had|does|did|do(?:es)?n't|let's|i|i'm|i'll|we"
    r"|we'll|you|your|it|its|it's|they|them|their|this|these|that|those|here|here's|below|above|follows?|following|please|sure|okay"
    r"|certainly|hope|helps|note|let me|let us)\b",
    re.IGNORECASE,
)
"""Words of sentences, which no query has."""

_ENDED = re.compile(r"[.:!?][)\]\"'*_`]{0,3}\Z")
_RULE = re.compile(r"[-=*_~ \t]{3,}|\|.*\||(?:={2,}|-{3,}|\*{3,})[\w \t]{1,60}(?:={2,}|-{3,}|\*{3,})")
_REMARK = re.compile(r"--(?!-)|//|/\*|\*/")
_WORD = re.compile(r"[^\W\d][\w']*")


def is_ended(line: str) -> bool:
    """Say whether the line ends as a sentence or a heading does."""
    return _ENDED.search(line) is not None


def is_remark(line: str) -> bool:
    """Say whether the line begins as a remark of another language does, or is a rule or a row of a table."""
    return _REMARK.match(line) is not None or _RULE.fullmatch(line) is not None


def reads_as_text(line: str, before: str = "") -> bool:
    """Say whether a line without blanks around it is a sentence, a heading, or goes on with the text ``before`` it."""
    body = line.lstrip("*_>#- \t")
    word = _WORD.match(body)
    if not word or word[0].upper() in _REQUESTS:
        return False
    if len(word[0]) > 1 and word[0].isupper() and not is_ended(body):
        return False
    if line.endswith("**"):
        return True  # a heading in bold
    goes_on = bool(before) and not is_ended(before) and body[0].islower()
    return goes_on or is_ended(body) or _TOLD.search(body) is not None
