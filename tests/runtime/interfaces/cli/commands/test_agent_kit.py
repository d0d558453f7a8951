"""``knotwork agent-kit``: what is in the folder is what the house itself has, and tools of others can read it."""

import json
import re
import shlex
from pathlib import Path

import jsonschema
import llguidance
import pytest
from knotwork.adapters.llm.strict_schema import restored
from knotwork.lang.constrain import LANGUAGES, constrain
from knotwork.lang.documents.plan import PLAN_SCHEMA
from knotwork.runtime.interfaces.cli.commands.agent_kit import COMMANDS, MORE
from knotwork.runtime.interfaces.mcp.resources import CARDS, card
from knotwork.runtime.interfaces.mcp.server import TOOLS
from support.cafe_seed import SEED
from support.command import call
from support.strict_rules import strict_faults


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kit") / "kit"
    done = call("agent-kit", "-o", folder)
    assert done.code == 0 and len(done.out.splitlines()) == len([p for p in folder.rglob("*") if p.is_file()])
    return folder


def test_every_link_of_llms_txt_leads_to_a_file_and_every_file_is_linked(kit: Path) -> None:
    text = (kit / "llms.txt").read_text()
    assert text.startswith("# knotwork\n\n> ")
    linked = set(re.findall(r"\]\(([^)]+)\)", text))
    assert linked | {"llms.txt"} == {str(path.relative_to(kit)) for path in kit.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_the_schemas_take_what_is_right_and_refuse_what_is_wrong(kit: Path) -> None:
    plan = json.loads((kit / "schemas/plan.schema.json").read_text())
    assert plan == PLAN_SCHEMA
    jsonschema.validate({"plan_id": "p", "why": "w", "commands": ["FIND nodes AS x"]}, plan)
    seed = json.loads((kit / "schemas/seed.schema.json").read_text())
    jsonschema.validate(SEED, seed)
    for wrong, schema in (({"commands": []}, plan), ({"compute": 3}, seed)):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)


def test_the_functions_are_those_of_the_server_in_openais_form(kit: Path) -> None:
    functions = json.loads((kit / "openai/functions.json").read_text())
    assert [each["name"] for each in functions] == list(COMMANDS) and set(COMMANDS) == set(TOOLS) - {"page", "session"}
    for each in functions:
        assert each["type"] == "function" and re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", each["name"]) and each["description"]
        jsonschema.Draft202012Validator.check_schema(each["parameters"])
        assert each["parameters"]["type"] == "object" and "session" not in each["parameters"]["properties"]


def test_the_custom_tools_have_the_grammars_in_openais_form(kit: Path) -> None:
    tools = json.loads((kit / "openai/custom-tools.json").read_text())
    assert [each["name"] for each in tools] == list(LANGUAGES)
    for each in tools:
        assert each["type"] == "custom" and each["format"]["type"] == "grammar" and each["format"]["syntax"] == "lark"
        assert json.loads(constrain(each["name"], "openai")) == each


@pytest.mark.parametrize("language", LANGUAGES)
def test_llguidance_takes_the_grammars(kit: Path, language: str) -> None:
    text = (kit / f"llguidance/{language}.lark").read_text()
    failed, said = llguidance.LLMatcher.validate_grammar_with_warnings(llguidance.LLMatcher.grammar_from_lark(text))
    assert not failed, said


def test_the_prompts_are_the_cards(kit: Path) -> None:
    assert {name: (kit / f"prompts/{name}.md").read_text() for name in CARDS} == {name: card(name) for name in CARDS}


@pytest.mark.slow
def test_the_command_lines_that_are_told_exist(kit: Path) -> None:
    for line in COMMANDS.values():
        words = [word for word in line.split()[1:] if re.fullmatch(r"[a-z-]+", word)]
        asked = [word for word in words[:2] if not word.startswith("-")]
        told = call(*asked, "--help")
        assert told.code == 0, line
        options = re.findall(r"--[a-z-]+", line)
        assert [option for option in options if option not in told.out] == [], line


def test_what_explains_knows_the_graph(kit: Path) -> None:
    line = COMMANDS["explain"]
    assert line in (kit / "llms.txt").read_text()
    words = shlex.split(line.replace("COMMAND", "FIND nodes WHERE degree > 20 AS hubs").replace("--state DIR ", ""))
    told = call(*(word.replace("GRAPH", "nx:les_miserables") for word in words[1:]))
    assert (told.json["how"], told.json["rows"]) == ("scan", 2)


def test_it_can_be_written_again_and_leaves_other_files_alone(kit: Path) -> None:
    (kit / "mine.txt").write_text("mine")
    (kit / "llms.txt").write_text("old")
    assert call("agent-kit", "-o", kit).code == 0
    assert (kit / "mine.txt").read_text() == "mine" and (kit / "llms.txt").read_text() != "old"
    (kit / "mine.txt").unlink()


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "kit").write_text("x")
    told = call("agent-kit", "-o", tmp_path / "kit")
    assert told.code == 2 and "is a file, not a directory" in told.err


@pytest.mark.parametrize("name", ["plan", "seed", "seed-000"])
def test_the_strict_forms_are_what_strict_mode_takes_and_lead_back(kit: Path, name: str) -> None:
    strict = json.loads((kit / f"openai/strict/{name}.schema.json").read_text())
    assert strict_faults(strict) == []
    if name == "plan":
        answer = {"plan_id": "p", "why": "w", "commands": ["FIND nodes AS x"], "config": None}
        jsonschema.validate(answer, strict)
        plain = json.loads(restored(json.dumps(answer), PLAN_SCHEMA))
        assert plain == {"plan_id": "p", "why": "w", "commands": ["FIND nodes AS x"]}
        assert json.loads(restored(answer, PLAN_SCHEMA)) == plain, "SDKs give what they have parsed"


def test_the_form_of_extractions_that_is_told_is_the_one_that_is_read(kit: Path, tmp_path: Path) -> None:
    said = next(said for said in MORE["seed_compute"] if "extraction" in said)
    form = json.loads(said[said.index("`") + 1 : said.rindex("`")].replace("{...}", "{}"))
    assert said in (kit / "llms.txt").read_text()
    form["context"] = {"kind": "bar"}
    form["extractions"][0]["extraction"] = {"level": "loud", "minutes": 3}
    (tmp_path / "task.seed.json").write_text(json.dumps(SEED))
    (tmp_path / "extractions.jsonl").write_text(json.dumps(form))
    files = tmp_path / "task.seed.json", tmp_path / "extractions.jsonl"
    assert json.loads(call("seed", "compute", *files, "--format", "jsonl").out)["outputs"]["VERDICT"] == "loud"
    assert call("seed", "explain", *files, "VERDICT", "--format", "json").code == 0
    assert call("seed", "sensitivity", *files, "--format", "json").code == 0


@pytest.mark.slow
def test_the_flags_that_are_told_exist() -> None:
    for name, lines in MORE.items():
        told = call(*COMMANDS[name].split()[1:2], "--help").out
        for said in lines:
            assert [option for option in re.findall(r"add `(--[a-z-]+)", said) if option not in told] == []


@pytest.mark.slow
def test_the_kit_is_whole_or_not_there(tmp_path: Path) -> None:
    assert "--output is empty" in call("agent-kit", "-o", "").err
    for name, there in (("llms.txt", "a folder"), ("schemas", "a file"), ("prompts/lwt.md", "a link")):
        folder = tmp_path / name.replace("/", "-")
        path = folder / name
        path.parent.mkdir(parents=True)
        victim = folder / "victim"
        if there == "a folder":
            path.mkdir()
        elif there == "a file":
            path.write_text("mine")
        else:
            victim.write_text("mine")
            path.symlink_to(victim)
        before = sorted(folder.rglob("*"))
        told = call("agent-kit", "-o", folder)
        assert told.code == 2 and str(path) in told.err and ".tmp" not in told.err
        assert sorted(folder.rglob("*")) == before, "nothing is written"
        assert not victim.exists() or victim.read_text() == "mine"


def test_the_kit_needs_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knotwork.runtime.interfaces.cli.commands.agent_kit.find_spec", lambda name: None)
    done = call("agent-kit", "-o", tmp_path / "kit")
    assert (done.code, done.out) == (2, "") and "pip install 'knotwork[mcp]'" in done.err
    assert not (tmp_path / "kit").exists()
