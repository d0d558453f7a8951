"""The rules of GASL programs that a whole program, a graph or a state shows. What reading finds is in ``gasl``.

Examples of rules against a graph are about people and companies: nodes have ``entity_type`` ("PERSON", "COMPANY") and ``age``
(integers), edges have ``relation`` ("KNOWS", "WORKS_FOR") and ``weight``.
"""

from functools import partial

from .rule import Rule

__all__ = ["GASL_CHECK_RULES"]

_rule = partial(Rule, language="gasl")

GASL_CHECK_RULES = (
    _rule(
        "GASL050", "unbound-variable", "error",
        "Nothing binds the variable that a command reads.",
        "The command would fail with `binding_failure`, and stop the plan.",
        "FIND nodes AS people\nCOUNT poeple AS n", "FIND nodes AS people\nCOUNT people AS n",
    ),
    _rule(
        "GASL051", "used-before-bound", "error",
        "A variable is used before it is bound.",
        "Commands run in the order of the text.",
        "COUNT people AS n\nFIND nodes AS people", "FIND nodes AS people\nCOUNT people AS n",
    ),
    _rule(
        "GASL052", "overwritten", "warning",
        "A variable is bound anew before anything has used it.",
        "What the first command found is lost; most often one of the two names is a slip.",
        "FIND nodes AS people\nFIND edges AS people\nCOUNT people AS n",
        "FIND nodes AS people\nFIND edges AS links\nCOUNT people AS n",
    ),
    _rule(
        "GASL053", "on-apart", "warning",
        "An ON doesn't stand directly behind the command whose status it names.",
        "A status that stops has stopped the plan before the ON is reached.",
        "FIND nodes AS people\nFIND edges AS links\nON EMPTY people THEN FIND nodes AS people",
        "FIND nodes AS people\nON EMPTY people THEN FIND nodes AS people\nFIND edges AS links",
    ),
    _rule(
        "GASL054", "named-like-keyword", "info",
        "A variable is named like a word of the language.",
        "It works, and is hard to read.",
        "FIND nodes AS limit", "FIND nodes AS first_ten",
    ),
    _rule(
        "GASL055", "undeclared-key", "error",
        "A key of the state, or the key above it, is not declared.",
        "UPDATE of it would fail with `binding_failure`. Where the state isn't known this is a warning: an earlier plan may have"
        " declared it.",
        "DECLARE people AS LIST\nFIND nodes AS found\nUPDATE links WITH found",
        "DECLARE people AS LIST\nFIND nodes AS found\nUPDATE people WITH found",
    ),
    _rule(
        "GASL056", "redeclared-key", "error",
        "A key is declared again with another type.",
        "What it holds is of the first type; `schema_mismatch`.",
        "DECLARE people AS LIST\nDECLARE people AS DICT", "DECLARE people AS LIST\nDECLARE people AS LIST",
    ),
    _rule(
        "GASL057", "parent-is-no-dict", "error",
        "A key is declared inside one that is no DICT.",
        "Only a DICT has keys in it.",
        "DECLARE people AS LIST\nDECLARE people.old AS LIST", "DECLARE people AS DICT\nDECLARE people.old AS LIST",
    ),
    _rule(
        "GASL058", "update-shape", "error",
        "A key is updated with something that its type can't hold.",
        "The command would fail with `schema_mismatch`; nothing would be kept.",
        "DECLARE total AS COUNTER\nFIND nodes AS people\nUPDATE total WITH people",
        "DECLARE total AS COUNTER\nFIND nodes AS people\nCOUNT people AS n\nUPDATE total WITH n",
    ),
    _rule(
        "GASL059", "wrong-kind", "error",
        "A command is given what it can't work on, as a number where items are needed.",
        "The command would fail with `schema_mismatch`.",
        "FIND nodes AS people\nCOUNT people AS n\nSELECT n FIELDS id AS ids",
        "FIND nodes AS people\nCOUNT people AS n\nSELECT people FIELDS id AS ids",
    ),
    _rule(
        "GASL060", "repeated-field", "warning",
        "A field or a computation is listed twice.",
        "The second has no effect.",
        "FIND nodes AS people\nSELECT people FIELDS id, age, id AS ids",
        "FIND nodes AS people\nSELECT people FIELDS id, age AS ids",
    ),
    _rule(
        "GASL061", "unknown-setting", "error",
        "SET names what is no setting.",
        "The plan would go on with the old settings, unnoticed.",
        "SET adapter.caps.max_path_lenght = 2", "SET adapter.caps.max_path_length = 2",
    ),
    _rule(
        "GASL062", "setting-value", "error",
        "SET gives a setting a value that it doesn't take.",
        "Settings have types and ranges.",
        "SET llm.temperature = 7", "SET llm.temperature = 0.7",
    ),
    _rule(
        "GASL063", "above-ceiling", "warning",
        "A number is above the ceiling that the host set. For SET this is an error.",
        "SET is refused; a search goes no further than the ceiling.",
        "FIND nodes AS people\nWALK people DEPTH 1000000 AS around", "FIND nodes AS people\nWALK people DEPTH 2 AS around",
    ),
    _rule(
        "GASL064", "unknown-algorithm", "error",
        "MEASURE names an algorithm that there isn't.",
        "The command couldn't run.",
        "MEASURE graph USING pagerang AS ranks", "MEASURE graph USING pagerank AS ranks",
    ),
    _rule(
        "GASL065", "never-true", "warning",
        "A test is true of nothing, or can't be true where another one is that must be, too.",
        "The command would find nothing, whatever the graph has.",
        'FIND nodes WHERE entity_type = "PERSON" AND entity_type = "COMPANY" AS both',
        'FIND nodes WHERE entity_type = "PERSON" OR entity_type = "COMPANY" AS both',
    ),
    _rule(
        "GASL066", "quantifier", "error",
        "ANY, ALL or NONE stands in a condition that is not on paths, or a path's `node.x` lacks one of them.",
        "Only a path has several nodes and edges.",
        'FIND nodes WHERE ANY node.entity_type = "PERSON" AS people', 'FIND nodes WHERE entity_type = "PERSON" AS people',
    ),
    _rule(
        "GASL067", "bad-pattern", "error",
        "The pattern of MATCHES is none.",
        "Patterns are those of RE2, which take time in proportion to the text: no look-around and no back-references.",
        'FIND nodes WHERE id MATCHES "(" AS people', 'FIND nodes WHERE id MATCHES "[(]" AS people',
    ),
    _rule(
        "GASL068", "field-without-item", "error",
        "ASSERT or BRANCH tests a field.",
        "There is no item that could have it; variables are written `${name}`.",
        "FIND nodes AS people\nASSERT people > 0", "FIND nodes AS people\nASSERT LEN ${people} > 0",
    ),
    _rule(
        "GASL069", "ends-without-edge", "warning",
        "`source.x`, `target.x` or `ANY node.x` is tested where it isn't known.",
        "Nodes have no ends, and edges and paths in a variable know only the ids of theirs; the test is never true.",
        'FIND edges AS links\nSELECT links WHERE source.age > 30 AS old',
        "FIND edges WHERE source.age > 30 AS old",
    ),
    _rule(
        "GASL070", "unknown-attribute", "error",
        "Nothing in the graph has this attribute.",
        "A test of it is never true, and an order by it has no meaning. An error where the command can find nothing for it, and in "
        "ORDER BY, BY and FIELDS; a warning inside OR, NOT and IS NULL, where the rest may still be meant.",
        'FIND nodes WHERE entity_tpye = "PERSON" AS people', 'FIND nodes WHERE entity_type = "PERSON" AS people',
    ),
    _rule(
        "GASL071", "unknown-value", "warning",
        "The attribute never has this value in the graph.",
        "The test is never true; most often the spelling differs. A warning: that there is none may be what is asked.",
        'FIND nodes WHERE entity_type = "person" AS people', 'FIND nodes WHERE entity_type = "PERSON" AS people',
    ),
    _rule(
        "GASL072", "attribute-type", "error",
        "An attribute is compared with a value of a type that it never has.",
        "Different types are unequal and have no order, so the test is never true; `\"30\"` is not 30. A warning where the command"
        " may still find something.",
        'FIND nodes WHERE age > "30" AS old', "FIND nodes WHERE age > 30 AS old",
    ),
    _rule(
        "GASL073", "unknown-column", "error",
        "The rows of a variable have no such field.",
        "The command would fail with `schema_mismatch`.",
        "FIND nodes AS people\nCOUNT people BY age AS ages\nRANK ages BY number AS ranked",
        "FIND nodes AS people\nCOUNT people BY age AS ages\nRANK ages BY count AS ranked",
    ),
    _rule(
        "GASL074", "unused-ignore-comment", "warning",
        "An ignore comment silences nothing.",
        "It would hide a fault that comes later.",
        "# knotwork: ignore[GASL052]\nFIND nodes AS people",
        "FIND nodes AS people\n# knotwork: ignore[GASL052]\nFIND edges AS people",
    ),
    _rule(
        "GASL075", "finds-nothing", "warning",
        "LIMIT, MAXLEN or DEPTH is 0.",
        "The command finds nothing, whatever the graph has.",
        "FIND nodes LIMIT 0 AS people", "FIND nodes LIMIT 10 AS people",
    ),
)  # fmt: skip
