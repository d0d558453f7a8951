"""PROCESS over items with a scripted model: what it is given, and answers that fit."""

import json
import re
from collections.abc import Callable
from typing import Any

from .clients import Scripted
from .runners import run, session

__all__ = ["GOOD", "ITEMS", "NAMES", "answer", "by_reference", "echo_rows", "numbered", "process"]

ITEMS: list[dict[str, Any]] = [{"id": "Ada", "born": 1815}, {"id": "Alan", "born": 1912}]


def answer(*rows: Any) -> str:
    return json.dumps({"rows": list(rows)})


def process(
    answers: Any, text: str = 'PROCESS v USING "do it" AS x RETURNING (name TEXT, born INT)', **rest: Any
) -> Any:
    client = answers if hasattr(answers, "generate") else Scripted(default=answers)
    variables = {"v": rest.pop("items", ITEMS)}
    return run(text, session(llm=client, variables=variables, **rest))


GOOD = answer({"ids": ["i1"], "name": "Ada", "born": 1815}, {"ids": ["i2", "i1"], "name": "Alan", "born": None})


def numbered(count: int) -> list[Any]:
    return [{"id": f"n{n}", "text": "x" * 20} for n in range(count)]


def echo_rows(prompt: str) -> str:
    return answer(*({"ids": [ref], "name": own} for ref, own in re.findall(r'^(i\d+) \{"id": "(\w+)"', prompt, re.M)))


NAMES = 'PROCESS v USING "name" AS x RETURNING (name TEXT)'


def by_reference(**rows: Any) -> Callable[[str], str]:
    """Answer with these rows for the items that are shown, by their references."""

    def say(prompt: str) -> str:
        shown = re.findall(r"^(i\d+) ", prompt, re.M)
        return answer(*({"ids": [ref], "name": name} for ref in shown for name in rows.get(ref, ())))

    return say
