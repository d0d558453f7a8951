"""Checks of GASL programs against themselves, the graph and the state."""
