"""Ports to the outside world (models, graphs, state) and their adapters; a port is one module or package."""
