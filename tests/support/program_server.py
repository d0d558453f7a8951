"""A model server that answers the prompts of PROCESS and CLASSIFY, so that what comes of a program is known beforehand.

In a process of its own: ``PYTHONPATH=tests python -m support.program_server --port 0``; the options are those of
``support.review_server``. Each answer depends only on the items in the prompt.
"""

import asyncio
import hashlib
import json
import re
from contextlib import suppress
from typing import Any

from support.model_server import ModelServer
from support.review_server import serve_command

__all__ = ["PROGRAM", "ProgramServer", "answer_prompt", "graph_of"]

PROGRAM = """\
FIND nodes WHERE kind = "dish" AS dishes
CLASSIFY dishes BY "How is it?" INTO ("good", "bad", "odd") AS rated
PROCESS dishes USING "Name each." AS named RETURNING (name TEXT)
"""
"""A program with one call for each node of ``graph_of``, and one for each twenty nodes."""

_CLASSES = re.compile(r"exactly one of these classes: (.*)\.\n")
_ITEM = re.compile(r"^(i\d+) (.*)$", re.MULTILINE)


def graph_of(nodes: int) -> str:
    """Return a graph as node-link JSON, with so many dishes."""
    made = [{"id": f"d{number}", "kind": "dish", "text": f"Dish number {number}."} for number in range(nodes)]
    return json.dumps({"directed": False, "multigraph": False, "graph": {}, "nodes": made, "links": []})


def answer_prompt(prompt: str) -> str:
    """Return a class for the item of CLASSIFY, or a row for each item of PROCESS."""
    if (classes := _CLASSES.search(prompt)) is not None:
        labels = classes[1].split(", ")
        item = prompt.rpartition("\nItem: ")[2]
        return labels[hashlib.sha256(item.encode()).digest()[0] % len(labels)]
    rows: list[dict[str, Any]] = [
        {"ids": [reference], "name": hashlib.sha256(item.encode()).hexdigest()[:8]}
        for reference, item in _ITEM.findall(prompt)
    ]
    return json.dumps({"rows": rows})


def ProgramServer(**options: Any) -> ModelServer:
    """Return a model server that answers so."""
    return ModelServer(answer=answer_prompt, ignores_format=True, **options)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(serve_command(ProgramServer))
