"""Text straight from a model: what is accepted besides strict LWT, with the span and the strict spelling of each."""

import pytest
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.linter.lwt import check
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.printer.lwt_printer import format_lwt
from knotwork.lang.trees.lwt import Key, Reference, Script, Text


def lenient(text: str) -> Script:
    return parse_lwt(text, "lenient")


def strict_spelling(script: Script) -> str:
    return apply_edits(script.source.text, (edit for d in script.diagnostics for edit in d.edits))


@pytest.mark.parametrize(
    ("text", "codes", "strict"),
    [
        ('(a)=LLM("say "hi" now")', ["LWT004"], """(a)=LLM('say "hi" now')"""),
        ('(a)=LLM("say "hi"")', ["LWT004"], """(a)=LLM('say "hi"')"""),
        ('(a)=LLM("say "hi"", type="json")', ["LWT004"], r"""(a)=LLM('say "hi"', type="json")"""),
        ('(a)=LLM("a", type="json")', [], '(a)=LLM("a", type="json")'),
        ('(a)=LLM("a, "b", c", type="x" | "y")', ["LWT004"], """(a)=LLM('a, "b", c', type="x" | "y")"""),
        ("(a)=LLM('it's')", ["LWT004"], '(a)=LLM("it\'s")'),
        ('(a)=LLM("is {(b)}["k"] "x"?")', ["LWT004"], """(a)=LLM('is {(b)}["k"] "x"?')"""),
        ('(a)=EACH({(b)}, LLM("is "{(item)}" x?"))', ["LWT004"], """(a)=EACH({(b)}, LLM('is "{(item)}" x?'))"""),
        (
            '(cafe\u0301)=LLM("x")\n(b)=LLM("{(cafe\u0301)}")',
            ["LWT007", "LWT024"],
            '(caf\u00e9)=LLM("x")\n(b)=LLM("{(caf\u00e9)}")',
        ),
        ('(a)=LLM("{(b)[k]}")', ["LWT025"], '(a)=LLM("{(b)}["k"]")'),
        ('(a)=LLM("{(b)["k"][0]}")', ["LWT025"], '(a)=LLM("{(b)}["k"][0]")'),
        ('(a)=LLM("{{(b)}}")', ["LWT026"], '(a)=LLM("{(b)}")'),
        ('(a)=LLM("{{(b)}}[k]")', ["LWT026"], '(a)=LLM("{(b)}["k"]")'),
        ('(a)=LLM("{(b)}["k"]} x")', ["LWT027"], '(a)=LLM("{(b)}["k"] x")'),
        ('(a)=LLM("{(b)}[\\"k\\"]} x")', ["LWT027"], '(a)=LLM("{(b)}["k"] x")'),
        ('(a)=LLM("{"name": {(b)}["k"]}")', ["LWT004"], """(a)=LLM('{"name": {(b)}["k"]}')"""),
        ('(a)=LLM("{(b)}}")', [], '(a)=LLM("{(b)}}")'),
        (
            '(b)=CONST(1)\n(c)=CONST(2)\n(a)=LLM("{(b),(c)}")',
            ["LWT024"],
            '(b)=CONST(1)\n(c)=CONST(2)\n(a)=LLM("{(b)},{(c)}")',
        ),
        ('(b)=CONST(1)\n(a)=LLM("{(b), (c)}")', ["LWT024"], '(b)=CONST(1)\n(a)=LLM("{(b), (c)}")'),
        ('(b)=CONST(1)\n(a)=LLM("{(b) or so}")', ["LWT024"], '(b)=CONST(1)\n(a)=LLM("{(b) or so}")'),
        ('(b)=CONST(1)\n(a)=LLM("{(b} or so")', ["LWT024"], '(b)=CONST(1)\n(a)=LLM("{(b)} or so")'),
        ('(a)=LLM("{(what is it?)}")', ["LWT024"], '(a)=LLM("{{(what is it?)}")'),
        ('```\n(a)=LLM("x")\n```', ["LWT036", "LWT036"], '(a)=LLM("x")'),
        ('- (a)=LLM("x")', ["LWT037"], '(a)=LLM("x")'),
        ('1. (a)=LLM("x")', ["LWT037"], '(a)=LLM("x")'),
        ('**(a)=LLM("x")**', ["LWT037", "LWT006"], '(a)=LLM("x")'),
        ('(a)=LLM("x");', ["LWT006"], '(a)=LLM("x")'),
        ('Sure:\n(a)=LLM("x")\nDone.', ["LWT001", "LWT001"], '# Sure:\n(a)=LLM("x")\n# Done.'),
        ('(a)=LLM("x") (b)=LLM("y")', ["LWT006"], '(a)=LLM("x")\n(b)=LLM("y")'),
    ],
)
def test_accepted(text: str, codes: list[str], strict: str) -> None:
    script = lenient(text)
    assert [d.code for d in script.diagnostics] == codes
    assert {d.severity for d in script.diagnostics} <= {"warning"}
    assert format_lwt(script).strip() == strict
    # The edits of the lints are the strict spelling: read strictly, they give the same steps.
    assert parse_lwt(strict_spelling(script)).steps == script.steps


def test_a_slip_that_is_read_as_a_reference_is_not_said_to_stay_as_text() -> None:
    steps = '(b)=CONST(1)\n(c)=CONST(2)\n(a)=LLM("{}")'
    for slip in ("{(b),(c)}", "{(b}", "{(b)[k]}", "{{(b)}}", "{(b), (z)}", "{(b) or so}", "{(what?)}"):
        script = lenient(steps.replace("{}", slip))
        (found,) = script.diagnostics
        template = script.steps[-1].call.arguments[0]
        read = [part.name for part in template.parts if isinstance(part, Reference)]
        assert bool(read) == ("; read as `" in found.message), slip
        assert (template.constant == slip) == ("is read as text" in found.message), slip


def test_a_bullet_can_hide_an_inner_quote() -> None:
    script = lenient('- (a)=LLM("say "hi"")\n')
    assert sorted(d.code for d in script.diagnostics) == ["LWT004", "LWT037"]
    assert script.steps[0].call.arguments[0].parts == (Text('say "hi"'),)


def test_the_last_of_two_steps_with_one_id_wins() -> None:
    script = lenient('(a)=LLM("one")\n(a)=LLM("two")\n')
    assert [step.call.arguments[0].parts for step in script.steps] == [(Text("two"),)]
    (lint,) = script.diagnostics
    assert (lint.code, lint.severity, script.source.slice(lint.span)) == ("LWT014", "warning", '(a)=LLM("one")')


@pytest.mark.parametrize("text", ['(0)=LLM("x")\n...\n(9)=LLM("y")', '(length+1)=LLM("x")', '(n+1)=LLM("x")\n…'])
@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_a_sketch_is_no_script(text: str, mode: str) -> None:
    assert "LWT010" in {d.code for d in parse_lwt(text, mode).diagnostics if d.severity == "error"}


@pytest.mark.parametrize("text", ['(a)=LLM("x', '(a)=LLM("x"', "(a)=", '(a b)=LLM("x")', '(a)=LLM("x" 5)'])
def test_what_can_not_be_mended_is_an_error_and_never_dropped_silently(text: str) -> None:
    script = lenient(f'{text}\n(b)=LLM("good")')
    assert "error" in {d.severity for d in script.diagnostics}
    assert [step.id for step in script.steps][-1:] == ["b"]


def test_spans_point_into_the_text_as_it_was_given() -> None:
    text = '```\n- (a)=LLM("say "hi" to {(b)[k]}")\n(c)=LLM("{(d)}")\n```\n'
    script = lenient(text)
    a, c = script.steps
    assert script.source.slice(a.span) == '(a)=LLM("say "hi" to {(b)[k]}")'
    assert script.source.slice(c.span) == '(c)=LLM("{(d)}")'
    reference = c.call.arguments[0].parts[0]
    assert (script.source.slice(reference.span), reference) == ("{(d)}", Reference("d"))
    assert a.call.arguments[0].parts[1] == Reference("b", (Key("k"),))
    for lint in script.diagnostics:
        assert script.source.slice(lint.span) in ("```", "- ", '"', "{(b)[k]}")


def test_strict_keeps_the_slips_of_references_as_text() -> None:
    (step,) = parse_lwt('(a)=LLM("{(b)[k]} {{(b)}} {(free text?)}")').steps
    assert step.call.arguments[0].parts == (Text("{(b)[k]} {(b)}} {(free text?)}"),)


def test_a_reference_with_a_combining_character_is_named_in_the_strict_reading():
    text = '(caf\u00e9)=LLM("x")\n(b)=LLM("{(cafe\u0301)} {(no\u0308)}")\n'
    known, unknown = (found for found in check(parse_lwt(text)) if found.code == "LWT024")
    assert known.message == "`{(cafe\u0301)}` contains the combining character U+0301; it is read as text"
    assert apply_edits(text, known.edits) == text.replace("e\u0301", "\u00e9")
    assert (unknown.hints[0], unknown.edits) == ("for a reference, write `{(n\u00f6)}`", ())
