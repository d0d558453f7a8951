"""Evaluation of conditions, expressions and seeds: each has an interpreter, the reference, and a code generator for speed."""
