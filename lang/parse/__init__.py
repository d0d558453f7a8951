"""Text to trees: the one door to Lark. A folder a language; ``fault`` is what all have."""
