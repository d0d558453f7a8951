"""``.mode .output .timer .llm .budget``: how results are shown, who is asked, and what that may cost."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from .....adapters.llm import LLMError
from .....lang.diagnostic import nearest
from ...atomic_write import UnknownSuffix, known_suffix
from ..outcome import Outcome, Table, misused
from ..repl_workspace import MODES, Model, budget_of
from ..session_file import unopened, unwritten
from .dot import Asked, Dot, beside

__all__ = ["BUDGET", "LLM", "MODE", "OUTPUT", "TIMER"]


async def _mode(asked: Asked) -> Outcome:
    settings, wanted = asked.desk.settings, asked.argument.lower()
    if not wanted:
        return Outcome(summary=f"mode {settings.mode}")
    found = next((mode for mode in MODES if mode == {"markdown": "md", "tbl": "table"}.get(wanted, wanted)), None)
    if found is None:
        return asked.missing(f"there is no mode {asked.argument}", asked.argument, MODES)
    settings.mode = found
    return Outcome(summary=f"mode {found}")


def _output(asked: Asked) -> Outcome:
    settings, words = asked.desk.settings, asked.words
    flags = [word for word in words if word.startswith("--")]
    names = [word for word in words if not word.startswith("--")]
    if not words:
        before, settings.output = settings.output, None
        return Outcome(
            summary=f"results go to the screen again; {before} has the others" if before else "results go to the screen"
        )
    if len(names) != 1 or any(flag not in ("--force", "--append") for flag in flags):
        return misused(".output takes one file, and --append or --force", ".output results.csv")
    hint = f".output {names[0]} --append adds to it, --force begins it anew"
    try:
        known_suffix(names[0], (".json", ".csv", ".md", ".txt"))
    except UnknownSuffix as error:
        return misused(error.message, error.hint)
    appends, force = "--append" in flags, "--force" in flags
    fault = unopened(names[0]) if appends else unwritten(names[0], "", force=force, hint=hint)
    if fault is not None:
        return fault
    settings.output = Path(names[0]).expanduser()
    return Outcome(summary=f"results go to {names[0]}; .output alone ends that")


async def _timer(asked: Asked) -> Outcome:
    settings, wanted = asked.desk.settings, asked.argument.lower()
    if wanted not in ("", "on", "off"):
        return asked.missing(f".timer takes on or off, not {asked.argument}", asked.argument, ("on", "off"))
    settings.timer = not settings.timer if not wanted else wanted == "on"
    return Outcome(summary=f"timer {'on' if settings.timer else 'off'}")


async def _llm(asked: Asked) -> Outcome:
    desk = asked.desk
    if asked.argument:
        if len(asked.words) != 1:
            return misused(".llm takes one model", ".llm openai:MODEL")
        try:
            desk.model.choose(asked.words[0])
        except LLMError as error:
            return misused(error.message, error.hint, _meant(asked.words[0], error.hint))
        return Outcome(summary=f"asks {desk.model.spec} from now on")
    rows = [["", _spec_of(desk.model)], *([name, model.spec] for name, model in desk.models.items())]
    return Outcome(
        value=Table(("name", "model"), rows), summary="the model without a name answers; .llm SPEC chooses another"
    )


def _meant(spec: str, hint: str) -> str:
    """Return the command with the spec that the hint has; what stands for a model's name in it is the one that was given."""
    near = re.fullmatch(r"did you mean (\S+)\?", hint)
    if near is None:
        return ""
    model = spec.partition(":")[2]
    return f".llm {near[1].replace('MODEL', model) if model else near[1]}"


def _spec_of(model: Model) -> str:
    try:
        return model.shown
    except LLMError as error:
        return f"none ({error.message.splitlines()[0]})"


_LIMITS = ("calls", "tokens", "cost")


async def _budget(asked: Asked) -> Outcome:
    model = asked.desk.model
    whole: dict[str, int | None] = {"calls": model.ledger.max_calls, "tokens": model.ledger.max_tokens}
    cost = model.ledger.max_cost
    for word in asked.words:
        name, equals, text = word.partition("=")
        if name not in _LIMITS or not equals:
            told = f".budget takes calls=N, tokens=N and cost=USD, not {word}"
            near = nearest(name, _LIMITS) if equals else None
            if near is None:
                return misused(told, ".budget calls=20 tokens=none")
            return asked.missing(told, name, _LIMITS)
        try:
            if name == "cost":
                cost = _number(text, float)
            else:
                whole[name] = _number(text, int)
        except ValueError:
            told = f"{name}= takes a number or none, not {text}"
            return misused(told, f".budget {name}={'0.5' if name == 'cost' else '20'}")
        if name == "cost" and cost is not None and model.price is None:
            return misused(
                "a limit on cost needs the model's price", "start with --price IN/OUT, or limit tokens instead"
            )
    model.ledger.max_calls, model.ledger.max_tokens, model.ledger.max_cost = whole["calls"], whole["tokens"], cost
    columns = ("what", "spent", "limit", "left")
    return Outcome(value=Table(columns, budget_of(model.ledger)))


_Number = TypeVar("_Number", int, float)


def _number(text: str, read: Callable[[str], _Number]) -> _Number | None:
    """Return a limit, None for no limit. Raises ``ValueError`` for what is neither."""
    if text.lower() == "none":
        return None
    number = read(text)
    if not 0 <= number < float("inf"):
        raise ValueError(text)
    return number


MODE = Dot(
    "mode", ".mode [MODE]", "how results are written", _mode, "mode",
    "MODE is table, json, csv, md or auto: a table on a terminal, JSON in a pipe, and in a file what its name ends in.",
)  # fmt: skip
OUTPUT = Dot(
    "output", ".output [FILE]", "write results into a file; or on the screen again", beside(_output), "file",
    "A file that is there already is not touched without --append (add to it) or --force (begin it anew).",
)  # fmt: skip
TIMER = Dot("timer", ".timer [on|off]", "say how long each command takes", _timer, "switch")
LLM = Dot(
    "llm", ".llm [SPEC]", "who is asked; or who is from now on", _llm, "model",
    "SPEC is local, openai:MODEL, anthropic:MODEL, URL#MODEL, replay:FILE or record:FILE,SPEC. The weights of local are\n"
    "    fetched when it is first asked; stderr says how large they are. knotwork model pull fetches them before.",
)  # fmt: skip
BUDGET = Dot(
    "budget", ".budget [calls=N ...]", "what models have cost, and may cost", _budget, "limit",
    "calls=N, tokens=N and cost=USD are limits; none takes one away. A call that would exceed one is not made.",
)  # fmt: skip
