"""Planted duplicates: names with several spellings each, the pairs that mean the same, and a model that answers right."""

import json
import random
import re
from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

_SYLLABLES = re.findall(
    r"\w+",
    "ba be bi bo bu ka ke ki ko ku la le li lo lu ma me mi mo mu na ne ni no nu ra re ri ro ru sa se si so su ta te ti to tu va "
    "ve vi vo zan del fra gol hum jin pol qui wen yar",
)
_KINDS = ("soup", "curry", "salad", "noodles", "pie", "stew", "bread", "cake")


def planted(names: int, random_state: int = 0) -> dict[str, str]:
    """Return three spellings for each of ``names`` random names, mapped to the name that they mean."""
    random_ = random.Random(random_state)
    found: dict[str, str] = {}
    made: set[str] = set()
    while len(made) < names:
        words = ["".join(random_.choices(_SYLLABLES, k=random_.randint(2, 4))) for _ in range(2)]
        name = f"{words[0]} {words[1]} {random_.choice(_KINDS)}"
        if name in made:
            continue
        made.add(name)
        spellings = {name.title(), _typo(name, random_), _other(name, random_)}
        found |= {spelling: name for spelling in spellings if spelling not in found}
    return found


def _typo(name: str, random_: random.Random) -> str:
    at = random_.randrange(1, len(name) - 1)
    return random_.choice(
        (name[:at] + name[at + 1 :], name[:at] + name[at] + name[at:], name[:at] + "x" + name[at + 1 :])
    )


def _other(name: str, random_: random.Random) -> str:
    first, second, kind = name.split()
    return random_.choice(
        (f"{kind.upper()}, {first} {second}", f"the {name}", f"{first}-{second} {kind}!", f"{first} {second}")
    )


def scores(names: Mapping[str, str], truth: Mapping[str, str]) -> tuple[float, float, float]:
    """Return precision, recall and F1 of the pairs of spellings that ``names`` puts together."""
    right, made = _pairs(truth), _pairs(names)
    both = len(right & made)
    precision, recall = both / max(1, len(made)), both / max(1, len(right))
    return precision, recall, 2 * precision * recall / max(1e-9, precision + recall)


def _pairs(names: Mapping[str, str]) -> set[tuple[str, str]]:
    groups: dict[str, list[str]] = {}
    for spelling, name in names.items():
        groups.setdefault(name, []).append(spelling)
    return {pair for group in groups.values() for pair in combinations(sorted(group), 2)}


_LINE = re.compile(r'^(\d+)\. ("(?:[^"\\]|\\.)*") and ("(?:[^"\\]|\\.)*")$', re.MULTILINE)


class RightModel:
    """Answers questions about pairs by the truth, and every other prompt with ``answers`` in turn."""

    def __init__(self, truth: Mapping[str, str], answers: Iterable[str] = ()) -> None:
        self.truth = {" ".join(spelling.split()): name for spelling, name in truth.items()}  # as a prompt shows them
        self.answers = iter(answers)
        self.calls = self.pairs = 0

    async def generate(self, prompt: str, **options: Any) -> str:
        self.calls += 1
        found = [(int(number), json.loads(one), json.loads(other)) for number, one, other in _LINE.findall(prompt)]
        if not found:
            return next(self.answers)
        self.pairs += len(found)
        return json.dumps({"same": [number for number, one, other in found if self.truth[one] == self.truth[other]]})
