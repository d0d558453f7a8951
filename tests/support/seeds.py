"""Formula Seeds for tests of running them, made by hand: no reading, no checking."""

from typing import Any

from knotwork.lang.trees.expr import Comparison, Field, Literal, Name
from knotwork.lang.trees.seed import Aggregate, Case, CaseRule, Extracted, FormulaSeed, Keep

__all__ = ["ACCOUNT", "COUNT", "PEOPLE", "SEED", "SEVERITY", "food_seed"]

SEVERITY = Extracted("severity", "enum", {"none": "No harm told", "mild": "A little", "severe": "A lot"})
ACCOUNT = Extracted("account", "enum", {"firsthand": "", "hearsay": ""})
PEOPLE = Extracted("people", "int", doc="How many came")


def _is(field: str, value: str) -> Comparison:
    return Comparison(Field("extraction", field), (("==", Literal(value)),))


COUNT = Aggregate("N", "count")
MILD = Aggregate("N_MILD", "count", where=(_is("severity", "mild"),))
VERDICT = Case("VERDICT", (CaseRule(Comparison(Name("N_MILD"), ((">", Literal(0)),)), "bad"),), otherwise="good")


def food_seed(**changes: Any) -> FormulaSeed:
    """Return a seed that keeps reviews with "food" and counts those of a mild harm."""
    given: dict[str, Any] = {
        "task_name": "food", "keep": Keep(("food",)), "fields": (SEVERITY, PEOPLE), "steps": (COUNT, MILD, VERDICT),
        "outputs": ("N", "N_MILD", "VERDICT"),
    }  # fmt: skip
    return FormulaSeed(**{**given, **changes})


SEED: dict[str, Any] = {
    "task_name": "food",
    "filter": {"keywords": ["food"]},
    "extract": {
        "fields": [
            {
                "name": "severity",
                "type": "enum",
                "values": {"none": "No harm told", "mild": "A little", "severe": "A lot"},
            },
            {"name": "people", "type": "int"},
        ]
    },
    "compute": [
        {"name": "N", "op": "count"},
        {"name": "N_MILD", "op": "count", "where": {"extraction.severity": "mild"}},
        {"name": "STARS", "op": "sum", "expr": "meta.stars", "where": {"extraction.severity": {"!=": "none"}}},
        {"name": "VERDICT", "op": "case", "rules": [{"when": "N_MILD > 1", "then": "bad"}, {"else": "good"}]},
    ],
    "output": ["N", "N_MILD", "STARS", "VERDICT"],
}
"""Nearly the same as it is written."""
