"""What a kill leaves of a search, at every moment: the next attempt comes to the same tree, pays for nothing twice, adopts once.

A copy of the state's folder is taken whenever a model is asked, a branch ends, or a record is about to be written: that is what
kill -9 leaves then.
"""

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from knotwork import gasl
from knotwork.runtime.events import Events
from knotwork.runtime.loops.traversal import plan_search
from knotwork.runtime.loops.traversal.question_store import AskRecorder
from knotwork.runtime.loops.traversal.traversal_results import Asked
from support.examples import stride
from support.executing import library
from support.traversing import Planning, asked
from support.wondering import Wondering, shape

STEPS = 12


def go(folder: Path, strategy: str, model: Any, **more: Any) -> Asked:
    return asked(model, state=folder, search=strategy, max_steps=STEPS, **more)


def held(folder: Path) -> Any:
    with gasl.open(library(), folder) as executor:
        state = executor.state
        history = [(each["plan_id"], each["command"], each["status"]) for each in state.history]
        return state.get("n"), [item["id"] for item in state.get("people")], history


class Run:
    """A search that ran to its end, with a copy of its folder for every moment."""

    def __init__(self, base: Path, strategy: str) -> None:
        self.folder, self.strategy = base / "state", strategy
        self.moments: list[tuple[str, Path]] = []
        self.asked: Counter[str] = Counter()
        events = Events()
        events.subscribe(lambda event: self.copy(event.name, base))
        model = Wondering(on_call=lambda _: self.copy("ask", base))

        def before(owner: Any, name: str, patch: pytest.MonkeyPatch) -> None:
            real = getattr(owner, name)

            def copying(*args: Any) -> Any:
                self.copy(f"before {name}", base)
                return real(*args)

            patch.setattr(owner, name, copying)

        with pytest.MonkeyPatch.context() as patch:
            for name in ("search_found", "turn_done", "ended"):
                before(AskRecorder, name, patch)
            before(plan_search, "adopt", patch)
            self.made = go(self.folder, strategy, model, events=events)
        self.asked = Counter(model.prompts)
        assert (self.made.status, events.broken) == ("complete", [])
        self.held = held(self.folder)

    def copy(self, name: str, base: Path) -> None:
        if self.folder.exists():
            to = base / f"{len(self.moments)}"
            shutil.copytree(self.folder, to)
            self.moments.append((name, to))


@pytest.fixture(scope="module", params=[pytest.param("beam", marks=pytest.mark.slow), "mcts"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(tmp_path_factory.mktemp("whole"), request.param)


@pytest.mark.slow
def test_the_adoption_is_among_the_moments(whole: Run) -> None:
    names = [name for name, _ in whole.moments]
    assert names.count("before search_found") == names.count("before adopt") == names.count("before ended") == 1
    assert names.count("before turn_done") == len(whole.made.steps) >= 2
    assert len(names) > 40


@pytest.mark.slow
def test_whatever_moment_it_is_killed_at_it_comes_to_the_same(whole: Run, tmp_path: Path) -> None:
    adopting = [moment for moment in whole.moments if moment[0].startswith("before")]
    for name, moment in dict.fromkeys([*whole.moments[:: stride(3)], *adopting]):
        copy = Path(shutil.copytree(moment, tmp_path / f"{moment.name}-{name.replace(' ', '-')}", dirs_exist_ok=True))
        model = Wondering()
        made = go(copy, whole.strategy, model)
        assert (made.status, made.answer) == ("complete", whole.made.answer), copy.name
        assert Counter(model.prompts) <= whole.asked, copy.name
        assert held(copy) == whole.held, copy.name
        assert shape(made.tree) == shape(whole.made.tree), copy.name
        assert [step.commands for step in made.steps] == [step.commands for step in whole.made.steps], copy.name
        if name in ("before turn_done", "before ended"):
            assert not model.prompts, copy.name


@pytest.mark.slow
def test_what_was_adopted_is_told_by_the_loop_without_a_search_too(whole: Run, tmp_path: Path) -> None:
    (moment,) = [path for name, path in whole.moments if name == "before ended"]
    copy = Path(shutil.copytree(moment, tmp_path / "copy"))
    made = asked(Planning(AssertionError("nobody may be asked")), state=copy)
    assert (made.status, made.answer, len(made.steps)) == ("complete", whole.made.answer, len(whole.made.steps))


@pytest.mark.slow
def test_a_search_that_was_adopted_after_a_kill_replays_the_same(whole: Run, tmp_path: Path) -> None:
    for name, moment in whole.moments[10::30]:
        copy = Path(shutil.copytree(moment, tmp_path / moment.name))
        go(copy, whole.strategy, Wondering())
        verdict = gasl.replay(copy, library())
        assert (verdict.identical, verdict.remarks) == (True, ()), name


@pytest.mark.slow
def test_a_state_that_was_changed_in_between_is_searched_from_as_it_is(tmp_path: Path) -> None:
    asked(Wondering(), state=tmp_path / "s", search="beam", max_steps=3)
    with gasl.open(library(), tmp_path / "s") as executor:
        executor.run_plan("DECLARE other AS LIST")
    model = Wondering()
    made = asked(model, state=tmp_path / "s", search="beam", max_steps=STEPS)
    assert made.status == "complete"
    assert "other LIST" in next(prompt for prompt in model.prompts if "You are a researcher" in prompt)


@pytest.mark.slow
def test_an_unwritable_tree_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knotwork.runtime.loops.traversal.question_store.TREE", "no-such-folder/tree.json")
    made = go(tmp_path / "s", "mcts", Wondering())
    assert made.status == "complete"
    assert any("tree can't be written" in warning for warning in made.warnings)
