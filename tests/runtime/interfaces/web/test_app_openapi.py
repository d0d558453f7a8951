"""The OpenAPI document: valid, with an example of everything, every problem that can come, and seed 004's names and bounds."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from knotwork.runtime.api.server_runs import Model
from knotwork.runtime.interfaces import http, web
from knotwork.runtime.interfaces.http import problems as kinds
from knotwork.runtime.interfaces.web.answer_responses import FAILURES
from knotwork.runtime.interfaces.web.app import create_app
from knotwork.runtime.interfaces.web.problem_responses import OF_HTTP
from knotwork.runtime.interfaces.web.web_models import ServerSettings
from support.folders import DOCS

JSON = "application/json"
PROBLEM = "application/problem+json"
STREAM = "text/event-stream"
OPEN = {"/healthz"}
"""What needs no key."""

SETTINGS = ServerSettings((Model("default", "local"),), Path("answers.sqlite"), Path("keys.json"))
DOCUMENT: dict[str, Any] = create_app(SETTINGS).openapi()
OPERATIONS = [
    pytest.param(path, operation, id=f"{method.upper()} {path}")
    for path, item in DOCUMENT["paths"].items()
    for method, operation in item.items()
]
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Say whether ``value`` is what ``schema``, a part of the document, allows."""
    whole = {**schema, "components": DOCUMENT["components"]}
    return Draft202012Validator(whole).is_valid(value)


def examples(schema: dict[str, Any], media: dict[str, Any]) -> list[Any]:
    """Return the examples of a request's or a response's content: its own, and those of its schema."""
    own = [media["example"]] if "example" in media else []
    named = [example["value"] for example in media.get("examples", {}).values()]
    seen = SCHEMAS[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    return own + named + seen.get("examples", [])


def contents(operation: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield status ("" for the request), media type and content."""
    for kind, media in operation.get("requestBody", {}).get("content", {}).items():
        yield "", kind, media
    for status, response in operation["responses"].items():
        for kind, media in response.get("content", {}).items():
            yield status, kind, media


@pytest.mark.slow
def test_it_is_a_valid_document() -> None:
    from schemathesis import openapi

    assert DOCUMENT["openapi"].startswith("3.1.")
    openapi.from_dict(DOCUMENT).validate()


def test_it_has_every_endpoint_and_no_page() -> None:
    assert {(method, path) for path, item in DOCUMENT["paths"].items() for method in item} == {
        ("post", "/lab/generate-answer"), ("post", "/lab/generate-answer/stream"), ("get", "/lab/runs"),
        ("get", "/lab/runs/{id}"), ("delete", "/lab/runs/{id}"), ("get", "/lab/runs/{id}/events"),
        ("post", "/lab/runs/{id}/cancel"), ("get", "/lab/about"), ("post", "/scripts/run"), ("post", "/scripts/run/stream"),
        ("get", "/healthz"), ("post", "/v1/evaluations"), ("post", "/v1/evaluations/stream"), ("get", "/v1/evaluations"),
        ("get", "/v1/evaluations/runs/{id}"), ("get", "/v1/evaluations/runs/{id}/report"), ("delete", "/v1/evaluations/runs/{id}"),
    }  # fmt: skip


@pytest.mark.parametrize(("path", "operation"), OPERATIONS)
def test_an_operation_says_what_it_is(path: str, operation: dict[str, Any]) -> None:
    assert operation["summary"] and not operation["summary"].endswith(".")
    assert operation["description"]
    assert operation["tags"]
    assert all(parameter.get("description") for parameter in operation.get("parameters", ()))


def test_operation_ids_differ() -> None:
    ids = [operation["operationId"] for _, operation in (parameter.values for parameter in OPERATIONS)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize(("path", "operation"), OPERATIONS)
def test_requests_and_answers_have_examples_that_fit(path: str, operation: dict[str, Any]) -> None:
    for status, kind, media in contents(operation):
        shown = examples(media.get("schema", {}), media)
        if kind != PROBLEM:
            assert shown, f"{status} {kind} has no example"
        for example in shown:
            assert fits(example, media.get("schema", {})), (status, kind, example)


@pytest.mark.parametrize("name", SCHEMAS)
def test_examples_of_objects_and_fields_fit(name: str) -> None:
    schema = SCHEMAS[name]
    for example in schema.get("examples", ()):
        assert fits(example, {"$ref": f"#/components/schemas/{name}"}), example
    for field, inner in schema.get("properties", {}).items():
        if "default" in inner:
            assert fits(inner["default"], inner), field
        for example in inner.get("examples", ()):
            assert fits(example, inner), (field, example)


@pytest.mark.parametrize(("path", "operation"), OPERATIONS)
def test_the_key_is_asked_for_and_the_problems_of_the_door_are_told(path: str, operation: dict[str, Any]) -> None:
    wanted = {"503"} if path in OPEN else {"401", "403", "429", "503"}
    if "requestBody" in operation:
        wanted |= {"400", "408", "413", "415", "422"}
    if "{" in path:
        wanted |= {"404", "422"}
    assert wanted <= set(operation["responses"])
    assert bool(operation.get("security")) == (path not in OPEN)
    for status, response in operation["responses"].items():
        assert response["description"]
        if status >= "400":
            assert set(response["content"]) == {PROBLEM}, status


TABLES = {"answer_responses.py": FAILURES, "problem_responses.py": OF_HTTP}
"""Where the name is looked up."""


def problems() -> Iterator[tuple[str, str, int, str]]:
    """Yield the place, name, status and title of each problem that the server's code raises."""
    for file in sorted(file for rooms in (http, web) for file in Path(rooms.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Problem":
                given = [argument.value for argument in node.args[:3] if isinstance(argument, ast.Constant)]
                if len(given) == 3:
                    yield f"{file.name}:{node.lineno}", *given
                elif isinstance(first := node.args[0], ast.Starred) and isinstance(first.value, ast.Name):
                    named = [getattr(kinds, first.value.id)] if first.value.id.isupper() else TABLES[file.name].values()
                    for kind in named:
                        yield f"{file.name}:{node.lineno}", *kind


def test_every_problem_that_the_code_knows_is_told_somewhere() -> None:
    told = {status for parameter in OPERATIONS for status in parameter.values[1]["responses"]}
    found = list(problems())
    assert len(found) > 10
    for place, name, status, _ in found:
        assert str(status) in told or status in (405, 500), f"{place}: {name}"


def test_a_problem_keeps_its_status_and_title_wherever_it_is_raised() -> None:
    kinds: dict[str, set[tuple[int, str]]] = {}
    for _, name, status, title in problems():
        kinds.setdefault(name, set()).add((status, title))
    assert {name: told for name, told in kinds.items() if len(told) > 1} == {}


def test_the_reference_lists_each_kind_of_problem_once() -> None:
    page = (DOCS / "reference/http.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z-]+)` \| (\d{3}) \| (.+) \|$", page.rpartition("## Problems")[2], re.M)
    assert sorted(listed) == sorted({(name, str(status), title) for _, name, status, title in problems()})
    assert [name for name, many in Counter(name for name, _, _ in listed).items() if many > 1] == []


@pytest.mark.slow
def test_runs_of_answers_and_of_requests_end_in_the_same_problems() -> None:
    where = {
        name: {place.partition(":")[0] for place, each, _, _ in problems() if each == name}
        for name in ("over-budget", "out-of-time")
    }
    assert where == {
        "over-budget": {"answer_responses.py", "scripts.py"}, "out-of-time": {"answer_responses.py", "request_runs.py"},
    }  # fmt: skip


def test_the_request_is_the_seeds() -> None:
    request = SCHEMAS["GenerateAnswerRequest"]
    assert request["required"] == ["instruct", "resp_format", "eval_crit"]
    assert request["additionalProperties"] is False
    fields = request["properties"]
    assert [fields[name]["type"] for name in request["required"]] == ["string"] * 3
    assert [fields[name]["description"] for name in request["required"]] == [
        "The question or instruction", "Desired response format", "Evaluation criteria",
    ]  # fmt: skip

    def bounds(name: str) -> tuple[Any, ...]:
        return tuple(fields[name].get(key) for key in ("type", "default", "minimum", "maximum"))

    assert bounds("iter_max") == ("integer", 3, 1, 10)
    assert bounds("score_threshold") == ("number", 0.8, 0.0, 1.0)
    assert fields["model"]["default"] == "gpt-4o"
    assert fits(None, fields["model"]) and fits("gpt-4o", fields["model"])


def test_what_is_asked_beyond_the_seed_is_optional_and_bounded() -> None:
    fields = SCHEMAS["GenerateAnswerRequest"]["properties"]

    def bounds(name: str) -> tuple[Any, ...]:
        return tuple(fields[name][key] for key in ("default", "minimum", "maximum"))

    assert bounds("attempts") == (1, 1, 8)
    assert bounds("judges") == (1, 0, 9)
    assert (fields["checks"]["default"], fields["template"]["default"]) == ([], "default")


def test_the_response_is_the_seeds() -> None:
    response, iteration, evaluation = (
        SCHEMAS[name] for name in ("GenerateAnswerResponse", "IterationData", "EvaluationResponse")
    )
    assert {"final_answer", "iterations", "success", "total_iterations", "final_score", "metadata"} <= set(
        response["properties"]
    )
    assert {"answer", "evaluation", "iteration_number"} <= set(iteration["properties"])
    assert {"score", "meets_criteria", "evaluation_reasoning", "improvement_suggestions"} <= set(
        evaluation["properties"]
    )
    score = evaluation["properties"]["score"]
    assert (score["minimum"], score["maximum"]) == (0.0, 1.0)


def test_requests_out_of_bounds_do_not_fit() -> None:
    schema = {"$ref": "#/components/schemas/GenerateAnswerRequest"}
    plain: dict[str, Any] = {"instruct": "a", "resp_format": "", "eval_crit": "b"}
    assert fits(plain, schema)
    for wrong in (
        {"iter_max": 0}, {"iter_max": 11}, {"iter_max": 1.5}, {"score_threshold": -0.1}, {"score_threshold": 1.1},
        {"score_threshold": "1"}, {"instruct": None}, {"instruct": ""}, {"judges": 10}, {"attempts": 0}, {"iter_mx": 3},
    ):  # fmt: skip
        assert not fits({**plain, **wrong}, schema), wrong
