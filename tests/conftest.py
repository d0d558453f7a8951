"""Options and fixtures that every suite shares."""

import asyncio
import gc
import inspect
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings
from support.alone import UNSET, alone_in
from support.folders import ROOT

# No deadline: what a machine takes is measured in bench/, not asserted. The same examples in every run: what fails here fails
# there. `pytest --hypothesis-profile new` makes as many new ones, and `--hypothesis-profile search` far more.
settings.register_profile("knotwork", deadline=None, derandomize=True)
settings.register_profile("new", deadline=None, derandomize=False)
settings.register_profile("search", deadline=None, derandomize=False, max_examples=2_000)
settings.load_profile("knotwork")

_WHOLE_FILE = re.compile(r"^pytestmark = .*pytest\.mark\.(slow|browser)\b", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew instead of comparing")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore files of which the run selects no test: importing and collecting them takes longer than many tests.

    The default run has no file that is marked as a whole; the slow run has no file without the word.
    """
    selection = config.option.markexpr
    if collection_path.suffix != ".py" or selection not in ("not slow and not browser", "slow"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    if selection == "slow":
        return True if "slow" not in text and collection_path.name.startswith("test_") else None
    return True if _WHOLE_FILE.search(text) else None


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test in a new event loop."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.obj(**arguments))
    return True


def pytest_sessionstart(session: pytest.Session) -> None:
    """Take from the environment what is the user's, before any test is imported: no test depends on it.

    The weights of the local model stay the user's: they are large, and checked when they are loaded.
    """
    from knotwork.adapters.llm.weights import models_dir
    from knotwork.adapters.permissions import private_folder

    weights = models_dir().absolute()
    for name in UNSET:
        os.environ.pop(name, None)
    home = Path(tempfile.mkdtemp(prefix="knotwork-tests-"))
    os.environ["KNOTWORK_HOME"] = str(home)
    if find_spec("xllamacpp") is not None:
        private_folder(weights)
        (home / "models").symlink_to(weights)
    for name in ("no_proxy", "NO_PROXY"):  # the servers that tests start are in this machine
        os.environ[name] = ",".join(filter(None, (os.environ.get(name), "127.0.0.1", "localhost")))
    os.umask(0o022)
    if os.environ.pop("PYTHONDONTWRITEBYTECODE", None) and "PYTHONPYCACHEPREFIX" not in os.environ:
        # Compile a module once, not again in each of the thousand processes that tests start; leave nothing in the checkout.
        bytecode = tempfile.mkdtemp(prefix="knotwork-bytecode-")
        os.environ["PYTHONPYCACHEPREFIX"] = bytecode
        session.config.add_cleanup(lambda: shutil.rmtree(bytecode, ignore_errors=True))
    _read_grammars()
    session.config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))


def pytest_collection_finish() -> None:
    """Keep what collection made, some million objects, out of every later look of the garbage collector."""
    gc.collect()
    gc.freeze()


def _read_grammars() -> None:
    """Have their tables in this process from the beginning, or the first test that parses would write them into its own folder."""
    from knotwork.lang.parse.expr import parse_expr
    from knotwork.lang.parse.gasl import parse_gasl
    from knotwork.lang.parse.lwt import parse_lwt

    parse_lwt('(a)=LLM("x")')
    parse_gasl("FIND nodes AS n")
    parse_expr("1 + 1")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own, in which it works, with nothing of the user's in its environment."""
    return alone_in(tmp_path, monkeypatch)


@pytest.fixture(autouse=True)
def _leaves_no_trace() -> Iterator[None]:
    """Fail a test that writes where it was started, or into the home of all tests: the next one would find it there."""
    home, here = Path(os.environ["KNOTWORK_HOME"]), Path.cwd()
    before = _names(home), _visible(here)
    yield
    assert _names(home) == before[0], (
        "the test writes into the home that all tests share; KNOTWORK_HOME names one of its own"
    )
    assert here != ROOT or _visible(here) == before[1], "the test writes into the checkout; it has tmp_path"


def _names(home: Path) -> list[str]:
    return sorted(os.path.join(folder, name) for folder, _, names in os.walk(home) for name in names)


def _visible(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if not name.startswith((".", "__")))


class Golden:
    """Compares text with a file that stands beside the tests; ``--update-golden`` writes it."""

    def __init__(self, update: bool) -> None:
        self._update = update

    def check(self, path: Path, text: str) -> None:
        if self._update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        assert path.exists(), f"{path.name} is missing; see it with --update-golden"
        assert text == path.read_bytes().decode("utf-8")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(request.config.getoption("--update-golden"))
