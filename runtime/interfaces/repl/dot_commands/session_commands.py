"""``.read FILE`` and ``.save FILE``: a session from a file, and to one."""

import re
import shlex
from io import StringIO
from pathlib import Path

from .....adapters.state import StateError
from .....lang.catalogue.functions import FUNCTIONS
from .....lang.catalogue.operations import BUILTIN
from .....lang.catalogue.rules import RULES, find_rule
from .....lang.diagnostic import nearest
from .....lang.source import Source
from ....gasl.state_graph import roll_back
from ...atomic_write import UnknownSuffix, known_suffix
from ..languages import command_words, language_of
from ..outcome import Outcome, Page, Status, misused
from ..repl_workspace import Moment
from ..session_file import Saved, saved, unwritten
from .dot import Asked, Dot, beside
from .inspection import of_rule

__all__ = ["HELP", "QUIT", "READ", "SAVE", "UNDO"]

_TOLD = 3
_MOST = 16 << 20
"""Bytes of a file that is read."""


class Unread(Exception):
    """A file that can't be read: ``message`` says why, ``near`` is one that was probably meant."""

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
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL in it
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
    """Say why ``knotwork run`` would refuse what was saved, and what takes all of it."""
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


# ``.undo``: the state and the values as they were.


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


# ``.help`` and ``.quit``: what there is, and the way out.


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
    """Return what the language service says of a word: a command, an operation, a function."""
    from .....lang.service import hover

    for text in (topic.upper(), topic.lower(), f"({topic.lower()})={topic.upper()}("):
        language = language_of(text if "=" in text else f"{text} x")
        if language in ("gasl", "lwt", "expr"):
            found = hover(language, text, text.index("=") + 1 if "=" in text else 0)
            if found is not None:
                return _as_text(found.text)
    return ""


def _as_text(markdown: str) -> str:
    """Return markdown as a person reads it on a terminal."""
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
