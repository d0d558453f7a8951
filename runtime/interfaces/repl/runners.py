"""Runs GASL commands in a session: each is checked with the session's knowledge, run by the executor, and is one commit."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from ....lang.catalogue.schema import Schema
from ....lang.dependencies import step_references
from ....lang.diagnostic import Diagnostic, has_errors
from ....lang.evaluate.expr import ExprError, evaluate
from ....lang.linter.expr import check_expr
from ....lang.parse.expr import parse_expr
from ....lang.parse.gasl import parse_gasl
from ....lang.parse.lwt import parse_lwt
from ....lang.service import Known, StateKey, Variable, tokens
from ....lang.source import Source
from ....lang.trees.expr import Expr
from ....lang.trees.gasl import Program
from ....lang.trees.lwt import ABSENT, MISSING, RESERVED, Script
from ...api.checks import check_script
from ...gasl.records import ExecutionRecord, last_with_value
from ...lwt.operations.operation import Workshop
from ...lwt.runner import run as run_script
from ...lwt.script_plan import ScriptPlan
from ...results import Run, StepResult, coercions, plain
from ..figures import Calls
from .outcome import NOTHING, Outcome, Page, Status, Table, misused
from .reader import Piece, expression_of
from .repl_workspace import Desk

# Texts in the form of other tools, with a clear meaning: ``exit``, ``help FIND``, ``\d``, a ``;`` at the end of a line.

_PLAIN = {
    **dict.fromkeys(("help", "help()", "?", "\\?", "\\h", ".?", ".h"), ".help"),
    **dict.fromkeys(("quit", "quit()", "exit", "exit()", "\\q", ":q", ".exit", ".q"), ".quit"),
    **dict.fromkeys(("show tables", "show schema", "show labels", "\\d", "\\dt", "\\l"), ".schema"),
    **dict.fromkeys(("show variables", "show vars"), ".vars"), "show state": ".state", "\\timing": ".timer", "\\s": ".log",
}  # fmt: skip
"""Commands of other prompts that users may type."""
_BEGUN = (
    (re.compile(r"help\s+(?=[\w.]+\Z)", re.IGNORECASE), ".help "),
    (re.compile(r"desc(?:ribe)?\s+(?=\w+\Z)", re.IGNORECASE), ".schema "),
    (re.compile(r"\\dt?\+?\s+"), ".schema "),
    (re.compile(r"\\i\s+"), ".read "),
    (re.compile(r"\\o\s+"), ".output "),
    (re.compile(r"\\timing\s+"), ".timer "),
    (re.compile(r"\\h\s+"), ".help "),
)

_SEMICOLONS = re.compile(r"[ \t]*(?P<sign>;)[; \t]*(?=\r?$|[ \t]#)", re.MULTILINE)


def meant(piece: Piece, desk: Desk) -> Piece:
    """Return the intended form of a piece; other pieces are unchanged. A name that has a value means the value."""
    text = piece.text.strip().rstrip("; \t")
    word = " ".join(text.lower().split())
    if word in _PLAIN and word not in desk.values.names():
        return evolve(piece, text=_PLAIN[word], language="dot")
    for begun, dot in _BEGUN:
        found = begun.match(text)
        if found is not None:
            return evolve(piece, text=dot + text[found.end() :], language="dot")
    return _without_semicolons(piece)


def _without_semicolons(piece: Piece) -> Piece:
    """Return the piece without ``;`` at line ends, if these prevent it from being parsed."""
    text = piece.text
    if piece.language == "dot" or piece.language == "remark" or not (found := list(_SEMICOLONS.finditer(text))):
        return piece
    kept = [token.span for token in tokens(piece.language, text) if token.type in ("string", "comment")]
    said = {at for span in kept for at in range(span.start, span.end)}
    ends = [match for match in found if match.start("sign") not in said]
    without = evolve(piece, text=_cut(text, ends))
    return without if ends and _faults(without) < _faults(piece) else piece


def _cut(text: str, ends: list[re.Match[str]]) -> str:
    parts, done = [], 0
    for match in ends:
        parts.append(text[done : match.start()])
        done = match.end()
    return "".join([*parts, text[done:]])


def _faults(piece: Piece) -> int:
    """Return the number of parse errors of a piece."""
    match piece.language:
        case "gasl":
            found: Sequence[Diagnostic] = parse_gasl(piece.text).diagnostics
        case "lwt":
            found = parse_lwt(piece.text).diagnostics
        case _:
            found = parse_expr(expression_of(piece.text)[1]).diagnostics
    return sum(each.severity == "error" for each in found)


_STATUSES: Mapping[str, Status] = {
    "success": "done", "empty": "empty", "partial": "partial", "cancelled": "cancelled",
}  # fmt: skip


def check_command(piece: Piece, desk: Desk) -> tuple[Program, list[Diagnostic]]:
    """Return the program of a piece and its diagnostics, with the session's knowledge. Nothing is run."""
    program = parse_gasl(piece.source)
    if has_errors(program.diagnostics) or desk.executor is None:
        return program, list(program.diagnostics)
    return program, desk.executor.checks(program, alone=True)


async def run_command(piece: Piece, desk: Desk, cancel: asyncio.Event) -> Outcome:
    """Run a command. A text with errors is refused, without a history entry."""
    await desk.schema()
    program, found = check_command(piece, desk)
    if has_errors(found):
        return refused(found, program.source)
    executor = desk.executor
    if executor is None:
        return needs_graph()
    statement = program.statements[0]
    text = program.source.slice(statement.command.span)
    record = await executor.aexecute_one(text, statement.why, cancel=cancel)
    return evolve(_outcome(record), diagnostics=warnings(found), source=program.source)


def needs_graph() -> Outcome:
    """Return the outcome of a command that needs a graph."""
    hint = "knotwork repl GRAPH opens one: a file, or nx:les_miserables to try it"
    return Outcome("failed", message="a GASL command needs a graph, and this session has none", hint=hint)


def refused(found: Sequence[Diagnostic], source: Source) -> Outcome:
    """Return the outcome of a text with errors; mere remarks are left out."""
    return Outcome("refused", diagnostics=tuple(d for d in found if d.severity != "info"), source=source)


def warnings(found: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the warnings of a text that runs anyway."""
    return tuple(d for d in found if d.severity == "warning")


def _outcome(record: ExecutionRecord) -> Outcome:
    status = _STATUSES.get(record.status, "failed")
    last = last_with_value([record])
    error = record.error or {}
    good = status in ("done", "empty", "partial")
    value = last.value if last is not None and good else NOTHING
    names = tuple(dict.fromkeys(_names(record))) if good else ()
    return Outcome(
        status, value, _summary(record, last, status), "" if status == "done" else str(error.get("message", "")),
        str(error.get("hint") or ""), tuple(_remarks(record)), names=names,
    )  # fmt: skip


def _names(record: ExecutionRecord) -> list[str]:
    inner = [name for nested in record.nested for name in _names(nested)]
    return [*inner, *([record.variable] if record.variable is not None and record.value is not None else [])]


def counted(value: Any) -> str:
    """Return the size of a value in a few words."""
    if isinstance(value, list):
        what = _kind_of_items(value)
        return f"{len(value):,} {what}{'' if len(value) == 1 else 's'}"
    if isinstance(value, dict):
        return f"an object of {len(value):,} field{'' if len(value) == 1 else 's'}"
    if isinstance(value, str):
        return f"a text of {len(value):,} character{'' if len(value) == 1 else 's'}"
    if value is None:
        return "null"
    return "a truth value" if isinstance(value, bool) else "a number"


def _kind_of_items(value: list[Any]) -> str:
    first = value[0] if value else None
    if not isinstance(first, dict):
        return "item"
    if "nodes" in first and "edges" in first:
        return "path"
    if "source" in first and "target" in first:
        return "edge"
    return "node" if "id" in first else "row"


def _summary(record: ExecutionRecord, last: ExecutionRecord | None, status: Status) -> str:
    if last is not None and status in ("done", "empty", "partial"):
        made = counted(last.value) + (f" in {last.variable}" if last.variable else "")
        used = record.metrics.get("used")
        return f"{made} · {used}" if used else made
    told = [
        f"{name.replace('_', ' ')} {_short(value)}"
        for name, value in record.summary.items()
        if value is not None and name != "asserted"  # the message already names it
    ]
    return ", ".join(told)


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _remarks(record: ExecutionRecord) -> list[str]:
    found = [f"cut short by the cap on {name.removeprefix('max_')}" for name in record.metrics.get("caps_hit", ())]
    remark = record.metrics.get("remark")
    return [*([str(remark)] if remark else []), *found]


# Expressions in a session: over all values with valid expression names, and ``_``, the latest value.

LATEST = "_"
"""The name of the latest value."""
_PAGER = "q"
_LONG = 10_000
_FROM_A_FILE = "--input FILE makes a text the value input"


def names_of(desk: Desk) -> dict[str, Any]:
    """Return the values that an expression may name."""
    found = {name: desk.values.context.get(name) for name in desk.values.names() if name.isidentifier()}
    if desk.input is not None:
        found.setdefault("input", desk.input)
    if desk.last_value is not NOTHING and not isinstance(desk.last_value, Table | Page):
        found.setdefault(LATEST, desk.last_value)
    return found


def check_expression(piece: Piece, desk: Desk) -> tuple[Expr | None, list[Diagnostic]]:
    """Return the expression of a piece, and its diagnostics over the present values."""
    source = piece.source
    read = parse_expr(Source(expression_of(source.text)[1], source.name))
    if read.expr is None or has_errors(read.diagnostics):
        return None, list(read.diagnostics)
    return read.expr, check_expr(read.expr, names=names_of(desk))


async def run_expression(piece: Piece, desk: Desk) -> Outcome:
    """Evaluate an expression; ``name = expression`` binds its value."""
    source = piece.source
    expr, found = check_expression(piece, desk)
    if source.text.strip() == _PAGER and _PAGER not in names_of(desk):
        # It ends a page: typing it once too often should not lose all values.
        return misused(f"there is no value {_PAGER}", ".quit or Ctrl-D ends the session", ".quit")
    if has_errors(found) and any(d.code == "EXPR030" and len(source.text) > _LONG for d in found):
        found = [evolve(d, hints=(*d.hints, _FROM_A_FILE)) for d in found]
    if expr is None or has_errors(found):
        return refused(found, source)
    name, values = expression_of(source.text)[0], names_of(desk)
    try:
        # Evaluation is bounded in steps, but may take a fraction of a second; Ctrl-C must work meanwhile.
        value = await asyncio.to_thread(lambda: evaluate(expr, values))
    except ExprError as error:
        return refused((error.diagnostic(),), source)
    told = Outcome(value=value, summary=_told(value), diagnostics=warnings(found), source=source)
    if name is None:
        return told
    desk.values.bind(name, value)
    return evolve(told, summary=f"{counted(value)} in {name}", names=(name,))


def _told(value: Any) -> str:
    return counted(value) if isinstance(value, list | Mapping) else ""


# LWT steps in a session: a script that may refer to all present values; its results are available to the next one.

_OF_SCRIPTS = frozenset({"LWT017", "LWT031"})
"""Rules about which step is the result: in a session every step is run for its own result."""
_STEP_STATUSES: dict[str, Status] = {
    "complete": "done",
    "partial": "partial",
    "failed": "failed",
    "cancelled": "cancelled",
}


async def run_steps(piece: Piece, desk: Desk, cancel: asyncio.Event) -> Outcome:
    """Run steps, independent ones in parallel. The results of finished steps are bound even if others fail."""
    script, found, plan = _checked(piece, desk)
    if has_errors(found):
        return refused(found, script.source)
    wanted = {reference.name for step in script.steps for reference in step_references(step)} - RESERVED
    before = desk.values.before(sorted(wanted)).without({step.id for step in script.steps})
    shop = None if desk.adapter is None else Workshop(desk.executor_on, desk.state)
    await desk.schema()
    calls = Calls()
    desk.events.subscribe(calls)
    try:
        made = await run_script(
            script, input=desk.input, llm=desk.model, models=desk.models, all_steps=True, events=desk.events,
            cancel=cancel, workshop=shop, plan=plan, before=before, spec=desk.model.spec,
        )  # fmt: skip
    finally:
        desk.events.unsubscribe(calls)
    ids = {step.id: step for step in script.steps}
    for step_id, result in made.steps.items():
        if step_id in ids and result.is_good:
            desk.values.ran(ids[step_id], result)
    return evolve(_step_outcome(script, made, calls), diagnostics=warnings(found), source=script.source)


def check_steps(piece: Piece, desk: Desk) -> tuple[Script, list[Diagnostic]]:
    """Return the script of a piece and its diagnostics. Nothing is run."""
    return _checked(piece, desk)[:2]


def _checked(piece: Piece, desk: Desk) -> tuple[Script, list[Diagnostic], ScriptPlan]:
    made = check_script(
        piece.source,
        input=ABSENT if desk.input is None else desk.input,
        models=tuple(desk.models),
        given=desk.values.names(),
    )
    return made.script, [each for each in made.diagnostics if each.code not in _OF_SCRIPTS], made.plan


def _step_outcome(script: Script, run: Run, calls: Calls) -> Outcome:
    order = list(dict.fromkeys(step.id for step in script.steps))
    done = [step for step in order if step in run.steps and run.steps[step].is_good]
    bad = [step for step in order if step in run.steps and not run.steps[step].is_good]
    status = _STEP_STATUSES[run.status]
    if status == "failed" and done:
        status = "partial"
    shown = run.final if run.final in done else done[-1] if done else None
    value = NOTHING if shown is None or status == "cancelled" else plain(_value(run.steps[shown]))
    told = [f"({step}): {run.steps[step].reason}" for step in bad] + coercions(run)
    return Outcome(
        status, value, "" if value is NOTHING else _step_summary(run, shown or "", len(done), calls), "\n".join(told),
        names=tuple(done),
    )  # fmt: skip


def _value(result: StepResult) -> object:
    return result.output if result.value is None and not result.unmet else result.value


def _step_summary(run: Run, shown: str, done: int, calls: Calls) -> str:
    parts = [f"{counted(plain(_value(run.steps[shown])))} in ({shown})"]
    if done > 1:
        parts.append(f"{done} steps done")
    if calls.calls or calls.cached:
        parts.append(calls.line())
    return " · ".join(parts)


# The check of a text before it is run: for offering fixes during typing, and for ``%kw check``.


def check(piece: Piece, desk: Desk) -> Outcome:
    """Return the outcome that the faults of a piece would cause; "done", with its warnings, if it has none. Nothing is run."""
    piece = meant(piece, desk)
    match piece.language:
        case "gasl":
            found = check_command(piece, desk)[1]
        case "lwt":
            found = check_steps(piece, desk)[1]
        case "expr":
            found = check_expression(piece, desk)[1]
        case _:
            return Outcome()
    if has_errors(found):
        return refused(found, piece.source)
    return Outcome(diagnostics=warnings(found), source=piece.source)


# The session's knowledge for the language service: the graph, the state's keys, the values, the models.

_FIELDS = 40


def known(desk: Desk, schema: Schema | None) -> Known:
    """Return the session's knowledge. ``schema`` is the graph's, None if not loaded yet: this function does not wait for it."""
    variables = {name: _variable(desk.values.context.get(name)) for name in desk.values.names()}
    if LATEST in (found := names_of(desk)):
        variables[LATEST] = _variable(found[LATEST])
    return Known(
        schema=schema,
        state={each.key: StateKey(each.type, each.description or "") for each in desk.state.snapshot().declared()},
        variables=variables,
        input=MISSING if desk.input is None else desk.input,
        models=tuple(desk.models),
        measures=desk.adapter.measures if desk.adapter is not None else None,
    )


def _variable(value: Any) -> Variable:
    first = value[0] if isinstance(value, list) and value else value
    fields = tuple(str(name) for name in list(first)[:_FIELDS]) if isinstance(first, dict) else ()
    return Variable(counted(value), fields, isinstance(value, list))
