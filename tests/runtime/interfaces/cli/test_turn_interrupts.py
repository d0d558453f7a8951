"""Ctrl-C in every moment of a turn: while a piece runs, as it ends, and while its result is written. The session is kept."""

import asyncio
import io
import os
import signal
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from knotwork.runtime.api.pieces import Piece
from knotwork.runtime.api.session import Session
from knotwork.runtime.api.session_data import Outcome
from knotwork.runtime.interfaces.cli.turn import Screen, Turn
from support.sessions import new_session


class Impatient(io.StringIO):
    """A reader who has had enough after some lines, so many times."""

    def __init__(self, lines: int, times: int = 1) -> None:
        super().__init__()
        self._lines = lines
        self._times = times

    def write(self, text: str) -> int:
        self._lines -= 1
        if self._lines == 0:
            for _ in range(self._times):
                os.kill(os.getpid(), signal.SIGINT)
        return super().write(text)


async def taken(at: Session, *texts: str) -> list[list[str]]:
    """Take texts, and wait a moment behind each, as a prompt does; return how their pieces ended."""
    turn, found = Turn(at, Screen(at.settings)), []
    for text in texts:
        found.append([outcome.status for outcome in await turn.take(text, "<input>", stop=True)])
        await asyncio.sleep(0.02)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_while_a_result_is_written_ends_the_writing_and_no_more(
    times: int, capfd: pytest.CaptureFixture[str]
) -> None:
    at, out = new_session(), Impatient(100, times)
    at.settings.mode = "csv"
    with redirect_stdout(out):
        found = asyncio.run(taken(at, "(xs)=CONST(" + str(list(range(14_000))) + ")\nnever = 1", "len(xs)"))
    assert found == [["cancelled"], ["done"]]
    lines = out.getvalue().splitlines()
    assert 100 <= len(lines) < 200 and lines[-1] == "14000"
    said = capfd.readouterr().err
    assert "more rows" in said and "Ctrl-C" not in said and at.values.names() == ("xs",)


@pytest.mark.slow
def test_ctrl_c_while_a_file_is_written_says_how_much_is_there(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    at, seen = new_session(), 0
    at.settings.output = folder / "xs.csv"

    def impatient(values: Any) -> str:
        nonlocal seen
        seen += 1
        if seen == 100:
            os.kill(os.getpid(), signal.SIGINT)
        return f"{values[0]}\n"

    monkeypatch.setattr("knotwork.runtime.interfaces.repl.tables.csv_line", impatient)
    assert asyncio.run(taken(at, f"(xs)=CONST({list(range(5_000))})", "[1]")) == [["cancelled"], ["done"]]
    assert "of 5,000 rows written" in capfd.readouterr().err
    assert len((folder / "xs.csv").read_text().splitlines()) < 200


def test_a_second_ctrl_c_as_a_piece_ends_hits_nothing_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    at = new_session()

    async def ending(self: Session, piece: Piece, cancel: asyncio.Event) -> Outcome:
        os.kill(os.getpid(), signal.SIGINT)
        await cancel.wait()
        os.kill(os.getpid(), signal.SIGINT)
        return Outcome("cancelled")

    with monkeypatch.context() as patched:
        patched.setattr(Session, "run", ending)
        assert asyncio.run(taken(at, "1\n2", "3")) == [["cancelled"], ["cancelled"]]
    assert asyncio.run(taken(at, "1")) == [["done"]]


def test_a_ctrl_c_that_came_too_late_for_its_piece_ends_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    at = new_session()
    run = Session.run

    async def late(self: Session, piece: Piece, cancel: asyncio.Event) -> Outcome:
        outcome = await run(self, piece, cancel)
        os.kill(os.getpid(), signal.SIGINT)
        return outcome

    with monkeypatch.context() as patched:
        patched.setattr(Session, "run", late)
        assert asyncio.run(taken(at, "a = 1\nb = 2")) == [["cancelled"]]
    assert at.values.names() == ("a",)


@pytest.mark.slow
def test_sigterm_while_a_result_is_written_ends_the_session() -> None:
    class Ended(Impatient):
        def write(self, text: str) -> int:
            self._lines -= 1
            if self._lines == 0:
                os.kill(os.getpid(), signal.SIGTERM)
            return io.StringIO.write(self, text)

    at = new_session()
    with redirect_stdout(Ended(5)):
        done = asyncio.run(Turn(at, Screen(at.settings)).take(str(list(range(1_000))), "<input>", stop=True))
    assert [outcome.ends for outcome in done] == [True]
