"""Calls of models: one call with its limits, what calls cost, and clients put together from their names."""
