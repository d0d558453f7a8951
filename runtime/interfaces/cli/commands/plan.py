"""``knotwork plan``: show the steps of a run and their order, without running them."""

import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal

import typer

from .....lang.diagnostic import printable
from ....api.figures import counted
from ..output import Exit, colour, complain, json_text, paint
from ..params import FunctionsFile, InputFile, Lenient, MaxSteps


def plan(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A script, a GASL program, a plan or a Formula Seed, or - for stdin.",
            show_default=False,
        ),
    ],
    output_format: Annotated[
        Literal["text", "json", "mermaid", "dot"],
        typer.Option(
            "--format", help="text: readable text. json: one document. mermaid and dot: a diagram of the graph."
        ),
    ] = "text",
    input_file: InputFile = None,
    lenient: Lenient = False,
    max_steps: MaxSteps = 10_000,
    functions: FunctionsFile = None,
) -> int:
    """Show what a run would do: layers, critical path, final step.

    For a program or a plan, it shows the commands, their dependencies, and which commands call a model. For a Formula Seed, it
    shows the values and their dependencies. Steps that the output does not need are marked x. No model is called.

    Example: knotwork plan cafes.lwt --format dot | dot -Tsvg > cafes.svg
    """
    from ....api.checks import CheckedProgram
    from ....api.plans import plan_of
    from ..inputs import check_files, functions_in, show

    results = check_files(
        [file], "lenient" if lenient else "strict", input_file, max_steps=max_steps, functions=functions_in(functions)
    )
    show([result.without_remarks for result in results], sys.stderr)
    if any(result.failed for result in results):
        return Exit.ERRORS
    checked = results[-1]
    found = plan_of(checked)
    if found is None:
        name = printable(checked.source.name)
        if isinstance(checked, CheckedProgram):
            complain(f"{name} has no commands", "write one command per line, such as FIND nodes AS x")
        else:
            complain(f"{name} has no steps", "knotwork plan takes scripts, programs, plans and seeds")
        return Exit.ERRORS
    match output_format:
        case "text":
            print("\n".join(_TEXTS[found.language](found.document, colour(sys.stdout))))
        case "json":
            print(json_text(found.document))
        case "mermaid":
            print(found.mermaid())
        case "dot":
            print(found.dot())
    return Exit.DONE


def _script_text(plan: dict[str, Any], on: bool) -> list[str]:
    from ....api.plans import FINAL_RULES

    steps = {step["id"]: step for step in plan["steps"]}
    final, path, unneeded = plan["final"]["step"], plan["critical_path"], plan["unneeded"]
    lines = [
        f"{plan['file']}: {counted(len(steps), 'step')} in {counted(len(plan['layers']), 'layer')}",
        f"final step: {paint(f'({final})', 'bold', on)}, {FINAL_RULES[plan['final']['rule']]}",
        "",
    ]
    width = min(40, max(len(step) + 2 for step in steps))
    rows = {}
    for name, step in steps.items():
        inputs = ", ".join(f"({target})" for target in step["refers_to"])
        row = f"{f'({name})':<{width}}  {step['operation']:<5} {'← ' + inputs if inputs else ''}".rstrip()
        rows[name] = row + (f"  when={printable(step['when'])}" if "when" in step else "")
    lines += _layer_rows(plan, rows, on, {name: step["script"] for name, step in steps.items() if "script" in step})
    shown = [f"({step})" for step in path]
    if len(shown) > 24:
        shown = [*shown[:12], f"… {len(shown) - 24:,} more …", *shown[-12:]]
    lines += ["", f"critical path, {counted(len(path), 'step')}: {' → '.join(shown)}"]
    if unneeded:
        more = f" and {len(unneeded) - 20:,} more" if len(unneeded) > 20 else ""
        names = ", ".join(f"({step})" for step in unneeded[:20])
        lines.append(f"x not needed by ({final}), skipped without --all-steps: {names}{more}")
    return lines


def _layer_rows(
    plan: dict[str, Any], rows: dict[str, str], on: bool, scripts: Mapping[str, dict[str, Any]] = MappingProxyType({})
) -> list[str]:
    """Return a line for each step, layer by layer. Steps that are not needed are marked x and dimmed.

    ``scripts`` are the plans of the scripts that steps run; these plans are indented below their steps.
    """
    lines = []
    for number, layer in enumerate(plan["layers"], 1):
        for step in layer:
            mark = "x" if step in plan["unneeded"] else " "
            head = f"layer {number}" if step == layer[0] else ""
            lines.append(paint(f"{head:<10}{mark} {rows[step]}", "dim", on and mark == "x"))
            if step in scripts:
                lines += [f"{'':<14}{line}".rstrip() for line in _script_text(scripts[step], on)]
    return lines


def _seed_text(plan: dict[str, Any], on: bool) -> list[str]:
    steps = {step["name"]: step for step in plan["steps"]}
    width = min(30, max(map(len, steps), default=0))
    rows = {name: printable(f"{name:<{width}}  {step['computes']}") for name, step in steps.items()}
    counts = f"{counted(len(steps), 'step')} in {counted(len(plan['layers']), 'layer')}"
    lines = [
        f"{printable(plan['file'])}: {counted(len(plan['fields']), 'field')} of each review, {counts}",
        f"outputs: {paint(printable(', '.join(plan['outputs']) or 'none'), 'bold', on)}",
        "",
        *_layer_rows(plan, rows, on),
    ]
    if plan["unneeded"]:
        lines += ["", printable(f"x not needed by an output: {', '.join(plan['unneeded'])}")]
    return lines


def _program_text(plan: dict[str, Any], on: bool) -> list[str]:
    rows: Sequence[dict[str, Any]] = plan["commands"]
    calls = f"{plan['asking_a_model'] or 'none'} of them"
    lines = [f"{printable(plan['file'])}: {counted(len(rows), 'command')}, {calls} calling a model", ""]
    for row in rows:
        text = printable(" ".join(row["text"].split()))
        text = text if len(text) <= 100 else f"{text[:100]}…"
        sources = f"  ← {', '.join(map(str, row['takes_from']))}" if row["takes_from"] else ""
        lines.append(
            f"{row['number']:>4}  {text}{sources}{paint('  calls a model', 'bold', on) if row['asks_a_model'] else ''}"
        )
    if outer := dict.fromkeys(name for row in rows for name in row["from_elsewhere"]):
        lines += ["", printable(f"defined outside the program: {', '.join(outer)}")]
    return [*lines, "", "EXPLAIN before a command shows how it would search the graph"]


_TEXTS = {"script": _script_text, "program": _program_text, "seed": _seed_text}
