"""Immutable values that share what did not change: trees, their hashes, and what changes make of them."""
