"""The docs say what is true: generated pages are current, examples run, links lead somewhere, sessions print what stands there."""

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest
from knotwork import lwt

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(?:<!-- input: (?P<input>.*?) -->\n)?^(?P<fence>`{3,})(?P<kind>\w+)(?P<rest>[^\n]*)\n(?P<text>.*?)^(?P=fence)$",
    re.M | re.S,
)


def blocks(kind: str, rest: str | None = None) -> list[pytest.param]:
    return [
        pytest.param(match, id=f"{page.relative_to(ROOT)}:{number}")
        for page in PAGES
        for number, match in enumerate(BLOCK.finditer(page.read_text(encoding="utf-8")), 1)
        if match["kind"] == kind and (rest is None or match["rest"].strip() == rest)
    ]


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
    run = asyncio.run(lwt.run(script, input=given, llm=Obliging()))
    assert run.status == "complete"
    if mode == "strict" and '\n\n"]' not in block["text"]:
        assert lwt.format(script).split() == block["text"].split()


@pytest.mark.parametrize("block", blocks("python"))
def test_python_runs(block: re.Match[str], tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", block["text"]], capture_output=True, text=True, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr


def session(text: str, home: Path) -> str:
    """Run the ``$`` lines of a session in the repository and return the session as it went."""
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("KNOTWORK", "ANOT", "OPENAI", "ANTHROPIC"))
    } | {"KNOTWORK_HOME": str(home), "COLUMNS": "100", "NO_COLOR": "1", "PYTHONWARNINGS": "error"}
    seen = []
    for line in text.splitlines():
        if line.startswith("$ "):
            words = line[2:].replace("knotwork ", f"{shlex.quote(sys.executable)} -m knotwork ")
            run = subprocess.run(
                words,
                shell=True,
                cwd=ROOT,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            seen.append(line)
            seen += run.stdout.rstrip("\n").splitlines()
    return "\n".join(seen)


def steady(text: str) -> str:
    """Put fixed words for what differs from run to run: times, run ids, paths of the home."""
    text = re.sub(r"\d+(?:\.\d+)? m?s\b", "N s", text)
    text = re.sub(r"\b\d{8}-\d{6}-\w+", "RUN", text)
    text = re.sub(r"[^\s'\"]*/(?=runs/|models/)", "HOME/", text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def compare(block: re.Match[str], home: Path, update: bool) -> None:
    """Run a session; it must print what stands there, or with ``--update-golden`` what it prints will stand there."""
    went = session(block["text"], home)
    if update:
        went = went.replace(str(home), "~/.local/state/knotwork")
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            if block[0] in text:
                page.write_text(text.replace(block[0], block[0].replace(block["text"], went + "\n")), encoding="utf-8")
    else:
        assert steady(went) == steady(block["text"])


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))


@pytest.mark.parametrize("block", blocks("console", ""))
def test_sessions_print_what_stands_there(block: re.Match[str], tmp_path: Path, update: bool) -> None:
    compare(block, tmp_path, update)


@pytest.mark.slow
@pytest.mark.parametrize("block", blocks("console", "local"))
def test_sessions_on_the_local_model_print_what_stands_there(
    block: re.Match[str], tmp_path: Path, update: bool
) -> None:
    # The weights stay where the session has them; runs and caches are this test's own.
    found = Path(os.environ.get("KNOTWORK_HOME") or platformdirs.user_cache_path("knotwork")) / "models"
    if found.is_dir():
        (tmp_path / "models").symlink_to(found)
    compare(block, tmp_path, update)


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
