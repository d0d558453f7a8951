"""Other ways to compute what bench_seed and bench_expr compute: Python's ``eval``, and simpleeval, asteval, polars, cel-python and
json-logic, which are optional.

``FORMULAS`` is seed 002's complete example in the form of seed 000: expressions over ``extractions``, whose elements have the
extracted fields and ``meta``, over ``categories`` and over what was computed before.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any

__all__ = ["CUISINES", "EXPRESSION", "FORMULAS", "SEED_PEERS", "by_eval", "elements", "expression_peers", "installed"]

CUISINES = {
    "Thai": 2.0, "Vietnamese": 1.8, "Chinese": 1.5, "Asian Fusion": 1.5, "Indian": 1.3, "Japanese": 1.2, "Korean": 1.2,
    "Mexican": 1.0, "Italian": 0.5, "American": 0.5, "Pizza": 0.5,
}  # fmt: skip

_FIRSTHAND = "e['account_type'] == 'firsthand'"
_INCIDENT = f"{_FIRSTHAND} and e['incident_severity'] in ['mild', 'moderate', 'severe']"
FORMULAS: Mapping[str, str] = {
    "N_MILD": f"sum(1 for e in extractions if e['incident_severity'] == 'mild' and {_FIRSTHAND})",
    "N_MODERATE": f"sum(1 for e in extractions if e['incident_severity'] == 'moderate' and {_FIRSTHAND})",
    "N_SEVERE": f"sum(1 for e in extractions if e['incident_severity'] == 'severe' and {_FIRSTHAND})",
    "N_TOTAL_INCIDENTS": "N_MILD + N_MODERATE + N_SEVERE",
    "N_POSITIVE": "sum(1 for e in extractions if e['safety_interaction'] == 'positive')",
    "N_NEGATIVE": "sum(1 for e in extractions if e['safety_interaction'] == 'negative')",
    "N_BETRAYAL": "sum(1 for e in extractions if e['safety_interaction'] == 'betrayal')",
    "N_ALLERGY_REVIEWS": "len(extractions)",
    "TRUST_RAW": "1.0 + (N_POSITIVE * 0.1) - (N_NEGATIVE * 0.2) - (N_BETRAYAL * 0.5)",
    "TRUST_SCORE": "max(0.1, min(1.0, TRUST_RAW))",
    "MILD_WEIGHT": "2 * (1.5 - TRUST_SCORE)",
    "MODERATE_WEIGHT": "5 * (1.3 - 0.3 * TRUST_SCORE)",
    "SEVERE_WEIGHT": "15",
    "ADJUSTED_INCIDENT_SCORE": "(N_MILD * MILD_WEIGHT) + (N_MODERATE * MODERATE_WEIGHT) + (N_SEVERE * SEVERE_WEIGHT)",
    "N_RECENT": f"sum(1 for e in extractions if {_INCIDENT} and e['meta']['year'] >= 2023)",
    "N_OLD": f"sum(1 for e in extractions if {_INCIDENT} and e['meta']['year'] < 2023)",
    "RECENT_RATIO": "N_RECENT / N_TOTAL_INCIDENTS if N_TOTAL_INCIDENTS > 0 else 0",
    "TRAJECTORY_MULTIPLIER": "1.3 if RECENT_RATIO > 0.7 else (0.7 if RECENT_RATIO < 0.3 and N_TOTAL_INCIDENTS > 0 else 1.0)",
    "CUISINE_MODIFIER": "max([v for k, v in cuisines.items() if k.lower() in categories.lower()], default=1.0)",
    "SILENCE_PENALTY": "CUISINE_MODIFIER * 0.5 if N_ALLERGY_REVIEWS == 0 else 0",
    "CUISINE_IMPACT": "(CUISINE_MODIFIER * 0.5) + SILENCE_PENALTY",
    "MOST_RECENT_YEAR": f"max([e['meta']['year'] for e in extractions if {_INCIDENT}], default=2020)",
    "INCIDENT_AGE": "2025 - MOST_RECENT_YEAR",
    "RECENCY_DECAY": "max(0.3, 1.0 - (INCIDENT_AGE * 0.15))",
    "TOTAL_WEIGHT": f"fsum([(5 - e['meta']['stars']) + log(e['meta']['useful'] + 1) for e in extractions if {_INCIDENT}])",
    "CREDIBILITY_FACTOR": "TOTAL_WEIGHT / N_TOTAL_INCIDENTS if N_TOTAL_INCIDENTS > 0 else 1.0",
    "INCIDENT_IMPACT": "ADJUSTED_INCIDENT_SCORE * TRAJECTORY_MULTIPLIER * RECENCY_DECAY * CREDIBILITY_FACTOR",
    "TRUST_IMPACT": "(1.0 - TRUST_SCORE) * 3.0",
    "POSITIVE_CREDIT": "N_POSITIVE * TRUST_SCORE * 0.5",
    "BASE_RISK": "2.0",
    "RAW_RISK": "BASE_RISK + INCIDENT_IMPACT + TRUST_IMPACT + CUISINE_IMPACT - POSITIVE_CREDIT",
    "FINAL_RISK_SCORE": "max(0.0, min(20.0, RAW_RISK))",
    "VERDICT": "'Low Risk' if FINAL_RISK_SCORE < 4.0 else ('High Risk' if FINAL_RISK_SCORE < 8.0 else 'Critical Risk')",
}

EXPRESSION = "max(0.1, min(1.0, 1.0 + (n_pos * 0.1) - (n_neg * 0.2)))"

_FUNCTIONS = {
    "sum": sum, "len": len, "max": max, "min": min, "log": math.log, "fsum": math.fsum, "cuisines": CUISINES,
}  # fmt: skip

Rows = Sequence[Mapping[str, Any]]
Values = dict[str, Any]
Side = Callable[[Rows, Mapping[str, Any]], Values]


def elements(rows: Rows) -> list[dict[str, Any]]:
    """Return the elements of ``extractions``. Making them is not timed, for no side but ours takes rows as they are."""
    return [{**row["extraction"], "meta": row["meta"]} for row in rows]


def by_eval(extractions: Rows, context: Mapping[str, Any]) -> Values:
    """Seed 000's own way: Python's ``eval`` of each text, each time."""
    values: Values = {"extractions": extractions, "categories": context["categories"], **_FUNCTIONS}
    return {name: values.setdefault(name, eval(text, values)) for name, text in FORMULAS.items()}


def simpleeval() -> Side:
    """A safe evaluator that walks Python's own syntax tree."""
    from simpleeval import EvalWithCompoundTypes

    functions = {name: function for name, function in _FUNCTIONS.items() if callable(function)}

    def run(extractions: Rows, context: Mapping[str, Any]) -> Values:
        names: Values = {"extractions": extractions, "categories": context["categories"], "cuisines": CUISINES}
        walker = EvalWithCompoundTypes(functions=functions, names=names)
        return {name: names.setdefault(name, walker.eval(text)) for name, text in FORMULAS.items()}

    return run


def asteval() -> Side:
    """Another one, with the most of Python; it has no generators, so they are written as lists."""
    from asteval import Interpreter

    walker = Interpreter(use_numpy=False)
    texts = {name: re.sub(r"^sum\((1 for .*)\)$", r"sum([\1])", text) for name, text in FORMULAS.items()}

    def run(extractions: Rows, context: Mapping[str, Any]) -> Values:
        table = walker.symtable
        table.update({"extractions": extractions, "categories": context["categories"], **_FUNCTIONS})
        for name, text in texts.items():
            table[name] = walker(text)
        return {name: table[name] for name in FORMULAS}

    return run


def polars() -> Side:
    """A data frame from the rows; all aggregates in one ``select``. The steps after it are Python's."""
    import polars as pl

    account, severity, safety = pl.col("account_type"), pl.col("incident_severity"), pl.col("safety_interaction")
    incident = (account == "firsthand") & severity.is_in(["mild", "moderate", "severe"])
    year = pl.col("year")
    weights = (5 - pl.col("stars")) + (pl.col("useful") + 1).log()
    aggregates = {
        **{f"N_{name.upper()}": ((severity == name) & (account == "firsthand")).sum() for name in ("mild", "moderate", "severe")},
        **{f"N_{name.upper()}": (safety == name).sum() for name in ("positive", "negative", "betrayal")},
        "N_ALLERGY_REVIEWS": pl.len(), "N_RECENT": (incident & (year >= 2023)).sum(), "N_OLD": (incident & (year < 2023)).sum(),
        "MOST_RECENT_YEAR": year.filter(incident).max(), "TOTAL_WEIGHT": weights.filter(incident).sum(),
    }  # fmt: skip

    def run(extractions: Rows, context: Mapping[str, Any]) -> Values:
        frame = pl.DataFrame([{**e, **e["meta"]} for e in extractions])
        found = frame.select(**aggregates).row(0, named=True)
        values: Values = {"categories": context["categories"], **_FUNCTIONS, **found}
        for name, code in _CODES.items():
            if name not in found:
                values[name] = eval(code, values)
        return {name: values[name] for name in FORMULAS}

    return run


_CODES = {name: compile(text, name, "eval") for name, text in FORMULAS.items()}

SEED_PEERS: Mapping[str, Callable[[], Side]] = {"simpleeval": simpleeval, "asteval": asteval, "polars": polars}
"""What prepares the sides of bench_seed, by distribution."""

Evaluate = Callable[[Mapping[str, Any]], Any]


def _simple_expression() -> Evaluate:
    from simpleeval import SimpleEval

    walker = SimpleEval(functions={"max": max, "min": min})
    tree = walker.parse(EXPRESSION)

    def run(names: Mapping[str, Any]) -> Any:
        walker.names = names
        return walker.eval(EXPRESSION, previously_parsed=tree)

    return run


def _asteval_expression() -> Evaluate:
    from asteval import Interpreter

    walker = Interpreter(minimal=True)
    tree = walker.parse(EXPRESSION)

    def run(names: Mapping[str, Any]) -> Any:
        walker.symtable.update(names)
        return walker.run(tree)

    return run


def _cel_expression() -> Evaluate:
    import celpy
    from celpy.celtypes import DoubleType

    environment = celpy.Environment()
    text = "[0.1, [1.0, 1.0 + (n_pos * 0.1) - (n_neg * 0.2)].min()].max()"
    pick = {"min": lambda values: min(values), "max": lambda values: max(values)}
    program = environment.program(environment.compile(text), functions=pick)

    return lambda names: program.evaluate({name: DoubleType(value) for name, value in names.items()})


def _json_logic() -> Evaluate:
    from json_logic import jsonLogic

    var = {"n_pos": {"var": "n_pos"}, "n_neg": {"var": "n_neg"}}
    raw = {"-": [{"+": [1.0, {"*": [var["n_pos"], 0.1]}]}, {"*": [var["n_neg"], 0.2]}]}
    rule = {"max": [0.1, {"min": [1.0, raw]}]}

    return lambda names: jsonLogic(rule, names)


_EXPRESSION_PEERS: Mapping[str, Callable[[], Evaluate]] = {
    "simpleeval": _simple_expression, "asteval": _asteval_expression, "cel-python": _cel_expression,
    "json-logic-qubit": _json_logic,
}  # fmt: skip


def expression_peers() -> dict[str, Evaluate]:
    """Return what evaluates ``EXPRESSION``, of the peers that are there; the text is parsed already."""
    return installed(_EXPRESSION_PEERS)


def installed(peers: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Return the peers that are there, by name and version, and print a line for each that is not."""
    found = {}
    for name, prepare in peers.items():
        try:
            found[f"{name} {version(name)}"] = prepare()
        except ImportError:
            print(f"{name} is not installed and left out (pip install {name})")
    return found
