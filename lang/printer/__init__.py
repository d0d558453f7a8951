"""Printers: they turn trees back into text, with one form for each construct. Each language has its own module."""
