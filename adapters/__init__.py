"""Ports to the outside world (models, graphs, state), one module or package per port, and their adapters."""
