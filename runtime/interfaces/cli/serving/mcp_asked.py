"""What a person asked of ``mcp``, as values."""

from attrs import frozen

__all__ = ["McpAsked"]


@frozen
class McpAsked:
    """The arguments of ``knotwork mcp``, under the names that the command line has."""

    graph: str | None
    state: str | None
    read_only: bool
    force: bool
    raw: bool
    chunks: str | None
    llm: str | None
    models: tuple[str, ...]
    no_model: bool
    port: int | None
    host: str
    keys: str | None
    rate_per_key: float
    log: bool
    max_runs: int
    time_limit: float
    max_calls: int | None
    max_tokens: int | None
    max_cost: float | None
    price: str | None
    cache: bool
