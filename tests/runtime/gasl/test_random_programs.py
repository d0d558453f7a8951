"""Random programs of all commands, on all kinds of graph with nulls and mixed types, against plain Python."""

import json
import math
from collections import Counter
from random import Random
from typing import Any

import pytest
from knotwork.adapters.graph_networkx import find_plan, pattern_candidates
from support.examples import many
from support.executing import executor
from support.gasl_oracle import Mismatch
from support.program_texts import text_of
from support.random_programs import KINDS, Maker, random_graph

QUICK, MANY = 100, many(6_000)
COMMANDS = {
    "find", "patterns", "paths", "cycles", "walk", "connect", "subgraph", "measure",
    "select", "unnest", "count", "aggregate", "rank", "join", "union", "intersect", "except",
}  # fmt: skip
OPTIONS = (
    "where", "via", "order", "limit", "per", "fields", "distinct", "sample", "by", "outer", "name", "similar",
    "shortest", "cost", "direction", "trace", "on", "edges",
)  # fmt: skip


def same(found: Any, wanted: Any) -> bool:
    """Whether two values are equal: 1 is 1.0, but it is neither true nor "1"; floats may differ in their last digits."""
    if isinstance(found, bool) or isinstance(wanted, bool) or isinstance(found, str) or found is None:
        return type(found) is type(wanted) and bool(found == wanted)
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(same(found[name], wanted[name]) for name in found)
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    numbers = isinstance(found, int | float) and isinstance(wanted, int | float)
    return numbers and (found == wanted or math.isclose(found, wanted, rel_tol=1e-12, abs_tol=1e-12))


def code_of(record: Any) -> str:
    return ((record.error or {}).get("diagnostic") or {}).get("code", "")


REFUSED = ("GASL070", "GASL072", "GASL073", "GASL096", "GASL097")
"""Rules about fields and conditions that a program can't have."""
NEVER_TRUE = ("GASL072", "GASL096", "GASL097")
"""Rules about conditions that no item can satisfy."""
SORTING = {"rank", "join", "union", "intersect", "except"}
"""Commands that sort or join by values. A value that is the same or null for every item is refused, though a run would end."""


def program(seed: int) -> tuple[Any, list[tuple[Any, Any]]]:
    """Return a graph, and commands with their results."""
    random = Random(seed)
    graph = random_graph(random)
    return graph, Maker(random, graph).program(random.randint(2, 5))


def difference(seed: int) -> str:
    """Run the program of a seed; return the difference from the oracles, "" if there is none.

    Every second program is run as on a large graph: with columns, and with candidates that are tested late.
    """
    with pytest.MonkeyPatch.context() as patch:
        if seed % 2:
            patch.setattr(find_plan, "_SMALL", 1)
            patch.setattr(pattern_candidates, "_FEW", 0)
        return difference_of(seed, *program(seed))


def difference_of(seed: int, graph: Any, steps: list[tuple[Any, Any]]) -> str:
    done: list[str] = []
    with executor(graph=graph, raw=True) as at:
        for command, wanted in steps:
            done.append(text_of(command))
            record = at.execute_one(done[-1])
            if wanted is Mismatch:
                status, value = "schema_mismatch", None
            else:
                whole = isinstance(wanted, int) or (command["do"] == "aggregate" and not command.get("by"))
                full = wanted["nodes"] if isinstance(wanted, dict) else wanted
                status, value = "success" if full or whole else "empty", wanted
            if (wanted == [] and code_of(record) in NEVER_TRUE) or (wanted is Mismatch and code_of(record) in REFUSED):
                break  # the check knows before the run that no condition can be true, or that no item has the field
            if code_of(record) in ("GASL094", "GASL096") and (command["do"] in SORTING or command.get("order")):
                break
            if (
                code_of(record) == "GASL096"
                and isinstance(wanted, list)
                and all(None in row.values() for row in wanted)
            ):
                break  # no value of the field in the graph has the type, so the computed value is null in every row
            if record.status != status or (wanted is not Mismatch and not same(record.value, value)):
                kind = type(graph).__name__
                data = json.dumps({"nodes": list(graph.nodes(data=True)), "edges": list(graph.edges(data=True))})
                program = "\n".join(done)
                message = (record.error or {}).get("message")
                return (
                    f"seed {seed}, {kind}\n{program}\nfound {record.status}, {message}\n{record.value}\n"
                    f"wanted {status}\n{value}\n{data}"
                )
    return ""


@pytest.mark.slow
def test_random_programs_have_the_results_of_plain_python() -> None:
    assert [found for seed in range(QUICK) if (found := difference(seed))] == []


@pytest.mark.slow
def test_the_programs_have_all_commands_on_all_kinds_of_graph_and_most_find_something() -> None:
    kinds, commands, full = set(), Counter[str](), Counter[str]()
    for seed in range(4 * QUICK):
        graph, steps = program(seed)
        kinds.add(type(graph))
        for command, found in steps:
            names = {command["do"], *(option for option in OPTIONS if command.get(option) not in (None, False, []))}
            commands.update(names)
            full.update(names if found is not Mismatch and found else ())
    assert kinds == set(KINDS)
    assert commands.keys() == COMMANDS | set(OPTIONS)
    assert all(full[name] >= 3 for name in commands), full
    assert full.total() > 0.5 * commands.total()


@pytest.mark.slow
@pytest.mark.parametrize("start", range(QUICK, QUICK + MANY, 300))
def test_many_random_programs_have_the_results_of_plain_python(start: int) -> None:
    assert [found for seed in range(start, start + 300) if (found := difference(seed))] == []
