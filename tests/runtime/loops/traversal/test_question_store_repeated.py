"""A question that came to nothing is asked once more; what can't be read is not asked once more behind a person's back."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from knotwork import gasl
from knotwork.runtime.loops.traversal.question_store import asks, open_asks
from knotwork.runtime.runs.journal import RunError
from support.executing import library
from support.traversing import Planning, asked, done, plan
from support.wondering import Wondering

COUNTED = plan(
    "DECLARE n AS COUNTER", 'FIND nodes WHERE entity_type = "PERSON" AS p', "COUNT p AS c", "UPDATE n WITH c"
)
FOUND = plan("FIND nodes LIMIT 2 AS some")


def nobody() -> Planning:
    return Planning(AssertionError("nobody may be asked"))


def journal(state: Path) -> Path:
    (found,) = state.glob("asks/*/run.jsonl")
    return found


def flip(path: Path, line: int, place: int) -> None:
    """Change one byte."""
    lines = path.read_bytes().splitlines(keepends=True)
    body = bytearray(lines[line])
    body[place] ^= 1
    lines[line] = bytes(body)
    path.write_bytes(b"".join(lines))


@pytest.mark.slow
@pytest.mark.parametrize("search", [None, "greedy", "beam", "mcts"])
@pytest.mark.parametrize("more", [{}, {"again": True}])
def test_a_question_whose_model_gave_nonsense_can_be_asked_again(
    search: str | None, more: dict[str, Any], tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"state": tmp_path / "s", "value": "filled", "search": search} if search else {}
    settings = settings or {"state": tmp_path / "s"}
    bad = Planning("I would rather not.")
    assert asked(bad, **settings).stopped == "refused"
    other = Planning("Never.")
    assert asked(other, **settings).stopped == "refused"
    assert len(other.prompts) == len(bad.prompts)
    good = Planning(COUNTED, "COMPLETE: fine")
    made = asked(good, **settings, **more)
    assert (made.status, made.answer, len(good.prompts)) == ("complete", "fine", 2)
    assert asked(nobody(), **settings).answer == "fine"


def test_another_model_is_asked_itself_and_the_same_one_is_not_asked_twice(tmp_path: Path) -> None:
    class Named(Planning):
        spec = "first"

    def killed(each: Planning) -> None:
        if len(each.prompts) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asked(Named("nonsense", on_call=killed), state=tmp_path / "s")
    copy = Path(shutil.copytree(tmp_path / "s", tmp_path / "t"))
    same = Named("COMPLETE: same")
    assert asked(same, state=tmp_path / "s").answer == "same"
    assert "YOUR LAST ANSWER WAS NOT RUN" in same.prompts[0]  # the first answer was kept
    other = Named("COMPLETE: other")
    other.spec = "second"  # type: ignore[misc]
    assert asked(other, state=copy).answer == "other"
    assert "YOUR LAST ANSWER WAS NOT RUN" not in other.prompts[0]


@pytest.mark.slow
def test_again_begins_anew_also_where_there_is_no_answer(tmp_path: Path) -> None:
    state = tmp_path / "s"
    assert asked(Planning(plan("FIND nodes LIMIT 1 AS x")), state=state, max_steps=1).stopped == "steps"
    model = Planning(FOUND, done("new", "some"))
    made = asked(model, state=state, max_steps=2, again=True)
    assert (made.answer, made.earlier, len(model.prompts)) == ("new", 0, 2)
    assert len(asks(state)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("search", [None, "beam"])
def test_a_head_that_is_damaged_is_refused_and_nothing_is_paid_or_done_again(
    search: str | None, tmp_path: Path
) -> None:
    state = tmp_path / "s"
    first: Any = Wondering() if search else Planning(COUNTED, "COMPLETE: 5")
    asked(first, state=state, search=search, max_steps=20)
    flip(journal(state), 0, 30)
    with pytest.raises(
        RunError,
        match=r"run\.jsonl can't be read, and may contain the answer to this question.*--again starts a new attempt",
    ):
        asked(nobody(), state=state, search=search)
    with gasl.open(library(), state) as executor:
        assert executor.state.get("n") == 5
    anew = asked(Planning(done("five", "n")), state=state, again=True)
    assert (anew.status, anew.answer) == ("complete", "five")
    assert asked(nobody(), state=state).answer == "five"  # the later attempt is whole


def test_the_head_of_another_question_stands_in_nobodys_way(tmp_path: Path) -> None:
    state = tmp_path / "s"
    asked(Planning("COMPLETE: 5"), "How many?", state=state)
    body = journal(state).read_bytes()
    flip(journal(state), 0, body.index(b'"model"') + 2)
    assert asked(Planning("COMPLETE: Ada"), "Who writes?", state=state).answer == "Ada"
    with pytest.raises(RunError):
        asked(nobody(), "How many?", state=state)


def test_a_question_in_the_head_that_is_damaged_may_be_any(tmp_path: Path) -> None:
    state = tmp_path / "s"
    asked(Planning("COMPLETE: 5"), "How many?", state=state)
    body = journal(state).read_bytes()
    flip(journal(state), 0, body.index(b'"How many?"') + 3)
    with pytest.raises(RunError):
        asked(nobody(), "How many?", state=state)


def test_what_a_kill_before_the_first_record_leaves_is_passed_over(tmp_path: Path) -> None:
    for name, body in (
        ("20260101-000000-abcd", None),
        ("20260101-000001-abcd", b""),
        ("20260101-000002-abcd", b'{"rec'),
    ):
        (tmp_path / "s" / "asks" / name).mkdir(parents=True)
        if body is not None:
            (tmp_path / "s" / "asks" / name / "run.jsonl").write_bytes(body)
    (tmp_path / "s" / "asks" / "notes").mkdir()
    (tmp_path / "s" / "asks" / "notes" / "run.jsonl").write_text("not one of ours\n")
    assert asked(Planning("COMPLETE: x"), state=tmp_path / "s").answer == "x"


def test_a_file_that_was_emptied_beside_its_log_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "s"
    asked(Planning("COMPLETE: 5"), state=state)
    journal(state).write_bytes(b"")
    with pytest.raises(RunError, match="may contain the answer to this question"):
        asked(nobody(), state=state)


def test_a_file_in_the_place_of_the_folder_is_told_with_what_helps(tmp_path: Path) -> None:
    (tmp_path / "asks").write_text("")
    with pytest.raises(RunError, match="asks is a file, but questions are stored in a folder of this name") as told:
        open_asks(tmp_path, "Who?")
    assert told.value.hint == "move the file away"


def test_a_folder_that_cant_be_written_has_a_hint_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("knotwork.runtime.runs.journal.Journal.open", full)
    with pytest.raises(RunError, match="No space left") as told:
        open_asks(tmp_path, "Who?")
    assert "KNOTWORK_HOME" not in told.value.hint and "free space" in told.value.hint
