"""Sessions: what a graph, a state and models are opened as, for every interface."""
