"""What the model of a spec can be held to."""

from pathlib import Path

import pytest
from knotwork.adapters.llm.strict_schema import Means, means_of

SERVICE = Means(tools=True, grammar=True)
SMALL = Means(grammar=True, small=True)


@pytest.mark.parametrize(
    ("spec", "means"),
    [
        ("openai:gpt", SERVICE), ("https://host/v1#m", SERVICE), ("record:a.jsonl,openai:gpt", SERVICE), ("anthropic:c", Means(tools=True)),
        ("local", SMALL), (" local:a.gguf", Means(grammar=True, tokens=3_000)),
        ("record:a.jsonl,local", SMALL), ("replay:a.jsonl", Means()), ("", Means()),
        (None, Means()), (5, Means()),
    ],
)  # fmt: skip
def test_of_specs(spec: object, means: Means) -> None:
    assert means_of(spec) == means


def test_a_client_is_known_by_its_spec() -> None:
    class Client:
        spec: object = "local"

    assert means_of(Client()) == SMALL
    Client.spec = ["local"]
    assert means_of(Client()) == Means()


@pytest.mark.parametrize(
    ("head", "means"),
    [
        ('{"cassette": 1, "made_by": "knotwork", "model": "openai:m"}', SERVICE), ('{"cassette": 1, "model": "local"}', SMALL),
        ('{"cassette": 1, "made_by": "hand", "model": "written by hand"}', Means()), ('{"model": "replay:x.jsonl"}', Means()),
        ('{"model": 5}', Means()), ("[]", Means()), ("no", Means()), ("", Means()), ("[" * 3000, Means()), ("\xff", Means()),
    ],
)  # fmt: skip
def test_a_cassette_is_asked_as_its_model_was(tmp_path: Path, head: str, means: Means) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(f"{head}\n", encoding="latin-1")
    assert means_of(f"replay:{path}") == means
