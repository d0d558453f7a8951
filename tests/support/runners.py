"""Runs one GASL command by its runner alone: no executor, no plan, no history."""

import asyncio
from collections.abc import Mapping
from typing import Any

import networkx as nx
from knotwork.adapters.graph_networkx import NetworkXAdapter
from knotwork.adapters.state import StateStore
from knotwork.adapters.state_json import open_store
from knotwork.lang.parse.gasl import parse_command
from knotwork.runtime.gasl.commands import RUNNERS
from knotwork.runtime.gasl.records import ContextStore, ExecutionResult, Session, Value


def papers() -> "nx.DiGraph[str]":
    """A small graph of people, papers and topics, as a GraphRAG tool would make it: sources, descriptions, chunks."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for name, year, source in (("Ada", 1815, "c1"), ("Grace", 1906, "c2"), ("Alan", 1912, "c2")):
        graph.add_node(name, entity_type="PERSON", born=year, source_id=source, description=f"{name} wrote papers.")
    for name, year in (("Engines", 1843), ("Compilers", 1952), ("Machines", 1936)):
        graph.add_node(name, entity_type="PAPER", year=year, source_id=["c1", "c3"], doc_id="d1")
    graph.add_node("Logic", entity_type="TOPIC", info={"field": "maths"})
    graph.add_edge("Ada", "Engines", relation="WROTE", weight=2, source_id="c1", file_path="a.txt")
    graph.add_edge("Grace", "Compilers", relation="WROTE", weight=3)
    graph.add_edge("Alan", "Machines", relation="WROTE", weight=1.5)
    graph.add_edge("Engines", "Logic", relation="ABOUT")
    graph.add_edge("Machines", "Logic", relation="ABOUT", weight=1)
    return graph


def session(
    graph: Any = None,
    *,
    llm: Any = None,
    state: StateStore | None = None,
    variables: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Session:
    """Return a session over ``papers()`` or another graph, with variables and a state in memory."""
    context = ContextStore()
    for name, value in (variables or {}).items():
        context.set(name, value)
    return Session(
        NetworkXAdapter(papers() if graph is None else graph), state or open_store(), llm, context=context, **settings
    )


def run(text: str, at: Session | None = None, /, **variables: Any) -> ExecutionResult:
    """Run one command; its value is bound to its variable, as the dispatcher would."""
    at = at if at is not None else session()
    for name, value in variables.items():
        at.context.set(name, value)
    return asyncio.run(arun(text, at))


async def arun(text: str, at: Session) -> ExecutionResult:
    """Run one command inside a loop that is there already."""
    program = parse_command(text)
    assert not program.diagnostics, program.diagnostics
    command = program.statements[0].command
    result = await RUNNERS[type(command)](command, at)
    into = getattr(command, "into", None)
    if into is not None and result.value is not None:
        at.context.set(into.text, result.value)
    return result


def plain(result: ExecutionResult) -> Any:
    """Return the plain value of a result."""
    assert isinstance(result.value, Value), (result.status, result.message)
    return result.value.value


def evidence(result: ExecutionResult) -> list[list[Mapping[str, Any]]]:
    """Return all evidence beside a result's items."""
    assert isinstance(result.value, Value)
    return [list(pieces) for pieces in result.value.evidence]
