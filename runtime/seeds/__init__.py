"""Runs Formula Seeds: filter, extract and compute, for one or many contexts."""
