"""The rules for JSON documents in general, and for plans, files, clients and rankings."""

from functools import partial

from .rule import Rule

_GOOD = '{"a": 1}'

_rule = partial(Rule, language="json")

JSON_RULES = (
    _rule(
        "JSON001", "not-json-here", "error",
        "The text, or a part of it, is not JSON.",
        "The intended value is unclear.",
        '{"a": ?}', _GOOD,
    ),
    _rule(
        "JSON002", "around-json", "error",
        "The document has prose or a code fence around it.",
        "Models often write both; a file must contain only the document.",
        "```json\n" + _GOOD + "\n```", _GOOD,
    ),
    _rule(
        "JSON003", "json-punctuation", "error",
        "A comma or a colon is missing or superfluous.",
        "JSON parsers differ in what they accept.",
        '{"a": 1,}', _GOOD,
    ),
    _rule(
        "JSON004", "json-comment", "error",
        "The document has a comment.",
        "JSON has no comments; write explanations into the `why` of a plan.",
        '{"a": 1} // one', _GOOD,
    ),
    _rule(
        "JSON005", "json-quotes", "error",
        "A text or a key has other quotes than double quotes, or no quotes.",
        "JSON allows only double quotes.",
        "{'a': 1}", _GOOD,
    ),
    _rule(
        "JSON006", "json-literal", "error",
        "`True`, `None` and the like have the spelling of another language.",
        "JSON has `true`, `false` and `null`.",
        '{"a": None}', '{"a": null}',
    ),
    _rule(
        "JSON007", "json-number", "error",
        "A number has an invalid form, is NaN or infinite, or does not fit into 64 bits.",
        "Different programs would read different numbers, or null.",
        '{"a": NaN}', _GOOD,
    ),
    _rule(
        "JSON008", "json-string", "error",
        "A string has a raw control character, an escape that JSON doesn't have, or half a surrogate pair.",
        "JSON parsers refuse or change the string.",
        '{"a": "\\d"}', '{"a": "\\\\d"}',
    ),
    _rule(
        "JSON009", "json-duplicate-key", "error",
        "An object has the same key twice.",
        "One of the two values would silently be lost.",
        '{"a": 1, "a": 2}', _GOOD,
    ),
    _rule(
        "JSON010", "json-unclosed", "error",
        "A string, a list or an object is not closed.",
        "A truncated answer looks like this, and a part of a plan must not run as the plan.",
        '{"a": [1', '{"a": [1]}',
    ),
    _rule(
        "JSON011", "json-too-deep-or-large", "error",
        "The document is larger, deeper or has more values than the limits allow.",
        "A limit prevents a hostile text from using all memory.",
        '{"a": ' + "[" * 70 + "]" * 70 + "}", '{"a": []}',
    ),
    _rule(
        "JSON012", "json-quotes-inside", "error",
        "Double quotes inside a text lack their backslashes.",
        "The text seems to end at the first of them, and the rest would be read as something else.",
        '{"a": "say "yes" to it"}', '{"a": "say \\"yes\\" to it"}',
    ),
)  # fmt: skip


# The rules for plans, which are JSON documents with GASL commands.


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
        "A plan has an unknown key.",
        "A misspelt key would silently have no effect.",
        _plan(f'{_ID}, {_WHY}, {_COMMANDS}, "confg": {{}}'), _plan(f'{_ID}, {_WHY}, {_COMMANDS}, "config": {{}}'),
    ),
    _plan_rule(
        "PLAN003", "missing-plan-key", "error",
        "A plan lacks its `plan_id` or its `commands`, or a command its text.",
        "The history distinguishes plans by their ids. Without commands there is nothing to run.",
        _plan(f"{_WHY}, {_COMMANDS}"), _GOOD_PLAN,
    ),
    _plan_rule(
        "PLAN004", "plan-type", "error",
        "A value in a plan has the wrong type.",
        'The meaning of `"stop_on_error": "false"`, for example, is unclear.',
        _plan(f'{_ID}, {_WHY}, {_COMMANDS}, "config": {{"stop_on_error": "false"}}'),
        _plan(f'{_ID}, {_WHY}, {_COMMANDS}, "config": {{"stop_on_error": false}}'),
    ),
    _plan_rule(
        "PLAN005", "plan-without-why", "error",
        "A plan has no `why`.",
        "The history records the reason of every step, so that people can judge what was done.",
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
        "A limit prevents an endless answer of a model from being read as a plan.",
    ),
    _plan_rule(
        "PLAN008", "plan-value", "error",
        "A value in a plan is out of range.",
        "The value would be cut or refused later.",
        _plan(f'"plan_id": "", {_WHY}, {_COMMANDS}'), _GOOD_PLAN,
    ),
)  # fmt: skip


# The rules for files, inputs and names in all languages. These rules have no examples.

FILE_RULES = (
    Rule(
        "KW001", "unreadable-file", "error",
        "A file can't be read.",
        "The file does not exist, is a folder, or is not readable; the message states which.",
    ),
    Rule(
        "KW002", "not-text", "error",
        "A file is not text in UTF-8.",
        "A guessed encoding could change the text of the prompts.",
    ),
    Rule(
        "KW003", "too-large", "error",
        "A file is larger than the limit.",
        "A limit prevents a wrong path from using all memory.",
    ),
    Rule(
        "KW004", "not-json", "error",
        "The input is not JSON.",
        "References use keys and indexes of the input. Write plain text as a JSON string.",
    ),
    Rule(
        "KW005", "no-rename", "error",
        "A name can't be renamed here, or not to the new name.",
        "A rename keeps the meaning of the text: it changes all occurrences of the name, and nothing else.",
    ),
)  # fmt: skip


# The rules for input that a client sends over HTTP or MCP to a server with another owner. These rules have no examples.

CLIENT_RULES = (
    Rule(
        "WEB001", "not-over-http", "error",
        "A script sent over HTTP calls an operation that is not allowed there.",
        "GASL and SEED read data of the server's owner.",
    ),
    Rule(
        "WEB002", "no-files-over-http", "error",
        "A script sent over HTTP names a file.",
        "Clients must not choose the files that the server reads.",
    ),
    Rule(
        "MCP001", "state-only-read", "error",
        "A command would change the state of a server started with `--read-only`.",
        "The state of this server must not change; results are returned without being stored.",
    ),
    Rule(
        "MCP002", "not-over-mcp", "error",
        "A script of an MCP client calls an operation that is not allowed there.",
        "Plugins and seed files belong to the server's owner.",
    ),
    Rule(
        "MCP003", "no-files-over-mcp", "error",
        "A script of an MCP client names a file.",
        "Clients must not choose the files that the server reads.",
    ),
    Rule(
        "MCP004", "no-graph-over-mcp", "error",
        "A script of an MCP client calls GASL, but the server has no graph.",
        "Only the server's owner can open a graph: `knotwork mcp --graph FILE`.",
    ),
)  # fmt: skip


# The rules for rankings: faults of a plan or a ranking tool call, in addition to faults of its script.
# ``bad`` and ``good`` are each a plan, or tool calls on a script with the two steps ``(note)`` and ``(final)``.


def _planned_ranking(skeleton: str, message: str) -> str:
    return f"===LWT_SKELETON===\n{skeleton}\n\n===MESSAGE===\n{message}"


_STEP = '(final)=LLM("Which of {(input)}["items"] is a cafe? Answer its index.")'
_NO_EXPANSION = "NEEDS_EXPANSION: no"
_GOOD_RANKING = _planned_ranking(_STEP, f"REMAINING: 0, 1\n{_NO_EXPANSION}")

_rank_rule = partial(Rule, language="rank", input='{"items": [{"name": "Alpha Cafe"}, {"name": "Beta Bar"}]}')

RANK_RULES = (
    _rank_rule(
        "RANK001", "no-plan-step", "error",
        "A plan has no skeleton, or the argument of a tool is not one step.",
        "The ranking is the result of the steps; without steps there is nothing to run.",
        _planned_ranking("", f"The cafe is best.\n{_NO_EXPANSION}"), _GOOD_RANKING,
    ),
    _rank_rule(
        "RANK002", "unknown-item", "error",
        "A plan names unknown items.",
        "Items are counted from 0; an index beyond the last item is invented.",
        _planned_ranking(_STEP, f"REMAINING: 0, 12\n{_NO_EXPANSION}"), _GOOD_RANKING,
    ),
    _rank_rule(
        "RANK003", "unknown-plan-step", "error",
        "A tool call changes an unknown step, or removes the only step.",
        "Steps are counted from 0; `lwt_list()` shows them, and the last one gives the ranking.",
        "lwt_delete(7)", "lwt_delete(0)",
    ),
    _rank_rule(
        "RANK004", "no-tool-call", "error",
        "An answer has no tool call, or a call with an unknown tool or wrong arguments.",
        "Write each call alone on a line; calls mentioned in prose are not executed.",
        "lwt_remove(0)", "lwt_delete(0)",
    ),
    _rank_rule(
        "RANK005", "plan-step-id-taken", "error",
        "An inserted step has the id of another step.",
        "One of two steps with the same id would silently be lost; `lwt_set` replaces a step.",
        "lwt_insert(0, '(final)=LLM(\"other\")')", "lwt_set(1, '(final)=LLM(\"other\")')",
    ),
    _rank_rule(
        "RANK006", "unknown-item-path", "error",
        "The path in `read` does not exist.",
        "The items do not contain this path: it is invented or misspelt.",
        'read("items[9].name")', 'read("items[0].name")',
    ),
    _rank_rule(
        "RANK007", "plan-too-large", "error",
        "A plan, a script or an answer is longer than the limits allow.",
        "A limit prevents an endless answer of a model from being read as a plan.",
    ),
)  # fmt: skip
