"""The folder of prepared copies: a copy is used while its file is unchanged, made anew when it is damaged, and the folder is bounded."""

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from knotwork.adapters.graph import AdapterError
from knotwork.adapters.graph_networkx import loader, prepared_copy
from knotwork.adapters.graph_networkx.loader import load
from knotwork.adapters.graph_networkx.prepared_copy import CopyFolder
from support.graphs import GRAPHML, write

pytestmark = pytest.mark.usefixtures("columns_for_small_graphs_too")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(prepared_copy, "SMALLEST_FILE", 0)
    monkeypatch.setattr(
        "knotwork.runtime.models.factory.graph_copies", lambda: CopyFolder(tmp_path / "home", smallest=0)
    )
    monkeypatch.setattr(prepared_copy, "_FRESH", -(10**18))  # the files of a test are always new
    return tmp_path / "home"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path, "g.graphml", GRAPHML)


def opened(file: Path, folder: CopyFolder, **options: Any) -> loader.Loaded:
    folder.notes.clear()
    found = load(file, copies=folder, **options)
    assert [item["id"] for item in found.adapter.find_nodes("age = 41")] == ["ann"]
    return found


@pytest.fixture
def folder(home: Path) -> CopyFolder:
    return CopyFolder(home, smallest=0)


def test_an_unchanged_file_is_not_read(file: Path, folder: CopyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not opened(file, folder).report.prepared
    monkeypatch.setattr(prepared_copy, "content_hash", lambda path: pytest.fail("the file is read"))
    assert opened(file, folder).report.prepared
    monkeypatch.setattr(prepared_copy, "_FRESH", 2_000_000_000)
    with pytest.raises(
        pytest.fail.Exception
    ):  # a file that was just written may have changed within its time's resolution
        opened(file, folder)


def test_verify_reads_the_content_again(file: Path, folder: CopyFolder) -> None:
    opened(file, folder)
    read: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        hashed = prepared_copy.content_hash
        patch.setattr(prepared_copy, "content_hash", lambda path: read.append(path) or hashed(path))
        assert opened(file, folder, verify=True).report.prepared
    assert read == [file]


def test_changed_content_is_loaded_anew(file: Path, folder: CopyFolder) -> None:
    opened(file, folder)
    before = file.stat()
    file.write_text(GRAPHML.replace("Ann", "Eve"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # its size and time are those of before
    found = opened(file, folder)
    assert not found.report.prepared
    assert found.adapter.get_node("ann") == {"id": "ann", "age": 41, "name": "Eve & Co"}
    file.write_text(GRAPHML)
    assert opened(file, folder).report.prepared  # the copy of the former content is still there


def test_the_same_content_elsewhere_has_the_same_copy(file: Path, folder: CopyFolder, tmp_path: Path) -> None:
    opened(file, folder)
    other = write(tmp_path, "other.graphml", GRAPHML)
    found = opened(other, folder)
    assert found.report.prepared
    assert (found.report.source, found.adapter.schema.name, found.adapter.name) == (str(other),) * 3
    assert len(folder.entries()) == 1


def test_options_and_the_format_have_copies_of_their_own(file: Path, folder: CopyFolder, tmp_path: Path) -> None:
    opened(file, folder)
    assert not opened(file, folder, raw=True).report.prepared
    table = "source,target\nann,bob\n"
    load(write(tmp_path, "a.csv", table), copies=folder)
    assert not load(write(tmp_path, "b.tsv", "source\ttarget\nann\tbob\n"), copies=folder).report.prepared
    with pytest.raises(AdapterError):
        load(write(tmp_path, "c.json", table), copies=folder)


def test_small_files_strict_graphs_and_graphs_of_networkx_have_none(file: Path, home: Path) -> None:
    for options in ({"strict": True}, {"copies": None}, {"copies": CopyFolder(home)}):
        load(file, **{"copies": CopyFolder(home, smallest=0), **options})
    load("nx:karate_club", copies=CopyFolder(home, smallest=0))
    assert not home.exists() or not os.listdir(home)


@pytest.mark.slow
def test_every_damaged_byte_of_a_copy_is_found(file: Path, folder: CopyFolder) -> None:
    opened(file, folder)
    (copy,) = [path for path in folder.path.iterdir() if path.name != "paths"]
    for part in ("copy.json", "arrays.bin"):
        content = (copy / part).read_bytes()
        for at in range(0, len(content), 97):
            (copy / part).write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
            found = opened(file, folder)
            assert not found.report.prepared
            assert [note for note in found.report.notes if "was deleted and is created again" in note]
            assert (copy / part).read_bytes() == content or part == "copy.json"
            assert opened(file, folder).report.prepared
            if part == "copy.json":
                content = (copy / part).read_bytes()


@pytest.mark.parametrize("damage", ["no arrays", "no manifest", "empty", "cut", "text", "link", "file", "another name"])
def test_a_copy_that_is_none_is_replaced(file: Path, folder: CopyFolder, damage: str, tmp_path: Path) -> None:
    opened(file, folder)
    (copy,) = [path for path in folder.path.iterdir() if path.name != "paths"]
    match damage:
        case "no arrays":
            (copy / "arrays.bin").unlink()
        case "no manifest":
            (copy / "copy.json").unlink()
        case "empty":
            (copy / "copy.json").write_bytes(b"")
        case "cut":
            os.truncate(copy / "arrays.bin", 10)
        case "text":
            (copy / "copy.json").write_text("[" * 100_000)
        case "link":
            shutil.move(copy, tmp_path / "away")
            copy.symlink_to(tmp_path / "away", target_is_directory=True)
        case "file":
            shutil.rmtree(copy)
            copy.write_text("x")
        case "another name":
            found = json.loads((copy / "copy.json").read_bytes().partition(b"\n")[2])
            body = json.dumps({**found, "name": "other"}).encode()
            (copy / "copy.json").write_bytes(prepared_copy.blake3(body).hexdigest().encode() + b"\n" + body)
    found = opened(file, folder)
    assert not found.report.prepared
    assert len(found.report.notes) == 1
    assert "was deleted and is created again" in found.report.notes[0]
    assert opened(file, folder).report.prepared
    assert len(folder.entries()) == 1


@pytest.mark.skipif(not hasattr(os, "chown") or os.getuid() != 0, reason="needs another owner")
def test_a_copy_of_another_user_is_replaced(file: Path, folder: CopyFolder) -> None:
    opened(file, folder)
    (copy,) = [path for path in folder.path.iterdir() if path.name != "paths"]
    os.chown(copy, 12345, -1)
    assert "another user wrote it" in opened(file, folder).report.notes[0]
    os.chown(folder.path, 12345, -1)
    found = opened(file, folder)
    assert "only you can write" in found.report.notes[0]
    assert not found.report.prepared


def test_a_folder_that_others_can_write_is_not_used(file: Path, folder: CopyFolder) -> None:
    opened(file, folder)
    folder.path.chmod(0o777)
    assert not opened(file, folder).report.prepared


def test_the_copies_used_last_are_kept_within_the_bound(tmp_path: Path, home: Path) -> None:
    folder = CopyFolder(home, smallest=0)
    paths = [write(tmp_path, f"{at}.graphml", GRAPHML.replace("41", f"4{at}")) for at in range(4)]
    for at, path in enumerate(paths):
        load(path, copies=folder)
        os.utime(home / folder.entries()[0].name / "copy.json", (at, at))
    size = folder.entries()[0].bytes
    load(paths[0], copies=folder)  # now the one used last
    small = evolve(folder, largest=3 * size + size // 2)
    load(write(tmp_path, "4.graphml", GRAPHML.replace("41", "44")), copies=small)
    assert sorted(Path(entry.source).name for entry in folder.entries()) == ["0.graphml", "3.graphml", "4.graphml"]
    tiny = evolve(folder, largest=10)
    load(write(tmp_path, "5.graphml", GRAPHML.replace("41", "45")), copies=tiny)
    assert tiny.entries() == []  # no copy is larger than the bound


def test_what_killed_processes_left_is_deleted_later(file: Path, folder: CopyFolder) -> None:
    left = folder.path / ".new-left"
    left.mkdir(parents=True, mode=0o700)
    opened(file, folder)
    assert left.exists()
    os.utime(left, (1, 1))
    opened(file, folder, raw=True)
    assert not left.exists()
    assert len(folder.entries()) == 2


def test_a_full_disk_costs_only_the_copy(file: Path, folder: CopyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("knotwork.adapters.graph_networkx.stored_columns.ArrayWriter.add", full)
    found = opened(file, folder)
    assert [note for note in found.report.notes if "no space left" in note]
    assert folder.entries() == []
    assert not [name for name in os.listdir(folder.path) if name.startswith(".new-")]


def test_two_threads_at_once_write_one_copy(file: Path, home: Path) -> None:
    errors: list[Any] = []

    def work() -> None:
        try:
            folder = CopyFolder(home, smallest=0)
            for _ in range(5):
                assert opened(file, folder).report.notes == ()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(CopyFolder(home).entries()) == 1


@pytest.mark.slow
def test_the_networkx_library_is_not_needed_to_open_a_copy(file: Path, folder: CopyFolder, tmp_path: Path) -> None:
    opened(file, folder)
    code = (
        "import sys; from pathlib import Path; from knotwork.adapters.graph_networkx.loader import load\n"
        "from knotwork.adapters.graph_networkx.prepared_copy import CopyFolder\n"
        f"found = load({str(file)!r}, copies=CopyFolder(Path({str(folder.path)!r}), smallest=0))\n"
        "assert found.report.prepared and found.adapter.find_nodes('age > 1') and found.adapter.schema\n"
        "assert 'networkx' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_a_large_graphml_file_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "LARGEST_FILE", 1000)
    text = GRAPHML.replace("Ann &amp; Co", "x" * (3 << 20))
    told: list[tuple[int, int]] = []
    path = write(tmp_path, "large.graphml", text)
    found = load(path, progress=lambda *progress: told.append(progress))
    assert found.adapter.get_node("ann")["name"] == "x" * (3 << 20)  # type: ignore[index]
    assert told[0] == (0, len(text))
    assert told[-1] == (len(text), len(text))
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    with pytest.raises(AdapterError, match="larger than 0 MiB"):
        load(write(tmp_path, "large.csv", "source,target\n" + "a,b\n" * 1000))
    with pytest.raises(AdapterError, match="larger than 1 MiB"):
        load(path, largest=1 << 20)
