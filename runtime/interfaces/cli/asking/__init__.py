"""What stands around a question about a graph: what it is asked of, the lines while it goes on, the answer with its evidence."""
