"""Reads a model's answer leniently: a plan, ranked next actions, or ``COMPLETE:``; fences and prose around it are ignored.

Nothing here runs or checks a plan. An unreadable part is described in a clause that is returned to the model.
"""

import json
import re
from collections.abc import Mapping
from math import isfinite
from typing import Any

from attrs import evolve, frozen

from ....adapters.llm.answers import unfenced
from ....lang.diagnostic import has_errors
from ....lang.parse.gasl import parse_gasl
from ....lang.source import Source
from ...excerpts import cut, storable
from .answer_json import ENDS, Unreadable, answer_values, key_faults, values

# Removes ``COMPLETE:``, and quotes and markup around the complete answer.

_COMPLETE = re.compile(r"(?P<marks>[\s*_#>\"'`]*)COMPLETE:")
_PAIRS = ("```", "**", "__", '"', "'", "`", "*", "_")


def behind_complete(text: str) -> str | None:
    """Return the text after a leading ``COMPLETE:``, without markup around it; None if ``text`` does not begin with ``COMPLETE:``."""
    found = _COMPLETE.match(text)
    if found is None:
        return None
    if text.startswith('"'):
        try:
            inner = json.loads(text)
        except ValueError:
            pass
        else:
            return behind_complete(inner)
    answer = text[found.end() :].rstrip()
    marks = re.sub(r"[\s#>]", "", found["marks"])
    if marks:
        answer = answer.removeprefix(marks) if answer.startswith(marks) else answer.removesuffix(marks[::-1])
    if answer.count("```") % 2:
        answer = answer.removesuffix("```")
    return _unmarked(answer)


def _unmarked(text: str) -> str:
    """Return ``text`` without quotes or markup around the complete text; ``"Ada" and "Ben"`` is unchanged."""
    text = text.strip()
    for mark in _PAIRS:
        inner = text[len(mark) : -len(mark)]
        if inner and text.startswith(mark) and text.endswith(mark) and mark not in inner:
            return _unmarked(inner)
    return text


DECISIONS = ("continue", "refine", "pivot", "terminate")
MOST_ACTIONS = 8
"""Maximum number of plans that are used from one answer; the most confident plans are used."""
_MOST_COMMANDS = 200
_LONGEST = 200_000
"""Maximum characters of an answer that are read."""
_SENTENCE = 1_000
_CITED = 100
NO_REASON = "no reason was given"

_ENDING = (*DECISIONS[3:], "terminated", "complete", "completed", "stop", "end", "finish", "finished", "done")
_BEGINNING = ("", "start", "begin", "plan")
"""Words for a decision that do not evaluate the last step."""
_EITHER = (
    'answer only {"complete": ..., "evidence": [...]} to end, '
    'or only a plan with the decision "continue", "refine" or "pivot" to go on'
)
_LATE = re.compile(r"^[ \t*_#>`]*COMPLETE:(.*\S.*)$", re.MULTILINE)
"""A line that begins with ``COMPLETE:``."""
_NO_COMMANDS = 'it has no commands; write a plan as {"why": ..., "commands": [...]}'
_PLACEHOLDER = re.compile(r"<[^<>]{0,60}>|\.{3}|…|the answer[.:]?", re.IGNORECASE)


@frozen
class Completed:
    """The answer to the question, and the evidence that the model cites."""

    answer: str
    cited: tuple[str, ...] = ()
    why: str = ""
    remark: str = ""


@frozen
class Draft:
    """A proposed plan. ``plan`` contains those keys of a plan object that occur in the answer."""

    plan: Mapping[str, Any]
    confidence: float = 1.0
    rationale: str = ""


@frozen
class Proposed:
    """The plans that the model proposes next, most confident first. ``decision`` is "" if the model gave no decision.

    ``left_out`` contains a clause with the reason for each omitted plan; ``remark`` reports an unknown decision.
    """

    drafts: tuple[Draft, ...]
    hypothesis: str = ""
    decision: str = ""
    why: str = ""
    left_out: tuple[str, ...] = ()
    remark: str = ""


@frozen
class Contradictory:
    """The answer both ends the question and continues it; ``reason`` describes the contradiction and how to correct it."""

    reason: str


ModelAnswer = Completed | Proposed | Unreadable | Contradictory


def read_answer(text: str) -> ModelAnswer:
    """Parse an answer. ``COMPLETE:`` ends the loop only at the beginning of the answer; inside prose it has no effect."""
    if len(text) > _LONGEST:
        return Unreadable(f"it has {len(text):,} characters; at most {_LONGEST:,} are allowed")
    text = str(storable(text))
    bare = unfenced(text.strip().removeprefix("\ufeff")).strip()
    if (told := behind_complete(bare)) is not None:
        return _behind(told)
    reason = "it contains neither a JSON object with a plan nor COMPLETE: at its beginning"
    inside = answer_values(bare)
    for value in inside.values:
        said = _answer_in(value)
        if isinstance(said, Proposed) and (late := _LATE.search(bare)) and not _PLACEHOLDER.fullmatch(late[1].strip()):
            return Contradictory(f"it plans commands, but also has COMPLETE: after them; {_EITHER}")
        if isinstance(said, Proposed | Completed) and inside.remark:
            return evolve(said, remark="; ".join(filter(None, (said.remark, inside.remark))))
        if not isinstance(said, Unreadable):
            return said
        reason = said.reason
    if inside.faults is not None:
        return inside.faults
    if reason == _NO_COMMANDS and bare.startswith("{") and (faults := key_faults(bare)):
        return Unreadable(reason, Source(bare, "<answer>"), faults)
    if len(bare) <= 20_000 and bare and not bare.startswith(("{", "[")):
        program = parse_gasl(Source(bare, "<answer>"))
        if program.statements and not has_errors(program.diagnostics):
            return Proposed((Draft({"commands": [bare]}),))
    return Unreadable(reason)


def _behind(told: str) -> ModelAnswer:
    """Read the content after ``COMPLETE:``: the answer itself, or an object that contains the answer."""
    for value in values(told) if "{" in told else ():
        said = _answer_in(value)
        if isinstance(said, Proposed | Contradictory):
            return Contradictory(f"it begins with COMPLETE:, but plans commands after it; {_EITHER}")
        if isinstance(said, Completed) and told.strip().startswith("{"):
            return said
    return _completed(told)


def as_schema_json(text: str) -> str:
    """Return the answer ``text`` as JSON that fits ``answer_schema``; if the answer can't be read, return it unchanged.

    Raises ``ValueError`` with a clause for the model if the text both ends the question and continues it.
    """
    said = read_answer(text)
    if isinstance(said, Contradictory):
        raise ValueError(said.reason)
    if isinstance(said, Unreadable) or (isinstance(said, Proposed) and said.left_out):
        return text
    if isinstance(said, Completed):
        return json.dumps({"complete": said.answer, "evidence": list(said.cited)}, ensure_ascii=False)
    thoughts = {"decision": said.decision, "why": said.why, "hypothesis": said.hypothesis}
    made: dict[str, Any] = {name: text for name, text in thoughts.items() if text}
    if len(said.drafts) == 1:
        made |= said.drafts[0].plan
        made.setdefault("why", said.drafts[0].rationale or said.hypothesis or NO_REASON)
    else:
        made["next_actions"] = [
            {"plan": draft.plan["commands"], "confidence": draft.confidence, "rationale": draft.rationale}
            for draft in said.drafts
        ]
    return json.dumps(made, ensure_ascii=False)


def _answer_in(value: Any) -> ModelAnswer:
    if isinstance(value, str):
        told = behind_complete(value)
        return Unreadable("it is a string, not an object with a plan") if told is None else _completed(told)
    if isinstance(value, list):
        if value and all(isinstance(each, Mapping) and ("plan" in each or "confidence" in each) for each in value):
            value = {"next_actions": value}
        else:
            value = {"commands": value}
    if not isinstance(value, Mapping):
        return Unreadable("it is not an object with a plan")
    value = {str(name): inner for name, inner in value.items()}
    if set(value) == {"answer"} and isinstance(value["answer"], Mapping | list):
        return _answer_in(value["answer"])
    actions, decision = value.get("next_actions"), str(value.get("decision") or "").strip().strip(".!\"'*").lower()
    drafts = [_draft(each) for each in actions] if isinstance(actions, list) else [_draft(value)]
    kept = [draft for draft in drafts if isinstance(draft, Draft)]
    ends = {name: value[name] for name in ENDS if value.get(name) not in (None, False, "", [], {})}
    if kept and ends:
        return Contradictory(f'it answers the question with "{next(iter(ends))}", but also plans commands; {_EITHER}')
    if kept and decision in _ENDING:
        return Contradictory(f'its decision is "{decision}", but it plans commands; {_EITHER}')
    unclear = next((f"{name} must be the answer as a string" for name in ENDS if value.get(name) is not None), "")
    for name, said in ends.items():
        if answer := _answer(said):
            if decision in DECISIONS and decision not in _ENDING:
                return Contradictory(
                    f'its decision is "{decision}", but it answers the question with "{name}"; {_EITHER}'
                )
            return _completed(answer, _cited(value.get("evidence")), _text(value.get("why")))
    if not kept:
        long = [draft.reason for draft in drafts if isinstance(draft, Unreadable)]
        if decision in _ENDING and not unclear:
            unclear = (
                f'its decision is "{decision}", but it has no answer; write {{"complete": ..., "evidence": [...]}}'
            )
        return Unreadable(next(iter(long), unclear or _NO_COMMANDS))
    lost = [_omission(at, actions, draft) for at, draft in enumerate(drafts) if not isinstance(draft, Draft)]
    kept.sort(key=lambda draft: -draft.confidence)
    known = decision in DECISIONS
    remark = "" if known or decision in _BEGINNING else (
        f'unknown decision "{cut(decision, 60)}" (known: continue, refine, pivot); the outcome of the last step decides'
    )  # fmt: skip
    return Proposed(
        tuple(kept),
        _text(value.get("hypothesis")),
        decision if known else "",
        _text(value.get("why")),
        tuple(lost),
        remark,
    )


def _omission(at: int, actions: Any, draft: "Unreadable | None") -> str:
    """Return the reason why the next action number ``at`` is not a plan."""
    if isinstance(draft, Unreadable):
        return draft.reason
    if isinstance(actions[at], Mapping) and any(actions[at].get(name) for name in ENDS):
        return f"next_actions[{at}] is an answer; an answer must be the only next action"
    return f"next_actions[{at}] has no commands"


def _answer(value: Any) -> str:
    """Return the answer in a value as text: a string, a number, or a list of these; "" for any other value."""
    if isinstance(value, str):
        told = behind_complete(value)
        return value.strip() if told is None else told
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, list) and not any(isinstance(each, list) for each in value):
        listed = [_answer(each) for each in value]
        return ", ".join(listed) if all(listed) else ""
    return ""


def _cited(value: Any) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value
    return tuple(str(each) for each in listed[:_CITED]) if isinstance(listed, list) else ()


def _completed(answer: str, cited: tuple[str, ...] = (), why: str = "") -> Completed | Unreadable:
    answer = answer.strip()
    if not answer or _PLACEHOLDER.fullmatch(answer):
        return Unreadable("no answer follows COMPLETE:")
    return Completed(answer, tuple(cut(each, 200) for each in cited), why)


def _draft(value: Any) -> Draft | Unreadable | None:
    """Return the plan in an object, either under the key ``plan`` or as the object itself; None if it has no commands."""
    if not isinstance(value, Mapping):
        value = {"plan": value}
    rationale, plan = _text(value.get("rationale")), value.get("plan", value)
    if isinstance(plan, str):
        plan = [plan]
    if isinstance(plan, list):
        plan = {"commands": plan}
    if not isinstance(plan, Mapping):
        return None
    commands = plan.get("commands")
    if isinstance(commands, str):
        commands = [commands]
    if not isinstance(commands, list):
        return None
    if len(commands) > _MOST_COMMANDS:
        return Unreadable(f"a plan has at most {_MOST_COMMANDS} commands; this one has {len(commands):,}")
    listed = [_command(each) for each in commands]
    listed = [each for each in listed if each != ""]
    if not listed:
        return None
    made: dict[str, Any] = {"commands": listed}
    for name in ("plan_id", "why"):
        if text := _text(plan.get(name)):
            made[name] = text[:200] if name == "plan_id" else text
    if isinstance(plan.get("config"), Mapping) and plan["config"]:
        made["config"] = dict(plan["config"])
    return Draft(made, _confidence(value["confidence"]) if "confidence" in value else 1.0, rationale)


def _command(value: Any) -> Any:
    """Return a command in the form used in a plan; an invalid command is left unchanged, and the check reports it."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, Mapping) and isinstance(value.get("command"), str):
        kept = {"command": value["command"].strip()}
        return {**kept, "why": _text(value["why"])} if isinstance(value.get("why"), str) else kept
    return value


def _confidence(value: Any) -> float:
    if isinstance(value, str) and value.strip().rstrip("%").replace(".", "", 1).isdecimal():
        value = float(value.strip().rstrip("%"))
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        return 0.5
    return float(value) if value <= 1 else min(1.0, value / 100)


def _text(value: Any) -> str:
    return cut(" ".join(value.split()), _SENTENCE) if isinstance(value, str) else ""


def answer_schema() -> dict[str, Any]:
    """Return the JSON Schema of an answer: a plan object, next actions, or the final answer. Derived from ``PLAN_SCHEMA``."""
    from ....lang.documents.plan import PLAN_SCHEMA  # imports pydantic

    plan = PLAN_SCHEMA["properties"]
    commands = {**plan["commands"], "maxItems": 30}  # a grammar made from the schema must stay small
    thoughts = {
        "decision": {"type": "string", "enum": list(DECISIONS[:3])},
        "why": plan["why"],
        "hypothesis": {"type": "string", "description": "The hypothesis that the plan tests."},
    }
    action = _object({"plan": commands, "confidence": {"type": "number"}, "rationale": {"type": "string"}})
    several = {"type": "array", "items": action, "minItems": 1}
    config = {name: value for name, value in plan["config"].items() if name != "default"}
    forms = [
        _object(
            {**thoughts, "plan_id": {"type": "string"}, "commands": commands, "config": config}, ("why", "commands")
        ),
        _object({**thoughts, "next_actions": several}, ("next_actions",)),
        _object(
            {"complete": {"type": "string"}, "evidence": {"type": "array", "items": {"type": "string"}}}, ("complete",)
        ),
    ]
    return {"anyOf": forms, "$defs": PLAN_SCHEMA.get("$defs", {})}


def _object(properties: Mapping[str, Any], required: "tuple[str, ...] | None" = None) -> dict[str, Any]:
    named = list(properties) if required is None else list(required)
    return {"type": "object", "properties": dict(properties), "required": named, "additionalProperties": False}
