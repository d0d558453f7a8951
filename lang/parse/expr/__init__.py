"""Text to the tree of an expression: ``parse_expr``.

The rooms, in the order a text passes them: ``engine`` (Lark, the grammar and its cache), ``builder``, ``chains`` and
``literals`` (nodes from tokens). A text that Lark or the builder refuses is read again by the ``tolerant`` reading, which takes
what people and models write instead, and writes the expression anew by ``lang.printer.expr``. ``words`` has the tables of both.
"""

from .script import ExprRead, parse_expr

__all__ = ["ExprRead", "parse_expr"]
