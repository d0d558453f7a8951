"""Loops around the languages: iterative answers, rankings, compilation, traversal, search."""
