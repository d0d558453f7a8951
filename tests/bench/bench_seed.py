"""The seed row of the targets: seed 002's complete example, compiled, against plain Python written by hand.

    python tests/bench/bench_seed.py [--quick] [--rounds N]

All sides compute the same 33 values in one process and in turn; the table has medians. "By hand, a generator an aggregate" is
what a person writes; "by hand, one loop" is the same with all aggregates in one loop. Neither checks anything: no types, no
limits, no nulls. The optional peers (``peers_expr``) are run at 100 rows. Rows have a value in each field, uniformly drawn, and
the values of all sides must agree. The second table says what a row costs as rows get more.
"""

import gc
import math
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from knotwork.lang.documents.seed import read_seed
from knotwork.lang.evaluate.seed.fused_engine import Compute
from knotwork.lang.evaluate.seed.interpreter import interpret
from peers_expr import CUISINES, SEED_PEERS, by_eval, elements, installed

SEED = Path(__file__).parents[1] / "seeds" / "002" / "example.seed.json"
CONTEXT = {"name": "Basil", "categories": "Restaurants, Thai, Asian Fusion"}
SIZES = (100, 1_000, 10_000, 100_000)

Rows = Sequence[Mapping[str, Any]]


def made(count: int) -> list[dict[str, Any]]:
    """Return rows as the extraction gives them."""
    chance = random.Random(count)
    return [
        {
            "extraction": {
                "incident_severity": chance.choice(["none", "mild", "moderate", "severe"]),
                "account_type": chance.choice(["none", "firsthand", "secondhand", "hypothetical"]),
                "safety_interaction": chance.choice(["none", "positive", "negative", "betrayal"]),
            },
            "meta": {
                "stars": chance.randint(1, 5),
                "useful": chance.randint(0, 40),
                "year": chance.randint(2015, 2025),
            },
        }
        for _ in range(count)
    ]


def is_incident(e: Mapping[str, Any]) -> bool:
    """The filter of the example."""
    return e["account_type"] == "firsthand" and e["incident_severity"] in ("mild", "moderate", "severe")


def by_generators(rows: Rows, context: Mapping[str, Any]) -> dict[str, Any]:
    """Compute the aggregates with a generator each."""
    es = [row["extraction"] for row in rows]
    firsthand = "firsthand"
    return by_hand_after(
        sum(1 for e in es if e["incident_severity"] == "mild" and e["account_type"] == firsthand),
        sum(1 for e in es if e["incident_severity"] == "moderate" and e["account_type"] == firsthand),
        sum(1 for e in es if e["incident_severity"] == "severe" and e["account_type"] == firsthand),
        sum(1 for e in es if e["safety_interaction"] == "positive"),
        sum(1 for e in es if e["safety_interaction"] == "negative"),
        sum(1 for e in es if e["safety_interaction"] == "betrayal"),
        len(rows),
        sum(1 for row in rows if is_incident(row["extraction"]) and row["meta"]["year"] >= 2023),
        sum(1 for row in rows if is_incident(row["extraction"]) and row["meta"]["year"] < 2023),
        max((row["meta"]["year"] for row in rows if is_incident(row["extraction"])), default=2020),
        math.fsum(
            (5 - row["meta"]["stars"]) + math.log(row["meta"]["useful"] + 1)
            for row in rows
            if is_incident(row["extraction"])
        ),
        context,
    )


def by_loop(rows: Rows, context: Mapping[str, Any]) -> dict[str, Any]:
    """Compute the aggregates in one loop, as someone does who wants it quick."""
    mild = moderate = severe = positive = negative = betrayal = recent = old = 0
    newest, weights = None, []
    for row in rows:
        e = row["extraction"]
        safety = e["safety_interaction"]
        if safety == "positive":
            positive += 1
        elif safety == "negative":
            negative += 1
        elif safety == "betrayal":
            betrayal += 1
        if e["account_type"] != "firsthand":
            continue
        severity = e["incident_severity"]
        if severity == "mild":
            mild += 1
        elif severity == "moderate":
            moderate += 1
        elif severity == "severe":
            severe += 1
        else:
            continue
        meta = row["meta"]
        year = meta["year"]
        if year >= 2023:
            recent += 1
        else:
            old += 1
        if newest is None or year > newest:
            newest = year
        weights.append((5 - meta["stars"]) + math.log(meta["useful"] + 1))
    counts = (mild, moderate, severe, positive, negative, betrayal, len(rows), recent, old)
    return by_hand_after(*counts, 2020 if newest is None else newest, math.fsum(weights), context)


def by_hand_after(
    mild: int,
    moderate: int,
    severe: int,
    positive: int,
    negative: int,
    betrayal: int,
    reviews: int,
    recent: int,
    old: int,
    newest: int,
    weight: float,
    context: Mapping[str, Any],
) -> dict[str, Any]:
    """Compute the rest of the example from its aggregates."""
    total = mild + moderate + severe
    raw = 1.0 + (positive * 0.1) - (negative * 0.2) - (betrayal * 0.5)
    trust = max(0.1, min(1.0, raw))
    mild_weight, moderate_weight = 2 * (1.5 - trust), 5 * (1.3 - 0.3 * trust)
    score = (mild * mild_weight) + (moderate * moderate_weight) + (severe * 15)
    ratio = recent / total if total > 0 else 0
    trajectory = 1.3 if ratio > 0.7 else 0.7 if ratio < 0.3 and total > 0 else 1.0
    categories = context["categories"].lower()
    cuisine = max((value for key, value in CUISINES.items() if key.lower() in categories), default=1.0)
    silence = cuisine * 0.5 if reviews == 0 else 0
    impact = (cuisine * 0.5) + silence
    age = 2025 - newest
    decay = max(0.3, 1.0 - (age * 0.15))
    credibility = weight / total if total > 0 else 1.0
    incident = score * trajectory * decay * credibility
    trust_impact = (1.0 - trust) * 3.0
    credit = positive * trust * 0.5
    risk = 2.0 + incident + trust_impact + impact - credit
    final = max(0.0, min(20.0, risk))
    verdict = "Low Risk" if final < 4.0 else "High Risk" if final < 8.0 else "Critical Risk"
    return {
        "N_MILD": mild, "N_MODERATE": moderate, "N_SEVERE": severe, "N_TOTAL_INCIDENTS": total, "N_POSITIVE": positive,
        "N_NEGATIVE": negative, "N_BETRAYAL": betrayal, "N_ALLERGY_REVIEWS": reviews, "TRUST_RAW": raw, "TRUST_SCORE": trust,
        "MILD_WEIGHT": mild_weight, "MODERATE_WEIGHT": moderate_weight, "SEVERE_WEIGHT": 15, "ADJUSTED_INCIDENT_SCORE": score,
        "N_RECENT": recent, "N_OLD": old, "RECENT_RATIO": ratio, "TRAJECTORY_MULTIPLIER": trajectory, "CUISINE_MODIFIER": cuisine,
        "SILENCE_PENALTY": silence, "CUISINE_IMPACT": impact, "MOST_RECENT_YEAR": newest, "INCIDENT_AGE": age, "RECENCY_DECAY": decay,
        "TOTAL_WEIGHT": weight, "CREDIBILITY_FACTOR": credibility, "INCIDENT_IMPACT": incident, "TRUST_IMPACT": trust_impact,
        "POSITIVE_CREDIT": credit, "BASE_RISK": 2.0, "RAW_RISK": risk, "FINAL_RISK_SCORE": final, "VERDICT": verdict,
    }  # fmt: skip


def timed(sides: Mapping[str, Callable[[], Any]], rounds: int, least: float) -> dict[str, tuple[float, float]]:
    """Return for each side the median seconds of a run, and the median of its ratios to the first side in the same round.

    A round runs each side for at least ``least`` seconds, one after the other; what else the machine does then falls on all.
    """
    repeats = {}
    for name, run in sides.items():
        run()
        begun = perf_counter()
        run()
        repeats[name] = max(1, math.ceil(least / (perf_counter() - begun)))
    taken: dict[str, list[float]] = {name: [] for name in sides}
    gc.collect()
    gc.disable()
    for _ in range(rounds):
        for name, run in sides.items():
            begun = perf_counter()
            for _ in range(repeats[name]):
                run()
            taken[name].append((perf_counter() - begun) / repeats[name])
    gc.enable()
    first = next(iter(taken.values()))
    return {
        name: (median(times), median(time / base for time, base in zip(times, first, strict=True)))
        for name, times in taken.items()
    }


def main(rounds: int, sizes: Sequence[int], *, peers: bool) -> None:
    """Run all sides in turn and print both tables."""
    read = read_seed(SEED.read_text(encoding="utf-8"))
    assert read.seed is not None
    seed = read.seed
    compiling = timed({"compile": lambda: Compute.of(seed)}, rounds, 0.01)["compile"][0]
    print(
        f"seed 002's complete example: {len(seed.steps)} steps, compiled in {compiling * 1e3:.1f} ms; {rounds} rounds in turn"
    )
    compute = Compute.of(seed)
    rows = made(sizes[0])
    given = elements(rows)
    sides: dict[str, Callable[[], Any]] = {
        "knotwork, compiled with guards": lambda: dict(compute.run(rows, CONTEXT).values),
        "by hand, a generator an aggregate": lambda: by_generators(rows, CONTEXT),
        "by hand, one loop": lambda: by_loop(rows, CONTEXT),
        "knotwork, interpreter": lambda: dict(interpret(seed, rows, CONTEXT).values),
        "eval of the texts, each run": lambda: by_eval(given, CONTEXT),
    }
    for name, side in (installed(SEED_PEERS) if peers else {}).items():
        sides[name] = lambda side=side: side(given, CONTEXT)
    right = sides["by hand, a generator an aggregate"]()
    for name, run in sides.items():
        found = run()
        assert all(same(found[key], value) for key, value in right.items()), name
    times = timed(sides, rounds, 0.005)
    print(f"\n{f'{sizes[0]:,} rows':<38} {'a run':>12} {'time':>9} {'throughput':>11}")
    for name, (took, ratio) in times.items():
        print(f"  {name:<36} {took * 1e6:>9.1f} µs {ratio:>7.2f} x {1 / ratio:>9.3f} x")
    by_size(compute, rounds, sizes)


def same(found: Any, value: Any) -> bool:
    """Say whether two sides agree; sums of other sides are rounded in other places."""
    return math.isclose(found, value, rel_tol=1e-9) if isinstance(value, float) else bool(found == value)


def by_size(compute: Compute, rounds: int, sizes: Sequence[int]) -> None:
    """Print what a row costs at each size."""
    small, base = made(sizes[0]), sizes[0]
    print(f"\n{'rows':>9} {'knotwork, a row':>18} {f'to that at {base}':>16} {'by generators':>16} {'throughput':>12}")
    for size in sizes:
        rows = made(size)
        sides = {
            "ours": lambda rows=rows: compute.run(rows, CONTEXT),
            "ours, few rows": lambda: compute.run(small, CONTEXT),
            "plain": lambda rows=rows: by_generators(rows, CONTEXT),
        }
        times = timed(sides, rounds if size < 100_000 else max(3, rounds // 3), 0.005)
        (ours, _), (_, few), (plain, ratio) = times.values()
        growth = base / (few * size)
        print(
            f"{size:>9,} {ours / size * 1e9:>15.0f} ns {growth:>14.2f} x {plain / size * 1e9:>13.0f} ns {ratio:>10.2f} x"
        )


if __name__ == "__main__":
    words = sys.argv[1:]
    turns = int(words[words.index("--rounds") + 1]) if "--rounds" in words else 5 if "--quick" in words else 25
    main(turns, SIZES[:2] if "--quick" in words else SIZES, peers="--quick" not in words)
