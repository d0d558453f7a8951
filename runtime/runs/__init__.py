"""Saved runs: journals, directories, event logs and debug logs."""
