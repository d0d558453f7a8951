"""``check``: everything that is wrong with a text, before anything is run or spent."""

import asyncio
from typing import Any

from pydantic import Field

from .....lang.diagnostic import has_errors
from .....lang.documents.seed import read_seed
from .....lang.linter.seed import check as check_seed
from .....lang.printer.gasl import format_gasl
from .....lang.printer.lwt import format_lwt
from .....lang.source import Source
from ..shapes import Arguments, Diagnosed, Session
from .reading import Known, Language, read_program, read_script
from .tool import Call, Tool, source_of

__all__ = ["CHECK", "known"]

NAMES = {"lwt": "script.lwt", "gasl": "program.gasl", "plan": "plan.json", "seed": "task.seed.json"}
"""The file that diagnostics name."""


class CheckArguments(Arguments):
    """A text, and what it is."""

    language: Language = Field(
        description="lwt: a prompt script. gasl: a program of graph commands. plan: GASL commands in JSON. seed: a Formula Seed."
    )
    text: str | dict[str, Any] = Field(description="The text itself; a plan or a seed may also be the JSON object")
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


async def known(call: Call, session: str) -> Known:
    """Return what the server knows when a text of the caller's is checked."""
    ground = call.ground
    schema = await ground.schema()
    return Known(
        schema, ground.declared(), ground.known(call.session(session)), tuple(ground.models.named),
        ground.settings.read_only, schema is not None, ground.ceiling(), None if ground.adapter is None else ground.adapter.measures,
    )  # fmt: skip


async def _check(call: Call, asked: CheckArguments) -> Checked:
    source = source_of(asked.text, NAMES[asked.language])
    seen = await known(call, asked.session)
    return await asyncio.to_thread(_checked, call, source, asked, seen)


def _checked(call: Call, source: Source, asked: CheckArguments, seen: Known) -> Checked:
    formatted = None
    if asked.language == "seed":
        read = read_seed(source)
        readable = read.seed or read.draft
        found = list(dict.fromkeys((*(check_seed(readable) if readable is not None else ()), *read.diagnostics)))
    elif asked.language == "lwt":
        script, told = read_script(source, asked.lenient, asked.input, seen)
        found = list(told)
        formatted = None if has_errors(script.diagnostics) else format_lwt(script)
    else:
        program = read_program(source, asked.language, seen)
        found = list(program.diagnostics)
        if asked.language == "gasl" and not has_errors(program.program.diagnostics):
            formatted = format_gasl(program.program)
    return Checked(ok=not has_errors(found), formatted=formatted, **call.told(found, source, asked.text))


CHECK = Tool(
    "check", "Check a text",
    "Report all that is wrong with a script (lwt), a program (gasl), a plan or a seed, before anything runs. Programs are checked against "
    "the server's graph and state. Each diagnostic has a code, a span and, where a fix is sure, exact edits: make them and check again.",
    CheckArguments, Checked, _check,
)  # fmt: skip
