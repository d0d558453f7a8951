"""Accepted answers, kept in a file (SQLite) as examples for like instructions. Off unless a caller names a file.

One answer is kept for each instruction, format and criteria of a template: that with the highest score, the newest of equal ones.
Only the newest of a template are looked at, so only those are kept: the file does not grow with every answer that there ever was.
An example is found where the instruction is alike and so is the format; the answer to the very same request is one too.
A file that is damaged, locked or not writable costs one warning and the examples, never the answer.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson
from blake3 import blake3

from ...adapters.sqlite_store import Shelf, Table
from .requests import AnswerRequest

__all__ = ["ALIKE", "LONGEST", "MOST", "NEWEST", "KeptExamples"]

ALIKE = 70.0
"""How alike instructions must be, and formats: 0 to 100, by rapidfuzz's ``token_sort_ratio`` (their words, in any order)."""
LONGEST = 20_000
"""The most characters of an answer that is kept; a longer one is no example."""
MOST = 2
"""The most examples for one request."""
NEWEST = 500
"""Rows of a template, the newest, that are kept; among them like ones are looked for."""
_SHOWN = 4_000
"""Characters of an instruction that are kept."""
_COMPARED = 2_000
"""Characters of an instruction, and of a format, that are compared."""

_TABLE = Table(
    what="the file of examples",
    make="CREATE TABLE IF NOT EXISTS examples_1"
    " (key BLOB PRIMARY KEY, template TEXT NOT NULL, instruct TEXT NOT NULL, resp_format TEXT NOT NULL,"
    " answer TEXT NOT NULL, score REAL NOT NULL, digest BLOB NOT NULL, at REAL NOT NULL) WITHOUT ROWID",
    find="SELECT instruct, answer, digest FROM examples_1 WHERE key = ?",
    insert="INSERT INTO examples_1 (key, template, instruct, resp_format, answer, score, digest, at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET"
    " answer = excluded.answer, score = excluded.score, digest = excluded.digest, at = excluded.at"
    " WHERE excluded.score >= score",
    probe="SELECT count(*) FROM (SELECT 1 FROM examples_1 LIMIT 1)",
)
_NEWEST = (
    "SELECT key, substr(instruct, 1, ?), resp_format FROM examples_1 WHERE template = ? ORDER BY at DESC, key LIMIT ?"
)
_TRIM = (
    "DELETE FROM examples_1 WHERE template = ?1 AND key NOT IN"
    " (SELECT key FROM examples_1 WHERE template = ?1 ORDER BY at DESC, key LIMIT ?2)"
)


class KeptExamples:
    """The examples in the file ``path``, made when it is first used. ``warn`` gets the one warning of a file that can't be used."""

    def __init__(self, path: Path, *, warn: Callable[[str], None] | None = None, busy: float = 2.0) -> None:
        self._shelf = Shelf(path, _TABLE, warn=warn, busy=busy)

    async def like(self, request: AnswerRequest) -> Sequence[tuple[str, str]]:
        """Return instruction and answer of at most ``MOST`` accepted answers to like instructions, the likest first."""
        await self._shelf.opened()
        found = []
        rows = await self._shelf.rows(_NEWEST, _COMPARED, request.template, NEWEST)
        for key in await asyncio.to_thread(_likest, request, rows):  # some 20 ms where texts are long
            row = self._shelf.find(key)
            if row is None:
                continue
            instruct, answer, digest = row
            if digest != _digest(key, instruct, answer):
                self._shelf.give_up("an answer in it is damaged")
                return ()
            found.append((instruct, answer))
        return found

    async def keep(self, request: AnswerRequest, answer: str, score: float) -> None:
        """Keep an accepted answer, unless one with a higher score is kept for this request."""
        if len(answer) > LONGEST:
            return
        await self._shelf.opened()
        key, instruct = _key(request), request.instruct[:_SHOWN]
        shown, digest = request.resp_format[:_COMPARED], _digest(key, instruct, answer)
        await self._shelf.keep((key, request.template, instruct, shown, answer, score, digest, time.time()))
        await self._shelf.rows(_TRIM, request.template, NEWEST)

    async def aclose(self) -> None:
        """Close the file; more than once is fine."""
        await self._shelf.aclose()


def _key(request: AnswerRequest) -> bytes:
    said = [request.template, request.instruct, request.resp_format, request.eval_crit]
    return blake3(orjson.dumps(said)).digest()


def _digest(key: bytes, instruct: object, answer: object) -> bytes:
    """Return what tells a damaged row: SQLite itself has no checksums."""
    return blake3(key + orjson.dumps([str(instruct), str(answer)])).digest(length=8)


def _likest(request: AnswerRequest, rows: Sequence[tuple[bytes, str, str]]) -> list[bytes]:
    """Return the keys of the likest rows, the newest first of equally like ones."""
    from rapidfuzz import fuzz  # only who keeps examples needs it
    from rapidfuzz.utils import default_process

    wanted = [default_process(text[:_COMPARED]) for text in (request.instruct, request.resp_format)]
    own, ranked = _key(request), []
    for place, (key, *texts) in enumerate(rows):
        told = [default_process(str(text)) for text in texts]
        like = [_alike(*pair, fuzz.token_sort_ratio) for pair in zip(wanted, told, strict=True)]
        if key == own or min(like) >= ALIKE:
            ranked.append((key != own, -like[0], place, key))
    return [key for *_, key in sorted(ranked)[:MOST]]


def _alike(one: str, other: str, ratio: Callable[..., float]) -> float:
    return 100.0 if one == other else ratio(one, other, score_cutoff=ALIKE)
