"""The power goes while the state is written: what was acknowledged is there, whatever the disk kept of the rest.

The trace of real operations is replayed so that only what was synced survives for sure (``support.disk``).
"""

import ast
import hashlib
import shutil
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import pytest
from knotwork.adapters.state_json import log
from knotwork.adapters.state_json.log import recovery
from support.disk import Disk, State, Unsynced, scratch, sync_sites
from support.disk_trials import STORE, Cut, Trial, cuts, judged, stored

STEPS = [
    "sync", "free", "free", "sync", "compact", "free", "sync", "close",
    "free", "free", "kill", "free", "sync", "compact", "free", "compact", "sync",
]  # fmt: skip
AFTER = ["free", "free", "sync", "compact", "free", "close"]  # what the next process does after a kill or a fault
FAULTS = ("kill", "error", "short", "always")

Ran = tuple[Disk, Trial, int]


@pytest.fixture
def place() -> Iterator[Path]:
    with scratch() as folder:
        yield folder


def ran(place: Path, fault: tuple[int, str] | None = None) -> Ran:
    """Run the steps, up to the fault if there is one, and what comes after; return also the moment where that begins."""
    (root := place / "disk").mkdir()
    disk = Disk(root, fault)
    trial = Trial(disk)
    trial.run(STEPS, until_hit=True)
    disk.fault, new = None, len(disk.trace) if fault else 0
    trial.run(AFTER)
    shutil.rmtree(root)
    return disk, trial, new


def ran_with_faults(place: Path, *kinds: str) -> Iterator[Ran]:
    """Run the steps again and again, each time with a fault at the next operation."""
    for kind in kinds:
        number = 1
        while (run := ran(place, (number, kind)))[0].hit:
            yield run
            number += 1


def torn(place: Path) -> tuple[Ran, bytes]:
    """Run on a store whose last record was cut in half; return also the bytes of that half."""
    (root := place / "disk").mkdir()
    numbers = stored(root / STORE, 5)
    journal = root / STORE / "wal-0.jsonl"
    body = journal.read_bytes()
    begin = body.rindex(b"\n", 0, -1) + 1
    cut = begin + (len(body) - begin) // 2
    journal.write_bytes(body[:cut])
    disk = Disk(root)
    trial = Trial(disk, numbers[:-1])
    disk.mark(durable=numbers[:-1])
    new = len(disk.trace)
    trial.run(AFTER)
    shutil.rmtree(root)
    return (disk, trial, new), body[begin:cut]


def key(cut: Cut) -> tuple[bytes, tuple[int, ...]]:
    return digest(cut.state), tuple(cut.durable)


def digest(state: State) -> bytes:
    parts = hashlib.blake2b(digest_size=16)
    for name, content in sorted(state.items()):
        parts.update(f"{name} {-1 if content is None else len(content)} ".encode())
        parts.update(content or b"")
    return parts.digest()


def distinct_states(runs: Iterable[Ran], place: Path, more: int) -> int:
    """Cut the power at every moment of every run, see that nothing is wrong, and return how many states that were."""
    seen: set[tuple[bytes, tuple[int, ...]]] = set()
    for disk, trial, new in runs:
        assert trial.wrong == [], disk.fault
        for cut in cuts(disk, seed=len(seen), more=more, after=new):
            if (one := key(cut)) not in seen:
                seen.add(one)
                assert judged(cut, place / "cut") == "", (
                    f"{disk.fault}, after {cut.moment}: {disk.trace[cut.moment][:2]}"
                )
    return len({state for state, _ in seen})


def caught(runs: Iterable[Ran], place: Path, without: str) -> bool:
    """Say whether a power cut shows that the syncs of one place in the program are missing."""
    return any(
        judged(cut, place / "cut") != ""
        for seed, (disk, _, new) in enumerate(runs)
        for cut in cuts(disk, seed=seed, more=4, after=new, without=without)
    )


@pytest.mark.slow
def test_a_power_cut_at_any_moment_loses_nothing_that_was_acknowledged(place: Path) -> None:
    assert distinct_states([ran(place)], place, more=6) >= 150


@pytest.mark.slow
def test_a_power_cut_after_any_fault_loses_nothing_that_was_acknowledged(place: Path) -> None:
    runs = chain([ran(place)], ran_with_faults(place, *FAULTS))
    assert distinct_states(runs, place, more=4) >= 2_000


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAULTS)
def test_after_any_fault_the_state_is_the_last_acknowledged_one(place: Path, kind: str) -> None:
    kinds = set()
    for disk, trial, _ in ran_with_faults(place, kind):
        assert trial.wrong == [], disk.fault
        kinds.add(disk.hit)
    assert kinds >= {"create", "write", "sync", "sync directory", "rename", "open", "unlink", "mkdir"}


@pytest.mark.slow
def test_a_torn_end_is_never_lost_whenever_the_power_goes(place: Path) -> None:
    (disk, trial, new), half = torn(place)
    assert trial.wrong == []
    for cut in {key(cut): cut for cut in cuts(disk, seed=5, more=10, after=new)}.values():
        assert any(half in (content or b"") for content in cut.state.values())
        assert judged(cut, place / "cut") == ""


@pytest.mark.slow
def test_the_harness_catches_the_log_without_any_one_of_its_syncs(place: Path) -> None:
    runs = [*ran_with_faults(place, "kill")]
    sites = {site for disk, _, _ in runs for site in sync_sites(disk.trace)}
    assert [site for site in sorted(sites) if not caught(runs, place, site)] == []
    (disk, _, new), half = torn(place)
    aside = sync_sites(disk.trace) - sites
    for site in aside:
        kept = (
            any(half in (content or b"") for content in cut.state.values())
            for cut in cuts(disk, seed=5, more=30, after=new, without=site)
        )
        assert not all(kept), site
    assert len(sites | aside) == syncs_in_the_program()


def syncs_in_the_program() -> int:
    """Count the places of the log that ask for a sync, so that none goes without its test."""
    rooms = Path(log.__file__).parent.glob("*.py")
    trees = [ast.parse(room.read_text(encoding="utf-8")) for room in rooms]
    return sum(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("sync", "sync_directory")
        and ast.unparse(node.func.value).endswith("files")
        for tree in trees
        for node in ast.walk(tree)
    )


@pytest.mark.slow
def test_the_harness_catches_that_a_failed_sync_is_believed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "_copied", lambda files, directory, found: files.open(found.path))
    assert caught((run for run in ran_with_faults(place, "error") if run[0].hit == "sync"), place, "")


def test_unsynced_files_are_real_files(place: Path) -> None:
    file = Unsynced().create(place / "x")
    Unsynced().close(file)
    assert (place / "x").stat().st_mode & 0o777 == 0o600
