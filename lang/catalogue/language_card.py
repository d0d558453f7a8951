"""The language card: the description of GASL for models, at most 900 tokens long.

The card is the only description of GASL in prompts: ``ask``, the MCP server, the agent kit and ``knotwork gasl --card`` use it. Tests
parse every form, run every worked plan, and count the tokens. ``docs/reference/gasl.md`` describes the commands and options that the
card omits.
"""

from attrs import frozen


@frozen
class CardForm:
    """The form of a command, and a remark that explains it.

    Words in lower case are placeholders. ``a|b`` means one of several words. ``·`` separates two forms on one line.
    """

    form: str
    remark: str = ""

    @property
    def line(self) -> str:
        """The line of the card that describes this form."""
        return f"{self.form}    {self.remark}" if self.remark else self.form


@frozen
class WorkedPlan:
    """A question and the commands that answer it."""

    question: str
    commands: tuple[str, ...]


ABOUT = """\
GASL: commands that read a graph and never change it, one a line (in a plan, one a string). AS name binds a result for the plan; \
UPDATE keeps it.
Fields: node id and attributes, edge source, target and attributes, path source, target, length, nodes, edges. Dots reach inside: p.age."""

FORMS: tuple[CardForm, ...] = (
    CardForm("FIND nodes|edges WHERE cond ORDER BY field DESC LIMIT n AS x"),
    CardForm(
        "FIND patterns (p:PERSON)-[r:KNOWS]->(o)<-[s]-(q:PERSON) WHERE p.id < q.id AS x",
        "rows {p, r, o, s, q}; -[r]- either way",
    ),
    CardForm(
        "FIND paths FROM (cond) TO (cond) VIA edge_cond MAXLEN n AS x",
        "or SHORTEST 3, SHORTEST BY weight; DIRECTION both; MAXLEN 3 if omitted, at most 8",
    ),
    CardForm("FIND cycles VIA edge_cond MAXLEN n AS x"),
    CardForm("WALK x VIA edge_cond DEPTH n DIRECTION out|in|both TRACE AS y", "nodes with depth, parent"),
    CardForm(
        "MEASURE graph USING pagerank AS x",
        "rows {id, pagerank}; also degree, betweenness, closeness, core_number, components, communities",
    ),
    CardForm("MEASURE x ON edges USING betweenness BY weight AS y", "of these edges"),
    CardForm(
        "SELECT x FIELDS a, lower(b) AS key WHERE cond AS y",
        "the last AS is the variable; SELECT DISTINCT x ...; SELECT x SAMPLE n",
    ),
    CardForm("RANK x BY a DESC LIMIT 3 PER b AS y", "first 3 of each b"),
    CardForm("COUNT x BY a, b AS y", "rows {a, b, count}; without BY a number"),
    CardForm(
        "AGGREGATE x BY a COMPUTE sum(c) AS total, count() AS times AS y",
        "mean min max median stdev percentile(c, 0.95) count(DISTINCT c); without BY one row",
    ),
    CardForm("UNNEST x BY list_field AS y", "a row for each element"),
    CardForm("JOIN x WITH y ON a = b, c AS z", "y's field is right.name where x has it; LEFT JOIN keeps all of x"),
    CardForm("JOIN x WITH x ON name SIMILAR 0.5 AS z", "similar texts"),
    CardForm("UNION|INTERSECT|EXCEPT x WITH y ON a = b AS z"),
    CardForm(
        'PROCESS x USING "instruction" AS y · CLASSIFY x BY "question" INTO ("a", "b") AS y · '
        'ANALYZE key USING "question" AS y'
    ),
    CardForm(
        'DECLARE key AS LIST|DICT|COUNTER WITH_DESCRIPTION "..." · UPDATE key WITH x', "declare first; a COUNTER adds"
    ),
    CardForm("PARAM limit INT = 5", "first; use ${limit}"),
    CardForm("ASSERT LEN ${x} > 0 · ON EMPTY x THEN command"),
)
"""The forms, in the order in which the card lists them."""

VALUES = """\
Conditions: = != < <= > >=, IN ("a", "b"), CONTAINS, STARTS_WITH, ENDS_WITH, MATCHES "regex", IS NULL, AND, OR, NOT. Text in quotes, \
case-sensitive; a bare name is a field: source.country = target.country. Variables: source IN ${x.id}, ${x[0].total}. A missing field is \
null; comparing it drops the item.
Values: + - * / %, LEN f, lower, fold, split, coalesce(a, b), if(cond, a, b), number(text), year(d), date_trunc("month", d), \
days_between(a, b). Nodes have degree, in_degree, out_degree."""

PLANS: tuple[WorkedPlan, ...] = (
    WorkedPlan(
        "Who is named together most often?",
        (
            'FIND nodes WHERE entity_type = "PERSON" AS people',
            "UNNEST people BY source_id AS mentions",
            "JOIN mentions WITH mentions ON source_id AS together",
            "SELECT together WHERE id < right.id AS pairs",
            "COUNT pairs BY id, right.id AS counts",
            "RANK counts BY count DESC LIMIT 10 AS top",
            "DECLARE together AS LIST",
            "UPDATE together WITH top",
        ),
    ),
    WorkedPlan(
        "Which accounts pass money on within two days?",
        (
            "FIND patterns (a)-[x:TRANSFER]->(b)-[y:TRANSFER]->(c) WHERE y.amount >= 0.9 * x.amount AND x.date <= y.date "
            "AND days_between(x.date, y.date) <= 2 AS passed",
            "AGGREGATE passed BY b.id AS account COMPUTE count() AS times, sum(y.amount) AS total AS accounts",
        ),
    ),
)
"""The worked plans of the card. They run unchanged on a graph that has the fields in them."""


def language_card() -> str:
    """Return the card as plain text, without a line break at the end."""
    forms = "\n".join(each.line for each in FORMS)
    plans = ("\n".join((plan.question, *plan.commands)) for plan in PLANS)
    return "\n\n".join((ABOUT, forms, VALUES, *plans))
