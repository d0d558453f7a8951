"""What ``plan`` shows of a script: its graph as text, JSON or a drawing."""

import sys
from collections.abc import Sequence
from typing import Any, Literal

from attrs import frozen

from .....lang.dependencies import critical_path, final_step, layers, needed, step_dependencies
from .....lang.diagnostic import printable
from .....lang.diagrams import dot, mermaid
from .....lang.printer.lwt import format_value
from .....lang.trees.gasl import Program
from .....lang.trees.lwt import Script
from ....api.checked import Checked, CheckedProgram, CheckedScript
from ..shared.checking import show
from ..shared.exit import Exit
from ..shared.output import colour, complain, json_text, paint

__all__ = ["FINAL_RULES", "Form", "Plan", "plan_of", "show_plan"]

Form = Literal["text", "json", "mermaid", "dot"]

FINAL_RULES = {
    "final": "the step named final",
    "only sink": "the only one that no other refers to",
    "last": "the last one written (several are referred to by none)",
}
"""The rules that choose the final step, in words."""


@frozen
class Plan:
    """A script's graph and what follows from it. ``needed`` are the steps that a run makes without --all-steps.

    ``conditions`` has the ``when=`` of those steps that have one.
    """

    operations: dict[str, str]
    graph: dict[str, tuple[str, ...]]
    layers: list[tuple[str, ...]]
    final: str
    rule: str
    needed: frozenset[str]
    path: list[str]
    conditions: dict[str, str]

    @property
    def unneeded(self) -> list[str]:
        """The steps that the final one does not need, in source order."""
        return [step for step in self.graph if step not in self.needed]


def plan_of(script: Script) -> Plan | None:
    """Return the plan of a script without errors; None for one without steps."""
    graph = step_dependencies(script)
    chosen = final_step(script, graph)
    if chosen is None:
        return None
    final, rule = chosen
    wanted = needed(graph, final)
    path, _ = critical_path({step: inputs for step, inputs in graph.items() if step in wanted})
    operations = {step.id: step.call.operation for step in script.steps}
    conditions = {
        step.id: format_value(found) for step in script.steps if (found := step.call.option("when")) is not None
    }
    return Plan(operations, graph, layers(graph), final, rule, frozenset(wanted), path, conditions)


def show_plan(results: Sequence[Checked], form: Form) -> int:
    """Write the plan of the script or the program that was checked last to stdout; diagnostics go to stderr."""
    last = results[-1]
    show([result.without_remarks for result in results], sys.stderr)
    if any(result.failed for result in results):
        return Exit.ERRORS
    if isinstance(last, CheckedProgram):
        return _show_program(last.program, last, form)
    script = last.script if isinstance(last, CheckedScript) else None
    plan = plan_of(script) if script is not None else None
    if plan is None or script is None:
        complain(
            f"{printable(last.source.name)} has no steps: there is nothing to plan",
            "knotwork plan takes scripts, programs, plans and seeds",
        )
        return Exit.ERRORS
    match form:
        case "text":
            print(_text(plan, script.source.name))
        case "json":
            print(json_text(_json(plan, script.source.name)))
        case "mermaid":
            print(mermaid(plan.graph, plan.operations, (plan.final,), plan.needed))
        case "dot":
            print(dot(plan.graph, plan.operations, (plan.final,), plan.needed))
    return Exit.DONE


def _show_program(program: Program, checked: Checked, form: Form) -> int:
    from . import program_planning as of_program  # for programs only

    if not program.statements:
        complain(
            f"{printable(checked.source.name)} has no command: there is nothing to plan",
            "one a line, such as FIND nodes AS x",
        )
        return Exit.ERRORS
    match form:
        case "text":
            print(of_program.program_text(program, checked.source.name))
        case "json":
            print(of_program.program_json(program, checked.source.name))
        case "mermaid":
            print(of_program.program_mermaid(program))
        case "dot":
            print(of_program.program_dot(program))
    return Exit.DONE


def _text(plan: Plan, name: str) -> str:
    on = colour(sys.stdout)
    count = len(plan.graph)
    lines = [
        f"{name}: {count:,} step{'' if count == 1 else 's'} in {len(plan.layers):,} layer{'' if len(plan.layers) == 1 else 's'}",
        f"final step: {paint(f'({plan.final})', 'bold', on)}, {FINAL_RULES[plan.rule]}",
        "",
    ]
    width = min(40, max(len(step) + 2 for step in plan.graph))
    for number, layer in enumerate(plan.layers, 1):
        for position, step in enumerate(layer):
            head = f"layer {number}" if position == 0 else ""
            mark = " " if step in plan.needed else "x"
            inputs = ", ".join(f"({target})" for target in plan.graph[step])
            row = (
                f"{head:<10}{mark} {f'({step})':<{width}}  {plan.operations[step]:<5} {'← ' + inputs if inputs else ''}"
            )
            condition = f"  when={printable(plan.conditions[step])}" if step in plan.conditions else ""
            lines.append(paint(row.rstrip() + condition, "dim", on and step not in plan.needed))
    lines += ["", f"critical path, {_steps(len(plan.path))}: {_short_path(plan.path)}"]
    if plan.unneeded:
        lines.append(f"x not needed by ({plan.final}), skipped without --all-steps: {_short_list(plan.unneeded)}")
    return "\n".join(lines)


def _steps(count: int) -> str:
    return f"{count:,} step{'' if count == 1 else 's'}"


def _short_path(path: list[str]) -> str:
    shown = [f"({step})" for step in path]
    if len(shown) > 24:
        shown = [*shown[:12], f"… {len(shown) - 24:,} more …", *shown[-12:]]
    return " → ".join(shown)


def _short_list(steps: list[str]) -> str:
    more = f" and {len(steps) - 20:,} more" if len(steps) > 20 else ""
    return ", ".join(f"({step})" for step in steps[:20]) + more


def _json(plan: Plan, name: str) -> dict[str, Any]:
    layer_of = {step: number for number, layer in enumerate(plan.layers, 1) for step in layer}
    return {
        "file": name,
        "final": {"step": plan.final, "rule": plan.rule},
        "layers": plan.layers,
        "critical_path": plan.path,
        "unneeded": plan.unneeded,
        "steps": [
            {
                "id": step,
                "operation": plan.operations[step],
                "refers_to": list(inputs),
                "layer": layer_of.get(step),
                "needed": step in plan.needed,
                **({"when": plan.conditions[step]} if step in plan.conditions else {}),
            }
            for step, inputs in plan.graph.items()
        ],
    }
