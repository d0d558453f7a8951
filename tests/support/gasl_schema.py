"""The graph that examples of GASL are checked against: people and companies, in summary."""

from knotwork.lang.catalogue.schema import Attribute, Schema

__all__ = ["CEILING", "PEOPLE"]

PEOPLE = Schema(
    directed=True,
    multi=False,
    nodes=60,
    edges=90,
    node_attributes={
        "entity_type": Attribute("entity_type", 60, {"text": 60}, (("PERSON", 40), ("COMPANY", 20)), 2),
        "name": Attribute("name", 60, {"text": 60}, (("Ada", 2), ("Bo", 1)), 59),
        "age": Attribute("age", 40, {"integer": 40}, ((30, 3), (40, 2)), 31),
        "active": Attribute("active", 60, {"boolean": 60}, ((True, 40), (False, 20)), 2),
        "tags": Attribute("tags", 10, {"list": 10}),
        "address": Attribute("address", 10, {"object": 10}),
        "mixed": Attribute("mixed", 9, {"text": 4, "integer": 5}, (("a", 4), (1, 5)), 2),
        "attr.id": Attribute("attr.id", 3, {"text": 3}, (("x", 3),), 1),
    },
    edge_attributes={
        "relation": Attribute("relation", 90, {"text": 90}, (("KNOWS", 50), ("WORKS_FOR", 40)), 2),
        "weight": Attribute("weight", 90, {"float": 80, "integer": 10}, ((1.0, 50),), 33),
        "closed": Attribute("closed", 30, {"boolean": 30}, ((False, 20), (True, 10)), 2),
    },
    label_attribute="entity_type",
    labels={"PERSON": 40, "COMPANY": 20},
    relation_attribute="relation",
    relations={"KNOWS": 50, "WORKS_FOR": 40},
)
CEILING = {"max_path_length": 8, "max_results": 1000, "adapter.caps.max_paths": 100, "timeout_s": 60.5}
