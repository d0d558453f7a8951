"""The server against its own OpenAPI document: whatever fits it, and what does not, is answered as it says and never by a failure.

schemathesis makes the requests; they go over HTTP to ``knotwork serve`` in a process of its own, which asks the scripted model
server. A run may make twelve calls of the model, so that no request takes long, and runs end in all the ways that they can.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from support.served import served
from support.web import Address, served_app

schemathesis = pytest.importorskip("schemathesis")

CONFIG = {
    "checks": {
        # 502: the model has no answer; 503: too many runs. Both are in the document.
        "not_a_server_error": {"expected-statuses": ["2xx", "3xx", "4xx", 502, 503]},
        # What is well-formed may still make no sense: a blank instruction, a check that can't be read, a script with errors.
        "positive_data_acceptance": {"expected-statuses": ["2xx", 404, 422, 502, 503]},
        # 413: a text made longer than its limit may be longer than a body may be; it is refused before it is read.
        "negative_data_rejection": {
            "expected-statuses": [400, 401, 403, 404, 405, 406, 409, 413, 415, 422, 428, 429, "5xx"]
        },
    }
}
ASKED = {"instruct": "Say [[scores 0.5 0.9]] it", "resp_format": "short", "eval_crit": "is true"}
LIMITS = (
    "--max-calls",
    "12",
    "--time-limit",
    "5",
    "--no-cache",
    "--rate-per-key",
    "1000000/minute",
    "--max-runs-per-key",
    "64",
)


@pytest.fixture(
    scope="module",
    params=[pytest.param(False, id="without a key", marks=pytest.mark.slow), pytest.param(True, id="with a key")],
)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    folder = tmp_path_factory.mktemp("serve")
    with (
        served(folder, module="support.answer_server") as model,
        served_app(folder, *LIMITS, llm=model.spec, key=request.param) as address,
    ):
        yield address
        assert address.process.poll() is None
        assert not [line for line in address.said if "internal error" in line or "Traceback" in line], address.said


@pytest.fixture(scope="module")
def run(server: Address) -> str:
    """The id of a run that is over."""
    with server.client() as client:
        answered = client.post("/lab/generate-answer", json=ASKED)
    assert answered.status_code == 200, answered.text
    return str(answered.json()["metadata"]["run"])


def operations(server: Address) -> Sequence[Any]:
    config = schemathesis.Config.from_dict(CONFIG)
    document = httpx2.get(f"{server.url}/openapi.json", trust_env=False).json()
    if not server.key:  # where none is needed, one that is shown is not looked at
        for item in document["paths"].values():
            for operation in item.values():
                operation.pop("security", None)
    return [found.ok() for found in schemathesis.openapi.from_dict(document, config=config).get_all_operations()]


def ask(server: Address, case: Any) -> None:
    case.call_and_validate(base_url=server.url, headers=server.headers, timeout=20)


def ask_as_made(server: Address, case: Any) -> None:
    """Ask, without a key where it is a fault of the request that it shows none."""
    is_wrong = case.meta.generation.mode == schemathesis.GenerationMode.NEGATIVE
    shows_none = is_wrong and "Authorization" not in (case.headers or {})
    case.call_and_validate(base_url=server.url, headers={} if shows_none else server.headers, timeout=20)


def each(server: Address, run: str, examples: int, use: Callable[[Any], None]) -> int:
    """Have ``use`` called with so many generated requests of each operation, fitting and unfitting ones; return how many came."""
    made = 0
    for operation in operations(server):
        for mode in schemathesis.GenerationMode:
            for known in (None, {"id": run}) if "{id}" in operation.path else (None,):
                if known is not None and operation.method == "delete":
                    continue  # the others need it

                @seed(0)
                @settings(
                    max_examples=examples, deadline=None, database=None, phases=[Phase.generate],
                    suppress_health_check=list(HealthCheck),
                )  # fmt: skip
                @given(case=operation.as_strategy(generation_mode=mode, path_parameters=known))
                def generated(case: Any) -> None:
                    nonlocal made
                    made += 1
                    use(case)

                with suppress(Unsatisfiable):  # there is nothing to be wrong where nothing is asked for
                    generated()
    return made


@pytest.mark.slow
def test_a_few_requests_of_each_kind_are_answered_as_documented(server: Address, run: str) -> None:
    assert each(server, run, 1, lambda case: ask_as_made(server, case)) > 20


@pytest.mark.slow
def test_many_requests_of_each_kind_are_answered_as_documented(server: Address, run: str) -> None:
    assert each(server, run, 20, lambda case: ask_as_made(server, case)) > 200


@pytest.mark.slow
def test_the_borders_of_every_parameter_are_answered_as_documented(server: Address) -> None:
    asked = 0
    for operation in operations(server):
        schema = operation.schema
        cases = schema.iter_coverage_cases(
            operation,
            generation_modes=list(schemathesis.GenerationMode),
            generation_config=schema.config.generation_for(operation=operation),
        )
        for case in cases:
            ask(server, case)
            asked += 1
    assert asked > 100
