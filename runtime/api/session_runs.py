"""Checks and runs one piece of text in a session (a GASL command, LWT steps or an expression) and returns its outcome."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from ...lang.catalogue.schema import Schema
from ...lang.dependencies import step_references
from ...lang.diagnostic import Diagnostic, has_errors
from ...lang.evaluate.expr import ExprError, evaluate
from ...lang.linter.expr import check_expr
from ...lang.parse.expr import parse_expr
from ...lang.parse.gasl import parse_gasl
from ...lang.parse.lwt import parse_lwt
from ...lang.service import Known, StateKey, Variable, tokens
from ...lang.source import Source
from ...lang.trees.expr import Expr
from ...lang.trees.gasl import Program
from ...lang.trees.lwt import ABSENT, MISSING, RESERVED
from ..gasl.records import ExecutionRecord, coverage_of, last_with_value
from ..lwt.runner import run as run_script
from ..results import Run, ScriptError, coercions
from .checks import CheckedScript, check_script
from .figures import Calls
from .pieces import Piece, expression_of
from .session_data import NOTHING, Outcome, Page, SessionData, Status, Table, misused, result_value

# Commands in the syntax of other tools, if their meaning is clear: ``exit``, ``help FIND``, ``\d``, a ``;`` at the end of a line.

_ALIASES = {
    **dict.fromkeys(("help", "help()", "?", "\\?", "\\h", ".?", ".h"), ".help"),
    **dict.fromkeys(("quit", "quit()", "exit", "exit()", "\\q", ":q", ".exit", ".q"), ".quit"),
    **dict.fromkeys(("show tables", "show schema", "show labels", "\\d", "\\dt", "\\l"), ".schema"),
    **dict.fromkeys(("show variables", "show vars"), ".vars"), "show state": ".state", "\\timing": ".timer", "\\s": ".log",
}  # fmt: skip
"""Commands of other prompts that users may type."""
_ALIAS_PREFIXES = (
    (re.compile(r"help\s+(?=[\w.]+\Z)", re.IGNORECASE), ".help "),
    (re.compile(r"desc(?:ribe)?\s+(?=\w+\Z)", re.IGNORECASE), ".schema "),
    (re.compile(r"\\dt?\+?\s+"), ".schema "),
    (re.compile(r"\\i\s+"), ".read "),
    (re.compile(r"\\o\s+"), ".output "),
    (re.compile(r"\\timing\s+"), ".timer "),
    (re.compile(r"\\h\s+"), ".help "),
)

_SEMICOLONS = re.compile(r"[ \t]*(?P<sign>;)[; \t]*(?=\r?$|[ \t]#)", re.MULTILINE)


def normalize(piece: Piece, session: SessionData) -> Piece:
    """Translate a piece in the syntax of other tools, such as ``exit``, into the session's own commands; return other pieces unchanged.

    A word that is the name of a value means this value, and is not translated. Semicolons at line ends are removed if they
    prevent the piece from being parsed.
    """
    text = piece.text.strip().rstrip("; \t")
    word = " ".join(text.lower().split())
    if word in _ALIASES and word not in session.values.names():
        return evolve(piece, text=_ALIASES[word], language="dot")
    for begun, dot in _ALIAS_PREFIXES:
        found = begun.match(text)
        if found is not None:
            return evolve(piece, text=dot + text[found.end() :], language="dot")
    if piece.language == "dot" or piece.language == "comment":
        return piece
    # Remove ``;`` at line ends if they prevent the piece from being parsed.
    spans = [token.span for token in tokens(piece.language, piece.text) if token.type in ("string", "comment")]
    shorter = _SEMICOLONS.sub(
        lambda found: found[0] if any(span.start <= found.start("sign") < span.end for span in spans) else "",
        piece.text,
    )
    without = evolve(piece, text=shorter)
    return without if shorter != piece.text and _error_count(without) < _error_count(piece) else piece


def _error_count(piece: Piece) -> int:
    """Return the number of parse errors of a piece."""
    found: Sequence[Diagnostic]
    match piece.language:
        case "gasl":
            found = parse_gasl(piece.text).diagnostics
        case "lwt":
            found = parse_lwt(piece.text).diagnostics
        case _:
            found = parse_expr(expression_of(piece.text)[1]).diagnostics
    return sum(each.severity == "error" for each in found)


# GASL commands. Each command is checked against the session's data, run by the executor, and saved as one commit.

_STATUSES: Mapping[str, Status] = {
    "success": "done", "empty": "empty", "partial": "partial", "cancelled": "cancelled",
}  # fmt: skip


def check_command(piece: Piece, session: SessionData) -> tuple[Program, list[Diagnostic]]:
    """Check a piece against the session's data, without running it. Return its program and its diagnostics."""
    program = parse_gasl(piece.source)
    if session.gasl is None:
        return program, list(program.diagnostics)
    return program, session.gasl.checks(program, alone=True)


async def run_command(piece: Piece, session: SessionData, cancel: asyncio.Event) -> Outcome:
    """Run a command. A text with errors is refused, and adds no entry to the history."""
    await session.schema()
    program, found = check_command(piece, session)
    if has_errors(found):
        return refused(found, program.source)
    executor = session.gasl
    if executor is None:
        return needs_graph()
    statement = program.statements[0]
    text = program.source.slice(statement.command.span)
    record = await executor.aexecute_one(text, statement.why, cancel=cancel)
    return evolve(_command_outcome(record), diagnostics=warnings(found), source=program.source)


def needs_graph() -> Outcome:
    """Return the outcome of a command that needs a graph."""
    hint = "knotwork repl GRAPH opens one: a file, or nx:les_miserables to try it"
    return Outcome("failed", message="a GASL command needs a graph, but this session has no graph", hint=hint)


def refused(found: Sequence[Diagnostic], source: Source) -> Outcome:
    """Return the outcome of a text with errors; diagnostics of severity info are omitted."""
    return Outcome("refused", diagnostics=tuple(d for d in found if d.severity != "info"), source=source)


def warnings(found: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the warnings among the diagnostics of a text that is run."""
    return tuple(d for d in found if d.severity == "warning")


def _command_outcome(record: ExecutionRecord) -> Outcome:
    status = _STATUSES.get(record.status, "failed")
    last = last_with_value([record])
    error, metrics = record.error or {}, record.metrics
    good = status in ("done", "empty", "partial")
    names = tuple(dict.fromkeys(_bound_names(record))) if good else ()
    if last is not None and good:
        size = describe_size(last.value) + (f" in {last.variable}" if last.variable else "")
        summary = f"{size} · {metrics['used']}" if metrics.get("used") and not metrics.get("notes") else size
    else:
        figures = {name: value for name, value in record.summary.items() if value is not None}
        figures.pop("asserted", None)  # the message already contains this figure
        summary = ", ".join(f"{name.replace('_', ' ')} {_short(value)}" for name, value in figures.items())
    notes = [f"stopped at the cap on {name.removeprefix('max_')}" for name in metrics.get("caps_hit", ())]
    return Outcome(
        status, last.value if last is not None and good else NOTHING, summary,
        "" if status == "done" else str(error.get("message", "")), str(error.get("hint") or ""), tuple(notes), coverage_of(record),
        names=names,
    )  # fmt: skip


def _bound_names(record: ExecutionRecord) -> list[str]:
    inner = [name for nested in record.nested for name in _bound_names(nested)]
    return [*inner, *([record.variable] if record.variable is not None and record.value is not None else [])]


def _short(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = f"{value:,}" if isinstance(value, int) else str(value)
    return text if len(text) <= 60 else text[:59] + "…"


def describe_size(value: Any) -> str:
    """Return the size of a value in a few words."""
    if isinstance(value, list):
        noun, first = "item", value[0] if value else None
        if isinstance(first, dict):
            keys = first.keys()
            noun = (
                "path"
                if {"nodes", "edges"} <= keys
                else "edge"
                if {"source", "target"} <= keys
                else "node"
                if "id" in keys
                else "row"
            )
        return f"{len(value):,} {noun}{'' if len(value) == 1 else 's'}"
    if isinstance(value, dict):
        return f"an object of {len(value):,} field{'' if len(value) == 1 else 's'}"
    if isinstance(value, str):
        return f"a text of {len(value):,} character{'' if len(value) == 1 else 's'}"
    if value is None:
        return "null"
    return "a truth value" if isinstance(value, bool) else "a number"


# Expressions in a session: they may use all values whose names are valid in expressions, and ``_``, the latest value.

LATEST = "_"
"""The name of the latest value."""
_PAGER = "q"
_LONG = 10_000


def names_of(session: SessionData) -> dict[str, Any]:
    """Return the values that an expression may name."""
    found = {name: session.values.context.get(name) for name in session.values.names() if name.isidentifier()}
    if session.input is not None:
        found.setdefault("input", session.input)
    if session.last_value is not NOTHING and not isinstance(session.last_value, Table | Page):
        found.setdefault(LATEST, session.last_value)
    return found


def check_expression(piece: Piece, session: SessionData) -> tuple[Expr | None, list[Diagnostic]]:
    """Check a piece against the present values. Return its expression and its diagnostics."""
    source = piece.source
    read = parse_expr(Source(expression_of(source.text)[1], source.name))
    if read.expr is None or has_errors(read.diagnostics):
        return None, list(read.diagnostics)
    return read.expr, check_expr(read.expr, names=names_of(session))


def is_expression(text: str) -> bool:
    """Return whether a text is an expression without syntax errors."""
    read = parse_expr(text)
    return read.expr is not None and not has_errors(read.diagnostics)


async def run_expression(piece: Piece, session: SessionData) -> Outcome:
    """Evaluate an expression; ``name = expression`` binds its value."""
    source = piece.source
    expr, found = check_expression(piece, session)
    if source.text.strip() == _PAGER and _PAGER not in names_of(session):
        # q closes a pager. If q ended the session too, a user who types q once too often would lose all values.
        return misused(f"unknown value {_PAGER}", ".quit or Ctrl-D ends the session", ".quit")
    if has_errors(found) and any(d.code == "EXPR030" and len(source.text) > _LONG for d in found):
        found = [
            evolve(d, hints=(*d.hints, "to use a long text, pass it with --input FILE; it is then the value input"))
            for d in found
        ]
    if expr is None or has_errors(found):
        return refused(found, source)
    name, values = expression_of(source.text)[0], names_of(session)
    try:
        # The number of evaluation steps is bounded, but evaluation may take a fraction of a second; Ctrl-C must work meanwhile.
        value = await asyncio.to_thread(lambda: evaluate(expr, values))
    except ExprError as error:
        return refused((error.diagnostic(),), source)
    summary, names = describe_size(value) if isinstance(value, list | Mapping) else "", tuple[str, ...]()
    if name is not None:
        session.values.bind(name, value)
        summary, names = f"{describe_size(value)} in {name}", (name,)
    return Outcome(value=value, summary=summary, diagnostics=warnings(found), source=source, names=names)


# LWT steps in a session form a script, which may refer to all present values. Later pieces may refer to its results.

_FINAL_STEP_RULES = frozenset({"LWT017", "LWT031"})
"""Rules about which step is the final step. They do not apply in a session, where every step is run for its own result."""


async def run_steps(piece: Piece, session: SessionData, cancel: asyncio.Event) -> Outcome:
    """Run steps; independent steps run in parallel. The results of finished steps are bound even if other steps fail."""
    checked, found = check_steps(piece, session)
    script = checked.script
    if has_errors(found):
        return refused(found, script.source)
    steps = {step.id: step for step in script.steps}
    wanted = {reference.name for step in script.steps for reference in step_references(step)} - RESERVED
    before = session.values.before(sorted(wanted - steps.keys()))
    await session.schema()
    calls = Calls()
    session.events.subscribe(calls)
    try:
        run = await run_script(
            script, input=session.input, llm=session.models.default, models=session.models.named, all_steps=True,
            events=session.events, cancel=cancel, workshop=session.workshop(), plan=checked.plan, before=before,
            spec=session.model.spec,
        )  # fmt: skip
    except ScriptError as error:
        return refused(error.diagnostics, error.source)
    finally:
        session.events.unsubscribe(calls)
    for step_id, result in run.steps.items():
        if step_id in steps and result.is_good:
            session.values.bind_step(steps[step_id], result)
    return evolve(_step_outcome(run, tuple(steps), calls), diagnostics=warnings(found), source=script.source)


def check_steps(piece: Piece, session: SessionData) -> tuple[CheckedScript, list[Diagnostic]]:
    """Check a piece without running it. Return its checked script and its diagnostics."""
    checked = check_script(
        piece.source, input=ABSENT if session.input is None else session.input, models=tuple(session.models.named),
        given=session.values.names(), functions=(),
    )  # fmt: skip
    return checked, [each for each in checked.diagnostics if each.code not in _FINAL_STEP_RULES]


def _step_outcome(run: Run, steps: Sequence[str], calls: Calls) -> Outcome:
    done = [step for step in steps if step in run.steps and run.steps[step].is_good]
    reasons = [f"({step}): {run.steps[step].reason}" for step in steps if step in run.steps and step not in done]
    status: Status = (
        "done" if run.status == "complete" else "partial" if run.status == "failed" and done else run.status
    )
    shown = run.final if run.final in done else done[-1] if done else None
    value, parts = NOTHING, list[str]()
    if shown is not None and status != "cancelled":
        value = result_value(run.steps[shown])
        parts.append(f"{describe_size(value)} in ({shown})")
        if len(done) > 1:
            parts.append(f"{len(done)} steps done")
        if calls.calls or calls.cached:
            parts.append(calls.line())
    message = "\n".join([*reasons, *coercions(run)])
    return Outcome(status, value, " · ".join(parts), message, names=tuple(done))


# The check of a text before its run. It is used to offer fixes during typing, and by ``%kw check``.


def check(piece: Piece, session: SessionData) -> Outcome:
    """Check a piece without running it. The outcome is "refused" if the piece has errors, otherwise "done" with its warnings."""
    piece = normalize(piece, session)
    match piece.language:
        case "gasl":
            found = check_command(piece, session)[1]
        case "lwt":
            found = check_steps(piece, session)[1]
        case "expr":
            found = check_expression(piece, session)[1]
        case _:
            return Outcome()
    if has_errors(found):
        return refused(found, piece.source)
    return Outcome(diagnostics=warnings(found), source=piece.source)


# The session's data for the language service: the graph, the state's keys, the values, the models.

_FIELDS = 40


def known(session: SessionData, schema: Schema | None) -> Known:
    """Return the session's data for the language service. ``schema`` is the graph's schema; None if it is not loaded yet."""
    variables = {name: _variable(session.values.context.get(name)) for name in session.values.names()}
    if LATEST in (found := names_of(session)):
        variables[LATEST] = _variable(found[LATEST])
    return Known(
        schema=schema,
        state={each.key: StateKey(each.type, each.description or "") for each in session.state.snapshot().declared()},
        variables=variables,
        input=MISSING if session.input is None else session.input,
        models=tuple(session.models.named),
        measures=session.adapter.measures if session.adapter is not None else None,
    )


def _variable(value: Any) -> Variable:
    first = value[0] if isinstance(value, list) and value else value
    fields = tuple(str(name) for name in list(first)[:_FIELDS]) if isinstance(first, dict) else ()
    return Variable(describe_size(value), fields, isinstance(value, list))
