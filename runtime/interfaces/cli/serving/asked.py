"""What a person asked of ``serve``, as values."""

from attrs import frozen

__all__ = ["ServeAsked"]


@frozen
class ServeAsked:
    """The arguments of ``knotwork serve``, under the names that the command line has."""

    host: str
    port: int
    llm: str | None
    models: tuple[str, ...]
    history: str | None
    keep_runs: int
    templates: str | None
    cors: tuple[str, ...]
    keys: str | None
    add_key: str | None
    remove_key: str | None
    list_keys: bool
    max_runs: int
    max_runs_per_key: int
    rate_per_key: str
    time_limit: float
    grace: float
    max_calls: int | None
    max_tokens: int | None
    max_cost: float | None
    price: str | None
    cache: bool
    log: bool
