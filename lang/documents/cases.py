"""Reads the test cases of a script (``NAME.cases.jsonl``, one case per line), and reports faults with their positions.

A case has a name, an input, and what is expected: values of steps, and checks of their texts. See ``docs/reference/test.md``.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from attrs import field, frozen
from pydantic import BaseModel, ConfigDict, Field

from ..diagnostic import Diagnostic, sort_key
from ..source import Source, Span
from ..trees.lwt import MISSING
from .json_text import JsonNode, read_json
from .shape import Misfit, misfits

SUFFIX = ".cases.jsonl"
FINAL = "final"
"""The name of the final step in ``expect`` and ``checks``, whatever its id is."""

_Checks = list[Annotated[str, Field(min_length=1, max_length=10_000)]]


class CaseModel(BaseModel):
    """A test case of a script."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: Annotated[str, Field(min_length=1, max_length=500, description="The name of the case, unique in its file")]
    input: Annotated[Any, Field(description="The input of the script (default: none)")] = None
    expect: Annotated[
        dict[str, Any] | None,
        Field(description='The expected value of each step, or of a part of it: {"mood": "sad", "final.total": 3}'),
    ] = None
    checks: Annotated[
        _Checks | dict[str, _Checks] | None,
        Field(
            description='Text checks of the output, or of steps by name: ["words:..10"], {"mood": ["regex:^[a-z]+$"]}'
        ),
    ] = None
    note: Annotated[str | None, Field(description="A remark; it has no effect")] = None


@frozen
class Case:
    """A test case. ``line`` is its line in the file, from 1. ``input`` is ``MISSING`` if it has none.

    ``expect`` maps steps ("final": the final step) or their parts to values; ``checks`` maps steps to the texts of checks.
    ``node`` is the case with positions in the line, which begins at ``offset``.
    """

    name: str
    line: int
    input: Any = MISSING
    expect: Mapping[str, Any] = field(factory=dict)
    checks: Mapping[str, tuple[str, ...]] = field(factory=dict)
    node: JsonNode | None = field(default=None, repr=False, eq=False)
    offset: int = field(default=0, repr=False, eq=False)

    def span(self, *path: str | int, key: bool = False) -> Span | None:
        """Return the position in the file of the value at ``path`` or, with ``key``, of its key."""
        if self.node is None:
            return None
        owner = self.node.at(path[:-1]) if key else None
        found = owner.keys.get(str(path[-1])) if owner is not None else None
        return (found or self.node.nearest_span(path)).shift(self.offset)


@frozen
class CasesRead:
    """The test cases of a file. ``diagnostics`` has the faults; cases with faults are left out."""

    cases: tuple[Case, ...]
    diagnostics: tuple[Diagnostic, ...]
    source: Source


_CODES = {"unknown": "CASE002", "missing": "CASE003", "type": "CASE004", "value": "CASE004"}


def read_cases(source: Source | str) -> CasesRead:
    """Read test cases, one JSON object per line. Never raises an error for an invalid text: ``diagnostics`` contains the errors."""
    source = Source(source, f"<text>{SUFFIX}") if isinstance(source, str) else source
    cases: list[Case] = []
    found: list[Diagnostic] = []
    names: dict[str, int] = {}
    offset = 0
    for number, line in enumerate(source.text.split("\n"), 1):
        begin, offset = offset, offset + len(line) + 1
        text = line.lstrip("\ufeff") if number == 1 else line
        begin += len(line) - len(text)
        if not text.strip():
            continue
        read = read_json(Source(text.rstrip("\r")))
        faults = [*read.diagnostics, *map(_fault, misfits(CaseModel, read.root) if read.root is not None else ())]
        case = None
        if read.root is not None and not faults:
            case = _case(read.root, number, begin)
            faults += _more_faults(case, read.root, names)
        if case is not None and not faults:
            cases.append(case)
        found += [each.moved(lambda span, by=begin: span.shift(by)) for each in faults]  # type: ignore[misc]
    return CasesRead(tuple(cases), tuple(sorted(found, key=sort_key)), source)


def _case(root: JsonNode, line: int, offset: int) -> Case:
    value = root.value
    checks = value.get("checks") or {}
    by_step = {FINAL: checks} if isinstance(checks, list) else checks
    return Case(
        value["name"], line, value.get("input", MISSING), value.get("expect") or {},
        {step: tuple(each) for step, each in by_step.items()}, root, offset,
    )  # fmt: skip


def _more_faults(case: Case, root: JsonNode, names: dict[str, int]) -> list[Diagnostic]:
    if not case.expect and not any(case.checks.values()):
        hint = 'such as "expect": {"final": "sad"}, or "checks": ["words:..10"]'
        return [Diagnostic("CASE003", "error", "the case expects nothing, so it can't fail", root.span, (hint,))]
    if case.name in names:
        message = f"line {names[case.name]} has a case with the same name"
        return [Diagnostic("CASE005", "error", message, root.nearest_span(("name",)), ("give each case its own name",))]
    names[case.name] = case.line
    return []


def _fault(misfit: Misfit) -> Diagnostic:
    if not misfit.path:
        message = misfit.message.replace("the document must be an object", "a case must be an object")
        return Diagnostic("CASE001", "error", message, misfit.span, ("a case has name, input, expect and checks",))
    return Diagnostic(_CODES[misfit.kind], "error", misfit.message, misfit.span, misfit.hints, misfit.edits)
