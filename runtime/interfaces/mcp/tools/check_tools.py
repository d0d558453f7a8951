"""``check``: everything that is wrong with a text, before anything is run or spent."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, cast

from attrs import evolve, frozen
from pydantic import Field

from .....lang.catalogue.operations import BUILTIN, Signature
from .....lang.catalogue.rules import find_rule, nearest_rule
from .....lang.dependencies import critical_path, final_step, layers, needed, step_dependencies
from .....lang.diagnostic import Diagnostic, has_errors
from .....lang.embedded_code import embedded_program
from .....lang.evaluate.seed.explanation import step_in_words
from .....lang.evaluate.seed.step_dependencies import needed_steps, step_graph
from .....lang.parse.gasl import parse_gasl
from .....lang.printer.gasl_printer import format_gasl
from .....lang.printer.lwt_printer import format_lwt
from .....lang.service import Known, StateKey, Variable
from .....lang.source import Source
from .....lang.trees import walk
from .....lang.trees.gasl import Declare, Program, Reset, Update
from .....lang.trees.lwt import MISSING, Call, Script, Template
from .....lang.trees.seed import FormulaSeed
from ....api.checks import CheckedProgram, CheckedScript, Surroundings, check_program, check_script, check_seed
from ....gasl.dispatcher import explain
from ....gasl.records import ContextStore
from ..long_calls import Late, run_beside
from ..tool_errors import Refused
from ..tool_results import Arguments, Diagnosed, Page, Session, Text
from .tool import Call as ToolCall
from .tool import Told, Tool, source_of

# Texts of all languages read and checked against what the server knows: one way in for ``check``, ``explain`` and the runs.

Language = Literal["lwt", "gasl", "plan", "seed"]
ALLOWED = ("LLM", "CONST", "EXPR", "EACH", "ANSWER", "GASL")
"""Operations of scripts that need no file, and no code of plugins."""
_UNKNOWN = "LWT018"
"""No such operation: the diagnostic that lists those that there are."""
_CHANGING = (Declare, Reset, Update)


@frozen
class Seen:
    """What the server knows when a text is checked, and what it lets nobody do."""

    known: Known
    read_only: bool = False

    @property
    def graph(self) -> bool:
        """Whether there is one."""
        return self.known.schema is not None

    @property
    def operations(self) -> Mapping[str, Signature]:
        """The operations that this server offers to scripts."""
        return {name: BUILTIN[name] for name in ALLOWED if name in BUILTIN and (name != "GASL" or self.graph)}

    def without_variables(self) -> "Seen":
        """Return the same for a text that begins without variables."""
        return evolve(self, known=evolve(self.known, variables={}))

    @property
    def surroundings(self) -> Surroundings:
        """What programs are checked against."""
        known = self.known
        return Surroundings(
            known.schema, {key: each.type for key, each in (known.state or {}).items()}, known.ceiling, known.measures,
            tuple(known.variables), None if known.models is None else tuple(known.models),
        )  # fmt: skip


def read_program(source: Source, language: Literal["gasl", "plan"], known: Seen) -> CheckedProgram:
    """Check a program or a plan; what would change a state that is only read is an error: MCP001."""
    return check_program(source, language, known.surroundings, restrict=_changes if known.read_only else None)


def _changes(program: Program) -> Iterator[Diagnostic]:
    """Yield each command that would change a state that is only read: MCP001."""
    for node in walk(program):
        if isinstance(node, _CHANGING):
            word = type(node).__name__.upper()
            yield Diagnostic(
                "MCP001", "error", f"{word} changes the state, which this server only reads", node.span,
                ("leave it out: the result has the values that the commands give",),
            )  # fmt: skip


def read_script(source: Source, lenient: bool, input: Any, known: Seen) -> CheckedScript:
    """Check a script. What only a script in a file may do is an error here: MCP002 to MCP004. ``input``: as for ``check_script``."""
    models = known.known.models
    checked = check_script(
        source, "lenient" if lenient else "strict", input=input, models=models, operations=BUILTIN,
        reads_files=False, restrict=lambda script: _refused(script, known),
    )  # fmt: skip
    if all(each.code != _UNKNOWN for each in checked.found):
        return checked
    # The diagnostic of an unknown operation lists those that this server offers.
    offered = check_script(checked.script, input=input, models=models, operations=known.operations, reads_files=False)
    meant = {each.span: each for each in offered.found if each.code == _UNKNOWN}
    found = tuple(meant.get(each.span, each) if each.code == _UNKNOWN else each for each in checked.found)
    return evolve(checked, found=found)


def _refused(script: Script, known: Seen) -> Iterator[Diagnostic]:
    for step in script.steps:
        for call in walk(step):
            if not isinstance(call, Call):
                continue
            if call.operation not in ALLOWED:
                hint = f"there are: {', '.join(known.operations)}"
                yield Diagnostic(
                    "MCP002", "error", f"{call.operation} is not offered by this server", call.span, (hint,)
                )
            elif (file := call.option("file")) is not None:
                yield Diagnostic("MCP003", "error", "a script that comes from a client reads no files", file.span)
            elif call.operation == "GASL":
                yield from _of_program(call, known)


def _of_program(call: Call, known: Seen) -> Iterator[Diagnostic]:
    if not known.graph:
        yield Diagnostic("MCP004", "error", "GASL needs a graph, and this server has none", call.span)
    if known.read_only and call.arguments and isinstance(template := call.arguments[0], Template):
        program = parse_gasl(Source(embedded_program(template).text(lambda reference: "x"), "<call>"))
        for change in _changes(program):
            yield Diagnostic("MCP001", "error", change.message, call.span, change.hints)


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


async def seen_by(call: ToolCall, session: str) -> Seen:
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


async def _check(call: ToolCall, asked: CheckArguments) -> Checked:
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


async def _explain(call: ToolCall, asked: ExplainArguments) -> Explained:
    if asked.code is not None:
        return Explained(rule=_rule(asked.code))
    if asked.text is None:
        raise Refused("arguments", "there is nothing to explain", "give text with its language, or a code")
    if asked.language is None:
        raise Refused("arguments", "language: it is missing", "lwt, gasl, plan or seed")
    source = source_of(asked.text, NAMES[asked.language])
    if asked.language in ("gasl", "plan"):
        return await _explained_program(call, asked, source)
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


async def _explained_program(call: ToolCall, asked: ExplainArguments, source: Source) -> Explained:
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
    why = f"timed out after {seconds:g} s (limit per call)" if late.is_so else f"at most {_COMMANDS:,} are explained"
    return Explained(**told, steps=call.page(rows), left_out=commands - len(rows), why=why)


def _of_script(call: ToolCall, script: Script, told: Told) -> Explained:
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


def _of_seed(call: ToolCall, seed: FormulaSeed, told: Told) -> Explained:
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
