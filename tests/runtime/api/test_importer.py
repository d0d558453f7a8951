"""Prompts of other tools as scripts and test cases: what is imported, and that nothing is left out in silence."""

import json
from pathlib import Path
from typing import Any

import pytest
from knotwork import lwt
from knotwork.lang.source import Source
from knotwork.runtime.api.script_cases import check_cases
from support.clients import Scripted
from support.command import call

PROMPT = {"_type": "prompt", "input_variables": ["a", "b"], "template": "Tell {a} about {b}. {{x}} \"y\" 'z'"}
FEW_SHOT = {
    "_type": "few_shot", "input_variables": ["word"], "prefix": "Antonyms.", "suffix": "Input: {word}\nOutput:",
    "example_prompt": {"_type": "prompt", "input_variables": ["input", "output"], "template": "Input: {input}\nOutput: {output}"},
    "examples": [{"input": "happy", "output": "sad"}, {"input": "{tall}", "output": "short"}],
}  # fmt: skip


def lc(name: str, **kwargs: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain_core", "prompts", name], "kwargs": kwargs}


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read(document: Any, name: str = "p.json") -> lwt.Imported:
        (tmp_path / name).write_text(document if isinstance(document, str) else json.dumps(document))
        return lwt.import_file(tmp_path / name)

    return read


def prompt_of(script: str, **values: Any) -> Any:
    """Return the prompt that a script sends for these values, as its model sees it, and the options."""
    client = Scripted(default='{"mood": "glad", "topics": []}' if "schema" in script else "3")
    lwt.run_sync(script, input=values, llm=client)
    return client.prompts[0], client.options[0]


def test_a_langchain_prompt_sends_what_langchain_would_send(read: Any) -> None:
    (script,) = read(PROMPT).scripts
    assert prompt_of(script.text, a="{Ada}", b="tea")[0] == PROMPT["template"].format(a="{Ada}", b="tea")  # type: ignore[attr-defined]
    (script,) = read(FEW_SHOT).scripts
    assert prompt_of(script.text, word="big")[0] == (
        "Antonyms.\n\nInput: happy\nOutput: sad\n\nInput: {tall}\nOutput: short\n\nInput: big\nOutput:"
    )


def test_langchain_styles_and_partial_variables(read: Any) -> None:
    document = {**PROMPT, "template": "{{ a.name }} {{ b['x'][0] }}", "template_format": "jinja2"}
    assert prompt_of(read(document).scripts[0].text, a={"name": "Ada"}, b={"x": ["y"]})[0] == "Ada y"
    document = {**PROMPT, "template": "{{a}} {{{b}}}", "template_format": "mustache", "partial_variables": {"a": "A"}}
    assert prompt_of(read(document).scripts[0].text, b="B")[0] == "A B"
    with pytest.raises(lwt.ImportFailed, match="the template has a block"):
        read({**PROMPT, "template": "{% if a %}x{% endif %}", "template_format": "jinja2"})
    with pytest.raises(lwt.ImportFailed, match="an expression, a section or a filter"):
        read({**PROMPT, "template": "{a:>10}"})


def test_langchain_chats(read: Any) -> None:
    messages = [
        lc("SystemMessagePromptTemplate", prompt=lc("PromptTemplate", template="Answer in {lang}.")),
        lc("HumanMessagePromptTemplate", prompt=lc("PromptTemplate", template="{q}")),
        lc("MessagesPlaceholder", variable_name="history"),
    ]
    found = read(lc("ChatPromptTemplate", messages=messages, input_variables=["q", "lang"]))
    assert found.left_out == ("messages[2]: it is neither a system, a human nor an AI message with a text",)
    prompt, options = prompt_of(found.scripts[0].text, q="Why?", lang="French")
    assert (prompt, options["system"]) == ("Why?", "Answer in French.")
    found = read(
        {
            "_type": "chat",
            "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, ["human", "{c}"]],
        }
    )
    assert prompt_of(found.scripts[0].text, c="C")[0] == "Human: a\nAI: b\nHuman: C"
    assert found.hints


def test_langchain_parts_without_equivalent_are_listed(read: Any) -> None:
    found = read({**PROMPT, "output_parser": {"_type": "regex"}, "metadata": {"x": 1}})
    assert found.left_out == ("output_parser: it has no equivalent", "metadata: it has no equivalent")


CONFIG = {
    "description": "Greetings",
    "prompts": [
        "Greet {{name}} in {{ language }}.",
        {"raw": '[{"role": "system", "content": "Be {{name}}"}, {"role": "user", "content": "Hi"}]'},
    ],
    "providers": ["openai:gpt-5-mini"],
    "defaultTest": {"assert": [{"type": "not-contains", "value": "can't"}]},
    "tests": [
        {
            "description": "french", "vars": {"name": "Ada", "language": ["French", "Latin"]},
            "assert": [{"type": "icontains", "value": "bonjour {{name}}"}, {"type": "llm-rubric", "value": "polite"}],
        },
        {
            "vars": {"name": "Bob", "language": "English"}, "threshold": 0.5,
            "assert": [
                {"type": "equals", "value": "Hello Bob"}, {"type": "contains-any", "value": ["Hi", "Hello"]},
                {"type": "regex", "value": "(?=x)"},
                {"type": "is-json", "value": {"type": "object"}}, {"type": "word-count", "value": {"min": 1}},
                {"type": "contains", "value": "B", "weight": 2},
            ],
        },
    ],
}  # fmt: skip


def test_promptfoo_prompts_and_tests(read: Any, tmp_path: Path) -> None:
    found = read(CONFIG, "promptfooconfig.json")
    assert [each.name for each in found.scripts] == ["promptfooconfig-1", "promptfooconfig-2"]
    assert found.scripts[0].text.startswith("# Greetings\n(final)=LLM(")
    assert prompt_of(found.scripts[1].text, name="kind")[1]["system"] == "Be kind"
    assert found.scripts[0].cases == (
        {"name": "french", "input": {"name": "Ada", "language": "French"}, "checks": ["not-regex:can\\'t", "regex:(?i)bonjour Ada"]},
        {"name": "french (2)", "input": {"name": "Ada", "language": "Latin"}, "checks": ["not-regex:can\\'t", "regex:(?i)bonjour Ada"]},
        {
            "name": "test 2", "input": {"name": "Bob", "language": "English"}, "expect": {"final": "Hello Bob"},
            "checks": ["not-regex:can\\'t", "regex:Hi|Hello", 'schema:{"type": "object"}', "words:1..", "contains:B"],
        },
    )  # fmt: skip
    assert [each.partition(":")[0] for each in found.left_out] == [
        "tests[0].assert[2]", "tests[1].threshold", "tests[1].assert[3]", "tests[1].assert[6].weight",
    ]  # fmt: skip
    for path in found.write(tmp_path / "out"):
        if path.name.endswith(".cases.jsonl"):
            assert not check_cases(Source(path.read_text(), str(path))).failed
    with pytest.raises(FileExistsError):
        found.write(tmp_path / "out")


def test_promptfoo_in_yaml_and_with_files(read: Any, tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("Greet {{name}}!")
    text = "prompts: [file://p.txt, file://p.py, file://../x.txt]\nproviders: []\ntests: file://t.csv\n"
    found = read(text, "c.yaml")
    assert prompt_of(found.scripts[0].text, name="Ada")[0] == "Greet Ada!"
    assert [each.split(":")[0] for each in found.left_out] == ["tests", "prompts[1]", "prompts[2]"]


@pytest.mark.parametrize(
    ("text", "step", "options"),
    [
        ("question, context: list[str] -> answer: float", "answer", "type=float"), ("a -> b", "b", ""),
        ('"a -> b: bool"', "b", "type=bool"),
        ("text -> mood: Literal['glad', 'sad']", "mood", 'type="glad" | "sad"'), ("a -> b: list", "b", "type=list"),
        ("a -> b: list[int]", "b", 'schema={"type": "array", "items": {"type": "integer"}}'),
        ("text -> mood, topics: list[str]", "final", '"required": ["mood", "topics"]'),
    ],
)  # fmt: skip
def test_dspy_signatures(text: str, step: str, options: str, read: Any) -> None:
    (script,) = read(text, "s.txt").scripts
    assert script.text.startswith(f"({step})=LLM(")
    assert options in script.text
    assert not [each for each in lwt.check(script.text) if each.severity == "error"]


def test_dspy_classes_are_read_and_not_run(read: Any) -> None:
    code = '''
import dspy
raise SystemExit

class Emotion(dspy.Signature):
    """Classify the emotion."""
    sentence: str = dspy.InputField(desc="one sentence")
    sentiment: Literal["joy", "fear"] = dspy.OutputField(prefix="S:")

class Other(dspy.Signature):
    a: str = dspy.InputField()
    b: Image = dspy.OutputField()
'''
    found = read(code, "s.py")
    assert [each.name for each in found.scripts] == ["Emotion"]
    assert prompt_of(found.scripts[0].text, sentence="Hi")[0] == (
        "Classify the emotion.\nsentence: one sentence\n\nsentence: Hi\n\nsentiment:"
    )
    assert [each.partition(":")[0] for each in found.left_out] == [
        "Emotion.sentiment",
        "Other",
        "the other Python code",
    ]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{}", "no known format"), ("a.json", "{", "is not JSON"), ("a.yaml", "a: [", "is not YAML"),
        ("a.txt", "hello", "no known format"),
        ("a.txt", "a -> b c", "the fields can't be read"), ("a.json", '{"_type": "prompt"}', "has no template"),
        ("a.json", '{"prompts": ["{% x %}"], "tests": []}', "no prompt that can be imported"),
    ],
)  # fmt: skip
def test_refused(name: str, text: str, message: str, read: Any) -> None:
    with pytest.raises(lwt.ImportFailed, match=message):
        read(text, name)


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    file.write_text(json.dumps(PROMPT))
    result = call("import", file)
    assert (result.code, result.out.startswith("(final)=LLM(")) == (0, True)
    assert call("import", file, "-o", tmp_path / "out/mine.lwt").code == 0
    assert (tmp_path / "out/mine.lwt").is_file()
    assert call("import", file, "-o", tmp_path / "out/mine.lwt").code == 2
    assert call("import", file, "-o", tmp_path / "out/mine.lwt", "--force").code == 0
    file.write_text(json.dumps({**PROMPT, "output_parser": 1}))
    result = call("import", file)
    assert (result.code, "left out: output_parser" in result.err) == (4, True)
    assert call("import", tmp_path / "missing.json").code == 2
    file.write_text("{}")
    assert call("import", file).code == 2
