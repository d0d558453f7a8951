"""How large prompts get: what a model wrote comes back bounded, and what is too large is not read."""

from typing import Any

import pytest
from knotwork import planner
from knotwork.runtime.loops.rank.draft_script import LISTED, Skeleton, as_lines, check_plan_script, excerpts
from support.scripted import Scripted

Items = list[dict[str, Any]]
PLAN = "===LWT_SKELETON===\n{}\n===MESSAGE===\nREMAINING: 5\nNEEDS_EXPANSION: {}"
LONG = "\n".join(f'(s{n})=LLM("{"word " * 55}")' for n in range(180)) + '\n(final)=LLM("Items: [5]. Best?")'


@pytest.mark.slow
def test_prompts_of_an_expansion_stay_below_their_bound(items: Items) -> None:
    edits = [f'lwt_set(3, "(s3)=LLM("{n} {"new " * 2_000}")")' for n in range(9)]
    model = Scripted(
        PLAN.format(LONG, "yes") + "\n" + "m" * 30_000,
        *(each for edit in edits for each in ("lwt_list()", edit, 'read("items")')),
        "done()",
        "5",
    )
    ranked = planner.rank_sync(items, "tea", model, max_iterations=40)
    assert (ranked.status, ranked.ranking) == ("complete", (6,))
    expansions = [prompt for prompt, _ in model.calls if "[DECISION]" in prompt]
    assert len(expansions) == 28
    assert max(map(len, expansions)) < 60_000
    assert ranked.script.count("new ") == 2_000


@pytest.mark.slow
def test_a_long_script_is_listed_around_its_latest_edit(items: Items) -> None:
    skeleton = Skeleton(check_plan_script(LONG, {"items": items}).script, {"items": items})
    assert skeleton.set(100, '(s100)=LLM("a new one")').done
    listed = skeleton.listed()
    assert len(listed) <= LISTED
    lines = listed.splitlines()
    assert len(lines) == 182
    assert '100: (s100)=LLM("a new one")' in lines
    assert lines[99].endswith('word ")')
    assert lines[0] == "0: (s0)=…"


def test_a_refused_plan_goes_back_as_excerpts_around_what_is_wrong(items: Items, simple: str) -> None:
    wrong = LONG.replace('(s90)=LLM("', '(s90)=LLM("{(nowhere)} ')
    model = Scripted(PLAN.format(wrong, "no"), simple, "5")
    ranked = planner.rank_sync(items, "tea", model)
    assert ranked.ranking == (6,)
    first, again = model.calls[0][0], model.calls[1][0]
    assert len(again) < len(first) + 26_000
    assert "{(nowhere)}" in again.partition("[YOUR LAST LWT]")[2].partition("[DIAGNOSTICS]")[0]
    assert "characters left out" in again


def test_excerpts_and_diagnostics_keep_their_bounds() -> None:
    text = "".join(f"{n:06}" for n in range(10_000))
    made = excerpts(text, [(n * 2_500, n * 2_500 + 5) for n in range(24)], 12_000)
    assert len(made) <= 12_000
    assert "offset 29800:]\n" in excerpts(text, [(30_000, 30_010)], 1_000) and len(made) > 9_000
    assert excerpts("short", [(0, 3)], 1_000) == "short"
    objects = [{"code": "X", "message": "m" * 9_000, "hints": ["h" * 9_000], "edits": []}] * 20
    assert len(as_lines(objects)) <= 12_000


@pytest.mark.parametrize("piece", ['(a)=LLM("x")\n', "EACH(", "{(", "{(a)}", "["])
def test_a_script_of_a_plan_is_read_up_to_a_size(items: Items, simple: str, piece: str) -> None:
    skeleton = f'(final)=LLM("{piece * (70_000 // len(piece))}")'
    ranked = planner.rank_sync(items, "tea", Scripted(PLAN.format(skeleton, "no"), simple, "5"))
    assert ranked.repairs[0].diagnostics[0]["code"] == "RANK007"


@pytest.mark.slow
def test_a_time_limit_is_heard_while_a_long_script_is_checked(items: Items) -> None:
    model = Scripted(PLAN.format(f'(final)=LLM("{"{(" * 29_000}")', "no"))
    ranked = planner.rank_sync(items, "tea", model, time_limit=0.05)
    assert ranked.reason == "the time limit of 0.05 s is reached"
    assert ranked.seconds < 1
