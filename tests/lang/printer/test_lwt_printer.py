"""The printer: what it writes reads back the same, and is what it would write again."""

import pytest
from hypothesis import given, settings
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.printer.lwt_printer import format_call, format_lwt, format_reference, format_template, format_value
from knotwork.lang.trees.lwt import (  # fmt: skip
    Call,
    Comment,
    Index,
    Key,
    Mode,
    ObjectValue,
    Reference,
    Scalar,
    Script,
    Slice,
    Step,
    Template,
    Text,
    Value,
    Word,
)
from support.folders import GOLDEN
from support.scripts import scripts, templates

FORMATTED = GOLDEN / "lwt" / "format"


def text(value: str) -> Template:
    return Template((Text(value),))


def read(value: Value) -> Value:
    script = parse_lwt(f"(a)=OP({format_value(value)})")
    assert script.diagnostics == ()
    return script.steps[0].call.arguments[0]


@pytest.mark.slow
@given(scripts())
@settings(max_examples=100, deadline=None)
def test_reading_what_was_printed_gives_the_same_tree(script):
    printed = format_lwt(script)
    again = parse_lwt(printed)
    assert again.diagnostics == ()
    assert again == script
    assert format_lwt(again) == printed


@pytest.mark.slow
@given(templates)
@settings(max_examples=200, deadline=None)
def test_every_string_survives(template):
    assert read(template) == template


@pytest.mark.parametrize("path", sorted(FORMATTED.glob("*.in.lwt")), ids=lambda path: path.name.removesuffix(".in.lwt"))
def test_golden(path):
    before = path.read_bytes().decode()
    wanted = path.with_name(path.name.replace(".in.", ".out.")).read_bytes().decode()
    mode: Mode = "lenient" if path.name.startswith("lenient") else "strict"
    script = parse_lwt(before, mode)
    assert all(diagnostic.severity != "error" for diagnostic in script.diagnostics)
    printed = format_lwt(script)
    assert printed == wanted
    again = parse_lwt(printed)
    assert again == script
    assert format_lwt(again) == printed
    comments = [item.text for item in script.items if isinstance(item, Comment)]
    assert [line for line in printed.splitlines() if line in comments] == comments


def test_there_are_golden_pairs():
    assert len(list(FORMATTED.glob("*.in.lwt"))) >= 12


@pytest.mark.parametrize(
    ("value", "printed"),
    [
        ("plain", '"plain"'),
        ("", '""'),
        ('say "yes"', "'say \"yes\"'"),
        ("it's", '"it\'s"'),
        ('it\'s "so" here', '"""it\'s "so" here"""'),
        ('it\'s "so"', '"it\'s \\"so\\""'),
        ('it\'s """so""" here', '"it\'s \\"\\"\\"so\\"\\"\\" here"'),
        (r"\times \n", r'"\times \n"'),
        ("\\", r'"\\"'),
        ("a\\\\b", r'"a\\\\b"'),
        ("{(", '"{{("'),
        ("{{(", '"{{{("'),
        ("{(free text?)}", '"{{(free text?)}"'),
        ("{", '"{"'),
        ("two\nlines", '"two\nlines"'),
    ],
)
def test_quotes_and_escapes(value, printed):
    template = text(value) if value else Template()
    assert format_template(template) == printed
    assert read(template) == template


@pytest.mark.parametrize(
    ("after", "printed"),
    [
        ("[draft]", '"{(a)}\\[draft]"'),
        ("\\[draft]", '"{(a)}\\\\[draft]"'),
        (" [draft]", '"{(a)} [draft]"'),
        ("\\", '"{(a)}\\\\"'),
        ("}", '"{(a)}}"'),
    ],
)
def test_text_behind_a_reference(after, printed):
    template = Template((Reference("a"), Text(after)))
    assert format_template(template) == printed
    assert read(template) == template


def test_quotes_of_keys_do_not_choose_the_quotes_of_the_string():
    template = Template((Text("Is "), Reference("input", (Key("a"), Index(-1), Slice(None, 5)))))
    assert format_template(template) == '"Is {(input)}["a"][-1][:5]"'


def test_keys_are_escaped():
    reference = Reference("input", (Key('a"b\\'),))
    assert format_reference(reference) == '{(input)}["a\\"b\\\\"]'
    assert read(reference) == reference


def test_adjacent_texts_are_one():
    template = Template((Text("{"), Text("("), Text(""), Reference("a"), Text(""), Text("[")))
    assert format_template(template) == '"{{({(a)}\\["'


def test_numbers_keep_their_kind():
    for value, printed in [(1, "1"), (1.0, "1.0"), (-0.0, "-0.0"), (1e300, "1e+300"), (True, "true"), (None, "null")]:
        assert format_value(Scalar(value)) == printed
        assert read(Scalar(value)) == Scalar(value)


def test_a_call_has_arguments_first_and_calls_inline():
    inner = Call("LLM", (text("{(item)}"),))
    from knotwork.lang.trees.lwt import Option

    call = Call("EACH", (Reference("input"), inner), (Option("on_error", Word("drop")),))
    assert format_call(call) == 'EACH({(input)}, LLM("{{(item)}"), on_error=drop)'
    assert format_value(ObjectValue(((text("k"), Scalar(1)),))) == '{"k": 1}'


@pytest.mark.parametrize(
    "value",
    [
        Template((Text("{"), Reference("a"))),
        Reference("a", (Key("two\nlines"),)),
        Scalar(float("nan")),
        Scalar(float("inf")),
    ],
)
def test_what_no_text_can_say_is_refused(value):
    with pytest.raises(ValueError, match="cannot"):
        format_value(value)


def test_an_empty_script_is_an_empty_text():
    assert format_lwt(Script()) == ""
    assert format_lwt(parse_lwt("\n\n")) == ""


def test_blank_lines_come_from_the_source_only():
    step = Step("a", Call("LLM", (text("x"),)))
    assert format_lwt(Script((Comment("# one"), step))) == '# one\n(a)=LLM("x")\n'
    script = parse_lwt('# one\n\n\n \n(a)=LLM("x")\n(b)=LLM("y")')
    assert format_lwt(script) == '# one\n\n(a)=LLM("x")\n(b)=LLM("y")\n'
