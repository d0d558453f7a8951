"""The port to graphs over NetworkX."""
