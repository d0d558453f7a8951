"""The catalogue of diagnostics: every code, what it means, why it matters, a text that has it and one that doesn't.

``docs/reference/rules.md`` is made from it, and a test reads every example. Who finds a fault (``lang.parse`` or
``lang.linter``) makes no difference to who meets it. A room a language.
"""

from collections.abc import Mapping
from types import MappingProxyType

from .files import FILE_RULES
from .lwt import LWT_RULES
from .rule import Rule

__all__ = ["RULES", "Rule"]

RULES: Mapping[str, Rule] = MappingProxyType({rule.code: rule for rule in (*LWT_RULES, *FILE_RULES)})
"""All rules by code, in the order of the reference."""
