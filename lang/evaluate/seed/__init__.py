"""Evaluation of a seed's compute steps: a simple interpreter as the reference, and one generated function for all steps.

See ``docs/design/seed.md#compute``.
"""
