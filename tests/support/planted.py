"""Tasks with planted answers, made from a seed, and an oracle that writes the correct text for each.

Graph tasks are questions over small graphs of people, papers and places; the oracle writes a GASL plan as JSON. Ranking tasks are
item sets with one best item; the oracle writes an LWT script of expressions. Each answer is computed here, in plain Python, from
what was planted, and never from the text.
"""

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import networkx as nx
from attrs import frozen

__all__ = ["Task", "tasks"]

NAMES = (
    "Ada",
    "Boris",
    "Clara",
    "Dmitri",
    "Elena",
    "Farid",
    "Greta",
    "Hiroshi",
    "Ingrid",
    "Jorge",
    "Katrin",
    "Leandro",
)
FIELDS = ("biology", "geology", "optics", "poetry")
CITIES = ("Turin", "Basel", "Lisbon", "Krakow")


@frozen
class Task:
    """``data`` is a graph, or ``{"items": [...]}``; ``correct`` is the oracle's text, ``answer`` its result.

    ``fields`` are the fields of the items of an answer from a graph.
    """

    number: int
    kind: str
    question: str
    data: Any
    correct: str
    answer: Any
    fields: tuple[str, ...] = ("id",)

    @property
    def is_graph(self) -> bool:
        """Whether it is a plan over a graph; else a script over items."""
        return self.kind != "rank"


def tasks(count: int, seed: int = 0) -> Iterator[Task]:
    """Yield ``count`` tasks: two of three are questions to graphs."""
    for number in range(count):
        chance = Random(f"{seed} task {number}")
        if number % 3 == 2:
            yield _ranking(number, chance)
        else:
            yield _graph_task(number, number // 3 * 2 + number % 3, chance)


# Graphs


def _graph(chance: Random) -> nx.DiGraph:
    graph = nx.DiGraph()
    for name in NAMES:
        graph.add_node(name, entity_type="PERSON", age=chance.randint(24, 70), field=chance.choice(FIELDS))
    for name in CITIES:
        graph.add_node(name, entity_type="PLACE")
    for number in range(10):
        paper = f"Paper {number + 1}"
        graph.add_node(paper, entity_type="PAPER", year=chance.randint(1990, 2024), citations=chance.randint(0, 200))
        for author in chance.sample(NAMES, chance.randint(1, 3)):
            graph.add_edge(author, paper, relation="WROTE")
    for name in NAMES:
        graph.add_edge(name, chance.choice(CITIES), relation="LIVES_IN")
    return graph


def _graph_task(number: int, at: int, chance: Random) -> Task:
    """Return the task with this number; ``at`` counts the questions to graphs, whose kinds take turns."""
    graph = _graph(chance)
    question = (
        _older, _authors, _most_cited, _shared_place, _by_field, _readers,
        _coauthors, _mean_age, _oldest, _cited_by_age, _without_papers, _neighbours,
    )[at % 12]  # fmt: skip
    kind, text, commands, answer, *fields = question(graph, chance)
    plan = {"plan_id": f"plan-{number:03}", "why": text, "commands": commands}
    return Task(number, kind, text, graph, json.dumps(plan, indent=1), answer, tuple(fields) or ("id",))


def _of(graph: Any, kind: str) -> list[str]:
    return [node for node, data in graph.nodes.items() if data["entity_type"] == kind]


def _linked(graph: Any, node: str, relation: str, back: bool = False) -> list[str]:
    edges = graph.in_edges(node, data=True) if back else graph.out_edges(node, data=True)
    return [one if back else other for one, other, data in edges if data["relation"] == relation]


def _older(graph: Any, chance: Random) -> Any:
    field = graph.nodes[chance.choice(NAMES)]["field"]
    ages = [graph.nodes[each]["age"] for each in _of(graph, "PERSON") if graph.nodes[each]["field"] == field]
    least = min(ages) if len(ages) < 3 else sorted(ages)[1]
    commands = [
        "DECLARE answer AS LIST WITH_DESCRIPTION 'Who it is.'",
        f'FIND nodes WHERE entity_type = "PERSON" AND field = "{field}" AND age >= {least} AS people',
        "ASSERT LEN ${people} > 0",
        "UPDATE answer WITH people MERGE",
    ]
    chosen = [
        each
        for each in _of(graph, "PERSON")
        if graph.nodes[each]["field"] == field and graph.nodes[each]["age"] >= least
    ]
    return "filter", f"Who works in {field} and is {least} or older?", commands, sorted(chosen)


def _authors(graph: Any, chance: Random) -> Any:
    paper = chance.choice(_of(graph, "PAPER"))
    commands = [
        f'FIND nodes WHERE id = "{paper}" AS paper',
        'WALK paper VIA relation = "WROTE" DIRECTION in AS authors',
        "DECLARE answer AS LIST",
        "UPDATE answer WITH authors",
    ]
    return "walk", f"Who wrote {paper}?", commands, sorted(_linked(graph, paper, "WROTE", back=True))


def _most_cited(graph: Any, chance: Random) -> Any:
    for number, paper in enumerate(_of(graph, "PAPER")):  # no two of them alike
        graph.nodes[paper]["citations"] = graph.nodes[paper]["citations"] * 10 + number
    most = chance.randint(1, 3)
    commands = [
        'FIND nodes WHERE entity_type = "PAPER" AS papers',
        f"RANK papers BY citations DESC LIMIT {most} AS top",
        "DECLARE answer AS LIST",
        "UPDATE answer WITH top REPLACE",
    ]
    ordered = sorted(_of(graph, "PAPER"), key=lambda each: -graph.nodes[each]["citations"])
    return "rank-nodes", f"Which {most} papers are cited most?", commands, sorted(ordered[:most])


def _shared_place(graph: Any, chance: Random) -> Any:
    person = chance.choice(NAMES)
    city = _linked(graph, person, "LIVES_IN")[0]
    commands = [
        f'FIND nodes WHERE id = "{person}" AS person',
        'WALK person VIA relation = "LIVES_IN" DIRECTION out AS city',
        'WALK city VIA relation = "LIVES_IN" DIRECTION in AS people',
        "DECLARE answer AS LIST",
        "UPDATE answer WITH people",
    ]
    return "two-hops", f"Who lives where {person} lives?", commands, sorted(_linked(graph, city, "LIVES_IN", back=True))


def _by_field(graph: Any, chance: Random) -> Any:
    fields = {each: 0 for each in FIELDS}
    for each in _of(graph, "PERSON"):
        fields[graph.nodes[each]["field"]] += 1
    commands = [
        'FIND nodes WHERE entity_type = "PERSON" AS people',
        "COUNT people BY field AS counts",
        "DECLARE answer AS LIST",
        "UPDATE answer WITH counts",
    ]
    wanted = sorted([field, count] for field, count in fields.items() if count)
    return "count", "How many people work in each field?", commands, wanted, "field", "count"


def _readers(graph: Any, chance: Random) -> Any:
    year = sorted(graph.nodes[each]["year"] for each in _of(graph, "PAPER"))[chance.randint(2, 6)]
    commands = [
        f'FIND nodes WHERE entity_type = "PAPER" AND year > {year - 1} AS recent',
        'WALK recent VIA relation = "WROTE" DIRECTION in AS authors',
        "SELECT authors WHERE age < 60 AS young",
        "DECLARE answer AS LIST",
        "UPDATE answer WITH young",
    ]
    recent = [each for each in _of(graph, "PAPER") if graph.nodes[each]["year"] >= year]
    wrote = {author for paper in recent for author in _linked(graph, paper, "WROTE", back=True)}
    young = sorted(each for each in wrote if graph.nodes[each]["age"] < 60)
    if not young:
        first = min(wrote)
        graph.nodes[first]["age"] = 30
        young = [first]
    return "join", f"Which authors of papers from {year} on are under 60?", commands, young


def _coauthors(graph: Any, chance: Random) -> Any:
    paper = chance.choice([each for each in _of(graph, "PAPER") if graph.in_degree(each) > 1] or _of(graph, "PAPER"))
    person = chance.choice(_linked(graph, paper, "WROTE", back=True))
    commands = [
        f'FIND patterns (a:PERSON)-[:WROTE]->(p:PAPER)<-[:WROTE]-(b:PERSON) WHERE a.id = "{person}" AS pairs',
        "SELECT DISTINCT pairs FIELDS b.id AS id AS others",
        "DECLARE answer AS LIST",
        "UPDATE answer WITH others",
    ]
    papers = _linked(graph, person, "WROTE")
    others = {author for each in papers for author in _linked(graph, each, "WROTE", back=True)} - {person}
    return "pattern", f"Who wrote a paper together with {person}?", commands, sorted(others)


def _mean_age(graph: Any, chance: Random) -> Any:
    commands = [
        'FIND nodes WHERE entity_type = "PERSON" AS people',
        "AGGREGATE people BY field COMPUTE mean(age) AS average AS averages",
        "DECLARE answer AS LIST",
        "UPDATE answer WITH averages",
    ]
    ages: dict[str, list[int]] = {}
    for each in _of(graph, "PERSON"):
        ages.setdefault(graph.nodes[each]["field"], []).append(graph.nodes[each]["age"])
    wanted = sorted([field, sum(found) / len(found)] for field, found in ages.items())
    return "aggregate", "What is the mean age of the people in each field?", commands, wanted, "field", "average"


def _oldest(graph: Any, chance: Random) -> Any:
    for number, each in enumerate(NAMES):  # no two of one age
        graph.nodes[each]["age"] = graph.nodes[each]["age"] * 20 + number
    commands = [
        'FIND nodes WHERE entity_type = "PERSON" AS people',
        "RANK people BY age DESC LIMIT 1 PER field AS oldest",
        "DECLARE answer AS LIST",
        "UPDATE answer WITH oldest",
    ]
    best: dict[str, str] = {}
    for each in sorted(NAMES, key=lambda name: graph.nodes[name]["age"]):
        best[graph.nodes[each]["field"]] = each
    return "per", "Who is the oldest person in each field?", commands, sorted(best.values())


def _cited_by_age(graph: Any, chance: Random) -> Any:
    year = chance.choice([2025, 2030])
    least = chance.randint(1, 8)
    commands = [
        'FIND nodes WHERE entity_type = "PAPER" AS papers',
        f"SELECT papers FIELDS id, citations / ({year} - year) AS rate AS rated",
        f"SELECT rated WHERE rate >= {least} AS often",
        "DECLARE answer AS LIST",
        "UPDATE answer WITH often",
    ]
    first = _of(graph, "PAPER")[0]
    graph.nodes[first].update(year=2010, citations=200)
    found = [
        each
        for each in _of(graph, "PAPER")
        if graph.nodes[each]["citations"] / (year - graph.nodes[each]["year"]) >= least
    ]
    return (
        "computed",
        f"Which papers have at least {least} citations per year of their age in {year}?",
        commands,
        sorted(found),
    )


def _without_papers(graph: Any, chance: Random) -> Any:
    commands = [
        'FIND nodes WHERE entity_type = "PERSON" AS people',
        'FIND edges WHERE relation = "WROTE" AS wrote',
        "SELECT DISTINCT wrote FIELDS source AS id AS authors",
        "EXCEPT people WITH authors ON id AS others",
        "DECLARE answer AS LIST",
        "UPDATE answer WITH others",
    ]
    silent = chance.choice(NAMES)
    graph.remove_edges_from(
        [(one, two) for one, two, data in graph.out_edges(silent, data=True) if data["relation"] == "WROTE"]
    )
    return (
        "except",
        "Who wrote no paper?",
        commands,
        sorted(each for each in NAMES if not _linked(graph, each, "WROTE")),
    )


def _neighbours(graph: Any, chance: Random) -> Any:
    commands = [
        'FIND edges WHERE relation = "LIVES_IN" AS homes',
        "JOIN homes WITH homes ON target AS together",
        "SELECT together WHERE source < right.source AS pairs",
        "COUNT pairs BY target AS counts",
        "DECLARE answer AS LIST",
        "UPDATE answer WITH counts",
    ]
    lives = {city: len(_linked(graph, city, "LIVES_IN", back=True)) for city in CITIES}
    wanted = sorted([city, count * (count - 1) // 2] for city, count in lives.items() if count > 1)
    return "self-join", "How many pairs of people live in each city?", commands, wanted, "target", "count"


# Items


def _ranking(number: int, chance: Random) -> Task:
    tags = ["patio", "wifi", "dogs", "cake"]
    items = [
        {
            "index": at + 1,
            "name": f"Cafe {chance.choice(NAMES)} {at + 1}",
            "open": chance.random() < 0.7,
            "price": chance.randint(5, 40),
            "rating": chance.randint(10, 50) / 10,
            "tags": chance.sample(tags, 2),
        }
        for at in range(10)
    ]
    best, tag, most = chance.randrange(10), chance.choice(tags), chance.randint(15, 30)
    items[best] |= {"open": True, "price": most - 1, "rating": 5.0}
    items[best]["tags"] = [tag, "quiet"]
    for item in items:
        if item is not items[best]:
            item["rating"] = min(item["rating"], 4.9)
    fits = f"i['open'] and i['price'] < {most} and '{tag}' in i['tags']"
    script = f"""(fitting)=EXPR("[i for i in items if {fits}]", items={{(input)}}["items"])
(best)=EXPR("max([i['rating'] for i in fitting])", fitting={{(fitting)}})
(final)=EXPR("[i['index'] for i in fitting if i['rating'] == best][0]", fitting={{(fitting)}}, best={{(best)}})
"""
    return Task(number, "rank", f"The best open cafe with {tag} under {most}", {"items": items}, script, best + 1)
