"""Printers: they turn trees back into text, with one spelling of each construct. Each language has its own module."""
