"""Reads the document of an evaluation (the keys of a ``.eval.json`` file): numbers, paths and candidates."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...lang.diagnostic import suggestion
from ..errors import RequestError, is_number, short_repr
from ..loops.evaluate.evaluation import MOST_REPEATS
from ..models.factory import graph_in_folder

KEYS = (
    "target", "gold", "gold_query", "contexts", "query", "group", "text", "columns", "candidates", "filter", "repeat", "tolerance",
    "threshold", "k", "require", "max_failed", "baseline", "target_accuracy",
)  # fmt: skip
_PATHS = ("gold", "contexts", "baseline")
_CANDIDATE = ("llm", "target", "results", "models", "options")


_NUMBERS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "repeat": (
        lambda value: type(value) is int and 1 <= value <= MOST_REPEATS,
        f"a whole number from 1 to {MOST_REPEATS}",
    ),
    "k": (lambda value: type(value) is int and value >= 1, "a whole number above 0"),
    "tolerance": (lambda value: is_number(value) and 0 <= value < float("inf"), "a number, 0 or greater"),
    "threshold": (lambda value: is_number(value) and 0 <= value <= 1, "a number from 0 to 1"),
    "max_failed": (lambda value: is_number(value) and 0 <= value <= 1, "a share from 0 to 1, such as 0.1 for 10 %"),
    "target_accuracy": (
        lambda value: value is None or (is_number(value) and 0 < value < 1),
        "a number between 0 and 1",
    ),
}
"""Maps each setting that is a number to a check of its value and a description of valid values."""


def check_numbers(document: Mapping[str, Any]) -> None:
    """Raise ``RequestError`` for a setting whose value is out of range."""
    for name, (fits, wanted) in _NUMBERS.items():
        if name in document and not fits(document[name]):
            raise RequestError(name, f"expected {wanted}, not {short_repr(document[name])}")


def absolute(document: Mapping[str, Any], folder: Path | None) -> dict[str, Any]:
    """Return the document with each path that is relative to ``folder`` joined to ``folder``."""
    made = dict(document)
    if folder is None:
        return made
    for name in _PATHS:
        if isinstance(made.get(name), str) and "://" not in made[name]:
            made[name] = str(folder / made[name])
    made["target"] = _target_path(made.get("target"), folder)
    if isinstance(made.get("candidates"), Mapping):
        candidates: dict[str, Any] = {}
        for name, each in made["candidates"].items():
            own = dict(each) if isinstance(each, Mapping) else each
            if isinstance(own, dict):
                if isinstance(own.get("results"), str):
                    own["results"] = str(folder / own["results"])
                if "target" in own:
                    own["target"] = _target_path(own["target"], folder)
            candidates[name] = own
        made["candidates"] = candidates
    return made


def _target_path(target: Any, folder: Path) -> Any:
    if not isinstance(target, str) or target == "answer":
        return target
    kind, colon, rest = target.partition(":")
    if colon and kind in ("rank", "ask"):
        return f"{kind}:{graph_in_folder(rest, folder)}"
    return str(folder / target)


def read_candidates(given: Any) -> dict[str, dict[str, Any]]:
    """Return a mapping from names to candidates. A spec or a client is short for ``{"llm": ...}``. Raises ``RequestError``."""
    if given is None:
        return {"model": {}}
    if isinstance(given, Mapping) and not given:
        raise RequestError("candidates", "there is no candidate", 'such as candidates={"mini": "openai:gpt-5-mini"}')
    if not isinstance(given, Mapping):
        hint = 'candidates={"mini": "openai:gpt-5-mini"}'
        raise RequestError("candidates", "expected a mapping from names to models", hint)
    made: dict[str, dict[str, Any]] = {}
    for name, each in given.items():
        if not isinstance(name, str) or not name:
            raise RequestError("candidates", "the name of a candidate is not a text")
        made[name] = dict(each) if isinstance(each, Mapping) else {"llm": each}
        for key in made[name]:
            if key not in _CANDIDATE:
                raise RequestError(
                    "candidates", f"{name} has an unknown key {key!r:.60}", suggestion(str(key), _CANDIDATE)
                )
    return made
