"""The rules of plans: JSON documents with GASL commands."""

from functools import partial

from .rule import Rule

__all__ = ["PLAN_RULES"]


def _plan(inside: str) -> str:
    return "{" + inside + "}"


_ID = '"plan_id": "plan-001"'
_WHY = '"why": "See how many people there are."'
_COMMANDS = '"commands": ["FIND nodes AS people"]'
_GOOD = _plan(f"{_ID}, {_WHY}, {_COMMANDS}")

_rule = partial(Rule, language="plan")

PLAN_RULES = (
    _rule(
        "PLAN001", "not-a-plan", "error",
        "The document is no object, or the object can't be written as JSON.",
        "A plan is an object with `plan_id`, `why` and `commands`.",
        "[]", _GOOD,
    ),
    _rule(
        "PLAN002", "unknown-plan-key", "error",
        "A plan has a key that no plan has.",
        "A misspelt key would silently have no effect.",
        _plan(f'{_ID}, {_WHY}, {_COMMANDS}, "confg": {{}}'), _plan(f'{_ID}, {_WHY}, {_COMMANDS}, "config": {{}}'),
    ),
    _rule(
        "PLAN003", "missing-plan-key", "error",
        "A plan lacks its `plan_id` or its `commands`, or a command its text.",
        "The history tells plans apart by their ids; without commands there is nothing to run.",
        _plan(f"{_WHY}, {_COMMANDS}"), _GOOD,
    ),
    _rule(
        "PLAN004", "plan-type", "error",
        "A value in a plan is of the wrong type.",
        'What `"stop_on_error": "false"` means could only be guessed.',
        _plan(f'{_ID}, {_WHY}, {_COMMANDS}, "config": {{"stop_on_error": "false"}}'),
        _plan(f'{_ID}, {_WHY}, {_COMMANDS}, "config": {{"stop_on_error": false}}'),
    ),
    _rule(
        "PLAN005", "plan-without-why", "error",
        "A plan doesn't say why.",
        "The history keeps the reason beside every step; without it nobody can judge what was done.",
        _plan(f"{_ID}, {_COMMANDS}"), _GOOD,
    ),
    _rule(
        "PLAN006", "empty-command", "error",
        "A plan has no commands, or an empty one.",
        "There is nothing to run.",
        _plan(f'{_ID}, {_WHY}, "commands": []'), _GOOD,
    ),
    _rule(
        "PLAN007", "too-many-commands", "error",
        "A plan has more than 10,000 commands, or they have more than 30,000 lines.",
        "A limit keeps a runaway answer from being taken for a plan.",
    ),
    _rule(
        "PLAN008", "plan-value", "error",
        "A value in a plan is out of its range.",
        "It would be cut or refused later.",
        _plan(f'"plan_id": "", {_WHY}, {_COMMANDS}'), _GOOD,
    ),
)  # fmt: skip
