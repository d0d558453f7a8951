"""The graph of a script."""

import time
from itertools import pairwise

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from knotwork.lang.dependencies import (
    critical_path,
    cycles,
    final_step,
    layers,
    needed,
    step_dependencies,
)  # fmt: skip
from knotwork.lang.parse.lwt import parse_lwt
from knotwork.lang.trees.lwt import (  # fmt: skip
    Call,
    Choice,
    ListValue,
    ObjectValue,
    Option,
    Reference,
    Script,
    Step,
    Template,
    Text,
)
from support.cpu_time import pace


def script(**steps: str) -> Script:
    return parse_lwt("\n".join(f'({name})=LLM("{prompt}")' for name, prompt in steps.items()))


def test_dependencies_are_existing_steps_once_in_order():
    read = script(b="{(c)} {(a)} {(c)} {(input)} {(nowhere)} {(item)}", a="x", c="y")
    assert step_dependencies(read) == {"b": ("c", "a"), "a": (), "c": ()}


def test_references_are_found_wherever_they_stand():
    refer = {name: Template((Text("x"), Reference(name))) for name in "abcdef"}
    call = Call(
        "OP",
        (ListValue((refer["a"], Reference("b"))), ObjectValue(((refer["c"], refer["d"]),)), Call("IN", (refer["e"],))),
        (Option("type", Choice((refer["f"], refer["a"]))),),
    )
    steps = [Step(name, Call("CONST")) for name in "abcdef"]
    assert step_dependencies(Script((*steps, Step("z", call))))["z"] == tuple("abcdef")


def test_of_two_steps_with_one_id_the_last_counts():
    read = parse_lwt('(a)=LLM("{(b)}")\n(b)=LLM("x")\n(a)=LLM("y")')
    assert step_dependencies(read) == {"b": (), "a": ()}


def test_layers():
    graph = {"d": ("b", "c"), "a": (), "b": ("a",), "c": ("a",), "e": ()}
    assert layers(graph) == [("a", "e"), ("b", "c"), ("d",)]


def test_layers_leave_out_cycles_and_what_needs_them():
    assert layers({"a": ("b",), "b": ("a",), "c": ("b",), "d": ()}) == [("d",)]


def test_cycles_name_the_shortest_way_back():
    graph = {"a": ("b", "c"), "b": ("c",), "c": ("a",), "d": ("d",), "e": ("a",)}
    assert cycles(graph) == [("a", "c", "a"), ("d", "d")]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ({"final": "x", "z": "{(final)}"}, ("final", "final")),
        ({"a": "x", "b": "{(a)}"}, ("b", "only sink")),
        ({"b": "{(a)}", "a": "x"}, ("b", "only sink")),
        ({"a": "x", "b": "y"}, ("b", "last")),
        ({"a": "{(b)}", "b": "{(a)}"}, ("b", "last")),
    ],
)
def test_final_step(ids, expected):
    assert final_step(script(**ids)) == expected


def test_no_step_no_final_step():
    assert final_step(Script()) is None


def test_needed():
    graph = {"a": (), "b": ("a",), "c": ("c2",), "c2": (), "final": ("b", "nowhere")}
    assert needed(graph, "final") == {"final", "b", "a"}


def test_critical_path():
    graph = {"a": (), "b": (), "c": ("a", "b"), "d": ("c",)}
    assert critical_path(graph) == (["a", "c", "d"], 3.0)
    assert critical_path(graph, {"a": 1, "b": 5, "c": 1, "d": 1}.__getitem__) == (["b", "c", "d"], 7)
    assert critical_path({}) == ([], 0.0)


@st.composite
def graphs(draw):
    names = [f"s{number}" for number in range(draw(st.integers(0, 8)))]
    if not names:
        return {}
    return {name: tuple(dict.fromkeys(draw(st.lists(st.sampled_from(names), max_size=3)))) for name in names}


@pytest.mark.slow
@given(graphs())
def test_cycles_and_layers_agree_with_networkx(graph):
    other = networkx.DiGraph()
    other.add_nodes_from(graph)
    other.add_edges_from((a, b) for a, targets in graph.items() for b in targets)
    groups = [g for g in networkx.strongly_connected_components(other) if len(g) > 1 or other.has_edge(*list(g) * 2)]
    found = cycles(graph)
    assert len(found) == len(groups)
    for path in found:
        assert path[0] == path[-1]
        assert len(set(path)) == len(path) - 1
        assert all(b in graph[a] for a, b in pairwise(path))
        group = next(g for g in groups if path[0] in g)
        assert set(path) <= group
        assert path[0] == min(group)
    if not groups and graph:
        expected = [tuple(sorted(layer)) for layer in networkx.topological_generations(other.reverse())]
        assert layers(graph) == expected
        length = networkx.dag_longest_path_length(other) + 1
        assert critical_path(graph)[1] == length == len(critical_path(graph)[0])


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["chain", "cycle", "fan"])
def test_ten_thousand_steps(shape):
    count = 10_000
    names = [f"s{number}" for number in range(count)]
    refers = {
        "chain": lambda n: names[n - 1 : n] if n else [],
        "cycle": lambda n: [names[(n + 1) % count]],
        "fan": lambda n: names[:-1] if n == count - 1 else [],
    }[shape]
    steps = (
        Step(name, Call("LLM", (Template(tuple(Reference(other) for other in refers(number))),)))
        for number, name in enumerate(names)
    )
    read = Script(tuple(steps))
    started = time.process_time()
    graph = step_dependencies(read)
    final = final_step(read, graph)
    assert final is not None
    assert len(needed(graph, final[0])) == count
    assert len(layers(graph)) == {"chain": count, "cycle": 0, "fan": 2}[shape]
    assert [len(path) for path in cycles(graph)] == ([count + 1] if shape == "cycle" else [])
    critical_path(graph)
    assert time.process_time() - started < 10 * pace()  # against quadratic work
