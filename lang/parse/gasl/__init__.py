"""GASL text to trees."""
