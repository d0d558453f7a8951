"""A model server that extracts fields from reviews, so that what comes of a run is known beforehand. Marks in a review say its fields.

In a process of its own: ``PYTHONPATH=tests python -m support.review_server --port 0``; the options are those of
``support.model_server`` that it needs. ``marked(severity="mild")`` makes a mark; a field without one gets a value drawn by the
review. A mark may say anything, listed or not.
"""

import argparse
import asyncio
import hashlib
import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from support.model_server import ModelServer

__all__ = ["ReviewServer", "answer_review", "context", "contexts", "marked", "review_of", "serve_command"]

_FORM = re.compile(r"of this form:\n\{(.*)\}")
_PAIR = re.compile(r'"(\w+)": ((?:"[^"]*"(?: or )?)+|[^,]+)')
_FENCED = re.compile(r"^(`{3,})\n(.*?)\n\1$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"<(\w+)=([^>]*)>")


def marked(**fields: Any) -> str:
    """Return marks for ``fields``; a value is JSON, or a text."""
    return "".join(
        f"<{name}={value if isinstance(value, str) else json.dumps(value)}>" for name, value in fields.items()
    )


def review_of(prompt: str) -> str:
    """Return the review that stands between the fences of ``prompt``."""
    found = _FENCED.search(prompt)
    assert found is not None, prompt
    return found[2]


def answer_review(prompt: str) -> str:
    """Answer an extraction prompt by the marks in its review."""
    review = review_of(prompt)
    marks = dict(_MARK.findall(review))
    forms = _FORM.findall(prompt)
    wanted = dict(_PAIR.findall(forms[-1])) if forms else dict.fromkeys(marks, "")
    return json.dumps({name: _value(name, kind, review, marks) for name, kind in wanted.items()})


def _value(name: str, kind: str, review: str, marks: dict[str, str]) -> Any:
    if name in marks:
        with suppress(ValueError):
            return json.loads(marks[name])
        return marks[name]
    listed = re.findall(r'"([^"]*)"', kind)
    if not listed:
        return None
    drawn = hashlib.sha256(f"{name} {review}".encode()).digest()[0]
    return listed[drawn % len(listed)]


def ReviewServer(**options: Any) -> ModelServer:
    """Return a model server that answers so."""
    return ModelServer(answer=answer_review, ignores_format=True, **options)


def context(index: int, reviews: int, **more: Any) -> dict[str, Any]:
    """Return a context whose reviews all differ and are all kept by "food"."""
    return {
        "name": f"Café {index}", "categories": "Thai, Food", "as_of": "2025-01-01",
        "reviews": [
            {
                "text": f"The food of place {index}, visit {number}.", "stars": 1 + (index + number) % 5,
                "useful": number, "date": f"20{20 + number % 5}-0{1 + number % 9}-11",
            }
            for number in range(reviews)
        ],
        **more,
    }  # fmt: skip


def contexts(count: int, reviews: int) -> list[dict[str, Any]]:
    """Return so many contexts with so many reviews each."""
    return [context(index, reviews) for index in range(count)]


async def serve_command(make: Callable[..., ModelServer] = ReviewServer) -> None:
    """Run a server that ``make`` makes, with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--rate", type=float, default=0.0, help="share of the prompts that meet one fault")
    parser.add_argument("--faults", default="", help="names, comma between")
    parser.add_argument("--always", help="one fault for every request")
    parser.add_argument("--log", type=Path, help="where to write what came in")
    given = parser.parse_args()
    server = make(
        rate=given.rate, mix=tuple(filter(None, given.faults.split(","))), delay=given.delay,
        always=given.always, log=given.log.open("a") if given.log else None,
    )  # fmt: skip
    await server.start("127.0.0.1", given.port)
    print(server.url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(serve_command())
