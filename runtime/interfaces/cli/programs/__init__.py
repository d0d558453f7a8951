"""What stands around a GASL program or plan: its graph, state and models, the display while it runs, and what it gives."""
