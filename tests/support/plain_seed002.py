"""Seed 002's complete example as a person would write it in Python: from the document, with ordinary generators."""

import random
from collections.abc import Mapping, Sequence
from math import log
from typing import Any

__all__ = ["CUISINES", "plain", "random_rows"]

CUISINES = {
    "Thai": 2.0, "Vietnamese": 1.8, "Chinese": 1.5, "Asian Fusion": 1.5, "Indian": 1.3, "Japanese": 1.2, "Korean": 1.2,
    "Mexican": 1.0, "Italian": 0.5, "American": 0.5, "Pizza": 0.5,
}  # fmt: skip
SEVERITIES = ("none", "mild", "moderate", "severe")
ACCOUNTS = ("none", "firsthand", "secondhand", "hypothetical")
INTERACTIONS = ("none", "positive", "negative", "betrayal")

Row = Mapping[str, Mapping[str, Any]]


def plain(rows: Sequence[Row], context: Mapping[str, Any]) -> dict[str, Any]:
    """Return all values of the example by name. Null stars or useful of an incident raise a ``TypeError``."""
    found = [(row["extraction"], row.get("meta", {})) for row in rows]

    def incident(e: Mapping[str, Any]) -> bool:
        return e.get("account_type") == "firsthand" and e.get("incident_severity") in ("mild", "moderate", "severe")

    def firsthand(severity: str) -> int:
        return sum(
            1 for e, _ in found if e.get("incident_severity") == severity and e.get("account_type") == "firsthand"
        )

    v: dict[str, Any] = {}
    v["N_MILD"], v["N_MODERATE"], v["N_SEVERE"] = firsthand("mild"), firsthand("moderate"), firsthand("severe")
    v["N_TOTAL_INCIDENTS"] = v["N_MILD"] + v["N_MODERATE"] + v["N_SEVERE"]
    v["N_POSITIVE"] = sum(1 for e, _ in found if e.get("safety_interaction") == "positive")
    v["N_NEGATIVE"] = sum(1 for e, _ in found if e.get("safety_interaction") == "negative")
    v["N_BETRAYAL"] = sum(1 for e, _ in found if e.get("safety_interaction") == "betrayal")
    v["N_ALLERGY_REVIEWS"] = len(found)
    v["TRUST_RAW"] = 1.0 + (v["N_POSITIVE"] * 0.1) - (v["N_NEGATIVE"] * 0.2) - (v["N_BETRAYAL"] * 0.5)
    v["TRUST_SCORE"] = max(0.1, min(1.0, v["TRUST_RAW"]))
    v["MILD_WEIGHT"] = 2 * (1.5 - v["TRUST_SCORE"])
    v["MODERATE_WEIGHT"] = 5 * (1.3 - 0.3 * v["TRUST_SCORE"])
    v["SEVERE_WEIGHT"] = 15
    v["ADJUSTED_INCIDENT_SCORE"] = (
        (v["N_MILD"] * v["MILD_WEIGHT"])
        + (v["N_MODERATE"] * v["MODERATE_WEIGHT"])
        + (v["N_SEVERE"] * v["SEVERE_WEIGHT"])
    )
    years = [m["year"] for e, m in found if incident(e) and m.get("year") is not None]
    v["N_RECENT"] = sum(1 for year in years if year >= 2023)
    v["N_OLD"] = sum(1 for year in years if year < 2023)
    v["RECENT_RATIO"] = v["N_RECENT"] / v["N_TOTAL_INCIDENTS"] if v["N_TOTAL_INCIDENTS"] > 0 else 0
    v["TRAJECTORY_MULTIPLIER"] = (
        1.3 if v["RECENT_RATIO"] > 0.7 else 0.7 if v["RECENT_RATIO"] < 0.3 and v["N_TOTAL_INCIDENTS"] > 0 else 1.0
    )
    categories = context["categories"]
    texts = [] if categories is None else [categories] if isinstance(categories, str) else categories
    matches = [value for key, value in CUISINES.items() if any(key.lower() in text.lower() for text in texts)]
    v["CUISINE_MODIFIER"] = max(matches) if matches else 1.0
    v["SILENCE_PENALTY"] = v["CUISINE_MODIFIER"] * 0.5 if v["N_ALLERGY_REVIEWS"] == 0 else 0
    v["CUISINE_IMPACT"] = (v["CUISINE_MODIFIER"] * 0.5) + v["SILENCE_PENALTY"]
    v["MOST_RECENT_YEAR"] = max(years, default=2020)
    v["INCIDENT_AGE"] = 2025 - v["MOST_RECENT_YEAR"]
    v["RECENCY_DECAY"] = max(0.3, 1.0 - (v["INCIDENT_AGE"] * 0.15))
    v["TOTAL_WEIGHT"] = sum((5 - m["stars"]) + log(m["useful"] + 1) for e, m in found if incident(e))
    v["CREDIBILITY_FACTOR"] = v["TOTAL_WEIGHT"] / v["N_TOTAL_INCIDENTS"] if v["N_TOTAL_INCIDENTS"] > 0 else 1.0
    v["INCIDENT_IMPACT"] = (
        v["ADJUSTED_INCIDENT_SCORE"] * v["TRAJECTORY_MULTIPLIER"] * v["RECENCY_DECAY"] * v["CREDIBILITY_FACTOR"]
    )
    v["TRUST_IMPACT"] = (1.0 - v["TRUST_SCORE"]) * 3.0
    v["POSITIVE_CREDIT"] = v["N_POSITIVE"] * v["TRUST_SCORE"] * 0.5
    v["BASE_RISK"] = 2.0
    v["RAW_RISK"] = (
        v["BASE_RISK"] + v["INCIDENT_IMPACT"] + v["TRUST_IMPACT"] + v["CUISINE_IMPACT"] - v["POSITIVE_CREDIT"]
    )
    v["FINAL_RISK_SCORE"] = max(0.0, min(20.0, v["RAW_RISK"]))
    score = v["FINAL_RISK_SCORE"]
    v["VERDICT"] = "Low Risk" if score < 4.0 else "High Risk" if score < 8.0 else "Critical Risk"
    return v


def random_rows(seed: int, count: int, *, nulls: float = 0.1) -> list[dict[str, dict[str, Any]]]:
    """Return ``count`` rows of the example; a share of ``nulls`` of the fields, and of the years, is null or missing."""
    chance = random.Random(seed)

    def row() -> dict[str, dict[str, Any]]:
        year = chance.randint(2015, 2025)
        extraction: dict[str, Any] = {
            "incident_severity": chance.choice(SEVERITIES),
            "account_type": chance.choice(ACCOUNTS[1:3]),
            "safety_interaction": chance.choice(INTERACTIONS),
        }
        for name in tuple(extraction):
            if chance.random() < nulls:
                extraction.pop(name) if chance.random() < 0.5 else extraction.update({name: None})
        meta: dict[str, Any] = {"stars": chance.randint(1, 5), "useful": chance.randint(0, 40), "year": year}
        if chance.random() < nulls:
            meta["year"] = None
        return {"extraction": extraction, "meta": meta}

    return [row() for _ in range(count)]
