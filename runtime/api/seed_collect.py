"""``seed.collect``: runs a seed over contexts and returns all results, which can be turned into tables."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import run_here
from .seed_tables import ResultTable, results_table

if TYPE_CHECKING:
    from ..seeds.compute import SeedTree
    from ..seeds.seed_results import SeedResult


class SeedResults:
    """The results of a seed over many contexts, in the order of the contexts.

    ``extractions`` is the table of the extractions, with a row for each kept review. ``sampling`` describes which contexts and
    reviews were selected ({}: all of them). ``warnings`` are about the table of the contexts. The methods ``to_...`` convert
    the results to a table with a row for each context; see ``docs/reference/tables.md`` for the columns.
    """

    def __init__(
        self, seed: "SeedTree", results: "list[SeedResult]", table: Mapping[str, Any], sampling: Mapping[str, Any],
        warnings: tuple[str, ...],
    ) -> None:  # fmt: skip
        self.seed = seed
        self.results = results
        self.sampling = sampling
        self.warnings = warnings
        self._table = table

    def __iter__(self) -> "Iterator[SeedResult]":
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __getitem__(self, index: int) -> "SeedResult":
        return self.results[index]

    @cached_property
    def table(self) -> ResultTable:
        """The table of the results, with a row for each context."""
        from ..seeds.result_store import ResultsInMemory

        made = results_table(self.seed, self._table)
        return ResultTable(made.columns, made.rows(ResultsInMemory(self.results)), "results")

    @cached_property
    def extractions(self) -> ResultTable:
        """The table of the extractions, with a row for each kept review."""
        from ..seeds.result_store import ResultsInMemory
        from ..seeds.result_tables import TableOfExtractions

        source = ResultsInMemory(self.results)
        made = TableOfExtractions.of(self.seed, source, "int" if self._table.get("id_type") == "int" else "text")
        return ResultTable(made.columns, made.rows(source), "extractions")

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries."""
        return self.table.to_dicts()

    def to_pandas(self) -> Any:
        """Return a pandas data frame with a row for each context. Raises ``TableError`` if pandas is not installed."""
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """Return a polars data frame with a row for each context. Raises ``TableError`` if polars is not installed."""
        return self.table.to_polars()

    def to_arrow(self) -> Any:
        """Return an Arrow table with a row for each context. Raises ``TableError`` if pyarrow is not installed."""
        return self.table.to_arrow()

    def to_parquet(self, path: str | Path) -> None:
        """Write a Parquet file with a row for each context. Raises ``TableError`` and ``OSError``."""
        self.table.to_parquet(path)

    def to_csv(self, path: str | Path, *, spreadsheet: bool = False) -> None:
        """Write a CSV or TSV file with a row for each context; see ``ResultTable.to_csv``. Raises ``TableError`` and ``OSError``."""
        self.table.to_csv(path, spreadsheet=spreadsheet)


async def collect(
    seed: "SeedTree",
    contexts: Any,
    *,
    llm: Any = None,
    limit: int | None = None,
    sample: int | None = None,
    sample_reviews: int | None = None,
    random_state: int = 0,
    shard: str | None = None,
    model: str = "",
    record: bool = False,
    resume: str | Path | None = None,
    force: bool = False,
    **options: Any,
) -> SeedResults:
    """Run ``seed`` for each context and return all results: ``(await seed.collect(fs, table, llm=...)).to_polars()``.

    ``contexts`` are those of ``seed.contexts(...)``, or contexts as for ``run_many``. Only the first ``limit`` contexts are used.
    ``sample`` is the number of contexts to select at random, ``sample_reviews`` is the number of reviews to select from each
    context. The selection depends only on names, positions and ``random_state``. ``shard``, such as "3/8", selects one of
    several parts of the contexts; ``seed.merge`` combines the results of the parts. Without these options, the selection made
    by ``seed.contexts`` is used.

    ``record=True`` stores the run in a folder. ``resume`` continues a stored run (with ``force``, even if the seed or the
    contexts changed). ``model`` and ``options`` are as for ``run_many``.

    Raises the exceptions of ``run_many``, and ``TableError`` if the table can't be read.
    """
    from ..seeds import seed_store
    from ..seeds.compute import require
    from ..seeds.samples import Sampling
    from ..seeds.seed_run import run_many
    from ..seeds.table_contexts import TableContexts
    from .seed_batches import check_run as check_batches
    from .seed_models import open_models
    from .seed_tables import check_shard, contexts_of_seed, sampled

    require(seed)
    if options.get("batch"):
        check_batches(contexts, record or resume)
    sampling = Sampling(limit, sample, sample_reviews, random_state, shard)
    check_shard(seed, sampling)
    if isinstance(contexts, TableContexts):
        contexts = contexts.bound(seed.meta)
    chosen = sampled(contexts, sampling)
    table = chosen if isinstance(chosen, TableContexts) else None
    stream, made = contexts_of_seed(seed, chosen)
    hashed = seed_store.contexts_hash(contexts)
    keep = None if resume is None else seed_store.load(resume).resume(seed, contexts=hashed, force=force)
    results: list[SeedResult] = []
    try:
        async with open_models(seed, llm, model, options) as (client, name, settings):
            if record and keep is None:
                keep = seed_store.start(
                    seed, contexts=hashed, model=name, options={**made, "sampling": sampling.as_json()}
                )
            batches = settings.pop("batches", None)
            if batches is not None:
                client = await batches.client(
                    client, lambda: contexts_of_seed(seed, sampled(contexts, sampling))[0], keep, settings
                )
            await run_many(
                seed, stream, client, on_result=results.append, model=name, ordered=False, record=keep, **settings
            )
    finally:
        if keep is not None:
            keep.close()
    results.sort(key=lambda result: result.index)
    if table is None:
        return SeedResults(seed, results, {}, sampling.as_json(), ())
    return SeedResults(seed, results, table.as_json(), table.sampling.as_json(), tuple(table.warnings))


def collect_sync(seed: "SeedTree", contexts: Any, *, llm: Any = None, **options: Any) -> SeedResults:
    """Call ``collect`` from synchronous code. In async code and notebooks, use ``await seed.collect(...)``."""
    return run_here(lambda: collect(seed, contexts, llm=llm, **options), "seed.collect")
