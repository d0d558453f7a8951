"""Slips of models that compile a task, seeded: each takes the good answers and a generator, and spoils one."""

import copy
import json
import random
import re
from collections.abc import Callable

from knotwork.lang.documents.seed import read_seed

from .compiling import GOOD, written

__all__ = ["SLIPS", "slipped"]

Slip = Callable[[dict, random.Random], tuple[str, str]]
SLIPS: dict[str, Slip] = {}


def slip(made: Slip) -> Slip:
    SLIPS[made.__name__] = made
    return made


def slipped(name: str, seed: int) -> dict[str, str]:
    """Return the text of the answer that is spoilt, by its step."""
    phase, text = SLIPS[name](copy.deepcopy(GOOD), random.Random(seed))
    return {phase: text}


def _typo(word: str, chance: random.Random) -> str:
    """Swap two letters that differ, behind the first."""
    places = [at for at in range(1, len(word) - 1) if word[at] != word[at + 1] and word[at : at + 2].isalpha()]
    at = chance.choice(places)
    return word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def _one_use(text: str, pattern: str, chance: random.Random) -> tuple[int, int]:
    return chance.choice([found.span(1) for found in re.finditer(pattern, text)])


def _spoilt(text: str, pattern: str, chance: random.Random) -> str:
    start, end = _one_use(text, pattern, chance)
    return text[:start] + _typo(text[start:end], chance) + text[end:]


@slip
def a_field_misspelt_in_the_seed(good, chance):
    return "seed", _spoilt(written(good["seed"]), r'"extraction\.(\w+)"', chance)


@slip
def a_step_misspelt_in_an_expression(good, chance):
    text = written(good["seed"])
    at = text.index('"compute"')
    return "seed", text[:at] + _spoilt(text[at:], r'"expr": "[^"]*?\b([A-Z]+_[A-Z_]+)\b', chance)


@slip
def an_enum_value_misspelt(good, chance):
    text = written(good["seed"])
    at = text.index('"compute"')
    return "seed", text[:at] + _spoilt(text[at:], r'"extraction\.\w+": "(\w+)"', chance)


@slip
def an_enum_value_not_listed(good, chance):
    step = chance.choice(
        [
            each
            for each in good["seed"]["compute"]
            if each["op"] == "count" and "where" in each and "extraction.incident_severity" in each["where"]
        ]
    )
    step["where"]["extraction.incident_severity"] = chance.choice(["serious illness", "Severe.", "sevree"])
    return "seed", written(good["seed"])


@slip
def a_key_misspelt(good, chance):
    return "seed", _spoilt(written(good["seed"]), r'"(keywords|fields|compute|output|values)":', chance)


@slip
def an_output_left_out(good, chance):
    good["seed"]["output"].remove(chance.choice(good["seed"]["output"]))
    return "seed", written(good["seed"])


@slip
def an_output_under_another_name(good, chance):
    name = chance.choice(good["seed"]["output"])
    return "seed", re.sub(rf"\b{name}\b", name + chance.choice(["_VALUE", "S", "_"]), written(good["seed"]))


@slip
def steps_out_of_order(good, chance):
    steps = good["seed"]["compute"]
    at = chance.randrange(len(steps) // 2)
    steps.append(steps.pop(at))
    return "seed", written(good["seed"])


@slip
def a_fence_and_prose(good, chance):
    phase = chance.choice(list(good))
    before, after = chance.choice(
        [("Sure! Here it is:\n", ""), ("", "\nI hope this helps."), ("# Answer\n\n", "\n\nDone.")]
    )
    return phase, f"{before}```json\n{json.dumps(good[phase], indent=1)}\n```{after}"


@slip
def python_for_json(good, chance):
    phase = chance.choice(list(good))
    return phase, repr(good[phase])


@slip
def commas_too_many(good, chance):
    phase = chance.choice(list(good))
    text = json.dumps(good[phase], indent=1)
    places = [found.start() for found in re.finditer(r"\n *[\]}]", text)]
    at = chance.choice(places)
    return phase, text[:at] + "," + text[at:]


@slip
def comments(good, chance):
    phase = chance.choice(list(good))
    return phase, json.dumps(good[phase], indent=1).replace("{\n", "{ // as asked\n", 1)


@slip
def the_last_brackets_left_out(good, chance):
    phase = chance.choice(list(good))
    return phase, written(good[phase])[: -chance.choice([1, 2] if phase == "conditions" else [1])]


@slip
def the_end_left_out(good, chance):
    phase = chance.choice(list(good))
    return phase, written(good[phase])[: -chance.randrange(10, 200)]


@slip
def a_statement(good, chance):
    step = chance.choice([each for each in good["seed"]["compute"] if each["op"] == "expr"])
    step["expr"] = chance.choice([f"{step['name']} = {step['expr']}", f"return {step['expr']}", f"{step['expr']};"])
    return "seed", written(good["seed"])


@slip
def a_function_of_another_language(good, chance):
    name = chance.choice(["TRUST_SCORE", "RECENCY_DECAY"])
    step = next(each for each in good["seed"]["compute"] if each["name"] == name)
    step["expr"] = chance.choice(
        [
            step["expr"].replace("max(", "Math.max("),
            step["expr"].replace("max(", "MAX("),
            step["expr"].replace("max(", "maxx("),
        ]
    )
    return "seed", written(good["seed"])


@slip
def an_operator_of_another_language(good, chance):
    step = next(each for each in good["seed"]["compute"] if each["name"] == "RECENT_RATIO")
    step["expr"] = chance.choice([
        "N_TOTAL_INCIDENTS > 0 ? N_RECENT / N_TOTAL_INCIDENTS : 0",
        "if N_TOTAL_INCIDENTS > 0 then N_RECENT / N_TOTAL_INCIDENTS else 0",
        "CASE WHEN N_TOTAL_INCIDENTS > 0 THEN N_RECENT / N_TOTAL_INCIDENTS ELSE 0 END",
    ])  # fmt: skip
    return "seed", written(good["seed"])


@slip
def the_older_form(good, chance):
    """Python formulas, as seed 000 has them."""
    seed = read_seed(good["seed"]).seed
    keep = {"N_MILD", "N_MODERATE", "N_SEVERE", "N_TOTAL_INCIDENTS"}
    dag = [
        {
            "name": f"N_{which.upper()}",
            "formula": f"sum(1 for e in extractions if e['incident_severity'] == '{which}' and e['account_type'] == 'firsthand')",
        }
        for which in ("mild", "moderate", "severe")
    ]
    dag.append({"name": "N_TOTAL_INCIDENTS", "formula": "N_MILD + N_MODERATE + N_SEVERE"})
    others = [name for name in seed.outputs if name not in keep]
    chance.shuffle(others)
    dag += [{"name": name, "formula": f"N_TOTAL_INCIDENTS * {number}"} for number, name in enumerate(others, 1)]
    return "seed", written({
        "task_name": "t", "filter_keywords": ["allerg"], "extraction_fields": good["seed"]["extract"]["fields"],
        "compute_dag": dag, "output_fields": list(seed.outputs),
    })  # fmt: skip


@slip
def a_need_misspelt(good, chance):
    text = written(good["graph"])
    return "graph", _spoilt(text, r'"needs": \[\{"name": "([A-Z]+_[A-Z_]+)"', chance)


@slip
def a_field_without_its_namespace(good, chance):
    phase, text = chance.choice([("conditions", written(good["conditions"])), ("graph", written(good["graph"]))])
    start, _ = _one_use(text, r'"(extraction\.)\w+"', chance)
    return phase, text[:start] + text[start + len("extraction.") :]


@slip
def an_output_misspelt_in_the_graph(good, chance):
    name = chance.choice(good["conditions"]["outputs"])["name"]
    return "graph", written(good["graph"]).replace(f'"{name}"', f'"{_typo(name, chance)}"')


@slip
def a_circle(good, chance):
    nodes = good["graph"]["nodes"]
    needed = chance.choice([each for each in nodes if each["needs"] and each["name"] != "VERDICT"])
    needed["needs"].append({"name": "VERDICT", "values": []})
    nodes[-1]["needs"] += (
        []
        if any(each["name"] == needed["name"] for each in nodes[-1]["needs"])
        else [{"name": needed["name"], "values": []}]
    )
    return "graph", written(good["graph"])


@slip
def a_field_that_nothing_needs(good, chance):
    good["conditions"]["fields"].append({"name": "mood", "values": {"good": "Glad", "bad": "Sad"}})
    return "conditions", written(good["conditions"])


@slip
def an_operation_that_there_is_not(good, chance):
    node = chance.choice([each for each in good["graph"]["nodes"] if each["op"] == "expr"])
    node["op"] = chance.choice(["formula", "exprr", "compute"])
    return "graph", written(good["graph"])
