"""Reads a plan in any form and checks its commands against the graph, the state and the host's ceiling; also runs SET."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import attrs
from attrs import evolve, field, frozen

from ...lang.catalogue.commands import SETTINGS, fault_of
from ...lang.diagnostic import Diagnostic, has_errors, nearest
from ...lang.linter.gasl import check, check_plan
from ...lang.linter.gasl.graph import DEGREES
from ...lang.source import Source
from ...lang.trees.gasl import Program, SetCommand, Statement
from .records import ExecutionResult, Session
from .relation import FoundRows
from .surroundings import TOO_DEEP, Surroundings

if TYPE_CHECKING:
    from ...lang.documents.plan import Plan

from .errors import PlanError

# ``SET``: changes one setting of the running plan, within its range and never above the host's ceiling.

_CAPS = "adapter.caps."


def ceiling_of(session: Session) -> dict[str, float]:
    """Return the maximum that the host allows for each key of SET, for the check of a program."""
    return {f"{_CAPS}{name}": value for name, value in attrs.asdict(session.ceiling).items()}


def in_force(session: Session) -> dict[str, Any]:
    """Return the settings that a replay must restore first: caps, ceiling, options and model names."""
    return {
        "caps": attrs.asdict(session.caps),
        "ceiling": attrs.asdict(session.ceiling),
        "options": dict(session.options),
        "models": sorted(session.models),
        "llm": session.llm is not None,
    }


def apply(command: SetCommand, session: Session) -> ExecutionResult:
    """Change one setting until the plan ends."""
    key, value = command.key.text, command.value
    setting = SETTINGS.get(key)
    if setting is None:
        like = nearest(key, SETTINGS)
        return _setting_error(f"unknown setting {key}", f"did you mean {like}?" if like else _available(SETTINGS))
    if (fault := fault_of(setting, value)) is not None:
        return _setting_error(f"{key} {fault}")
    if key.startswith(_CAPS):
        return _cap(key, value, session)
    if key == "llm.model" and value not in session.models:
        like = nearest(str(value), session.models)
        hint = f"did you mean {like}?" if like else _available(session.models) or "no models can be chosen by name"
        return _setting_error(f"unknown model {value}", hint)
    if key == "llm.max_concurrency":
        before: Any = session.max_concurrency
        session.max_concurrency = int(value or 1)
    else:
        name = key.removeprefix("llm.")
        before = session.options.get(name)
        session.options[name] = value
    return _setting_result(key, value, before)


def _cap(key: str, value: Any, session: Session) -> ExecutionResult:
    name = key.removeprefix(_CAPS)
    most = getattr(session.ceiling, name)
    if value > most:
        return _setting_error(f"{key} can be at most {most:,} here, not {value:,}", f"SET {key} = {most}")
    before = getattr(session.caps, name)
    change: dict[str, Any] = {name: float(value) if isinstance(before, float) else value}
    session.caps = attrs.evolve(session.caps, **change)
    session.chosen |= {name}
    return _setting_result(key, value, before)


def _available(names: Mapping[str, Any]) -> str:
    return f"available: {', '.join(sorted(names))}" if names else ""


def _setting_result(key: str, value: Any, before: Any) -> ExecutionResult:
    return ExecutionResult(summary={"set": key, "value": value} | ({} if before is None else {"before": before}))


def _setting_error(message: str, hint: str = "") -> ExecutionResult:
    return ExecutionResult("error", message=message, hint=hint)


@frozen
class Ready:
    """A plan that was read and checked. ``texts`` are the exact texts of the plan's statements, ``remarks`` the warnings of the check.

    A program continues after a command that finds nothing; a plan object continues only if its config says so.
    """

    plan_id: str
    why: str | None
    program: Program
    texts: tuple[str, ...]
    stop_on_error: bool = True
    continue_on_empty: bool = False
    remarks: tuple[Diagnostic, ...] = ()
    plan: "Plan | None" = field(default=None, eq=False, repr=False)
    surroundings: Surroundings | None = field(default=None, eq=False, repr=False)
    """The environment against which the plan was checked."""

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The statements of the outermost level."""
        return self.program.statements


def checked(plan: Any, session: Session) -> Ready:
    """Read and check ``plan``, without running it. Raises ``PlanError`` with the diagnostics if it has errors.

    ``plan`` is a plan object (a mapping, JSON text or a ``Plan``) or a program (text or a ``Program``), which gets a new plan
    id. A ``Ready`` plan is checked again only if graph, state, variables or models have changed.
    """
    if isinstance(plan, Ready):
        if plan.surroundings == surroundings_of(session, session.context.names()):
            return plan
        return evolve(checked(plan.plan or plan.program, session), plan_id=plan.plan_id, why=plan.why)
    if isinstance(plan, Program):
        return _program(plan, session)
    if isinstance(plan, str):
        plan = Source(plan, "<plan>")
    if isinstance(plan, Source) and not is_document(plan.text):
        from ...lang.parse.gasl import parse_gasl

        return _program(parse_gasl(plan), session)
    from ...lang.documents.plan import Plan, PlanRead, read_plan

    if isinstance(plan, Plan):
        read = PlanRead(plan, tuple(map(plan.script.located, plan.program.diagnostics)), plan.script.source)
    elif isinstance(plan, Mapping | Source):
        try:
            read = read_plan(plan)
        except RecursionError:
            raise PlanError([TOO_DEEP], Source("", "<plan>")) from None
    else:
        raise TypeError(f"a plan is an object, a text or a program, not {type(plan).__name__}")
    try:
        surroundings = surroundings_of(session, session.context.names())
        found = check_plan(read, **surroundings.known)
    except RecursionError:
        found = [TOO_DEEP]
    if read.plan is None or has_errors(found):
        raise PlanError(found, read.source)
    return ready_of(read.plan, found, surroundings)


def ready_of(plan: "Plan", found: Sequence[Diagnostic], surroundings: Surroundings) -> Ready:
    """Return the checked ``plan`` as a ``Ready``; ``found`` are the warnings of its check against ``surroundings``."""
    return Ready(
        plan.plan_id, plan.why, plan.program, _statement_texts(plan), plan.config.stop_on_error, plan.config.continue_on_empty,
        tuple(found), plan, surroundings,
    )  # fmt: skip


def is_document(text: str) -> bool:
    """Return whether a text is a plan in JSON, not a program: programs never begin with a brace or a bracket."""
    return text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[")


def faults_of(program: Program, session: Session, variables: Collection[str]) -> list[Diagnostic]:
    """Return the linter's diagnostics for ``program`` in this session, in source order."""
    try:
        return check(program, **surroundings_of(session, variables).known)
    except RecursionError:
        return [TOO_DEEP]


def surroundings_of(session: Session, variables: Collection[str]) -> Surroundings:
    """Return the environment for checking a program in ``session`` with the given variables."""
    return Surroundings(
        session.graph.schema,
        {declared.key: declared.type for declared in session.state.snapshot().declared()},
        ceiling_of(session),
        session.graph.measures,
        tuple(variables),
        tuple(session.models),
        _fields(session, variables),
        {name: contents for name in variables if (contents := session.context.contents(name)) is not None},
    )


_OWN = {"nodes": ("id",), "edges": ("source", "target")}
"""The fields that every found node or edge has; they come first."""


def _fields(session: Session, variables: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the fields of each variable's items, including attributes of the graph that some items may lack.

    The computed fields of nodes are included. The computed fields of edges and paths are omitted, because ``source`` also covers
    ``source.x``.
    """
    schema = session.graph.schema
    found = {}
    for name in variables:
        bound = session.context.value(name)
        if bound is not None and isinstance(bound.held, FoundRows) and bound.graph_items in _OWN:
            fields: tuple[str, ...] | None = _OWN[bound.graph_items]  # the schema has the rest, so no item is read
        else:
            fields = session.context.fields(name)
        if fields is not None:
            of_graph = ("id", *schema.node_attributes) if "id" in fields else ()
            of_edges = ("key", *schema.edge_attributes) if {"source", "target"} <= set(fields) else ()
            computed = sorted(DEGREES) if bound is not None and bound.graph_items == "nodes" else ()
            found[name] = tuple(dict.fromkeys((*fields, *of_graph, *of_edges, *computed)))
    return found


def _program(program: Program, session: Session) -> Ready:
    surroundings = surroundings_of(session, session.context.names())
    try:
        found = check(program, **surroundings.known)
    except RecursionError:
        found = [TOO_DEEP]
    if has_errors(found):
        raise PlanError(found, program.source)
    texts = tuple(program.source.slice(statement.command.span) for statement in program.statements)
    return Ready(
        str(uuid4()), None, program, texts, continue_on_empty=True, remarks=tuple(found), surroundings=surroundings
    )


def _statement_texts(plan: "Plan") -> tuple[str, ...]:
    """Return the text of each statement: the complete string in the plan if it has only this statement, else a slice of the string."""
    texts = []
    for statement in plan.program.statements:
        text = plan.program.source.slice(statement.command.span)
        whole = plan.texts[plan.script.number(statement.command.span.start)]
        texts.append(whole if whole.strip() == text.strip() else text)
    return tuple(texts)
