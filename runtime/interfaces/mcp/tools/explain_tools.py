"""``explain``: how a text would run, without running it; and what a diagnostic's code means."""

import asyncio
from typing import Any, Literal, cast

from attrs import evolve
from pydantic import Field

from .....lang.catalogue.rules import find_rule, nearest_rule
from .....lang.dependencies import critical_path, final_step, layers, needed, step_dependencies
from .....lang.evaluate.seed.explanation import step_in_words
from .....lang.evaluate.seed.step_dependencies import needed_steps, step_graph
from .....lang.source import Source
from .....lang.trees.lwt import MISSING, Script
from .....lang.trees.seed import FormulaSeed
from ....api.checked import check_seed
from ....gasl.explain import explain
from ....gasl.variables import ContextStore
from ..long_calls import Late, run_beside
from ..output_schemas import Arguments, Diagnosed, Page, Session, Text
from ..tool_errors import Refused
from .check_tools import NAMES, Language, read_program, read_script, seen_by
from .tool import Call, Told, Tool, source_of

__all__ = ["EXPLAIN"]

_COMMANDS = 1_000
"""Commands of a program that are explained."""
_STEPS = 200
"""Steps that layers and the critical path name."""


class ExplainArguments(Arguments):
    """A text with its language, or a code."""

    language: Language | None = None
    text: Text | dict[str, Any] | None = Field(
        default=None, description="The text; a plan or a seed may also be the JSON object"
    )
    code: str | None = Field(
        default=None, max_length=80, description="The code of a diagnostic, such as GASL070: says why it matters"
    )
    session: str = Session


class Explained(Diagnosed):
    """How it would run. ``diagnostics`` with errors: it would not."""

    steps: Page | None = Field(
        default=None,
        description="Of a program or plan: {command, how, rows, model_calls, notes, inside?} in order. Of a script: {id, operation, "
        "refers_to, layer, needed}. Of a seed: {name, computes, refers_to, needed}.",
    )
    layers: list[list[str]] = Field(
        default_factory=list, description="Steps of a script that can run side by side, layer by layer"
    )
    critical_path: list[str] = Field(default_factory=list)
    final: str | None = Field(default=None, description="The step whose output is the script's")
    model_calls: int | None = Field(
        default=None, description="Calls of models that a program would make, as far as it is known"
    )
    left_out: int = Field(default=0, description="Commands behind those that are explained; nobody counted their calls")
    why: str = Field(default="", description="Why they were left out")
    rule: dict[str, Any] | None = Field(
        default=None, description="The rule of a code: {code, name, severity, summary, why, bad, good}"
    )


async def _explain(call: Call, asked: ExplainArguments) -> Explained:
    if asked.code is not None:
        return Explained(rule=_rule(asked.code))
    if asked.text is None:
        raise Refused("arguments", "there is nothing to explain", "give text with its language, or a code")
    if asked.language is None:
        raise Refused("arguments", "language: it is missing", "lwt, gasl, plan or seed")
    source = source_of(asked.text, NAMES[asked.language])
    if asked.language in ("gasl", "plan"):
        return await _of_program(call, asked, source)
    if asked.language == "seed":
        seed = await call.reading(source, check_seed, source)
        told = call.told(seed.diagnostics, source, asked.text)
        refused = seed.seed is None or seed.failed
        return Explained(**told) if refused else _of_seed(call, cast(FormulaSeed, seed.seed), told)
    seen = await seen_by(call, asked.session)
    script = await call.reading(source, read_script, source, False, MISSING, seen)
    told = call.told(script.diagnostics, source, asked.text)
    return Explained(**told) if script.failed else _of_script(call, script.script, told)


def _rule(code: str) -> dict[str, Any]:
    found = find_rule(code)
    if found is None:
        like = nearest_rule(code)
        hint = f"did you mean {like}?" if like else "knotwork://reference/rules has all"
        raise Refused("not-found", f"there is no rule {code}", hint)
    return {
        "code": found.code, "name": found.name, "severity": found.severity, "summary": found.summary, "why": found.why,
        "bad": found.bad, "good": found.good,
    }  # fmt: skip


async def _of_program(call: Call, asked: ExplainArguments, source: Source) -> Explained:
    ground, key = call.ground, call.session(asked.session)
    language: Literal["gasl", "plan"] = "plan" if asked.language == "plan" else "gasl"
    ground.need_graph()
    seen = await seen_by(call, asked.session)
    if language == "plan":  # one begins without variables
        seen = seen.without_variables()
    read = await call.reading(source, read_program, source, language, seen)
    told = call.told(read.diagnostics, source, asked.text, asked.session)
    if read.failed:
        return Explained(**told)
    await ground.current()
    session = ground.session(key).session
    context = ContextStore() if language == "plan" else session.context.copy()
    apart = evolve(session, context=context, label="")

    async def work(cancel: asyncio.Event) -> list[dict[str, Any]]:
        rows = []
        for statement in read.program.statements[:_COMMANDS]:
            if cancel.is_set():
                break
            rows.append((await explain(statement.command, apart)).value)
        return [dict(row.value) for row in rows if row is not None]

    late = Late()
    rows = await run_beside(ground, call.who, work, late, turn=True)
    calls, commands = sum(int(row["model_calls"]) for row in rows), len(read.program.statements)
    if len(rows) == commands:
        return Explained(**told, steps=call.page(rows), model_calls=calls)
    seconds = ground.settings.limits.seconds
    why = f"it was cut off: a call has {seconds:g} seconds" if late.is_so else f"at most {_COMMANDS:,} are explained"
    return Explained(**told, steps=call.page(rows), left_out=commands - len(rows), why=why)


def _of_script(call: Call, script: Script, told: Told) -> Explained:
    graph = step_dependencies(script)
    chosen = final_step(script, graph)
    if chosen is None:
        return Explained(**told)
    final, _ = chosen
    wanted, order = needed(graph, final), layers(graph)
    layer_of = {step: number for number, layer in enumerate(order, 1) for step in layer}
    path, _ = critical_path({step: inputs for step, inputs in graph.items() if step in wanted})
    operations = {step.id: step.call.operation for step in script.steps}
    rows = [
        {
            "id": step, "operation": operations[step], "refers_to": list(inputs), "layer": layer_of.get(step),
            "needed": step in wanted,
        }
        for step, inputs in graph.items()
    ]  # fmt: skip
    return Explained(
        **told, steps=call.page(rows), layers=[list(layer[:_STEPS]) for layer in order[:_STEPS]],
        critical_path=path[:_STEPS], final=final,
    )  # fmt: skip


def _of_seed(call: Call, seed: FormulaSeed, told: Told) -> Explained:
    graph = step_graph(seed)
    wanted = needed_steps(graph, seed.outputs)
    rows = [
        {
            "name": step.name, "computes": step_in_words(step), "refers_to": list(graph[step.name]),
            "needed": step.name in wanted,
        }
        for step in seed.steps
    ]  # fmt: skip
    return Explained(**told, steps=call.page(rows))


EXPLAIN = Tool(
    "explain", "How it would run",
    "Say how a text would run, and run nothing. Of a program or a plan: how each command finds what it wants, the rows to expect, the "
    "calls of models. Of a script or a seed: what waits for what. With a code: what that diagnostic means, with a bad and a good example.",
    ExplainArguments, Explained, _explain,
)  # fmt: skip
