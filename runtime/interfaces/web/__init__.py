"""The HTTP server: an API for iterative answers and scripts, and the Lab page. Needs the extra ``server``."""
