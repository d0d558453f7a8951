"""The examples of the rules that only a ranking has: each bad one has its fault and each good one has none."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from knotwork.lang.catalogue.rules import RULES, Rule
from knotwork.lang.diagnostic import Diagnostic, has_errors
from knotwork.runtime.loops.rank.draft_script import Skeleton, check_plan_script, read_plan
from knotwork.runtime.loops.rank.phases import read_path
from knotwork.runtime.loops.rank.tools import read_calls

RANK_RULES = [rule for rule in RULES.values() if rule.language == "rank"]
EXAMPLES = [rule for rule in RANK_RULES if rule.bad]
SCRIPT = '(note)=LLM("What is a cafe?")\n(final)=LLM("Which is best? {(input)}["items"]")'


def data_of(rule: Rule) -> dict[str, Any]:
    assert rule.input is not None
    data: dict[str, Any] = json.loads(rule.input)
    return data


def told(text: str, data: Mapping[str, Any]) -> set[str]:
    """Return the codes of what is wrong with a plan, or with calls of tools on ``SCRIPT``."""
    if not text.startswith("==="):
        return called(text, data)
    plan = read_plan(text, len(data["items"]))
    script = check_plan_script(plan.skeleton, data)
    return {each.code for each in (*plan.faults, *script.diagnostics) if each.severity == "error"}


def called(text: str, data: Mapping[str, Any]) -> set[str]:
    start = check_plan_script(SCRIPT, data)
    assert not has_errors(start.diagnostics)
    skeleton, calls, found = Skeleton(start.script, data), read_calls(text), set[str]()
    assert calls.calls or calls.fault
    found |= {calls.fault.code} if calls.fault else set()
    for call in calls.calls:
        if call.tool == "read":
            read = read_path(data, call.arguments["path"])
            found |= {read.code} if isinstance(read, Diagnostic) else set()
        else:
            edited = getattr(skeleton, call.tool.removeprefix("lwt_"))(*call.arguments.values())
            found |= set() if edited.done else {json.loads(line)["code"] for line in edited.message.splitlines()}
    return found


@pytest.mark.parametrize("rule", EXAMPLES, ids=lambda rule: rule.code)
def test_the_bad_example_has_the_fault_and_the_good_one_has_none(rule: Rule) -> None:
    assert rule.code in told(rule.bad, data_of(rule))
    assert told(rule.good, data_of(rule)) == set()


def test_every_rule_has_an_example_but_the_one_about_sizes() -> None:
    assert {rule.code for rule in RANK_RULES if not rule.bad} == {"RANK007"}
    longest = {each.code for each in read_plan("x" * 400_001, 1).faults}
    assert longest == {"RANK007"}
