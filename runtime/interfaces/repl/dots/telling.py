"""``.help``, ``.explain`` and ``.quit``."""

import re
from collections.abc import Mapping
from io import StringIO

from .....lang.dependencies import layers, step_dependencies
from .....lang.diagnostic import nearest
from .....lang.printer.expr import format_expr
from .....lang.rules import RULES, Rule
from ....executor.explaining import explain
from ...rows import short_text
from .. import commands, expressions, steps
from ..checking import check
from ..outcome import Outcome, Page, Table, misused
from ..reading import Piece, language_of
from .dot import Asked, Dot

__all__ = ["EXPLAIN", "HELP", "QUIT"]

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
    rule = _rule(topic)
    if rule is not None:
        return _explained_rule(rule)
    if text:
        return Outcome(value=Page(text))
    near = nearest(topic, [*asked.dots, *RULES])
    return misused(f"there is no help on {topic}", f"did you mean .help {near}?" if near else ".help lists all")


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

    console = Console(file=StringIO(), width=80, color_system=None)
    with console.capture() as capture:
        console.print(Markdown(markdown))
    return "\n".join(line.rstrip() for line in capture.get().split("\n")).strip("\n") + "\n"


async def _explain(asked: Asked) -> Outcome:
    text, desk = asked.argument.strip(), asked.desk
    if not text:
        fault = desk.last_fault
        if fault is None:
            return misused(
                ".explain takes a command, a step, an expression or a code",
                ".explain FIND nodes WHERE degree > 20 AS hubs",
            )
        return _explained_rule(RULES[fault.diagnostics[0].code]) if fault.diagnostics[0].code in RULES else Outcome()
    rule = _rule(text)
    if rule is not None:
        return _explained_rule(rule)
    if re.fullmatch(r"[A-Za-z]{2,5}\d+", text):
        return misused(f"there is no rule {text}", "the code of a message, such as GASL001")
    piece = Piece(text, language_of(text))
    fault = check(piece, desk)
    if not fault.is_good:
        return fault
    match piece.language:
        case "gasl":
            return await _explained_command(piece, asked)
        case "lwt":
            return _explained_steps(piece, asked)
        case "expr":
            expr = expressions.checked(piece, desk)[0]
            written = "" if expr is None else format_expr(expr)
            return Outcome(value=Page(f"{written}\n"), summary="an expression: evaluated here, without a call")
        case _:
            return misused(".explain takes a command, a step, an expression or a code")


async def _explained_command(piece: Piece, asked: Asked) -> Outcome:
    executor = asked.desk.executor
    if executor is None:
        return misused("a GASL command needs a graph, and this session has none", "knotwork repl GRAPH opens one")
    await asked.desk.schema()
    program = commands.checked(piece, asked.desk)[0]
    result = await explain(program.statements[0].command, executor.session)
    return Outcome(value=None if result.value is None else result.value.value)


def _explained_steps(piece: Piece, asked: Asked) -> Outcome:
    script, source = steps.checked(piece, asked.desk)[0], piece.source
    graph = step_dependencies(script)
    known = {step.id: step for step in script.steps}
    rows = [
        [step, known[step].call.operation, number, ", ".join(graph[step]), _text_of(source.slice(known[step].span))]
        for number, layer in enumerate(layers(graph), 1)
        for step in layer
    ]
    columns = ("step", "operation", "layer", "waits for", "text")
    return Outcome(
        value=Table(columns, rows, frozenset({"step", "operation", "layer"})),
        summary="steps of one layer run side by side",
    )


def _text_of(text: str) -> str:
    return short_text(" ".join(text.split()))


def _rule(text: str) -> Rule | None:
    by_name: Mapping[str, Rule] = {rule.name: rule for rule in RULES.values()}
    return RULES.get(text.upper()) or by_name.get(text.lower())


def _explained_rule(rule: Rule) -> Outcome:
    lines = [f"{rule.code} {rule.name}: {rule.severity}", "", rule.summary, rule.why]
    for title, text in (("Reported:", rule.bad), ("Right:", rule.good)):
        if text:
            lines += ["", title, *(f"    {line}" for line in text.splitlines())]
    return Outcome(value=Page("\n".join(lines) + "\n"))


async def _quit(asked: Asked) -> Outcome:
    return Outcome(ends=True)


HELP = Dot("help", ".help [TOPIC]", "this; or more on a command or a code", _help, "topic")
EXPLAIN = Dot(
    "explain", ".explain [COMMAND|CODE]", "how a command would run; what an error means", _explain,
    "command",
)  # fmt: skip
QUIT = Dot("quit", ".quit", "end the session; so does Ctrl-D", _quit)
