"""A process that asks a question until it has the answer, or is killed: ``ask_child.py FOLDER [STRATEGY]``.

Each call of a model is a line of LOG; with a strategy it is the prompt's hash.
"""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Any

from knotwork.runtime.api.ask import ask
from knotwork.runtime.events import Events
from knotwork.runtime.loops.traversal.question_store import asks
from knotwork.runtime.runs.journal import hash_of

from support.executing import library
from support.traversing import Planning, plan
from support.wondering import Wondering

WORK = 'CLASSIFY people BY "age" INTO ("young", "old") AS ages'
PLANS = (
    plan("DECLARE n AS COUNTER", *('FIND nodes WHERE entity_type = "PERSON" AS people', "COUNT people AS many",
         "UPDATE n WITH many", WORK, "UPDATE n WITH many")),
    *(plan(f'FIND nodes WHERE entity_type = "PERSON" LIMIT {50 + number} AS people', WORK, "COUNT ages AS many",
           "UPDATE n WITH many", decision="continue")
      for number in range(3)),  # each another: one that was just run goes back to the model
    "COMPLETE: done",
)  # fmt: skip
COUNT = 5 * 5
CALLS = len(PLANS) + 4 * 5


def main(folder: Path, strategy: str | None = None) -> None:
    """Ask, and say when a call is sent."""
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def sent(model: Planning) -> None:
        os.write(log, f"{time.monotonic()}\n".encode())

    def done(event: Any) -> None:
        os.write(1, f"{event.name}\n".encode())

    events = Events()
    events.subscribe(done)
    if strategy is not None:
        wondering = Wondering(lambda prompt: os.write(log, f"{hash_of(prompt.encode())}\n".encode()) and None, 0.01)
        settings: dict[str, Any] = {"search": strategy, "max_steps": 12, "max_concurrency": 2}
        searched = asyncio.run(ask(library(), "Who?", state=folder / "state", llm=wondering, events=events, **settings))
        if searched.answer != "five people":
            raise SystemExit(f"{searched.status}: {searched.reason}")
        return
    found = asks(folder / "state")
    planned = sum(key[0] == "planner" for key in found[0].answers) if found else 0
    model = Planning(*(PLANS[planned:] or ["none"]), answers="old", delay=0.01, on_call=sent)
    made = asyncio.run(ask(library(), "Who?", state=folder / "state", llm=model, max_concurrency=2, events=events))
    if made.answer != "done":
        raise SystemExit(f"{made.status}: {made.reason}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:3])
