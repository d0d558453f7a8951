"""What the model server is asked, and the right answer to it."""

import hashlib
from dataclasses import dataclass
from typing import Any


def answer_to(prompt: str) -> str:
    """Return the one right answer to ``prompt``: it can't be taken for a part of itself, nor for another's."""
    return f"<{hashlib.sha256(prompt.encode()).hexdigest()[:24]}> é😀 end"


def example(schema: Any) -> Any:
    """Return a value that satisfies a simple JSON Schema."""
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            return {name: example(inner) for name, inner in schema.get("properties", {}).items()}
        case "array":
            return [example(schema.get("items", {}))]
        case "integer" | "number":
            return schema.get("minimum", 7)
        case "boolean":
            return True
        case "null":
            return None
    return "text"


@dataclass
class Request:
    """What came in."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        """The last message's text."""
        return str(self.body["messages"][-1]["content"])

    @property
    def schema(self) -> Any:
        """The JSON Schema asked for, None if none."""
        if (asked := self.body.get("response_format")) is not None:
            return asked["json_schema"]["schema"]
        return self.body.get("output_config", {}).get("format", {}).get("schema")
