"""Rankings, questions about a graph and judged answers as targets."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from knotwork import evals
from support.folders import EXAMPLES

CAFES = EXAMPLES / "rank/cafes.json"
REQUEST = "cafe with drive-thru, kid-friendly, without TVs"


def ranked(relevant: Any) -> evals.EvaluationReport:
    rows = [{"request": REQUEST, "relevant": relevant}]
    return evals.run_sync(f"rank:{CAFES}", rows, candidates={"m": f"replay:{EXAMPLES / 'rank/answers.jsonl'}"})


def test_rankings_are_scored_by_names_or_positions() -> None:
    assert ranked("6")["m"].relevant.hit1.value == 1.0
    names = [item["item_name"] for item in json.loads(CAFES.read_text())]
    assert ranked(names[5])["m"].relevant.mrr.value == 1.0
    assert ranked([1])["m"].relevant.hit1.value == 0.0


def test_unknown_items_are_faults() -> None:
    with pytest.raises(evals.GoldError, match="unknown item 'Milkcrat Cafe'; did you mean Milkcrate Cafe"):
        ranked("Milkcrat Cafe")
    with pytest.raises(evals.GoldError, match="position 99 does not exist"):
        ranked("99")


def test_questions_are_scored_with_their_evidence() -> None:
    rows = [{"question": "Who meets the most people?", "expect": "36"}]
    report = evals.run_sync(
        "ask:nx:les_miserables", rows, candidates={"m": f"replay:{EXAMPLES / 'ask/miserables.jsonl'}"}
    )
    scores = report["m"].expect
    assert scores.kind == "number" and scores.within.value == 1.0 and scores.evidence.value == 1.0


class Judge:
    """Scores an answer by the number in it."""

    def __init__(self) -> None:
        self.calls = 0

    async def generate(self, prompt: str, **options: Any) -> str:
        self.calls += 1
        score = next(score for score in (0.9, 0.2) if f"answer {score}" in prompt)
        return json.dumps(
            {"score": score, "meets_criteria": score > 0.8, "evaluation_reasoning": "so", "improvement_suggestions": []}
        )


@pytest.mark.slow
def test_a_judge_is_compared_with_a_person() -> None:
    rows = [
        {
            "instruct": f"Task {place}",
            "criteria": "It is good.",
            "answer": f"answer {said}",
            "human": human,
            "accept": human > 0.8,
        }
        for place, (said, human) in enumerate([(0.9, 1.0), (0.2, 0.1), (0.9, 0.3), (0.2, 0.2)])
    ]
    report = evals.run_sync("answer", rows, candidates={"judge": Judge()})["judge"]
    assert report.human.mean_difference.value == pytest.approx((-0.1 + 0.1 + 0.6 + 0.0) / 4)
    assert report.accept.accuracy.value == 0.75 and report.accept.pass_rate.value == 0.5
    assert report.human.kappa.value == pytest.approx(0.5)


def test_answers_are_written_and_judged_without_a_column_answer() -> None:
    rows = [
        {"instruct": "Why does the sea have tides?", "criteria": "Names the moon", "checks": "words:..30", "human": 1.0}
    ]
    report = evals.run_sync("answer", rows, candidates={"m": f"replay:{EXAMPLES / 'answers/tides.jsonl'}"})
    assert report["m"].human.pass_rate.value == 1.0


class Stubborn:
    """Writes a new answer in each round; the judge's first answer is never JSON, and its repaired answer is a low score."""

    def __init__(self) -> None:
        self.calls = 0

    async def generate(self, prompt: str, **options: Any) -> str:
        self.calls += 1
        if "schema" not in options:
            return f"answer {self.calls}"
        said = {"score": 0.2, "meets_criteria": False, "evaluation_reasoning": "so", "improvement_suggestions": []}
        return json.dumps(said) if self.calls % 3 == 0 else "I think it is bad."


@pytest.mark.parametrize("more", [{}, {"answer": "answer 0.2"}])
def test_the_dry_run_bounds_the_calls_of_answers(more: dict[str, str]) -> None:
    rows = [{"instruct": f"Task {place}", "criteria": "It is good.", "human": 0.5, **more} for place in range(2)]
    found = evals.dry_run("answer", rows, llm="openai:a", repeat=2)
    assert (found.calls, found.calls_at_most) == (4, 2 * 2 * (2 if more else 3 * 2 * 2))
    client = Stubborn()
    evals.run_sync("answer", rows, candidates={"m": client}, repeat=2, max_concurrency=1, cache=False)
    assert found.calls <= client.calls <= found.calls_at_most


def test_a_request_that_nothing_can_judge_is_a_fault() -> None:
    with pytest.raises(evals.GoldError, match="row 1"):
        evals.run_sync("answer", [{"instruct": "x", "human": 0.5}], candidates={"m": Judge()})


def test_unknown_targets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(evals.RequestError, match="is not JSON"):
        (tmp_path / "items.json").write_text("[")
        evals.run_sync(f"rank:{tmp_path / 'items.json'}", [{"request": "x", "relevant": 1}], candidates={"m": Judge()})


class Scripted:
    """Answers with the texts that ``answers`` maps to the number of the call, from 0."""

    def __init__(self, answers: Callable[[int], str]) -> None:
        self.calls, self._answers = 0, answers

    async def generate(self, prompt: str, **options: Any) -> str:
        self.calls += 1
        return self._answers(self.calls - 1)


UNGROUNDED = json.dumps({"action": "COMPLETED", "completed_reason": "so", "answer": "Ada", "cited": ["ghosts"]})


@pytest.mark.parametrize(
    ("answers", "calls"),
    [
        (lambda call: "nonsense", 4),  # two steps with one repair each
        (lambda call: UNGROUNDED if call % 3 == 1 else "nonsense", 6),  # and an answer without evidence in each step
    ],
)
def test_the_dry_run_bounds_the_calls_that_write_plans(answers: Callable[[int], str], calls: int) -> None:
    rows = [{"question": "Who?", "expect": "Ada"}]
    options = {"max_steps": 2, "max_repairs": 1}
    found = evals.dry_run("ask:nx:les_miserables", rows, candidates={"m": {"llm": "openai:a", "options": options}})
    assert (found.calls, found.calls_at_most, found.candidates["m"].loop_calls_at_most) == (1, None, 6)
    client = Scripted(answers)
    evals.run_sync("ask:nx:les_miserables", rows, candidates={"m": {"llm": client, "options": options}}, cache=False)
    assert client.calls == calls <= 6


def test_max_calls_bounds_the_calls_of_questions() -> None:
    rows = [{"question": f"Who is {name}?", "expect": "Ada"} for name in ("first", "second")]
    options = {"max_calls": 2}
    found = evals.dry_run(
        "ask:nx:les_miserables", rows, candidates={"m": {"llm": "openai:a", "options": options}}, repeat=2
    )
    assert (found.calls, found.calls_at_most) == (4, 8)
    client = Scripted(lambda call: "nonsense")
    evals.run_sync(
        "ask:nx:les_miserables", rows, candidates={"m": {"llm": client, "options": options}}, repeat=2, cache=False
    )
    assert client.calls == 8
    found = evals.dry_run("ask:nx:les_miserables", rows, llm="openai:a", max_calls=3, max_cost=0.5)
    assert (found.calls_at_most, found.cost) == (3, (0.0, 0.5))
    client = Scripted(lambda call: "nonsense")
    evals.run_sync("ask:nx:les_miserables", rows, candidates={"m": client}, max_calls=3, cache=False)
    assert client.calls == 3


_FAULTY = (
    "===LWT_SKELETON===\n(final)=LLN('x')\n\n===MESSAGE===\nCONDITIONS: none\nREMAINING: 0\nNEEDS_EXPANSION: yes\n"
)
_PLAN = '===LWT_SKELETON===\n(final)=LLM("Which is best?")\n\n===MESSAGE===\nCONDITIONS: none\nREMAINING: 0, 1\nNEEDS_EXPANSION: yes\n'


def test_the_dry_run_bounds_the_calls_that_write_a_script() -> None:
    rows = [{"request": REQUEST, "relevant": "6"}]
    found = evals.dry_run(f"rank:{CAFES}", rows, llm="openai:a")
    assert (found.calls, found.calls_at_most, found.candidates["model"].loop_calls_at_most) == (1, None, 14)

    def answer(call: int) -> str:
        if call < 3:  # the plan, and two repairs
            return _PLAN if call == 2 else _FAULTY
        return f'lwt_set(0, (final)=LLM("Which of {call} is best?"))' if call < 13 else "no ranking"

    client = Scripted(answer)
    evals.run_sync(f"rank:{CAFES}", rows, candidates={"m": client}, cache=False)
    assert client.calls - 1 == 14  # and one call of the script
