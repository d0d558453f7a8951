"""What options name, as a person wrote it: what commands run on, and what the calls of models may cost."""

from attrs import frozen

from ..session.workspace import Ground as Wanted

__all__ = ["Ground", "Limits"]


@frozen
class Ground:
    """What GASL runs on: a graph, a state's folder (None: in memory), the chunks' file, and the question that it is about.

    ``force``: go on with a state whose findings are of another graph; ``raw``: read the graph's values as they are written.
    """

    graph: str | None = None
    state: str | None = None
    chunks: str | None = None
    query: str | None = None
    force: bool = False
    raw: bool = False

    def wanted(self) -> Wanted:
        """Return it as it is opened."""
        return Wanted(self.graph, self.state, self.chunks, self.query, self.force, raw=self.raw)


@frozen
class Limits:
    """What calls may cost; ``price`` as written (IN/OUT)."""

    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    price: str | None = None
    rate: float | None = None
    cache: bool = True
