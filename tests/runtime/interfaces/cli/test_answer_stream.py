"""``knotwork run --stream``: the answer of the final step on stdout while it arrives."""

from pathlib import Path

import pytest
from knotwork.runtime.events import CallDelta, CallRetried, StepFinished
from knotwork.runtime.interfaces.cli.answer_stream import AnswerStream
from support.command import call, cassette


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "knotwork"))
    path = tmp_path / "s.lwt"
    path.write_text('(a)=LLM("first")\n(final)=LLM("second {(a)}")')
    return path


def test_the_output_is_the_same_with_and_without_stream(script: Path, tmp_path: Path) -> None:
    spec = cassette(tmp_path / "c.jsonl", {"first": "one", "second": "two\nlines"})
    plain, streamed = (call("run", script, "--llm", spec, *more) for more in ((), ("--stream",)))
    assert streamed.out == plain.out == "two\nlines\n"
    assert (plain.code, streamed.code) == (0, 0)


def test_other_outputs_are_written_at_the_end_with_a_message(script: Path, tmp_path: Path) -> None:
    spec = cassette(tmp_path / "c.jsonl", {"first": "3"})
    for text in (
        '(final)=LLM("first", type=int)',
        '(final)=EACH({(input)}, LLM("first"))',
        '(final)=LLM("first", n=3)',
        '(final)=CONST("3")',
    ):
        script.write_text(text)
        result = call("run", script, "--llm", spec, "--stream", "-i", "-", stdin='["x"]')
        assert result.out in ("3\n", '["3"]\n')
        assert "(final) is written at its end" in result.err


def test_outputs_that_can_not_be_streamed_are_refused(script: Path, tmp_path: Path) -> None:
    result = call("run", script, "--stream", "--format", "json")
    assert result.code == 2
    assert "can't be combined with --format json" in result.err
    program = tmp_path / "p.gasl"
    program.write_text("FIND nodes AS x")
    result = call("run", program, "--graph", "nx:karate_club", "--stream")
    assert result.code == 2
    assert "only to scripts" in result.err


def test_a_void_answer_begins_again_on_a_new_line(capsys: pytest.CaptureFixture[str]) -> None:
    stream = AnswerStream("final")
    for event in (
        CallDelta("other", "no"), CallDelta("final", "Hal"), CallRetried("final", "again", 2, "cut", is_void=True),
        CallDelta("final", "Hello"), CallRetried("other", "again", 2, "cut", is_void=True), CallDelta("final", "!"),
        StepFinished("final", "done", 0.1),
    ):  # fmt: skip
        stream(event)
    assert capsys.readouterr().out == "Hal\nHello!\n"
    assert stream.text == "Hello!"
