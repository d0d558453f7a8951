"""From a plan in any of its forms to commands that were checked against the graph, the state and the host's ceiling."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from attrs import frozen

from ...lang.diagnostic import Diagnostic, has_errors
from ...lang.gasl import Program, Statement
from ...lang.linter.gasl import check, check_plan
from ...lang.source import Source
from ..session import Session
from .errors import PlanError
from .settings import ceiling_of

if TYPE_CHECKING:
    from ...lang.documents.plan import Plan

__all__ = ["Ready", "checked", "faults_of", "is_document"]


@frozen
class Ready:
    """A plan that was read and checked. ``texts`` are the exact texts of its statements, ``remarks`` what is not an error."""

    plan_id: str
    why: str | None
    program: Program
    texts: tuple[str, ...]
    stop_on_error: bool = True
    continue_on_empty: bool = False
    remarks: tuple[Diagnostic, ...] = ()

    @property
    def statements(self) -> tuple[Statement, ...]:
        """The statements of the outermost level."""
        return self.program.statements


def checked(plan: Any, session: Session) -> Ready:
    """Read ``plan`` and check it. Raises ``PlanError`` with what is wrong; then nothing was run.

    ``plan``: seed 003's object as a mapping, as JSON text or as a ``Plan``; or a program, as text or as a ``Program``, which
    gets an id of its own.
    """
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
            raise PlanError([_TOO_DEEP], Source("", "<plan>")) from None
    else:
        raise TypeError(f"a plan is an object, a text or a program, not {type(plan).__name__}")
    try:
        found = check_plan(read, **_known(session, session.context.names()))
    except RecursionError:
        found = [_TOO_DEEP]
    if read.plan is None or has_errors(found):
        raise PlanError(found, read.source)
    made = read.plan
    return Ready(
        made.plan_id, made.why, made.program, _exact(made), made.config.stop_on_error, made.config.continue_on_empty,
        tuple(found),
    )  # fmt: skip


def is_document(text: str) -> bool:
    """Say whether a text is a plan in JSON, not a program: no command begins with a brace or a bracket."""
    return text.lstrip("\ufeff \t\r\n")[:1] in ("{", "[")


def faults_of(program: Program, session: Session, variables: Collection[str]) -> list[Diagnostic]:
    """Return what the linter says of ``program``, with all that is known where it is to run, by place."""
    try:
        return check(program, **_known(session, variables))
    except RecursionError:
        return [_TOO_DEEP]


_TOO_DEEP = Diagnostic("GASL023", "error", "blocks are nested too deeply", hints=("leave some of the nesting out",))


def _known(session: Session, variables: Collection[str]) -> dict[str, Any]:
    """Return what the linter should know."""
    return {
        "schema": session.graph.schema,
        "state": {declared.key: declared.type for declared in session.state.snapshot().declared()},
        "ceiling": ceiling_of(session),
        "measures": session.graph.measures,
        "variables": variables,
        "models": tuple(session.models),
    }


def _program(program: Program, session: Session) -> Ready:
    found = faults_of(program, session, session.context.names())
    if has_errors(found):
        raise PlanError(found, program.source)
    texts = tuple(program.source.slice(statement.command.span) for statement in program.statements)
    return Ready(str(uuid4()), None, program, texts, remarks=tuple(found))


def _exact(plan: "Plan") -> tuple[str, ...]:
    """Return each statement's text: the string of the plan where it fills one, else what it is in the script."""
    texts = []
    for statement in plan.program.statements:
        text = plan.program.source.slice(statement.command.span)
        whole = plan.texts[plan.script.number(statement.command.span.start)]
        texts.append(whole if whole.strip() == text.strip() else text)
    return tuple(texts)
