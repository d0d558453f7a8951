"""Parse prompt scripts.

``parse_lwt`` parses a complete script, strictly or leniently; ``StepFeed`` parses a script while its text arrives in pieces.

Modules: ``engine`` (Lark, the grammar and its cache, nodes from tokens), ``shapes`` (patterns of heads, bullets, fences and
options), ``script`` (the strict and the lenient parser, ``StepFeed``). ``recovery`` explains faulty text: ``envelope`` and
``surroundings`` (text around the steps), ``diagnosis`` (faults inside and outside steps), ``quotes`` (missing and inner
quotes), ``foreign_syntax`` (syntax of other languages) and ``references`` (misspelt references, and tests of fixes).
"""

from .script import StepFeed, parse_lwt

__all__ = ["StepFeed", "parse_lwt"]
