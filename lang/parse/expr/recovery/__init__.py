"""The tolerant parser of expressions: reads any text as a tree, and reports a fault for each invalid construct.

``diagnosis`` reports the faults and tries every edit that it offers; ``pieces`` is the lexer, ``cursor`` and ``reader`` read
its pieces; ``operands`` reads values, ``foreign_calls`` and ``foreign_conditionals`` read syntax of other languages.
"""
