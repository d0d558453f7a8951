"""What LWT text means: ids, strings, references, values, options."""

import pytest
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.source import Source, Span
from knotwork.lang.trees import walk
from knotwork.lang.trees.lwt import (
    Call,
    Choice,
    Comment,
    Index,
    Key,
    ListValue,
    ObjectValue,
    Option,
    Reference,
    Scalar,
    Slice,
    Step,
    Template,
    Text,
    Word,
)


def only(text: str) -> Step:
    script = parse_lwt(text)
    assert script.diagnostics == ()
    (step,) = script.steps
    return step


def prompt(text: str) -> tuple[Text | Reference, ...]:
    (template,) = only(f"(a)=LLM({text})").call.arguments
    assert isinstance(template, Template)
    return template.parts


def value(text: str) -> object:
    return only(f"(a)=CONST({text})").call.arguments[0]


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ('"plain"', "plain"),
        ("'plain'", "plain"),
        ('"""a "quoted" word"""', 'a "quoted" word'),
        ("'''it's'''", "it's"),
        (r'"a \"quoted\" word"', 'a "quoted" word'),
        (r"'it\'s'", "it's"),
        (r'"it\'s"', r"it\'s"),
        (r'"one \\ backslash"', "one \\ backslash"),
        (r'"$\times$ and \n and \{"', r"$\times$ and \n and \{"),
        (r'"ends in \\"', "ends in \\"),
        ('"two\nlines"', "two\nlines"),
        ('"{{(x)}"', "{(x)}"),
        ('"{{{(x)}"', "{{(x)}"),
        ('"{{x}} {x} {"', "{{x}} {x} {"),
        ('"{(not a reference)}"', "{(not a reference)}"),
        ('""', ""),
    ],
)
def test_strings(text: str, meaning: str) -> None:
    parts = prompt(text)
    assert parts == ((Text(meaning),) if meaning else ())


@pytest.mark.parametrize(
    ("text", "accessors"),
    [
        ('["key"]', (Key("key"),)),
        ("['key']", (Key("key"),)),
        (r"[\"key\"]", (Key("key"),)),
        (r"[\'key\']", (Key("key"),)),
        ("[key]", (Key("key"),)),
        ("[a.b-c]", (Key("a.b-c"),)),
        ("[3]", (Index(3),)),
        ("[-1]", (Index(-1),)),
        ('["3"]', (Key("3"),)),
        ("[0:200]", (Slice(0, 200),)),
        ("[:5]", (Slice(None, 5),)),
        ("[-3:]", (Slice(-3, None),)),
        ('["a"][0]["b c"]', (Key("a"), Index(0), Key("b c"))),
        (r'["say \"hi\""]', (Key('say "hi"'),)),
        ('["]"]', (Key("]"),)),
        ("", ()),
    ],
)
@pytest.mark.parametrize("quote", ['"', "'", '"""', "'''"])
def test_accessors_do_not_end_the_string(text: str, accessors: tuple[object, ...], quote: str) -> None:
    assert prompt(f"{quote}x {{(b)}}{text} y{quote}") == (Text("x "), Reference("b", accessors), Text(" y"))


def test_what_is_no_accessor_stays_text() -> None:
    assert prompt('"{(b)}[two words] {(b)} [0]"') == (
        Reference("b"), Text("[two words] "), Reference("b"), Text(" [0]")
    )  # fmt: skip


def test_an_escaped_bracket_after_a_reference_is_text() -> None:
    assert prompt(r'"{(b)}\[0] \[1]"') == (Reference("b"), Text(r"[0] \[1]"))


def test_values() -> None:
    assert value("[1, -2.5, true, null]") == ListValue((Scalar(1), Scalar(-2.5), Scalar(True), Scalar(None)))
    assert value('{"a": {"b": []}}') == ObjectValue(
        ((Template((Text("a"),)), ObjectValue(((Template((Text("b"),)), ListValue(())),))),)
    )
    assert value("True") == Scalar(True)
    assert value("1") != value("1.0")
    assert value("1") != value("true")


def test_options_of_every_kind() -> None:
    call = only('(a)=LLM("x", type="a" | "b", model=fast, max_tokens=5, system="y {(b)}", stop=["."])').call
    a, b = Template((Text("a"),)), Template((Text("b"),))
    assert call.options == (
        Option("type", Choice((a, b))),
        Option("model", Word("fast")),
        Option("max_tokens", Scalar(5)),
        Option("system", Template((Text("y "), Reference("b")))),
        Option("stop", ListValue((Template((Text("."),)),))),
    )
    assert call.option("model") == Word("fast")
    assert call.option("absent") is None


def test_a_call_may_span_lines_and_end_in_a_comma() -> None:
    text = '(a)=EACH(\n  {(b)}["x"] ,\n  LLM(\n    "go {(item)}",\n    type = json ,\n  )\n  ,\n)\n(c) = CONST([\n 1,\n 2,\n])\n'
    script = parse_lwt(text)
    assert script.diagnostics == ()
    assert [step.id for step in script.steps] == ["a", "c"]
    assert isinstance(script.steps[0].call.arguments[1], Call)


def test_comments_blank_lines_and_indentation_between_steps() -> None:
    script = parse_lwt('# one  \n\n   # two\r\n\t(a)=LLM("x")   \r\n\r\n# three')
    assert script.diagnostics == ()
    assert script.items == (
        Comment("# one"), Comment("# two"), Step("a", Call("LLM", (Template((Text("x"),)),))), Comment("# three")
    )  # fmt: skip


def test_a_prompt_keeps_its_line_ends() -> None:
    assert prompt('"a\r\nb\n\n c "') == (Text("a\r\nb\n\n c "),)


def test_lines_of_a_prompt_may_look_like_steps() -> None:
    script = parse_lwt('(a)=LLM("write\n(b)=LLM(\'x\')\n# like this")\n(c)=LLM("y")')
    assert [step.id for step in script.steps] == ["a", "c"]


def test_every_span_covers_its_text() -> None:
    text = '# note\n(a)=LLM("x {(b)}["k"][0] y", type=json)\n(b)=CONST([1, {"k": "v"}])\n'
    source = Source(text)
    script = parse_lwt(source)
    shown = {(type(node).__name__, source.slice(node.span)) for item in script.items for node in walk(item)}
    assert shown >= {
        ("Comment", "# note"), ("Step", '(a)=LLM("x {(b)}["k"][0] y", type=json)'), ("Reference", '{(b)}["k"][0]'),
        ("Key", '["k"]'), ("Index", "[0]"), ("Text", "x "), ("Text", " y"), ("Option", "type=json"), ("Word", "json"),
        ("Call", 'CONST([1, {"k": "v"}])'), ("ListValue", '[1, {"k": "v"}]'), ("ObjectValue", '{"k": "v"}'),
        ("Template", '"v"'), ("Scalar", "1"),
    }  # fmt: skip


def test_a_byte_order_mark_is_not_part_of_the_first_step() -> None:
    assert [step.id for step in parse_lwt('\ufeff(a)=LLM("x")').steps] == ["a"]


def test_spans_are_no_part_of_equality() -> None:
    assert parse_lwt('(a)=LLM("x")').items == parse_lwt('\n\n   (a) = LLM( "x" )').items


def test_a_fault_does_not_hide_the_others_nor_the_good_steps() -> None:
    text = '(a)=LLM("x\n(b)=LLM("good")\n(c)=LLM("x" 5)\n(d)=LLM("good")\nprose\n(e f)=LLM("x")\n(g)=LLM("good")\n'
    script = parse_lwt(text)
    assert [step.id for step in script.steps] == ["b", "d", "g"]
    assert [d.code for d in script.diagnostics] == ["LWT002", "LWT005", "LWT001", "LWT007"]


def test_faults_are_found_where_a_prompt_holds_what_looks_like_steps() -> None:
    inner = "\n".join(f"(s{i})=LLM(...)" for i in range(50))
    script = parse_lwt(f"(a)=LLM('''like this:\n{inner}''')\n(b)=LLM('x' 5)\n")
    assert [step.id for step in script.steps] == ["a"]
    assert [d.code for d in script.diagnostics] == ["LWT005"]
    assert script.diagnostics[0].span == Span(script.source.text.index("5)\n"), script.source.text.index("5)\n") + 1)
