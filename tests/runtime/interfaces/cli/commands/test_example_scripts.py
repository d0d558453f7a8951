"""The scripts of docs/examples/scripts: check, format, dry run, and their test cases with the answers beside them."""

import json
from pathlib import Path

import pytest
from support.command import call
from support.folders import ROOT

SCRIPTS = ROOT / "docs" / "examples" / "scripts"
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.lwt"))
FILES = sorted(SCRIPTS.rglob("*.lwt"))


@pytest.fixture(autouse=True)
def _root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))


def functions(name: str) -> tuple[str, ...]:
    return ("--functions", "docs/examples/scripts/parts/functions.py") if name == "prices" else ()


def test_each_script_has_cases_and_answers_and_the_guide_names_it() -> None:
    guide = (ROOT / "docs" / "scripts.md").read_text()
    assert len(NAMES) == 12
    for name in NAMES:
        assert (SCRIPTS / f"{name}.cases.jsonl").is_file() and (SCRIPTS / f"{name}.jsonl").is_file()
        assert f"| [{name}.lwt](examples/scripts/{name}.lwt) |" in guide, name


@pytest.mark.parametrize("name", NAMES)
def test_the_cases_pass_with_the_answers(name: str) -> None:
    folder = "docs/examples/scripts"
    words = ("test", f"{folder}/{name}.cases.jsonl", "--llm", f"replay:{folder}/{name}.jsonl", *functions(name))
    result = call(*words, "--no-cache")
    assert result.code == 0, result.out + result.err
    assert " failed" not in result.out and " passed in " in result.out


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_it_is_checked_and_formatted(file: Path) -> None:
    name = str(file.relative_to(ROOT))
    checked = call("check", name, *functions(file.stem))
    assert (checked.code, "warning" in checked.err) == (0, False), checked.err
    assert call("fmt", "--check", name).code == 0


@pytest.mark.parametrize("name", NAMES)
def test_the_dry_run_needs_no_model(name: str, tmp_path: Path) -> None:
    for number, line in enumerate((SCRIPTS / f"{name}.cases.jsonl").read_text().splitlines()):
        (tmp_path / f"{number}.json").write_text(json.dumps(json.loads(line)["input"]))
        words = ("run", f"docs/examples/scripts/{name}.lwt", "-i", tmp_path / f"{number}.json", "--dry-run")
        result = call(*words, *functions(name))
        assert result.code == 0, result.err
        assert "no model was called" in result.out


def test_prices_need_their_function() -> None:
    result = call(
        "test", "docs/examples/scripts/prices.cases.jsonl", "--llm", "replay:docs/examples/scripts/prices.jsonl"
    )
    assert result.code == 3
    assert 'unknown function "in_euros"' in result.err
