"""Text to trees: the one door to Lark.

``parse_lwt`` reads a whole script, strictly or leniently; ``StepFeed`` reads one that is still arriving.

The rooms, in the order a text passes them: ``engine`` (Lark, the grammar and its cache), ``builder`` (nodes from
tokens), ``shapes`` (what heads, bullets and fences look like), ``between`` and ``faults`` (what is wrong outside and
inside a step, with the fix: ``broken`` tries mends, ``quotes`` finds where a quote belongs, ``tails`` tells options from a
prompt's text, ``habits`` knows other languages', ``reference_slips`` and
``lookalikes`` are references that became text), ``repairs`` (edits and the map of spans back), ``script`` (the two
readings), ``feed``.
"""

from .script import StepFeed, parse_lwt

__all__ = ["StepFeed", "parse_lwt"]
