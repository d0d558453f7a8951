"""The results of a loop: its steps with hypothesis, plan and decision, and how the loop ended."""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal, get_args

from attrs import asdict, evolve, field, fields_dict, frozen

from ....adapters.llm import Usage
from ....adapters.llm.budget import Price
from ...errors import RequestError, check_text, short_repr, whole_number_validator
from ...limits import checked_time_limit
from ...results import prices_json, usage_json
from ..search import Filled, Rollout, Settings, Tree
from ..search.policies import Valued

Decision = Literal["start", "continue", "refine", "pivot", "terminate"]
Stopped = Literal["", "steps", "budget", "time", "cancelled", "model", "refused", "exhausted", "no_progress"]


@frozen
class Hypothesis:
    """The start of a step: the evaluation of the previous step, and the current hypothesis.

    ``by`` is "model" if the model decided; "rule" if the model gave no decision and the previous outcome decided.
    """

    decision: Decision
    why: str = ""
    hypothesis: str = ""
    by: Literal["model", "rule"] = "model"


@frozen
class Step:
    """One turn of the loop. ``status`` is the status of the plan, or "refused" if no plan could be run (``faults`` say why).

    ``plan`` is the plan object, ``entries`` are the history entries of its commands. ``alternatives`` are the next actions that were
    not taken. ``repairs`` counts the answers returned to the model. ``state`` is the state's hash after the step, "" if unknown.
    """

    number: int
    supposed: Hypothesis
    status: str
    plan: Mapping[str, Any] = field(factory=dict)
    entries: tuple[Mapping[str, Any], ...] = ()
    confidence: float = 1.0
    rationale: str = ""
    mended: tuple[str, ...] = ()
    alternatives: tuple[Mapping[str, Any], ...] = ()
    repairs: int = 0
    faults: str = ""
    seconds: float = 0.0
    state: str = ""

    @property
    def commands(self) -> tuple[str, ...]:
        """The plan's commands as strings."""
        listed = self.plan.get("commands", ())
        return tuple(str(each["command"]) if isinstance(each, Mapping) else str(each) for each in listed)

    def as_json(self) -> dict[str, Any]:
        """Return the step as a JSON object."""
        told = asdict(self, recurse=False)
        return {
            **told, "supposed": asdict(self.supposed), "plan": dict(self.plan), "entries": [dict(each) for each in self.entries],
            "mended": list(self.mended), "alternatives": [dict(each) for each in self.alternatives],
        }  # fmt: skip

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> "Step":
        """Return the step from the result of ``as_json``."""
        lists = {name: tuple(kept[name]) for name in ("entries", "mended", "alternatives")}
        return cls(**{**kept, **lists, "supposed": Hypothesis(**kept["supposed"])})


@frozen
class Finding:
    """One item of the state with a summary of its evidence (``adapters.state.Evidence``)."""

    key: str
    item: Any
    evidence: tuple[Mapping[str, Any], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the finding as a JSON object."""
        return {"key": self.key, "item": self.item, "evidence": [dict(each) for each in self.evidence]}


@frozen
class Explored:
    """A finished search: ``value`` is the value of the best state (None if unknown), ``plans`` counts executed plans.

    ``stopped`` is the reason why the search ended (see ``search.nodes.Stopped``). ``tree`` is None if the tree was not stored.
    """

    strategy: str
    stopped: str
    value: float | None
    plans: int
    tree: Tree | None = field(default=None, repr=False)

    def as_json(self, tree: bool = True) -> dict[str, Any]:
        """Return the search as a JSON object, including the complete tree if ``tree`` is true."""
        told = {"strategy": self.strategy, "stopped": self.stopped, "value": self.value, "plans": self.plans}
        return {**told, "tree": None if self.tree is None else self.tree.as_json()} if tree else told


@frozen
class Asked:
    """The answer to a question, or the reason why no answer was found.

    ``status`` is complete; ungrounded (the answer is unsupported, ``reason`` says why); stopped (a limit was reached, ``stopped``
    says which; a new attempt continues); failed (the model can't be called, or none of its plans could be run); cancelled.
    ``supposed`` is the last decision. ``usage``, ``calls`` and ``cost`` cover only this attempt, including the model calls of
    plans; ``earlier`` is the number of steps in earlier attempts.

    ``cited`` are the citations in the answer that occur in the state or in a command's result; ``uncited`` are the citations that
    occur in neither.

    ``search`` is set if a search was made; ``steps`` then ends with the steps on the path to the best state.
    """

    question: str
    status: Literal["complete", "ungrounded", "stopped", "failed", "cancelled"]
    answer: str = ""
    stopped: Stopped = ""
    reason: str = ""
    supposed: Hypothesis | None = None
    cited: tuple[str, ...] = ()
    evidence: tuple[Finding, ...] = ()
    steps: tuple[Step, ...] = ()
    earlier: int = 0
    usage: Usage = field(factory=Usage)
    calls: int = 0
    cost: float | None = None
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = field(default=(), kw_only=True)
    """Why the evidence is incomplete, for example because a cap cut a search short."""
    run_id: str = ""
    state: str = ""
    """The state's hash."""
    search: Explored | None = None
    unkept: str = ""
    """Why the recording of the question stopped early; "" if the recording is complete or the question was not recorded."""
    uncited: tuple[str, ...] = ()
    prices: Mapping[str, Price] = field(factory=dict)
    """Maps the specs of models to their known prices."""

    @property
    def tree(self) -> Tree | None:
        """The tree of the search; None if there was no search."""
        return None if self.search is None else self.search.tree

    def as_json(self) -> dict[str, Any]:
        """Return the result as the JSON document of ``--format json``."""
        return {
            "question": self.question,
            "status": self.status,
            "answer": self.answer if self.status in ("complete", "ungrounded") else None,
            "stopped": self.stopped,
            "reason": self.reason,
            "decision": None if self.supposed is None else asdict(self.supposed),
            "cited": list(self.cited),
            "uncited": list(self.uncited),
            "evidence": [each.as_json() for each in self.evidence],
            "steps": [each.as_json() for each in self.steps],
            "earlier": self.earlier,
            "usage": {**usage_json(self.usage, self.calls), "cost": self.cost, "seconds": round(self.seconds, 3)},
            "warnings": list(self.warnings),
            "incomplete": list(self.incomplete),
            "run": self.run_id,
            "state": self.state,
            "search": None if self.search is None else self.search.as_json(),
            **prices_json(self.prices),
        }  # fmt: skip


# The limits of a loop, and the checks of its arguments before it begins.

Worth = Literal["judge", "filled"]
"""How a state is rated: by a model, or by the share of declared keys that are not empty."""

MOST_CHARACTERS = 24_000
"""Maximum characters of a complete prompt for any size of graph and state: about 6,000 tokens."""
LOCAL_CHARACTERS = 9_000
"""Maximum characters of a prompt for the local model, which reads slowly and has 8,192 tokens for prompt and answer together."""
MOST_REPAIRS = 20
"""Maximum number of repairs in one step; stored answers are numbered accordingly (``planner.call_number``)."""
_LEAST = 7_000
_LONGEST = 10_000
"""Maximum characters of a question."""


@frozen
class Bounds:
    """The limits of a loop. Calls, tokens and money are limited where the models are opened.

    ``max_steps`` includes the steps of earlier attempts. ``max_repairs`` is how often a refused answer may be returned to the model in
    one step. ``prompt_characters`` is the maximum length of one prompt. ``time_limit`` is in seconds, for one attempt.
    """

    max_steps: int = field(default=12, validator=whole_number_validator(1))
    max_repairs: int = field(default=2, validator=whole_number_validator(0, MOST_REPAIRS))
    prompt_characters: int = field(default=MOST_CHARACTERS, validator=whole_number_validator(_LEAST))
    time_limit: float | None = field(default=None, converter=checked_time_limit)

    @property
    def most_calls(self) -> int:
        """The maximum number of calls that write plans and answers, one plan at a time, without the calls of the plans' commands.

        A step has one call and ``max_repairs`` repairs. An answer without evidence is returned once more per step, if repairs
        are allowed.
        """
        return self.max_steps * (1 + self.max_repairs + (self.max_repairs > 0))


def checked_question(question: Any) -> str:
    """Return the question without surrounding white space. Raises ``RequestError``."""
    if isinstance(question, str):
        question = question.encode("utf-8", "replace").decode()
    check_text("question", question, _LONGEST, ("the question is empty", 'for example "Who connects the most people?"'))
    return str(question.strip())


def checked_folder(state: "str | Path | None") -> Path | None:
    """Return the folder of a stored state. Raises ``RequestError`` for a file, and for "", which would mean the current folder."""
    if state is None:
        return None
    if not isinstance(state, str | PathLike):
        raise RequestError("state", f"expected a folder, not {type(state).__name__}")
    if not str(state):
        raise RequestError("state", "the path is empty", "give a folder; . is the current one")
    folder = Path(state)
    if folder.is_file():
        hint = f"knotwork state fork {folder} DIR converts an exported state to a folder"
        raise RequestError("state", f"{folder} is a file; the state needs a folder", hint)
    return folder


_SETTINGS = Settings(branching=3, max_depth=8, enough=0.8, answers=True, outcomes=True)
"""Default settings of a search for an answer."""


@frozen
class SearchRequest:
    """How plans are searched. ``value`` is a ``Value`` or a function of a node; None means that a model rates states."""

    settings: Settings = _SETTINGS
    value: Valued | None = None
    rollout: Rollout | None = None


def search_request(search: Any, value: Any = None, rollout: Rollout | None = None) -> SearchRequest | None:
    """Return the search request for a caller's arguments; None if no search is requested. Raises ``RequestError``.

    ``search`` is the name of a strategy, ``Settings``, or a mapping of settings. ``value`` is a ``Worth``, a ``Value`` or a function
    of a node.
    """
    if search is None:
        if value is not None or rollout is not None:
            raise RequestError(
                "value" if value is not None else "rollout", "only a search uses it, and no search was requested"
            )
        return None
    given = {"strategy": search} if isinstance(search, str) else search
    if isinstance(given, Mapping):
        unknown = sorted(set(map(str, given)) - (set(fields_dict(Settings)) - {"answers", "outcomes"}))
        if unknown:
            raise RequestError("search", f"unknown setting {', '.join(unknown)}")
        try:
            given = evolve(_SETTINGS, **given)
        except (TypeError, ValueError) as error:
            raise RequestError("search", str(error)) from None
    if not isinstance(given, Settings):
        raise RequestError("search", f"{short_repr(search)} is neither a strategy nor search settings")
    if isinstance(value, str):
        if value not in get_args(Worth):
            raise RequestError("value", f"{short_repr(value)} is not one of {', '.join(get_args(Worth))}")
        value = Filled() if value == "filled" else None
    elif value is not None and not callable(value) and not hasattr(value, "value"):
        raise RequestError(
            "value",
            f"{short_repr(value)} does not rate states",
            "give a function of a node, or an object with `value(node)`",
        )
    if rollout is not None and not hasattr(rollout, "choose"):
        raise RequestError(
            "rollout", f"{short_repr(rollout)} has no method choose", "`async choose(node, known, random)`"
        )
    return SearchRequest(evolve(given, answers=True, outcomes=True), value, rollout)
