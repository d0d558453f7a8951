"""Parse prompt scripts.

``parse_lwt`` reads a whole script, strictly or leniently; ``StepFeed`` reads one that is still streaming in.

Modules: ``engine`` (Lark, the grammar and its cache, nodes from tokens), ``shapes`` (heads, bullets, fences, options),
``script`` (the strict and the lenient parser, ``StepFeed``). ``recovery`` explains faulty texts: ``envelope`` and
``surroundings`` (text around the steps), ``diagnosis`` (faults inside and outside of steps), ``quotes``, ``foreign_syntax``
(of other languages) and ``references`` (misspelt references, and trying fixes).
"""

from .script import StepFeed, parse_lwt

__all__ = ["StepFeed", "parse_lwt"]
