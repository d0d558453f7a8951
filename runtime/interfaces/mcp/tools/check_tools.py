"""The tools ``check`` (the errors in a text) and ``explain`` (how a text would run). These tools call no model and do not run the text."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Literal

from pydantic import Field

from .....lang.diagnostic import Diagnostic, has_errors
from .....lang.source import Source
from ....api.checks import CheckedProgram, CheckedScript, CheckedSeed, check_seed
from ....api.explain import explain_commands, find_rule, formatted_text, nearest_rule
from ....api.plans import plan_of
from ....api.shared_workspace import MISSING, ClientChecks, ExecutionError, checked_parameters
from ..long_calls import Timeout, run_long
from ..resources import card
from ..tool_errors import ToolError
from ..tool_results import Arguments, Diagnosed, Page, Parameters, Session, Text
from .tool import Call, Tool, source_of

Language = Literal["lwt", "gasl", "plan", "seed"]

NAMES = {"lwt": "script.lwt", "gasl": "program.gasl", "plan": "plan.json", "seed": "task.seed.json"}
"""Maps each language to the file name that diagnostics show."""


class CheckArguments(Arguments):
    """A text and its language."""

    language: Language = Field(
        description="lwt: a prompt script. gasl: a program of graph commands. plan: GASL commands in JSON. seed: a Formula Seed."
    )
    text: Text | dict[str, Any] = Field(description="The text; a plan or a seed may also be a JSON object")
    input: Any = Field(default=None, description="The input of a script (any JSON value); paths into it are checked")
    lenient: bool = Field(
        default=False, description="Accept code fences and small mistakes in a script that a model wrote"
    )
    session: str = Session


class Checked(Diagnosed):
    """The result of the check."""

    ok: bool = Field(default=False, description="Whether the text can run: it has no errors")
    formatted: str | None = Field(default=None, description="The text in its canonical format, if it can be parsed")
    formatted_page: Page | None = Field(
        default=None, description="The pages of the formatted text, if it is longer than a page"
    )


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
    """Return the diagnostics of a text, and the formatted text (None: not available)."""
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
    "Report the errors in a script (lwt), a program (gasl), a plan or a seed, and run nothing. Programs are checked against "
    "the server's graph and state. Each diagnostic has a code, a span and, if a fix is certain, exact edits: apply them and check "
    "again. A text may have at most 100,000 characters.",
    CheckArguments, Checked, _check,
)  # fmt: skip


# ``explain`` describes how a text would run, without running it, or what a diagnostic's code means.

_COMMANDS = 1_000
"""Maximum number of commands that are explained."""
_STEPS = 200
"""Maximum number of layers, of steps per layer, and of steps in the critical path."""


class ExplainArguments(Arguments):
    """A text with its language, a language, or a code."""

    language: Language | None = Field(
        default=None, description="The text's language; without a text, the language to describe"
    )
    text: Text | dict[str, Any] | None = Field(
        default=None, description="The text; a plan or a seed may also be a JSON object"
    )
    code: str | None = Field(
        default=None, max_length=80, description="The code of a diagnostic, such as GASL070, to explain"
    )
    session: str = Session
    parameters: dict[str, Any] = Parameters


class Explained(Diagnosed):
    """How the text would run. It can't run if ``diagnostics`` contains errors."""

    steps: Page | None = Field(
        default=None,
        description="Program or plan: {command, how, rows, model_calls, notes, inside?} in order. Script: {id, operation, "
        "refers_to, layer, needed}. Seed: {name, computes, refers_to, needed}.",
    )
    layers: list[list[str]] = Field(
        default_factory=list, description="The steps of a script by layer; the steps of a layer run in parallel"
    )
    critical_path: list[str] = Field(default_factory=list)
    final: str | None = Field(default=None, description="The step whose output is the script's")
    model_calls: int | None = Field(default=None, description="Model calls that a program would make, if known")
    left_out: int = Field(
        default=0, description="Number of later commands that are not explained; their calls are not counted"
    )
    why: str = Field(default="", description="Why some commands are not explained")
    rule: dict[str, Any] | None = Field(
        default=None, description="The rule with this code: {code, name, severity, summary, why, bad, good}"
    )
    card: str = Field(default="", description="The description of a language, if only the language was given")


async def _explain(call: Call, arguments: ExplainArguments) -> Explained:
    if arguments.code is not None:
        return Explained(rule=_rule(arguments.code))
    if arguments.text is None and arguments.language is not None:
        return Explained(card=card(arguments.language))
    if arguments.text is None:
        raise ToolError("arguments", "text is missing", "give a text with its language, only a language, or a code")
    if arguments.language is None:
        raise ToolError("arguments", "language is missing", "use lwt, gasl, plan or seed")
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
        hint = f"did you mean {like}?" if like else "knotwork://reference/rules lists all rules"
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
    try:
        given = checked_parameters(checked.program, arguments.parameters)
    except ExecutionError as error:
        raise ToolError("arguments", error.message, error.hint) from None

    def work(cancel: asyncio.Event) -> Coroutine[Any, Any, list[dict[str, Any]]]:
        return explain_commands(
            statements[:_COMMANDS], executor, cancel, with_variables=language == "gasl", parameters=given
        )

    rows = await run_long(workspace, call.client, work, timeout, turn=True)
    calls, left_out = sum(int(row["model_calls"]) for row in rows), len(statements) - len(rows)
    if not left_out:
        return Explained(**diagnosed, steps=call.page(rows), model_calls=calls)
    seconds = workspace.settings.limits.seconds
    limit = f"timed out after {seconds:g} s (limit per call)"
    why = limit if timeout.is_reached else f"at most {_COMMANDS:,} commands are explained"
    return Explained(**diagnosed, steps=call.page(rows), left_out=left_out, why=why)


EXPLAIN = Tool(
    "explain", "Explain how a text would run",
    "Explain how a text would run, and run nothing. Program or plan: how each command finds its result, the expected rows, the "
    "model calls. Script or seed: the steps that each step waits for. With a code: the meaning of that diagnostic, with examples. With a "
    "language alone: how to write it, for example all you need to write GASL.",
    ExplainArguments, Explained, _explain,
)  # fmt: skip
