"""Rules of GASL: faults found in parsing a text, and faults found in checking a whole program."""

from functools import partial

from .rule import Rule

_rule = partial(Rule, language="gasl")
_NODES = "FIND nodes AS people"
_WHERE = 'FIND nodes WHERE entity_type = "PERSON" AS people'

GASL_RULES = (
    _rule(
        "GASL001", "unknown-command", "error",
        "A line begins with no command and is not a comment.",
        "What it was meant to do could only be guessed.",
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
        "Which conditions belong together could only be guessed.",
        'FIND nodes WHERE (entity_type = "PERSON" AS people', 'FIND nodes WHERE (entity_type = "PERSON") AS people',
    ),
    _rule(
        "GASL004", "unclosed-block", "error",
        "A TRY block has no END.",
        "Where it ends could only be guessed, and a block is a transaction.",
        f"TRY\n{_NODES}", f"TRY\n{_NODES}\nEND",
    ),
    _rule(
        "GASL005", "misplaced-block-word", "error",
        "CATCH ANY, FINALLY, END or TRY stands where no block has it.",
        "A block is TRY, CATCH ANY, FINALLY and END, in this order.",
        f"{_NODES}\nEND", _NODES,
    ),
    _rule(
        "GASL006", "missing-word", "error",
        "A word or sign of the command is missing.",
        "Commands are read by their words; without AS, for instance, the result has no name.",
        'FIND nodes WHERE entity_type = "PERSON" people', _WHERE,
    ),
    _rule(
        "GASL007", "text-without-quotes", "error",
        "Text stands without quotes.",
        "A bare word could be a text, a variable or another field; a comparison takes a text in quotes or `${a variable}`, and no field. "
        "Quotes are offered as a fix only where the field at the left has that very text among its values.",
        "FIND nodes WHERE entity_type = PERSON AS people", _WHERE,
    ),
    _rule(
        "GASL008", "unexpected", "error",
        "Something stands where the command has no place for it.",
        "What it was meant to say could only be guessed.",
        "FIND nodes AS people, others", _NODES,
    ),
    _rule(
        "GASL009", "misspelt-word", "error",
        "A word of a command is misspelt, or is another language's.",
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
        "FIND doesn't say what to find.",
        "Nodes, edges and paths have other fields.",
        'FIND WHERE entity_type = "PERSON" AS people', _WHERE,
    ),
    _rule(
        "GASL012", "not-a-whole-number", "error",
        "A number is written as none may be, or is not whole where only a whole one can stand.",
        "LIMIT, DEPTH, MAXLEN and RADIUS count things.",
        "FIND nodes LIMIT ten AS people", "FIND nodes LIMIT 10 AS people",
    ),
    _rule(
        "GASL013", "compared-with-null", "error",
        "A condition compares with NULL, or asks for a field as another language does.",
        "A comparison with null is unknown, so no row would ever stay.",
        "FIND nodes WHERE age = NULL AS people", "FIND nodes WHERE age IS NULL AS people",
    ),
    _rule(
        "GASL014", "other-language", "error",
        "A command or condition is written as SQL, Cypher, Python or JSON have it.",
        "GASL has few words, and each means one thing.",
        'FIND nodes WHERE name LIKE "Jean%" AS people', 'FIND nodes WHERE name STARTS_WITH "Jean" AS people',
    ),
    _rule(
        "GASL015", "not-a-choice", "error",
        "A word is none of those that the place takes.",
        "Types, functions, directions and statuses are listed.",
        "DECLARE authors AS ARRAY", "DECLARE authors AS LIST",
    ),
    _rule(
        "GASL016", "misplaced-option", "error",
        "An option stands in the wrong place, most often behind AS.",
        "AS and the name come last, so that the end of a command is plain.",
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
        "Two words or numbers touch.",
        "Where one ends could only be guessed.",
        "FIND nodes LIMIT10 AS people", "FIND nodes LIMIT 10 AS people",
    ),
    _rule(
        "GASL019", "odd-quotes", "error",
        "A string stands in typographic quotes, or in three.",
        "Word processors and models make them; strings take the plain ones.",
        "FIND nodes WHERE entity_type = \u201cPERSON\u201d AS people", _WHERE,
    ),
    _rule(
        "GASL020", "lookalike-letter", "error",
        "A letter only looks like the one that was meant, or a character can't be seen.",
        "The words look right and are not.",
        "F\u0406ND nodes AS people", _NODES,
    ),
    _rule(
        "GASL021", "bad-escape", "error",
        "A backslash stands where no escape begins.",
        "Strings have JSON's escapes and `\\'`; a backslash itself is written twice.",
        'FIND nodes WHERE name MATCHES "\\d+" AS people', 'FIND nodes WHERE name MATCHES "\\\\d+" AS people',
    ),
    _rule(
        "GASL022", "number-out-of-range", "error",
        "A number doesn't fit in 64 bits or in a float.",
        "It would not be the same number in every place that reads it.",
        "FIND nodes WHERE age = 99999999999999999999 AS people", "FIND nodes WHERE age = 99 AS people",
    ),
    _rule(
        "GASL023", "program-too-large", "error",
        "A program nests too deep, is too large, or has too many faults.",
        "A limit keeps a hostile text from taking the machine's time and memory.",
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
        "A model that is asked nothing answers anything.",
        'PROCESS people USING "" AS names', 'PROCESS people USING "Give the full name." AS names',
    ),
    _rule(
        "GASL026", "dangling-reason", "error",
        "A reason, a line that starts with `#:`, stands above no command.",
        "It would explain nothing; a comment starts with `#` alone.",
        f"{_NODES}\n#: to have them all", f"#: to have them all\n{_NODES}",
    ),
    _rule(
        "GASL027", "malformed-variable", "error",
        "A variable is written as another language has it, or `${...}` stands where a bare name does.",
        "In conditions a variable is `${name}`; commands take the bare name.",
        "FIND nodes WHERE age > $age AS people", "FIND nodes WHERE age > ${age} AS people",
    ),
    _rule(
        "GASL028", "in-without-list", "error",
        "IN is followed by neither a list nor a variable.",
        "A single value is compared with `=`.",
        'FIND nodes WHERE entity_type IN "PERSON" AS people', 'FIND nodes WHERE entity_type IN ("PERSON") AS people',
    ),
    _rule(
        "GASL029", "program-in-fence", "error",
        "The program stands in a code fence.",
        "Models write one around it; in the program's own file it belongs to nothing.",
        f"```\n{_NODES}\n```", _NODES,
    ),
    _rule(
        "GASL030", "markup-before-command", "error",
        "A bullet, a number, quotes or other markup stands around a command.",
        "A command begins at the start of its line.",
        f"1. {_NODES}", _NODES,
    ),
    _rule(
        "GASL031", "text-after-command", "error",
        "Something follows a command on its line.",
        "A command ends with its line; nothing else parts commands.",
        f"{_NODES};", _NODES,
    ),
    Rule(
        "GASL032", "not-one-command", "error",
        "One command was asked for, and the text has none or several.",
        "A command is run and recorded by itself.",
        language="gasl",
    ),
    _rule(
        "GASL033", "not-a-name", "error",
        "A name has blanks, signs or quotes, or is a word of the language.",
        "Plain names have letters, digits and `_`; any other stands in backticks.",
        "FIND nodes AS my-people", "FIND nodes AS my_people",
    ),
    _rule(
        "GASL034", "split-command", "error",
        "A command goes on over a line break outside brackets.",
        "A line ends a command, so that a forgotten word doesn't swallow the next one.",
        'FIND nodes\n  WHERE entity_type = "PERSON" AS people', _WHERE,
    ),
    _rule(
        "GASL035", "quote-in-text", "error",
        "A quote inside a string ends the string early.",
        "The rest of the text would be lost; write a backslash before the quote, or use the other kind of quotes.",
        'PROCESS people USING "Say "yes" or no." AS answers', 'PROCESS people USING "Say \\"yes\\" or no." AS answers',
    ),
)  # fmt: skip
"""By code. A statement that can't be parsed is reported by the first of these rules that explains it."""


# The rules of GASL programs that are checked on the whole program, with a graph or a state. Rules of parsing are above.
# Examples of rules against a graph are about people and companies: nodes have ``entity_type`` ("PERSON", "COMPANY") and ``age``
# (integers), edges have ``relation`` ("KNOWS", "WORKS_FOR") and ``weight``.

_check_rule = partial(Rule, language="gasl")

GASL_CHECK_RULES = (
    _check_rule(
        "GASL050", "unbound-variable", "error",
        "Nothing binds the variable that a command reads.",
        "The command would fail with `binding_failure`, and stop the plan.",
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
        "A variable is bound anew before anything has used it.",
        "What the first command found is lost; most often one of the two names is a slip.",
        "FIND nodes AS people\nFIND edges AS people\nCOUNT people AS n",
        "FIND nodes AS people\nFIND edges AS links\nCOUNT people AS n",
    ),
    _check_rule(
        "GASL053", "on-apart", "warning",
        "An ON doesn't stand directly behind the command whose status it names.",
        "A status that stops has stopped the plan before the ON is reached.",
        "FIND nodes AS people\nFIND edges AS links\nON EMPTY people THEN FIND nodes AS people",
        "FIND nodes AS people\nON EMPTY people THEN FIND nodes AS people\nFIND edges AS links",
    ),
    _check_rule(
        "GASL054", "named-like-keyword", "info",
        "A variable is named like a word of the language.",
        "It works, and is hard to read.",
        "FIND nodes AS limit", "FIND nodes AS first_ten",
    ),
    _check_rule(
        "GASL055", "undeclared-key", "error",
        "A key of the state, or the key above it, is not declared.",
        "UPDATE of it would fail with `binding_failure`. Where the state isn't known this is a warning: an earlier plan may have"
        " declared it.",
        "DECLARE people AS LIST\nFIND nodes AS found\nUPDATE links WITH found",
        "DECLARE people AS LIST\nFIND nodes AS found\nUPDATE people WITH found",
    ),
    _check_rule(
        "GASL056", "redeclared-key", "error",
        "A key is declared again with another type.",
        "What it holds is of the first type; `schema_mismatch`.",
        "DECLARE people AS LIST\nDECLARE people AS DICT", "DECLARE people AS LIST\nDECLARE people AS LIST",
    ),
    _check_rule(
        "GASL057", "parent-is-no-dict", "error",
        "A key is declared inside one that is not a DICT.",
        "Only a DICT has keys in it.",
        "DECLARE people AS LIST\nDECLARE people.old AS LIST", "DECLARE people AS DICT\nDECLARE people.old AS LIST",
    ),
    _check_rule(
        "GASL058", "update-shape", "error",
        "A key is updated with something that its type can't hold.",
        "The command would fail with `schema_mismatch`; nothing would be kept.",
        "DECLARE total AS COUNTER\nFIND nodes AS people\nUPDATE total WITH people",
        "DECLARE total AS COUNTER\nFIND nodes AS people\nCOUNT people AS n\nUPDATE total WITH n",
    ),
    _check_rule(
        "GASL059", "wrong-kind", "error",
        "A command is given what it can't work on, as a number where items are needed.",
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
        "SET names what is not a setting.",
        "The plan would go on with the old settings, unnoticed.",
        "SET adapter.caps.max_path_lenght = 2", "SET adapter.caps.max_path_length = 2",
    ),
    _check_rule(
        "GASL062", "setting-value", "error",
        "SET gives a setting a value that it doesn't take.",
        "Settings have types and ranges.",
        "SET llm.temperature = 7", "SET llm.temperature = 0.7",
    ),
    _check_rule(
        "GASL063", "above-ceiling", "warning",
        "A number is above the ceiling that the host set. For SET this is an error.",
        "SET is refused; a search goes no further than the ceiling.",
        "FIND nodes AS people\nWALK people DEPTH 1000000 AS around", "FIND nodes AS people\nWALK people DEPTH 2 AS around",
    ),
    _check_rule(
        "GASL064", "unknown-algorithm", "error",
        "MEASURE names an algorithm that there isn't.",
        "The command couldn't run.",
        "MEASURE graph USING pagerang AS ranks", "MEASURE graph USING pagerank AS ranks",
    ),
    _check_rule(
        "GASL065", "never-true", "warning",
        "A test is true of nothing, or can't be true where another one is that must be, too.",
        "The command would find nothing, whatever the graph has.",
        'FIND nodes WHERE entity_type = "PERSON" AND entity_type = "COMPANY" AS both',
        'FIND nodes WHERE entity_type = "PERSON" OR entity_type = "COMPANY" AS both',
    ),
    _check_rule(
        "GASL066", "quantifier", "error",
        "ANY, ALL or NONE stands in a condition that is not on paths, or a path's `node.x` lacks one of them.",
        "Only a path has several nodes and edges.",
        'FIND nodes WHERE ANY node.entity_type = "PERSON" AS people', 'FIND nodes WHERE entity_type = "PERSON" AS people',
    ),
    _check_rule(
        "GASL067", "bad-pattern", "error",
        "The pattern of MATCHES is none.",
        "Patterns are those of RE2, which take time in proportion to the text: no look-around and no back-references.",
        'FIND nodes WHERE id MATCHES "(" AS people', 'FIND nodes WHERE id MATCHES "[(]" AS people',
    ),
    _check_rule(
        "GASL068", "field-without-item", "error",
        "ASSERT or BRANCH tests a field.",
        "There is no item that could have it; variables are written `${name}`.",
        "FIND nodes AS people\nASSERT people > 0", "FIND nodes AS people\nASSERT LEN ${people} > 0",
    ),
    _check_rule(
        "GASL069", "ends-without-edge", "warning",
        "`source.x`, `target.x` or `ANY node.x` is tested where it isn't known.",
        "Nodes have no ends, and edges and paths in a variable know only the ids of theirs; the test is never true.",
        'FIND edges AS links\nSELECT links WHERE source.age > 30 AS old',
        "FIND edges WHERE source.age > 30 AS old",
    ),
    _check_rule(
        "GASL070", "unknown-attribute", "error",
        "Nothing in the graph has this attribute.",
        "A test of it is never true, and an order by it has no meaning. An error where the command can find nothing for it, and in "
        "ORDER BY, BY and FIELDS; a warning inside OR, NOT and IS NULL, where the rest may still be meant.",
        'FIND nodes WHERE entity_tpye = "PERSON" AS people', 'FIND nodes WHERE entity_type = "PERSON" AS people',
    ),
    _check_rule(
        "GASL071", "unknown-value", "warning",
        "The attribute never has this value in the graph.",
        "The test is never true; most often the spelling differs. A warning: that there is none may be what is asked.",
        'FIND nodes WHERE entity_type = "person" AS people', 'FIND nodes WHERE entity_type = "PERSON" AS people',
    ),
    _check_rule(
        "GASL072", "attribute-type", "error",
        "An attribute is compared with a value of a type that it never has.",
        "Different types are unequal and have no order, so the test is never true; `\"30\"` is not 30. A warning where the command"
        " may still find something.",
        'FIND nodes WHERE age > "30" AS old', "FIND nodes WHERE age > 30 AS old",
    ),
    _check_rule(
        "GASL073", "unknown-column", "error",
        "The rows of a variable have no such field.",
        "The command would fail with `schema_mismatch`.",
        "FIND nodes AS people\nCOUNT people BY age AS ages\nRANK ages BY number AS ranked",
        "FIND nodes AS people\nCOUNT people BY age AS ages\nRANK ages BY count AS ranked",
    ),
    _check_rule(
        "GASL074", "unused-ignore-comment", "warning",
        "An ignore comment silences nothing.",
        "It would hide a fault that comes later.",
        "# knotwork: ignore[GASL052]\nFIND nodes AS people",
        "FIND nodes AS people\n# knotwork: ignore[GASL052]\nFIND edges AS people",
    ),
    _check_rule(
        "GASL075", "finds-nothing", "warning",
        "LIMIT, MAXLEN or DEPTH is 0.",
        "The command finds nothing, whatever the graph has.",
        "FIND nodes LIMIT 0 AS people", "FIND nodes LIMIT 10 AS people",
    ),
)  # fmt: skip
