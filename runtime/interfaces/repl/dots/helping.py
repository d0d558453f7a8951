"""``.help`` and ``.quit``: what there is, and the way out."""

from io import StringIO

from .....lang.catalogue.functions import FUNCTIONS
from .....lang.catalogue.operations import BUILTIN
from .....lang.catalogue.rules import RULES, find_rule
from .....lang.diagnostic import nearest
from ..languages import command_words, language_of
from ..outcome import Outcome, Page, misused
from .dot import Asked, Dot
from .explaining import of_rule

__all__ = ["HELP", "QUIT"]

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
