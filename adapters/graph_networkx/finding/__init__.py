"""FIND nodes and edges: deciding how, doing it, ordering, and telling when the graph was changed behind it."""
