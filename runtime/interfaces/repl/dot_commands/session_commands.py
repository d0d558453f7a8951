"""The commands that act on the session: ``.read .save .undo .help .quit .mode .output .timer .llm .budget``."""

import re
import shlex
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import TypeVar, cast

from .....lang.diagnostic import nearest
from .....lang.source import Source
from ....api.explain import find_rule, help_text, help_topics, rule_page
from ....api.files import UnknownSuffix, append_file, known_suffix, nearest_file, new_file, replace_file
from ....api.pieces import language_of
from ....api.session import MODES, Moment, session_text
from ....api.session_data import Outcome, Page, SessionModel, Table, misused
from ....api.workspace import LLMError, StateError
from .dot import DotCommand, DotRequest, in_thread

# ``.read FILE`` runs the text of a file. ``.save FILE`` writes the commands of the session to a file.

_FAULTS = 3
"""Maximum number of faults in a saved file that are listed."""
_MAX_BYTES = 16 << 20
"""Maximum size of a file that ``.read`` accepts, in bytes."""


def _read(request: DotRequest) -> Outcome:
    words = request.words
    if len(words) != 1:
        return misused(".read takes one file", ".read commands.gasl")
    name, path = words[0], Path(words[0]).expanduser()
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
        text = data.decode("utf-8-sig")
    except FileNotFoundError:
        near = nearest_file(path)
        fix = f".read {shlex.quote(near)}" if near else ""
        return misused(f"{name} does not exist", f"did you mean {near}?" if near else "", fix)
    except UnicodeDecodeError:
        return misused(f"{name} is not text in UTF-8")
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL character
        return misused(f"{name} can't be read: {getattr(error, 'strerror', None) or error}")
    if len(data) > _MAX_BYTES:
        return misused(f"{name} exceeds the maximum of {_MAX_BYTES >> 20} MiB")
    if "\0" in text:
        return misused(f"{name} is binary")
    if text.lstrip()[:1] == "{" and name.endswith(".json"):
        command = "seed run" if name.endswith(".seed.json") else "run"
        return misused(f"{name} is a JSON document, not commands", f"run it with: knotwork {command} {name}")
    return Outcome(reads=Source(text, name))


def _save(request: DotRequest) -> Outcome:
    names = [word for word in request.words if word != "--force"]
    if len(names) != 1:
        return misused(".save takes one file", ".save session.gasl")
    name, path = names[0], Path(names[0])
    if not request.session.ran:
        return misused("there is nothing to save yet")
    try:
        suffix = known_suffix(name, (".gasl", ".lwt", ".txt"))
    except UnknownSuffix as error:
        return misused(error.message, error.hint)
    saved = session_text(request.session.ran, suffix)
    hint = f".save {name} --force overwrites it"
    failure = write_failure(name, saved.text, force="--force" in request.words, hint=hint)
    if failure is not None:
        return failure
    count, comments = saved.pieces - saved.comments, saved.comments
    more = f"; {comments} in other languages saved as comment{'' if comments == 1 else 's'}" if comments else ""
    summary = f"{count} command{'' if count == 1 else 's'} saved to {name}{more}"
    if not saved.faults:
        return Outcome(summary=summary)
    rest = len(saved.faults) - _FAULTS
    faults = "; ".join(saved.faults[:_FAULTS]) + (f"; {rest} more" if rest > 0 else "")
    other = path.with_suffix(".txt")
    notes = (
        f"knotwork run would refuse {name}: {faults}",
        f".save {other} saves all pieces; knotwork repl GRAPH -f {other} runs them",
    )
    return Outcome("partial", summary=summary, notes=notes)


def write_failure(name: str, text: str, *, force: bool, hint: str) -> Outcome | None:
    """Write ``text`` to the file atomically. If writing fails, return an outcome with the reason, otherwise None.

    ``force`` overwrites an existing file; ``hint`` tells the user how to request this.
    """
    try:
        (replace_file if force else new_file)(Path(name).expanduser(), text)
    except FileExistsError:
        return misused(f"{name} already exists", hint)
    except (OSError, ValueError, RuntimeError) as error:
        return _file_failure(name, error)
    return None


def _file_failure(name: str, error: Exception) -> Outcome:
    """Return the outcome for a file error.

    A ``ValueError`` means that the name contains NUL; a ``RuntimeError`` means that the home directory is unknown.
    """
    return Outcome("failed", message=f"{name} can't be written: {getattr(error, 'strerror', None) or error}")


READ = DotCommand("read", ".read FILE", "run the commands of a file", in_thread(_read), "file")
SAVE = DotCommand(
    "save", ".save FILE", "save the commands that were run to a file", in_thread(_save), "file",
    "Undone commands are omitted. --force overwrites an existing file. knotwork run can run\n"
    "    .gasl and .lwt files; pieces in other languages become comments in these files.",
)  # fmt: skip


# ``.undo`` restores an earlier state and earlier values.


async def _undo(request: DotRequest) -> Outcome:
    session, argument = request.session, request.argument
    if argument and not (argument.isdecimal() and len(argument) < 4):
        if not re.fullmatch(r"[0-9A-Fa-f]+", argument):
            message = f".undo takes a number of commands or a state's hash, not {argument}"
            return misused(message, ".undo 2 undoes two commands; .log lists the hashes")
        before = session.state.hash
        try:
            changed = session.roll_back(argument, request.piece.text, ".undo")
        except StateError as error:
            return misused(error.message, error.hint or ".log lists the hashes")
        if not changed:
            return Outcome(summary=f"the state already equals {before[:12]}; nothing was changed")
        return Outcome(summary=f"restored state {session.state.hash[:12]}; it was {before[:12]}")
    count, available = int(argument or 1), len(session.moments)
    if not available:
        return misused(
            "this session has nothing to undo", ".undo HASH restores an earlier state; .log lists the hashes"
        )
    if not 1 <= count <= available:
        return misused(f"only {available} command{'' if available == 1 else 's'} can be undone, not {argument}")
    moment, changed = session.undo(count, ".undo")
    return Outcome(summary=_undone(moment, count, changed, session.state.hash))


def _undone(moment: Moment, count: int, changed: int, now: str) -> str:
    text = " ".join(moment.text.split())
    first = text if len(text) <= 60 else text[:59] + "…"
    more = f", and {count - 1} after it" if count > 1 else ""
    return f"undone: {first}{more}{f' · state {now[:12]}' if changed else ''}"


UNDO = DotCommand(
    "undo", ".undo [N|HASH]", "undo the latest change, or the latest N", _undo, "hash",
    "Restores the state and the values. The history remains; the undo adds a commit. With HASH, only the state is restored.",
)  # fmt: skip


# ``.help`` shows the list of commands or help on one topic. ``.quit`` ends the session.

_INTRODUCTION = """\
FIND nodes WHERE degree > 20 AS hubs   a GASL command
(why)=LLM("Why these? {(hubs)}")       an LWT step; later steps can use it
n = len(hubs)                          an expression, with or without a name
"""
_TOPICS = """\
.help NAME explains a command (FIND), an option (SHORTEST), an algorithm of
MEASURE (pagerank), a function (lower), an operation (LLM) or a code (GASL001).
.help algorithms, .help aggregates and .help functions list the names.
"""
_KEYS = """\
Tab completes; after an error it inserts the fix. Enter runs a complete text;
two empty lines run an incomplete one. Ctrl-R searches the history, Ctrl-C
cancels, Ctrl-D ends. _ is the latest value. Lines that begin with # are
comments.
"""


async def _help(request: DotRequest) -> Outcome:
    topic, commands = request.argument.lstrip(".").strip(), request.commands
    if not topic:
        width = max(len(each.usage) for each in commands.values())
        lines = [f"{each.usage:<{width}}  {each.summary}" for each in commands.values()]
        data = [{"command": each.usage, "does": each.summary} for each in commands.values()]
        return Outcome(value=Page(f"{_INTRODUCTION}\n" + "\n".join(lines) + f"\n\n{_TOPICS}\n{_KEYS}", data))
    text, command = help_text(topic) or _operation_help(topic), commands.get(topic.lower())
    # The languages' keywords are in capitals: LLM is the operation, and llm is the dot command. A function, such as log, may have the
    # name of a dot command in the same case.
    if command is not None and not (text and topic.isupper() and not request.argument.startswith(".")):
        more = f"    {command.more}\n" if command.more else ""
        other = f"\n{text}" if topic.lower() in help_topics() and not request.argument.startswith(".") else ""
        return Outcome(value=Page(f"{command.usage}\n    {command.summary}\n{more}{other}"))
    rule = find_rule(topic)
    if rule is not None:
        return rule_page(rule)
    if text:
        return Outcome(value=Page(text))
    near = nearest(topic, [*commands, *help_topics()])
    if near is None:
        return misused(f"no help on {topic}", ".help lists all topics")
    return misused(f"no help on {topic}", f"did you mean .help {near}?", f".help {near}")


def _operation_help(topic: str) -> str:
    """Return the language service's help on an operation of LWT as plain text; "" if the word is not an operation."""
    from rich.console import Console
    from rich.markdown import Markdown

    from .....lang.service import hover

    text = f"({topic.lower()})={topic.upper()}("
    found = hover("lwt", text, text.index("=") + 1) if language_of(text) == "lwt" else None
    if found is None:
        return ""
    console = Console(file=StringIO(), width=80, color_system=None, force_jupyter=False)
    with console.capture() as capture:
        console.print(Markdown(found.text))
    return "\n".join(line.rstrip() for line in capture.get().split("\n")).strip("\n") + "\n"


async def _quit(request: DotRequest) -> Outcome:
    return Outcome(ends=True)


HELP = DotCommand("help", ".help [TOPIC]", "this list; or help on a command or a code", _help, "topic")
QUIT = DotCommand("quit", ".quit", "end the session, like Ctrl-D", _quit)


# ``.mode .output .timer .llm .budget`` set how results are shown, which model is used, and the limits on its use.


async def _mode(request: DotRequest) -> Outcome:
    settings, wanted = request.session.settings, request.argument.lower()
    if not wanted:
        return Outcome(summary=f"mode {settings.mode}")
    found = next((mode for mode in MODES if mode == {"markdown": "md", "tbl": "table"}.get(wanted, wanted)), None)
    if found is None:
        return request.missing(f"unknown mode {request.argument}", request.argument, MODES)
    settings.mode = found
    return Outcome(summary=f"mode {found}")


def _output(request: DotRequest) -> Outcome:
    settings, words = request.session.settings, request.words
    flags = [word for word in words if word.startswith("--")]
    names = [word for word in words if not word.startswith("--")]
    if not words:
        before, settings.output = settings.output, None
        earlier = f"; earlier results are in {before}" if before else ""
        return Outcome(summary=f"results go to the screen{earlier}")
    if len(names) != 1 or any(flag not in ("--force", "--append") for flag in flags):
        return misused(".output takes one file, and optionally --append or --force", ".output results.csv")
    name = names[0]
    try:
        known_suffix(name, (".json", ".csv", ".md", ".txt"))
    except UnknownSuffix as error:
        return misused(error.message, error.hint)
    if "--append" in flags:
        try:
            append_file(Path(name).expanduser())
        except (OSError, ValueError, RuntimeError) as error:
            return _file_failure(name, error)
    else:
        hint = f".output {name} --append adds to it, --force overwrites it"
        if (failure := write_failure(name, "", force="--force" in flags, hint=hint)) is not None:
            return failure
    settings.output = Path(name).expanduser()
    return Outcome(summary=f"results go to {name}; .output without a file goes back to the screen")


async def _timer(request: DotRequest) -> Outcome:
    settings, wanted = request.session.settings, request.argument.lower()
    if wanted not in ("", "on", "off"):
        return request.missing(f".timer takes on or off, not {request.argument}", request.argument, ("on", "off"))
    settings.timer = not settings.timer if not wanted else wanted == "on"
    return Outcome(summary=f"timer {'on' if settings.timer else 'off'}")


async def _llm(request: DotRequest) -> Outcome:
    session = request.session
    if not request.argument:
        rows = [
            ["", _spec_of(session.model)],
            *([name, cast(SessionModel, model).spec] for name, model in session.models.named.items()),
        ]
        summary = "the model without a name is the default; .llm SPEC changes it"
        return Outcome(value=Table(("name", "model"), rows), summary=summary)
    if len(request.words) != 1:
        return misused(".llm takes one model", ".llm openai:MODEL")
    spec = request.words[0]
    try:
        session.model.choose(spec)
    except LLMError as error:
        near = re.fullmatch(r"did you mean (\S+)\?", error.hint)
        model = spec.partition(":")[2]  # replaces the hint's placeholder for a model's name
        fix = "" if near is None else f".llm {near[1].replace('MODEL', model) if model else near[1]}"
        return misused(error.message, error.hint, fix)
    return Outcome(summary=f"the model is now {session.model.spec}")


def _spec_of(model: SessionModel) -> str:
    try:
        return model.effective_spec
    except LLMError as error:
        return f"none ({error.message.splitlines()[0]})"


_LIMITS = ("calls", "tokens", "cost")


async def _budget(request: DotRequest) -> Outcome:
    ledger = request.session.model.ledger
    limits: dict[str, float | None] = dict(
        zip(_LIMITS, (ledger.max_calls, ledger.max_tokens, ledger.max_cost), strict=True)
    )
    for word in request.words:
        name, equals, text = word.partition("=")
        if name not in _LIMITS or not equals:
            message = f".budget takes calls=N, tokens=N and cost=USD, not {word}"
            if equals and nearest(name, _LIMITS) is not None:
                return request.missing(message, name, _LIMITS)
            return misused(message, ".budget calls=20 tokens=none")
        try:
            limits[name] = _limit(text, float if name == "cost" else int)
        except ValueError:
            message = f"{name}= takes a number or none, not {text}"
            return misused(message, f".budget {name}={'0.5' if name == 'cost' else '20'}")
        if name == "cost" and limits[name] is not None and request.session.model.known_price is None:
            message = "a limit on cost needs the model's price"
            hint = "start with --price IN/OUT, limit tokens instead, or look prices up: pip install 'knotwork[prices]'"
            return misused(message, hint)
    for name, limit in limits.items():
        setattr(ledger, f"max_{name}", limit)
    spent = (ledger.calls, ledger.usage.total, None if ledger.unpriced else round(ledger.cost, 6))
    rows = [
        [name, used, limit, None if used is None or limit is None else max(limit - used, 0)]
        for (name, limit), used in zip(limits.items(), spent, strict=True)
    ]
    return Outcome(value=Table(("what", "spent", "limit", "left"), rows))


_Number = TypeVar("_Number", int, float)


def _limit(text: str, read: Callable[[str], _Number]) -> _Number | None:
    """Return the limit in ``text``; None if ``text`` is "none" (no limit). Raises ``ValueError`` if ``text`` is invalid."""
    if text.lower() == "none":
        return None
    number = read(text)
    if not 0 <= number < float("inf"):
        raise ValueError(text)
    return number


MODE = DotCommand(
    "mode", ".mode [MODE]", "show or set the output format", _mode, "mode",
    "MODE is table, json, csv, md or auto. auto: a table on a terminal, JSON in a pipe, and in a file the format given by its suffix.",
)  # fmt: skip
OUTPUT = DotCommand(
    "output", ".output [FILE]", "write results to FILE; without FILE, to the screen", in_thread(_output), "file",
    "An existing file is refused without --append (add to it) or --force (overwrite it).",
)  # fmt: skip
TIMER = DotCommand("timer", ".timer [on|off]", "show the time of each command", _timer, "switch")
LLM = DotCommand(
    "llm", ".llm [SPEC]", "show or set the model", _llm, "model",
    "SPEC is local, openai:MODEL, anthropic:MODEL, URL#MODEL, replay:FILE or record:FILE,SPEC. The weights of local are\n"
    "    downloaded at the first call; their size is shown on stderr. knotwork model pull downloads them earlier.",
)  # fmt: skip
BUDGET = DotCommand(
    "budget", ".budget [calls=N ...]", "show the cost of model calls; set limits", _budget, "limit",
    "calls=N, tokens=N and cost=USD are limits; none removes a limit. A call that would exceed a limit is not made.",
)  # fmt: skip
