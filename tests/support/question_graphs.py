"""The three graphs of the thirty questions: a story, a hierarchy of words, and transfers. Each has nulls and odd values."""

from typing import Any

import networkx as nx

__all__ = ["story", "transfers", "words"]


def story() -> "nx.Graph[Any]":
    """An undirected graph of people, places and events, as nano-graphrag writes it: types, chunks and descriptions."""
    graph: nx.Graph[Any] = nx.Graph()
    for name, kind, chunks in (
        ("SCROOGE", "PERSON", ["c1", "c2", "c3", "c5"]),
        ("EBENEZER SCROOGE", "PERSON", ["c1", "c2"]),
        ("TINY TIM", "PERSON", ["c7", "c8", "c8"]),  # a chunk that is named twice
        ("Tiny  Tim", "PERSON", ["c8"]),
        ("BOB CRATCHIT", "PERSON", ["c2", "c7", "c8"]),
        ("MRS CRATCHIT", "PERSON", ["c7", "c8"]),
        ("FRED", "PERSON", ["c1", "c3", None]),
        ("JACOB MARLEY", "PERSON", "c1"),  # a text instead of a list
        ("FEZZIWIG", "PERSON", []),
        ("LONDON", "GEO", ["c1", "c2", "c3"]),
        ("CAMDEN TOWN", "GEO", ["c7"]),
        ("CHRISTMAS EVE", "EVENT", ["c1", "c2"]),
        ("CHRISTMAS DINNER", "EVENT", ["c7", "c8", "c3"]),
        ("SCROOGE & MARLEY", "ORGANIZATION", ["c1"]),
        ("BELLE", "PERSON", None),
        ("NO\u00cbL", "EVENT", ["c9"]),
        ("Noel", None, ["c9"]),
    ):
        graph.add_node(name, entity_type=kind, source_id=chunks, description=f"{name} in the story")
    graph.add_node("HUMBUG", description=17)  # a node without a type and without chunks
    for source, target, weight in (
        ("SCROOGE", "SCROOGE & MARLEY", 9.0), ("JACOB MARLEY", "SCROOGE & MARLEY", 7.0), ("SCROOGE", "LONDON", 1.5),
        ("SCROOGE", "CHRISTMAS EVE", 2.0), ("SCROOGE", "JACOB MARLEY", 8.0), ("SCROOGE", "FRED", 4.0),
        ("FRED", "CHRISTMAS EVE", 6.5), ("FRED", "LONDON", None), ("SCROOGE", "EBENEZER SCROOGE", 5.0),
        ("EBENEZER SCROOGE", "BELLE", 3.0), ("BELLE", "FEZZIWIG", 7.5), ("LONDON", "CAMDEN TOWN", 1.0),
        ("BOB CRATCHIT", "CAMDEN TOWN", 6.0), ("MRS CRATCHIT", "CAMDEN TOWN", 5.5), ("BOB CRATCHIT", "MRS CRATCHIT", 9.5),
        ("BOB CRATCHIT", "CHRISTMAS DINNER", 4.0), ("MRS CRATCHIT", "CHRISTMAS DINNER", 8.5), ("TINY TIM", "CHRISTMAS DINNER", 3.5),
        ("TINY TIM", "BOB CRATCHIT", 7.0), ("TINY TIM", "MRS CRATCHIT", 6.5), ("Tiny  Tim", "MRS CRATCHIT", 1.0),
        ("SCROOGE", "SCROOGE", 1.0),  # a loop
    ):  # fmt: skip
        graph.add_edge(source, target, weight=weight, description=f"{source} and {target}", source_id=["c1"])
    return graph


def words() -> "nx.MultiDiGraph[Any]":
    """A directed multigraph of senses, as WordNet has it: hypernyms and other relations, a definition on most nodes."""
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph()
    for name, definition in (
        ("dog.n.01", "a member of the genus Canis"), ("cat.n.01", "feline mammal"), ("canine.n.02", "a fissiped mammal"),
        ("feline.n.01", "a lithe mammal"), ("carnivore.n.01", "a flesh-eating mammal"), ("pet.n.01", None),
        ("mammal.n.01", "a warm-blooded vertebrate"), ("animal.n.01", "a living organism"), ("organism.n.01", ""),
        ("wolf.n.01", "a wild canine"), ("puppy.n.01", 12), ("hotdog.n.01", ["sausage", "bun"]), ("whole.n.02", None),
        ("dogma.n.01", "a doctrine"), ("group.n.01", "any number of entities"),
    ):  # fmt: skip
        graph.add_node(name, **({} if name == "whole.n.02" else {"definition": definition}))
    for source, target in (
        ("dog.n.01", "canine.n.02"), ("dog.n.01", "pet.n.01"), ("wolf.n.01", "canine.n.02"), ("puppy.n.01", "dog.n.01"),
        ("cat.n.01", "feline.n.01"), ("cat.n.01", "pet.n.01"), ("canine.n.02", "carnivore.n.01"),
        ("feline.n.01", "carnivore.n.01"), ("carnivore.n.01", "mammal.n.01"), ("mammal.n.01", "animal.n.01"),
        ("pet.n.01", "animal.n.01"), ("animal.n.01", "organism.n.01"), ("organism.n.01", "whole.n.02"),
        ("whole.n.02", "group.n.01"), ("group.n.01", "organism.n.01"),  # a circle of three
        ("dogma.n.01", "dogma.n.01"),  # a circle of one
        ("hotdog.n.01", "dog.n.01"), ("dog.n.01", "hotdog.n.01"),  # a circle of two
    ):  # fmt: skip
        graph.add_edge(source, target, relation="_hypernym")
    for source, target, relation in (
        ("dog.n.01", "wolf.n.01", "_also_see"), ("dog.n.01", "puppy.n.01", "_hyponym"), ("cat.n.01", "dog.n.01", "_also_see"),
        ("cat.n.01", "dog.n.01", "_also_see"), ("mammal.n.01", "group.n.01", "_member_meronym"), ("pet.n.01", "dog.n.01", None),
    ):  # fmt: skip
        graph.add_edge(source, target, relation=relation)
    graph.add_edge("wolf.n.01", "dog.n.01")  # an edge without a relation
    return graph


def transfers() -> "nx.MultiDiGraph[Any]":
    """A directed multigraph of transfers between accounts: parallel edges, dates, fees and currencies."""
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph()
    for name, country, bank in (
        ("A1", "UK", "North"), ("A2", "UK", "South"), ("A3", "FR", "Ouest"), ("A4", "FR", None), ("A5", None, "North"),
        ("A6", 44, "South"), ("B1", "UK", "North"), ("B2", "DE", "S\u00fcd"), ("Z9", "DE", "S\u00fcd"), ("Z8", "UK", 7),
    ):  # fmt: skip
        graph.add_node(name, country=country, bank=bank)
    graph.add_node("A7", bank="North")  # an account without a country, and without transfers
    for source, target, amount, at, fee, currency in (
        ("A1", "A2", 12_000, "2024-03-01T09:00:00Z", 1.5, "GBP"),
        ("A1", "A2", 9_500, "2024-03-01T10:00:00Z", 2.5, "GBP"),
        ("A2", "A3", 11_500.5, "2024-03-02T23:30:00-02:00", 3.25, "EUR"),
        ("A3", "A1", 11_000, "2024-03-04", 0.5, "EUR"),
        ("A3", "Z9", 400, "2024-03-31", 4.0, None),
        ("A2", "Z9", 2_000, "2024-04-01T00:30:00+01:00", 9.0, "GBP"),  # in UTC it is still March
        ("A1", "A4", 9_100, "2024-05-05T08:00:00Z", 0.25, "GBP"),
        ("A1", "A4", 9_200, "2024-05-05T09:00:00Z", None, "GBP"),
        ("A1", "A5", 9_300, "2024-05-05T10:00:00Z", 0.75, "GBP"),
        ("A1", "A6", 9_400, "2024-05-05T11:00:00Z", 1.25, "GBP"),
        ("A1", "B1", 9_999, "2024-05-05T23:59:59Z", 2.0, "GBP"),
        ("A1", "B1", 9_900, "2024-05-06T00:00:00Z", 2.0, "GBP"),
        ("A4", "Z9", 8_800, "2024-05-06", 8.5, "EUR"),
        ("A5", "A6", 9_250.25, "2024-05-07", 1.0, "USD"),
        ("A6", "Z9", 9_240, None, 5.0, "USD"),
        ("B1", "B2", 10_000, "2024-06-01", 0.0, "EUR"),
        ("B2", "Z9", 9_990, "2024-06-02", 2.75, "EUR"),
        ("Z9", "A1", 50_000, "2024-06-03", 20.0, "EUR"),
        ("Z8", "A2", 700, "not a date", 1.0, "GBP"),
        ("Z8", "A3", None, "2024-02-29T12:00:00Z", 1.0, "EUR"),
        ("Z8", "B1", 5_000, "2023-12-31T23:59:59.5Z", 1.0, "eur"),
        ("B2", "B2", 1_000, "2024-06-05", 0.1, "EUR"),  # a transfer to itself
        ("A5", "A2", 15, "2024-W10-2", 0.3, "GBP"),
    ):
        graph.add_edge(
            source, target, relation="TRANSFER", amount=amount, at=at, date=at and at[:10], fee=fee, currency=currency
        )
    graph.add_edge(
        "A2", "A1", relation="REFUND", amount=10_900, at="2024-03-05", date="2024-03-05", fee=0.2, currency="GBP"
    )
    graph.add_edge(
        "B2", "A3", amount=1_500, at="2024-06-09", date=20240609, fee=0.9, currency="EUR"
    )  # without a relation
    return graph
