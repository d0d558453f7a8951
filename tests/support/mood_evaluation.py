"""A small evaluation: a seed with one field, labelled reviews of which a simple model answers two of three right, and a script."""

import json
from typing import Any

SEED: dict[str, Any] = {
    "task_name": "rating", "filter": {"keywords": ["it"]},
    "extract": {"fields": [{"name": "mood", "type": "enum", "values": ["glad", "sad"]}]},
    "compute": [{"name": "N", "op": "count", "where": {"extraction.mood": "glad"}}], "output": ["N"],
}  # fmt: skip
CONTEXTS: list[dict[str, Any]] = [
    {"name": "cafe", "reviews": [{"text": "I love it"}, {"text": "it is bad"}]},
    {"name": "bar", "reviews": [{"text": "it is so so"}]},
]
GOLD: list[dict[str, Any]] = [
    {"context": "cafe", "review": 0, "mood": "glad"},
    {"context": "cafe", "review": 1, "mood": "sad"},
    {"context": "bar", "review": 0, "mood": "glad"},
]
SCRIPT = '(final)=LLM("Is this glad or sad? {(input)}", type="glad" | "sad")\n'


class MoodModel:
    """Answers "glad" if the prompt contains "love", else "sad"."""

    def __init__(self) -> None:
        self.calls = 0

    async def generate(self, prompt: str, **options: Any) -> str:
        """Return the answer as JSON if a schema is requested or the prompt names the field."""
        self.calls += 1
        mood = "glad" if "love" in prompt else "sad"
        return json.dumps({"mood": mood}) if "mood" in prompt else mood
