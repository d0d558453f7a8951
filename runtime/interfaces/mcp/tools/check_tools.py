"""``check`` and ``explain``: the faults of a text, and how it would run. Neither runs anything, or costs anything."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Literal

from pydantic import Field

from .....lang.diagnostic import Diagnostic, has_errors
from .....lang.source import Source
from ....api.checks import CheckedProgram, CheckedScript, CheckedSeed, check_seed, plan_of
from ....api.explain import explain_commands, find_rule, formatted_text, nearest_rule
from ....api.shared_workspace import MISSING, ClientChecks
from ..long_calls import Timeout, run_long
from ..tool_errors import ToolError
from ..tool_results import Arguments, Diagnosed, Page, Session, Text
from .tool import Call, Tool, source_of

Language = Literal["lwt", "gasl", "plan", "seed"]

NAMES = {"lwt": "script.lwt", "gasl": "program.gasl", "plan": "plan.json", "seed": "task.seed.json"}
"""The file that diagnostics name."""


class CheckArguments(Arguments):
    """A text, and what it is."""

    language: Language = Field(
        description="lwt: a prompt script. gasl: a program of graph commands. plan: GASL commands in JSON. seed: a Formula Seed."
    )
    text: Text | dict[str, Any] = Field(description="The text itself; a plan or a seed may also be the JSON object")
    input: Any = Field(
        default=None, description="The input of a script, so that paths into it are checked: any JSON value"
    )
    lenient: bool = Field(
        default=False, description="Read a script as text that a model wrote, with fences and small slips"
    )
    session: str = Session


class Checked(Diagnosed):
    """What the check found."""

    ok: bool = Field(default=False, description="Whether it may run: there are no errors")
    formatted: str | None = Field(
        default=None, description="The text in its one formatted spelling, where it can be read"
    )
    formatted_page: Page | None = Field(default=None, description="The same in pages, where it is longer than a page")


async def _check(call: Call, arguments: CheckArguments) -> Checked:
    source = source_of(arguments.text, NAMES[arguments.language])
    checks = await call.workspace.checks(call.session(arguments.session))
    found, formatted = await call.parse(source, _check_text, source, arguments, checks)
    result = Checked(ok=not has_errors(found), **call.diagnosed(found, source, arguments.text, arguments.session))
    if formatted is not None:
        if len(formatted) <= call.workspace.settings.limits.characters:
            result.formatted = formatted
        else:
            result.formatted_page = call.page(formatted)
    return result


def _check_text(
    source: Source, arguments: CheckArguments, checks: ClientChecks
) -> tuple[Sequence[Diagnostic], str | None]:
    """Return the diagnostics of a text, and the text formatted."""
    if arguments.language == "seed":
        return check_seed(source).diagnostics, None
    if arguments.language == "lwt":
        input = MISSING if arguments.input is None else arguments.input
        script = checks.script(source, arguments.lenient, input)
        return script.diagnostics, formatted_text(script)
    program = checks.program(source, arguments.language)
    return program.diagnostics, formatted_text(program) if arguments.language == "gasl" else None


CHECK = Tool(
    "check", "Check a text",
    "Report all that is wrong with a script (lwt), a program (gasl), a plan or a seed, before anything runs. Programs are checked against "
    "the server's graph and state. Each diagnostic has a code, a span and, where a fix is sure, exact edits: make them and check "
    "again. At most 100,000 characters are read.",
    CheckArguments, Checked, _check,
)  # fmt: skip


# ``explain``: how a text would run, without running it; and what a diagnostic's code means.

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


async def _explain(call: Call, arguments: ExplainArguments) -> Explained:
    if arguments.code is not None:
        return Explained(rule=_rule(arguments.code))
    if arguments.text is None:
        raise ToolError("arguments", "text is missing", "give a text with its language, or a code")
    if arguments.language is None:
        raise ToolError("arguments", "language is missing", "lwt, gasl, plan or seed")
    source, language = source_of(arguments.text, NAMES[arguments.language]), arguments.language
    if language == "gasl" or language == "plan":
        return await _explain_program(call, arguments, source, language)
    checked: CheckedScript | CheckedSeed
    if language == "seed":
        checked = await call.parse(source, check_seed, source)
    else:
        checks = await call.workspace.checks(call.session(arguments.session))
        checked = await call.parse(source, checks.script, source, False, MISSING)
    result = Explained(**call.diagnosed(checked.diagnostics, source, arguments.text))
    plan = None if checked.failed else plan_of(checked)
    if plan is None:
        return result
    keys = ("name", "computes", "refers_to", "needed") if language == "seed" else _STEP_KEYS
    result.steps = call.page([{key: step[key] for key in keys} for step in plan.document["steps"]])
    if language == "lwt":
        result.layers = [list(layer[:_STEPS]) for layer in plan.document["layers"][:_STEPS]]
        result.critical_path = plan.document["critical_path"][:_STEPS]
        result.final = plan.document["final"]["step"]
    return result


_STEP_KEYS = ("id", "operation", "refers_to", "layer", "needed")


def _rule(code: str) -> dict[str, Any]:
    found = find_rule(code)
    if found is None:
        like = nearest_rule(code)
        hint = f"did you mean {like}?" if like else "knotwork://reference/rules has all rules"
        raise ToolError("not-found", f"unknown rule {code}", hint)
    keys = ("code", "name", "severity", "summary", "why", "bad", "good")
    return {key: getattr(found, key) for key in keys}


async def _explain_program(
    call: Call, arguments: ExplainArguments, source: Source, language: Literal["gasl", "plan"]
) -> Explained:
    workspace, key = call.workspace, call.session(arguments.session)
    workspace.need_graph()
    checks = await workspace.checks(key)
    if language == "plan":  # a plan begins without variables
        checks = checks.without_variables()
    checked: CheckedProgram = await call.parse(source, checks.program, source, language)
    diagnosed = call.diagnosed(checked.diagnostics, source, arguments.text, arguments.session)
    if checked.failed:
        return Explained(**diagnosed)
    await workspace.current()
    executor, statements = workspace.session(key), checked.program.statements
    timeout = Timeout()

    def work(cancel: asyncio.Event) -> Coroutine[Any, Any, list[dict[str, Any]]]:
        return explain_commands(statements[:_COMMANDS], executor, cancel, with_variables=language == "gasl")

    rows = await run_long(workspace, call.client, work, timeout, turn=True)
    calls, left_out = sum(int(row["model_calls"]) for row in rows), len(statements) - len(rows)
    if not left_out:
        return Explained(**diagnosed, steps=call.page(rows), model_calls=calls)
    seconds = workspace.settings.limits.seconds
    limit = f"timed out after {seconds:g} s (limit per call)"
    why = limit if timeout.is_reached else f"at most {_COMMANDS:,} commands are explained"
    return Explained(**diagnosed, steps=call.page(rows), left_out=left_out, why=why)


EXPLAIN = Tool(
    "explain", "How it would run",
    "Say how a text would run, and run nothing. Of a program or a plan: how each command finds what it wants, the rows to expect, the "
    "calls of models. Of a script or a seed: what waits for what. With a code: what that diagnostic means, with a bad and a good example.",
    ExplainArguments, Explained, _explain,
)  # fmt: skip
