"""Notebooks in a real kernel: the example, and an interrupt while a model is slow.

The page and the pictures are made here: after a change, run with ``--update-golden`` and look at the difference.
"""

import re
import time
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from support.command import silent_server
from support.folders import DOCS
from support.notebooks import answering, executed, kernel, steady, told

pytestmark = pytest.mark.slow

EXAMPLE = DOCS / "examples/notebook/miserables.ipynb"
PAGE = DOCS / "reference/notebook.md"
SECTION = re.compile(r"(?<=<!-- notebook: begin -->\n).*?(?=<!-- notebook: end -->)", re.S)


def test_the_example_comes_to_what_it_says(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    made = executed(EXAMPLE, tmp_path)
    text, pictures = told(made, "../pictures/")
    assert len(pictures) == 3 and "Traceback" not in text
    page = PAGE.read_text(encoding="utf-8")
    files = {EXAMPLE: nbformat.writes(made) + "\n", PAGE: SECTION.sub(lambda _: text, page)}
    files |= {DOCS / "pictures" / name: svg for name, svg in pictures.items()}
    for path, wanted in files.items():
        if request.config.getoption("--update-golden"):
            path.write_text(wanted, encoding="utf-8")
        assert steady(path.read_text(encoding="utf-8")) == steady(wanted), path.name


def test_two_runs_of_a_notebook_are_the_same_however_long_a_model_takes(tmp_path: Path) -> None:
    kept = []
    for delay in (0.0, 1.2):
        home = tmp_path / str(delay)
        home.mkdir()
        with answering(delay) as spec:
            cells = [
                "%load_ext knotwork\nimport os\n%kw open --llm $SPEC".replace("$SPEC", spec),
                '%%lwt\n(a)=LLM("p1")\n(b)=LLM("p2 {(a)}")',
            ]
            cells += ['print("before")\n%kw (c)=LLM("p3")\nprint("after")', '%%kw\n(d)=LLM("p4")\nd\n(e)=LLM("p5")']
            notebook = new_notebook(cells=[new_code_cell(text, id=f"c{at}") for at, text in enumerate(cells)])
            (home / "n.ipynb").write_text(nbformat.writes(notebook), encoding="utf-8")
            made = executed(home / "n.ipynb", home, KNOTWORK_API_KEY="x")
        kept.append([cell.outputs for cell in made.cells])
        assert [len(outputs) for outputs in kept[-1]] == [1, 1, 3, 3]
    assert kept[0] == kept[1]


def test_an_interrupt_cancels_what_a_model_does_and_the_session_goes_on(tmp_path: Path) -> None:
    with silent_server() as (spec, asked), kernel(tmp_path, KNOTWORK_API_KEY="x") as (manager, client):
        client.execute_interactive(f"%load_ext knotwork\n%kw open --llm {spec}", timeout=30, output_hook=lambda m: None)
        client.execute_interactive("%kw n = 41", timeout=30, output_hook=lambda m: None)
        seen: list[str] = []
        interrupted = False

        def hook(message: dict) -> None:
            nonlocal interrupted
            said = message["content"].get("data", {}).get("text/plain", "")
            seen.append(said)
            if "waiting for a model, 1 in progress" in said and asked.is_set() and not interrupted:
                interrupted = True
                manager.interrupt_kernel()

        began = time.monotonic()
        reply = client.execute_interactive('%%lwt\n(why)=LLM("Why?")', timeout=30, output_hook=hook)
        assert interrupted and time.monotonic() - began < 20
        assert any("interrupt cancels" in said for said in seen)
        assert reply["content"]["evalue"] == "cancelled; finished work is kept"
        assert reply["content"]["traceback"] == ["cancelled; finished work is kept"]
        client.execute_interactive("%kw n + 1", timeout=30, output_hook=lambda m: seen.append(str(m["content"])))
        assert "'text/plain': '42'" in "".join(seen)
