"""Expressions that seeds have and people write, each with the value it must give."""

import pytest
from knotwork import expr

EXTRACTIONS = [
    {"severity": "mild", "kind": "firsthand", "score": 2, "tags": ["a"], "meta": {"stars": 1, "useful": 0, "year": 2024}},
    {"severity": "severe", "kind": "firsthand", "score": 7.5, "tags": [], "meta": {"stars": 2, "useful": 3, "year": 2020}},
    {"severity": "none", "kind": "secondhand", "score": None, "tags": ["a", "b"],
     "meta": {"stars": 5, "useful": 1, "year": None}},
    {"severity": "mild", "kind": "hypothetical", "score": 0, "tags": ["b"], "meta": {"stars": 4, "useful": 0, "year": 2023}},
]  # fmt: skip
VALUES = {
    "extractions": EXTRACTIONS, "n_mild": 2, "n_moderate": 0, "n_severe": 1, "raw_risk": 23.5, "trust": 0.7, "zero": 0,
    "year": 2023, "xs": [3, 1, 2], "words": ["pear", "Apple", "fig"], "name": "Thai Palace", "nothing": None, "empty": [],
    "final_risk_score": 5.25, "table": {"Thai": 2.0, "Pizza": 0.5}, "flag": True,
}  # fmt: skip

CASES = [
    # Seed 000
    ("sum(1 for e in extractions if e['severity']=='mild' and e['kind']=='firsthand')", 1),
    ("sum(1 for e in extractions if e['severity'] in ('mild', 'severe'))", 3),
    ("n_mild + n_moderate + n_severe", 3),
    ("n_mild * 2 + n_moderate * 5 + n_severe * 15", 19),
    ("max(0.0, min(20.0, raw_risk))", 20.0),
    ("'Low Risk' if final_risk_score < 4 else ('High Risk' if final_risk_score < 8 else 'Critical Risk')", "High Risk"),
    ("'low' if n_mild == 0 else 'some' if n_mild < 3 else 'many'", "some"),
    ("len(extractions)", 4),
    ("len([e for e in extractions if e['severity'] != 'none'])", 3),
    ("sum(e['meta']['stars'] for e in extractions) / len(extractions)", 3.0),
    ("round(sum(e['meta']['stars'] for e in extractions) / len(extractions), 2)", 3.0),
    ("max((e['meta']['year'] for e in extractions if e['meta']['year'] is not None), default=2020)", 2024),
    ("max([e['meta']['year'] for e in extractions if e['severity'] == 'moderate'], default=2020)", 2020),
    ("sum(5 - e['meta']['stars'] + log(e['meta']['useful'] + 1) for e in extractions if e['severity'] == 'mild')", 5.0),
    ("sum(1 for e in extractions for t in e['tags'] if t == 'a')", 2),
    ("sorted(set(t for e in extractions for t in e['tags']))", ["a", "b"]),
    ("any(e['severity'] == 'severe' for e in extractions)", True),
    ("all(e['meta']['stars'] > 1 for e in extractions)", False),
    ("e_count if false else 0", 0),
    ("sum(1 for e in extractions if e.get('missing', 'none') == 'none')", 4),
    ("len(set(e['kind'] for e in extractions))", 3),
    ("len(set((e['kind'], e['severity']) for e in extractions))", 4),
    # Seed 002
    ("1.0 + (n_mild * 0.1) - (n_moderate * 0.2) - (n_severe * 0.5)", 0.7),
    ("max(0.1, min(1.0, trust))", 0.7),
    ("2 * (1.5 - trust)", 1.6),
    ("n_mild / n_moderate if n_moderate > 0 else 0", 0),
    ("(1.0 - trust) * 3.0", 3.0 * (1.0 - 0.7)),
    ("max(0.3, 1.0 - ((2025 - year) * 0.15))", 0.7),
    ("clamp(raw_risk, 0, 20)", 20),
    ("table['Thai'] * 0.5", 1.0),
    ("table.get('Sushi', 1.0)", 1.0),
    ("table.get('Sushi')", None),
    # Numbers
    ("(7 // 2, 7 % 2, -7 // 2, -7 % 2)", [3, 1, -4, 1]),
    ("-2 ** 2", -4),
    ("2 ** -1", 0.5),
    ("2 ** 62", 2**62),
    ("10 / 4", 2.5),
    ("1 / 3 * 3 == 1", True),
    ("0.1 + 0.2 == 0.3", False),
    ("sum([0.1] * 10) == 1.0", True),
    ("sum([1, 2], 10)", 13),
    ("(round(2.5), round(3.5), round(-0.5))", [2, 4, 0]),
    ("(round(2.675, 2), round(15, -1))", [2.67, 20]),
    ("(floor(-1.5), ceil(-1.5), int(-1.5), abs(-1.5))", [-2, -1, -1, 1.5]),
    ("(int('12'), int(' -3 '), float('1.5'), float('1e3'), int(true))", [12, -3, 1.5, 1000.0, 1]),
    ("(sqrt(16), exp(0), ln(1), log(8, 2), log10(1000), log2(8))", [4.0, 1.0, 0.0, 3.0, 3.0, 3.0]),
    ("(1 < 2 < 3, 1 < 3 < 2)", [True, False]),
    ("1 == 1.0 == 1", True),
    # Texts
    ("name.lower()", "thai palace"),
    ("'thai' in name.lower()", True),
    ("'Sushi' not in name", True),
    ("name.split(' ')[0]", "Thai"),
    ("name.split()", ["Thai", "Palace"]),
    ("(name[0], name[-1], name[:4], name[::-1])", ["T", "e", "Thai", "ecalaP iahT"]),
    ("(' x '.strip(), 'xxaxx'.strip('x'))", ["x", "a"]),
    ("name.startswith('Thai') and name.endswith('ce')", True),
    ("name.count('a')", 3),
    ("'n = ' + str(n_mild) + ', ' + str(1.0) + ' ' + str(true)", "n = 2, 1.0 true"),
    ("'-' * 3 + 'a' * 0", "---"),
    ("'Straße'.upper()", "STRASSE"),
    # Lists and objects
    ("(sorted(xs), sorted(xs, reverse=True), sorted(words))", [[1, 2, 3], [3, 2, 1], ["Apple", "fig", "pear"]]),
    ("(xs[0], xs[-1], xs[1:], xs[::-1], xs[:99])", [3, 2, [1, 2], [2, 1, 3], [3, 1, 2]]),
    ("xs + [4] * 2", [3, 1, 2, 4, 4]),
    ("[x * x for x in xs if x > 1]", [9, 4]),
    ("[[x, y] for x in xs for y in xs if x < y]", [[1, 3], [1, 2], [2, 3]]),
    ("(1, 2) == [1, 2]", True),
    ("(max(xs), min(xs), max(1, 2.5), max(words))", [3, 1, 2.5, "pear"]),
    ("max(empty, default=null)", None),
    ("min(table.get(k, 0) for k in ['Thai', 'Pizza'])", 0.5),
    ("[k for k in table]", ["Thai", "Pizza"]),
    ("'Thai' in table and 'Sushi' not in table", True),
    ("{'verdict': 'low' if flag else 'high', 'parts': (1, [2])}", {"verdict": "low", "parts": [1, [2]]}),
    ("{1: 'one', true: 'yes'}[1]", "one"),
    ("{1: 'one', true: 'yes'}[true]", "yes"),
    ("(len(name), len(xs), len(table), len(set('hello')))", [11, 3, 2, 4]),
    ("(xs.count(1), words.count('fig'))", [1, 1]),
    # Truth and null
    ("(nothing == null, nothing != None, nothing is None, nothing is not null)", [True, False, True, False]),
    ("(nothing < 1, nothing == 1, nothing != 1, nothing in xs, nothing not in xs)", [False] * 5),
    ("nothing or 'default'", "default"),
    ("empty and 1", []),
    ("(not nothing, not empty, not 0, not '')", [True] * 4),
    ("1 if nothing else 2", 2),
    ("n_mild > 0 and 1 / zero if zero != 0 else 0", 0),
    ("zero == 0 or 1 / zero > 1", True),
    ("(true == 1, true in [1], [1, true].count(1), len(set([1, true, 1.0])))", [False, False, 1, 2]),
    ("(bool(''), bool([0]), bool(null))", [False, True, False]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), CASES, ids=[text for text, _ in CASES])
def test_what_people_write_works(text, value):
    found = expr.evaluate(text, VALUES)
    assert found == value
    assert type(found) is type(value)
