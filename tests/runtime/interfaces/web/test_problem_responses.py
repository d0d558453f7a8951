"""Errors as problem documents: what is wrong, where, what is allowed; and nothing of the server's insides."""

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest
from knotwork.runtime.interfaces.http.problems import MEDIA_TYPE, Problem, problem_response
from knotwork.runtime.interfaces.web import scripts
from support.web import application, settings_in


def ask(tmp_path: Path, method: str, path: str, **options: Any) -> Any:
    async def asking() -> Any:
        async with application(settings_in(tmp_path)) as client:
            return await client.request(method, path, **options)

    return asyncio.run(asking())


def errors_of(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 422
    assert answer.json()["type"] == "urn:knotwork:problem:invalid-request"
    return {error["pointer"]: error for error in answer.json()["errors"]}


def test_a_problem_document_has_the_members_of_rfc_9457() -> None:
    problem = Problem("odd", 418, "It is odd", "very", {"X": "y"}, run="r")
    response = problem_response(problem)
    assert response.media_type == MEDIA_TYPE == "application/problem+json"
    assert response.headers["x"] == "y"
    assert problem.as_json() == {
        "type": "urn:knotwork:problem:odd", "title": "It is odd", "status": 418, "detail": "very", "run": "r",
    }  # fmt: skip
    assert str(problem) == "very"


def test_each_fault_has_a_pointer_and_what_is_allowed(tmp_path: Path) -> None:
    asked = {"scrip": "x", "model": 3, "lenient": "yes", "a/b~c": 1}
    found = errors_of(ask(tmp_path, "POST", "/scripts/run", json=asked))
    assert found["/script"]["message"] == "it is missing"
    assert "string" in found["/model"]["message"]
    assert "boolean" in found["/lenient"]["message"]
    assert found["/scrip"]["hint"] == "did you mean 'script'?"
    assert found["/scrip"]["allowed"] == ["script", "input", "model", "lenient"]
    assert "/a~1b~0c" in found


def test_bounds_are_told_in_words(tmp_path: Path) -> None:
    asked = {"instruct": "x", "resp_format": "", "eval_crit": "y", "iter_max": 11, "score_threshold": 1.5, "judges": -1}
    found = errors_of(ask(tmp_path, "POST", "/lab/generate-answer", json=asked))
    assert found["/iter_max"]["message"] == "it must be at most 10"
    assert "at most 1" in found["/score_threshold"]["message"]
    assert found["/judges"]["message"] == "it must be at least 0"


def test_what_was_sent_is_not_sent_back(tmp_path: Path) -> None:
    secret = "a secret text " * 100
    answer = ask(tmp_path, "POST", "/scripts/run", json={"script": 7, "model": [secret], secret: 1})
    assert answer.status_code == 422
    assert answer.text.count("a secret text") <= 30  # the name of an unknown key, cut


@pytest.mark.parametrize("body", ["[]", "3", '"x"', "null"])
def test_a_body_is_an_object(tmp_path: Path, body: str) -> None:
    answer = ask(tmp_path, "POST", "/scripts/run", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert answer.json()["detail"] in ("the body: it must be an object", "the body: it is missing")


@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("mm", "did you mean 'm'?"), ("http://evil.example/v1#m", "the models are: m"), ("openai:gpt-4o", "the models are: m"),
        ("", "the models are: m"),
    ],
)  # fmt: skip
def test_a_model_is_one_that_the_server_offers(tmp_path: Path, asked: str, hint: str) -> None:
    answer = ask(tmp_path, "POST", "/scripts/run", json={"script": '(a)=CONST("x")', "model": asked})
    assert answer.status_code == 422
    told = answer.json()
    assert told["type"] == "urn:knotwork:problem:unknown-model"
    assert hint in told["detail"] or "did you mean" in told["detail"]
    assert told["models"] == ["m"]


@pytest.mark.parametrize("asked", [None, "gpt-4o", "m"])
def test_the_seeds_default_and_none_mean_the_servers_own_model(tmp_path: Path, asked: str | None) -> None:
    answer = ask(tmp_path, "POST", "/scripts/run", json={"script": '(a)=CONST("x")', "model": asked})
    assert answer.status_code == 200
    assert ("'m' answered" in " ".join(answer.json()["warnings"])) == (asked == "gpt-4o")


@pytest.mark.slow
def test_where_nothing_is_and_what_is_not_for_the_address(tmp_path: Path) -> None:
    nothing = ask(tmp_path, "GET", "/nothing/<script>")
    assert nothing.status_code == 404
    assert nothing.json() == {"type": "urn:knotwork:problem:not-found", "title": "Not found", "status": 404}
    for method in ("PUT", "PATCH", "DELETE", "GET", "OPTIONS"):
        answer = ask(tmp_path, method, "/scripts/run")
        assert answer.status_code == 405
        assert answer.headers["allow"] == "POST"
        assert answer.json()["type"] == "urn:knotwork:problem:method-not-allowed"
    several = ask(tmp_path, "OPTIONS", f"/lab/runs/{'0' * 32}")
    assert (several.status_code, several.headers["allow"]) == (405, "DELETE, GET, HEAD")


@pytest.mark.slow
def test_head_answers_as_get_without_a_body(tmp_path: Path) -> None:
    for path, status in (
        ("/healthz", 200),
        ("/lab/about", 200),
        ("/openapi.json", 200),
        ("/nothing", 404),
        ("/scripts/run", 405),
    ):
        answer = ask(tmp_path, "HEAD", path)
        assert answer.status_code == status
        assert answer.content == b""
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_what_nobody_foresaw_is_logged_under_an_id_and_told_to_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError("a secret text")

    monkeypatch.setattr(scripts, "check_client_script", broken)
    with caplog.at_level(logging.ERROR, "knotwork.server"):
        answer = ask(tmp_path, "POST", "/scripts/run", json={"script": "x"})
    assert answer.status_code == 500
    told = answer.json()
    assert set(told) == {"type", "title", "status", "detail", "error"}
    assert "secret" not in answer.text and "ZeroDivision" not in answer.text
    [line] = [record.getMessage() for record in caplog.records if record.name == "knotwork.server"]
    assert told["error"] in line and "ZeroDivisionError" in line and "test_problem_responses.py" in line
    assert "secret" not in line


@pytest.mark.slow
def test_the_openapi_document_tells_of_problems_and_the_key(tmp_path: Path) -> None:
    document = ask(tmp_path, "GET", "/openapi.json").json()
    assert document["info"]["title"] == "knotwork"
    schemas = document["components"]["schemas"]
    assert "HTTPValidationError" not in schemas
    assert schemas["Problem"]["required"] == ["type", "title", "status"]
    operation = document["paths"]["/scripts/run"]["post"]
    assert operation["security"] == [{"key": []}]
    for status in ("400", "401", "403", "408", "413", "415", "422", "429", "502", "503"):
        assert "application/problem+json" in operation["responses"][status]["content"], status
    assert document["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    assert "example" in str(schemas["RunScriptRequest"])
    assert not document["paths"]["/healthz"]["get"].get("security")
