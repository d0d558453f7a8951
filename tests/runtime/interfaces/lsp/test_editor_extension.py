"""The VS Code extension and the snippets for other editors: what they name is there, and what is generated is current."""

import importlib.util
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import regex
from attrs import fields
from knotwork.runtime.interfaces.lsp.workspace import Settings, read_settings
from support.folders import DOCS

EDITORS = DOCS / "editors"
VSCODE = EDITORS / "vscode"
PACKAGE = json.loads((VSCODE / "package.json").read_text())


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", EDITORS / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_grammars_are_those_of_the_lark_files() -> None:
    for path, text in generator().files().items():
        assert path.read_text() == text, "python docs/editors/generate.py writes them anew"


@pytest.mark.slow
def test_a_terminal_that_nobody_gave_a_colour_stops_the_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    module = generator()
    text = module.grammar.inlined("lwt")
    monkeypatch.setattr(
        module.grammar, "inlined", lambda _: text.replace("| NUMBER ", "| NUMBER | ODD ") + '\nODD: "%%"\n'
    )
    with pytest.raises(SystemExit, match="ODD"):
        module.lwt()


def rules(grammar: Any) -> list[dict[str, Any]]:
    found = []
    stack = [grammar]
    while stack:
        current = stack.pop()
        if isinstance(current, dict):
            found.append(current)
            stack += current.values()
        elif isinstance(current, list):
            stack += current
    return [each for each in found if "match" in each or "begin" in each]


@pytest.mark.parametrize("entry", PACKAGE["contributes"]["grammars"], ids=lambda entry: entry["language"])
def test_every_rule_of_a_grammar_compiles_and_takes_something(entry: dict[str, str]) -> None:
    grammar = json.loads((VSCODE / entry["path"]).read_text())
    assert grammar["scopeName"] == entry["scopeName"]
    for rule in rules(grammar):
        for key in ("match", "begin", "end"):
            if key in rule:
                pattern = regex.compile(rule[key])
                assert not pattern.fullmatch(""), f"{rule[key]} takes nothing, and an editor would stand still"


@pytest.mark.parametrize(
    ("grammar", "line", "word", "scope"),
    [
        ("gasl", 'FIND nodes WHERE a = "b" AS c', "FIND", "keyword.control.gasl"),
        ("gasl", 'FIND nodes WHERE a = "b" AS c', '"b"', "string.quoted.gasl"),
        ("gasl", "AGGREGATE a BY b COMPUTE sum(c) AS d", "sum", "support.function.gasl"),
        ("gasl", "ASSERT LEN ${d} > -1", "${d}", "variable.other.gasl"),
        ("gasl", "UNNEST a BY b AS c", "UNNEST", "keyword.control.gasl"),
        ("gasl", "PARAM a INT = 3", "PARAM", "keyword.control.gasl"),
        ("gasl", "LEFT JOIN a WITH b ON c AS d", "LEFT", "keyword.control.gasl"),
        ("gasl", "SELECT a FIELDS date_trunc(b) AS c AS d", "date_trunc", "support.function.gasl"),
        ("gasl", "RANK a BY b LIMIT 3 PER c AS d", "PER", "keyword.other.gasl"),
        ("gasl", "FIND patterns (a:B|C)-[d]->(e) AS f", "patterns", "support.type.gasl"),
        ("gasl", "FIND patterns (a:B|C)-[d]->(e) AS f", ":B|C", "entity.name.type.gasl"),
        ("gasl", "FIND patterns (a:B|C)-[d]->(e) AS f", "->", "keyword.operator.gasl"),
        ("gasl", "FIND nodes WHERE a = b + c AS d", "+", "keyword.operator.gasl"),
        ("lwt", "(a.b-1)=LLM(", "(a.b-1)=", "entity.name.function.step.lwt"),
        ("lwt", "(a)=EACH({(b)}, ", "{(b)}", "variable.other.reference.lwt"),
        ("lwt", '(a)=LLM("x", type="y")', "type", "variable.parameter.lwt"),
    ],
)
def test_words_have_the_scope_that_themes_colour(grammar: str, line: str, word: str, scope: str) -> None:
    top = json.loads((VSCODE / "syntaxes" / f"{grammar}.tmLanguage.json").read_text())["patterns"]
    at = line.index(word)
    first = next(
        rule for rule in top
        if (found := regex.compile(rule.get("match", rule.get("begin"))).match(line, at)) and found.end() > at
    )  # fmt: skip
    assert first["name"] == scope


def test_all_that_the_package_names_is_there() -> None:
    contributes = PACKAGE["contributes"]
    named = [PACKAGE["main"], *(each["path"] for each in contributes["grammars"])]
    named += [each["configuration"] for each in contributes["languages"]]
    assert [path for path in named if not (VSCODE / path).is_file()] == []
    for path in (VSCODE / "languages").iterdir():
        told = json.loads(path.read_text())
        re.compile(told["wordPattern"])
        assert told["comments"]["lineComment"] == "#"
    assert "onLanguage:json" in PACKAGE["activationEvents"], "a seed by itself in a window starts the server too"
    assert (VSCODE / "LICENSE").is_file() and (VSCODE / "README.md").is_file()
    assert re.fullmatch(r"[a-z0-9-]+", PACKAGE["name"]) and re.fullmatch(r"\d+\.\d+\.\d+", PACKAGE["version"])
    code = (VSCODE / "extension.js").read_text()
    assert all(each["command"] in code for each in contributes["commands"])


def test_the_settings_of_the_extension_are_those_of_the_server(tmp_path: Path) -> None:
    properties = PACKAGE["contributes"]["configuration"]["properties"]
    names = {name.removeprefix("knotwork.") for name in properties}
    assert names == {each.name for each in fields(Settings)} | {"server"}
    defaults = {name.removeprefix("knotwork."): told["default"] for name, told in properties.items()}
    assert read_settings(defaults, tmp_path, Settings()) == (Settings(), ())
    code = (VSCODE / "extension.js").read_text()
    assert all(f'"{name}"' in code for name in names)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
def test_the_client_is_javascript() -> None:
    done = subprocess.run(["node", "--check", VSCODE / "extension.js"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_helix_is_told_of_all_languages() -> None:
    told = tomllib.loads((EDITORS / "helix.toml").read_text())
    server = told["language-server"]["knotwork"]
    assert [server["command"], *server["args"]] == ["knotwork", "lsp"]
    assert read_settings(server["config"], None, Settings())[1] == ()
    assert {each["name"] for each in told["language"]} == {"lwt", "gasl", "formula-seed"}


def test_neovim_is_told_of_all_languages() -> None:
    told = (EDITORS / "neovim.lua").read_text()
    assert 'cmd = { "knotwork", "lsp" }' in told
    for name in ("lwt", "gasl", "json.seed"):
        assert f'"{name}"' in told


def test_the_page_has_the_snippets_as_they_are() -> None:
    page = (EDITORS.parent / "reference" / "editors.md").read_text()
    for name, language in (("neovim.lua", "lua"), ("helix.toml", "toml")):
        assert f"<!-- {name} -->\n\n```{language}\n{(EDITORS / name).read_text()}```\n" in page
