"""The report: whatever is in a state, one page that explains itself, shows it as text and asks nobody for anything."""

import time

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork import gasl
from knotwork.adapters.llm import BY_HAND, Completion
from knotwork.lang.diagnostic import printable
from knotwork.runtime.api.reports import render_state
from knotwork.runtime.report.drawings import place_labels
from support.executing import executor
from support.pages import Page

KNOWN = {
    "html", "head", "meta", "title", "style", "body", "header", "p", "h1", "h2", "h3", "ul", "li", "b", "span", "main",
    "section", "details", "summary", "dl", "dt", "dd", "blockquote", "footer", "figure", "svg", "line", "g", "circle", "text",
    "i", "figcaption", "ol", "div", "em", "code",
}  # fmt: skip


def shown(text: str) -> str:
    """Return a text as the page has it."""
    return "\n".join(map(printable, text.split("\n")))


def state(items=(), evidence=(), history=(), query="Who?", **more):
    """Return a state's object with one list of findings."""
    return {
        "version": "1", "created_at": "2026-01-01T10:00:00Z", "updated_at": "2026-01-01T10:00:01Z", "query": query,
        "config": {"adapter": {"path": "g.graphml"}, "llm": {"model": "local"}},
        "variables": {"found": {"_meta": {"type": "LIST", "description": "what was found"}, "items": list(items)}},
        "provenance": {"found": list(evidence)}, "history": list(history), **more,
    }  # fmt: skip


def step(number, command, **more):
    return {"step": number, "command": command, "status": "success", "summary": {"count": 1}, **more}


def test_a_page_has_the_question_the_findings_with_evidence_and_the_steps_with_reasons() -> None:
    with executor(
        chunks={"chunk-a": "Ada wrote the first program.", "chunk-b": "Ben draws trees."}, query="Who wrote?"
    ) as run:
        run.run_plan({
            "plan_id": "p", "why": "look for writers", "commands": [
                'DECLARE writers AS LIST WITH_DESCRIPTION "Who wrote something."',
                {"command": 'FIND nodes WHERE entity_type = "PERSON" AND age < 52 AS people', "why": "the old are known"},
                "UPDATE writers WITH people",
            ],
        })  # fmt: skip
        page = Page(render_state(run.state.as_json(), run.adapter))
    for told in (
        "Who wrote?", "Who wrote something.", "Ada wrote the first program.", "chunk-a", "Why: look for writers",
        "Why: the old are known", "Set up “writers”, a list, to be filled.",
        "Looked in the graph for things whose entity_type is “PERSON” and age is below 52.",
        "Added “people” to “writers”.", "4 in all", "In the graph: Cyd",
    ):  # fmt: skip
        assert told in page.text, told
    assert page.text.count("Why: look for writers") == 2, "a reason is told again only after another one"


def test_a_step_stands_before_what_it_ran_and_what_was_taken_back_is_marked() -> None:
    with executor() as run:
        run.run_plan(
            "DECLARE keep AS LIST\nFIND nodes AS all\nTRY\nUPDATE keep WITH all\nASSERT LEN ${all} > 99\nCATCH ANY\nCOUNT all AS n\nEND"
        )
        page = Page(render_state(run.state.as_json(), run.adapter))
    assert page.text.index("Tried 2 steps together") < page.text.index("3.1") < page.text.index("3.2")
    assert "This step was rolled back." in page.text


def test_a_rollback_is_told_in_words() -> None:
    entry = {"step": 1, "part": "rollback", "command": "knotwork state rollback 4f2a91aa", "status": "success"}
    assert "Restored the state of 4f2a91aa." in Page(render_state(state(history=[entry]))).text


def test_what_models_made_says_so() -> None:
    proof = [[{"kind": "model", "model": "small", "cited": ["Ada", 7]}]]
    page = Page(render_state(state([{"id": "x", "topic": "engines"}], proof)))
    assert "Written by a model (small), which names as its grounds: Ada, 7." in page.text
    assert "engines" in page.text


def test_what_was_written_by_hand_in_a_models_place_is_no_finding() -> None:
    with executor(llm=ByHand()) as opened:
        opened.run_plan(
            'FIND nodes WHERE entity_type = "PERSON" AS people\n'
            'CLASSIFY people BY "Who?" INTO ("poet", "engineer") AS kinds\n'
            "DECLARE kinds AS LIST\nUPDATE kinds WITH kinds\nDECLARE people AS LIST\nUPDATE people WITH people"
        )
        state = opened.state.as_json()
        people = len(opened.state.get("people"))
    page = render_state(state)
    assert "poet" not in page.split("Steps")[0]
    assert f"{people} more rest on answers that were written by hand" in page
    assert f"<b>{people}</b><span>findings</span>" in page


class ByHand:
    async def generate(self, prompt: str, **options: object) -> Completion:
        return Completion("poet", model=BY_HAND)


def test_counters_and_named_values_are_findings() -> None:
    made = state() | {
        "variables": {
            "n": {"_meta": {"type": "COUNTER", "description": None}, "value": {"a": 2}},
            "d": {"_meta": {"type": "DICT", "description": None}, "x": [1, 2],
                  "inner": {"_meta": {"type": "LIST", "description": None}, "items": ["deep"]}},
        },
        "provenance": {"n": [{"kind": "graph", "nodes": ["A"]}, {"kind": "graph", "nodes": ["B"]}]},
    }  # fmt: skip
    page = Page(render_state(made))
    for told in ("a: 2", "In the graph: A, B", "x: [1, 2]", "d.inner", "deep"):
        assert told in page.text, told


def test_how_values_were_computed_is_evidence_and_titles_say_what_they_name() -> None:
    made = state(
        items=[
            {"payer": "Credo", "total": 5}, {"id": "A", "pagerank": 0.5}, {"a": {"id": "Ada"}, "r": {}},
            {"r": {"source": 1, "target": 2}},
        ],
        evidence=[
            [{"kind": "computed", "step": 2, "columns": {"total": "sum(amount)", "source.bank": "source.bank"}, "over": 1234}],
            [{"kind": "computed", "step": 3, "algorithm": "pagerank", "settings": {"damping": 0.85}, "weight": "amount", "on": "t"}],
        ],
    )  # fmt: skip
    page = Page(render_state(made))
    for told in (
        "Computed: total = sum(amount), source.bank, from 1,234 items (step 2).",
        "Computed: pagerank, damping = 0.85, weighted by amount, in the graph made of t (step 3).",
        "payer: Credo", "a: Ada", "r: 1 - 2",
    ):  # fmt: skip
        assert told in page.text, told


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("FIND paths FROM a TO b SHORTEST 3 BY fee AS x", "the 3 ways with the least sum of fee through the graph"),
        ("FIND paths FROM a TO b SHORTEST 2 DIRECTION both AS x",
         "the 2 shortest ways through the graph from “a” to “b”, in either direction"),
        ("FIND paths FROM a TO b SHORTEST AS x", "the shortest ways through the graph"),
        ("MEASURE graph ON e USING pagerank(damping = 0.9) BY fee AS x",
         "Measured pagerank of the graph made of “e”, with damping 0.9, weighted by fee"),
        ("MEASURE p ON e USING degree AS x", "Measured degree of “p” in the graph made of “e”"),
        ("MEASURE graph USING degree AS x", "Measured degree of the whole graph"),
        ("WALK a VIA fee > 3 DEPTH 2 DIRECTION in AS x",
         "within 2 connections, over connections whose fee is above 3, against the direction"),
        ("RANK a BY fee DESC LIMIT 3 PER bank AS x", "highest first, 3 at most for each bank"),
        ("LEFT JOIN a WITH b ON id AS x", "keeping all of “a”"),
    ],
)  # fmt: skip
def test_a_step_is_told_with_what_decides_its_result(command: str, told: str) -> None:
    assert told in Page(render_state(state(history=[step(1, command)]))).text


EVIL = [
    "<script>alert(1)</script>", "</title><script>x</script>", '" onmouseover="alert(1)', "' autofocus onfocus=x '", "]]>-->",
    "</svg><img src=x onerror=y>", "{{ 7 * 7 }}{% raw %}", "javascript:alert(1)", "\x1b]0;title\x07\x1b[31m", "\u202etxt.exe",
    "https://example.org/x.png", "&lt;b&gt;",
]  # fmt: skip


@pytest.mark.parametrize("evil", EVIL)
def test_nothing_that_a_state_says_becomes_a_part_of_the_page(evil: str) -> None:
    graph = nx.DiGraph()
    graph.add_node(evil, name=evil, entity_type=evil)
    graph.add_node("b")
    graph.add_edge(evil, "b", relation=evil, description=evil)
    proof = [[{"kind": "graph", "nodes": [evil, "b"], "edges": [[evil, "b"]], "source_id": evil, "snippet": evil},
              {"kind": "model", "model": evil, "cited": [evil]}]]  # fmt: skip
    entry = step(evil, evil, why=evil, status=evil, error={"message": evil}, hypothesis=evil, part=evil)
    made = state([{"name": evil, evil: evil}], proof, [entry], query=evil)
    made["variables"][evil] = {"_meta": {"type": "LIST", "description": evil}, "items": [evil]}
    made["config"] = {"adapter": {"path": evil}, "llm": {"model": evil}}
    made["created_at"] = evil
    with gasl.open(graph) as run:
        text = render_state(made, run.adapter)
    page = Page(text)
    assert page.tags <= KNOWN
    assert not [
        name for _, name, _ in page.attributes if name.startswith("on") or name in ("src", "href", "style", "action")
    ]
    assert shown(evil) in page.text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_the_page_asks_nobody_for_anything() -> None:
    page = Page(render_state(state(["x"])))
    policies = [value for tag, name, value in page.attributes if tag == "meta" and name == "content"]
    assert any(value.startswith("default-src 'none'") for value in policies)
    assert not {"script", "link", "img", "iframe", "object", "a", "form", "base"} & page.tags
    assert "url(" not in render_state(state(["x"]))
    assert "@import" not in render_state(state(["x"]))


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=40)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12,
)  # fmt: skip


@pytest.mark.slow
@given(values, values, values, texts)
@settings(max_examples=60, deadline=None)
def test_any_state_gives_a_page_that_is_whole(item: object, proof: object, entry: object, query: str) -> None:
    """Also a state that another program wrote, or that was changed by hand."""
    pieces = [[proof], {"nodes": proof, "edges": [proof], "snippet": proof}]
    page = Page(render_state(state([item, {"id": item, "x": item}], pieces, [entry, step(1, query, why=query)], query)))
    assert page.tags <= KNOWN
    if query:
        assert page.texts.count(shown(query)) >= 2, "in the title and as the heading"


@pytest.mark.slow
def test_a_huge_state_gives_a_small_page_soon() -> None:
    class History:
        """A million entries, made when they are asked for."""

        def __len__(self):
            return 1_000_000

        def __getitem__(self, which):
            if isinstance(which, slice):
                return [self[at] for at in range(*which.indices(len(self)))]
            return step(which + 1, f"FIND nodes WHERE x = {which} AS found")

    items = [{"id": f"n{i}", **{f"field {n}": "y" * 500 for n in range(3)}} for i in range(100_000)]
    items[0] = {"id": "wide", **{f"f{n}": "z" * 10_000 for n in range(1_000)}}
    proof = [
        [{"kind": "graph", "nodes": [f"n{i}"], "source_id": f"c{i % 50}", "snippet": "s" * 5_000}]
        for i in range(100_000)
    ]
    made = state(items, proof) | {"history": History()}
    made["variables"] |= {
        f"k{n}": {"_meta": {"type": "LIST", "description": None}, "items": ["v"] * 300} for n in range(500)
    }
    began = time.perf_counter()
    page = render_state(made)
    assert time.perf_counter() - began < 10
    assert len(page) < 6_000_000
    text = Page(page).text
    for told in ("250,000 findings", "100,000 with evidence", "50 sources named", "1,000,000 steps", "999,000 steps between",
                 "whose x is 999999", "and 99,800 more", "and 980 more fields", "and 301 more keys"):  # fmt: skip
        assert told in " ".join(text.split()), told


def test_names_in_the_drawing_do_not_cover_each_other_where_there_is_room() -> None:
    graph = nx.les_miserables_graph()
    with gasl.open(graph) as run:
        run.run_plan("DECLARE hubs AS LIST\nFIND nodes WHERE degree > 12 AS hubs\nUPDATE hubs WITH hubs")
        page = Page(render_state(run.state.as_json(), run.adapter))
    assert "Valjean" in page.text
    places = place_labels(
        [(10.0, 10.0, "one"), (30.0, 10.0, "two"), (930.0, 300.0, "at the edge")], width=960, height=600
    )
    assert places[0][2] != "start", "to the right stands the other node"
    assert places[2][2] != "start", "to the right is the edge"


@pytest.mark.slow
def test_the_same_state_gives_the_same_page() -> None:
    with executor() as run:
        run.run_plan("DECLARE a AS LIST\nFIND nodes AS x\nUPDATE a WITH x")
        made = run.state.as_json()
        assert render_state(made, run.adapter) == render_state(made, run.adapter)
