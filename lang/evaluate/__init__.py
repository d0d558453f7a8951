"""Evaluation of conditions, expressions and seeds. Each has an interpreter as the reference, and a faster code generator."""
