"""Words and sentences that say that there is nothing: they are never an element of a list."""

import re
from collections.abc import Sequence
from typing import Any

from .answers import bare_text
from .literals import written_json

_ABSENT = re.compile(
    r"(?:none|null|nil|n\s*/\s*a|n\.\s*a\.?|[-\u2010-\u2015\u2212.?/_\u2026]*|keine?r?s?|aucune?|ningun[oa]|nessun[oa]|nenhuma?|geen"
    r"|(?:not|none|nothing|never)\s+(?:mentioned|specified|stated|given|provided|available|applicable|indicated|reported|found|listed"
    r"|known|noted|discussed|described))",
    re.IGNORECASE,
)
"""A word or a mark that says that a list has no elements, and is never an element."""
_DENIED = re.compile(
    r"(?:\b(?:no|not|none|nothing|neither|never|cannot|without)\b|n['\u2019]t\b).*\b(?:mention|specif|stat(?:e|ed|es)\b|listed|given|provided|found"
    r"|availab|applica|indicat|report|detect|identif|known|discuss|describ|noted|say|said|appl(?:y|ies)\b)"
    r"|\b(?:nothing|none|unknown|unspecified|unmentioned)\b|^\W*(?:no|not|nope|without|zero|0|empty|keine?|kein[es]?r?)\b",
    re.IGNORECASE | re.DOTALL,
)
"""A sentence that says that there is nothing to list: ``No allergens mentioned.``"""


def denies(text: str) -> bool:
    """Return whether a text that should be an element says that there is nothing."""
    return is_absent(text) or _DENIED.search(text) is not None


def is_absent(text: str) -> bool:
    """Return whether ``text`` is a word or a mark that says that there is nothing: none, N/A, not mentioned, a dash, or no text."""
    return _ABSENT.fullmatch(bare_text(text)) is not None


def absent_element(values: Sequence[Any]) -> str:
    """Return the first element that says that there is nothing, as JSON; "" if there is none."""
    return next(
        (written_json(each) for each in values if each is None or (isinstance(each, str) and is_absent(each))), ""
    )
