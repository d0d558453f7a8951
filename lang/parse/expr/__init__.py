"""Text to the tree of an expression: ``parse_expr``.

The rooms, in the order a text passes them: ``engine`` (Lark, the grammar and its cache), ``builder``, ``chains`` and
``literals`` (nodes from tokens). A text that Lark or the builder refuses is read again by the ``tolerant`` reading, which takes
what people and models write instead. ``words`` has the tables of both. ``written`` writes trees as text; ``lang.printer.expr``
hands it out.
"""

from .script import ExprRead, parse_expr

__all__ = ["ExprRead", "parse_expr"]
