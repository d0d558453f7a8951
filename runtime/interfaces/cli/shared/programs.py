"""Reads and checks programs and plans, against a graph and a state where they are given."""

from collections.abc import Mapping
from typing import Literal

from attrs import frozen

from .....lang.gasl import Program, StateType
from .....lang.linter.gasl import check, check_plan
from .....lang.parse.gasl import parse_gasl
from .....lang.schema import Schema
from .....lang.source import Source
from .checked import Checked

__all__ = ["Against", "check_program", "look_at"]


@frozen
class Against:
    """What programs are checked against: a graph in summary, and the keys of a state. None: not known."""

    schema: Schema | None = None
    state: Mapping[str, StateType] | None = None


def look_at(graph: str | None, state: str | None, raw: bool = False) -> Against:
    """Return what is known of a graph and of a state. Raises ``AdapterError``, ``StoreError`` and ``Misused``."""
    from .graphs import loaded
    from .states import reading

    schema = None if graph is None else loaded(graph, raw).schema
    if state is None:
        return Against(schema)
    with reading(state) as store:
        return Against(schema, {key.key: key.type for key in store.snapshot().declared()})


def check_program(source: Source, language: Literal["gasl", "plan"], against: Against | None) -> Checked:
    """Read and check one text."""
    seen = against or Against()
    if language == "plan":
        from .....lang.documents.plan import read_plan

        read = read_plan(source)
        found = check_plan(read, schema=seen.schema, state=seen.state)
        readable = read.plan or read.draft
        return Checked(tuple(found), source, program=read.plan, size=_size(readable.program) if readable else 0)
    program = parse_gasl(source)
    found = check(program, schema=seen.schema, state=seen.state)
    return Checked(tuple(found), source, program=program, size=_size(program))


def _size(program: Program) -> int:
    return len(program.statements)
