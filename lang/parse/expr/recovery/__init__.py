"""The tolerant reading of an expression: any text to a tree, with a fault for each thing that expressions don't have.

``recover`` says what is wrong and tries every edit that it offers; ``pieces`` with ``numerals`` and ``quotes`` is the
lexer, ``cursor`` and ``reader`` the walk; ``operands``, ``calls``, ``comprehensions`` and ``strings`` read values, ``signs``,
``conditionals`` and ``phrases`` other languages' forms, ``around`` what stands around (fences, statements).
"""
