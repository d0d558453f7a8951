"""Reads expressions: text to tree, and what people and models write instead."""
