"""``knotwork plan``."""

from pathlib import Path

from support.command import call

SCRIPT = '(a)=CONST(1)\n(end)=LLM("{(a)}")\n(5.b)=LLM("{(a)} {(end)}")\n(final)=LLM("{(5.b)}")\n(dead)=LLM("{(a)}")\n'


def test_text(folder: Path) -> None:
    (folder / "x.lwt").write_text(SCRIPT)
    result = call("plan", "x.lwt")
    assert result.code == 0
    assert "x.lwt: 5 steps in 4 layers" in result.out
    assert "final step: (final), the step named final" in result.out
    assert "critical path, 4 steps: (a) → (end) → (5.b) → (final)" in result.out
    assert "not needed by (final), skipped without --all-steps: (dead)" in result.out


def test_json(folder: Path) -> None:
    (folder / "x.lwt").write_text(SCRIPT)
    told = call("plan", "x.lwt", "--format", "json").json
    assert told["layers"] == [["a"], ["end", "dead"], ["5.b"], ["final"]]
    assert told["critical_path"] == ["a", "end", "5.b", "final"]
    assert told["final"] == {"step": "final", "rule": "final"}
    assert told["unneeded"] == ["dead"]
    assert told["steps"][2] == {"id": "5.b", "operation": "LLM", "refers_to": ["a", "end"], "layer": 3, "needed": True}


def test_mermaid_has_no_id_of_the_script_as_a_node_name(folder: Path) -> None:
    (folder / "x.lwt").write_text(SCRIPT)
    lines = call("plan", "x.lwt", "--format", "mermaid").out.splitlines()
    assert lines[0] == "flowchart TD"
    assert '    s1["end · LLM"]' in lines  # "end" alone would end Mermaid's own block
    assert '    s3(["final · LLM"])' in lines
    assert "    s1 --> s2" in lines
    assert "    class s4 unneeded" in lines


def test_dot(folder: Path) -> None:
    (folder / "x.lwt").write_text(SCRIPT)
    out = call("plan", "x.lwt", "--format", "dot").out
    assert out.startswith("digraph script {")
    assert '  "5.b" -> "final";' in out
    assert '  "dead" [label="dead\\nLLM", style=dashed];' in out


def test_a_cycle_is_an_error(folder: Path) -> None:
    (folder / "x.lwt").write_text('(a)=LLM("{(b)}")\n(b)=LLM("{(a)}")\n')
    result = call("plan", "x.lwt")
    assert (result.code, result.out) == (3, "")
    assert "error[" in result.err


def test_another_rule_for_the_final_step_and_stdin() -> None:
    assert "the only step that no other step refers to" in call("plan", "-", stdin='(a)=LLM("x")\n').out


def test_no_steps_is_an_error() -> None:
    assert call("plan", "-", stdin="# nothing\n").code == 3
