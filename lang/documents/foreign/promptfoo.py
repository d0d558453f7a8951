"""promptfoo configurations: each prompt becomes a script, and the tests become its test cases."""

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from ...evaluate.text_checks import CheckError, read_check
from . import ImportedScript, Load, Notes, NotImportable, joined, llm_script, read_template

_USED = ("prompts", "tests", "providers", "targets", "description", "defaultTest", "$schema")
_TEST = ("description", "vars", "assert")
_VARIABLE = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_MOST_CASES = 1_000


def _escaped(text: Any) -> str:
    """Return a text as an RE2 pattern that matches it."""
    return re.sub(r"([^\w\s])", r"\\\1", str(text))


def _any(values: Any, flags: str = "") -> list[str]:
    return [f"regex:{flags}{'|'.join(map(_escaped, _listed(values)))}"]


def _listed(values: Any) -> list[Any]:
    if isinstance(values, str):
        return [part.strip() for part in values.split(",")]
    return values if isinstance(values, list) else [values]


_CHECKS: Mapping[str, Callable[[Any], list[str]]] = {
    "contains": lambda value: [f"contains:{value}"],
    "not-contains": lambda value: [f"not-regex:{_escaped(value)}"],
    "icontains": lambda value: [f"regex:(?i){_escaped(value)}"],
    "not-icontains": lambda value: [f"not-regex:(?i){_escaped(value)}"],
    "contains-all": lambda value: [f"contains:{each}" for each in _listed(value)],
    "icontains-all": lambda value: [f"regex:(?i){_escaped(each)}" for each in _listed(value)],
    "contains-any": _any,
    "icontains-any": lambda value: _any(value, "(?i)"),
    "starts-with": lambda value: [f"regex:^{_escaped(value)}"],
    "regex": lambda value: [f"regex:{value}"],
    "not-regex": lambda value: [f"not-regex:{value}"],
    "is-json": lambda value: [f"schema:{json.dumps(value)}" if isinstance(value, dict) else "json"],
    "word-count": lambda value: [
        f"words:{value.get('min', '')}..{value.get('max', '')}" if isinstance(value, dict) else f"words:{value}"
    ],
}
"""Maps the types of assertions to text checks."""


def is_promptfoo(document: Any) -> bool:
    """Return whether a document is a promptfoo configuration."""
    return (
        isinstance(document, dict)
        and "prompts" in document
        and not {"tests", "providers", "targets"}.isdisjoint(document)
    )


def read_promptfoo(document: Mapping[str, Any], name: str, notes: Notes, load: Load) -> tuple[ImportedScript, ...]:
    """Return a script with test cases for each prompt."""
    notes.unused("", document, _USED)
    for provider in _items(document.get("providers", document.get("targets"))):
        shown = provider if isinstance(provider, str) else provider.get("id") if isinstance(provider, dict) else None
        notes.hints.append(f"choose the model of the provider {shown} with --llm")
        if isinstance(provider, dict) and provider.get("config"):
            notes.drop(f"the config of the provider {shown}", "set options in the script, such as temperature=")
    about = str(document.get("description") or "")
    comment = "".join(f"# {line}\n" for line in about.splitlines())
    cases = list(_cases(document, notes, load))
    found = []
    prompts = _items(document.get("prompts"))
    for number, prompt in enumerate(prompts, 1):
        own = name if len(prompts) == 1 else f"{name}-{number}"
        try:
            found.append(ImportedScript(own, comment + _script(prompt, load), tuple(cases)))
        except (NotImportable, OSError, ValueError) as error:
            notes.drop(f"prompts[{number - 1}]", str(error))
    return tuple(found)


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _script(prompt: Any, load: Load) -> str:
    text = prompt.get("raw", prompt.get("id")) if isinstance(prompt, dict) else prompt
    if isinstance(text, str) and text.startswith("file://"):
        path = text.removeprefix("file://")
        if not path.endswith((".txt", ".md", ".json", ".j2")):
            raise NotImportable(f"{path} is a program, or a file of an unknown kind")
        text = load(path)
    if isinstance(text, str) and text.lstrip().startswith("["):
        with suppress(ValueError):  # else a prompt that begins with a bracket
            text = json.loads(text)
    if isinstance(text, list):
        turns = [(str(each.get("role")), str(each.get("content"))) for each in text if isinstance(each, dict)]
        if [role for role, _ in turns if role != "system"] != ["user"] or len(turns) != len(text):
            raise NotImportable("a chat must consist of one user message, with only system messages before it")
        templates = {role: read_template(content, "jinja2") for role, content in turns}
        system = [read_template(content, "jinja2") for role, content in turns if role == "system"]
        return llm_script(templates["user"], system=joined(system, "\n\n") if system else None)
    if not isinstance(text, str):
        raise NotImportable("the prompt is not a text")
    return llm_script(read_template(text, "jinja2"))


def _cases(document: Mapping[str, Any], notes: Notes, load: Load) -> Iterator[dict[str, Any]]:
    tests = document.get("tests")
    if isinstance(tests, str):
        path = tests.removeprefix("file://")
        tests = load(path) if path.endswith((".json", ".yaml", ".yml")) else None
        if tests is None:
            notes.drop("tests", f"{path} is not a JSON or YAML file; use knotwork run --each for a table")
    default = document.get("defaultTest")
    default = default if isinstance(default, dict) else {}
    notes.unused("defaultTest", default, _TEST)
    names: dict[str, int] = {}
    for number, test in enumerate(_items(tests)):
        place = f"tests[{number}]"
        if not isinstance(test, dict):
            notes.drop(place, "it is not an object")
            continue
        notes.unused(place, test, _TEST)
        given = {**(default.get("vars") or {}), **(test.get("vars") or {})}
        checks = [*_items(default.get("assert")), *_items(test.get("assert"))]
        for values in itertools.islice(_combinations(given, place, notes), _MOST_CASES):
            made = _case(checks, values, place, notes)
            if made:
                name = str(test.get("description") or f"test {number + 1}")
                names[name] = names.get(name, 0) + 1
                yield {"name": name if names[name] == 1 else f"{name} ({names[name]})", "input": values, **made}
            else:
                notes.drop(place, "none of its assertions can be imported, and a case must expect something")


def _combinations(given: Mapping[str, Any], place: str, notes: Notes) -> Iterator[dict[str, Any]]:
    """Yield the values of a test: as in promptfoo, a list stands for one test for each of its values."""
    plain = {}
    for name, value in given.items():
        if isinstance(value, str) and value.startswith("file://"):
            notes.drop(f"{place}.vars.{name}", "values in files are not read; put the text into the case")
            return
        plain[name] = value if isinstance(value, list) and value else [value]
    for values in itertools.product(*plain.values()):
        yield dict(zip(plain, values, strict=True))


def _case(asserts: list[Any], values: Mapping[str, Any], place: str, notes: Notes) -> dict[str, Any]:
    """Return what a case expects; {} if no assertion can be imported."""
    made: dict[str, Any] = {}
    checks: list[str] = []
    for number, each in enumerate(asserts):
        where = f"{place}.assert[{number}]"
        kind = each.get("type") if isinstance(each, dict) else None
        if kind not in ("equals", *_CHECKS):
            notes.drop(where, f"the assertion {kind} has no equivalent")
            continue
        notes.unused(
            where, each, ("type", "value", "metric"), "it has no equivalent; the rest of the assertion is imported"
        )
        value = _filled(each.get("value"), values)
        if kind == "equals" and "final" not in made.get("expect", {}):
            made["expect"] = {"final": value}
            continue
        texts = _CHECKS[kind](value) if kind in _CHECKS else [f"regex:^{_escaped(value)}$"]
        try:
            for text in texts:
                read_check(text)
        except CheckError as error:
            notes.drop(where, error.message)
            continue
        checks += texts
    return {**made, **({"checks": checks} if checks else {})}


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    if not isinstance(value, str):
        return value
    return _VARIABLE.sub(lambda found: str(values.get(found[1], found[0])), value)
