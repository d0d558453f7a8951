"""How a text would run, without running it: the outline of a script or a seed, the plan of each command; and what a rule means."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from ...lang.catalogue.operations import BUILTIN, FUNCTIONS
from ...lang.catalogue.rules import RULES, Rule, find_rule, nearest_rule
from ...lang.dependencies import critical_path, final_step, layers, needed, step_dependencies
from ...lang.evaluate.seed.explanation import step_in_words
from ...lang.evaluate.seed.step_dependencies import needed_steps, step_graph
from ...lang.printer.expr_printer import format_expr
from ...lang.trees.gasl import Statement
from ...lang.trees.lwt import Script
from ...lang.trees.seed import FormulaSeed
from ..gasl.dispatcher import explain
from ..gasl.records import ContextStore
from .figures import short_text
from .pieces import Piece, command_words
from .session_data import Outcome, Page, Table, misused
from .session_runs import check, check_command, check_expression, check_steps, needs_graph, normalize

if TYPE_CHECKING:
    from ..gasl import GASLExecutor
    from .session import Session

__all__ = [
    "RULES", "Rule", "ScriptOutline", "StepOutline", "explain_commands", "explain_piece", "find_rule", "help_topics", "nearest_rule",
    "outline_script", "outline_seed", "rule_page",
]  # fmt: skip


@frozen
class StepOutline:
    """A step of a script: ``layer`` counts from 1, and is None for a step that can't start."""

    id: str
    operation: str
    refers_to: tuple[str, ...]
    layer: int | None
    is_needed: bool
    text: str


@frozen
class ScriptOutline:
    """The order in which a script runs: steps in source order, the layers that run in parallel, the longest chain to ``final``."""

    steps: tuple[StepOutline, ...]
    layers: list[tuple[str, ...]]
    critical_path: list[str]
    final: str


def outline_script(script: Script) -> ScriptOutline | None:
    """Return the outline of a script; None for a script without steps."""
    graph = step_dependencies(script)
    chosen = final_step(script, graph)
    if chosen is None:
        return None
    final, _ = chosen
    wanted, order = needed(graph, final), layers(graph)
    layer_of = {step: number for number, layer in enumerate(order, 1) for step in layer}
    path, _ = critical_path({step: inputs for step, inputs in graph.items() if step in wanted})
    steps = {step.id: step for step in script.steps}
    outlines = (
        StepOutline(
            name, steps[name].call.operation, inputs, layer_of.get(name), name in wanted, script.source.slice(steps[name].span)
        )
        for name, inputs in graph.items()
    )  # fmt: skip
    return ScriptOutline(tuple(outlines), order, path, final)


def outline_seed(seed: FormulaSeed) -> list[dict[str, Any]]:
    """Return the steps of a seed: ``{"name", "computes", "refers_to", "needed"}``."""
    graph = step_graph(seed)
    wanted = needed_steps(graph, seed.outputs)
    return [
        {
            "name": step.name, "computes": step_in_words(step), "refers_to": list(graph[step.name]),
            "needed": step.name in wanted,
        }
        for step in seed.steps
    ]  # fmt: skip


async def explain_commands(
    statements: Sequence[Statement],
    executor: "GASLExecutor",
    cancel: asyncio.Event | None = None,
    *,
    with_variables: bool = True,
) -> list[dict[str, Any]]:
    """Return how each command would run, in order, until ``cancel`` is set; see ``runtime.gasl.explain``."""
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
    """Return how a piece would run in a session; its diagnostics if it has errors."""
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
            outline = outline_script(check_steps(piece, session)[0].script)
            steps = sorted(() if outline is None else outline.steps, key=lambda step: step.layer or 0)
            rows = [
                [
                    each.id,
                    each.operation,
                    each.layer,
                    ", ".join(each.refers_to),
                    short_text(" ".join(each.text.split())),
                ]
                for each in steps
            ]
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
