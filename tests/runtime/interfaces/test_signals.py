"""Ctrl-C while something runs: each one a stage further, also when the loop hangs, or two come at once."""

import asyncio
import signal
import sys
import threading

import pytest
from knotwork.runtime.interfaces.signals import SignalCount, count_signals, staged_interrupts

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


def interrupted(*numbers: signal.Signals, at_once: bool = False) -> list[str]:
    """Return what two stages and a last one heard of these signals."""
    told: list[str] = []

    async def run() -> None:
        with staged_interrupts(
            lambda: told.append("first"), lambda: told.append("second"), last=lambda: told.append("last")
        ) as heard:
            for number in numbers:
                signal.raise_signal(number)
                if not at_once:
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
            await asyncio.sleep(0)
            told.append(f"ends: {heard.ends}")

    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    asyncio.run(run())
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
    return told


def test_each_one_goes_a_stage_further() -> None:
    assert interrupted(*[signal.SIGINT] * 3) == ["first", "second", "last", "ends: False"]


def test_two_at_once_are_two_stages_in_their_order() -> None:
    assert interrupted(*[signal.SIGINT] * 2, at_once=True) == ["first", "second", "ends: False"]


def test_the_last_one_does_not_wait_for_a_loop_that_hangs() -> None:
    assert interrupted(*[signal.SIGINT] * 3, at_once=True)[0] == "last"


def test_sigterm_counts_and_asks_to_end() -> None:
    assert interrupted(signal.SIGINT, signal.SIGTERM) == ["first", "second", "ends: True"]


def test_only_the_signals_that_are_named_are_heard() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with count_signals(lambda heard: None, (signal.SIGINT,)) as heard:
        assert signal.getsignal(signal.SIGTERM) is before
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    assert heard == SignalCount(2, False)


def test_in_another_thread_nothing_is_heard_and_nothing_breaks() -> None:
    found: list[SignalCount] = []

    def beside() -> None:
        with count_signals(lambda heard: None) as heard:
            found.append(heard)

    thread = threading.Thread(target=beside)
    thread.start()
    thread.join()
    assert found == [SignalCount()]
