"""Formula Seeds that mean harm. ``SEEDS`` has what is not to be read or checked without a fault; ``COSTLY`` what is well-formed and
expensive, or nothing of the kind, and is computed over ``rows()``."""

import json
from collections.abc import Callable
from typing import Any

from .seed_texts import of_form_000, of_form_002

__all__ = ["CONTEXT", "COSTLY", "SEEDS", "rows"]

CONTEXT = {"name": "a", "categories": ["Thai " * 20_000, *(f"c{at}" for at in range(1_000))], "text": "a" * 1_000_000}


def rows(count: int = 100) -> list[dict[str, Any]]:
    """Return extractions, some of whose texts are long."""
    fields = {
        "severity": "mild",
        "account": "firsthand",
        "party": 3,
        "price": 1.5,
        "served": True,
        "note": "n" * 1_000,
        "dishes": ["a"] * 50,
    }
    meta = {"stars": 3, "useful": 1, "year": 2024, "month": 5, "date": "2024-05-01", "age_days": 10}
    return [{"extraction": fields, "meta": meta} for _ in range(count)]


def _count(name: str, where: Any = None) -> dict[str, Any]:
    return {"name": name, "op": "count", **({} if where is None else {"where": where})}


def _expr(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "op": "expr", "expr": text}


def _filters(*names: str) -> dict[str, bool]:
    return {f"${name}": True for name in names}


def _steps(count: int, text: Callable[[int], str]) -> dict[str, Any]:
    return of_form_002(*(_expr(f"s{at}", text(at)) for at in range(count)))


def _text(**changed: Any) -> str:
    return json.dumps({**of_form_002(_count("N")), **changed})


def _cyclic() -> dict[str, Any]:
    made = of_form_002(_count("N"))
    made["compute"].append(made)
    return made


def _deep(levels: int) -> Any:
    made: Any = 1
    for _ in range(levels):
        made = {"a": [made]}
    return made


def _case(rules: list[Any], **more: Any) -> dict[str, Any]:
    return of_form_002(_count("N"), {"name": "V", "op": "case", "source": "N", **more, "rules": rules})


def _lookup(table: dict[str, Any], match: str) -> dict[str, Any]:
    return of_form_002(
        {"name": "L", "op": "lookup", "source": "context.categories", "table": table, "match": match, "default": 0}
    )


SEEDS: dict[str, Callable[[], Any]] = {
    "a deep document": lambda: '{"compute":' * 100_000,
    "a deep list": lambda: _text().replace('"N"]', "[" * 100_000),
    "a deep value": lambda: of_form_002({"name": "K", "op": "const", "value": _deep(40)}),
    "a deep object": lambda: {"compute": _deep(5_000)},
    "a circle": _cyclic,
    "a key that is not a text": lambda: {"compute": [], 5: 1},
    "values that are not JSON": lambda: {"compute": [object(), {1, 2}, b"x"], "output": []},
    "not a number": lambda: {"compute": [{"name": "K", "op": "const", "value": float("nan")}], "output": ["K"]},
    "not a number in text": lambda: _text(passes=float("nan")),
    "a number of a megabyte": lambda: _text(passes=1).replace('"passes": 1', '"passes": ' + "9" * 1_000_000),
    "an integer of 100 digits": lambda: _text(passes=10**100),
    "a long number of characters": lambda: of_form_002(_count("N"), review_handling={"max_length": 2**62}),
    "keys that stand twice": lambda: _text().replace('"op": "count"', ", ".join(['"op": "count"'] * 10_000)),
    "half a character": lambda: _text(task_name="x").replace('"x"', '"\\ud800"'),
    "half a character in a value": lambda: of_form_002(_count("N", {"extraction.severity": "\ud800"})),
    "zeros": lambda: "\0" * 1_000_000,
    "a document of five megabytes": lambda: _text(task_name="x" * 5_000_000),
    "a name of three megabytes": lambda: _text(task_name="x" * 3_000_000),
    "a key of a megabyte": lambda: _text(**{"k" * 1_000_000: 1}),
    "many keys": lambda: _text(**{f"key{at}": 1 for at in range(50_000)}),
    "10,000 steps": lambda: _steps(10_000, lambda at: "1"),
    "100,000 empty steps": lambda: _text(compute=[None] * 99_000),
    "1,000 steps of nothing": lambda: of_form_002(*[{}] * 1_000, output=["N"]),
    "1,000 steps that are no expressions": lambda: _steps(1_000, lambda at: "a b c d (" * 10),
    "1,000 steps of unknown names": lambda: _steps(1_000, lambda at: f"unknown_{at} + nobody_{at}"),
    "1,000 steps in the wrong order": lambda: _steps(1_000, lambda at: f"s{at + 1} + 1"),
    "1,000 steps in a circle": lambda: _steps(1_000, lambda at: f"s{(at + 1) % 1_000} + 1"),
    "each step needs all later ones": lambda: _steps(140, lambda at: " + ".join([f"s{n}" for n in range(at + 1, 140)] or ["1"])),
    "1,000 steps of one name": lambda: of_form_002(*[_count("N")] * 1_000),
    "1,000 steps of Python": lambda: _steps(1_000, lambda at: "().__class__.__base__.__subclasses__()"),
    "names with two underscores": lambda: of_form_002(_count("__class__"), _expr("__import__", "1")),
    "names of anything": lambda: of_form_002(*(_count(name) for name in ("a b", "\u202eN", "N\n", "", " ", "🙂", "x" * 10_000, "${N}"))),
    "a million brackets": lambda: _steps(10, lambda at: "(" * 9_000 + "1" + ")" * 900),
    "expressions of a megabyte": lambda: _steps(10, lambda at: "1 + " * 100_000 + "1"),
    "an expression of escapes": lambda: _text(compute=[_expr("T", "x")]).replace('"x"', '"' + "\\u0028" * 9_000 + '"'),
    "an import": lambda: of_form_000("__import__('os').system('true')", "open('/etc/passwd')", "extractions.__class__", "eval('1')"),
    "100,000 keywords": lambda: _text(filter={"keywords": [f"k{at}" for at in range(90_000)]}),
    "patterns that repeat": lambda: _text(filter={"keywords": ["((a{100}){100}){100}"] * 5_000, "match": "regex"}),
    "patterns that look back": lambda: _text(filter={"keywords": ["(a)\\1(?=b)"] * 5_000, "match": "regex"}),
    "long patterns": lambda: _text(filter={"keywords": ["(x+x+)+y" * 2_000] * 100, "match": "regex"}),
    "an enum of 90,000 values": lambda: _text(extract={"fields": [{"name": "a", "values": [f"v{at}" for at in range(90_000)]}]}),
    "an enum of one long value": lambda: _text(extract={"fields": [{"name": "severity", "values": ["v" * 1_000_000, "w"]}]}),
    "10,000 fields": lambda: _text(extract={"fields": [{"name": f"f{at}", "type": "int"} for at in range(10_000)]}),
    "fields that are none": lambda: _text(extract={"fields": [None, 1, "a", [], {}] * 40}),
    "a condition with many keys": lambda: of_form_002(_count("N", {f"extraction.f{at}": 1 for at in range(20_000)})),
    "a condition with many operators": lambda: of_form_002(_count("N", {"meta.year": {f"op{at}": 1 for at in range(20_000)}})),
    "a condition with many values": lambda: of_form_002(_count("N", {"extraction.severity": {"in": [f"v{at}" for at in range(50_000)]}})),
    "conditions on anything": lambda: of_form_002(_count("N", dict.fromkeys((
        "", "$", "$$F", "meta.", ".x", "extraction.", "extraction.a.b", "extraction.__class__", "__class__", "x" * 100_000), 1))),
    "10,000 rules": lambda: _case([{"when": f"< {at}", "then": at} for at in range(10_000, 0, -1)]),
    "10,000 rules after else": lambda: _case([{"else": 1}] * 10_000),
    "10,000 rules of nothing": lambda: _case([{}] * 10_000),
    "a table of 20,000 keys": lambda: _lookup({"a" * (at % 100) + str(at): "x" for at in range(20_000)}, "substring_first"),
    "100,000 outputs": lambda: _text(output=["N"] * 90_000),
    "a prompt without the review": lambda: _text(extract={"fields": [{"name": "a", "type": "int"}], "prompt": "{review_x}" * 9_000}),
    "a prompt of braces": lambda: _text(extract={"fields": [{"name": "a", "type": "int"}], "prompt": "{" * 90_000 + "review_text"}),
    "a prompt of a megabyte": lambda: _text(extract={"fields": [{"name": "a", "type": "int"}], "prompt": "{review_text}" * 80_000}),
    "filters that double": lambda: of_form_002(
        {"name": "F0", "op": "define_filter", "extraction": {"severity": "mild"}},
        {"name": "F1", "op": "define_filter", "where": _filters("F0")},
        *({"name": f"F{at}", "op": "define_filter", "where": _filters(f"F{at - 1}", f"F{at - 2}")} for at in range(2, 300)),
        _count("N", _filters("F299"))),
}  # fmt: skip
"""Refused: each has an error."""


COSTLY: dict[str, Callable[[], Any]] = {
    "filters of filters": lambda: of_form_002(
        {"name": "F0", "op": "define_filter", "extraction": {"severity": "mild"}},
        *({"name": f"F{at}", "op": "define_filter", "where": _filters(f"F{at - 1}")} for at in range(1, 900)),
        _count("N", _filters("F899"))),
    "a chain of 1,000 steps": lambda: _steps(1_000, lambda at: f"s{at - 1} + 1" if at else "1"),
    "lists that double": lambda: _steps(100, lambda at: f"s{at - 1} + s{at - 1}" if at else "[1, 2]"),
    "texts that double": lambda: _steps(100, lambda at: f"s{at - 1} + s{at - 1}" if at else "'ab'"),
    "squares": lambda: _steps(100, lambda at: f"s{at - 1} * s{at - 1}" if at else "3"),
    "powers": lambda: _steps(3, lambda at: "9 ** 9 ** 9"),
    "every pair of extractions": lambda: of_form_000("sum(1 for e in extractions for f in extractions if e['party'] < f['party'])"),
    "every pair, nested": lambda: of_form_000("sum(len([f for f in extractions if f['note'] == e['note']]) for e in extractions)"),
    "all notes in one": lambda: of_form_000("sorted([e['note'] + f['note'] for e in extractions for f in extractions])"),
    "1,000 sums": lambda: of_form_000(*["sum(1 for e in extractions if e['severity'] == 'mild')"] * 1_000),
    "1,000 counts": lambda: of_form_002(*(_count(f"N{at}", {"extraction.severity": "mild", "meta.year": at}) for at in range(1_000))),
    "counts of many values": lambda: of_form_002(
        *(_count(f"N{at}", {"extraction.note": {"in": [f"v{n}" for n in range(2_000)]}}) for at in range(15))),
    "a wide lookup": lambda: _lookup({f"key{at}": at for at in range(5_000)}, "substring_max"),
    "a lookup of words": lambda: _lookup({f"a{'a' * (at % 50)}{at}": at for at in range(5_000)}, "word_max"),
    "a lookup of letters": lambda: _lookup({"a" * at: at for at in range(1, 2_000)}, "word_first"),
    "texts of a megabyte": lambda: _steps(100, lambda at: "context.text.upper() + context.text.lower()"),
    "a text counted": lambda: _steps(500, lambda at: "context.text.count('aa')"),
    "a deep value": lambda: of_form_002({"name": "K", "op": "const", "value": _deep(20)}, *(_expr(f"s{at}", "K == K") for at in range(900)),
    ),
    "sums of texts": lambda: of_form_002({"name": "S", "op": "sum", "expr": "len(extraction.note + extraction.note)"}),
    "900 rules": lambda: _case([*({"when": f"< {-at}", "then": at} for at in range(900, 0, -1)), {"else": 0}]),
    "5,000 short keywords": lambda: _text(filter={"keywords": ["a"] * 5_000}),
}  # fmt: skip
"""Computed within the limits, or refused by them."""
