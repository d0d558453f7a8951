"""Rules for GASL about parsing; the rules about complete programs are in ``gasl_check_rules``."""

from functools import partial

from .rule import Rule

_rule = partial(Rule, language="gasl")
_NODES = "FIND nodes AS people"
_WHERE = 'FIND nodes WHERE entity_type = "PERSON" AS people'

GASL_RULES = (
    _rule(
        "GASL001", "unknown-command", "error",
        "A line is neither a command nor a comment.",
        "The meaning of the line is unclear.",
        "FIDN nodes AS people", _NODES,
    ),
    _rule(
        "GASL002", "unclosed-text", "error",
        "A string has no closing quote on its line.",
        "Everything up to the next quote would become part of the string.",
        'FIND nodes WHERE entity_type = "PERSON AS people', _WHERE,
    ),
    _rule(
        "GASL003", "unbalanced-bracket", "error",
        "A bracket is not closed, has no opening bracket, or is missing.",
        "The grouping of the conditions is unclear.",
        'FIND nodes WHERE (entity_type = "PERSON" AS people', 'FIND nodes WHERE (entity_type = "PERSON") AS people',
    ),
    _rule(
        "GASL004", "unclosed-block", "error",
        "A TRY block has no END.",
        "A block is a transaction, so its end must be certain.",
        f"TRY\n{_NODES}", f"TRY\n{_NODES}\nEND",
    ),
    _rule(
        "GASL005", "misplaced-block-word", "error",
        "CATCH ANY, FINALLY, END or TRY is in the wrong place.",
        "A block is TRY, CATCH ANY, FINALLY and END, in this order.",
        f"{_NODES}\nEND", _NODES,
    ),
    _rule(
        "GASL006", "missing-word", "error",
        "A keyword or a symbol of the command is missing.",
        "Keywords separate the parts of a command. Without AS, for example, the result has no name.",
        'FIND nodes WHERE entity_type = "PERSON" people', _WHERE,
    ),
    _rule(
        "GASL007", "text-without-quotes", "error",
        "A string is not in quotes.",
        "An unquoted word could be a string, a variable or another field. A list accepts only quoted strings, numbers, true, false "
        "and null. A fix adds the quotes only if the word is a known value of the field.",
        "FIND nodes WHERE entity_type IN (PERSON) AS people", 'FIND nodes WHERE entity_type IN ("PERSON") AS people',
    ),
    _rule(
        "GASL008", "unexpected", "error",
        "The command has an unexpected part.",
        "The meaning of the command is unclear.",
        "FIND nodes AS people, others", _NODES,
    ),
    _rule(
        "GASL009", "misspelt-word", "error",
        "A keyword is misspelt, or belongs to another language.",
        "The rest of the command can't be read.",
        'FIND nodes WHRE entity_type = "PERSON" AS people', _WHERE,
    ),
    _rule(
        "GASL010", "missing-part", "error",
        "A name, a field or a condition is missing.",
        "The command is incomplete and can't run.",
        "FIND nodes AS", _NODES,
    ),
    _rule(
        "GASL011", "missing-target", "error",
        "FIND does not state whether it searches nodes, edges, paths, patterns or cycles.",
        "Each kind of search returns items with different fields.",
        'FIND WHERE entity_type = "PERSON" AS people', _WHERE,
    ),
    _rule(
        "GASL012", "not-a-whole-number", "error",
        "A number has an invalid form, or is not whole where a whole number is required.",
        "LIMIT, DEPTH, MAXLEN and RADIUS take whole numbers.",
        "FIND nodes LIMIT ten AS people", "FIND nodes LIMIT 10 AS people",
    ),
    _rule(
        "GASL013", "compared-with-null", "error",
        "A condition compares a field with NULL, or uses another language's syntax to test whether a field exists.",
        "A comparison with null is never true, so the command would find nothing. Write IS NULL.",
        "FIND nodes WHERE age = NULL AS people", "FIND nodes WHERE age IS NULL AS people",
    ),
    _rule(
        "GASL014", "other-language", "error",
        "A command or condition has the syntax of SQL, Cypher, Python or JSON.",
        "GASL has its own small set of keywords; other syntax can't be read reliably.",
        'FIND nodes WHERE name LIKE "Jean%" AS people', 'FIND nodes WHERE name STARTS_WITH "Jean" AS people',
    ),
    _rule(
        "GASL015", "not-a-choice", "error",
        "A word is not one of the words that are allowed here.",
        "Types, functions, directions and statuses have fixed names.",
        "DECLARE authors AS ARRAY", "DECLARE authors AS LIST",
    ),
    _rule(
        "GASL016", "misplaced-option", "error",
        "An option is in the wrong place, usually after AS.",
        "AS and the name must come last: they mark the end of the command.",
        "FIND nodes AS people LIMIT 10", "FIND nodes LIMIT 10 AS people",
    ),
    _rule(
        "GASL017", "repeated", "error",
        "An option, a column or a label is given twice.",
        "One of the two would silently have no effect.",
        "FIND nodes LIMIT 10 LIMIT 20 AS people", "FIND nodes LIMIT 20 AS people",
    ),
    _rule(
        "GASL018", "touching-words", "error",
        "The space between two words or numbers is missing.",
        "It is unclear where the first word ends.",
        "FIND nodes LIMIT10 AS people", "FIND nodes LIMIT 10 AS people",
    ),
    _rule(
        "GASL019", "odd-quotes", "error",
        "A string is in typographic or triple quotes.",
        "Word processors and models often produce such quotes, but a string needs plain `\"` or `'`.",
        "FIND nodes WHERE entity_type = \u201cPERSON\u201d AS people", _WHERE,
    ),
    _rule(
        "GASL020", "lookalike-letter", "error",
        "A letter of another alphabet looks like the intended letter, or a character is invisible.",
        "The word looks correct, but the parser reads a different word.",
        "F\u0406ND nodes AS people", _NODES,
    ),
    _rule(
        "GASL021", "bad-escape", "error",
        "A backslash does not begin a valid escape.",
        "Strings use JSON's escapes and `\\'`. Write a literal backslash as two backslashes.",
        'FIND nodes WHERE name MATCHES "\\d+" AS people', 'FIND nodes WHERE name MATCHES "\\\\d+" AS people',
    ),
    _rule(
        "GASL022", "number-out-of-range", "error",
        "An integer does not fit into 64 bits, or another number does not fit into a float.",
        "Other programs would read a different number.",
        "FIND nodes WHERE age = 99999999999999999999 AS people", "FIND nodes WHERE age = 99 AS people",
    ),
    _rule(
        "GASL023", "program-too-large", "error",
        "A program is nested too deeply, is too large, or has too many faults.",
        "Without a limit, a malicious program could use too much time and memory.",
        f"ASSERT {'NOT ' * 100}LEN ${{people}} > 0", "ASSERT NOT LEN ${people} > 0",
    ),
    _rule(
        "GASL024", "reserved-key", "error",
        "A key of the state contains the reserved part `_meta`, `items` or `value`.",
        "The file format of the state reserves these words.",
        "DECLARE authors.items AS LIST", "DECLARE authors AS LIST",
    ),
    _rule(
        "GASL025", "empty-text", "error",
        "An instruction, a label or a plan's id is empty.",
        "Without an instruction, a model gives an arbitrary answer. An empty label or id does not identify anything.",
        'PROCESS people USING "" AS names', 'PROCESS people USING "Give the full name." AS names',
    ),
    _rule(
        "GASL026", "dangling-reason", "error",
        "A reason (a line that begins with `#:`) is not followed by a command.",
        "A reason belongs to the next command. To write a comment, begin the line with `#`.",
        f"{_NODES}\n#: to have them all", f"#: to have them all\n{_NODES}",
    ),
    _rule(
        "GASL027", "malformed-variable", "error",
        "A variable has the syntax of another language, or `${...}` is used instead of a plain name.",
        "In a condition, write a variable as `${name}`; elsewhere in a command, write only the name.",
        "FIND nodes WHERE age > $age AS people", "FIND nodes WHERE age > ${age} AS people",
    ),
    _rule(
        "GASL028", "in-without-list", "error",
        "IN is not followed by a list or a variable.",
        "To compare with a single value, write `=`.",
        'FIND nodes WHERE entity_type IN "PERSON" AS people', 'FIND nodes WHERE entity_type IN ("PERSON") AS people',
    ),
    _rule(
        "GASL029", "program-in-fence", "error",
        "The program is inside a code fence.",
        "Models often put a fence around a program, but the fence is not part of the program.",
        f"```\n{_NODES}\n```", _NODES,
    ),
    _rule(
        "GASL030", "markup-before-command", "error",
        "A command has a bullet, a number, quotes or other markup around it.",
        "A command begins at the start of its line.",
        f"1. {_NODES}", _NODES,
    ),
    _rule(
        "GASL031", "text-after-command", "error",
        "Text follows a command on its line.",
        "Only a line break separates two commands.",
        f"{_NODES};", _NODES,
    ),
    Rule(
        "GASL032", "not-one-command", "error",
        "The text must contain exactly one command.",
        "Each command is run and recorded separately.",
        language="gasl",
    ),
    _rule(
        "GASL033", "not-a-name", "error",
        "A name contains spaces, special characters or quotes, or is a keyword.",
        "A name without backticks has only letters, digits and `_`. Write any other name in backticks.",
        "FIND nodes AS my-people", "FIND nodes AS my_people",
    ),
    _rule(
        "GASL034", "split-command", "error",
        "A command continues after a line break outside brackets.",
        "A command ends at the end of its line, so an incomplete command can't absorb the next one.",
        'FIND nodes\n  WHERE entity_type = "PERSON" AS people', _WHERE,
    ),
    _rule(
        "GASL035", "quote-in-text", "error",
        "A quote inside a string ends the string early.",
        "The rest of the text would be lost. Write a backslash before the quote, or use the other kind of quotes.",
        'PROCESS people USING "Say "yes" or no." AS answers', 'PROCESS people USING "Say \\"yes\\" or no." AS answers',
    ),
    _rule(
        "GASL077", "unnamed-column", "error",
        "A column that is not a plain field has no name.",
        "The last AS of a command names its variable, so a computed column needs its own AS.",
        "SELECT people FIELDS lower(name) AS key", "SELECT people FIELDS lower(name) AS key AS rows",
    ),
)  # fmt: skip
"""The rules about parsing, sorted by code."""
