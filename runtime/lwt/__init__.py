"""Prompt scripts at work: checked trees run against models."""
