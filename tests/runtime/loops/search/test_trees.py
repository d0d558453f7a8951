"""The tree of a search: printed, saved, read again, drawn."""

import json

import pytest
from knotwork.runtime.loops.search import Action, ActionError, Tree, TreeBranch, TreeError, TreeNode, read_actions
from support.planted_search import METHODS, run, world


def small():
    """Return a tree of a few states, with a merged, a failed and an open branch."""

    def branch(status, child, *, outcome="success", message="", rationale="why"):
        return TreeBranch(("FIND nodes AS x",), 0.5, rationale, None, status, outcome, message, child, 1, 0.5, False)

    root = TreeNode(
        0, None, 0, "ab" * 32, {}, 0.0, 3, None,
        (branch("done", 1), branch("failed", None, outcome="error", message="no such\nthing"), branch("open", None)),
    )  # fmt: skip
    return Tree((root, TreeNode(1, 0, 1, "cd" * 32, {"hubs": 3}, None, 1, None, (branch("merged", 0),))), 1)


def test_the_text_has_a_line_a_branch():
    assert small().text().splitlines() == [
        "* [0] value 0.00, 3 visits, abababab",
        "*   0.50 why -> [1] value ?, 1 visits, cdcdcdcd (hubs 3)",
        "      0.50 why -> as [0]",
        "    0.50 why -> error: no such thing",
        "    0.50 why -> not tried",
    ]


@pytest.mark.slow
def test_what_is_saved_is_read_again_the_same():
    tree = run(world(2), METHODS["mcts"], 12).tree
    assert Tree.from_json(tree.dumps()) == tree
    assert Tree.from_json(json.loads(tree.dumps())).text() == tree.text()


def test_it_is_drawn_in_both_languages():
    drawn = small()
    assert drawn.mermaid().startswith("flowchart TD") and "s0 --> s1" in drawn.mermaid()
    assert drawn.dot().startswith("digraph search {") and "n0" in drawn.dot()


@pytest.mark.parametrize(
    "damage",
    [
        lambda saved: saved.pop("format"),
        lambda saved: saved.pop("nodes"),
        lambda saved: saved.update(best=7),
        lambda saved: saved.update(best=True),
        lambda saved: saved.update(nodes=[]),
        lambda saved: saved.update(nodes=3),
        lambda saved: saved["nodes"][1].update(parent=1),
        lambda saved: saved["nodes"][0]["branches"][0].update(child=9),
        lambda saved: saved["nodes"][0]["branches"][0].pop("visits"),
        lambda saved: saved["nodes"].reverse(),
        lambda saved: saved["nodes"][0].update(hash=5),
        lambda saved: saved["nodes"][0].update(keys=7),
        lambda saved: saved["nodes"][1].update(keys={"hubs": "x"}),
        lambda saved: saved["nodes"][0].update(value="x"),
        lambda saved: saved["nodes"][0].update(value=float("nan")),
        lambda saved: saved["nodes"][0].update(visits=True),
        lambda saved: saved["nodes"][0].update(answer=3),
        lambda saved: saved["nodes"][0].update(branches=None),
        lambda saved: saved["nodes"][0].update(branches=[5]),
        lambda saved: saved["nodes"].append(5),
        lambda saved: saved["nodes"][0]["branches"][0].update(commands="FIND nodes AS x"),
        lambda saved: saved["nodes"][0]["branches"][0].update(commands=[5]),
        lambda saved: saved["nodes"][0]["branches"][0].update(confidence=None),
        lambda saved: saved["nodes"][0]["branches"][0].update(rationale=["x"]),
        lambda saved: saved["nodes"][0]["branches"][0].update(message=None),
        lambda saved: saved["nodes"][0]["branches"][0].update(mean="x"),
        lambda saved: saved["nodes"][0]["branches"][0].update(more=1),
    ],
)
def test_a_damaged_one_is_refused(damage):
    saved = json.loads(small().dumps())
    damage(saved)
    with pytest.raises(TreeError):
        Tree.from_json(saved)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "3", '{"format": "knotwork-search-1"}', "[" * 9_000])
def test_other_texts_are_refused(text):
    with pytest.raises(TreeError):
        Tree.from_json(text)


def test_the_seeds_next_actions_are_read():
    seed = {
        "next_actions": [
            {"plan": ["FIND nodes AS x"], "confidence": 0.8, "rationale": "Most likely fix for empty result."},
            {"plan": {"plan_id": "p", "why": "w", "commands": ["FIND nodes AS x"]}, "confidence": 1},
        ]
    }
    first, second = read_actions(json.dumps(seed))
    assert first == Action(["FIND nodes AS x"], 0.8, "Most likely fix for empty result.")
    assert first.does == second.does  # ids and reasons don't tell plans apart
    assert first.as_json() == seed["next_actions"][0]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("[", "not JSON"),
        ({"actions": []}, r'expected \{"next_actions": \['),
        ([3], r"next_actions\[0\] is not an object"),
        ([{"plan": ["x"]}], "confidence"),
        ([{"plan": ["x"], "confidence": True}], "confidence"),
        ([{"plan": ["x"], "confidence": 1.5}], "confidence"),
        ([{"plan": [], "confidence": 1}], "plan"),
        ([{"plan": ["x"], "confidence": 1, "plans": 1}], "unknown key plans"),
        ([{"answer": 3, "confidence": 1}], "answer"),
        ([{}] * 101, "too many"),
    ],
)
def test_other_next_actions_are_refused_with_their_place(wrong, said):
    with pytest.raises(ActionError, match=said):
        read_actions(wrong)
