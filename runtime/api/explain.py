"""Explains how a text would run, without running it: how each command finds its result, and the order of steps. Also explains rules."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve

from ...lang.catalogue.operations import BUILTIN, FUNCTIONS
from ...lang.catalogue.rules import RULES, Rule, find_rule, nearest_rule
from ...lang.diagnostic import has_errors
from ...lang.printer.expr_printer import format_expr
from ...lang.printer.gasl_printer import format_gasl
from ...lang.printer.lwt_printer import format_lwt
from ...lang.trees.gasl import Statement
from ..gasl.dispatcher import explain
from ..gasl.records import ContextStore
from .checks import CheckedProgram, CheckedScript, plan_of
from .figures import short_text
from .pieces import Piece, command_words
from .session_data import Outcome, Page, Table, misused
from .session_runs import check, check_command, check_expression, check_steps, needs_graph, normalize

if TYPE_CHECKING:
    from ..gasl import GASLExecutor
    from .session import Session

__all__ = [
    "RULES", "Rule", "explain_commands", "explain_piece", "find_rule", "formatted_text", "help_topics", "nearest_rule",
    "rule_page",
]  # fmt: skip


def formatted_text(checked: CheckedScript | CheckedProgram) -> str | None:
    """Return a script or a program in its canonical format; None if it can't be parsed."""
    if isinstance(checked, CheckedScript):
        return None if has_errors(checked.script.diagnostics) else format_lwt(checked.script)
    return None if has_errors(checked.program.diagnostics) else format_gasl(checked.program)


async def explain_commands(
    statements: Sequence[Statement],
    executor: "GASLExecutor",
    cancel: asyncio.Event | None = None,
    *,
    with_variables: bool = True,
) -> list[dict[str, Any]]:
    """Return, for each command in order, how it would run; see ``runtime.gasl.explain``. Setting ``cancel`` ends the list early."""
    context = executor.session.context.copy() if with_variables else ContextStore()
    session = evolve(executor.session, context=context, label="")
    rows = []
    for statement in statements:
        if cancel is not None and cancel.is_set():
            break
        found = (await explain(statement.command, session)).value
        if found is not None:
            rows.append(dict(found.value))
    return rows


async def explain_piece(piece: Piece, session: "Session") -> Outcome:
    """Return how a piece would run in a session, or the piece's diagnostics if it has errors."""
    piece = normalize(piece, session)
    fault = check(piece, session)
    if not fault.is_good:
        return evolve(fault, fix="" if fault.fixed_text is None else f".explain {fault.fixed_text}")
    match piece.language:
        case "gasl":
            if session.gasl is None:
                return needs_graph()
            await session.schema()
            statements = check_command(piece, session)[0].statements
            return Outcome(value=next(iter(await explain_commands(statements[:1], session.gasl)), None))
        case "lwt":
            checked = check_steps(piece, session)[0]
            plan = plan_of(checked)
            texts = {step.id: checked.source.slice(step.span) for step in checked.script.steps}
            steps = sorted([] if plan is None else plan.document["steps"], key=lambda step: step["layer"] or 0)
            rows = [
                [each["id"], each["operation"], each["layer"], ", ".join(each["refers_to"]),
                 short_text(" ".join(texts[each["id"]].split()))]
                for each in steps
            ]  # fmt: skip
            columns = ("step", "operation", "layer", "waits for", "text")
            table = Table(columns, rows, frozenset({"step", "operation", "layer"}))
            return Outcome(value=table, summary="the steps of a layer run in parallel")
        case "expr":
            expr = check_expression(piece, session)[0]
            written = "" if expr is None else format_expr(expr)
            return Outcome(value=Page(f"{written}\n"), summary="an expression: evaluated here, without a model call")
        case _:
            return misused(".explain takes a command, a step, an expression or a code")


def rule_page(rule: Rule) -> Outcome:
    """Return the description of a rule."""
    lines = [f"{rule.code} {rule.name}: {rule.severity}", "", rule.summary, rule.why]
    for title, text in (("Reported:", rule.bad), ("Right:", rule.good)):
        if text:
            lines += ["", title, *(f"    {line}" for line in text.splitlines())]
    return Outcome(value=Page("\n".join(lines) + "\n"))


def help_topics() -> list[str]:
    """Return the names that help can explain: codes of rules, commands, operations, functions."""
    return [*RULES, *command_words(), *BUILTIN, *FUNCTIONS]
