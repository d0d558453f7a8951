"""The tolerant parser of expressions: any text to a tree, with a fault for each invalid construct.

``diagnosis`` reports the faults and tries every edit that it offers; ``pieces`` is the lexer, ``cursor`` and ``reader`` walk
over its pieces; ``operands`` reads values, ``foreign_calls`` and ``foreign_conditionals`` read forms of other languages.
"""
