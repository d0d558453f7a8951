"""What the compute steps of a seed mean: a plain interpreter as the reference, and one fused function.

See ``docs/design/seed.md#compute``.
"""
