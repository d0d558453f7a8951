"""PROCESS, CLASSIFY and ANALYZE: what a model is shown and asked, and what becomes of its answers."""
