"""Graphs from files and generators: a format a room, and what loading changes."""
