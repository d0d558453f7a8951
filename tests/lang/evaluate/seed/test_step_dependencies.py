"""The compute DAG as a drawing: the steps, what they take from, the outputs, and what no output needs."""

from knotwork.lang.dependencies import dot, mermaid
from knotwork.lang.evaluate.seed.step_dependencies import needed_steps, operations_of, step_graph
from support.computing import seed_file, seed_of

SEED = seed_of(
    {"name": "F", "op": "define_filter", "extraction": {"vegan": True}},
    {"name": "N", "op": "count", "where": {"$F": True}},
    {"name": "M", "op": "count"},
    {"name": "L", "op": "lookup", "source": "context.x", "table": {"a": 1}, "match": "exact"},
    {"name": "R", "op": "expr", "expr": "N + L"},
    output=["R"],
)

MERMAID = """\
flowchart TD
    s0["extractions · input"]
    s1["context · input"]
    s2["F · define_filter"]
    s3["N · count"]
    s4["M · count"]
    s5["L · lookup"]
    s6(["R · expr"])
    s0 --> s2
    s2 --> s3
    s0 --> s4
    s1 --> s5
    s3 --> s6
    s5 --> s6
    classDef unneeded stroke-dasharray: 4 4,opacity: 0.5
    class s4 unneeded"""

DOT = """\
digraph seed {
  rankdir=TB;
  node [shape=box, fontname="sans-serif"];
  "extractions" [label="extractions\\ninput"];
  "context" [label="context\\ninput"];
  "F" [label="F\\ndefine_filter"];
  "N" [label="N\\ncount"];
  "M" [label="M\\ncount", style=dashed];
  "L" [label="L\\nlookup"];
  "R" [label="R\\nexpr", peripheries=2];
  "extractions" -> "F";
  "F" -> "N";
  "extractions" -> "M";
  "context" -> "L";
  "N" -> "R";
  "L" -> "R";
}"""


def test_the_drawings() -> None:
    graph = step_graph(SEED)
    drawn = graph, operations_of(SEED, graph), SEED.outputs, needed_steps(graph, SEED.outputs)
    assert mermaid(*drawn) == MERMAID
    assert dot(*drawn, "seed") == DOT


def test_seed_000s_own_graph_is_drawn() -> None:
    graph = step_graph(seed_file("000/completed"))
    assert graph["n_mild"] == ("extractions",)
    assert graph["n_total"] == ("n_mild", "n_moderate", "n_severe")
    assert graph["final_risk_score"] == ("raw_risk",)
    assert "context" not in graph
    assert set(graph) - needed_steps(graph, ("verdict",)) == {"n_total_incidents", "n_reviews"}
