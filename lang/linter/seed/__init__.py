"""Checks of a Formula Seed."""
