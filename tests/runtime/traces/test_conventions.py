"""The names of the conventions, compared with the package of OpenTelemetry, and the model of a spec."""

import pytest
from knotwork.runtime.traces import conventions as names
from knotwork.runtime.traces.conventions import CalledModel, called_model
from opentelemetry.semconv import schemas
from opentelemetry.semconv._incubating.attributes import error_attributes, gen_ai_attributes, server_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics


def test_every_name_is_one_of_the_conventions_or_ours() -> None:
    known = {
        value
        for module in (gen_ai_attributes, error_attributes, server_attributes, gen_ai_metrics)
        for value in vars(module).values()
        if isinstance(value, str)
    }
    events = {names.EVALUATION_RESULT, names.INFERENCE_DETAILS}  # the package has no names of events
    told = {value for name, value in vars(names).items() if name.isupper() and isinstance(value, str) and "." in value}
    told -= {names.VERSION, names.SCHEMA_URL}
    assert {name for name in told if not name.startswith("knotwork.")} - events <= known


def test_the_version_is_one_that_the_package_knows() -> None:
    assert names.SCHEMA_URL.endswith(f"/{names.VERSION.rpartition('.')[0]}.0")
    assert names.SCHEMA_URL in {each.value for each in schemas.Schemas}


@pytest.mark.parametrize(
    ("spec", "model"),
    [
        ("openai:gpt-5-mini", CalledModel("openai", "gpt-5-mini")),
        ("anthropic:claude-x", CalledModel("anthropic", "claude-x")),
        ("https://api.mistral.ai/v1#small", CalledModel("mistral_ai", "small", address="api.mistral.ai")),
        ("https://x.openai.azure.com/v1#d", CalledModel("azure.ai.openai", "d", address="x.openai.azure.com")),
        ("http://localhost:8000/v1#m/n", CalledModel("openai", "m/n", address="localhost", port=8000)),
        ("http://[broken#m", CalledModel("openai", "m")),
        ("local", CalledModel("local", "local", is_remote=False)),
        ("local:/home/ann/weights.gguf", CalledModel("local", "weights.gguf", is_remote=False)),
        ("replay:/home/ann/tape.jsonl", CalledModel("replay", "tape.jsonl", is_remote=False)),
        ("record:/home/ann/tape.jsonl,openai:gpt-5", CalledModel("openai", "gpt-5")),
        ("", CalledModel("custom", "")),
    ],
)
def test_the_model_of_a_spec(spec: str, model: CalledModel) -> None:
    assert called_model(spec) == model
