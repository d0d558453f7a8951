"""Reference data of the languages: operations, functions, settings, rules, and the schema of a graph."""
