"""Betweenness summed up source by source, so that what is done counts when the time is over.

The algorithm is Brandes' (2001), as ``networkx.betweenness_centrality`` has it, on lists of integers.
"""

from typing import Any

__all__ = ["PathSums"]


class PathSums:
    """How many shortest paths go through each node, from the sources so far. ``done`` counts them."""

    def __init__(self, graph: Any) -> None:
        import numpy as np

        self.nodes = list(graph)
        place = {node: at for at, node in enumerate(self.nodes)}
        self._next = [[place[other] for other in graph.adj[node]] for node in self.nodes]
        self._directed = bool(graph.is_directed())
        self._state: tuple[int, Any] = (0, np.zeros(len(self.nodes)))

    @property
    def done(self) -> int:
        """How many sources were summed up."""
        return self._state[0]

    def add(self, source: int) -> None:
        """Add the shortest paths from one node. Whatever ends it in the middle, they count as a whole or not at all."""
        import numpy as np

        nexts = self._next
        distance = [-1] * len(nexts)
        paths = [0.0] * len(nexts)
        distance[source], paths[source] = 0, 1.0
        order, before = [source], dict[int, list[int]]()
        for node in order:
            beyond, through = distance[node] + 1, paths[node]
            for other in nexts[node]:
                if distance[other] < 0:
                    distance[other] = beyond
                    order.append(other)
                if distance[other] == beyond:
                    paths[other] += through
                    before.setdefault(other, []).append(node)
        share = [0.0] * len(nexts)
        for node in reversed(order):
            if node == source:
                continue
            part = (1 + share[node]) / paths[node]
            for earlier in before[node]:
                share[earlier] += paths[earlier] * part
        share[source] = 0.0
        count, sums = self._state
        self._state = (count + 1, sums + np.array(share))

    def values(self) -> dict[Any, float]:
        """Return the betweenness of each node, normalised; estimated where not every node was a source."""
        done, sums = self._state
        count = len(self.nodes)
        if not done:
            return {}
        scale = 1.0 if count <= 2 else 1 / ((count - 1) * (count - 2))
        if done < count:
            scale *= count / done
        return dict(zip(self.nodes, (sums * scale).tolist(), strict=True))
