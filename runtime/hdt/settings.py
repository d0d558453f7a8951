"""What bounds a loop, and how one is refused before it begins."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

from attrs import evolve, field, fields_dict, frozen

from ..refusals import RequestError, shown
from ..search import Filled, Rollout, Settings
from ..search.policies import Valued
from ..settings import seconds

__all__ = [
    "LOCAL_CHARACTERS",
    "MOST_CHARACTERS",
    "MOST_REPAIRS",
    "Bounds",
    "Searching",
    "Worth",
    "checked_folder",
    "checked_question",
    "searching",
]

Worth = Literal["judge", "filled"]
"""What says how good a state is: a model, or the share of declared keys that hold something."""

MOST_CHARACTERS = 24_000
"""Characters of a whole prompt, whatever graph and state are: some 6,000 tokens."""
LOCAL_CHARACTERS = 9_000
"""The same for the local model, which reads slowly, and has room for 8,192 tokens with its answer."""
MOST_REPAIRS = 20
"""Times that an answer goes back in one step: a step has so many places for what is kept of it."""
_LEAST = 6_000
_LONGEST = 10_000
"""Characters of a question."""


def _whole(least: int, most: int | None = None) -> Any:
    def check(bounds: "Bounds", attribute: Any, value: Any) -> None:
        if type(value) is not int or value < least:
            raise RequestError(attribute.name, f"{shown(value)} is no whole number of at least {least:,}")
        if most is not None and value > most:
            raise RequestError(attribute.name, f"{shown(value)} is too many: at most {most:,}")

    return check


@frozen
class Bounds:
    """What ends a loop besides its answer. Calls, tokens and money are bounded where the models are opened.

    ``max_steps`` counts those of earlier attempts too. ``max_repairs``: how often a refused answer goes back to the model, in one
    step. ``prompt_characters`` is the most that one prompt has. ``time_limit`` is in seconds, of one attempt.
    """

    max_steps: int = field(default=12, validator=_whole(1))
    max_repairs: int = field(default=2, validator=_whole(0, MOST_REPAIRS))
    prompt_characters: int = field(default=MOST_CHARACTERS, validator=_whole(_LEAST))
    time_limit: float | None = field(default=None, converter=seconds)


def checked_question(question: Any) -> str:
    """Return the question without blanks around it. Raises ``RequestError``."""
    if not isinstance(question, str) or not question.strip():
        raise RequestError("question", "there is no question", 'such as "Who connects the most people?"')
    if len(question) > _LONGEST:
        raise RequestError("question", f"it has {len(question):,} characters; {_LONGEST:,} is the most")
    return question.strip().encode("utf-8", "replace").decode()


def checked_folder(state: "str | Path | None") -> Path | None:
    """Return the folder that a state is kept in. Raises ``RequestError`` for a file, and for "", which would be the current folder."""
    if state is None:
        return None
    if not isinstance(state, str | PathLike):
        raise RequestError("state", f"a folder is wanted, not {type(state).__name__}")
    if not str(state):
        raise RequestError("state", "it is empty", "a folder; . is the current one")
    folder = Path(state)
    if folder.is_file():
        hint = f"knotwork state fork {folder} DIR makes a folder of an exported state"
        raise RequestError("state", f"{folder} is a file, not a folder in which the state can be kept", hint)
    return folder


_SETTINGS = Settings(branching=3, max_depth=8, enough=0.8, answers=True, outcomes=True)
"""Those of a search for an answer, where the caller says nothing else."""


@frozen
class Searching:
    """How plans are searched. ``value``: a ``Value``, or a function of a node; None asks a model."""

    settings: Settings = _SETTINGS
    value: Valued | None = None
    rollout: Rollout | None = None


def searching(search: Any, value: Any = None, rollout: Rollout | None = None) -> Searching | None:
    """Return how a caller wants plans to be searched; None where not at all. Raises ``RequestError``.

    ``search`` is a strategy, ``Settings`` or settings by name. ``value`` is a ``Worth``, a ``Value`` or a function of a node.
    """
    if search is None:
        if value is not None or rollout is not None:
            raise RequestError("value" if value is not None else "rollout", "it is for a search, and none is asked for")
        return None
    given = {"strategy": search} if isinstance(search, str) else search
    if isinstance(given, Mapping):
        unknown = sorted(set(map(str, given)) - (set(fields_dict(Settings)) - {"answers", "outcomes"}))
        if unknown:
            raise RequestError("search", f"there is no setting {', '.join(unknown)}")
        try:
            given = evolve(_SETTINGS, **given)
        except (TypeError, ValueError) as error:
            raise RequestError("search", str(error)) from None
    if not isinstance(given, Settings):
        raise RequestError("search", f"{shown(search)} is no strategy, and no settings of a search")
    if isinstance(value, str):
        if value not in get_args(Worth):
            raise RequestError("value", f"{shown(value)} is none of {', '.join(get_args(Worth))}")
        value = Filled() if value == "filled" else None
    elif value is not None and not callable(value) and not hasattr(value, "value"):
        raise RequestError("value", f"{shown(value)} says nothing of a state", "a function of a node, or `value(node)`")
    if rollout is not None and not hasattr(rollout, "choose"):
        raise RequestError("rollout", f"{shown(rollout)} chooses nothing", "`async choose(node, known, random)`")
    return Searching(evolve(given, answers=True, outcomes=True), value, rollout)
