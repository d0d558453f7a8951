"""``.read FILE`` and ``.save FILE``: read a session from a file, and write it to one."""

import re
import shlex
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import TypeVar

from .....adapters.llm import LLMError
from .....adapters.state import StateError
from .....lang.catalogue.operations import BUILTIN, FUNCTIONS
from .....lang.catalogue.rules import RULES, find_rule
from .....lang.diagnostic import nearest
from .....lang.source import Source
from ....gasl.surroundings import roll_back
from ...atomic_write import UnknownSuffix, known_suffix
from ..languages import command_words, language_of
from ..outcome import Outcome, Page, Status, Table, misused
from ..repl_workspace import MODES, Model, Moment, budget_of
from ..session_file import Saved, saved, unopened, unwritten
from .dot import Asked, Dot, beside
from .inspection import of_rule

_TOLD = 3
_MOST = 16 << 20
"""Maximum bytes of a file to read."""


class Unread(Exception):
    """A file that can't be read: ``message`` says why, ``near`` is the probable intended file."""

    def __init__(self, message: str, near: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.near = near


def read_text(name: str) -> Source:
    """Return the text of a file. Raises ``Unread``."""
    path = Path(name).expanduser()
    try:
        with open(path, "rb") as file:
            data = file.read(_MOST + 1)
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        raise Unread(f"{name} can't be read: there is no such file", _near(path)) from None
    except UnicodeDecodeError:
        raise Unread(f"{name} is not text in UTF-8") from None
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL character
        raise Unread(f"{name} can't be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > _MOST:
        raise Unread(f"{name} has more than {_MOST >> 20} MiB, the most that is read")
    if "\0" in text:
        raise Unread(f"{name} is binary")
    return Source(text, name)


def _near(path: Path) -> str:
    try:
        names = [each.name for each in path.parent.iterdir() if each.is_file()][:2000]
    except OSError:
        return ""
    near = nearest(path.name, names)
    return str(path.with_name(near)) if near else ""


def _read(asked: Asked) -> Outcome:
    words = asked.words
    if len(words) != 1:
        return misused(".read takes one file", ".read commands.gasl")
    try:
        source = read_text(words[0])
    except Unread as error:
        if not error.near:
            return misused(error.message)
        return misused(error.message, f"did you mean {error.near}?", f".read {shlex.quote(error.near)}")
    if source.text.lstrip()[:1] == "{" and words[0].endswith(".json"):
        word = "seed run" if words[0].endswith(".seed.json") else "run"
        return misused(f"{words[0]} is a document, not commands", f"knotwork {word} {words[0]} runs it")
    return Outcome(reads=source)


def _save(asked: Asked) -> Outcome:
    names = [word for word in asked.words if word != "--force"]
    if len(names) != 1:
        return misused(".save takes one file", ".save session.gasl")
    path = Path(names[0])
    if not asked.desk.ran:
        return misused("there is nothing to save yet")
    try:
        suffix = known_suffix(names[0], (".gasl", ".lwt", ".txt"))
    except UnknownSuffix as error:
        return misused(error.message, error.hint)
    made = saved(asked.desk, suffix)
    hint = f".save {names[0]} --force writes over it"
    fault = unwritten(names[0], made.text, force="--force" in asked.words, hint=hint)
    if fault is not None:
        return fault
    kept, left = made.pieces - made.remarks, made.remarks
    more = (
        f"; {left} that {path.suffix} can't say {'is a remark' if left == 1 else 'are remarks'} there" if left else ""
    )
    told = f"{kept} command{'' if kept == 1 else 's'} saved to {names[0]}{more}"
    status: Status = "partial" if made.faults else "done"
    return Outcome(status, summary=told, notes=_not_run(names[0], path.with_suffix(".txt"), made))


def _not_run(name: str, other: Path, made: Saved) -> tuple[str, ...]:
    """Return why ``knotwork run`` would refuse the saved file, and which format can hold everything."""
    if not made.faults:
        return ()
    faults = "; ".join(made.faults[:_TOLD]) + (f"; {len(made.faults) - _TOLD} more" if len(made.faults) > _TOLD else "")
    return (
        f"knotwork run would refuse {name}: {faults}",
        f".save {other} would keep all of it; knotwork repl GRAPH -f {other} runs that",
    )


READ = Dot("read", ".read FILE", "run what a file has", beside(_read), "file")
SAVE = Dot(
    "save", ".save FILE", "write what was run, and not undone, into a file", beside(_save), "file",
    "--force writes over a file that is there. One that ends in .gasl or .lwt can be run by knotwork run: what its language\n"
    "    can't say is a remark in it.",
)  # fmt: skip


# ``.undo``: restores the earlier state and values.

_HASH = re.compile(r"[0-9A-Fa-f]+")


async def _undo(asked: Asked) -> Outcome:
    desk, argument = asked.desk, asked.argument
    if argument and not (argument.isdecimal() and len(argument) < 4):
        if not _HASH.fullmatch(argument):
            told = "is neither how many commands to undo nor a state's hash"
            return misused(f"{argument} {told}", ".undo 2 takes back two; .log has the hashes")
        return _to_hash(asked)
    count, moments = int(argument or 1), desk.past.moments
    if not moments:
        return misused(
            "there is nothing to undo in this session", "a state's hash, from .log, takes it back further: .undo HASH"
        )
    if not 1 <= count <= len(moments):
        return misused(f"{len(moments)} command{'' if len(moments) == 1 else 's'} can be undone, not {argument}")
    moment = moments[-count]
    changed = roll_back(desk.state, moment.state, ".undo")
    desk.values.back(moment.values)
    desk.last_value = moment.latest
    desk.past.moments = moments[:-count]
    del desk.ran[moment.entries :]
    return Outcome(summary=_told(moment, count, changed, desk.state.hash))


def _told(moment: Moment, count: int, changed: int, now: str) -> str:
    text = " ".join(moment.text.split())
    what = text if len(text) <= 60 else text[:59] + "…"
    more = f", and {count - 1} after it" if count > 1 else ""
    return f"undone: {what}{more}{f' · state {now[:12]}' if changed else ''}"


def _to_hash(asked: Asked) -> Outcome:
    desk = asked.desk
    before = desk.state.hash
    moment = Moment.now(asked.piece.text, desk.state, desk.values, len(desk.ran), desk.last_value)
    try:
        changed = roll_back(desk.state, asked.argument, ".undo")
    except StateError as error:
        return misused(error.message, error.hint or ".log has the hashes")
    if not changed:
        return Outcome(summary=f"the state is as it was at {before[:12]}; nothing was changed")
    desk.past.add(moment, desk.state, desk.values)
    return Outcome(summary=f"back at {desk.state.hash[:12]}; it was {before[:12]}")


UNDO = Dot(
    "undo", ".undo [N|HASH]", "take back the latest change, or N of them", _undo, "hash",
    "State and values are as before. The history stays, and says so: taking back is a commit, too. HASH takes the state alone.",
)  # fmt: skip


# ``.help`` and ``.quit``: the list of commands, and the end of the session.

_INTRODUCTION = """\
FIND nodes WHERE degree > 20 AS hubs   a GASL command
(why)=LLM("Why these? {(hubs)}")       an LWT step: the next one has its value
n = len(hubs)                          an expression, with or without a name
"""
_KEYS = """\
Tab completes, and after an error offers its fix. Enter runs what is whole; two
empty lines run it as it stands. Ctrl-R searches the history, Ctrl-C cancels,
Ctrl-D ends. _ is the latest value. A line that begins with # is a remark.
"""


async def _help(asked: Asked) -> Outcome:
    topic = asked.argument.lstrip(".").strip()
    if not topic:
        width = max(len(dot.usage) for dot in asked.dots.values())
        lines = [f"{dot.usage:<{width}}  {dot.summary}" for dot in asked.dots.values()]
        data = [{"command": dot.usage, "does": dot.summary} for dot in asked.dots.values()]
        return Outcome(value=Page(f"{_INTRODUCTION}\n" + "\n".join(lines) + f"\n\n{_KEYS}", data))
    text = _reference(topic)
    dot = asked.dots.get(topic.lower())
    # Words of the languages are written in capitals: LLM is the operation, llm the dot command.
    if dot is not None and not (text and topic.isupper() and not asked.argument.startswith(".")):
        return Outcome(value=Page(f"{dot.usage}\n    {dot.summary}\n" + (f"    {dot.more}\n" if dot.more else "")))
    rule = find_rule(topic)
    if rule is not None:
        return of_rule(rule)
    if text:
        return Outcome(value=Page(text))
    near = nearest(topic, [*asked.dots, *RULES, *command_words(), *BUILTIN, *FUNCTIONS])
    if near is None:
        return misused(f"there is no help on {topic}", ".help lists all")
    return misused(f"there is no help on {topic}", f"did you mean .help {near}?", f".help {near}")


def _reference(topic: str) -> str:
    """Return the language service's help on a word: a command, an operation, a function."""
    from .....lang.service import hover

    for text in (topic.upper(), topic.lower(), f"({topic.lower()})={topic.upper()}("):
        language = language_of(text if "=" in text else f"{text} x")
        if language in ("gasl", "lwt", "expr"):
            found = hover(language, text, text.index("=") + 1 if "=" in text else 0)
            if found is not None:
                return _as_text(found.text)
    return ""


def _as_text(markdown: str) -> str:
    """Return markdown as plain text for a terminal."""
    from rich.console import Console
    from rich.markdown import Markdown

    console = Console(file=StringIO(), width=80, color_system=None, force_jupyter=False)
    with console.capture() as capture:
        console.print(Markdown(markdown))
    return "\n".join(line.rstrip() for line in capture.get().split("\n")).strip("\n") + "\n"


async def _quit(asked: Asked) -> Outcome:
    return Outcome(ends=True)


HELP = Dot("help", ".help [TOPIC]", "this; or more on a command or a code", _help, "topic")
QUIT = Dot("quit", ".quit", "end the session; so does Ctrl-D", _quit)


# ``.mode .output .timer .llm .budget``: display of results, choice of model, and limits.


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
    """Return the command with the spec from the hint; the given name replaces the placeholder for a model's name."""
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
    """Return a limit, None for no limit. Raises ``ValueError`` for other text."""
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
