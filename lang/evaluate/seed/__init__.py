"""Evaluation of a seed's compute steps: a simple interpreter as the reference, and one fused function.

See ``docs/design/seed.md#compute``.
"""
