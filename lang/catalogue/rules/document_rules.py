"""The rules of JSON documents in general, plans, files, clients and rankings."""

from functools import partial

from .rule import Rule

_GOOD = '{"a": 1}'

_rule = partial(Rule, language="json")

JSON_RULES = (
    _rule(
        "JSON001", "not-json-here", "error",
        "The text, or a place in it, is not JSON.",
        "What it was meant to say could only be guessed.",
        '{"a": ?}', _GOOD,
    ),
    _rule(
        "JSON002", "around-json", "error",
        "Prose or a code fence stands around the document.",
        "Models write both; a file has the document alone.",
        "```json\n" + _GOOD + "\n```", _GOOD,
    ),
    _rule(
        "JSON003", "json-punctuation", "error",
        "A comma or a colon is missing, or there is one too many.",
        "Readers of JSON differ in what they forgive.",
        '{"a": 1,}', _GOOD,
    ),
    _rule(
        "JSON004", "json-comment", "error",
        "The document has a comment.",
        "JSON has none; a plan's `why` is the place for what is to be said.",
        '{"a": 1} // one', _GOOD,
    ),
    _rule(
        "JSON005", "json-quotes", "error",
        "A text or a key stands in other than double quotes, or in none.",
        "JSON has double quotes only.",
        "{'a': 1}", _GOOD,
    ),
    _rule(
        "JSON006", "json-literal", "error",
        "`True`, `None` and the like are spelt as another language spells them.",
        "JSON has `true`, `false` and `null`.",
        '{"a": None}', '{"a": null}',
    ),
    _rule(
        "JSON007", "json-number", "error",
        "A number is none of JSON, is none at all, or doesn't fit into 64 bits.",
        "Readers would take it for different numbers, or for null.",
        '{"a": NaN}', _GOOD,
    ),
    _rule(
        "JSON008", "json-string", "error",
        "A string has a raw control character, an escape that JSON doesn't have, or half a surrogate pair.",
        "Readers refuse it or change it.",
        '{"a": "\\d"}', '{"a": "\\\\d"}',
    ),
    _rule(
        "JSON009", "json-duplicate-key", "error",
        "An object has a key twice.",
        "One of the two values would silently be lost.",
        '{"a": 1, "a": 2}', _GOOD,
    ),
    _rule(
        "JSON010", "json-unclosed", "error",
        "A string, a list or an object is not closed.",
        "An answer that was cut off looks like this, and half of a plan is not the plan.",
        '{"a": [1', '{"a": [1]}',
    ),
    _rule(
        "JSON011", "json-too-deep-or-large", "error",
        "The document is larger, deeper or has more values than the limits allow.",
        "A limit keeps a hostile text from taking the machine's memory.",
        '{"a": ' + "[" * 70 + "]" * 70 + "}", '{"a": []}',
    ),
    _rule(
        "JSON012", "json-quotes-inside", "error",
        "A text has double quotes inside it that stand without their backslashes.",
        "The text seems to end at the first of them, and what follows would be read as something else.",
        '{"a": "say "yes" to it"}', '{"a": "say \\"yes\\" to it"}',
    ),
)  # fmt: skip


# The rules of plans: JSON documents with GASL commands.


def _plan(inside: str) -> str:
    return "{" + inside + "}"


_ID = '"plan_id": "plan-001"'
_WHY = '"why": "See how many people there are."'
_COMMANDS = '"commands": ["FIND nodes AS people"]'
_GOOD_PLAN = _plan(f"{_ID}, {_WHY}, {_COMMANDS}")

_plan_rule = partial(Rule, language="plan")

PLAN_RULES = (
    _plan_rule(
        "PLAN001", "not-a-plan", "error",
        "The document is not an object, or the object can't be written as JSON.",
        "A plan is an object with `plan_id`, `why` and `commands`.",
        "[]", _GOOD_PLAN,
    ),
    _plan_rule(
        "PLAN002", "unknown-plan-key", "error",
        "A plan has a key that no plan has.",
        "A misspelt key would silently have no effect.",
        _plan(f'{_ID}, {_WHY}, {_COMMANDS}, "confg": {{}}'), _plan(f'{_ID}, {_WHY}, {_COMMANDS}, "config": {{}}'),
    ),
    _plan_rule(
        "PLAN003", "missing-plan-key", "error",
        "A plan lacks its `plan_id` or its `commands`, or a command its text.",
        "The history tells plans apart by their ids; without commands there is nothing to run.",
        _plan(f"{_WHY}, {_COMMANDS}"), _GOOD_PLAN,
    ),
    _plan_rule(
        "PLAN004", "plan-type", "error",
        "A value in a plan is of the wrong type.",
        'What `"stop_on_error": "false"` means could only be guessed.',
        _plan(f'{_ID}, {_WHY}, {_COMMANDS}, "config": {{"stop_on_error": "false"}}'),
        _plan(f'{_ID}, {_WHY}, {_COMMANDS}, "config": {{"stop_on_error": false}}'),
    ),
    _plan_rule(
        "PLAN005", "plan-without-why", "error",
        "A plan doesn't say why.",
        "The history keeps the reason beside every step; without it nobody can judge what was done.",
        _plan(f"{_ID}, {_COMMANDS}"), _GOOD_PLAN,
    ),
    _plan_rule(
        "PLAN006", "empty-command", "error",
        "A plan has no commands, or an empty one.",
        "There is nothing to run.",
        _plan(f'{_ID}, {_WHY}, "commands": []'), _GOOD_PLAN,
    ),
    _plan_rule(
        "PLAN007", "too-many-commands", "error",
        "A plan has more than 10,000 commands, or they have more than 30,000 lines.",
        "A limit keeps a runaway answer from being taken for a plan.",
    ),
    _plan_rule(
        "PLAN008", "plan-value", "error",
        "A value in a plan is out of its range.",
        "It would be cut or refused later.",
        _plan(f'"plan_id": "", {_WHY}, {_COMMANDS}'), _GOOD_PLAN,
    ),
)  # fmt: skip


# The rules of files, inputs and names in all languages. They have no text to show as an example.

FILE_RULES = (
    Rule(
        "KW001", "unreadable-file", "error",
        "A file can't be read.",
        "It doesn't exist, is a folder, or may not be read; the message says which.",
    ),
    Rule(
        "KW002", "not-text", "error",
        "A file is not text in UTF-8.",
        "Guessing at an encoding would change what the prompts say.",
    ),
    Rule(
        "KW003", "too-large", "error",
        "A file is larger than the limit.",
        "A limit keeps a mistaken path from taking the machine's memory.",
    ),
    Rule(
        "KW004", "not-json", "error",
        "The input is not JSON.",
        "References look into it by keys and indexes; plain text is given as a JSON string.",
    ),
    Rule(
        "KW005", "no-rename", "error",
        "A name can't be changed here, or not into that one.",
        "A rename leaves the meaning as it is: it changes every place that means the same thing, and nothing else.",
    ),
)  # fmt: skip


# The rules of input that a client sends over HTTP or MCP to another owner's server. They have no text to show as an example.

CLIENT_RULES = (
    Rule(
        "WEB001", "not-over-http", "error",
        "A script that came over HTTP calls an operation that is not for such scripts.",
        "GASL and SEED read what only the server's owner has.",
    ),
    Rule(
        "WEB002", "no-files-over-http", "error",
        "A script that came over HTTP names a file.",
        "A client has no say in what the server reads from its disk.",
    ),
    Rule(
        "MCP001", "state-only-read", "error",
        "A command would change the state of a server that was begun with `--read-only`.",
        "Whoever started the server wants its state as it is; values of a run are told without being kept.",
    ),
    Rule(
        "MCP002", "not-over-mcp", "error",
        "A script of an MCP client calls an operation that is not for such scripts.",
        "Plugins and files of seeds are the server's owner's.",
    ),
    Rule(
        "MCP003", "no-files-over-mcp", "error",
        "A script of an MCP client names a file.",
        "A client has no say in what the server reads from its disk.",
    ),
    Rule(
        "MCP004", "no-graph-over-mcp", "error",
        "A script of an MCP client calls GASL, and the server has no graph.",
        "`knotwork mcp --graph FILE` gives it one; a client can't.",
    ),
)  # fmt: skip


# The rules of rankings: faults of a plan or a ranking tool call, in addition to faults of its script.
# ``bad`` and ``good`` are a plan, or tool calls on a script of two steps, ``(note)`` and ``(final)``.


def _planned_ranking(skeleton: str, message: str) -> str:
    return f"===LWT_SKELETON===\n{skeleton}\n\n===MESSAGE===\n{message}"


_STEP = '(final)=LLM("Which of {(input)}["items"] is a cafe? Answer its index.")'
_NO_EXPANSION = "NEEDS_EXPANSION: no"
_GOOD_RANKING = _planned_ranking(_STEP, f"REMAINING: 0, 1\n{_NO_EXPANSION}")

_rank_rule = partial(Rule, language="rank", input='{"items": [{"name": "Alpha Cafe"}, {"name": "Beta Bar"}]}')

RANK_RULES = (
    _rank_rule(
        "RANK001", "no-plan-step", "error",
        "A plan has no skeleton, or what a tool is given is not one step.",
        "The ranking is what the steps come to; without one there is nothing to run.",
        _planned_ranking("", f"The cafe is best.\n{_NO_EXPANSION}"), _GOOD_RANKING,
    ),
    _rank_rule(
        "RANK002", "unknown-item", "error",
        "A plan names items that are not there.",
        "Items are counted from 0; an index that no item has was made up.",
        _planned_ranking(_STEP, f"REMAINING: 0, 12\n{_NO_EXPANSION}"), _GOOD_RANKING,
    ),
    _rank_rule(
        "RANK003", "unknown-plan-step", "error",
        "A tool is to change a step that is not there, or to remove the only one.",
        "Steps are counted from 0; `lwt_list()` shows them, and the last one gives the ranking.",
        "lwt_delete(7)", "lwt_delete(0)",
    ),
    _rank_rule(
        "RANK004", "no-tool-call", "error",
        "An answer has no call of a tool, one of a tool that there is not, or one with other arguments.",
        "A call stands alone on its line; what is only talked about in prose is not carried out.",
        "lwt_remove(0)", "lwt_delete(0)",
    ),
    _rank_rule(
        "RANK005", "plan-step-id-taken", "error",
        "A step is put in whose id another step has.",
        "Of two steps with one id one would silently be lost; `lwt_set` replaces a step.",
        "lwt_insert(0, '(final)=LLM(\"other\")')", "lwt_set(1, '(final)=LLM(\"other\")')",
    ),
    _rank_rule(
        "RANK006", "unknown-item-path", "error",
        "`read` is given a path that leads nowhere.",
        "What does not stand in the items was made up, or is spelt in another way.",
        'read("items[9].name")', 'read("items[0].name")',
    ),
    _rank_rule(
        "RANK007", "plan-too-large", "error",
        "A plan, a script or an answer is longer than the limits allow.",
        "A limit keeps a runaway answer from being taken for a plan.",
    ),
)  # fmt: skip
