"""``.explain``: how a text would run, and the rule behind a message."""

import re

from attrs import evolve

from .....lang.catalogue.rules import RULES, Rule, find_rule
from .....lang.dependencies import layers, step_dependencies
from .....lang.printer.expr import format_expr
from ....gasl.explain import explain
from ...rows import short_text
from .. import commands, expressions, steps
from ..checking import check
from ..meaning import meant
from ..outcome import Outcome, Page, Table, misused
from ..reading import Piece, language_of
from .dot import Asked, Dot

__all__ = ["EXPLAIN", "of_rule"]


async def _explain(asked: Asked) -> Outcome:
    text, desk = asked.argument.strip(), asked.desk
    if not text:
        fault = desk.last_fault
        if fault is None:
            return misused(
                ".explain takes a command, a step, an expression or a code",
                ".explain FIND nodes WHERE degree > 20 AS hubs",
            )
        return of_rule(RULES[fault.diagnostics[0].code]) if fault.diagnostics[0].code in RULES else Outcome()
    rule = find_rule(text)
    if rule is not None:
        return of_rule(rule)
    if re.fullmatch(r"[A-Za-z]{2,5}\d+", text):
        return misused(f"there is no rule {text}", "the code of a message, such as GASL001")
    piece = meant(Piece(text, language_of(text)), desk)
    fault = check(piece, desk)
    if not fault.is_good:
        return evolve(fault, fix="" if fault.mended is None else f".explain {fault.mended}")
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
        return commands.needs_graph()
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


def of_rule(rule: Rule) -> Outcome:
    """Return what there is to say of a rule."""
    lines = [f"{rule.code} {rule.name}: {rule.severity}", "", rule.summary, rule.why]
    for title, text in (("Reported:", rule.bad), ("Right:", rule.good)):
        if text:
            lines += ["", title, *(f"    {line}" for line in text.splitlines())]
    return Outcome(value=Page("\n".join(lines) + "\n"))


EXPLAIN = Dot(
    "explain", ".explain [COMMAND|CODE]", "how a command would run; what an error means", _explain,
    "command",
)  # fmt: skip
