"""The docs are correct: generated pages are current, examples run, links have targets, sessions print the output that is shown."""

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pexpect
import platformdirs
import pytest
from knotwork import gasl, lwt
from knotwork.lang.catalogue.operations import FUNCTIONS, METHODS
from knotwork.lang.trees.gasl import Statement
from python_page import examples, functions
from support.folders import ROOT

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(?:<!-- input: (?P<input>.*?) -->\n)?^(?P<fence>`{3,})(?P<kind>\w+)(?P<rest>[^\n]*)\n(?P<text>.*?)^(?P=fence)$",
    re.M | re.S,
)


def of_page(value: object, page: Path, ending: str = "", *, in_processes: bool = False) -> pytest.param:
    """Return what stands on a page, for a test of it. Those that take a process each take seconds: only the README's are quick enough."""
    marks = (pytest.mark.slow,) if in_processes and page.name != "README.md" else ()
    return pytest.param(value, id=f"{page.relative_to(ROOT)}{ending}", marks=marks)


def blocks(kind: str, *, in_processes: bool = False) -> list[pytest.param]:
    return [
        of_page(match, page, f":{number}", in_processes=in_processes)
        for page in PAGES
        for number, match in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8")), 1)
        if match["kind"] == kind and page.name != "python.md"  # its examples are run below
    ]


@pytest.mark.slow
def test_generated_pages_are_current() -> None:
    run = subprocess.run([sys.executable, ROOT / "docs/generate.py", "--check"], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


class Obliging:
    """A model that answers something of the wanted kind."""

    async def generate(self, prompt: str, **options: object) -> str:
        if choices := options.get("choices"):
            return str(next(iter(choices)))
        return '{"capital": "Paris", "rivers": ["Seine"]}' if "JSON" in prompt else "3"


@pytest.mark.parametrize("block", blocks("lwt"))
def test_scripts_check_run_and_are_formatted(block: re.Match[str]) -> None:
    mode = "lenient" if "lenient" in block["rest"] else "strict"
    script = lwt.parse(block["text"], mode=mode)
    given = json.loads(block["input"]) if block["input"] else None
    assert [d for d in lwt.check(script, input=given) if d.severity == "error"] == []
    run = asyncio.run(lwt.run(script, input=given, llm=Obliging(), graph="nx:les_miserables"))
    assert run.status == "complete"
    if mode == "strict" and '\n\n"]' not in block["text"]:
        assert lwt.format(script).split() == block["text"].split()


ON = re.compile(r"<!-- graph: (?P<graph>\S+)(?: · llm: (?P<llm>\S+))? -->\n$")


@pytest.mark.parametrize("block", blocks("gasl"))
def test_programs_run_and_come_to_what_their_comments_say(
    block: re.Match[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    on = ON.search(block.string, 0, block.start())
    text = block["text"]
    with gasl.open(on["graph"] if on else "nx:les_miserables", llm=on["llm"] if on else None) as executor:
        program = gasl.parse(text)
        assert program.diagnostics == ()
        records = executor.run_plan(text)
        assert len(records) == len(program.statements)
    told = iter(records)
    for item in program.items:
        if isinstance(item, Statement):
            record = next(told)
        elif item.trailing and (said := re.fullmatch(r"# (\w+)(?:, ([\d,]+))?", item.text)):
            count = record.metrics.get("count")
            assert said[0] == f"# {record.status}" + (f", {count:,}" if said[2] else ""), record.command
    assert gasl.format(text).split() == text.split()


@pytest.mark.slow
@pytest.mark.parametrize("block", blocks("python", in_processes=True))
def test_python_runs(block: re.Match[str], tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", block["text"]], capture_output=True, text=True, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("names", sorted({text: name for name, text in examples().items()}.values()))
def test_examples_of_functions_run(names: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path))
    exec(compile(examples()[names], names, "exec"), {"__name__": names})


def test_every_function_has_an_example_and_names_its_errors() -> None:
    errors = dict(functions())
    assert len(errors) > 30
    assert [name for name in errors if name not in examples() or not errors[name]] == []


KEYS = re.compile(r"<!-- keys: (?P<keys>\S+) -->\n$")
CLEARED = "\x1b[2J\x1b[H"
"""Written by a full-screen command before each screen."""


def on_terminal(words: str, keys: str, environment: dict[str, str], folder: Path) -> str:
    """Run a full-screen command, press ``keys`` on its first screen, and return this screen and what stands there after the last one."""
    child = pexpect.spawn(
        "sh", ["-c", words], cwd=str(folder), env={**environment, "TERM": "xterm"}, dimensions=(24, 100), encoding="utf-8", timeout=60
    )  # fmt: skip
    child.expect_exact(CLEARED)
    child.send(keys)
    child.expect(pexpect.EOF)
    first, _, rest = child.before.partition(CLEARED)
    after = rest.rpartition("\x1b[?1049l")[2]
    return re.sub(r"\x1b\[\S*?[A-Za-z]", "", first + after).replace("\r\n", "\n")


def session(text: str, home: Path, folder: Path, keys: str = "") -> str:
    """Run the ``$`` lines of a session in ``folder``, which sees ``docs``, and return the session as it went.

    With ``keys``, the commands run on a terminal, on which these keys are pressed.
    """
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("KNOTWORK", "ANOT", "OPENAI", "ANTHROPIC"))
    } | {"KNOTWORK_HOME": str(home), "COLUMNS": "100", "NO_COLOR": "1", "PYTHONWARNINGS": "error"}
    seen = []
    for line in text.splitlines():
        if line.startswith("$ "):
            words = line[2:].replace("knotwork ", f"{shlex.quote(sys.executable)} -m knotwork ")
            seen.append(line)
            if keys:
                seen += on_terminal(words, keys, environment, folder).rstrip("\n").splitlines()
                continue
            run = subprocess.run(
                words,
                shell=True,
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            seen += run.stdout.rstrip("\n").splitlines()
    return "\n".join(seen)


def steady(text: str) -> str:
    """Put fixed words for what differs from run to run: times, run ids, hashes, paths of the home."""
    text = re.sub(r"\d+(?:\.\d+)? m?s\b", "N s", text)
    text = re.sub(r"^seconds +\d.*$", "seconds N", text, flags=re.M)
    text = re.sub(r"\b\d{8}-\d{6}-\w+", "RUN", text)
    text = re.sub(r"\b[0-9a-f]{12}(?:[0-9a-f]{52})?\b|[\d,]+ bytes", "N", text)  # hashes; records have times in them
    text = re.sub(r"[^\s'\"]*/(?=runs/|models/)", "HOME/", text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def compare(page: Path, rest: str, work: Path, update: bool, prepare: Callable[[Path], None] = Path.mkdir) -> None:
    """Run a page's sessions in their order, in one folder, each with a home of its own.

    They must print what stands there, or with ``--update-golden`` what they print will stand there.
    """
    folder = work / "here"
    folder.mkdir()
    (folder / "docs").symlink_to(ROOT / "docs")
    for number, block in enumerate(sessions(page, rest)):
        home = work / f"home{number}"
        prepare(home)
        pressed = KEYS.search(block.string, 0, block.start())
        went = session(block["text"], home, folder, pressed["keys"] if pressed else "")
        if update:
            went = went.replace(str(home), "~/.local/state/knotwork")
            text = page.read_text(encoding="utf-8")
            page.write_text(text.replace(block[0], block[0].replace(block["text"], went + "\n")), encoding="utf-8")
        else:
            assert steady(went) == steady(block["text"])


def sessions(page: Path, rest: str) -> list[re.Match[str]]:
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [block for block in found if block["kind"] == "console" and block["rest"].strip() == rest]


def pages(rest: str) -> list[pytest.param]:
    return [of_page(page, page, in_processes=True) for page in PAGES if sessions(page, rest)]


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.mark.slow
@pytest.mark.parametrize("page", pages(""))
def test_sessions_print_what_stands_there(page: Path, tmp_path: Path, update: bool) -> None:
    compare(page, "", tmp_path, update)


@pytest.mark.slow
@pytest.mark.parametrize("page", pages("local"))
def test_sessions_on_the_local_model_print_what_stands_there(page: Path, tmp_path: Path, update: bool) -> None:
    # The weights stay where the session has them; runs and caches are this test's own.
    found = Path(os.environ.get("KNOTWORK_HOME") or platformdirs.user_cache_path("knotwork")) / "models"

    def with_weights(home: Path) -> None:
        home.mkdir()
        if found.is_dir():
            (home / "models").symlink_to(found)

    compare(page, "local", tmp_path, update, with_weights)


def test_every_function_of_expressions_is_in_the_reference() -> None:
    page = (ROOT / "docs/reference/expr.md").read_text(encoding="utf-8")
    for function in (*FUNCTIONS.values(), *METHODS.values()):
        assert f"| `{function.signature}` | {function.doc} |" in page


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
