"""The output of ``plan`` for a script: its graph as text, JSON or a drawing."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from attrs import frozen

from ....lang.dependencies import Diagram as Graph
from ....lang.dependencies import critical_path, dot, final_step, layers, mermaid, needed, step_dependencies
from ....lang.diagnostic import printable
from ....lang.evaluate.seed.explanation import step_in_words
from ....lang.evaluate.seed.step_dependencies import dot as seed_dot
from ....lang.evaluate.seed.step_dependencies import mermaid as seed_mermaid
from ....lang.evaluate.seed.step_dependencies import needed_steps, step_graph
from ....lang.printer.lwt_printer import format_value
from ....lang.service.navigation import occurrences_in
from ....lang.trees import walk
from ....lang.trees.gasl import Analyze, Classify, Process, Program
from ....lang.trees.lwt import Mode, Script
from ....lang.trees.seed import FormulaSeed
from ...api.checked import Checked, CheckedProgram, CheckedScript, CheckedSeed
from .inputs import check_files, show
from .output import Exit, colour, complain, json_text, paint
from .seed_view import many

Form = Literal["text", "json", "mermaid", "dot"]

FINAL_RULES = {
    "final": "the step named final",
    "only sink": "the only one that no other refers to",
    "last": "the last one written (several are referred to by none)",
}
"""The rules that choose the final step, in words."""


@frozen
class Plan:
    """A script's graph and its properties. ``needed`` are the steps that run without --all-steps.

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
    # only for programs

    if not program.statements:
        complain(
            f"{printable(checked.source.name)} has no command: there is nothing to plan",
            "one a line, such as FIND nodes AS x",
        )
        return Exit.ERRORS
    match form:
        case "text":
            print(program_text(program, checked.source.name))
        case "json":
            print(program_json(program, checked.source.name))
        case "mermaid":
            print(program_mermaid(program))
        case "dot":
            print(program_dot(program))
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


# The output of ``plan`` for a GASL program or a plan: its commands in order, their inputs, and which call a model.

_WIDEST = 100
_ASKING = (Process, Classify, Analyze)


@frozen
class _Command:
    """A command of the outermost level. ``takes`` are the numbers of the commands whose variables or keys it uses."""

    number: int
    text: str
    binds: tuple[str, ...]
    keys: tuple[str, ...]
    takes: tuple[int, ...]
    given: tuple[str, ...]
    asks: bool

    @property
    def one_line(self) -> str:
        """The command in one line, safe for a terminal."""
        text = printable(" ".join(self.text.split()))
        return text if len(text) <= _WIDEST else f"{text[:_WIDEST]}…"


def _commands(program: Program) -> list[_Command]:
    found: list[_Command] = []
    maker: dict[tuple[str, str], int] = {}
    for number, statement in enumerate(program.statements, 1):
        text = program.source.slice(statement.command.span)
        named = [
            each
            for each in occurrences_in("gasl", text)
            if each.kind in ("variable", "key") and each.name != "error" and not each.scope
        ]
        used = dict.fromkeys((each.kind, each.name) for each in named if not each.defines)
        bound = dict.fromkeys((each.kind, each.name) for each in named if each.defines)
        asks = any(isinstance(node, _ASKING) for node in walk(statement.command))
        takes = dict.fromkeys(maker[thing] for thing in used if thing in maker)
        given = tuple(name for kind, name in used if (kind, name) not in maker and (kind, name) not in bound)
        found.append(
            _Command(
                number, text, tuple(name for kind, name in bound if kind == "variable"),
                tuple(dict.fromkeys(name for kind, name in (*bound, *used) if kind == "key")), tuple(takes), given, asks,
            )
        )  # fmt: skip
        maker |= dict.fromkeys(bound, number)
    return found


def program_text(program: Program, name: str) -> str:
    """Return the plan for people."""
    commands, on = _commands(program), colour(sys.stdout)
    asking = sum(each.asks for each in commands)
    lines = [
        f"{printable(name)}: {_many(len(commands), 'command')}, {f'{asking:,} of them' if asking else 'none'} asking a model",
        "",
    ]
    for each in commands:
        sources = f"  ← {', '.join(map(str, each.takes))}" if each.takes else ""
        model = paint("  asks a model", "bold", on) if each.asks else ""
        lines.append(f"{each.number:>4}  {each.one_line}{sources}{model}")
    given = list(dict.fromkeys(name for each in commands for name in each.given))
    if given:
        lines += ["", printable(f"from elsewhere: {', '.join(given)}")]
    lines += ["", "EXPLAIN before a command says how the graph would be searched for it"]
    return "\n".join(lines)


def program_json(program: Program, name: str) -> str:
    """Return the plan as JSON."""
    commands = _commands(program)
    rows: list[dict[str, Any]] = [
        {
            "number": each.number, "command": each.text, "binds": each.binds, "keys": each.keys, "takes_from": each.takes,
            "from_elsewhere": each.given, "asks_a_model": each.asks,
        }
        for each in commands
    ]  # fmt: skip
    return json_text({"file": name, "asking_a_model": sum(each.asks for each in commands), "commands": rows})


def program_mermaid(program: Program) -> str:
    """Return the plan as a Mermaid flowchart."""
    graph, words = _drawn(program)
    return mermaid(graph, words, (), graph)


def program_dot(program: Program) -> str:
    """Return the plan as a Graphviz digraph."""
    graph, words = _drawn(program)
    return dot(graph, words, (), graph, "program")


def _drawn(program: Program) -> tuple[Mapping[str, tuple[str, ...]], Mapping[str, str]]:
    commands = _commands(program)
    graph = {str(each.number): tuple(map(str, each.takes)) for each in commands}
    return graph, {str(each.number): each.one_line[:60] for each in commands}


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


# The output of ``plan`` for a seed: its compute DAG, as text, JSON or a drawing.

_WIDEST_STEP = 30


def show_seed_plan(seed: FormulaSeed, form: Form) -> int:
    """Write the plan to stdout."""
    match form:
        case "text":
            print(_seed_text(seed))
        case "json":
            print(json_text(_seed_json(seed)))
        case "mermaid":
            print(seed_mermaid(seed))
        case "dot":
            print(seed_dot(seed))
    return Exit.DONE


def _layers(seed: FormulaSeed, graph: Graph) -> list[tuple[str, ...]]:
    """Return the steps in layers, without the extractions and the context, which the graph also has as nodes."""
    found = (tuple(name for name in layer if name in seed.step_by_name) for layer in layers(graph))
    return [layer for layer in found if layer]


def _seed_text(seed: FormulaSeed) -> str:
    graph = step_graph(seed)
    needed, steps, on = needed_steps(graph, seed.outputs), seed.step_by_name, colour(sys.stdout)
    found = _layers(seed, graph)
    lines = [
        f"{printable(seed.source.name)}: {many(len(seed.fields), 'field')} of each review, "
        f"{many(len(steps), 'step')} in {many(len(found), 'layer')}",
        f"outputs: {paint(printable(', '.join(seed.outputs) or 'none'), 'bold', on)}",
        "",
    ]
    width = min(_WIDEST_STEP, max(map(len, steps), default=0))
    for number, layer in enumerate(found, 1):
        for position, name in enumerate(layer):
            head = f"layer {number}" if position == 0 else ""
            mark = " " if name in needed else "x"
            row = f"{head:<10}{mark} {name:<{width}}  {step_in_words(steps[name])}"
            lines.append(paint(printable(row), "dim", on and name not in needed))
    unneeded = [name for name in steps if name not in needed]
    if unneeded:
        lines += ["", printable(f"x no output needs it: {', '.join(unneeded)}")]
    return "\n".join(lines)


def _seed_json(seed: FormulaSeed) -> dict[str, Any]:
    graph = step_graph(seed)
    needed, found = needed_steps(graph, seed.outputs), _layers(seed, graph)
    layer_of = {name: number for number, layer in enumerate(found, 1) for name in layer}
    return {
        "file": seed.source.name,
        "fields": [extracted.name for extracted in seed.fields],
        "outputs": list(seed.outputs),
        "layers": found,
        "unneeded": [name for name in seed.step_by_name if name not in needed],
        "steps": [
            {
                "name": step.name,
                "computes": step_in_words(step),
                "refers_to": list(graph[step.name]),
                "layer": layer_of.get(step.name),
                "needed": step.name in needed,
            }
            for step in seed.steps
        ],
    }


# The first part of ``plan``: reads and checks the file, and selects the output for its language.


def plan_of_any(name: str, form: Form, mode: Mode, input_name: str | None, max_steps: int) -> int:
    """Write the plan of a script or a seed to stdout; diagnostics go to stderr."""
    results = check_files([name], mode, input_name, max_steps=max_steps)
    last = results[-1]
    seed = last.seed if isinstance(last, CheckedSeed) else None
    if seed is None or any(result.failed for result in results):
        return show_plan(results, form)
    show([result.without_remarks for result in results], sys.stderr)
    # the drawing of seeds is only imported for seeds

    return show_seed_plan(seed, form)
