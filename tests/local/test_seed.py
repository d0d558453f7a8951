"""A seed on the real local model: the sentiment of short reviews, asked as a choice, is right; as JSON it is not to be had."""

import asyncio
import json

import pytest
from knotwork import seed
from knotwork.adapters.llm.local import LocalModel
from support.folders import EXAMPLES

pytestmark = pytest.mark.slow

REVIEWS = EXAMPLES / "reviews" / "reviews.json"
SENTIMENTS = [
    "positive",
    "negative",
    "positive",
    "negative",
    "positive",
    "negative",
    "positive",
    "positive",
    "negative",
    "positive",
]
SEED = {
    "task_name": "mood",
    "filter": {"keywords": []},
    "extract": {
        "fields": [
            {
                "name": "sentiment",
                "type": "enum",
                "values": {"positive": "The guest liked it", "negative": "The guest complained"},
            }
        ]
    },
    "compute": [
        {"name": "N_GLAD", "op": "count", "where": {"extraction.sentiment": "positive"}},
        {"name": "SHARE", "op": "expr", "expr": "N_GLAD / len(extractions)"},
    ],
    "output": ["N_GLAD", "SHARE"],
}


def test_every_sentiment_is_right() -> None:
    pytest.importorskip("xllamacpp")

    async def work() -> seed.SeedResult:
        model = LocalModel()
        try:
            context = {"name": "Cafés", "reviews": json.loads(REVIEWS.read_text(encoding="utf-8"))}
            return await seed.run(seed.load(SEED), context, llm=model, model="local", max_concurrency=1)
        finally:
            await model.aclose()

    result = asyncio.run(work())
    assert [found.extraction["sentiment"] for found in result.extractions] == SENTIMENTS
    assert result.outputs == {"N_GLAD": 6, "SHARE": 0.6}
    assert result.counts == seed.Counts(10, 10, 10)
