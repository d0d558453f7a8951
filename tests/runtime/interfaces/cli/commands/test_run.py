"""``knotwork run``, in this process."""

from pathlib import Path

import pytest
from support.command import CAFES, call, cassette


def test_output_on_stdout_and_the_rest_on_stderr(cafes: str) -> None:
    result = call("run", "cafes.lwt", "-i", "request.json", "--llm", cafes)
    assert (result.code, result.out) == (0, "1\n")
    assert "running 3 steps in 3 layers" in result.err
    assert "[2/3] (check) done" in result.err
    assert "complete: 3 of 3 steps · 4 calls · 40 + 8 tokens" in result.err
    assert "critical path" in result.err
    assert "saved in " in result.err
    assert "--resume" not in result.err


def test_json_document(cafes: str) -> None:
    told = call("run", "cafes.lwt", "-i", "request.json", "--llm", cafes, "--format", "json").json
    assert told.keys() == {
        "status", "output", "value", "final", "steps", "usage", "coerced", "diagnostics", "warnings", "run",
    }  # fmt: skip
    assert (told["status"], told["output"], told["value"]) == ("complete", "1", "1")
    assert told["steps"]["check"]["value"] == ["yes", "no"]
    assert told["steps"]["check"]["status"] == "done"
    assert told["usage"]["calls"] == 4
    assert told["usage"]["prompt_tokens"] == 40


def test_script_and_input_from_stdin(cafes: str) -> None:
    result = call("run", "-", "-i", "request.json", "--llm", cafes, stdin=CAFES)
    assert (result.code, result.out) == (0, "1\n")
    result = call("run", "cafes.lwt", "-i", "-", "--llm", cafes, stdin='{"request": "x"}')
    assert (result.code, result.out) == (0, "1\n")


def test_a_script_with_errors_is_not_run(folder: Path, cafes: str) -> None:
    (folder / "cafes.lwt").write_text(CAFES.replace("{(check)}", "{(chekc)}"))
    result = call("run", "cafes.lwt", "-i", "request.json", "--llm", cafes, "--format", "json")
    assert result.code == 3
    assert result.json["status"] == "refused"
    assert result.json["diagnostics"][0]["severity"] == "error"
    assert "nothing was run" in result.err
    assert not (folder / "knotwork" / "runs").exists()


def test_failed_says_what_and_how_to_go_on(folder: Path, cafes: str) -> None:
    bad = cassette(folder / "bad.cassette", {"List": '["a"]', "Is ": "yes", "Checks": None})
    failed = call("run", "cafes.lwt", "-i", "request.json", "--llm", bad)
    assert (failed.code, failed.out) == (1, "")
    assert "failed (final): no, thanks" in failed.err
    command = failed.err.splitlines()[-1].removeprefix("resume with: knotwork ").split()
    assert command[:3] == ["run", "cafes.lwt", "--resume"]
    resumed = call(*command, "--llm", cafes)
    assert (resumed.code, resumed.out) == (0, "1\n")
    assert "2 reused" in resumed.err
    assert "1 call " in resumed.err


def test_resume_needs_no_file(folder: Path, cafes: str) -> None:
    bad = cassette(folder / "bad.cassette", {"List": '["a"]', "Is ": "yes", "Checks": None})
    told = call("run", "-", "-i", "request.json", "--llm", bad, "--format", "json", stdin=CAFES).json
    assert call("run", "--resume", told["run"], "--llm", cafes).out == "1\n"
    assert call("runs", "show", told["run"], "--format", "json").json["status"] == "complete"


def test_resume_refuses_a_script_that_changed(folder: Path, cafes: str) -> None:
    told = call("run", "cafes.lwt", "-i", "request.json", "--llm", cafes, "--format", "json").json
    (folder / "cafes.lwt").write_text(CAFES.replace("best index", "best index of Checks"))
    refused = call("run", "cafes.lwt", "--resume", told["run"], "--llm", cafes)
    assert refused.code == 2
    assert "the script changed (steps final)" in refused.err
    forced = call("run", "cafes.lwt", "--resume", told["run"], "--llm", cafes, "--force")
    assert forced.code == 0
    assert "1 call " in forced.err


def test_partial(folder: Path) -> None:
    (folder / "x.lwt").write_text('(a)=EACH({(l)}, LLM("say {(item)}"), on_error="keep")\n(l)=CONST(["x", "y"])\n')
    spec = cassette(folder / "c", {"say x": "1", "say y": None})
    result = call("run", "x.lwt", "--llm", spec)
    assert (result.code, result.out) == (4, '["1", null]\n')
    assert "failed (a) item 1 (y): no, thanks" in result.err
    assert "resume with: knotwork run x.lwt --resume" in result.err


def test_steps_that_are_not_needed(folder: Path) -> None:
    (folder / "x.lwt").write_text('(dead)=LLM("dead")\n(final)=CONST("x")\n')
    spec = cassette(folder / "c", {"dead": "d"})
    result = call("run", "x.lwt", "--llm", spec)
    assert "complete: 1 of 1 step · 0 calls" in result.err
    assert "(dead)" in result.err
    assert "complete: 2 of 2 steps · 1 call" in call("run", "x.lwt", "--llm", spec, "--all-steps").err


def test_constants_need_no_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knotwork.runtime.models.factory.find_spec", lambda name: None)
    assert call("run", "-", stdin='(final)=CONST({"a": [1, true]})\n').out == '{"a": [1, true]}\n'


def test_the_model_may_come_from_the_environment(cafes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_LLM", cafes)
    assert call("run", "cafes.lwt", "-i", "request.json").out == "1\n"


def test_named_models(folder: Path) -> None:
    spec = cassette(folder / "c", {"hi": "small says hi"})
    script = '(final)=LLM("hi", model="small")\n'
    assert call("run", "-", "--model", f"small={spec}", stdin=script).out == "small says hi\n"
    missing = call("run", "-", "--model", f"smal={spec}", stdin=script)
    assert missing.code == 3
    assert "smal" in missing.err


def test_limits_stop_before_they_are_passed(cafes: str) -> None:
    result = call("run", "cafes.lwt", "-i", "request.json", "--llm", cafes, "--max-calls", "1")
    assert result.code == 1
    assert "skipped (final)" in result.err


def test_a_list_is_a_table_where_a_person_looks_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "x.lwt").write_text('(final)=CONST(["soup, glad", "cake, sad"])\n')
    assert call("run", "x.lwt").out == '["soup, glad", "cake, sad"]\n'
    monkeypatch.setattr("knotwork.runtime.interfaces.cli.run_script.is_terminal", lambda stream: True)
    assert [line.split() for line in call("run", "x.lwt").out.splitlines()[2:]] == [
        ["0", "soup,", "glad"], ["1", "cake,", "sad"]
    ]  # fmt: skip


def test_table(folder: Path) -> None:
    (folder / "x.lwt").write_text('(final)=CONST([{"name": "Milk", "score": 3}, {"name": "Tea"}])\n')
    table = call("run", "x.lwt", "--format", "table").out.splitlines()
    assert table[0].split() == ["name", "score"]
    assert table[2].split() == ["Milk", "3"]
    assert call("run", "x.lwt").out.startswith('[{"name"')  # auto in a pipe: the text as it is
    (folder / "x.lwt").write_text('(final)=CONST("just text")\n')
    assert call("run", "x.lwt", "--format", "table").out == "just text\n"


def test_lenient(folder: Path) -> None:
    spec = cassette(folder / "c", {"yes": "aye"})
    text = 'Here you are:\n(final)=LLM("Say "yes".")\n'
    strict = call("run", "-", "--llm", spec, stdin=text)
    assert strict.code == 3
    assert "--lenient" in strict.err
    lenient = call("run", "-", "--llm", spec, "--lenient", stdin=text)
    assert (lenient.code, lenient.out) == (0, "aye\n")


def test_output_that_looks_like_a_reference_or_moves_the_cursor_stays_as_it_is(folder: Path) -> None:
    spec = cassette(folder / "c", {"hi": "{(input)} \x1b[2J"})
    assert call("run", "-", "--llm", spec, stdin='(final)=LLM("hi")\n').out == "{(input)} \x1b[2J\n"


def test_debug_levels_print_the_seeds_lines(cafes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANOT_DEBUG", "3")
    err = call("run", "cafes.lwt", "-i", "request.json", "--llm", cafes).err
    assert "[P3:R00] Executing 3 steps in 3 layers..." in err
    assert "List the conditions in this request: cafe with drive-thru" in err
    monkeypatch.setenv("KNOTWORK_DEBUG", "1")
    assert "List the conditions" not in call("run", "cafes.lwt", "-i", "request.json", "--llm", cafes).err


def test_dry_run_prints_what_can_be_known_and_calls_nothing(cafes: str, folder: Path) -> None:
    result = call("run", "cafes.lwt", "-i", "request.json", "--dry-run")
    assert (result.code, result.err) == (0, "")
    assert "List the conditions in this request: cafe with drive-thru" in result.out
    assert "Is «{(item)}» met?" in result.out
    assert "Checks: «{(check)}». Output" in result.out
    assert "2 calls + one for each element of {(wanted)}; no model was called" in result.out
    assert not (folder / "knotwork" / "runs").exists()


def test_dry_run_knows_constants_and_lists_of_the_input(folder: Path) -> None:
    script = '(tone)=CONST("kind")\n(final)=EACH({(input)}, LLM("Be {(tone)} to {(item)}", system="{(index)}"))\n'
    (folder / "x.lwt").write_text(script)
    told = call("run", "x.lwt", "-i", "-", "--dry-run", "--format", "json", stdin='["Ann", "Bob"]').json
    assert told["calls"] == 2
    prompts = told["layers"][1][0]["prompts"]
    assert [(p["item"], p["system"], p["prompt"]) for p in prompts] == [
        (0, "0", "Be kind to Ann"), (1, "1", "Be kind to Bob"),
    ]  # fmt: skip


def test_dry_run_without_an_input_keeps_the_reference(cafes: str) -> None:
    assert 'request: «{(input)}["request"]»' in call("run", "cafes.lwt", "--dry-run").out


def test_kept_runs_are_listed_and_shown(cafes: str) -> None:
    assert "no run is recorded yet" in call("runs").out
    for _ in range(3):
        call("run", "cafes.lwt", "-i", "request.json", "--llm", cafes)
    table = call("runs").out
    assert table.count("cafes.lwt") == 3
    assert "3/3" in table
    listed = call("runs", "--format", "json", "--limit", "2").json
    assert len(listed) == 2
    assert listed[0] | {"run": "", "path": "", "started": "", "model": ""} == {
        "run": "", "path": "", "started": "", "model": "", "kind": "script", "script": "cafes.lwt", "status": "complete", "done": 3,
        "steps": 3, "tokens": 48,
    }  # fmt: skip
    shown = call("runs", "show", listed[0]["run"]).out
    assert "status   complete" in shown
    assert '["yes", "no"]' in shown
    assert call("runs", "show", listed[0]["path"], "--format", "json").json["steps"]["final"]["output"] == "1"


def test_json_stays_json_where_stdout_has_no_unicode() -> None:
    told = call("run", "-", "--format", "json", stdin='(final)=CONST("caf\u00e9 \U0001f600")\n', encoding="ascii").json
    assert told["output"] == "caf\u00e9 \U0001f600"


def test_a_run_tells_which_rule_chose_the_output_in_a_line() -> None:
    result = call("run", "-", stdin='(a)=CONST("x")\n')
    assert "the output comes from (a): the only step that no other step refers to" in result.err
    assert "LWT031" not in result.err


def test_a_run_that_can_not_be_kept_is_told_before_it_costs_anything(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "file").touch()
    monkeypatch.setenv("KNOTWORK_HOME", str(folder / "file"))
    result = call("run", "-", stdin='(a)=CONST("x")\n')
    assert result.code == 1
    assert "can't be recorded" in result.err
    assert "internal" not in result.err


def test_an_answer_in_other_words_is_told_and_strict_types_refuse_it(folder: Path) -> None:
    (folder / "m.lwt").write_text('(final)=LLM("How is it?", type="glad" | "sad")\n')
    spec = cassette(folder / "c", {"How is it?": "<think>glad?</think>**Sad**, because it rained"})
    for _ in range(2):  # what the cache has is told again
        told = call("run", "m.lwt", "--llm", spec)
        assert (told.code, told.out) == (0, "sad\n")
        assert '(final): "<think>glad?</think>**Sad**, because it rained" was read as "sad"' in told.err
        assert "use --strict-types to refuse such answers" in told.err
    (read,) = call("run", "m.lwt", "--llm", spec, "--format", "json").json["coerced"]
    assert (read["step"], read["how"], read["output"]) == ("final", "thinking", "sad")
    strict = call("run", "m.lwt", "--llm", spec, "--strict-types")
    assert strict.code == 1
    assert 'it is not one of "glad", "sad"' in strict.err
    assert "--strict-types" in strict.err.splitlines()[-1]
