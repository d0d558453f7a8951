"""``.mode .output .timer .llm .budget``: how results are shown, who is asked, and what that may cost."""

from pathlib import Path
from typing import Any

from .....adapters.llm import LLMError
from .....lang.diagnostic import nearest
from ..desk import MODES
from ..models import budget_of
from ..outcome import Outcome, Table, misused
from .dot import Asked, Dot, beside

__all__ = ["BUDGET", "LLM", "MODE", "OUTPUT", "TIMER"]


async def _mode(asked: Asked) -> Outcome:
    settings, wanted = asked.desk.settings, asked.argument.lower()
    if not wanted:
        return Outcome(summary=f"mode {settings.mode}")
    found = next((mode for mode in MODES if mode == {"markdown": "md", "tbl": "table"}.get(wanted, wanted)), None)
    if found is None:
        near = nearest(wanted, MODES)
        return misused(
            f"there is no mode {asked.argument}", f"did you mean {near}?" if near else f"there are: {', '.join(MODES)}"
        )
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
    path = Path(names[0]).expanduser()
    try:
        # A file that is there is somebody's.
        with open(path, "a" if "--append" in flags else "w" if "--force" in flags else "x", encoding="utf-8"):
            pass
    except FileExistsError:
        return misused(
            f"{names[0]} is there already", f".output {names[0]} --append adds to it, --force begins it anew"
        )
    except (OSError, ValueError) as error:
        return Outcome("failed", message=f"{names[0]} can't be written: {getattr(error, 'strerror', None) or error}")
    settings.output = path
    return Outcome(summary=f"results go to {names[0]}; .output alone ends that")


async def _timer(asked: Asked) -> Outcome:
    settings, wanted = asked.desk.settings, asked.argument.lower()
    if wanted not in ("", "on", "off"):
        return misused(f".timer takes on or off, not {asked.argument}", ".timer on")
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
            return misused(error.message, error.hint)
        return Outcome(summary=f"asks {desk.model.spec} from now on")
    rows = [["", _spec_of(desk.model)], *([name, model.spec] for name, model in desk.models.items())]
    return Outcome(
        value=Table(("name", "model"), rows), summary="the model without a name answers; .llm SPEC chooses another"
    )


def _spec_of(model: Any) -> str:
    try:
        return str(model.shown)
    except LLMError as error:
        return f"none ({error.message.splitlines()[0]})"


_LIMITS = {"calls": "max_calls", "tokens": "max_tokens", "cost": "max_cost"}


async def _budget(asked: Asked) -> Outcome:
    ledger = asked.desk.model.ledger
    changes: dict[str, int | float | None] = {}
    for word in asked.words:
        name, equals, text = word.partition("=")
        if name not in _LIMITS or not equals:
            return misused(f".budget takes calls=N, tokens=N and cost=USD, not {word}", ".budget calls=20 tokens=none")
        number = _limit(name, text)
        if number is False:
            return misused(
                f"{name}= takes a number or none, not {text}", f".budget {name}={'0.5' if name == 'cost' else '20'}"
            )
        if name == "cost" and number is not None and asked.desk.model.price is None:
            return misused(
                "a limit on cost needs the model's price", "start with --price IN/OUT, or limit tokens instead"
            )
        changes[_LIMITS[name]] = number
    for limit, number in changes.items():
        setattr(ledger, limit, number)
    columns = ("what", "spent", "limit", "left")
    return Outcome(value=Table(columns, budget_of(ledger)))


def _limit(name: str, text: str) -> int | float | bool | None:
    """Return the number, None for no limit, False for what is neither."""
    if text.lower() == "none":
        return None
    try:
        number = float(text) if name == "cost" else int(text)
    except ValueError:
        return False
    return number if 0 <= number < float("inf") else False


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
    "SPEC is local, openai:MODEL, anthropic:MODEL, URL#MODEL, replay:FILE or record:FILE,SPEC.",
)  # fmt: skip
BUDGET = Dot(
    "budget", ".budget [calls=N ...]", "what models have cost, and may cost", _budget, "limit",
    "calls=N, tokens=N and cost=USD are limits; none takes one away. A call that would exceed one is not made.",
)  # fmt: skip
