"""The plans of checked texts: the steps, their inputs, and their drawings."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attrs import field, frozen

from ...lang.diagnostic import printable
from ...lang.trees.lwt import Script
from .checks import Checked, CheckedProgram, CheckedScript, CheckedSeed, calls_model, folder_of

if TYPE_CHECKING:
    from ...lang.dependencies import Drawn
    from ...lang.trees.gasl import Program
    from ...lang.trees.lwt import Call
    from ...lang.trees.seed import FormulaSeed

__all__ = ["FINAL_RULES", "Plan", "plan_of"]

# The plan of a run: the steps of a checked text and their dependencies.

FINAL_RULES = {
    "final": "the step named final",
    "only sink": "the only step that no other step refers to",
    "last": "the last step (no step refers to several of them)",
}
"""Maps each rule that selects the final step of a script to a description of the rule."""


@frozen
class Plan:
    """The steps of a checked text. ``document`` is the plan as JSON; its keys depend on the language.

    ``graph`` maps each step to its inputs, ``labels`` maps each step to its text in a drawing. ``outputs`` are the final steps;
    ``needed`` contains the final steps and all steps that they depend on.
    """

    language: Literal["script", "program", "seed"]
    graph: Mapping[str, tuple[str, ...]]
    labels: Mapping[str, str]
    outputs: Collection[str]
    needed: Collection[str]
    document: dict[str, Any]
    inside: "Mapping[str, Plan]" = field(factory=dict)
    """The plans of the scripts that steps run, by step."""

    def mermaid(self) -> str:
        """Return the graph as a Mermaid flowchart."""
        from ...lang.dependencies import mermaid

        return mermaid(self.graph, self.labels, self.outputs, self.needed, _drawn(self).inside)

    def dot(self) -> str:
        """Return the graph as a Graphviz digraph."""
        from ...lang.dependencies import dot

        return dot(self.graph, self.labels, self.outputs, self.needed, self.language, _drawn(self).inside)


def _drawn(plan: Plan) -> "Drawn":
    from ...lang.dependencies import Drawn

    inside = {step: _drawn(inner) for step, inner in plan.inside.items()}
    return Drawn(plan.graph, plan.labels, plan.outputs, plan.needed, inside)


def plan_of(checked: Checked) -> Plan | None:
    """Return the plan of a text without errors; None for a text without steps."""
    if isinstance(checked, CheckedSeed):
        return None if checked.seed is None else _seed_plan(checked.seed)
    if isinstance(checked, CheckedProgram):
        return _program_plan(checked.program) if checked.program.statements else None
    return _script_plan(checked.plan.script, checked.plan.nested) if isinstance(checked, CheckedScript) else None


def _script_plan(script: Script, nested: Mapping[Path, Script]) -> Plan | None:
    from ...lang.dependencies import critical_path, final_step, layers, needed, step_dependencies
    from ...lang.printer.lwt_printer import format_value

    graph = step_dependencies(script)
    chosen = final_step(script, graph)
    if chosen is None:
        return None
    final, rule = chosen
    wanted = needed(graph, final)
    levels = layers(graph)
    layer_of = {step: number for number, layer in enumerate(levels, 1) for step in layer}
    operations = {step.id: step.call.operation for step in script.steps}
    conditions = {
        step.id: format_value(found) for step in script.steps if (found := step.call.option("when")) is not None
    }
    inside = {step.id: plan for step in script.steps if (plan := _inner_plan(step.call, script, nested)) is not None}
    document = {
        "file": script.source.name,
        "final": {"step": final, "rule": rule},
        "layers": levels,
        "critical_path": critical_path({step: inputs for step, inputs in graph.items() if step in wanted})[0],
        "unneeded": [step for step in graph if step not in wanted],
        "steps": [
            {
                "id": step, "operation": operations[step], "refers_to": list(inputs), "layer": layer_of.get(step),
                "needed": step in wanted, **({"when": conditions[step]} if step in conditions else {}),
                **({"script": inside[step].document} if step in inside else {}),
            }
            for step, inputs in graph.items()
        ],
    }  # fmt: skip
    return Plan("script", graph, operations, (final,), wanted, document, inside)


def _inner_plan(call: "Call", script: Script, nested: Mapping[Path, Script]) -> Plan | None:
    """Return the plan of the script that ``call`` runs, also for each element of a list; None if it runs no script."""
    from ...lang.trees.lwt import Call, Template
    from ..lwt.operations.named_files import nested_path

    inner = call.arguments[-1] if call.operation == "EACH" and call.arguments else call
    folder = folder_of(script)
    if not isinstance(inner, Call) or inner.operation != "RUN" or folder is None:
        return None
    found = nested.get(nested_path(inner, folder) or folder)
    plan = None if found is None else _script_plan(found, nested)
    if plan is not None and isinstance(file := inner.option("file"), Template):
        plan.document["file"] = file.constant
    return plan


def _program_plan(program: "Program") -> Plan:
    """Return the plan of a program. The plan lists the top-level commands, and for each command the commands whose results it uses."""
    from ...lang.service.navigation import occurrences_in

    rows: list[dict[str, Any]] = []
    source_of: dict[tuple[str, str], int] = {}
    for number, statement in enumerate(program.statements, 1):
        text = program.source.slice(statement.command.span)
        names = [
            each
            for each in occurrences_in("gasl", text)
            if each.kind in ("variable", "key") and each.name != "error" and not each.scope
        ]
        used = dict.fromkeys((each.kind, each.name) for each in names if not each.defines)
        bound = dict.fromkeys((each.kind, each.name) for each in names if each.defines)
        rows.append(
            {
                "number": number, "text": text, "binds": [name for kind, name in bound if kind == "variable"],
                "keys": list(dict.fromkeys(name for kind, name in (*bound, *used) if kind == "key")),
                "takes_from": list(dict.fromkeys(source_of[name] for name in used if name in source_of)),
                "from_elsewhere": [name[1] for name in used if name not in source_of and name not in bound],
                "asks_a_model": calls_model(statement.command),
            }
        )  # fmt: skip
        source_of |= dict.fromkeys(bound, number)
    graph = {str(row["number"]): tuple(map(str, row["takes_from"])) for row in rows}
    labels = {str(row["number"]): printable(" ".join(row["text"].split()))[:60] for row in rows}
    asking = sum(row["asks_a_model"] for row in rows)
    document = {"file": program.source.name, "asking_a_model": asking, "commands": rows}
    return Plan("program", graph, labels, (), graph, document)


def _seed_plan(seed: "FormulaSeed") -> Plan:
    from ...lang.dependencies import layers
    from ...lang.evaluate.seed.explanation import step_in_words
    from ...lang.evaluate.seed.step_dependencies import needed_steps, operations_of, step_graph

    graph = step_graph(seed)
    needed, steps = needed_steps(graph, seed.outputs), seed.step_by_name
    # The graph also contains the extractions and the context, which are not steps.
    levels = [tuple(name for name in layer if name in steps) for layer in layers(graph)]
    levels = [layer for layer in levels if layer]
    layer_of = {name: number for number, layer in enumerate(levels, 1) for name in layer}
    document = {
        "file": seed.source.name,
        "fields": [extracted.name for extracted in seed.fields],
        "outputs": list(seed.outputs),
        "layers": levels,
        "unneeded": [name for name in steps if name not in needed],
        "steps": [
            {
                "name": step.name, "computes": step_in_words(step), "refers_to": list(graph[step.name]),
                "layer": layer_of.get(step.name), "needed": step.name in needed,
            }
            for step in seed.steps
        ],
    }  # fmt: skip
    return Plan("seed", graph, operations_of(seed, graph), seed.outputs, needed, document)
