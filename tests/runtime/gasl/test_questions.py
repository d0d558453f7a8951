"""The thirty questions of the language's design, each on a small graph, against an answer in plain Python."""

import math
from typing import Any

import pytest
from knotwork.runtime.gasl.records import ContextStore
from support.clients import Scripted
from support.executing import executor
from support.folders import GOLDEN
from support.question_graphs import story, transfers, words
from support.question_oracles import ORACLES, same_person

QUESTIONS = GOLDEN / "gasl" / "questions"
GRAPHS = {"D": story, "W": words, "B": transfers}


def same(found: Any, wanted: Any, tolerance: float) -> bool:
    """Whether two values are equal, also in their types; floats may differ in their last digits."""
    if type(found) is not type(wanted):
        return False
    if isinstance(found, dict):
        return found.keys() == wanted.keys() and all(same(found[name], wanted[name], tolerance) for name in found)
    if isinstance(found, list):
        return len(found) == len(wanted) and all(
            same(one, other, tolerance) for one, other in zip(found, wanted, strict=True)
        )
    return math.isclose(found, wanted, rel_tol=tolerance) if isinstance(found, float) else bool(found == wanted)


def judged(prompt: str) -> str:
    names = [name for name in story() if f'"{name}"' in prompt]
    return same_person(*sorted(names, key=lambda name: prompt.index(f'"{name}"'))[:2])


BEFORE = {"W15": ('FIND nodes WHERE id = "dog.n.01" AS left', 'FIND nodes WHERE id = "cat.n.01" AS right')}
GIVEN = {"B30": {"account": "A1"}}
TOLERANCE = {"D8": 1e-4}  # the engine and the oracle stop their iterations at different errors


def answer(name: str, *, whole: bool) -> Any:
    """Return the value of the last command; the program runs as a whole, or command by command."""
    lines = (QUESTIONS / f"{name}.gasl").read_text(encoding="utf-8").splitlines()
    commands = [*BEFORE.get(name, ()), *(line for line in lines if not line.startswith("#"))]
    context = ContextStore()
    for variable, value in GIVEN.get(name, {}).items():
        context.set(variable, value)
    with executor(Scripted(default=judged), graph=GRAPHS[name[0]](), context=context) as at:
        records = at.run_plan("\n".join(commands)) if whole else [at.execute_one(command) for command in commands]
    failed = [(record.command, record.status, record.error) for record in records if record.status != "success"]
    assert not failed, failed
    return records[-1].value


@pytest.mark.parametrize("name", ORACLES)
@pytest.mark.parametrize("whole", [True, False], ids=["as a program", "by commands"])
def test_a_question_has_the_answer_of_plain_python(name: str, whole: bool) -> None:
    found, wanted = answer(name, whole=whole), ORACLES[name](GRAPHS[name[0]]())
    assert wanted, "the graph must have an answer, else the test shows nothing"
    assert same(found, wanted, TOLERANCE.get(name, 1e-9)), f"\nfound  {found}\nwanted {wanted}"


def test_every_question_has_a_program_and_an_answer() -> None:
    assert {path.stem for path in QUESTIONS.glob("*.gasl")} == set(ORACLES)
    assert len(ORACLES) == 30
