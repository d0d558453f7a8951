"""Explains how a text would run, without running it: how each command finds its result, and in which order steps run."""

import asyncio
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from attrs import evolve

from ...lang.catalogue.commands import BLOCK_FORM, BLOCK_WORDS, FORMS, OPTIONS, SPECS
from ...lang.catalogue.measures import MEASURES, MeasureSetting, columns_of
from ...lang.catalogue.operations import BUILTIN, FUNCTIONS
from ...lang.catalogue.rules import RULES, Rule, find_rule, nearest_rule
from ...lang.catalogue.value_functions import AGGREGATE_FUNCTIONS, VALUE_FUNCTIONS
from ...lang.diagnostic import has_errors
from ...lang.printer.expr_printer import format_expr
from ...lang.printer.gasl_printer import format_gasl
from ...lang.printer.lwt_printer import format_lwt
from ...lang.trees.gasl import Param, Statement
from ..gasl.explanation import explain
from ..gasl.records import ContextStore
from .checks import CheckedProgram, CheckedScript
from .figures import short_text
from .pieces import Piece, command_words
from .plans import plan_of
from .session_data import Outcome, Page, Table, misused
from .session_runs import check, check_command, check_expression, check_steps, needs_graph, normalize

if TYPE_CHECKING:
    from ..gasl import GASLExecutor
    from .session import Session

__all__ = [
    "RULES", "Rule", "explain_commands", "explain_piece", "find_rule", "formatted_text", "help_text", "help_topics",
    "nearest_rule", "rule_page",
]  # fmt: skip


def formatted_text(checked: CheckedScript | CheckedProgram) -> str | None:
    """Return a script or a program in its canonical format; None if it can't be parsed."""
    if isinstance(checked, CheckedScript):
        return None if has_errors(checked.script.diagnostics) else format_lwt(checked.script)
    return None if has_errors(checked.program.diagnostics) else format_gasl(checked.program)


async def explain_commands(
    statements: Sequence[Statement],
    executor: "GASLExecutor",
    cancel: asyncio.Event | None = None,
    *,
    with_variables: bool = True,
    parameters: Mapping[str, Any] = MappingProxyType({}),
) -> list[dict[str, Any]]:
    """Return an explanation of each command, in order; see ``runtime.gasl.explanation.explain``.

    Setting ``cancel`` ends the list early. ``parameters`` maps names of parameters to values. The commands do not run, so a
    variable that one of them binds has no value for later commands.
    """
    context = executor.session.context.copy() if with_variables else ContextStore()
    session = evolve(executor.session, context=context, label="")
    rows = []
    for statement in statements:
        if cancel is not None and cancel.is_set():
            break
        command = statement.command
        found = (await explain(command, session)).value
        if found is not None:
            rows.append(dict(found.value))
        if isinstance(command, Param):
            name = command.name.text
            if name in parameters or command.default is not None:
                context.set(name, parameters.get(name, command.default and command.default.value))
        elif into := getattr(command, "into", None):
            context.forget(into.text)
    return rows


async def explain_piece(piece: Piece, session: "Session") -> Outcome:
    """Return how a piece would run in a session, or the piece's diagnostics if it has errors."""
    piece = normalize(piece, session)
    fault = check(piece, session)
    if not fault.is_good:
        return evolve(fault, fix="" if fault.fixed_text is None else f".explain {fault.fixed_text}")
    match piece.language:
        case "gasl":
            if session.gasl is None:
                return needs_graph()
            await session.schema()
            statements = check_command(piece, session)[0].statements
            return Outcome(value=next(iter(await explain_commands(statements[:1], session.gasl)), None))
        case "lwt":
            checked = check_steps(piece, session)[0]
            plan = plan_of(checked)
            texts = {step.id: checked.source.slice(step.span) for step in checked.script.steps}
            steps = sorted([] if plan is None else plan.document["steps"], key=lambda step: step["layer"] or 0)
            rows = [
                [each["id"], each["operation"], each["layer"], ", ".join(each["refers_to"]),
                 short_text(" ".join(texts[each["id"]].split()))]
                for each in steps
            ]  # fmt: skip
            columns = ("step", "operation", "layer", "waits for", "text")
            table = Table(columns, rows, frozenset({"step", "operation", "layer"}))
            return Outcome(value=table, summary="the steps of a layer run in parallel")
        case "expr":
            expr = check_expression(piece, session)[0]
            written = "" if expr is None else format_expr(expr)
            return Outcome(value=Page(f"{written}\n"), summary="an expression: evaluated here, without a model call")
        case _:
            return misused(".explain takes a command, a step, an expression or a code")


def rule_page(rule: Rule) -> Outcome:
    """Return the description of a rule."""
    lines = [f"{rule.code} {rule.name}: {rule.severity}", "", rule.summary, rule.why]
    for title, text in (("Reported:", rule.bad), ("Right:", rule.good)):
        if text:
            lines += ["", title, *(f"    {line}" for line in text.splitlines())]
    return Outcome(value=Page("\n".join(lines) + "\n"))


def help_topics() -> dict[str, str]:
    """Return the help topics, each with a short description: words of GASL, algorithms, functions, operations, lists, rules."""
    topics = {word: FORMS.get(word, "block") for word in sorted(command_words())}
    topics |= {name: "operation" for name in BUILTIN}
    topics |= {word: text for word, text in OPTIONS.items() if word not in topics}
    topics |= {name: "algorithm of MEASURE" for name in MEASURES}
    functions = (*FUNCTIONS.values(), *VALUE_FUNCTIONS.values(), *AGGREGATE_FUNCTIONS.values())
    topics |= {function.name: function.signature for function in functions}
    topics |= {name: "list" for name in _LISTS}
    return {**topics, **{code: rule.name for code, rule in RULES.items()}}


# Help on the words of GASL and on functions, from the catalogue.

_WIDTH = 79
_LISTS: Mapping[str, Iterable[str]] = {
    "algorithms": MEASURES,
    "aggregates": AGGREGATE_FUNCTIONS,
    "functions": VALUE_FUNCTIONS,
}
"""Topics whose help is a list of names."""
_LIST_OF = {"MEASURE": "algorithms", "COMPUTE": "aggregates", "AGGREGATE": "aggregates", "FIELDS": "functions"}
"""Maps a word of GASL to the list of the names that may follow it."""


def help_text(topic: str) -> str:
    """Return help on a word of GASL, an algorithm, a function or a list of names; "" for any other word."""
    return "\n".join(part for part in _help_parts(topic.upper(), topic.lower()) if part)


def _help_parts(word: str, name: str) -> Iterator[str]:
    if word in FORMS:
        yield "".join(f"{_wrapped(form)}\n" for form in FORMS[word].split(", or "))
    if word in BLOCK_WORDS:
        yield f"{BLOCK_FORM}\n"
    if word in OPTIONS:
        yield _help_on_option(word)
    if name in MEASURES:
        yield _help_on_algorithm(name)
    if name in AGGREGATE_FUNCTIONS:
        yield _page(AGGREGATE_FUNCTIONS[name].signature, AGGREGATE_FUNCTIONS[name].doc, "A function of COMPUTE.")
    value, of_expressions = VALUE_FUNCTIONS.get(name), FUNCTIONS.get(name)
    is_shared = value is not None and of_expressions is not None and value.doc == of_expressions.doc
    if value is not None:
        yield _page(value.signature, value.doc, f"A function of values{' and of expressions' * is_shared}.")
    if of_expressions is not None and not is_shared:
        yield _page(of_expressions.signature, of_expressions.doc, "A function of expressions.")
    if listed := name if name in _LISTS else _LIST_OF.get(word, ""):
        yield _page(listed, ", ".join(_LISTS[listed]), ".help NAME explains one of them.")


def _help_on_option(word: str) -> str:
    """Return the syntax of the commands that contain a word, followed by its description.

    For a word of conditions, no syntax is shown.
    """
    forms = (form for spec in SPECS for form in (spec.form, spec.also) if form and form.split()[0] != word)
    around = [_wrapped(form) for form in forms if re.search(rf"\b{word}\b", form, re.IGNORECASE)]
    return "\n".join(around or [word]) + "\n" + _described(f"{word}: {OPTIONS[word]}" if around else OPTIONS[word])


def _help_on_algorithm(name: str) -> str:
    """Return how an algorithm is called, its columns, its settings and the meaning of its weight."""
    spec = MEASURES[name]
    settings = (
        f"({', '.join(f'{each} = {_default(setting)}' for each, setting in spec.settings.items())})"
        if spec.settings
        else ""
    )
    meaning = {
        "strength": "The weight is a strength: more is closer.",
        "distance": "The weight is a distance: more is farther.",
    }
    told = [f"Columns: {', '.join(columns_of(name) or ())}."]
    told += [f"{each} is {_range(setting)}." for each, setting in spec.settings.items()]
    told.append(meaning.get(spec.weight, "It takes no weight."))
    told += ["Without BY, it uses the numeric edge attribute weight."] * spec.weighted
    told += [f"It needs a directed graph; for undirected graphs, use {spec.instead}."] * spec.directed
    return _page(f"MEASURE name|graph USING {name}{settings}{' [BY value]' if spec.weight else ''} AS name", *told)


def _default(setting: MeasureSetting) -> str:
    return f'"{setting.default}"' if setting.words else str(setting.default)


def _range(setting: MeasureSetting) -> str:
    if setting.words:
        return " or ".join(f'"{word}"' for word in setting.words)
    return f"a number from {setting.minimum:g} to {setting.maximum:g}"


def _page(head: str, *told: str) -> str:
    return f"{_wrapped(head)}\n" + "".join(map(_described, told))


def _wrapped(form: str) -> str:
    return textwrap.fill(form, _WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _described(text: str) -> str:
    return textwrap.indent(textwrap.fill(text, _WIDTH - 4), "    ") + "\n"
