"""Runs that are kept: their journals, directories, event logs and debug logs."""
