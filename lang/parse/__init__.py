"""Parsers: the only modules that import Lark. One folder per language; ``repairs`` and ``lookahead`` are shared."""
