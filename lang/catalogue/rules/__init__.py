"""The catalogue of diagnostics. It gives the meaning of every code, the reason why it matters, a faulty example and a correct example.

``docs/reference/rules.md`` is generated from this catalogue, and a test reads every example. The catalogue covers the findings
of both ``lang.parse`` and ``lang.linter``. Each language has its own module.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from ...diagnostic import nearest
from .case_rules import CASE_RULES
from .document_rules import CLIENT_RULES, FILE_RULES, JSON_RULES, PLAN_RULES, RANK_RULES
from .evaluation_rules import EVALUATION_RULES
from .expr_rules import EXPR_CHECK_RULES, EXPR_RULES
from .gasl_check_rules import GASL_CHECK_RULES
from .gasl_rules import GASL_RULES
from .lwt_rules import LWT_RULES
from .rule import Rule
from .seed_rules import SEED_RULES

__all__ = ["RULES", "Rule", "find_rule", "nearest_rule"]

_ALL = (
    *LWT_RULES,
    *sorted((*GASL_RULES, *GASL_CHECK_RULES), key=lambda rule: rule.code),
    *PLAN_RULES,
    *EXPR_RULES,
    *EXPR_CHECK_RULES,
    *SEED_RULES,
    *RANK_RULES,
    *EVALUATION_RULES,
    *CASE_RULES,
    *JSON_RULES,
    *FILE_RULES,
    *CLIENT_RULES,
)
RULES: Mapping[str, Rule] = MappingProxyType({rule.code: rule for rule in _ALL})
"""Maps the code of each rule to the rule, in the order of the reference page."""


def find_rule(text: str) -> Rule | None:
    """Return the rule whose code or name is ``text``, in upper or lower case; None if no rule matches."""
    return RULES.get(text.upper()) or next((rule for rule in RULES.values() if rule.name == text.lower()), None)


def nearest_rule(text: str) -> str:
    """Return the code or name most similar to ``text``, or "". A code with a different number is never suggested."""
    if re.fullmatch(r"[A-Za-z]+\d{3}", text):
        letters = nearest(text[:-3].upper(), {code[:-3] for code in RULES}) or ""
        return f"{letters}{text[-3:]}" if f"{letters}{text[-3:]}" in RULES else ""
    return nearest(text, [*RULES, *(rule.name for rule in RULES.values())]) or ""
