"""The operation GASL, which runs a program on the run's graph and state as a step of a script."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen

from ....adapters.llm import Usage
from ....lang.catalogue.operations import BUILTIN
from ....lang.embedded_code import EmbeddedCode, embedded_program
from ....lang.parse.gasl import parse_gasl
from ....lang.source import Source
from ....lang.trees.gasl import Param, Statement
from ....lang.trees.lwt import Call, Reference, Template, references
from ...gasl import ParseError
from ...gasl.records import ContextStore, ExecutionRecord, Value, coverage, last_with_value
from ...results import Failed, Outcome, StepFailed, plain
from ...templates import Scope, resolve, text_of
from ..files_beside import invalid, read_beside
from .operation import Context, read_options

_GASL = BUILTIN["GASL"]
_REASONS = 3
"""Maximum number of stored reasons why a value is incomplete."""


@frozen
class _Program:
    """The text of a program, and the values of its variables."""

    text: str
    variables: dict[str, Any]
    in_script_words: Callable[[str], str] = str
    """In a message about the program, replaces the generated variables by the references in the script."""
    incomplete: Mapping[str, tuple[str, ...]] = field(factory=dict)
    """Maps each variable with an incomplete value to the reasons."""
    inside: tuple[str, ...] = ()
    """One message for each step whose incomplete output is inserted into a string or a name in the text."""

    def commands(self) -> list[str]:
        """Return the commands of the plan. They are in a TRY block, so that the state gets either the changes of all commands or no change.

        Parameters come before the block, because they must come before the first command.
        """
        head = 0
        for item in parse_gasl(Source(self.text)).items:
            if not (isinstance(item, Statement) and isinstance(item.command, Param)):
                break
            head = item.span.end
        parameters = [self.text[:head]] if head else []
        return [*parameters, "TRY", self.text[head:], "END"]

    def digest(self) -> str:
        """Return a hash of the text and the variables."""
        from blake3 import blake3

        return blake3(json.dumps(["GASL", self.text, self.variables], sort_keys=True).encode()).hexdigest(length=16)

    def context(self) -> ContextStore:
        """Return the initial variables."""
        made = ContextStore()
        for name, value in self.variables.items():
            made.set(name, Value(value, incomplete=self.incomplete.get(name, ())))
        return made


async def run_gasl(call: Call, context: Context) -> Outcome:
    """Run the program as one transaction; the output is the value of the last command that has a value."""
    shop = context.workshop
    if shop is None:
        hint = "--graph FILE on the command line, graph= in Python"
        raise invalid("GASL needs a graph, but the run has none", call.span, hint)
    program = _program(call, context)
    digest, record = program.digest(), context.caller.record
    if record is not None and (earlier := record.recall(context.step, None, digest)) is not None:
        return earlier.again(digest)
    async with shop.turn:
        # If a run was killed after the state's commit but before the step was saved, this code runs again. The change is then not
        # repeated; the values of the commands are computed again on a copy of the state.
        plan_id = _plan_id(shop.run_id, context.step)
        again = bool(shop.run_id) and plan_id in shop.committed()
        executor = shop.open(shop.state.fork() if again else shop.state, program.context())
        try:
            plan = {
                "plan_id": plan_id,
                "why": f"step ({context.step}) of a script",
                "commands": program.commands(),
                "config": {"continue_on_empty": True},
            }
            records = await executor.arun_plan(plan)
        except ParseError as error:
            raise StepFailed(_parse_failure(error, call, program.in_script_words)) from None
        except asyncio.CancelledError:
            usage, cost, calls = _spent(_flat(executor.command_history))
            context.caller.lost.add(calls, usage, cost)  # the step has no result
            raise
    made = _outcome(records, call, program.in_script_words)
    for ran in _flat(records):
        for note in coverage(ran.metrics):
            context.scope.warn(context.step, program.in_script_words(f"{ran.command}: {note}"))
    inside = tuple(Failed("partial", message, span=call.span) for message in program.inside)
    return evolve(made, input_hash=digest, failed_items=(*made.failed_items, *inside))


def _plan_id(run_id: str, step: str) -> str:
    """Return a plan id that is short enough for the history, which cuts long ids."""
    from blake3 import blake3

    name = step if len(step) <= 100 else f"{step[:60]}~{blake3(step.encode()).hexdigest(length=16)}"
    return f"{run_id}/{name}"


def _program(call: Call, context: Context) -> _Program:
    scope, options = context.scope, read_options(call, _GASL)
    if "file" in options:
        if call.arguments:
            raise invalid("GASL takes its commands or file=, not both", call.span)
        text = read_beside(options["file"], context.folder, ".gasl", call, "write the commands in the call")
        return _Program(text, {})
    if len(call.arguments) != 1 or not isinstance(template := call.arguments[0], Template):
        raise invalid("GASL takes commands", call.span, f"for example {_GASL.example}")
    inner: EmbeddedCode = embedded_program(template)

    inside: dict[str, str] = {}

    def reference_text(reference: Reference) -> str:
        if reasons := _incomplete_reasons(reference.name, scope):
            inside[reference.name] = f"depends on {{({reference.name})}}, which is incomplete: {'; '.join(reasons)}"
        return text_of(resolve(reference, scope), reference)

    values = {name: plain(resolve(reference, scope)) for name, reference in inner.variables}
    marks = {
        name: reasons for name, reference in inner.variables if (reasons := _incomplete_reasons(reference.name, scope))
    }
    text = inner.text(reference_text)
    return _Program(text, values, inner.with_references, marks, tuple(inside.values()))


def _incomplete_reasons(step: str, scope: Scope) -> tuple[str, ...]:
    """Return the reasons why a step's output is incomplete: its own, or else those of the steps to which it refers."""
    found: dict[str, None] = {}
    pending, seen = [step], {step}
    while pending:
        name = pending.pop()
        result = scope.results.get(name)
        if result is not None and result.failed_items:
            found.update(dict.fromkeys(each.message for each in result.failed_items))
        elif result is not None and name in scope.steps:
            inputs = {each.name for each in references(scope.steps[name])} - seen
            seen |= inputs
            pending += sorted(inputs)
    reasons = tuple(found)
    more = (f"{len(reasons) - _REASONS:,} more",) if len(reasons) > _REASONS else ()
    return (*reasons[:_REASONS], *more)


def _parse_failure(error: ParseError, call: Call, in_script_words: Callable[[str], str]) -> Failed:
    first = next((d for d in error.diagnostics if d.severity == "error"), None)
    if first is None:
        return Failed("operation", in_script_words(error.message), in_script_words(error.hint), call.span)
    return Failed(
        "operation",
        in_script_words(f"{first.message} ({first.code})"),
        in_script_words("; ".join(first.hints)),
        call.span,
    )


def _spent(flat: Sequence[ExecutionRecord]) -> tuple[Usage, float | None, int]:
    """Return the tokens, the cost and the number of the model calls of records."""
    tokens = [record.metrics.get("tokens") or {} for record in flat]
    usage = Usage(
        sum(t.get("prompt", 0) for t in tokens), sum(t.get("completion", 0) for t in tokens), any("estimated" in t for t in tokens)
    )  # fmt: skip
    costs = [cost for record in flat if (cost := record.metrics.get("cost")) is not None]
    return usage, sum(costs) if costs else None, sum(int(record.metrics.get("calls") or 0) for record in flat)


def _outcome(records: Sequence[ExecutionRecord], call: Call, in_script_words: Callable[[str], str]) -> Outcome:
    flat = list(_flat(records))
    usage, cost, calls = _spent(flat)
    failed = next((record for record in flat if not record.ok), None)
    if records and not records[-1].ok:
        why = failed or records[-1]
        error = why.error or {}
        message = f"{why.command}: {error.get('message', why.status)}" if why.command else str(error.get("message"))
        reason = Failed(why.status, in_script_words(message), in_script_words(str(error.get("hint") or "")), call.span)
        raise StepFailed(reason, usage=usage, cost=cost, calls=calls)
    last = last_with_value(records)
    value = None if last is None else last.value
    missing = tuple(
        Failed(
            "partial",
            in_script_words(f"{record.command}: {(record.error or {}).get('message', 'only a part of it')}"),
            span=call.span,
        )
        for record in flat
        if record.status == "partial" and not record.nested
    )
    return Outcome(text_of(value), value, usage, cost, calls, failed_items=missing)


def _flat(records: Sequence[ExecutionRecord]) -> Sequence[ExecutionRecord]:
    found: list[ExecutionRecord] = []
    stack = list(reversed(records))
    while stack:
        record = stack.pop()
        found.append(record)
        stack.extend(reversed(record.nested))
    return found
