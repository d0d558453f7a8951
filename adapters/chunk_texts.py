"""Reads the source texts (chunks) of a graph. Evidence quotes snippets of these texts.

The attribute ``source_id`` of a node or an edge contains the ids of its chunks.

The file is a JSON object, ``{id: text}`` or ``{id: {"content": text, ...}}``, as nano-graphrag and LightRAG write it
(``kv_store_text_chunks.json``).
"""

from collections.abc import Callable
from pathlib import Path

import orjson

from .graph import AdapterError

_MOST_BYTES = 1 << 30


def open_chunks(path: str | Path) -> Callable[[str], str | None]:
    """Return a function that maps a chunk's id to its text, or to None if the chunk is missing. Raises ``AdapterError``."""
    try:
        size = Path(path).stat().st_size
        if size > _MOST_BYTES:
            raise AdapterError(f"{path} exceeds the maximum of {_MOST_BYTES >> 30} GiB")
        found = orjson.loads(Path(path).read_bytes())
    except OSError as error:
        raise AdapterError(f"the chunks {path} can't be read: {error.strerror or error}") from None
    except orjson.JSONDecodeError as error:
        raise AdapterError(f"the chunks {path} are not JSON: {error}") from None
    if not isinstance(found, dict):
        raise AdapterError(
            f"the chunks {path} are not a JSON object", hint='write {"id": "text"} or {"id": {"content": "text"}}'
        )
    texts = {name: text for name, value in found.items() if (text := _content(value)) is not None}
    if found and not texts:
        raise AdapterError(
            f"no entry in {path} has a text", hint='an entry must be a string, or an object with "content"'
        )
    return texts.get


def _content(value: object) -> str | None:
    if isinstance(value, dict):
        value = value.get("content", value.get("text"))
    return value if isinstance(value, str) else None
