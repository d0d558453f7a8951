"""``check``: everything that is wrong with a text, before anything is run or spent."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from .....lang.diagnostic import Diagnostic, has_errors
from .....lang.printer.gasl import format_gasl
from .....lang.printer.lwt import format_lwt
from .....lang.service import Known, StateKey, Variable
from .....lang.source import Source
from .....lang.trees.lwt import MISSING
from ....api.checked import check_seed
from ..shapes import Arguments, Diagnosed, Page, Session, Text
from .reading import Language, Seen, read_program, read_script
from .tool import Call, Tool, source_of

__all__ = ["CHECK", "NAMES", "seen_by"]

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


async def seen_by(call: Call, session: str) -> Seen:
    """Return what the server knows when a text of the caller's is checked."""
    ground = call.ground
    schema = await ground.schema()
    state = (await ground.current()).snapshot().declared()
    known = Known(
        schema=schema, state={each.key: StateKey(each.type) for each in state},
        variables=dict.fromkeys(ground.known(call.session(session)), Variable()), models=tuple(ground.models.named),
        measures=None if ground.adapter is None else ground.adapter.measures, ceiling=ground.ceiling(),
    )  # fmt: skip
    return Seen(known, ground.settings.read_only)


async def _check(call: Call, asked: CheckArguments) -> Checked:
    source = source_of(asked.text, NAMES[asked.language])
    seen = await seen_by(call, asked.session)
    found, formatted = await call.reading(source, _checked, source, asked, seen)
    made = Checked(ok=not has_errors(found), **call.told(found, source, asked.text, asked.session))
    if formatted is not None:
        if len(formatted) <= call.ground.settings.limits.characters:
            made.formatted = formatted
        else:
            made.formatted_page = call.page(formatted)
    return made


def _checked(source: Source, asked: CheckArguments, seen: Seen) -> tuple[Sequence[Diagnostic], str | None]:
    """Return what was found, and the text formatted."""
    if asked.language == "seed":
        return check_seed(source).diagnostics, None
    formatted = None
    found: Sequence[Diagnostic]
    if asked.language == "lwt":
        given = MISSING if asked.input is None else asked.input
        checked = read_script(source, asked.lenient, given, seen)
        found, script = checked.diagnostics, checked.script
        formatted = None if has_errors(script.diagnostics) else format_lwt(script)
    else:
        program = read_program(source, asked.language, seen)
        found = program.diagnostics
        if asked.language == "gasl" and not has_errors(program.program.diagnostics):
            formatted = format_gasl(program.program)
    return found, formatted


CHECK = Tool(
    "check", "Check a text",
    "Report all that is wrong with a script (lwt), a program (gasl), a plan or a seed, before anything runs. Programs are checked against "
    "the server's graph and state. Each diagnostic has a code, a span and, where a fix is sure, exact edits: make them and check "
    "again. At most 100,000 characters are read.",
    CheckArguments, Checked, _check,
)  # fmt: skip
