"""The read-only commands ``.schema .vars .state .log .diff .explain``."""

import re
from typing import Any

from ....api.explain import RULES, explain_piece, find_rule, rule_page
from ....api.figures import (
    ATTRIBUTE_COLUMNS,
    DIFFERENCE_COLUMNS,
    HISTORY_COLUMNS,
    KEY_COLUMNS,
    attribute_rows,
    cut_value,
    difference_rows,
    history_rows,
    key_rows,
)
from ....api.pieces import Piece, language_of
from ....api.session_data import Outcome, Table, misused
from ....api.session_runs import describe_size
from ....api.workspace import Schema, StateError
from .dot import DotCommand, DotRequest

LISTED = 8
"""Maximum number of names listed in one line."""
_LOGGED = 20
_COUNTS = frozenset({"count", "different", "size"})


async def _schema(request: DotRequest) -> Outcome:
    schema = await request.session.schema()
    if schema is None:
        return misused("the session has no graph", "knotwork repl GRAPH opens one")
    if request.argument:
        return _attribute(request, request.argument.strip("`"), schema)
    kinds = (("node", schema.node_attributes), ("edge", schema.edge_attributes))
    rows = [[of, *row] for of, attributes in kinds for row in attribute_rows(attributes)]
    parts = [
        request.session.graph, f"{schema.nodes:,} nodes", f"{schema.edges:,} edges",
        "directed" if schema.directed else "undirected",
    ]  # fmt: skip
    for attribute, counts in ((schema.label_attribute, schema.labels), (schema.relation_attribute, schema.relations)):
        if attribute is not None:
            shown = ", ".join(f"{cut_value(kind)} ({count:,})" for kind, count in list(counts.items())[:LISTED])
            parts.append(f"{attribute}: {shown}{', ...' if len(counts) > LISTED else ''}")
    table = Table(("of", *ATTRIBUTE_COLUMNS), rows, frozenset({"of", "attribute"}), counts=_COUNTS)
    return Outcome(value=table, summary=" · ".join(part for part in parts if part))


def _attribute(request: DotRequest, name: str, schema: Schema) -> Outcome:
    kinds = (("node", schema.node_attributes), ("edge", schema.edge_attributes))
    found = [(of, attributes[name]) for of, attributes in kinds if name in attributes]
    if not found:
        names = list(dict.fromkeys([*schema.node_attributes, *schema.edge_attributes]))
        return request.missing(f"no node or edge has the attribute {name}", name, names)
    rows: list[list[Any]] = [[of, value, count] for of, attribute in found for value, count in attribute.values]
    parts = [f"on {a.count:,} {of}s, {', '.join(a.types) or 'of unknown type'}" for of, a in found]
    table = Table(("of", "value", "count"), rows, frozenset({"of", "count"}))
    return Outcome(value=table, summary=f"{name}: {' · '.join(parts)}")


async def _vars(request: DotRequest) -> Outcome:
    values = request.session.values
    name = request.argument.strip("`").removeprefix("(").removesuffix(")")
    if name:
        bound = values.context.value(name)
        if bound is None:
            return request.missing(f"unknown value {name}", name, values.names())
        return Outcome(value=bound.value, summary=f"{describe_size(bound.value)} in {name}")
    rows = []
    for each in values.names():
        value = values.context.get(each)
        first = value[0] if isinstance(value, list) and value else value
        fields = ", ".join(str(name) for name in list(first)[:LISTED]) if isinstance(first, dict) else ""
        rows.append([each, "step" if values.step(each) else "variable", describe_size(value), fields])
    if not rows:
        return Outcome(summary="no values yet")
    return Outcome(value=Table(("name", "from", "holds", "fields"), rows, frozenset({"name", "from", "holds"})))


async def _state(request: DotRequest) -> Outcome:
    store = request.session.state
    state = store.snapshot()
    declared = state.declared()
    if not request.argument:
        steps = len(store.history)
        summary = f"{steps:,} step{'' if steps == 1 else 's'} · state {store.hash[:12]}"
        if not declared:
            return Outcome(summary=f"no keys declared yet · {summary}")
        table = Table(KEY_COLUMNS, key_rows(declared), frozenset({"key", "type"}), counts=_COUNTS)
        return Outcome(value=table, summary=summary)
    key, *rest = request.words
    if state.kind(key) is None:
        if not declared:
            return misused(f"the state has no key {key}", "no keys are declared yet")
        return request.missing(f"the state has no key {key}", key, [each.key for each in declared])
    if rest and rest != ["evidence"]:
        return misused(f".state takes a key and the word evidence, not {' '.join(rest)}", f".state {key} evidence")
    value = state.get(key)
    summary = f"{describe_size(value)} in {key}"
    if not rest:
        return Outcome(value=value, summary=summary)
    evidence = state.evidence(key)
    if isinstance(value, list) and isinstance(evidence, list):
        rows = [[item, evidence[index] if index < len(evidence) else []] for index, item in enumerate(value)]
        return Outcome(value=Table(("item", "evidence"), rows), summary=summary)
    return Outcome(value={"value": value, "evidence": evidence}, summary=summary)


async def _log(request: DotRequest) -> Outcome:
    history = request.session.state.history
    most = _LOGGED
    if request.argument:
        if not request.argument.isdecimal() or not int(request.argument):
            return misused(f".log takes a number of steps, not {request.argument}", ".log 50")
        most = int(request.argument)
    entries = list(history[max(0, len(history) - most) :])
    if not entries:
        return Outcome(summary="the history is empty")
    earlier = len(history) - len(entries)
    summary = f"{earlier:,} earlier step{'' if earlier == 1 else 's'}; .log {len(history)} lists all" if earlier else ""
    table = Table(HISTORY_COLUMNS, history_rows(entries), frozenset({"step", "status", "state"}), counts=_COUNTS)
    return Outcome(value=table, summary=summary)


async def _diff(request: DotRequest) -> Outcome:
    session, words = request.session, request.words
    if len(words) > 2:
        return misused(".diff takes at most two hashes", ".log lists the hashes")
    if words:
        before: Any = words[0]
    else:
        before = next((each.state for each in reversed(session.moments) if each.state.hash != session.state.hash), None)
        if before is None:
            return Outcome(summary="this session has not changed the state; .diff HASH compares with an earlier state")
    try:
        found = session.state.diff(before, words[1] if len(words) > 1 else session.state.snapshot())
    except StateError as error:
        return misused(error.message, error.hint or ".log lists the hashes")
    if not found:
        return Outcome(summary="no differences")
    return Outcome(value=Table(DIFFERENCE_COLUMNS, difference_rows(found), frozenset({"key", "difference"})))


async def _explain(request: DotRequest) -> Outcome:
    """Explain how a text would run, or what a diagnostic's code means."""
    text, session = request.argument.strip(), request.session
    if not text:
        if session.last_fault is None:
            message = ".explain takes a command, a step, an expression or a rule code"
            return misused(message, ".explain FIND nodes WHERE degree > 20 AS hubs")
        rule = RULES.get(session.last_fault.diagnostics[0].code)
        return Outcome() if rule is None else rule_page(rule)
    if (rule := find_rule(text)) is not None:
        return rule_page(rule)
    if re.fullmatch(r"[A-Za-z]{2,5}\d+", text):
        return misused(f"unknown rule {text}", "each message contains a code, for example GASL001")
    return await explain_piece(Piece(text, language_of(text)), session)


SCHEMA = DotCommand(
    "schema", ".schema [ATTRIBUTE]", "the graph's attributes; or one attribute's values", _schema, "attribute"
)
VARS = DotCommand("vars", ".vars [NAME]", "all values by name; or the value of one name", _vars, "value")
STATE = DotCommand("state", ".state [KEY [evidence]]", "the state's keys; or the value of one key", _state, "key")
LOG = DotCommand("log", ".log [N]", "the latest steps of the state's history", _log)
DIFF = DotCommand("diff", ".diff [HASH [HASH]]", "the state's latest change; or all changes since HASH", _diff, "hash")
EXPLAIN = DotCommand(
    "explain", ".explain [COMMAND|CODE]", "how a command would run; what an error means", _explain, "command"
)
