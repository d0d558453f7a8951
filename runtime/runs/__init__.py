"""Saved runs: their journals, directories, event logs and debug logs."""
