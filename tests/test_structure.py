"""The structure: packaging, lazy imports, the lists that must agree with the folders, and the ceilings of size."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from support.folders import ROOT, TESTS

PARTS = ("grammar", "lang", "adapters", "runtime")
SUITES = {"bench", "browser", "faults", "golden", "local", "real", "seeds", "support"}
"""The folders of tests that belong to no folder of the source."""
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_every_folder_of_sources_is_a_package() -> None:
    folders = {path.parent for part in PARTS for path in (ROOT / part).rglob("*.py")}
    assert [
        str(folder) for folder in folders if not (folder / "__init__.py").is_file()
    ] == []  # setuptools leaves them out


def test_a_folder_of_the_same_name_does_not_hide_the_package(tmp_path: Path) -> None:
    (tmp_path / "knotwork").mkdir()
    code = "from knotwork import lwt; import knotwork; print(knotwork.__spec__.loader)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    # SourceFileLoader: type checkers find a package that the path finds, and none that an import hook makes.
    assert "SourceFileLoader" in done.stdout, done.stderr


def test_the_top_level_is_the_design_card() -> None:
    shown = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "__"))}
    assert shown - {"build", "dist"} - {name for name in shown if name.endswith(".egg-info")} == {
        *PARTS, "tests", "docs"
    }  # fmt: skip


def test_the_folders_of_tests_are_those_of_the_source_and_the_suites() -> None:
    files = [path.relative_to(TESTS) for path in TESTS.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert {path.parts[0] for path in files if len(path.parts) > 1} == {"lang", "adapters", "runtime"} | SUITES
    mirrored = {path.parent for path in files if path.parts[0] in PARTS}
    assert {str(folder) for folder in mirrored if not (ROOT / folder / "__init__.py").is_file()} == set()


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import knotwork", ("attrs", "lark", "typer", "knotwork.lang")),
        ("from knotwork import lwt; lwt.check(lwt.parse('(final)=LLM(\"x\")'))", ("openai", "networkx", "pydantic")),
        ("import knotwork.runtime.interfaces.cli", ("openai", "networkx", "lark", "pydantic")),
    ],
)
def test_imports_are_lazy(statement: str, absent: tuple[str, ...]) -> None:
    code = f"import sys; {statement}; print(' '.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    loaded = set(run.stdout.split())
    assert loaded.isdisjoint(absent), loaded & set(absent)


def test_the_public_names_are_what_the_stub_says() -> None:
    import knotwork

    stub = ast.parse((ROOT / "__init__.pyi").read_text(encoding="utf-8"))
    (names,) = [
        ast.literal_eval(node.value)
        for node in stub.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
    ]
    assert sorted(knotwork.__all__) == sorted(names)
    for name in names:
        assert getattr(knotwork, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        knotwork.nothing  # noqa: B018


def test_dev_has_every_extra() -> None:
    extras = PYPROJECT["project"]["optional-dependencies"]
    (own,) = [need for need in extras["dev"] if need.startswith("knotwork[")]
    assert set(own.removeprefix("knotwork[").rstrip("]").split(",")) == set(extras) - {"dev"}


SOURCES = [path for part in ("lang", "adapters", "runtime") for path in sorted((ROOT / part).rglob("*.py"))]


def lines_of(paths: Iterable[Path]) -> dict[str, int]:
    return {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in paths}


def test_the_source_stays_below_its_ceilings() -> None:
    # A feature raises a ceiling by what it needs, in the commit that adds it, and says so.
    assert len(SOURCES) <= 740
    assert sum(lines_of(SOURCES).values()) <= 177_000
    assert {name: lines for name, lines in lines_of(SOURCES).items() if lines > 500} == {}


CLOCKS = {"monotonic", "perf_counter", "process_time", "thread_time"}


def test_the_default_run_measures_no_time() -> None:
    # A busy machine fails such a test, not a fault. Slow tests may have bounds.
    found = []
    for path in TESTS.rglob("test_*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if any(
            re.search(r"mark\.(slow|browser)", ast.unparse(node)) for node in tree.body if isinstance(node, ast.Assign)
        ):
            continue
        own = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "support.cpu_time"]
        clocks = CLOCKS.union(alias.name for node in own for alias in node.names)
        for test in tree.body:
            if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef) and test.name.startswith("test_"):
                names = {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(test)}
                if names & clocks and "slow" not in "".join(map(ast.unparse, test.decorator_list)):
                    found.append(f"{path.relative_to(TESTS)}::{test.name}")
    assert found == []


def test_names_of_modules_tell_them_apart() -> None:
    stems = Counter(path.stem for path in SOURCES if path.stem != "__init__")
    assert {stem: count for stem, count in stems.items() if count > 3} == {}
    assert [name for name in lines_of(SOURCES) if name.endswith("ing.py")] == []
