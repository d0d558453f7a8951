"""What the languages offer: operations, functions, settings, rules, and the schema of a graph."""
