"""Bytes of a store that are cut off or flipped: the last commit is there, or the damage is told. Never silently something older."""

import random
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from knotwork.adapters.state import DeclareKey, StoreError
from knotwork.adapters.state_json import open_store
from knotwork.adapters.state_json.log.durable import Log, verify
from knotwork.adapters.state_json.log.journal import link
from knotwork.runtime.models.factory import verify_state
from support.disk import Unsynced, scratch
from support.examples import stride

pytestmark = pytest.mark.slow

COMPACTED, WHOLE = 3, 7  # records before the compaction, and in all
SNAPSHOT, JOURNAL = "snap-1.json", "wal-1.jsonl"


@pytest.fixture
def place() -> Iterator[Path]:
    with scratch() as folder:
        yield folder


@pytest.fixture
def store(place: Path) -> Path:
    """A store with a snapshot of three records and a journal of four, the last two not waited for. It was not closed in order."""
    directory = place / "store"
    log, _ = Log.open(directory, files=Unsynced())
    for number in range(1, WHOLE + 1):
        log.append({"n": number}, sync=number < WHOLE - 1)
        if number == COMPACTED:
            assert log.compact({"numbers": list(range(1, number + 1))}) == ""
    log.close(clean=False)
    return directory


def found(directory: Path, *, read_only: bool) -> tuple[list[int], tuple[str, ...]]:
    log, recovered = Log.open(directory, read_only=read_only, files=Unsynced())
    try:
        numbers = recovered.snapshot["numbers"] if recovered.snapshot else []
        return [*numbers, *(kept["n"] for kept in recovered.records)], recovered.notices
    finally:
        log.close()


def opened(directory: Path, *, read_only: bool) -> tuple[list[int], str]:
    """Return the numbers that are found and what is said; no numbers where it is refused."""
    try:
        numbers, notices = found(directory, read_only=read_only)
    except StoreError as error:
        return [], error.message
    return numbers, " ".join(notices)


def copies(store: Path, name: str, bodies: Iterable[bytes]) -> Iterator[Path]:
    """Put each body in the place of a file, in a fresh copy of the store."""
    whole = {path.name: path.read_bytes() for path in store.iterdir()}
    copy = store.with_name("copy")
    for body in bodies:
        copy.mkdir(mode=0o700)
        for file, content in {**whole, name: body}.items():
            (copy / file).write_bytes(content)
        yield copy
        for path in copy.iterdir():
            path.unlink()
        copy.rmdir()


def begins(journal: bytes) -> list[int]:
    """Return where the journal's lines begin."""
    return [0, *(at + 1 for at, byte in enumerate(journal[:-1]) if byte == 0x0A)]


def test_every_byte_of_the_last_record_cut_is_told(store: Path) -> None:
    body = (store / JOURNAL).read_bytes()
    last = begins(body)[-1]
    for copy in copies(store, JOURNAL, (body[:length] for length in range(last + 1, len(body)))):
        torn = (copy / JOURNAL).read_bytes()[last:]
        report = verify(copy)
        assert report.ok
        assert report.torn is not None
        assert report.torn.position == last
        for read_only in (True, False):
            numbers, said = opened(copy, read_only=read_only)
            assert numbers == list(range(1, WHOLE))
            assert f"byte {last}" in said
        assert (copy / f"torn-1-{last}").read_bytes() == torn
        assert found(copy, read_only=False) == (list(range(1, WHOLE)), ())


def test_a_journal_cut_anywhere_before_is_told(store: Path) -> None:
    body = (store / JOURNAL).read_bytes()
    lines = begins(body)
    for length, copy in enumerate(copies(store, JOURNAL, (body[:length] for length in range(lines[-1])))):
        numbers, said = opened(copy, read_only=False)
        if length in lines[1:]:  # a whole record less: nothing in the file shows it
            assert numbers == list(range(1, COMPACTED + lines.index(length)))
        elif length < lines[1]:
            assert numbers == []
            assert "damaged at byte 0" in said
        else:
            begun = max(line for line in lines if line < length)
            assert numbers == list(range(1, COMPACTED + lines.index(begun)))
            assert f"torn at byte {begun}" in said


@pytest.mark.parametrize("mask", [None, *(pytest.param(1 << bit, marks=pytest.mark.slow) for bit in (0, 3, 5, 7))])
def test_any_flipped_byte_of_the_journal_is_told(store: Path, mask: int | None) -> None:
    body = (store / JOURNAL).read_bytes()
    lines = begins(body)
    for at, copy in enumerate(copies(store, JOURNAL, flipped(body, mask))):
        line = max(begin for begin in lines if begin <= at)
        report = verify(copy)
        if at < lines[-2]:  # what was synced when a later record was written
            assert [(damage.file, damage.position) for damage in report.damage] == [(JOURNAL, line)]
            for read_only in (True, False):
                numbers, said = opened(copy, read_only=read_only)
                assert numbers == []
                assert f"{JOURNAL} is damaged at byte {line}: " in said
        else:
            assert report.torn is not None
            assert report.torn.position == line
            for read_only in (True, False):
                numbers, said = opened(copy, read_only=read_only)
                assert numbers == list(range(1, COMPACTED + lines.index(line)))
                assert f"byte {line}" in said


@pytest.mark.parametrize("mask", [None, *(pytest.param(1 << bit, marks=pytest.mark.slow) for bit in (0, 3, 5, 7))])
def test_any_flipped_or_cut_byte_of_the_snapshot_is_told(store: Path, mask: int | None) -> None:
    body = (store / SNAPSHOT).read_bytes()
    second = begins(body)[1]
    for at, copy in enumerate(copies(store, SNAPSHOT, flipped(body, mask))):
        position = second if at >= second else 0
        refused_at(copy, SNAPSHOT, position)
    for copy in copies(store, SNAPSHOT, (body[:length] for length in range(0, len(body), 3))):
        assert opened(copy, read_only=False)[0] == []
        assert "damaged at byte" in opened(copy, read_only=True)[1]
    for copy in copies(store, SNAPSHOT, iter([body + b"\n", body + body])):
        refused_at(copy, SNAPSHOT, len(body))


def refused_at(copy: Path, name: str, position: int) -> None:
    for read_only in (True, False):
        numbers, said = opened(copy, read_only=read_only)
        assert numbers == []
        assert f"{name} is damaged at byte {position}: " in said
    assert (name, position) in [(damage.file, damage.position) for damage in verify(copy).damage]


def flipped(body: bytes, mask: int | None) -> Iterator[bytes]:
    """Yield the body with each byte changed in turn: by the mask, or by chance."""
    chance = random.Random(len(body))
    for at in range(len(body)):
        changed = bytearray(body)
        changed[at] ^= mask or 1 + chance.randrange(255)
        yield bytes(changed)


def lines_of(store: Path) -> list[bytes]:
    return (store / JOURNAL).read_bytes().splitlines(keepends=True)


@pytest.mark.parametrize(
    ("order", "numbers", "said"),
    [
        ([0, 1, 3, 4], [], "damaged at byte"),  # one is missing
        ([0, 2, 1, 3, 4], [], "damaged at byte"),  # two changed places
        ([1, 2, 3, 4], [], "damaged at byte 0"),
        ([0, 0, 1, 2, 3, 4], [], "damaged at byte"),
        ([0, 1, 2, 3, 4, 4], [1, 2, 3, 4, 5, 6, 7], "torn at byte"),  # the last twice: nothing is lost
        ([0, 1, 1, 2, 3, 4], [], "damaged at byte"),
    ],
)
def test_records_out_of_their_order_are_told(store: Path, order: list[int], numbers: list[int], said: str) -> None:
    lines = lines_of(store)
    (store / JOURNAL).write_bytes(b"".join(lines[index] for index in order))
    assert opened(store, read_only=False)[0] == numbers
    (store / JOURNAL).write_bytes(b"".join(lines[index] for index in order))
    assert said in opened(store, read_only=False)[1]


@pytest.mark.parametrize(
    "tail",
    [b"\0" * 5_000, b"\n", b"\n" * 100, b"{}", b"0" * 64 + b" 5 ", b"f" * 64 + b" 99999999999999 {", b"x" * 3_000_000, b"0" * 1_000_000],
    ids=["zeros", "newline", "newlines", "object", "head", "endless", "x", "digits"],
)  # fmt: skip
def test_whatever_follows_the_last_record_is_moved_aside(store: Path, tail: bytes) -> None:
    whole = (store / JOURNAL).read_bytes()
    (store / JOURNAL).write_bytes(whole + tail)
    assert opened(store, read_only=True)[0] == list(range(1, WHOLE + 1))
    numbers, said = opened(store, read_only=False)
    assert numbers == list(range(1, WHOLE + 1))
    assert f"{len(tail)} bytes" in said
    assert (store / f"torn-1-{len(whole)}").read_bytes() == tail
    assert (store / JOURNAL).read_bytes() == whole


@pytest.mark.parametrize(("name", "said"), [(SNAPSHOT, f"{SNAPSHOT} is missing"), (JOURNAL, f"{JOURNAL} is missing")])
def test_a_missing_file_is_told(store: Path, name: str, said: str) -> None:
    (store / name).unlink()
    for read_only in (True, False):
        assert said in opened(store, read_only=read_only)[1]
    assert [damage.file for damage in verify(store).damage] == [name]


def test_an_older_snapshot_in_the_place_of_a_newer_one_is_told(store: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    log, _ = Log.open(other, files=Unsynced())
    log.append({"n": 77}, sync=True)
    log.compact({"numbers": [77]})
    log.close()
    shutil.copy(other / SNAPSHOT, store / SNAPSHOT)
    assert "wal-1.jsonl is damaged at byte 0" in opened(store, read_only=False)[1]


def test_a_snapshot_under_another_number_is_told(store: Path) -> None:
    (store / SNAPSHOT).rename(store / "snap-2.json")
    (store / JOURNAL).rename(store / "wal-2.jsonl")
    assert "it belongs to generation 1" in opened(store, read_only=False)[1]


def test_what_was_refused_was_not_touched(store: Path) -> None:
    body = bytearray((store / JOURNAL).read_bytes())
    body[200] ^= 1
    (store / JOURNAL).write_bytes(body + b"torn")
    (store / "snap-0.json.new").write_bytes(b"left over")
    before = {path.name: path.read_bytes() for path in store.iterdir() if path.name != "LOCK"}
    assert opened(store, read_only=False)[0] == []
    assert {path.name: path.read_bytes() for path in store.iterdir() if path.name != "LOCK"} == before


@pytest.mark.parametrize("change", [{"version": 2}, {"version": None}])
def test_a_newer_format_is_told(tmp_path: Path, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from knotwork.adapters.state_json.log import journal

    monkeypatch.setattr(journal, "VERSION", change["version"])
    log, _ = Log.open(tmp_path / "new", files=Unsynced())
    log.close()
    monkeypatch.undo()
    assert "of the format; this program reads version 1" in opened(tmp_path / "new", read_only=False)[1]


PIECES = st.sampled_from(
    [b"\n", b"\0", b" ", b"{", b'"', b"0", b"f" * 64, b"f" * 64 + b" 5 ", b'{"synced":0,"record":1}']
) | st.binary(max_size=30)
EDITS = st.lists(st.tuples(st.integers(0, 800), st.integers(0, 120), PIECES), min_size=1, max_size=4)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from([SNAPSHOT, JOURNAL]), EDITS)
def test_whatever_is_done_to_a_file_a_beginning_is_found_or_it_is_refused(
    store: Path, name: str, edits: list[tuple[int, int, bytes]]
) -> None:
    body = (store / name).read_bytes()
    for at, gone, put in edits:
        body = body[:at] + put + body[at + gone :]
    for copy in copies(store, name, [body]):
        for read_only in (True, False):
            numbers, said = opened(copy, read_only=read_only)
            assert numbers == list(range(1, len(numbers) + 1))
            assert said or numbers == list(range(1, WHOLE + 1)) or (name == JOURNAL and whole_lines(body, store))
        verify(copy)


def whole_lines(body: bytes, store: Path) -> bool:
    """Say whether a body is the journal without its last lines, which nothing in the file shows."""
    journal = (store / JOURNAL).read_bytes()
    return journal.startswith(body) and len(body) in begins(journal)


def forged(store: Path, body: bytes) -> None:
    """Put a body behind the journal's last line whose hash is right."""
    last = lines_of(store)[-1][:64].decode()
    with open(store / JOURNAL, "ab") as file:
        file.write(link(last, body)[1])


@pytest.mark.parametrize(
    "record", [b"{", b"[NaN]", b"[1e999]", b"[18446744073709551616]", b"[" * 30_000, b'"\xff"', b"", b"1,2"]
)
def test_a_record_that_is_no_json_is_told_though_its_hash_is_right(store: Path, record: bytes) -> None:
    position = (store / JOURNAL).stat().st_size
    forged(store, b'{"synced":%d,"record":%b}' % (position, record))
    for read_only in (True, False):
        numbers, said = opened(store, read_only=read_only)
        assert numbers == []
        assert f"damaged at byte {position}" in said
    assert [damage.position for damage in verify(store).damage] == [position]


# After a clean close


def closed(directory: Path, *, compacted: bool = False) -> dict[str, bytes]:
    """Make a state with a counter that was closed in order and that has an export beside it; return its files."""
    store = open_store(directory)
    store.stage(DeclareKey("k", "COUNTER"))
    for step in range(3):
        store.note({"step": step})
        store.merge("k", 1)
        if compacted and step == 1:
            assert store._log.compact({"hash": store.hash, "state": store.as_json()}) == ""
    store.close()
    (directory / "export.json").write_bytes((directory / "state.json").read_bytes())
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def laid(directory: Path, files: dict[str, bytes]) -> None:
    for path in directory.iterdir():
        if path.name not in files:
            path.unlink()
    for name, body in files.items():
        (directory / name).write_bytes(body)


@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("masks", [(0,), pytest.param(range(0, 8, stride(3)), marks=pytest.mark.slow)])
def test_whatever_bit_is_flipped_after_a_clean_close_it_is_told_and_no_commit_is_lost(
    place: Path, masks: Iterable[int], compacted: bool
) -> None:
    files = closed(place / "s", compacted=compacted)
    assert (files["LOCK"], len(files)) == (b"", 5 + compacted)
    assert verify_state(place / "s").ok
    for name, body in files.items():
        for at in range(len(body)):
            for bit in masks:
                flip = bytearray(body)
                flip[at] ^= 1 << ((bit + at) % 8)
                laid(place / "s", {**files, name: bytes(flip)})
                assert [each.file for each in verify_state(place / "s").damage] == [name]
                if at % 7 == 0:
                    for read_only in (True, False):
                        store = open_store(place / "s", read_only=read_only)
                        assert (store.get("k"), len(store.history)) == (3, 3)
                        assert bool(store.notices) == (name not in ("state.json", "export.json"))
                        store.close()
                    assert open_store(place / "s", read_only=True).notices == []


@pytest.mark.parametrize("compacted", [False, True])
def test_a_journal_that_is_shorter_than_when_it_was_closed_is_told_and_the_state_is_there(
    place: Path, compacted: bool
) -> None:
    files = closed(place / "s", compacted=compacted)
    journal = f"wal-{int(compacted)}.jsonl"
    for length in range(-1, len(files[journal])):
        cut = {name: body for name, body in files.items() if name != journal or length >= 0}
        laid(place / "s", cut | ({journal: files[journal][:length]} if length >= 0 else {}))
        assert journal in [each.file for each in verify_state(place / "s").damage]
        store = open_store(place / "s")
        assert store.get("k") == 3
        assert "was read from state.json" in store.notices[0]
        store.merge("k", 1)
        store.close()
        assert open_store(place / "s", read_only=True).get("k") == 4
        aside = place / "s" / f"damaged-{journal}"
        assert aside.exists() == (length >= 0)
        assert length < 0 or aside.read_bytes() == files[journal][:length]


def test_where_state_json_is_no_whole_state_either_damage_is_refused(place: Path) -> None:
    files = closed(place / "s")
    flip = bytearray(files["wal-0.jsonl"])
    flip[-10] ^= 1
    for other in (b"", files["state.json"].replace(b'"value": 3', b'"value": 9')):
        laid(place / "s", {**files, "wal-0.jsonl": bytes(flip), "state.json": other})
        before = {path.name: path.read_bytes() for path in (place / "s").iterdir() if path.name != "LOCK"}
        for read_only in (True, False):
            with pytest.raises(StoreError, match=r"wal-0.jsonl is damaged at byte .* when the state was closed"):
                open_store(place / "s", read_only=read_only)
        assert {path.name: path.read_bytes() for path in (place / "s").iterdir() if path.name != "LOCK"} == before


def test_commits_after_the_mark_are_whole_torn_or_refused_but_never_dropped(place: Path) -> None:
    closed(place / "s")
    store = open_store(place / "s")
    store.merge("k", 1)
    kept = {path.name: path.read_bytes() for path in (place / "s").iterdir()}  # as a kill leaves it
    store._log.close(clean=False)
    journal, mark = kept["wal-0.jsonl"], verify(place / "s").seal
    assert mark is not None
    for at in range(len(journal)):
        flip = bytearray(journal)
        flip[at] ^= 4
        laid(place / "s", {**kept, "wal-0.jsonl": bytes(flip)})
        if at < mark.end:
            with pytest.raises(StoreError, match="damaged at byte"):
                open_store(place / "s")
        else:  # the last record, of which no later one says that it was on the disk
            store = open_store(place / "s")
            assert store.get("k") == 3
            assert "was torn at byte" in store.notices[0]
            store._log.close(clean=False)
            (aside,) = (place / "s").glob("torn-*")
            assert aside.read_bytes() == bytes(flip)[mark.end :]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b'"value": 3', b'"value": 4', "its checksum does not match"),
        (b'"step": 1', b'"step": 7', "its checksum does not match"),
        (b'"query": ""', b'"query": "x"', "its checksum does not match"),
    ],
)
def test_an_export_that_was_changed_is_told_and_not_opened(place: Path, old: bytes, new: bytes, said: str) -> None:
    files = closed(place / "s")
    export = place / "export.json"
    export.write_bytes(files["state.json"].replace(old, new, 1))
    assert said in verify_state(export).damage[0].reason
    with pytest.raises(StoreError, match=said):
        open_store(export)
    laid(place / "s", {**files, "state.json": export.read_bytes()})
    (damage,) = verify_state(place / "s").damage
    assert (damage.file, said in damage.reason) == ("state.json", True)


def test_state_json_that_is_older_than_the_journal_is_whole(place: Path) -> None:
    files = closed(place / "s")
    store = open_store(place / "s")
    store.merge("k", 1)
    store._log.close(clean=False)
    found = verify_state(place / "s")
    assert (found.ok, [each.status for each in found.files if each.name == "state.json"]) == (True, ["whole"])
    assert "not closed cleanly after the last commits" in found.notices[0]
    (place / "s" / "state.json").write_bytes(files["state.json"].replace(b'"value": 3', b'"value": 4'))
    assert [each.file for each in verify_state(place / "s").damage] == ["state.json"]
