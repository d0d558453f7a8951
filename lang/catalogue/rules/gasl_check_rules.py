"""The rules for faults in a complete GASL program; some need the graph or the state.

Examples that need a graph are about people and companies: nodes have ``entity_type`` ("PERSON", "COMPANY"), ``name`` and ``age``
(integers), edges have ``relation`` ("KNOWS", "WORKS_FOR") and ``weight``.
"""

from functools import partial

from .rule import Rule

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
        "An ON does not directly follow the command that binds its variable.",
        "If the command's status stops the plan, the ON is never reached.",
        "FIND nodes AS people\nFIND edges AS links\nON EMPTY people THEN FIND nodes AS people",
        "FIND nodes AS people\nON EMPTY people THEN FIND nodes AS people\nFIND edges AS links",
    ),
    _check_rule(
        "GASL054", "named-like-keyword", "info",
        "A variable has the name of a keyword, or `len` is read as the keyword `LEN`.",
        "The program is valid, but hard to read. In `BY len DESC`, `LEN` applies to the field `DESC`; write the field `len` in backticks.",
        "FIND nodes AS limit", "FIND nodes AS first_ten",
    ),
    _check_rule(
        "GASL055", "undeclared-key", "error",
        "A key of the state, or the key that contains it, is not declared.",
        "An UPDATE of the key would fail with `binding_failure`. If the state is unknown, this is a warning: an earlier plan may have"
        " declared the key.",
        "DECLARE people AS LIST\nFIND nodes AS found\nUPDATE links WITH found",
        "DECLARE people AS LIST\nFIND nodes AS found\nUPDATE people WITH found",
    ),
    _check_rule(
        "GASL056", "redeclared-key", "error",
        "A key is declared again with another type.",
        "A key keeps its first type, so the command would fail with `schema_mismatch`.",
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
        "A field or a computation is listed twice, or two columns have the same name.",
        "A repetition has no effect. Different columns with the same name are an error: the second would replace the first.",
        "FIND nodes AS people\nSELECT people FIELDS id, age, id AS ids",
        "FIND nodes AS people\nSELECT people FIELDS id, age AS ids",
    ),
    _check_rule(
        "GASL061", "unknown-setting", "error",
        "SET names an unknown setting.",
        "The setting would not change, and the plan would silently continue.",
        "SET adapter.caps.max_path_lenght = 2", "SET adapter.caps.max_path_length = 2",
    ),
    _check_rule(
        "GASL062", "setting-value", "error",
        "SET gives a setting an invalid value.",
        "Each setting has a type and a range.",
        "SET llm.temperature = 7", "SET llm.temperature = 0.7",
    ),
    _check_rule(
        "GASL063", "above-ceiling", "warning",
        "A number exceeds the host's limit. In SET this is an error.",
        "A SET above the limit is refused. A MAXLEN above the limit counts as the limit, and a search for paths, cycles or patterns stops "
        "at the limit. FIND nodes and FIND edges find more items, but no more than the limit are shown, stored or sent to a model.",
        "FIND cycles MAXLEN 1000000 AS loops", "FIND cycles MAXLEN 4 AS loops",
    ),
    _check_rule(
        "GASL064", "unknown-algorithm", "error",
        "MEASURE has an unknown algorithm, or a weight for an algorithm that does not use weights.",
        "The command could not run.",
        "MEASURE graph USING pagerang AS ranks", "MEASURE graph USING pagerank AS ranks",
    ),
    _check_rule(
        "GASL065", "never-true", "warning",
        "A test can't be true, contradicts another required test, or compares a field with itself.",
        "The command would find nothing in any graph, or the test has no effect.",
        'FIND nodes WHERE entity_type = "PERSON" AND entity_type = "COMPANY" AS both',
        'FIND nodes WHERE entity_type = "PERSON" OR entity_type = "COMPANY" AS both',
    ),
    _check_rule(
        "GASL066", "quantifier", "error",
        "ANY, ALL, NONE or INCREASING is used in a condition that does not test paths, or a quantifier is missing before `node.x` or "
        "`edge.x` of a path.",
        "Only a path has several nodes and edges, so a quantifier is required there and not allowed elsewhere.",
        'FIND nodes WHERE ANY node.entity_type = "PERSON" AS people', 'FIND nodes WHERE entity_type = "PERSON" AS people',
    ),
    _check_rule(
        "GASL067", "bad-pattern", "error",
        "The pattern of MATCHES is invalid, or is not a quoted string.",
        "Patterns use RE2 syntax, without look-around or back-references, so a search takes time proportional to the length of "
        "the text.",
        'FIND nodes WHERE id MATCHES "(" AS people', 'FIND nodes WHERE id MATCHES "[(]" AS people',
    ),
    _check_rule(
        "GASL068", "field-without-item", "error",
        "ASSERT or BRANCH tests a field.",
        "ASSERT and BRANCH test variables, not items, so fields are unknown there. Write a variable as `${name}`.",
        "FIND nodes AS people\nASSERT people > 0", "FIND nodes AS people\nASSERT LEN ${people} > 0",
    ),
    _check_rule(
        "GASL069", "ends-without-edge", "error",
        "`source.x`, `target.x` or `ANY node.x` is used where its value is unknown.",
        "Nodes have no source or target. Rows store only the ids of nodes, and so do the paths in a variable for the nodes between "
        "their ends. The test is therefore never true. This is a warning if the command may still find something, as with OR.",
        "FIND edges AS links\nSELECT links FIELDS source, weight AS rows\nSELECT rows WHERE source.age > 30 AS old",
        "FIND edges AS links\nSELECT links WHERE source.age > 30 AS old",
    ),
    _check_rule(
        "GASL070", "unknown-attribute", "error",
        "No node, edge or path of the graph has this attribute.",
        "A test of a missing attribute is never true, and sorting by it has no effect. This is an error in ORDER BY, BY and "
        "FIELDS, and if it makes the command find nothing. Inside OR, NOT and IS NULL it is a warning.",
        'FIND nodes WHERE entity_tpye = "PERSON" AS people', 'FIND nodes WHERE entity_type = "PERSON" AS people',
    ),
    _check_rule(
        "GASL071", "unknown-value", "warning",
        "The attribute never has this value in the graph, or no node or edge has this label or id.",
        "The test is never true; usually the value is misspelt. This is only a warning, because the command may be meant to test "
        "whether the value exists.",
        'FIND nodes WHERE entity_type = "person" AS people', 'FIND nodes WHERE entity_type = "PERSON" AS people',
    ),
    _check_rule(
        "GASL072", "attribute-type", "error",
        "An attribute is compared with a value of a type that it never has.",
        "Values of different types are unequal and have no order, so the test is never true: `\"30\"` is not equal to 30. This is "
        "a warning if the command may still find something.",
        'FIND nodes WHERE age > "30" AS old', "FIND nodes WHERE age > 30 AS old",
    ),
    _check_rule(
        "GASL073", "unknown-column", "error",
        "The rows of a variable, or the patterns of a command, do not have this field.",
        "The command would fail with `schema_mismatch`.",
        "FIND nodes AS people\nCOUNT people BY age AS ages\nRANK ages BY number AS ranked",
        "FIND nodes AS people\nCOUNT people BY age AS ages\nRANK ages BY count AS ranked",
    ),
    _check_rule(
        "GASL074", "unused-ignore-comment", "warning",
        "An ignore comment does not suppress any finding.",
        "Later, the comment could hide a new fault.",
        "# knotwork: ignore[GASL052]\nFIND nodes AS people",
        "FIND nodes AS people\n# knotwork: ignore[GASL052]\nFIND edges AS people",
    ),
    _check_rule(
        "GASL075", "finds-nothing", "warning",
        "LIMIT, MAXLEN, DEPTH or SAMPLE is 0.",
        "The command finds nothing in any graph.",
        "FIND nodes LIMIT 0 AS people", "FIND nodes LIMIT 10 AS people",
    ),
    _check_rule(
        "GASL076", "unknown-name", "error",
        "A word on the right side of a comparison is neither a field of the items nor a quoted string.",
        "An unquoted name is read as a field, so the comparison would never be true. An edit adds quotes only if the field on the "
        "left has this value.",
        "FIND nodes WHERE entity_type = PERSON AS people", 'FIND nodes WHERE entity_type = "PERSON" AS people',
    ),
    _check_rule(
        "GASL078", "unknown-value-function", "error",
        "A value calls a function that is unknown or not allowed there.",
        "Group functions, such as count and mean, are allowed only in AGGREGATE. GASL has no clock and no random numbers, so a "
        "program gives the same result each time.",
        'FIND nodes WHERE toLower(name) = "ada" AS people', 'FIND nodes WHERE lower(name) = "ada" AS people',
    ),
    _check_rule(
        "GASL079", "function-arguments", "error",
        "A function is called with arguments that it does not accept.",
        "With one argument, `sum`, `min` and `max` take a list; use AGGREGATE to apply them to several items. Only `if` takes a "
        "condition.",
        "FIND nodes AS people\nSELECT people FIELDS sum(age) AS total AS rows",
        "FIND nodes AS people\nAGGREGATE people COMPUTE sum(age) AS total AS rows",
    ),
    _check_rule(
        "GASL080", "constant-test", "error",
        "A test has neither a field nor a variable.",
        "The result is the same for every item. Usually the name of a field is in quotes by mistake.",
        'FIND nodes WHERE "name" IN ("Ada", "Bo") AS people', 'FIND nodes WHERE name IN ("Ada", "Bo") AS people',
    ),
    _check_rule(
        "GASL081", "patterns-apart", "error",
        "The patterns of a command are not all connected with each other.",
        "Patterns are connected if they use the same name for a node. Every row of one connected group would be combined with every "
        "row of the other groups.",
        "FIND patterns (a)-->(b), (c)-->(d) AS rows", "FIND patterns (a)-->(b), (b)-->(d) AS rows",
    ),
    _check_rule(
        "GASL082", "pattern-too-long", "error",
        "The patterns of a command have too many edges.",
        "The number of candidates grows with each edge. The limit is `adapter.caps.max_pattern_edges`.",
        "FIND patterns (a)-->()-->()-->()-->()-->()-->()-->(b) AS rows", "FIND patterns (a)-->()-->()-->(b) AS rows",
    ),
    _check_rule(
        "GASL083", "no-label-attribute", "error",
        "A pattern has a label, but the graph has no attribute that distinguishes kinds of nodes or edges.",
        "A label is a value of such an attribute. Write a condition on another attribute instead.",
        "FIND patterns (p:PERSON)-[r]->(q) AS rows", 'FIND patterns (p)-[r]->(q) WHERE p.entity_type = "PERSON" AS rows',
    ),
    _check_rule(
        "GASL084", "arrow-without-direction", "info",
        "A pattern has an arrow, but the graph is undirected.",
        "The edge matches in both directions.",
        "FIND patterns (p:PERSON)-[r]->(q:COMPANY) AS rows", "FIND patterns (p:PERSON)-[r]-(q:COMPANY) AS rows",
    ),
    _check_rule(
        "GASL085", "symmetric-pattern", "info",
        "A pattern is the same when it is read from its other end.",
        "Every pair of ends is found twice, unless a condition in WHERE orders the ends.",
        "FIND patterns (p:PERSON)-[r]->(o)<-[s]-(q:PERSON) AS pairs",
        "FIND patterns (p:PERSON)-[r]->(o)<-[s]-(q:PERSON) WHERE p.id < q.id AS pairs",
    ),
    _check_rule(
        "GASL086", "pattern-name", "error",
        "Two edges of a pattern, or a node and an edge, have the same name.",
        "Only a node may be named twice: both places then match the same node. Within a row, each edge is used only once.",
        "FIND patterns (a)-[r]->(b)-[r]->(c) AS rows", "FIND patterns (a)-[r]->(b)-[s]->(c) AS rows",
    ),
    _check_rule(
        "GASL087", "misplaced-parameter", "error",
        "A PARAM follows a command or is inside a command.",
        "Parameters are bound before the program runs.",
        "FIND nodes AS people\nPARAM least INT = 30\nSELECT people WHERE age >= ${least} AS old",
        "PARAM least INT = 30\nFIND nodes AS people\nSELECT people WHERE age >= ${least} AS old",
    ),
    _check_rule(
        "GASL088", "unused-parameter", "warning",
        "A parameter is not read by any command.",
        "The value of the parameter has no effect.",
        "PARAM least INT = 30\nFIND nodes WHERE age >= 30 AS old",
        "PARAM least INT = 30\nFIND nodes WHERE age >= ${least} AS old",
    ),
    _check_rule(
        "GASL089", "parameter-default", "error",
        "The default value of a parameter does not have the parameter's type.",
        "The command would fail with `schema_mismatch`.",
        'PARAM least INT = "30"\nFIND nodes WHERE age >= ${least} AS old',
        "PARAM least INT = 30\nFIND nodes WHERE age >= ${least} AS old",
    ),
    _check_rule(
        "GASL090", "cost-below-zero", "error",
        "The cost in SHORTEST BY is a negative constant, or is not a number.",
        "Shortest paths need costs of 0 or greater.",
        'FIND paths FROM (name = "Ada") TO (name = "Bo") SHORTEST BY -1 AS ways',
        'FIND paths FROM (name = "Ada") TO (name = "Bo") SHORTEST BY weight AS ways',
    ),
    _check_rule(
        "GASL091", "measure-setting", "error",
        "A MEASURE command has a setting that its algorithm does not accept, or an invalid value for a setting.",
        "The command could not run.",
        "MEASURE graph USING pagerank(dampning = 0.9) AS ranks", "MEASURE graph USING pagerank(damping = 0.9) AS ranks",
    ),
    _check_rule(
        "GASL092", "percentile-share", "error",
        "The share in `percentile` is not a constant from 0 to 1.",
        "The command would fail with `schema_mismatch`.",
        "FIND nodes AS people\nAGGREGATE people COMPUTE percentile(age, 95) AS p95 AS ages",
        "FIND nodes AS people\nAGGREGATE people COMPUTE percentile(age, 0.95) AS p95 AS ages",
    ),
    _check_rule(
        "GASL093", "distinct-items", "warning",
        "SELECT DISTINCT is applied to nodes, edges or paths from a search.",
        "They are already distinct, so DISTINCT has no effect here. DISTINCT with FIELDS keeps the distinct values of these fields.",
        "FIND nodes AS people\nSELECT DISTINCT people AS unique", "FIND nodes AS people\nSELECT DISTINCT people FIELDS age AS ages",
    ),
    _check_rule(
        "GASL094", "constant-value", "error",
        "A value has no field, where a command needs a field of the items.",
        "The value is the same for every item, so it neither sorts nor groups them, and joins every item with every other. Usually the "
        "name of a field is in quotes by mistake. A column with the name of a field in quotes is a warning.",
        'FIND nodes ORDER BY "age" DESC LIMIT 1 AS oldest', "FIND nodes ORDER BY age DESC LIMIT 1 AS oldest",
    ),
    _check_rule(
        "GASL095", "label-as-name", "warning",
        "In a pattern, the name of a node or an edge is a label of the graph, and the name is not used.",
        "Without a colon the word is a name, so the pattern matches nodes or edges of every kind.",
        "FIND patterns (a)-[KNOWS]->(b) AS rows", "FIND patterns (a)-[:KNOWS]->(b) AS rows",
    ),
    _check_rule(
        "GASL096", "operand-type", "error",
        "A function or an operator gets a value of a type that it does not take, or a unit or a date that it can't read.",
        "In a condition the result would be null for every item, so the test is never true. Elsewhere the command would fail with "
        "`schema_mismatch`. This is a warning if the command may still find something.",
        'FIND nodes WHERE lower(age) = "36" AS people', 'FIND nodes WHERE str(age) = "36" AS people',
    ),
    _check_rule(
        "GASL097", "value-type", "error",
        "A computed value or a variable is compared with a value of a type that it never has.",
        "Values of different types are unequal and have no order, so the test is never true. In particular, a list is never equal to "
        "one of its items. This is a warning if the command may still find something.",
        "FIND nodes AS people\nFIND edges WHERE source IN ${people} AS links",
        "FIND nodes AS people\nFIND edges WHERE source IN ${people.id} AS links",
    ),
    _check_rule(
        "GASL098", "duplicate-parameter", "error",
        "Two parameters have the same name.",
        "A value is given by name, so it is unclear which of the two types and defaults apply.",
        "PARAM least INT = 30\nPARAM least INT = 40\nFIND nodes WHERE age >= ${least} AS old",
        "PARAM least INT = 30\nPARAM most INT = 40\nFIND nodes WHERE age >= ${least} AND age <= ${most} AS some",
    ),
    _check_rule(
        "GASL099", "mixed-types", "warning",
        "An attribute whose values have several types is compared, sorted, grouped or joined.",
        "A comparison leaves out the values of other types. Sorting puts numbers before strings in both directions, and groups and joins "
        "separate 1 from \"1\". In the example, `mixed` is a number in some nodes and a string in others.",
        "FIND nodes WHERE mixed > 0 AS some", "FIND nodes WHERE number(mixed) > 0 AS some",
    ),
    _check_rule(
        "GASL100", "negated-unknown", "warning",
        "VIA negates a test of an attribute that some edges of the graph do not have.",
        "A missing attribute is null, and both a comparison with null and its NOT are unknown. Edges without the attribute are therefore "
        "not followed.",
        "FIND paths VIA NOT closed = true AS ways", "FIND paths VIA (closed IS NULL OR NOT closed = true) AS ways",
    ),
)  # fmt: skip
