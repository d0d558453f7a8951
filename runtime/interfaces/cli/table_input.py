"""Reads the contexts of ``seed run``: interprets the table options, and detects whether a file contains contexts or rows."""

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import asdict, define, field, frozen

from ...api.files import is_stream
from ...api.seed import RequestError, Sampling, TableError, is_table_name, shown_name
from ...api.seed import contexts as table_contexts
from ...api.seed_tables import check_shard
from .contexts import Contexts, Feed
from .inputs import STDIN
from .json_stream import Item
from .output import Misused
from .table_options import columns_of

if TYPE_CHECKING:
    from ...api.seed import SeedTree, TableContexts


@frozen
class TableFlags:
    """The options of a command that concern tables. ``columns`` has one text ``NAME[:TYPE]=COL`` for each ``--column``."""

    group: str | None = None
    text: str | None = None
    columns: tuple[str, ...] = ()
    query: str | None = None
    encoding: str | None = None
    drop_null_groups: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether no option is given."""
        return self == TableFlags()

    def words(self) -> list[str]:
        """Return the options as words of a command line."""
        pairs = [("--group", self.group), ("--text", self.text), ("--query", self.query), ("--encoding", self.encoding)]
        pairs += [("--column", column) for column in self.columns]
        words = [word for name, value in pairs if value is not None for word in (name, value)]
        return [*words, *(["--drop-null-groups"] if self.drop_null_groups else [])]


def sampling_of(
    limit: int | None, sample: int | None, sample_reviews: int | None, random_state: int, shard: str | None = None
) -> Sampling:
    """Return the sampling that the options describe. Raises ``Misused``."""
    try:
        return Sampling(limit, sample, sample_reviews, random_state, shard)
    except RequestError as error:
        raise _misused(error) from None


def check_sharding(seed: "SeedTree", sampling: Sampling) -> None:
    """Raise ``Misused`` if the contexts of ``seed`` can't be computed in parts."""
    try:
        check_shard(seed, sampling)
    except RequestError as error:
        raise _misused(error) from None


def sampling_words(sampling: Sampling) -> list[str]:
    """Return the sampling as words of a command line."""
    return [word for name, value in sampling.as_json().items() for word in (f"--{name.replace('_', '-')}", str(value))]


@define
class TableItems:
    """The contexts of a table, with the interface of ``Contexts``. Iterating raises ``Misused`` if the table can't be read."""

    name: str
    table: "TableContexts"
    faults: list[Item] = field(factory=list)
    size: int | None = None
    waits: bool = False
    share: float | None = None

    @property
    def display_name(self) -> str:
        """The table's name for display."""
        return "<stdin>" if self.name == STDIN else shown_name(self.name)

    def __iter__(self) -> Iterator[Item]:
        """Yield the contexts."""
        try:
            for position, context in self.table.numbered():
                yield Item(position, 0, context)
        except TableError as error:
            raise Misused(error.message, error.hint) from None


def open_feed(name: str, flags: TableFlags, sampling: Sampling, seed: "SeedTree") -> Feed:
    """Open the contexts in a file, a table or a database, and read the first one.

    The first value of a JSON file decides whether the file contains contexts, or one row for each review. Raises ``Misused``
    and ``Unreadable``.
    """
    if flags.query is not None or (name != STDIN and is_table_name(name)):
        return _table_feed(name, name, flags, sampling, seed)
    contexts = Contexts(name)
    feed = Feed(contexts, sampling)
    found = feed.look()
    first = feed.first
    if first is not None and _is_flat(first.value, flags):
        if name != STDIN and Path(name).is_file() and not is_stream(Path(name)):
            feed.close()
            return _table_feed(name, name, flags, sampling, seed)
        return _table_feed(name, [item.value for item in chain([first], feed.rest())], flags, sampling, seed)
    if not flags.is_empty:
        raise Misused(
            f"{contexts.display_name} has contexts with reviews",
            f"{flags.words()[0]} needs a table with a row for each review",
        )
    if not found:
        raise Misused(f"{contexts.display_name} has no contexts")
    return feed


def _table_feed(name: str, source: Any, flags: TableFlags, sampling: Sampling, seed: "SeedTree") -> Feed:
    try:
        made = table_contexts(
            source, group=tuple(part.strip() for part in flags.group.split(",")) if flags.group else None, text=flags.text,
            columns=columns_of(flags.columns), query=flags.query, encoding=flags.encoding or "utf-8",
            drop_null_groups=flags.drop_null_groups, **asdict(sampling),
        ).bound(seed.meta)  # fmt: skip
    except TableError as error:
        raise Misused(error.message, error.hint) from None
    except RequestError as error:
        raise _misused(error) from None
    feed = Feed(TableItems(name, made), table=made)
    if not feed.look() and sampling.shard is None:
        raise Misused(f"{feed.contexts.display_name} has no rows")
    return feed


def _is_flat(value: Any, flags: TableFlags) -> bool:
    return (
        isinstance(value, Mapping)
        and not isinstance(value.get("reviews"), list)
        and (not flags.is_empty or "reviews" not in value)
    )


def _misused(error: RequestError) -> Misused:
    return Misused(f"--{error.parameter.replace('_', '-')}: {error.message}", error.hint)
