"""Which calls stand in what a model wrote: a call stands alone, prose that mentions one is prose."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.runtime.loops.rank.tools import Call, read_calls


def calls(text: str) -> list[tuple[str, tuple[object, ...]]]:
    read = read_calls(text)
    assert read.fault is None, read.fault
    return [(call.tool, tuple(call.arguments.values())) for call in read.calls]


@pytest.mark.parametrize(
    "text",
    [
        "done()", "  done()\n", "`done()`", "```\ndone()\n```", "```python\ndone()\n```", "- done()", "1. done()", "Action: done()",
        "**Action:** done()", "Action 1: `done()`", "done();", "done().", "done( )", "The plan is complete.\n\ndone()",
        "done()  # all is well", "tools.done()", "**done()**", "<tool_call>{\"name\": \"done\"}</tool_call>",
        "done()\nObservation: finished",
        '{"tool": "done", "arguments": {}}', '```json\n{"name": "done", "arguments": {}}\n```',
    ],
)  # fmt: skip
def test_done(text: str) -> None:
    assert calls(text) == [("done", ())]


@pytest.mark.parametrize(
    "text",
    [
        "I will call done() when I am ready.", "When finished, done() is called", "We are done.", "done", "done (as you asked) with it",
        "Should I call `done()`?", "I can use lwt_insert(0, \"step\") or done() next", "NEEDS_EXPANSION: no, so done() it is",
        "Observation: I was told\ndone()", "", "(final)=LLM(\"call done()\")", "read (the docs) first", "I am not done()yet",
    ],
)  # fmt: skip
def test_prose_is_prose(text: str) -> None:
    assert calls(text) == []


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (r'lwt_set(0, "(a)=LLM(\"hi\")")', '(a)=LLM("hi")'),
        ('lwt_set(0, "(a)=LLM("hi")")', '(a)=LLM("hi")'),
        ("lwt_set(0, '(a)=LLM(\"hi\")')", '(a)=LLM("hi")'),
        ("lwt_set(0, '''(a)=LLM(\"it's\")''')", '(a)=LLM("it\'s")'),
        ('lwt_set(0, """(a)=LLM("hi", type="int")""")', '(a)=LLM("hi", type="int")'),
        ('lwt_set(0, "(a)=LLM("hi", type="int")")', '(a)=LLM("hi", type="int")'),
        ('lwt_set(0, (a)=LLM("hi"))', '(a)=LLM("hi")'),
        ('lwt_set(idx=0, step="(a)=LLM(\'hi\')")', "(a)=LLM('hi')"),
        ('lwt_set(index=0, step="(a)=LLM("{(input)}["items"][5]["x"] (yes?)")")', '(a)=LLM("{(input)}["items"][5]["x"] (yes?)")'),
        (r'lwt_set("0", "(a)=LLM(\"$\times$\")")', r'(a)=LLM("$\times$")'),
        ('lwt_set(0, "(a)=LLM("two\nlines")")', '(a)=LLM("two\nlines")'),
    ],
)  # fmt: skip
def test_a_steps_own_quotes_need_no_escape(text: str, step: str) -> None:
    assert calls(text) == [("lwt_set", (0, step))]
    assert calls(f"First this:\n{text}\nand then\ndone()") == [("lwt_set", (0, step)), ("done", ())]


def test_several_calls_in_order_and_none_behind_done() -> None:
    text = 'lwt_insert(0, "(a)=LLM("x")")\nread(items[5].item_data)\n- lwt_delete(1)\nlwt_list()\ndone()\nlwt_delete(0)'
    assert calls(text) == [
        ("lwt_insert", (0, '(a)=LLM("x")')), ("read", ("items[5].item_data",)), ("lwt_delete", (1,)), ("lwt_list", ()), ("done", ()),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("finish()", "unknown tool 'finish'"),
        ("lwt_remove(3)", "unknown tool 'lwt_remove'"),
        ("lwt_set(0)", "invalid call of lwt_set"),
        ('lwt_set("(a)=LLM(1)", 0)', "invalid call of lwt_set"),
        ("lwt_delete(first)", "invalid call of lwt_delete"),
        ('{"tool": "read", "arguments": {"path": 5}}', "invalid call of read"),
        ('{"tool": "stop", "arguments": {}}', "unknown tool 'stop'"),
    ],
)
def test_what_stands_like_a_call_and_is_none_is_told(text: str, said: str) -> None:
    read = read_calls(text)
    assert read.calls == ()
    assert read.fault is not None
    assert read.fault.message == said
    assert read.fault.hints


EDIT = 'lwt_insert(1, "(b)=LLM("Is item 2 good?")")'
MADE = ("lwt_insert", (1, '(b)=LLM("Is item 2 good?")'))


@pytest.mark.parametrize(
    "dressed",
    [
        "{} # why", "{}  // why", "{},", "{} and then", "{}: adds a step", "{};", "**{}**", "`{}`", "| {} |", "- {}", "1) {}", "Step 1: {}",
        "→ {}", "tools.{}", "functions.{}", "await {}", "x = {}", "x = await tools.{}", "Some words.\n{} -- why",
    ],
)  # fmt: skip
def test_calls_in_any_dress_are_carried_out(dressed: str) -> None:
    assert calls(f"{dressed.format(EDIT)}\ndone()") == [MADE, ("done", ())]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        (EDIT[:-1], MADE), (EDIT.replace("(1, ", "(1,\n  ")[:-1] + "\n)", MADE), ("lwt_delete(1) # why", ("lwt_delete", (1,))),
        ('lwt_insert(1, \u201c(b)=LLM("Is item 2 good?")\u201d)', MADE),
        ("lwt_insert(1, '(b)=LLM('q')')", ("lwt_insert", (1, "(b)=LLM('q')"))),
        ('lwt_set(0, "(b)=LLM("line\ndone()\nmore")")', ("lwt_set", (0, '(b)=LLM("line\ndone()\nmore")'))),
        ('lwt_set(0, "(b)=LLM("Is it?\nOutput: yes or no")")', ("lwt_set", (0, '(b)=LLM("Is it?\nOutput: yes or no")'))),
        ('lwt_set(0, "(b)=LLM("a\nb")"', ("lwt_set", (0, '(b)=LLM("a\nb")'))),
        ('{"tool": "lwt_delete", "arguments": {"idx": 1}}', ("lwt_delete", (1,))),
        ('<tool_call>\n{"name": "lwt_delete", "arguments": "{\\"idx\\": 1}"}\n</tool_call>', ("lwt_delete", (1,))),
    ],
)  # fmt: skip
def test_calls_over_several_lines_unclosed_and_in_json(text: str, made: tuple[str, object]) -> None:
    assert calls(f"{text}\ndone()") == [made, ("done", ())]


@pytest.mark.parametrize(
    "text",
    [
        'lwt_insert[1, "(b)=LLM("q")"]', 'lwt_insert 1 "(b)=LLM("q")"', 'lwt_insert("(b)=LLM("q")")', "lwt_delete(1) would be wrong",
        f"I call {EDIT}", f"First {EDIT} and so on.", 'lwt_set(0, "(b)=LLM("a "q"\ndone()\nb")',
        '{"tool": "lwt_delete", "arguments": {"idx": 1}',
        '{"name": "lwt_delete", "arguments": {"idx": "first"}}', "done(1)", f"lwt_list() {EDIT}",
    ],
)  # fmt: skip
def test_what_begins_like_a_call_and_cannot_be_read_ends_the_answer(text: str) -> None:
    read = read_calls(f"lwt_list()\n{text}\nlwt_delete(0)\ndone()")
    assert read.calls == (Call("lwt_list"),)
    assert read.fault is not None
    assert read.fault.code == "RANK004"


def test_what_stands_before_a_faulty_call_counts() -> None:
    read = read_calls("lwt_list()\nlwt_set(one)\ndone()")
    assert read.calls == (Call("lwt_list"),)
    assert read.fault is not None


@pytest.mark.slow
@given(st.text(alphabet="done()lwt_se\"', \n(a)=LLM01`[]{}\\", max_size=200))
def test_no_text_raises(text: str) -> None:
    read_calls(text)


@pytest.mark.parametrize(
    "piece",
    [
        'lwt_set(0, "',
        '\nlwt_set(0, "',
        '\nlwt_set(0, """',
        "\ndone(",
        "\nread(",
        "\nx(",
        "\n ",
        ") ",
        "done(",
        "'",
        "((((",
        "lwt_insert(0, (a)=LLM(\n",
        "- - - ",
        "`",
        " ",
    ],
)
@pytest.mark.slow
def test_long_odd_texts_are_read_quickly(piece: str) -> None:
    began = time.perf_counter()
    read_calls(piece * (59_000 // len(piece)))
    assert time.perf_counter() - began < 3
    assert read_calls(piece * 100_000).calls == ()
