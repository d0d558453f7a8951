"""The rules for JSON documents in general, and for plans, files, clients and rankings."""

from functools import partial

from .rule import Rule

_GOOD = '{"a": 1}'

_rule = partial(Rule, language="json")

JSON_RULES = (
    _rule(
        "JSON001", "not-json-here", "error",
        "The text, or part of it, is not valid JSON.",
        "The intended value is unclear.",
        '{"a": ?}', _GOOD,
    ),
    _rule(
        "JSON002", "around-json", "error",
        "The document has prose or a code fence around it.",
        "Models often add both, but a file must contain only the document.",
        "```json\n" + _GOOD + "\n```", _GOOD,
    ),
    _rule(
        "JSON003", "json-punctuation", "error",
        "A comma or a colon is missing or superfluous.",
        "Some JSON parsers accept such a document and others reject it.",
        '{"a": 1,}', _GOOD,
    ),
    _rule(
        "JSON004", "json-comment", "error",
        "The document has a comment.",
        "JSON has no comments. Put explanations into the plan's `why`.",
        '{"a": 1} // one', _GOOD,
    ),
    _rule(
        "JSON005", "json-quotes", "error",
        "A string or a key is not in double quotes.",
        "JSON allows only double quotes.",
        "{'a': 1}", _GOOD,
    ),
    _rule(
        "JSON006", "json-literal", "error",
        "A literal is written as in another language, such as `True` or `None`.",
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
        "A string has an unescaped control character, an invalid escape, or a lone surrogate.",
        "JSON parsers reject such a string or change it.",
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
        "The document may be a truncated model answer, and an incomplete plan must not run.",
        '{"a": [1', '{"a": [1]}',
    ),
    _rule(
        "JSON011", "json-too-deep-or-large", "error",
        "The document exceeds a limit on its size, its nesting or its number of values.",
        "Without a limit, a malicious document could use all memory.",
        '{"a": ' + "[" * 70 + "]" * 70 + "}", '{"a": []}',
    ),
    _rule(
        "JSON012", "json-quotes-inside", "error",
        "Double quotes inside a string are not escaped with backslashes.",
        "The string would end at the first of these quotes, and the rest of the text would be misread.",
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
        "A plan has no `plan_id` or no `commands`, or a command has no text.",
        "The history identifies each plan by its id, and a plan without commands does nothing.",
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
        "The history records the reason for every step, so people can review what was done.",
        _plan(f"{_ID}, {_COMMANDS}"), _GOOD_PLAN,
    ),
    _plan_rule(
        "PLAN006", "empty-command", "error",
        "A plan has no commands, or one of its commands is empty.",
        "A plan or command without text has no effect.",
        _plan(f'{_ID}, {_WHY}, "commands": []'), _GOOD_PLAN,
    ),
    _plan_rule(
        "PLAN007", "too-many-commands", "error",
        "A plan has more than 10,000 commands, or its commands together have more than 30,000 lines.",
        "Without a limit, an endless model answer could be read as a plan.",
    ),
    _plan_rule(
        "PLAN008", "plan-value", "error",
        "A value in a plan is out of range.",
        "The value would be truncated or rejected later.",
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
        "A file is not UTF-8 text.",
        "If the encoding were guessed, the text of the prompts could change.",
    ),
    Rule(
        "KW003", "too-large", "error",
        "A file is larger than the limit.",
        "A wrong path could refer to a file that fills the memory.",
    ),
    Rule(
        "KW004", "not-json", "error",
        "The input is not JSON.",
        "References use keys and indexes of the input. Write plain text as a JSON string.",
    ),
    Rule(
        "KW005", "no-rename", "error",
        "There is nothing to rename at this position, or the new name is not allowed.",
        "A rename must change all occurrences of the name, and must not change the meaning of the text.",
    ),
)  # fmt: skip


# The rules for input that a client sends over HTTP or MCP to somebody else's server. These rules have no examples.

CLIENT_RULES = (
    Rule(
        "WEB001", "not-over-http", "error",
        "A script sent over HTTP calls an operation that is not allowed there.",
        "GASL and SEED read data of the server's owner.",
    ),
    Rule(
        "WEB002", "no-files-over-http", "error",
        "A script sent over HTTP refers to a file.",
        "Clients must not choose the files that the server reads.",
    ),
    Rule(
        "MCP001", "state-only-read", "error",
        "A command would change the state of a server started with `--read-only`.",
        "The server's owner has made the state read-only. Commands that only read the state still work.",
    ),
    Rule(
        "MCP002", "not-over-mcp", "error",
        "A script sent by an MCP client calls an operation that is not allowed there.",
        "Plugins and seed files belong to the server's owner.",
    ),
    Rule(
        "MCP003", "no-files-over-mcp", "error",
        "A script sent by an MCP client refers to a file.",
        "Clients must not choose the files that the server reads.",
    ),
    Rule(
        "MCP004", "no-graph-over-mcp", "error",
        "A script sent by an MCP client calls GASL, but the server has no graph.",
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
        "A plan has no skeleton, or the argument of a tool is not exactly one step.",
        "The steps compute the ranking, so a plan without steps has no ranking.",
        _planned_ranking("", f"The cafe is best.\n{_NO_EXPANSION}"), _GOOD_RANKING,
    ),
    _rank_rule(
        "RANK002", "unknown-item", "error",
        "A plan refers to an unknown item.",
        "Items are numbered from 0. An index beyond the last item was invented by the model.",
        _planned_ranking(_STEP, f"REMAINING: 0, 12\n{_NO_EXPANSION}"), _GOOD_RANKING,
    ),
    _rank_rule(
        "RANK003", "unknown-plan-step", "error",
        "A tool call changes an unknown step, or removes the only step.",
        "Steps are numbered from 0; `lwt_list()` shows the numbers. A plan needs at least one step, because the last step gives "
        "the ranking.",
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
        "If two steps had the same id, one of them would silently be lost. To replace a step, use `lwt_set`.",
        "lwt_insert(0, '(final)=LLM(\"other\")')", "lwt_set(1, '(final)=LLM(\"other\")')",
    ),
    _rank_rule(
        "RANK006", "unknown-item-path", "error",
        "The path in `read` does not exist.",
        "No item has this path; the model invented or misspelt it.",
        'read("items[9].name")', 'read("items[0].name")',
    ),
    _rank_rule(
        "RANK007", "plan-too-large", "error",
        "A plan, a script or an answer is longer than the limits allow.",
        "Without a limit, an endless model answer could be read as a plan.",
    ),
)  # fmt: skip
