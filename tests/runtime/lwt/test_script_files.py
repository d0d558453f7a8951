"""Prompts, constants and schemas from files: they mean the same as in the script, and are checked with it before the first call."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork import lwt
from knotwork.lang.source import Source
from knotwork.lang.trees.lwt import Template, Text
from knotwork.runtime.api.checks import check_script
from knotwork.runtime.lwt.run_store import RunError
from knotwork.runtime.lwt.script_files import file_hashes, with_files
from knotwork.runtime.results import ScriptError

SCHEMA = {
    "type": "object",
    "properties": {"total": {"type": "number"}},
    "required": ["total"],
    "additionalProperties": False,
}


class Model:
    """Answers with JSON and keeps the prompts."""

    def __init__(self):
        self.prompts = []

    def __call__(self, prompt):
        self.prompts.append(prompt)
        return json.dumps({"total": len(prompt)})


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        return path

    return write


def checked(path: Path, **options):
    return check_script(Source(path.read_text(), str(path)), **options)


def messages(path: Path, **options):
    return [(each.code, each.message) for each in checked(path, **options).found if each.severity == "error"]


def test_a_prompt_a_constant_and_a_schema_from_files(write):
    write("prompts/ask.txt", '{(tone)} Is "this" C:\\temp\\new?\n{(input)}["text"] {{(no)} {(input)}["text"]\\[x]\n')
    write("tone.md", "Be brief.\r\n")
    write("order.schema.json", SCHEMA)
    path = write(
        "s.lwt",
        '(tone)=CONST(file="tone.md")\n(order)=LLM(file="prompts/ask.txt", schema_file="order.schema.json")\n'
        '(final)=EXPR("n + 1", n={(order)}["total"])',
    )
    model = Model()
    run = lwt.run_sync(lwt.load(path), input={"text": "Hi"}, llm=model)
    expected = 'Be brief. Is "this" C:\\temp\\new?\nHi {(no)} Hi[x]'
    assert model.prompts[0].startswith(expected)
    assert run.output == str(len(model.prompts[0]) + 1)
    assert lwt.dry_run(lwt.load(path), input={"text": "Hi"}).steps[1].calls[0].prompt == expected


def test_items_of_each_have_prompts_from_files(write):
    write("one.txt", "{(index)}: {(item)}")
    path = write("s.lwt", '(final)=EACH({(input)}, LLM(file="one.txt"))')
    model = Model()
    lwt.run_sync(lwt.load(path), input=["a", "b"], llm=model)
    assert sorted(model.prompts) == ["0: a", "1: b"]


def test_a_prompt_file_defines_the_order_of_the_steps(write):
    write("last.txt", "{(a)} and {(b)}")
    path = write("s.lwt", '(final)=LLM(file="last.txt")\n(a)=LLM("x")\n(b)=LLM("y")')
    assert checked(path).plan.graph["final"] == ("a", "b")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ('(a)=LLM(file="bad.txt")', [("LWT012", "bad.txt:2: unknown step (nope)")]),
        ('(a)=LLM(file="none.txt")', [("LWT049", "none.txt can't be read: No such file or directory")]),
        ('(a)=LLM(file="../x.txt")', [("LWT049", "../x.txt is not allowed")]),
        ('(a)=LLM(file="good.json")', [("LWT049", "good.json is not allowed")]),
        ('(a)=LLM("x", file="good.txt")', [("LWT021", "LLM takes file= or its prompt, but not both")]),
        ('(a)=CONST(1, file="good.json")', [("LWT021", "CONST takes file= or its value, but not both")]),
        ('(a)=CONST(file="broken.json")', [("LWT049", "broken.json: it ends too early (line 1, column 8)")]),
        ('(a)=LLM("x", schema_file="good.txt")', [("LWT049", "good.txt is not allowed")]),
        (
            '(a)=LLM("x", schema={"type": "object"}, schema_file="good.json")',
            [("LWT020", "LLM takes `schema` or `schema_file`, but not both")],
        ),
        ('(a)=LLM("x", type=int, schema_file="good.json")', [("LWT020", "`schema` needs `type=json`")]),
        ('(a)=LLM("x", schema_file="good.json")\n(b)=LLM("{(a)}["totl"]")', [("LWT033", 'the schema of (a) has no key "totl"')]),
        (
            '(a)=LLM("x", schema_file="odd.json")',
            [("LWT020", "odd.json: `schema` can't be used: the schema is not a valid JSON Schema: 'objct' is not valid under any "
              "of the given schemas")],
        ),
    ],
)  # fmt: skip
def test_faults_are_reported_before_the_run(write, script, expected):
    write("good.txt", "x")
    write("good.json", SCHEMA)
    write("bad.txt", "a\n{(nope)}")
    write("broken.json", '{"a": 1')
    write("odd.json", {"type": "objct"})
    path = write("s.lwt", script)
    assert messages(path) == expected
    found = next(each for each in checked(path).found if each.severity == "error")
    assert found.span.end <= len(script) and not found.edits
    model = Model()
    with pytest.raises(ScriptError):
        lwt.run_sync(lwt.load(path), llm=model)
    assert not model.prompts


def test_a_script_that_is_not_a_file_names_no_files(write):
    for script in ('(a)=LLM(file="x.txt")', '(a)=CONST(file="x.txt")', '(a)=LLM("x", schema_file="x.json")'):
        with pytest.raises(ScriptError, match="this run reads no files"):
            lwt.run_sync(script, llm=Model())
    path = write("s.lwt", '(a)=LLM(file="x.txt")')
    write("x.txt", "x")
    assert messages(path) == []
    assert messages(path, reads_files=False) == [("LWT049", "this run reads no files")]


def test_a_link_to_a_file_outside_the_folder_is_refused(write, tmp_path):
    (tmp_path / "inside").mkdir()
    write("secret.txt", "secret")
    (tmp_path / "inside" / "link.txt").symlink_to(tmp_path / "secret.txt")
    path = write("inside/s.lwt", '(a)=LLM(file="link.txt")')
    assert messages(path) == [("LWT049", "link.txt is not allowed")]


def test_a_changed_file_is_noticed_when_a_run_is_resumed(write, monkeypatch, tmp_path):
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    write("one.txt", "one")
    path = write("s.lwt", '(a)=LLM(file="one.txt")\n(final)=LLM("two {(a)}")')
    model = Model()
    run = lwt.run_sync(lwt.load(path), llm=model, record=True)
    assert file_hashes(lwt.load(path), tmp_path).keys() == {"one.txt"}
    lwt.resume_sync(run.run_id, llm=model)
    assert len(model.prompts) == 2  # both steps were reused
    write("one.txt", "another")
    with pytest.raises(RunError, match=r"the file one\.txt changed"):
        lwt.resume_sync(run.run_id, llm=model)
    lwt.resume_sync(run.run_id, llm=model, force=True)
    assert [prompt.split()[0] for prompt in model.prompts] == ["one", "two", "another", "two"]


def test_files_of_nested_scripts_are_hashed(write, tmp_path):
    write("parts/one.lwt", '(final)=LLM(file="ask.txt")')
    write("parts/ask.txt", "x")
    path = write("s.lwt", '(a)=EACH({(input)}, RUN(file="parts/one.lwt", input={(item)}))\n(final)=RUN(file="s.lwt")')
    found = file_hashes(lwt.load(path), tmp_path)
    assert found.keys() == {"parts/one.lwt", "parts/ask.txt", "s.lwt"}
    write("parts/ask.txt", "y")
    changed = file_hashes(lwt.load(path), tmp_path)
    assert [name for name in found if found[name] != changed[name]] == ["parts/ask.txt"]


def test_a_changed_file_is_noticed_when_a_run_over_rows_is_resumed(write, monkeypatch, tmp_path):
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "home"))
    write("one.txt", "one {(input)}")
    script = lwt.load(write("s.lwt", '(final)=LLM(file="one.txt")'))
    rows = [{"id": 1}, {"id": 2}]
    lwt.run_each_sync(script, rows, llm=Model(), record=True)
    (run,) = [path.name for path in (tmp_path / "home" / "runs").iterdir() if path.is_dir()]
    assert lwt.run_each_sync(script, rows, llm=Model(), resume=run).totals.calls == 0
    write("one.txt", "another {(input)}")
    with pytest.raises(RunError, match=r"the file one\.txt changed"):
        lwt.run_each_sync(script, rows, llm=Model(), resume=run)


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=80).filter(
        lambda text: "{" not in text
    )
)
def test_text_without_references_is_the_prompt_as_it_is(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("prompts")
    (folder / "p.txt").write_text(text, encoding="utf-8", newline="")
    script = with_files(lwt.parse('(a)=LLM(file="p.txt")'), folder).script
    expected = text.removesuffix("\n")
    assert script.steps[0].call.arguments == (Template((Text(expected),) if expected else ()),)


_scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5)
)
_json = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(_json)
def test_a_constant_from_a_json_file_is_its_value(tmp_path_factory, value):
    folder = tmp_path_factory.mktemp("constants")
    (folder / "c.json").write_text(json.dumps(value), encoding="utf-8")
    (folder / "s.lwt").write_text('(a)=CONST(file="c.json")')
    assert lwt.run_sync(lwt.load(folder / "s.lwt")).steps["a"].value == value
