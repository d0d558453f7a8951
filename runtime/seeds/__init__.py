"""Runs Formula Seeds for one or many contexts: filters reviews, extracts fields, computes results."""
