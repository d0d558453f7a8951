"""Every script and fragment of seed 001, as it stands there, means what seed 001 says."""

from pathlib import Path

import pytest
from knotwork import lwt
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.trees.lwt import Index, Key, Reference, Text, references

SEED = Path(__file__).parent / "001"


def seed(name: str) -> str:
    return (SEED / name).read_text(encoding="utf-8")


DRIVE_THRU = Reference("input", (Key("items"), Index(5), Key("attributes"), Key("DriveThru")))


def test_skeleton_is_one_final_step_and_its_braces_are_text() -> None:
    script = parse_lwt(seed("skeleton.lwt"))
    assert [step.id for step in script.steps] == ["final"]
    assert list(references(script.steps[0])) == []
    assert script.diagnostics == ()


def test_example_output_of_the_planner_reads_leniently() -> None:
    script = parse_lwt(seed("example_output.txt"), "lenient")
    (final,) = script.steps
    assert final.call.arguments[0].constant == (
        "User wants: cafe with drive-thru, kid-friendly, without TVs. Item(s) that match: [5]. Output the best index."
    )
    assert all(d.severity == "warning" for d in script.diagnostics)


def test_syntax_line_refers_to_a_variable() -> None:
    (step,) = parse_lwt(seed("syntax.lwt")).steps
    assert step.id == "step_id"
    assert list(references(step)) == [Reference("variable")]


def test_query_access() -> None:
    (step,) = parse_lwt(f'(a)=LLM("{seed("query_access.txt").strip()}")').steps
    assert list(references(step)) == [DRIVE_THRU]


def test_examples_read_strictly_with_the_stray_brace_as_text() -> None:
    script = parse_lwt(seed("examples.lwt"))
    assert [step.id for step in script.steps] == ["final", "5.check", "agg"]
    check = script.steps[1].call.arguments[0]
    assert check.parts == (Text("Does item 5 have "), DRIVE_THRU, Text("} = True?"))


def test_examples_read_leniently_without_the_stray_brace() -> None:
    script = parse_lwt(seed("examples.lwt"), "lenient")
    check = script.steps[1].call.arguments[0]
    assert check.parts == (Text("Does item 5 have "), DRIVE_THRU, Text(" = True?"))
    (lint,) = script.diagnostics
    assert (lint.code, lint.severity, script.source.slice(lint.span)) == ("LWT027", "warning", "}")


def test_trace_lines_of_the_seed_are_prose_and_not_steps() -> None:
    script = parse_lwt('  → Skeleton: (final)=LLM("...Item(s) that match: [5]...")\n', "lenient")
    assert [d.code for d in script.diagnostics] in (["LWT001"], ["LWT037"])


def run(text: str, mode: str = "strict", **options: object) -> lwt.Run:
    """Run a text of the seed against the cassette, which answers the prompts that the seed means and no others."""
    return lwt.run_sync(lwt.parse(text, mode), llm=f"replay:{SEED / 'cassette.jsonl'}", **options)


QUERY = {"items": [{"attributes": {"DriveThru": number == 5}} for number in range(10)]}


def test_example_output_runs_to_item_5() -> None:
    result = run(seed("example_output.txt"), "lenient")
    assert (result.status, result.output) == ("complete", "5")


def test_skeleton_runs_with_its_braces_as_they_are() -> None:
    assert run(seed("skeleton.lwt")).output == "0"


def test_examples_run_with_the_stray_brace_as_the_seed_means_it() -> None:
    result = run(seed("examples.lwt"), "lenient", input=QUERY, all_steps=True)
    outputs = {step: outcome.output for step, outcome in result.steps.items()}
    assert outputs == {"final": "5", "5.check": "yes", "agg": "1"}
    assert (result.status, result.final) == ("complete", "final")


def test_examples_run_only_what_the_final_step_needs() -> None:
    result = run(seed("examples.lwt"), input=QUERY)
    assert {step: outcome.status for step, outcome in result.steps.items()} == {
        "final": "done", "5.check": "skipped", "agg": "skipped"
    }  # fmt: skip


def test_syntax_line_needs_its_variable() -> None:
    with pytest.raises(lwt.ScriptError):
        run(seed("syntax.lwt"))
    defined = run('(variable)=LLM("say what is put there")\n' + seed("syntax.lwt"))
    assert defined.output == "so be it"
