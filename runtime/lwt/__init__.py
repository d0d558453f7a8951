"""Runs checked prompt scripts against models."""
