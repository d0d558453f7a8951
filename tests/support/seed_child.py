"""A run of a seed over many contexts in a process of its own, kept: for tests that kill it.

``PYTHONPATH=tests python -m support.seed_child SPEC CONTEXTS REVIEWS OUT [RUN]``: writes the results to OUT, a line each; goes on with
RUN where one is given.
"""

import asyncio
import sys
from pathlib import Path

from knotwork import seed

from support.review_server import contexts
from support.seeds import SEED


async def _main(spec: str, count: int, reviews: int, out: Path, run: str | None) -> None:
    fs = seed.load(SEED)
    with out.open("wb") as file:
        given = contexts(count, reviews)
        kept = {"record": run is None, "resume": run, "cache": False}  # only the run's record may save calls
        async for result in seed.run_many(fs, given, llm=spec, max_concurrency=8, **kept):
            file.write(result.line())
            file.flush()


if __name__ == "__main__":
    _, spec, count, reviews, out, *run = sys.argv
    asyncio.run(_main(spec, int(count), int(reviews), Path(out), run[0] if run else None))
