"""The read-only commands ``.schema .vars .state .log .diff``."""

import re
from collections.abc import Mapping
from typing import Any

from attrs import evolve

from .....adapters.state import StateError
from .....lang.catalogue.rules import RULES, Rule, find_rule
from .....lang.catalogue.schema import Attribute, Schema
from .....lang.dependencies import layers, step_dependencies
from .....lang.printer.expr_printer import format_expr
from ....gasl.dispatcher import explain
from ...figures import (
    ATTRIBUTE_COLUMNS,
    DIFFERENCE_COLUMNS,
    HISTORY_COLUMNS,
    KEY_COLUMNS,
    attribute_rows,
    cut_value,
    difference_rows,
    history_rows,
    key_rows,
    short_text,
)
from .. import runners
from ..languages import LISTED
from ..outcome import Outcome, Page, Table, misused
from ..reader import Piece, language_of
from ..repl_workspace import Desk
from ..runners import check, counted, meant
from .dot import Asked, Dot

_LOGGED = 20
_COUNTS = frozenset({"count", "different", "size"})


async def _schema(asked: Asked) -> Outcome:
    schema = await asked.desk.schema()
    if schema is None:
        return misused("this session has no graph", "knotwork repl GRAPH opens one")
    if asked.argument:
        return _attribute(asked, asked.argument.strip("`"), schema)
    rows = [
        [of, *row]
        for of, attributes in (("node", schema.node_attributes), ("edge", schema.edge_attributes))
        for row in attribute_rows(attributes)
    ]
    return Outcome(
        value=Table(("of", *ATTRIBUTE_COLUMNS), rows, frozenset({"of", "attribute"}), counts=_COUNTS),
        summary=_sizes(schema, asked.desk),
    )


def _sizes(schema: Schema, desk: Desk) -> str:
    parts = [
        desk.graph, f"{schema.nodes:,} nodes", f"{schema.edges:,} edges", "directed" if schema.directed else "undirected",
    ]  # fmt: skip
    for attribute, kinds in ((schema.label_attribute, schema.labels), (schema.relation_attribute, schema.relations)):
        if attribute is not None:
            shown = ", ".join(f"{cut_value(kind)} ({count:,})" for kind, count in list(kinds.items())[:LISTED])
            parts.append(f"{attribute}: {shown}{', ...' if len(kinds) > LISTED else ''}")
    return " · ".join(part for part in parts if part)


def _attribute(asked: Asked, name: str, schema: Schema) -> Outcome:
    kinds: tuple[tuple[str, Mapping[str, Attribute]], ...] = (
        ("node", schema.node_attributes), ("edge", schema.edge_attributes),
    )  # fmt: skip
    found = [(of, attributes[name]) for of, attributes in kinds if name in attributes]
    if not found:
        names = list(dict.fromkeys([*schema.node_attributes, *schema.edge_attributes]))
        return asked.missing(f"no node and no edge has an attribute {name}", name, names)
    rows: list[list[Any]] = [[of, value, count] for of, attribute in found for value, count in attribute.values]
    told = [f"on {a.count:,} {of}s, {', '.join(a.types) or 'of unknown type'}" for of, a in found]
    return Outcome(
        value=Table(("of", "value", "count"), rows, frozenset({"of", "count"})), summary=f"{name}: {' · '.join(told)}"
    )


async def _vars(asked: Asked) -> Outcome:
    values = asked.desk.values
    name = asked.argument.strip("`").removeprefix("(").removesuffix(")")
    if name:
        bound = values.context.value(name)
        if bound is None:
            return asked.missing(f"there is no value {name}", name, values.names())
        return Outcome(value=bound.value, summary=f"{counted(bound.value)} in {name}")
    rows = []
    for each in values.names():
        value = values.context.get(each)
        rows.append([each, "step" if values.step(each) else "variable", counted(value), ", ".join(_fields(value))])
    if not rows:
        return Outcome(summary="no value has a name yet")
    return Outcome(value=Table(("name", "from", "holds", "fields"), rows, frozenset({"name", "from", "holds"})))


def _fields(value: Any) -> list[str]:
    first = value[0] if isinstance(value, list) and value else value
    return [str(name) for name in list(first)[:LISTED]] if isinstance(first, dict) else []


async def _state(asked: Asked) -> Outcome:
    store = asked.desk.state
    state = store.snapshot()
    declared = state.declared()
    steps = len(store.history)
    summary = f"{steps:,} step{'' if steps == 1 else 's'} · state {store.hash[:12]}"
    if not asked.argument:
        if not declared:
            return Outcome(summary=f"no key is declared yet · {summary}")
        return Outcome(
            value=Table(KEY_COLUMNS, key_rows(declared), frozenset({"key", "type"}), counts=_COUNTS), summary=summary
        )
    key, *rest = asked.words
    if state.kind(key) is None:
        if not declared:
            return misused(f"the state has no key {key}", "it has none yet")
        return asked.missing(f"the state has no key {key}", key, [each.key for each in declared])
    if rest and rest != ["evidence"]:
        return misused(f".state takes a key, and evidence behind it, not {' '.join(rest)}", f".state {key} evidence")
    value = state.get(key)
    if rest:
        return Outcome(value=_with_evidence(value, state.evidence(key)), summary=f"{counted(value)} in {key}")
    return Outcome(value=value, summary=f"{counted(value)} in {key}")


def _with_evidence(value: Any, evidence: Any) -> Any:
    if isinstance(value, list) and isinstance(evidence, list):
        rows = [[item, evidence[index] if index < len(evidence) else []] for index, item in enumerate(value)]
        return Table(("item", "evidence"), rows)
    return {"value": value, "evidence": evidence}


async def _log(asked: Asked) -> Outcome:
    history = asked.desk.state.history
    most = _LOGGED
    if asked.argument:
        if not asked.argument.isdecimal() or not int(asked.argument):
            return misused(f".log takes how many steps to list, not {asked.argument}", ".log 50")
        most = int(asked.argument)
    entries = list(history[max(0, len(history) - most) :])
    if not entries:
        return Outcome(summary="nothing has happened yet")
    earlier = len(history) - len(entries)
    told = f"{earlier:,} earlier step{'' if earlier == 1 else 's'}; .log {len(history)} lists all" if earlier else ""
    return Outcome(
        value=Table(HISTORY_COLUMNS, history_rows(entries), frozenset({"step", "status", "state"}), counts=_COUNTS),
        summary=told,
    )


async def _diff(asked: Asked) -> Outcome:
    desk, words = asked.desk, asked.words
    if len(words) > 2:
        return misused(".diff takes at most two hashes", ".log has the hashes")
    moments = desk.past.moments
    if words:
        before: Any = words[0]
    else:
        changed = next((moment for moment in reversed(moments) if moment.hash != desk.state.hash), None)
        if changed is None:
            return Outcome(
                summary="nothing has changed the state in this session; .diff HASH compares with an earlier one"
            )
        before = changed.state
    try:
        found = desk.state.diff(before, words[1] if len(words) > 1 else desk.state.snapshot())
    except StateError as error:
        return misused(error.message, error.hint or ".log has the hashes")
    if not found:
        return Outcome(summary="the same")
    return Outcome(value=Table(DIFFERENCE_COLUMNS, difference_rows(found), frozenset({"key", "difference"})))


SCHEMA = Dot(
    "schema", ".schema [ATTRIBUTE]", "what the graph has; values of one attribute", _schema, "attribute",
)  # fmt: skip
VARS = Dot("vars", ".vars [NAME]", "values by name; or what one holds", _vars, "value")
STATE = Dot(
    "state", ".state [KEY [evidence]]", "the state's keys; or what one holds", _state, "key",
)  # fmt: skip
LOG = Dot("log", ".log [N]", "the latest steps of the state's history", _log)
DIFF = Dot(
    "diff", ".diff [HASH [HASH]]", "what the latest change did; or since HASH", _diff, "hash",
)  # fmt: skip


# ``.explain``: how a text would run, or the rule of a diagnostic.


async def _explain(asked: Asked) -> Outcome:
    text, desk = asked.argument.strip(), asked.desk
    if not text:
        fault = desk.last_fault
        if fault is None:
            return misused(
                ".explain takes a command, a step, an expression or a code",
                ".explain FIND nodes WHERE degree > 20 AS hubs",
            )
        return of_rule(RULES[fault.diagnostics[0].code]) if fault.diagnostics[0].code in RULES else Outcome()
    rule = find_rule(text)
    if rule is not None:
        return of_rule(rule)
    if re.fullmatch(r"[A-Za-z]{2,5}\d+", text):
        return misused(f"there is no rule {text}", "the code of a message, such as GASL001")
    piece = meant(Piece(text, language_of(text)), desk)
    fault = check(piece, desk)
    if not fault.is_good:
        return evolve(fault, fix="" if fault.mended is None else f".explain {fault.mended}")
    match piece.language:
        case "gasl":
            return await _explained_command(piece, asked)
        case "lwt":
            return _explained_steps(piece, asked)
        case "expr":
            expr = runners.check_expression(piece, desk)[0]
            written = "" if expr is None else format_expr(expr)
            return Outcome(value=Page(f"{written}\n"), summary="an expression: evaluated here, without a call")
        case _:
            return misused(".explain takes a command, a step, an expression or a code")


async def _explained_command(piece: Piece, asked: Asked) -> Outcome:
    executor = asked.desk.executor
    if executor is None:
        return runners.needs_graph()
    await asked.desk.schema()
    program = runners.check_command(piece, asked.desk)[0]
    result = await explain(program.statements[0].command, executor.session)
    return Outcome(value=None if result.value is None else result.value.value)


def _explained_steps(piece: Piece, asked: Asked) -> Outcome:
    script, source = runners.check_steps(piece, asked.desk)[0], piece.source
    graph = step_dependencies(script)
    known = {step.id: step for step in script.steps}
    rows = [
        [step, known[step].call.operation, number, ", ".join(graph[step]), _text_of(source.slice(known[step].span))]
        for number, layer in enumerate(layers(graph), 1)
        for step in layer
    ]
    columns = ("step", "operation", "layer", "waits for", "text")
    return Outcome(
        value=Table(columns, rows, frozenset({"step", "operation", "layer"})),
        summary="steps of one layer run side by side",
    )


def _text_of(text: str) -> str:
    return short_text(" ".join(text.split()))


def of_rule(rule: Rule) -> Outcome:
    """Return the description of a rule."""
    lines = [f"{rule.code} {rule.name}: {rule.severity}", "", rule.summary, rule.why]
    for title, text in (("Reported:", rule.bad), ("Right:", rule.good)):
        if text:
            lines += ["", title, *(f"    {line}" for line in text.splitlines())]
    return Outcome(value=Page("\n".join(lines) + "\n"))


EXPLAIN = Dot(
    "explain", ".explain [COMMAND|CODE]", "how a command would run; what an error means", _explain,
    "command",
)  # fmt: skip
