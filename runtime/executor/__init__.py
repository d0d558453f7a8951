"""Runs GASL commands and plans one after the other, and keeps what happened."""
