"""What single rules say: messages, places and fixes."""

import pytest
from knotwork.lang.diagnostic import apply_edits
from knotwork.lang.linter.lwt import check
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.printer.lwt_printer import format_lwt
from knotwork.lang.trees.lwt import ABSENT


def report(text: str, mode="strict", **options) -> list[str]:
    """Return "CODE text under the span: message" for each diagnostic but LWT031."""
    script = parse_lwt(text, mode)
    return [
        f"{d.code} {script.source.slice(d.span)}: {d.message}"
        for d in check(script, **options)
        if d.code != "LWT031" and d.span
    ]


def fixed(text: str, **options) -> str:
    edits = [edit for d in check(parse_lwt(text), **options) for edit in d.edits]
    return apply_edits(text, edits)


def call(arguments: str) -> list[str]:
    return report(f"(final)=LLM({arguments})")


def test_unknown_reference_points_at_the_name():
    assert report('(check)=LLM("x")\n(final)=LLM("{(chekc)}[0]")') == ["LWT012 chekc: unknown step (chekc)"]
    assert fixed('(check)=LLM("x")\n(final)=LLM("{(chekc)}[0]")') == '(check)=LLM("x")\n(final)=LLM("{(check)}[0]")'


def test_unknown_reference_with_a_dot_was_meant_as_a_path():
    hints = check(parse_lwt('(final)=LLM("{(input.items.name)}")'))[0].hints
    assert hints == ('for a part of `input`, write `{(input)}["items"]["name"]`',)


@pytest.mark.parametrize("mode", ["strict", "lenient"])
@pytest.mark.parametrize(
    "begun", ["[3' y", "[3 y", "['k y", '["k]', "[0: y", "[-1 y", "['k' y", "[k y", "[3'] y", "[3\n]"]
)
def test_a_way_into_a_value_that_is_not_closed_is_an_error(begun: str, mode: str):
    script = parse_lwt(f'(0)=CONST([1, 2])\n(final)=LLM("""{{(0)}}{begun} """)', mode)
    (found,) = [d for d in check(script) if d.code == "LWT030"]
    assert found.severity == "error"
    assert "begins a path into (0), but is not closed" in found.message


@pytest.mark.parametrize(
    ("text", "severity"), [("[1 of 3]", "info"), ("[see below]", "info"), ("[1, 2]", "info"), ("[{(b)}]", "warning")]
)
def test_brackets_behind_a_reference_that_may_be_text(text: str, severity: str):
    found = check(parse_lwt(f'(a)=CONST([1])\n(b)=CONST(0)\n(final)=LLM("{{(a)}}{text} {{(b)}}")'))
    assert [(d.code, d.severity) for d in found if d.code != "LWT031"] == [("LWT030", severity)]


def test_a_cycle_names_its_whole_path():
    text = '(a)=LLM("{(b)}")\n(b)=LLM("{(c)}")\n(c)=LLM("{(a)}")\n(final)=LLM("{(a)} {(final)}")'
    assert report(text) == [
        "LWT013 {(b)}: steps refer to each other in a cycle: a → b → c → a",
        "LWT013 {(final)}: step (final) refers to itself",
    ]


def test_dead_steps():
    text = '(a)=LLM("x")\n(b)=LLM("{(a)}")\n(final)=LLM("y")'
    assert report(text) == [
        "LWT017 a: the step (a) is skipped: the final step (final) does not depend on it",
        "LWT017 b: the step (b) is skipped: the final step (final) does not depend on it",
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", "LWT021 LLM(): LLM lacks its prompt"),
        ("temperature=0", "LWT021 LLM(temperature=0): LLM lacks its prompt"),
        ('"a", "b"', 'LWT021 "b": LLM takes one argument (prompt); this is one too many'),
        ("{(input)}", "LWT021 {(input)}: LLM takes a string (its prompt) here, not a reference"),
        ("3", "LWT021 3: LLM takes a string (its prompt) here, not a number"),
        ('LLM("x")', 'LWT021 LLM("x"): LLM takes a string (its prompt) here, not a call'),
        ('retries=1, "a"', 'LWT021 "a": this argument of LLM follows an option'),
        ('"a", temp=1', "LWT019 temp: LLM has no option `temp`"),
        ('"a", retries=1, retries=2', "LWT039 retries: this call has the option `retries` twice"),
        ('"a", temperature=hot', "LWT020 hot: `temperature` takes a number, not a bare word"),
        ('"a", temperature="0.5"', 'LWT020 "0.5": `temperature` takes a number, not a string'),
        ('"a", temperature=true', "LWT020 true: `temperature` takes a number, not true"),
        ('"a", temperature=-1', "LWT020 -1: `temperature` takes a number from 0 to 2, not -1"),
        ('"a", max_tokens=1.5', "LWT020 1.5: `max_tokens` takes a whole number, not 1.5"),
        ('"a", max_tokens=0', "LWT020 0: `max_tokens` takes a whole number from 1 to 1,000,000, not 0"),
        ('"a", model=gpt', "LWT020 gpt: `model` takes a string, not a bare word"),
        ('"a", model="{(input)}"', "LWT020 {(input)}: `model` takes a constant string, without references"),
        (
            '"a", model="http://x/y"',
            'LWT020 "http://x/y": `model` takes a model\'s name, not an address or a specification',
        ),
        (
            '"a", model="openai:x"',
            'LWT020 "openai:x": `model` takes a model\'s name, not an address or a specification',
        ),
        ('"a", system=3', "LWT020 3: `system` takes a string, not a number"),
        ('"a", stop=["a", 3]', "LWT020 3: `stop` takes strings, not a number"),
        ('"a", stop=[]', "LWT020 []: `stop` takes one to four strings, not 0"),
        ('"a", stop=""', 'LWT020 "": `stop` is empty, so every answer would be empty'),
        ('"a", type=jsn', 'LWT020 jsn: `type` takes one of text, json, list, int, float, bool, not "jsn"'),
        ('"a", type="yes"', 'LWT020 "yes": `type` takes one of text, json, list, int, float, bool, not "yes"'),
        ('"a", type=3', "LWT020 3: `type` takes one of text, json, list, int, float, bool, or a choice, not a number"),
        ('"a", type="yes|no"', 'LWT020 "yes|no": `type` has a choice inside one string'),
        ('"a", type="x" | "x"', 'LWT020 "x": `type` has the label "x" twice'),
        ('"a", type="x" | ""', 'LWT020 "": `type` has a choice with an empty label'),
        ('"a", type="x" | "{(input)}"', 'LWT020 "{(input)}": `type` has a reference in a choice'),
    ],
)
def test_arguments_and_options(arguments, expected):
    assert call(arguments) == [expected]


@pytest.mark.parametrize(
    "arguments",
    [
        '"a"', '"a", type=json', '"a", type="json"', '"a", type="x" | "y"', '"a", stop="."', '"a", stop=["a", "b"]',
        '"a", temperature=0, max_tokens=10, retries=0, timeout=1.5, model="llama3:8b", system="{(input)}"',
    ],
)  # fmt: skip
def test_right_calls(arguments):
    assert call(arguments) == []


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("LLM({(input)})", 'LLM("{(input)}")'),
        ('LLM("a", type=integer)', 'LLM("a", type=int)'),
        ('LLM("a", type="yes|no")', 'LLM("a", type="yes" | "no")'),
        ('LLM("a", temprature=0)', 'LLM("a", temperature=0)'),
        ('LLM("a", retries="2")', 'LLM("a", retries=2)'),
        ('llm("a")', 'LLM("a")'),
        ('LLM("a", model=small)', 'LLM("a", model="small")'),
        ('EACH("{(input)}", LLM("{(item)}"), on_error="kep")', 'EACH({(input)}, LLM("{(item)}"), on_error=keep)'),
    ],
)
def test_fixes(wrong, right):
    assert fixed(f"(final)={wrong}") == f"(final)={right}"
    assert report(f"(final)={right}") == []


def test_models_that_the_host_offers():
    text = '(final)=LLM("a", model="smal")'
    assert report(text) == []
    assert report(text, models=["small", "large"]) == [
        'LWT020 "smal": `model` names "smal", which the host does not offer'
    ]
    assert fixed(text, models=["small", "large"]) == '(final)=LLM("a", model="small")'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('EACH(["a"], LLM("{(item)}"))', 'LWT021 ["a"]: EACH takes a reference to a list here, not a list'),
        ("EACH({(input)})", "LWT021 EACH({(input)}): EACH lacks its call"),
        ('EACH({(input)}, "{(x)}")', 'LWT021 "{(x)}": EACH takes a call here, not a string'),
        ("EACH({(input)}, CONST(1))", "LWT021 CONST(1): EACH can't run CONST for each item"),
        ('EACH({(item)}, LLM("{(item)}"))', "LWT022 {(item)}: `{(item)}` is used outside the inner call of an EACH"),
        ('EACH({(input)}, LLM("{(item)}"), on_error=no)',
         'LWT020 no: `on_error` takes one of fail, keep, drop, not "no"'),
        ('CONST("{(x)}")', "LWT021 {(x)}: the value of CONST must be constant and can't refer to (x)"),
        ("CONST([1, yes])", "LWT021 yes: CONST takes a constant JSON value here, not a bare word"),
        ('CONST({"a": 1, "a": 2})', 'LWT020 "a": this object has the key "a" twice'),
        ('LLM("{(index)}")', "LWT022 {(index)}: `{(index)}` is used outside the inner call of an EACH"),
    ],
)  # fmt: skip
def test_each_and_const(text, expected):
    assert report(f'(x)=LLM("a {{(x)}}")\n(final)={text}'.replace('(x)=LLM("a {(x)}")', '(x)=LLM("a")'))[-1:] == [
        expected
    ]


DATA = {
    "items": [{"name": "a", "tags": ["x"]}, {"name": "b"}],
    "n": 3,
    "text": "long text",
    "json": '{"k": [1]}',
    "3": 0,
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ('["items"][1]["name"]', None),
        ('["items"][-2]["tags"][0]', None),
        ('["items"][0:1][0]["name"]', None),
        ('["text"][0:4]', None),
        ('["json"]["k"][0]', None),
        ('["itmes"]', '["itmes"]: the input has no key "itmes" here'),
        ('["items"][2]', "[2]: the list has no element 2: it has 2 elements, and the first is 0"),
        ('["items"]["name"]', '["name"]: the input has a list of 2 here, which has no key "name"'),
        ('["items"]["1"]["name"]', '["1"]: the input has a list of 2 here, which has no key "1"'),
        ("[3]", "[3]: the input has an object here, not a list"),
        ('["n"]["k"]', '["k"]: the input has a number here, which has no keys'),
        ('["n"][0:2]', "[0:2]: the input has a number here, not a list"),
        ('["text"]["k"]', '["k"]: the input is the string "long text" here, which has no parts'),
        ('["json"]["q"]', '["q"]: the input has no key "q" here'),
    ],
)
def test_input_paths(path, expected):
    found = report(f"(final)=LLM('{{(input)}}{path}')", input=DATA)
    assert found == ([] if expected is None else [f"LWT023 {expected}"])


def test_input_paths_are_fixed_where_the_meaning_is_plain():
    assert fixed('(final)=LLM("{(input)}["itmes"]["1"]")', input=DATA) == '(final)=LLM("{(input)}["items"]["1"]")'
    assert fixed('(final)=LLM("{(input)}["items"]["1"]")', input=DATA) == '(final)=LLM("{(input)}["items"][1]")'
    assert fixed('(final)=LLM("{(input)}[3]")', input=DATA) == '(final)=LLM("{(input)}["3"]")'


def test_items_of_an_input_list():
    def each(source, path):
        return report(f'(final)=EACH({source}, LLM("{{(item)}}{path}"))', input=DATA)

    items = '{(input)}["items"]'
    assert each(items, '["name"]') == []
    assert each(items, '["tags"]') == [], "one of the items has it"
    assert each(items, '["nmae"]') == ['LWT023 ["nmae"]: the item has no key "nmae" here']
    assert each('{(input)}["json"]["k"]', "") == []
    assert each('{(input)}["n"]', "") == [
        'LWT023 {(input)}["n"]: EACH needs a list, but the given input has a number here'
    ]
    assert each('{(input)}["itmes"]', '["x"]') == ['LWT023 ["itmes"]: the input has no key "itmes" here']


@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_a_path_that_the_input_lacks_is_an_error_in_both_readings(mode):
    found = check(parse_lwt('(final)=LLM("{(input)}["q"]")', mode), input={})
    assert [(d.code, d.severity) for d in found] == [("LWT023", "error")]


@pytest.mark.parametrize("mode", ["strict", "lenient"])
def test_without_an_input_the_first_reference_to_it_is_an_error_and_the_others_are_counted(mode):
    text = '(a)=LLM("{(input)}["k"]", when="{(input)} != 1")\n(final)=EACH({(input)}, LLM("{(item)} {(a)}"))'
    (found,) = check(parse_lwt(text, mode), input=ABSENT)
    assert (found.code, found.severity, found.span.start) == ("LWT023", "error", text.index("{(input)}"))
    assert found.message == "the script refers to the input, but the run has no input (and 2 more references to it)"
    assert check(parse_lwt("(final)=LLM(\"say {{(input)} and 'input'\")", mode), input=ABSENT) == []


@pytest.mark.parametrize("kind", ["int", "float", "bool", '"bool"', '"yes" | "no"'])
def test_answers_without_parts(kind):
    text = f'(n)=LLM("x", type={kind})\n(final)=LLM("{{(n)}}["k"] {{(n)}}")'
    assert [line[:13] for line in report(text)] == ['LWT033 ["k"]:']


def test_answers_with_parts():
    assert report('(n)=LLM("x", type=json)\n(final)=LLM("{(n)}["k"]")') == []
    assert report('(n)=LLM("x", type="yes" | "no")\n(final)=LLM("{(n)}[0:1]")') == []


@pytest.mark.parametrize("text", [r"\times", r"\nabla f", r"\nu", r"\text{x}", r"\theta", r"\to", r"\\n", r"\neq 0"])
def test_latex_is_no_newline(text):
    assert call(f'"{text}"') == []


def test_backslash_n_is_one_remark_a_string():
    text = '(final)=LLM("a\\nb\\n\\tC")'
    assert len(report(text)) == 1
    assert fixed(text) == '(final)=LLM("a\nb\n\tC")'


@pytest.mark.parametrize(
    ("wrong", "right", "code"),
    [
        ("{(input)[k]}", "{(input)}[k]", "LWT025"),
        ("{(input)['k'][0]}", "{(input)}['k'][0]", "LWT025"),
        ('{(input)[\\"k\\"][0]}', '{(input)}[\\"k\\"][0]', "LWT025"),
        ("{(input['k'])}", "{(input)}['k']", "LWT025"),
        ("{(input).k}", '{(input)}["k"]', "LWT025"),
        ("{(input).k.l[0]}", '{(input)}["k"]["l"][0]', "LWT025"),
        ("{(input)['k'].l}", "{(input)}['k'][\"l\"]", "LWT025"),
        ("{{(input).k}}", '{(input)}["k"]', "LWT026"),
        ("{ (input) .k }", '{(input)}["k"]', "LWT041"),
        ("{{(input)}}", "{(input)}", "LWT026"),
        ("{{(input)}}[k]", "{(input)}[k]", "LWT026"),
        ('{(input)}["k"]} = True?', '{(input)}["k"] = True?', "LWT027"),
        ('{(input)}[\\"k\\"]} or {(input)}["q"]}', '{(input)}[\\"k\\"] or {(input)}["q"]', "LWT027"),
        ("{(why not?)}", "{{(why not?)}", "LWT024"),
        ("a {( b", "a {{( b", "LWT024"),
    ],
)
def test_slips_of_references(wrong, right, code):
    found = check(parse_lwt(f'(final)=LLM("{wrong}")'))
    assert {d.code for d in found} == {code}
    assert {d.severity for d in found} == {"warning"}
    assert fixed(f'(final)=LLM("{wrong}")') == f'(final)=LLM("{right}")'
    assert report(f'(final)=LLM("{right}")') == []
    lenient = check(parse_lwt(f'(final)=LLM("{wrong}")', "lenient"))
    assert [d.code for d in lenient] == [d.code for d in found], "reported by the reading, once"


@pytest.mark.parametrize(
    "wrong",
    [
        "{(input)+1}", "{(input) + 1}", "{(input + 1)}", "{(input)|upper}", "{(input|upper)}", "{(input)['k']|upper}", "{(input):.2f}",
        "{(input)!r}", "{(input)->b}", "{(input).upper()}", "{(input).length}", "{(input), (other)}", "{(other).k}", "{( other )}",
        "{{ input | upper }}", "{input:.2f}", "{input + 1}",
    ],
)  # fmt: skip
def test_no_edit_hides_a_reference_that_cannot_be_read(wrong):
    text = f'(final)=LLM("{wrong}")'
    (found,) = check(parse_lwt(text))
    assert (found.severity, found.edits) == ("warning", ())
    assert format_lwt(parse_lwt(text, "lenient")).strip() == text


@pytest.mark.parametrize(
    "text",
    [
        "{'name': {(input)}['k']}",
        "{{(nothing)}}",
        "{{(input)}",
        "{{{(input)}}}",
        "{(input)}}",
        "{}{}",
        "{a} {(input)}['k'] {b}",
    ],
)
def test_no_slip(text):
    assert call(f'"{text}"') == []


def test_a_head_inside_a_prompt_is_pointed_at():
    assert report('(final)=LLM("one\n  (b)=LLM(two)")') == [
        "LWT028 (b)=LLM(: this line looks like a step, but it is inside the string that begins in line 1"
    ]
    assert report('(final)=LLM("(b)=LLM(two)\nf(x)= g")') == []


def test_odd_characters():
    text = '(final)=LLM("a\x00b\u202ec\rd\ud800")'
    script = parse_lwt(text)
    assert [(d.code, d.severity, d.message) for d in check(script) if d.code == "LWT035"] == [
        ("LWT035", "warning", "the script contains a control character (U+0000) here"),
        ("LWT035", "warning", "the script contains an invisible character (U+202E) here"),
        ("LWT035", "warning", "the script contains a control character (U+000D) here"),
        ("LWT035", "error", "a lone surrogate (U+D800) is not a character"),
    ]
    assert report('(final)=LLM("a\tb")\r\n# é 日本 😀\r\n') == []
