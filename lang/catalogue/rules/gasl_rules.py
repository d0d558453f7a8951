"""Rules for GASL: faults found in parsing a text, and faults found in checking a whole program."""

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
        "Everything up to the next quote would become part of the text.",
        'FIND nodes WHERE entity_type = "PERSON AS people', _WHERE,
    ),
    _rule(
        "GASL003", "unbalanced-bracket", "error",
        "A bracket is not closed, closes nothing, or is missing.",
        "The grouping of the conditions is unclear.",
        'FIND nodes WHERE (entity_type = "PERSON" AS people', 'FIND nodes WHERE (entity_type = "PERSON") AS people',
    ),
    _rule(
        "GASL004", "unclosed-block", "error",
        "A TRY block has no END.",
        "The end of the block is unclear, and a block is a transaction.",
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
        "A keyword or a sign of the command is missing.",
        "Keywords separate the parts of a command; without AS, for example, the result has no name.",
        'FIND nodes WHERE entity_type = "PERSON" people', _WHERE,
    ),
    _rule(
        "GASL007", "text-without-quotes", "error",
        "A text has no quotes.",
        "An unquoted word could be a text, a variable or another field. A comparison takes a text in quotes or `${a variable}`, but not a "
        "field. An edit adds the quotes only if the field on the left has this text among its values.",
        "FIND nodes WHERE entity_type = PERSON AS people", _WHERE,
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
        "The command would have nothing to work on.",
        "FIND nodes AS", _NODES,
    ),
    _rule(
        "GASL011", "missing-target", "error",
        "FIND lacks nodes, edges or paths.",
        "Nodes, edges and paths have different fields.",
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
        "A condition compares with NULL, or tests whether a field exists in the syntax of another language.",
        "The result of a comparison with null is unknown, so that no item would be found. Write IS NULL.",
        "FIND nodes WHERE age = NULL AS people", "FIND nodes WHERE age IS NULL AS people",
    ),
    _rule(
        "GASL014", "other-language", "error",
        "A command or condition has the syntax of SQL, Cypher, Python or JSON.",
        "GASL has few keywords, and each has one meaning.",
        'FIND nodes WHERE name LIKE "Jean%" AS people', 'FIND nodes WHERE name STARTS_WITH "Jean" AS people',
    ),
    _rule(
        "GASL015", "not-a-choice", "error",
        "A word is not one of the allowed words.",
        "Types, functions, directions and statuses have fixed names.",
        "DECLARE authors AS ARRAY", "DECLARE authors AS LIST",
    ),
    _rule(
        "GASL016", "misplaced-option", "error",
        "An option is in the wrong place, usually after AS.",
        "AS and the name come last, so that the end of a command is clear.",
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
        "The blank between two words or numbers is missing.",
        "The end of the first one is unclear.",
        "FIND nodes LIMIT10 AS people", "FIND nodes LIMIT 10 AS people",
    ),
    _rule(
        "GASL019", "odd-quotes", "error",
        "A string is in typographic or triple quotes.",
        "Word processors and models write them; strings need plain quotes.",
        "FIND nodes WHERE entity_type = \u201cPERSON\u201d AS people", _WHERE,
    ),
    _rule(
        "GASL020", "lookalike-letter", "error",
        "A letter of another alphabet looks like the intended letter, or a character is invisible.",
        "The word looks correct but is another word.",
        "F\u0406ND nodes AS people", _NODES,
    ),
    _rule(
        "GASL021", "bad-escape", "error",
        "A backslash does not begin a valid escape.",
        "Strings have JSON's escapes and `\\'`; write a backslash twice.",
        'FIND nodes WHERE name MATCHES "\\d+" AS people', 'FIND nodes WHERE name MATCHES "\\\\d+" AS people',
    ),
    _rule(
        "GASL022", "number-out-of-range", "error",
        "A number doesn't fit in 64 bits or in a float.",
        "Different programs would read different numbers.",
        "FIND nodes WHERE age = 99999999999999999999 AS people", "FIND nodes WHERE age = 99 AS people",
    ),
    _rule(
        "GASL023", "program-too-large", "error",
        "A program is nested too deeply, is too large, or has too many faults.",
        "A limit prevents a hostile text from using too much time and memory.",
        f"ASSERT {'NOT ' * 100}LEN ${{people}} > 0", "ASSERT NOT LEN ${people} > 0",
    ),
    _rule(
        "GASL024", "reserved-key", "error",
        "A key of the state has `_meta`, `items` or `value` as a part.",
        "The state's own format uses these words.",
        "DECLARE authors.items AS LIST", "DECLARE authors AS LIST",
    ),
    _rule(
        "GASL025", "empty-text", "error",
        "An instruction, a label or a plan's id is empty.",
        "A model without a task gives an arbitrary answer.",
        'PROCESS people USING "" AS names', 'PROCESS people USING "Give the full name." AS names',
    ),
    _rule(
        "GASL026", "dangling-reason", "error",
        "A reason, a line that starts with `#:`, has no command below it.",
        "A reason belongs to the next command; a comment starts with `#` only.",
        f"{_NODES}\n#: to have them all", f"#: to have them all\n{_NODES}",
    ),
    _rule(
        "GASL027", "malformed-variable", "error",
        "A variable has the syntax of another language, or `${...}` is used instead of a plain name.",
        "In conditions a variable is `${name}`; commands take the plain name.",
        "FIND nodes WHERE age > $age AS people", "FIND nodes WHERE age > ${age} AS people",
    ),
    _rule(
        "GASL028", "in-without-list", "error",
        "IN is followed by neither a list nor a variable.",
        "To compare with a single value, write `=`.",
        'FIND nodes WHERE entity_type IN "PERSON" AS people', 'FIND nodes WHERE entity_type IN ("PERSON") AS people',
    ),
    _rule(
        "GASL029", "program-in-fence", "error",
        "The program is inside a code fence.",
        "Models often write a fence around a program; the fence is not part of the program.",
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
        "Commands are separated by line breaks only.",
        f"{_NODES};", _NODES,
    ),
    Rule(
        "GASL032", "not-one-command", "error",
        "The text must be exactly one command, but has none or several.",
        "Each command is run and recorded separately.",
        language="gasl",
    ),
    _rule(
        "GASL033", "not-a-name", "error",
        "A name has blanks, signs or quotes, or is a keyword.",
        "Plain names have letters, digits and `_`; write any other name in backticks.",
        "FIND nodes AS my-people", "FIND nodes AS my_people",
    ),
    _rule(
        "GASL034", "split-command", "error",
        "A command continues after a line break outside of brackets.",
        "The end of a line ends a command, so that an incomplete command does not include the next one.",
        'FIND nodes\n  WHERE entity_type = "PERSON" AS people', _WHERE,
    ),
    _rule(
        "GASL035", "quote-in-text", "error",
        "A quote inside a string ends the string early.",
        "The rest of the text would be lost. Write a backslash before the quote, or use the other kind of quotes.",
        'PROCESS people USING "Say "yes" or no." AS answers', 'PROCESS people USING "Say \\"yes\\" or no." AS answers',
    ),
)  # fmt: skip
"""The rules about parsing, sorted by code. The first rule that explains why a statement can't be parsed reports the statement."""


# The rules that check the whole program, with a graph or a state. The rules about parsing are above.
# Examples that need a graph are about people and companies: nodes have ``entity_type`` ("PERSON", "COMPANY") and ``age``
# (integers), edges have ``relation`` ("KNOWS", "WORKS_FOR") and ``weight``.

_check_rule = partial(Rule, language="gasl")

GASL_CHECK_RULES = (
    _check_rule(
        "GASL050", "unbound-variable", "error",
        "A command reads a variable that no command binds.",
        "The command would fail with `binding_failure` and stop the plan.",
        "FIND nodes AS people\nCOUNT poeple AS n", "FIND nodes AS people\nCOUNT people AS n",
    ),
    _check_rule(
        "GASL051", "used-before-bound", "error",
        "A variable is used before it is bound.",
        "Commands run in the order of the text.",
        "COUNT people AS n\nFIND nodes AS people", "FIND nodes AS people\nCOUNT people AS n",
    ),
    _check_rule(
        "GASL052", "overwritten", "warning",
        "A variable is overwritten before any command has read it.",
        "The result of the first command is lost. Usually one of the two names is misspelt.",
        "FIND nodes AS people\nFIND edges AS people\nCOUNT people AS n",
        "FIND nodes AS people\nFIND edges AS links\nCOUNT people AS n",
    ),
    _check_rule(
        "GASL053", "on-apart", "warning",
        "An ON does not directly follow the command whose status it tests.",
        "A status that stops the plan stops it before the ON is reached.",
        "FIND nodes AS people\nFIND edges AS links\nON EMPTY people THEN FIND nodes AS people",
        "FIND nodes AS people\nON EMPTY people THEN FIND nodes AS people\nFIND edges AS links",
    ),
    _check_rule(
        "GASL054", "named-like-keyword", "info",
        "A variable has the name of a keyword.",
        "The name is valid, but hard to read.",
        "FIND nodes AS limit", "FIND nodes AS first_ten",
    ),
    _check_rule(
        "GASL055", "undeclared-key", "error",
        "A key of the state, or the key above it, is not declared.",
        "An UPDATE of the key would fail with `binding_failure`. If the state is unknown, this is a warning: an earlier plan may have"
        " declared the key.",
        "DECLARE people AS LIST\nFIND nodes AS found\nUPDATE links WITH found",
        "DECLARE people AS LIST\nFIND nodes AS found\nUPDATE people WITH found",
    ),
    _check_rule(
        "GASL056", "redeclared-key", "error",
        "A key is declared again with another type.",
        "The value of the key has the first type; the command would fail with `schema_mismatch`.",
        "DECLARE people AS LIST\nDECLARE people AS DICT", "DECLARE people AS LIST\nDECLARE people AS LIST",
    ),
    _check_rule(
        "GASL057", "parent-is-no-dict", "error",
        "A key is declared inside a key that is not a DICT.",
        "Only a DICT can contain keys.",
        "DECLARE people AS LIST\nDECLARE people.old AS LIST", "DECLARE people AS DICT\nDECLARE people.old AS LIST",
    ),
    _check_rule(
        "GASL058", "update-shape", "error",
        "A key is updated with a value that its type does not allow.",
        "The command would fail with `schema_mismatch`, and the state would not change.",
        "DECLARE total AS COUNTER\nFIND nodes AS people\nUPDATE total WITH people",
        "DECLARE total AS COUNTER\nFIND nodes AS people\nCOUNT people AS n\nUPDATE total WITH n",
    ),
    _check_rule(
        "GASL059", "wrong-kind", "error",
        "The variable of a command has the wrong kind, for example a number instead of items.",
        "The command would fail with `schema_mismatch`.",
        "FIND nodes AS people\nCOUNT people AS n\nSELECT n FIELDS id AS ids",
        "FIND nodes AS people\nCOUNT people AS n\nSELECT people FIELDS id AS ids",
    ),
    _check_rule(
        "GASL060", "repeated-field", "warning",
        "A field or a computation is listed twice.",
        "The second has no effect.",
        "FIND nodes AS people\nSELECT people FIELDS id, age, id AS ids",
        "FIND nodes AS people\nSELECT people FIELDS id, age AS ids",
    ),
    _check_rule(
        "GASL061", "unknown-setting", "error",
        "SET names an unknown setting.",
        "The plan would continue with the old settings, unnoticed.",
        "SET adapter.caps.max_path_lenght = 2", "SET adapter.caps.max_path_length = 2",
    ),
    _check_rule(
        "GASL062", "setting-value", "error",
        "SET gives a setting an invalid value.",
        "Settings have types and ranges.",
        "SET llm.temperature = 7", "SET llm.temperature = 0.7",
    ),
    _check_rule(
        "GASL063", "above-ceiling", "warning",
        "A number is above the host's limit. For SET this is an error.",
        "SET is refused; a search stops at the limit.",
        "FIND nodes AS people\nWALK people DEPTH 1000000 AS around", "FIND nodes AS people\nWALK people DEPTH 2 AS around",
    ),
    _check_rule(
        "GASL064", "unknown-algorithm", "error",
        "MEASURE names an unknown algorithm.",
        "The command could not run.",
        "MEASURE graph USING pagerang AS ranks", "MEASURE graph USING pagerank AS ranks",
    ),
    _check_rule(
        "GASL065", "never-true", "warning",
        "A test is never true, or contradicts another test that must also be true.",
        "The command would find nothing in any graph.",
        'FIND nodes WHERE entity_type = "PERSON" AND entity_type = "COMPANY" AS both',
        'FIND nodes WHERE entity_type = "PERSON" OR entity_type = "COMPANY" AS both',
    ),
    _check_rule(
        "GASL066", "quantifier", "error",
        "ANY, ALL or NONE is used in a condition that does not test paths, or a path's `node.x` lacks one of them.",
        "Only a path has several nodes and edges.",
        'FIND nodes WHERE ANY node.entity_type = "PERSON" AS people', 'FIND nodes WHERE entity_type = "PERSON" AS people',
    ),
    _check_rule(
        "GASL067", "bad-pattern", "error",
        "The pattern of MATCHES is invalid.",
        "Patterns have RE2's syntax, without look-around and back-references, so that a match takes time proportional to the text.",
        'FIND nodes WHERE id MATCHES "(" AS people', 'FIND nodes WHERE id MATCHES "[(]" AS people',
    ),
    _check_rule(
        "GASL068", "field-without-item", "error",
        "ASSERT or BRANCH tests a field.",
        "ASSERT and BRANCH test variables, not items. A variable is written `${name}`.",
        "FIND nodes AS people\nASSERT people > 0", "FIND nodes AS people\nASSERT LEN ${people} > 0",
    ),
    _check_rule(
        "GASL069", "ends-without-edge", "warning",
        "`source.x`, `target.x` or `ANY node.x` is tested where its value is unknown.",
        "Nodes have no ends. Edges and paths in a variable contain only the ids of their nodes, so that the test is never true.",
        'FIND edges AS links\nSELECT links WHERE source.age > 30 AS old',
        "FIND edges WHERE source.age > 30 AS old",
    ),
    _check_rule(
        "GASL070", "unknown-attribute", "error",
        "No node, edge or path of the graph has this attribute.",
        "A test of the attribute is never true, and it gives no order. This is an error if the command can therefore find nothing, and in "
        "ORDER BY, BY and FIELDS; inside OR, NOT and IS NULL it is a warning.",
        'FIND nodes WHERE entity_tpye = "PERSON" AS people', 'FIND nodes WHERE entity_type = "PERSON" AS people',
    ),
    _check_rule(
        "GASL071", "unknown-value", "warning",
        "The attribute never has this value in the graph.",
        "The test is never true; usually the spelling differs. It is only a warning, because the command may ask whether the value exists.",
        'FIND nodes WHERE entity_type = "person" AS people', 'FIND nodes WHERE entity_type = "PERSON" AS people',
    ),
    _check_rule(
        "GASL072", "attribute-type", "error",
        "An attribute is compared with a value of a type that it never has.",
        "Values of different types are unequal and have no order, so that the test is never true: `\"30\"` is not 30. This is a warning"
        " if the command may still find something.",
        'FIND nodes WHERE age > "30" AS old', "FIND nodes WHERE age > 30 AS old",
    ),
    _check_rule(
        "GASL073", "unknown-column", "error",
        "The rows of a variable do not have this field.",
        "The command would fail with `schema_mismatch`.",
        "FIND nodes AS people\nCOUNT people BY age AS ages\nRANK ages BY number AS ranked",
        "FIND nodes AS people\nCOUNT people BY age AS ages\nRANK ages BY count AS ranked",
    ),
    _check_rule(
        "GASL074", "unused-ignore-comment", "warning",
        "An ignore comment silences nothing.",
        "The comment could hide a fault that is made later.",
        "# knotwork: ignore[GASL052]\nFIND nodes AS people",
        "FIND nodes AS people\n# knotwork: ignore[GASL052]\nFIND edges AS people",
    ),
    _check_rule(
        "GASL075", "finds-nothing", "warning",
        "LIMIT, MAXLEN or DEPTH is 0.",
        "The command finds nothing in any graph.",
        "FIND nodes LIMIT 0 AS people", "FIND nodes LIMIT 10 AS people",
    ),
)  # fmt: skip
