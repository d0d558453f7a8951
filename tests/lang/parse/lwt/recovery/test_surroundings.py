"""Lines between steps: text by all signs becomes a remark; what may have been a step is told, and left as it is."""

import pytest
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.linter.lwt import check
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.parse.repairs import reads_as_text
from knotwork.lang.trees.lwt import Mode

STEP = '(final)=LLM("x")\n'


def mended(text: str) -> str:
    return apply_edits(text, [edit for found in parse_lwt(text).diagnostics for edit in found.edits])


@pytest.mark.parametrize(
    "line",
    [
        "Here is the script:",
        "Plan:",
        "**Script**",
        "I hope this helps.",
        "Let me know",
        "/* all */",
        "---",
        "===LWT===",
        "REMAINING: 5",
        "It has two parts",
    ],
)
def test_text_becomes_a_remark(line: str) -> None:
    assert mended(f"{line}\n{STEP}") == f"# {line}\n{STEP}"
    assert [found.severity for found in parse_lwt(f"{line}\n{STEP}", "lenient").diagnostics] == ["warning"]


QUERIES = ["SHOW orgs", "show orgs", "RNAK hubs BY id AS r", "LIST nodes"]
STEPLIKE = [
    'LLM("say hi")', '(a) LLM "x"', '{"a": "LLM(x)"}', 'a = "Say hi."', "a = {(b)}", "all of them\")", ", type=int)",
]  # fmt: skip


@pytest.mark.parametrize("line", [*QUERIES, *STEPLIKE])
def test_what_may_have_been_meant_for_a_machine_is_no_remark(line: str) -> None:
    (found,) = parse_lwt(f"{STEP}{line}\n").diagnostics
    assert (found.code, found.severity, found.edits) == ("LWT001", "error", ())


@pytest.mark.parametrize("line", QUERIES)
def test_what_holds_no_step_is_no_error_of_a_model_s_text(line: str) -> None:
    (found,) = parse_lwt(f"{line}\n{STEP}", "lenient").diagnostics
    assert (found.code, found.severity, len(found.edits)) == ("LWT001", "warning", 1)


@pytest.mark.parametrize("line", STEPLIKE)
@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_what_may_have_been_a_step_is_no_remark(line: str, mode: Mode) -> None:
    (found,) = parse_lwt(f"{STEP}{line}\n", mode).diagnostics
    assert (found.code, found.severity, found.edits) == ("LWT001", "error", ())


def test_a_line_that_goes_on_with_a_sentence_is_text() -> None:
    assert reads_as_text("of all people", "It finds some")
    assert not reads_as_text("of all people", "It finds some.")
    assert not reads_as_text("and degree > 3", "It finds some")
    assert not reads_as_text("show the rest", "It finds some")


UNREAD = '(a)=LLM("{(input["name"])}")\n'


@pytest.mark.parametrize("broken", [UNREAD, '(my step)=LLM("x")\n'])
def test_a_remark_behind_a_faulty_step_is_for_the_step_below(broken: str) -> None:
    below = '(final)=LLM("{(b} {(c[0])}")\n'
    codes = [found.code for found in check(parse_lwt(broken + below))]
    assert codes[1:] == ["LWT024", "LWT025"]
    for comment, left in (("ignore", []), ("ignore[LWT024]", ["LWT025"]), ("ignore[LWT025]", ["LWT024"])):
        found = check(parse_lwt(f"{broken}# why\n# knotwork: {comment}\n{below}"))
        assert [each.code for each in found] == [codes[0], *left]


def test_a_comment_above_what_cannot_be_read_is_not_called_useless() -> None:
    for text in (f"# knotwork: ignore[LWT012]\n{UNREAD}{STEP}", f"{STEP}# knotwork: ignore[LWT012]\n{UNREAD}"):
        assert "LWT032" not in [found.code for found in check(parse_lwt(text))]
    assert "LWT032" in [found.code for found in check(parse_lwt(f"{STEP}# knotwork: ignore[LWT012]\n\n{UNREAD}"))]


def test_a_remark_inside_an_open_prompt_stays_in_it() -> None:
    text = '(a)=LLM("""one\n# knotwork: two\n(b)=LLM("x")\n'
    assert [found.code for found in parse_lwt(text).diagnostics][:1] == ["LWT002"]


@pytest.mark.parametrize("program", ["FIND nodes AS {(x)}", "SELECT y FIELDS a AS {(x)}"])
def test_no_hint_writes_what_stands_there(program: str) -> None:
    found = [each for each in check(parse_lwt(f'(x)=CONST([1])\n(final)=GASL("{program}")\n')) if each.code == "LWT042"]
    assert found[0].message.startswith("only the name is allowed here, not {(x)}")
    assert found[0].hints[0] == "a reference inserts a value; write a name directly in the program, as in AS found"
    assert not any("write {(x)}" in hint for each in found for hint in each.hints)
