"""The real command as a process: pipes, signals, locales, terminals, keys."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from knotwork.runtime.interfaces.cli.output import cancelling
from support.command import call, environment, process, silent_server

posix = pytest.mark.skipif(sys.platform == "win32", reason="signals and terminals of POSIX")
SCRIPT = '(a)=CONST("first")\n(final)=LLM("wait {(a)}")\n'


@contextmanager
def started(folder: Path, *args: str, **streams: int) -> "Iterator[subprocess.Popen[bytes]]":
    """Start the command; whatever happens in the test, it does not outlive it."""
    command = [sys.executable, "-m", "knotwork", *args]
    with subprocess.Popen(command, env=environment(folder), cwd=folder, stdin=subprocess.DEVNULL, **streams) as running:
        try:
            yield running
        finally:
            running.kill()


def until_asked(asked: threading.Event, running: "subprocess.Popen[bytes]") -> None:
    while not asked.wait(0.05):
        assert running.poll() is None, "the command ended before it asked the model"


@pytest.mark.slow
def test_a_pipe_gets_the_output_alone(folder: Path, cafes: str) -> None:
    result = process("run", "cafes.lwt", "-i", "request.json", "--llm", cafes, home=folder)
    assert (result.code, result.out) == (0, "1\n")
    assert "complete: 3 of 3 steps" in result.err


@pytest.mark.slow
@posix
def test_a_reader_that_has_gone_gets_no_word(folder: Path, cafes: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with started(folder, "rules", stdout=writer, stderr=subprocess.PIPE) as running:
        os.close(writer)
        _, err = running.communicate(timeout=30)
    assert err == b""
    assert running.returncode == 1


@pytest.mark.slow
@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_run_and_keeps_what_is_finished(folder: Path, number: int) -> None:
    (folder / "x.lwt").write_text(SCRIPT)
    with (
        silent_server() as (spec, asked),
        started(folder, "run", "x.lwt", "--llm", spec, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running,
    ):
        until_asked(asked, running)
        sent = time.perf_counter()
        running.send_signal(number)
        out, err = running.communicate(timeout=30)
        took = time.perf_counter() - sent
    told = err.decode()
    assert running.returncode == 130
    assert out == b""
    assert "skipped (final): cancelled while it ran" in told
    assert "cancelled: 1 of 2 steps" in told
    assert "resume with: knotwork run x.lwt --resume" in told
    assert "Traceback" not in told
    assert took < 5


@posix
def test_a_second_ctrl_c_leaves_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[object] = []
    monkeypatch.setattr(os, "_exit", told.append)

    async def stubborn() -> None:
        cancel = asyncio.Event()
        with cancelling(cancel, lambda text: told.append("first"), lambda: told.append("last")):
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(0)
            assert cancel.is_set()
            signal.raise_signal(signal.SIGINT)  # at once: nothing is waited for

    before = signal.getsignal(signal.SIGINT)
    asyncio.run(stubborn())
    assert told[:3] == ["first", "last", 130]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.slow
@posix
def test_a_terminal_gets_the_live_display_and_it_back_after_ctrl_c(folder: Path) -> None:
    import pty

    (folder / "x.lwt").write_text(SCRIPT)
    parent, child = pty.openpty()
    with (
        silent_server() as (spec, asked),
        started(folder, "run", "x.lwt", "--llm", spec, stdout=child, stderr=child) as running,
    ):
        os.close(child)
        until_asked(asked, running)
        time.sleep(0.3)
        running.send_signal(signal.SIGINT)
        seen = b""
        while True:
            try:
                part = os.read(parent, 65536)
            except OSError:
                break
            if not part:
                break
            seen += part
        assert running.wait(30) == 130
    os.close(parent)
    shown = seen.decode()
    assert "1/2 steps" in shown
    assert "stopping; Ctrl-C again exits at once" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")  # the cursor is back
    assert "cancelled" in shown


@posix
def test_a_file_name_that_is_not_utf8_leaves_no_half_character_in_json(
    folder: Path,
) -> None:
    name = os.fsdecode(b"soup-\xff.lwt")
    (fault,) = json.loads(call("check", "--format", "json", name).out)
    assert fault["file"] == "soup-\ufffd.lwt"


@pytest.mark.slow
def test_a_locale_without_unicode(folder: Path) -> None:
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    result = process("run", "-", home=folder, env=env, stdin='(final)=CONST("caf\u00e9 \U0001f600")\n'.encode())
    assert (result.code, result.out) == (0, "caf\\u00e9 \\ud83d\\ude00\n")
    assert "complete: 1 of 1 step - 0 calls" in result.err


@pytest.mark.slow
def test_keys_never_show(folder: Path) -> None:
    (folder / "x.lwt").write_text('(final)=LLM("hi", retries=0, timeout=1)\n')
    keys = {name: f"sk-secret-{name.lower()}" for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "KNOTWORK_API_KEY")}
    with silent_server() as (spec, _):
        result = process(
            "run", "x.lwt", "--llm", spec, "--format", "json", home=folder, env={**keys, "KNOTWORK_DEBUG": "3"}
        )
    assert result.code == 1
    assert result.json["steps"]["final"]["kind"] == "timeout"
    written = result.out + result.err
    for path in (folder / "knotwork").rglob("*"):
        if path.is_file():
            written += path.read_bytes().decode("latin-1")
    assert "sk-secret" not in written


@pytest.mark.slow
def test_help_imports_nothing_heavy() -> None:
    program = (
        "import sys; sys.argv = ['knotwork', '--help']\n"
        "from knotwork.runtime.interfaces.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'lark', 'openai', 'networkx', 'orjson', 'rapidfuzz', 'asyncio', 'pydantic'}\n"
        "light = {'knotwork.lang.diagnostic', 'knotwork.lang.errors'}\n"
        "of_lang = {name for name in sys.modules if name.startswith('knotwork.lang.')} - light\n"
        "print(sorted(heavy & sys.modules.keys() | of_lang), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stderr.strip() == "[]"


@pytest.mark.slow
@posix
def test_a_full_disk_is_told(folder: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with (
        open("/dev/full", "wb") as full,
        started(folder, "rules", stdout=full.fileno(), stderr=subprocess.PIPE) as running,
    ):
        _, err = running.communicate(timeout=30)
    assert running.returncode == 1
    assert err.decode().startswith("error: the output can't be written: No space left")
    assert len(err.splitlines()) == 1


@pytest.mark.slow
@posix
def test_closed_streams(folder: Path) -> None:
    command = f"{sys.executable} -m knotwork check x.lwt >&- 2>&- <&-"
    (folder / "x.lwt").write_text(SCRIPT)
    assert subprocess.run(["sh", "-c", command], env=environment(folder), cwd=folder, timeout=30).returncode == 0
