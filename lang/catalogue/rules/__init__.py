"""The catalogue of diagnostics: every code, what it means, why it matters, a text that has it and one that doesn't.

``docs/reference/rules.md`` is made from it, and a test reads every example. Who finds a fault (``lang.parse`` or
``lang.linter``) makes no difference to who meets it. A room a language.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from ...diagnostic import nearest
from .document_rules import CLIENT_RULES, FILE_RULES, JSON_RULES, PLAN_RULES, RANK_RULES
from .expr_rules import EXPR_CHECK_RULES, EXPR_RULES
from .gasl_rules import GASL_CHECK_RULES, GASL_RULES
from .lwt_rules import LWT_RULES
from .rule import Rule
from .seed_rules import SEED_RULES

__all__ = ["RULES", "Rule", "find_rule", "nearest_rule"]

_ALL = (
    *LWT_RULES,
    *GASL_RULES,
    *GASL_CHECK_RULES,
    *PLAN_RULES,
    *EXPR_RULES,
    *EXPR_CHECK_RULES,
    *SEED_RULES,
    *RANK_RULES,
    *JSON_RULES,
    *FILE_RULES,
    *CLIENT_RULES,
)
RULES: Mapping[str, Rule] = MappingProxyType({rule.code: rule for rule in _ALL})
"""All rules by code, in the order of the reference."""


def find_rule(text: str) -> Rule | None:
    """Return the rule of a code or a name, however it is written; None for neither."""
    return RULES.get(text.upper()) or next((rule for rule in RULES.values() if rule.name == text.lower()), None)


def nearest_rule(text: str) -> str:
    """Return the code or the name that ``text`` may be meant as, "" for none. Another number is another rule, and no slip."""
    if re.fullmatch(r"[A-Za-z]+\d{3}", text):
        letters = nearest(text[:-3].upper(), {code[:-3] for code in RULES}) or ""
        return f"{letters}{text[-3:]}" if f"{letters}{text[-3:]}" in RULES else ""
    return nearest(text, [*RULES, *(rule.name for rule in RULES.values())]) or ""
