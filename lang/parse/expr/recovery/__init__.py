"""The tolerant expression parser: reads any text as a tree, and reports a fault for each invalid construct.

Modules: ``diagnosis`` (reports the faults, and tries every edit that it offers), ``pieces`` (the lexer), ``cursor`` and ``reader`` (read
the lexer's pieces), ``operands`` (values), ``foreign_calls`` and ``foreign_conditionals`` (syntax of other languages).
"""
