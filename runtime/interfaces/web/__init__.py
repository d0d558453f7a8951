"""The HTTP server: iterative answers and scripts as an API, and the Lab page. Needs the extra ``server``."""
