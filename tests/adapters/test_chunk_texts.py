"""The texts that a graph was made from, for snippets of evidence."""

import json
from pathlib import Path
from typing import Any

import pytest
from knotwork.adapters.chunk_texts import open_chunks
from knotwork.adapters.graph import AdapterError


def opened(folder: Path, value: Any) -> Any:
    path = folder / "chunks.json"
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return open_chunks(path)


def test_texts_by_id_plain_and_as_the_tools_keep_them(tmp_path: Path) -> None:
    chunks = opened(
        tmp_path, {"a": "plain", "b": {"content": "nano-graphrag", "tokens": 3}, "c": {"text": "text"}, "d": 1}
    )
    assert [chunks(name) for name in "abcde"] == ["plain", "nano-graphrag", "text", None, None]


def test_no_chunks_are_no_fault(tmp_path: Path) -> None:
    assert opened(tmp_path, {})("a") is None


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("", "are not JSON"),
        ("{", "are not JSON"),
        ([1], "are not a JSON object"),
        ({"a": 1}, "no entry in"),
        ("[" * 20_000, "are not JSON"),
        ('{"a": "\\ud800"}', "are not JSON"),
    ],
)
def test_what_is_not_chunks_is_refused(tmp_path: Path, value: Any, told: str) -> None:
    with pytest.raises(AdapterError, match=told):
        opened(tmp_path, value)


def test_a_file_that_can_not_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(AdapterError, match="can't be read"):
            open_chunks(path)
