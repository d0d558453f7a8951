"""What the tests of the language service know beside the texts: a small graph, keys, variables, an input."""

from knotwork.lang.catalogue.schema import Attribute, Schema
from knotwork.lang.service import Known, StateKey, Variable

__all__ = ["KNOWN", "SCHEMA"]


def _attribute(name, kind, *values):
    return Attribute(name, 90, {kind: 90}, values, len(values))


SCHEMA = Schema(
    False, False, 100, 200,
    {
        "entity_type": _attribute("entity_type", "text", ("PERSON", 50), ("ORGANIZATION", 40)),
        "year": _attribute("year", "integer", (2020, 20), (2021, 9)),
        "odd name": _attribute("odd name", "text", ('say "x"\\', 3), ("`*evil*`\n<b>", 1)),
    },
    {"weight": _attribute("weight", "float", (0.5, 3)), "type": _attribute("type", "text", ("KNOWS", 5))},
    "entity_type", {"PERSON": 50, "ORGANIZATION": 40}, "type", {"KNOWS": 5, "WORKS FOR": 2},
)  # fmt: skip

KNOWN = Known(
    schema=SCHEMA,
    state={"story": StateKey("DICT", "What we *know*."), "story.hubs": StateKey("LIST", "Hubs.")},
    variables={"given": Variable("12 rows", ("id", "score"))},
    models=("small", "big"),
    measures=("pagerank", "degree"),
    files=("inner.lwt", "mood.json", "prompts/mood.txt", "tone.md"),
    input={"reviews": ["a"], "a b": 1, "meta": {"stars": 3}},
)
