"""Text to trees: ``parse_gasl`` reads a program, ``parse_command`` one statement of it, ``parse_condition`` a condition.

The rooms, in the order a text passes them: ``engine`` (Lark, the grammar and its cache), ``builder``, ``conditions`` and
``nodes`` (nodes from tokens), ``remarks`` (comments inside commands), ``script`` (the readings). For what can't be read:
``recover`` (statement by statement, blocks), ``lines`` (where statements begin and end), ``outside`` (prose, fences),
``broken`` (a statement and tries at mending it), ``faults`` (explains and mends until it reads) and those it asks:
``heads`` (first words), ``foreign`` (other languages' conditions), ``names``, ``values``, ``words``, ``shape``.
"""

from .engine import keywords
from .script import parse_command, parse_condition, parse_gasl

__all__ = ["keywords", "parse_command", "parse_condition", "parse_gasl"]
