"""Reads and checks JSON documents that people and models write. Faults are reported as diagnostics with positions."""
