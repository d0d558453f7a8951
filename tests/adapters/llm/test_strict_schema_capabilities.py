"""What the model of a spec can be held to."""

from pathlib import Path

import pytest
from knotwork.adapters.llm.strict_schema import ModelCapabilities, capabilities_of

SERVICE = ModelCapabilities(tools=True, grammar=True)
SMALL = ModelCapabilities(grammar=True, small=True, parameters=134_515_008)
TOOLS = ModelCapabilities(tools=True)
NONE = ModelCapabilities()


@pytest.mark.parametrize(
    ("spec", "means"),
    [
        ("openai:gpt", SERVICE), ("https://host/v1#m", SERVICE),
        ("record:a.jsonl,openai:gpt", SERVICE), ("anthropic:c", TOOLS),
        ("local", SMALL), (" local:a.gguf", ModelCapabilities(grammar=True, tokens=3_000)),
        ("record:a.jsonl,local", SMALL), ("replay:a.jsonl", NONE), ("", NONE),
        (None, NONE), (5, NONE),
    ],
)  # fmt: skip
def test_of_specs(spec: object, means: ModelCapabilities) -> None:
    assert capabilities_of(spec) == means


def test_a_client_is_known_by_its_spec() -> None:
    class Client:
        spec: object = "local"

    assert capabilities_of(Client()) == SMALL
    Client.spec = ["local"]
    assert capabilities_of(Client()) == NONE


@pytest.mark.parametrize(
    ("head", "means"),
    [
        ('{"cassette": 1, "made_by": "knotwork", "model": "openai:m"}', SERVICE), ('{"cassette": 1, "model": "local"}', SMALL),
        ('{"cassette": 1, "made_by": "hand", "model": "written by hand"}', NONE), ('{"model": "replay:x.jsonl"}', NONE),
        ('{"model": 5}', NONE), ("[]", NONE), ("no", NONE), ("", NONE), ("[" * 3000, NONE), ("\xff", NONE),
    ],
)  # fmt: skip
def test_a_cassette_is_asked_as_its_model_was(tmp_path: Path, head: str, means: ModelCapabilities) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(f"{head}\n", encoding="latin-1")
    assert capabilities_of(f"replay:{path}") == means
