"""The language card: every form is GASL, every worked plan runs, and the whole is short enough for a prompt."""

import re
from itertools import product

import networkx as nx
import pytest
from knotwork import gasl
from knotwork.lang.catalogue.commands import COMMANDS
from knotwork.lang.catalogue.language_card import FORMS, PLANS, VALUES, CardForm, WorkedPlan, language_card
from rs_bpe.bpe import openai
from support.command import call

MOST = 900
_FILLED = {"cond": "degree > 1", "edge_cond": "weight > 1", "n": "3", "command": "COUNT x AS n"}
_ALTERNATIVES = re.compile(r"\b[\w]+(?:\|\w+)+\b")


def texts_of(form: str) -> list[str]:
    """Return the texts that a form stands for: one for each combination of its alternatives, with its words filled in."""
    made = []
    for part in form.split(" · "):
        choices = [found[0].split("|") for found in _ALTERNATIVES.finditer(part)]
        for chosen in product(*choices):
            words = iter(chosen)
            text = _ALTERNATIVES.sub(lambda _, words=words: next(words), part)  # type: ignore[misc]
            made.append(re.sub(r"\b(?:edge_cond|cond|n|command)\b", lambda found: _FILLED[found[0]], text))
    return made


def errors_of(program: gasl.Program) -> list[str]:
    return [f"{each.code} {each.message}" for each in program.diagnostics if each.severity == "error"]


@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
def test_the_card_is_at_most_900_tokens_long(encoding: str) -> None:
    assert 600 < getattr(openai, encoding)().count(language_card()) <= MOST


@pytest.mark.parametrize("text", [text for form in FORMS for text in texts_of(form.form)])
def test_every_form_parses_with_its_words_filled_in(text: str) -> None:
    program = gasl.parse(text)
    assert errors_of(program) == []
    assert len(program) == 1


def test_alternatives_are_all_tried() -> None:
    assert texts_of("UNION|INTERSECT x · WALK y DIRECTION out|in") == [
        "UNION x", "INTERSECT x", "WALK y DIRECTION out", "WALK y DIRECTION in",
    ]  # fmt: skip
    assert len([text for form in FORMS for text in texts_of(form.form)]) > len(FORMS)


REMARKS = {
    "or SHORTEST 3, SHORTEST BY weight; DIRECTION both": [
        "FIND paths FROM (degree > 1) TO (degree > 2) SHORTEST 3 AS x",
        "FIND paths FROM (degree > 1) TO (degree > 2) SHORTEST BY weight DIRECTION both AS x",
    ],
    "SELECT DISTINCT x ...": ["SELECT DISTINCT x FIELDS a AS y"],
    "SELECT x SAMPLE n": ["SELECT x SAMPLE 5 AS y"],
    "MAXLEN 3 if omitted, at most 8": ["FIND paths FROM (degree > 1) TO (degree > 2) MAXLEN 8 AS x"],
    "use ${limit}": ["FIND nodes LIMIT ${limit} AS x"],
    "mean min max median stdev percentile(c, 0.95) count(DISTINCT c)": [
        "AGGREGATE x COMPUTE mean(c), min(c), max(c), median(c), stdev(c), percentile(c, 0.95) AS p, count(DISTINCT c) AS n AS y"
    ],
    "LEFT JOIN keeps all of x": ["LEFT JOIN x WITH y ON a = b AS z"],
    "-[r]- either way": ["FIND patterns (a)-[r]-(b) AS x"],
    "also degree, betweenness, closeness, core_number, components, communities": [
        f"MEASURE graph USING {name} AS x"
        for name in ("degree", "betweenness", "closeness", "core_number", "components", "communities")
    ],
}
"""What the remarks of the card promise, with commands that use it."""


@pytest.mark.parametrize("remark", REMARKS)
def test_what_the_remarks_promise_is_gasl(remark: str) -> None:
    assert remark in "\n".join(form.remark for form in FORMS)
    for text in REMARKS[remark]:
        assert errors_of(gasl.parse(text)) == []


@pytest.mark.parametrize(
    "condition",
    [
        'a IN ("a", "b")', 'a CONTAINS "x"', 'a STARTS_WITH "x"', 'a ENDS_WITH "x"', 'a MATCHES "x"', "a IS NULL",
        "a != 1 AND (b <= 2 OR NOT c >= 3)", "source.country = target.country", "source IN ${x.id}", "a > ${x[0].total}",
        "LEN f > 1", 'lower(a) = "x"', 'split(a, ",") IS NULL', "coalesce(a, b) > 1", "if(a > 1, a, b) > 1", "number(a) % 2 = 1",
        "year(d) = 2024", 'date_trunc("month", d) > "2024"', "days_between(a, b) <= 2", "a + b - c * 2 / 3 > 1", "in_degree > out_degree",
    ],
)  # fmt: skip
def test_every_word_of_conditions_and_values_is_gasl(condition: str) -> None:
    assert errors_of(gasl.parse(f"FIND nodes WHERE {condition} AS x")) == []


def test_the_conditions_above_have_all_words_of_the_card() -> None:
    """Fails if the card names an operator or a function that no condition above uses."""
    mark = test_every_word_of_conditions_and_values_is_gasl.pytestmark[0]  # type: ignore[attr-defined]
    used = " ".join(mark.args[1])
    words = set(re.findall(r"\b[A-Z]{2}[A-Z_]*\b", VALUES)) | set(re.findall(r"\b([a-z_]+)\(", VALUES))
    assert {word for word in words if not re.search(rf"\b{word}\b", used)} == set()


def small_graph() -> nx.MultiDiGraph:
    """Return a graph that has the fields of the card's plans: people named in chunks, and accounts that transfer money."""
    graph = nx.MultiDiGraph()
    for name, chunks in (("Ada", ["c1", "c2"]), ("Ben", ["c1", "c2"]), ("Cy", ["c2"]), ("Di", [])):
        graph.add_node(name, entity_type="PERSON", source_id=chunks)
    for number in range(4):
        graph.add_node(f"A{number}", entity_type="ACCOUNT")
    for source, target, amount, date in (
        ("A0", "A1", 100, "2024-01-01"), ("A1", "A2", 95, "2024-01-02"), ("A1", "A3", 95, "2024-01-09"), ("A2", "A3", 10, "2024-01-03"),
    ):  # fmt: skip
        graph.add_edge(source, target, relation="TRANSFER", amount=amount, date=date)
    for source, target in (("Ada", "Ben"), ("Ben", "Cy"), ("Cy", "Ada"), ("Cy", "Di")):
        graph.add_edge(source, target, relation="KNOWS")
    return graph


RESULTS = {
    "Who is named together most often?": (
        "top",
        [
            {"id": "Ada", "right.id": "Ben", "count": 2},
            {"id": "Ada", "right.id": "Cy", "count": 1},
            {"id": "Ben", "right.id": "Cy", "count": 1},
        ],
    ),
    "Which accounts pass money on within two days?": ("accounts", [{"account": "A1", "times": 1, "total": 95}]),
}
"""The variable that a plan binds last, and its value on the small graph."""


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.question)
def test_every_worked_plan_passes_the_checks(plan: WorkedPlan) -> None:
    with gasl.open(small_graph()) as executor:
        assert [each for each in executor.checks(gasl.parse("\n".join(plan.commands))) if each.severity != "info"] == []


@pytest.mark.slow
@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.question)
def test_every_worked_plan_runs(plan: WorkedPlan) -> None:
    with gasl.open(small_graph()) as executor:
        records = executor.run_plan(gasl.parse("\n".join(plan.commands)))
        assert [(record.command, record.status) for record in records] == [(text, "success") for text in plan.commands]
        if plan.question in RESULTS:
            name, value = RESULTS[plan.question]
            assert executor.context.get(name) == value
        else:
            leaders = executor.context.get("leaders")
            groups = [row["communities"] for row in leaders]
            assert leaders and all(groups.count(group) <= 3 for group in groups)


def test_the_forms_name_commands_and_stand_in_the_card() -> None:
    for form in FORMS:
        assert isinstance(form, CardForm) and f"\n{form.line}\n" in language_card()
        assert all(text.split()[0] in COMMANDS for text in texts_of(form.form))


def test_the_command_line_prints_the_card() -> None:
    done = call("gasl", "--card")
    assert (done.code, done.out, done.err) == (0, f"{language_card()}\n", "")
