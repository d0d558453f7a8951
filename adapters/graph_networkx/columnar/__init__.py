"""The graph by position: tables, columns and adjacency as arrays, kept beside it until it changes."""
