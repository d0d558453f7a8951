"""Checks of what was read, before it costs anything. A folder a language."""
