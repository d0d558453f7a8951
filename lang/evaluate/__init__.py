"""Evaluation of conditions, expressions and seeds. Each of these has an interpreter as the reference, and a faster code generator."""
