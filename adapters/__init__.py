"""Interfaces to models, graphs and the state (ports), and their implementations (adapters). A port is a module or a package."""
