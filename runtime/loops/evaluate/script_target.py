"""The target of an evaluation that is a prompt script: the value of its final step, parts of this value, and checks of its output."""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field

from ....lang.coercion import Fit, as_type
from ....lang.diagnostic import has_errors, suggestion
from ....lang.documents.cases import FINAL, Case
from ....lang.trees.lwt import MISSING, Choice, Script, Template, Word
from ...answers.evaluation import read_check
from ...lwt import runner
from ...lwt.case_run import part_of, split_place
from ...lwt.operations import Host
from ...lwt.script_plan import ScriptPlan, plan_of
from ...results import Run
from .field_scores import Answer
from .gold import BESIDE, Binding, Expected, Gold, GoldItem
from .seed_target import inferred
from .targets import AskSettings, OnAnswer, each_item, failed

EXPECT, CHECK = "expect", "check"
_OF_STEP = re.compile(r"(?:expect|check)\.\((?P<step>[^()]+)\)(?P<path>(?:\.[^.]+)*)")
"""A column about a step other than the final one, such as ``expect.(mood)``, ``expect.(mood).reason`` and ``check.(mood).1``."""
_TYPED: Mapping[str, Any] = {"int": "number", "float": "number", "bool": "flag", "list": "set"}


@define
class ScriptTarget:
    """A checked script.

    ``folder`` is the folder for ``file=``; ``group`` is the column with the group of an item (None: each item is a group).
    ``host`` is what the run offers to the script.
    """

    script: Script
    name: str
    source: str
    folder: Path | None = None
    group: str | None = None
    kind: str = "script"
    samples: int = 100
    host: Host = field(factory=Host)
    _checked: dict[str, str] = field(factory=dict, init=False)
    _groups: dict[str, str] = field(factory=dict, init=False)

    def plan(self, value: Any = MISSING, models: Collection[str] | None = None) -> ScriptPlan:
        """Return the plan of the script for an input."""
        return plan_of(
            self.script, value, models, folder=self.folder, operations=self.host.signatures(self.script),
            functions=tuple(self.host.functions),
        )  # fmt: skip

    def expected(self, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Expected]:
        """Return ``expect``, ``expect.KEY``, ``check`` and ``check.NAME``. Types follow from the final step or from the labels."""
        found = {}
        for name in columns:
            head = name.partition(".")[0]
            if head == CHECK:
                found[name] = Expected(name, "check")
            elif name == EXPECT:
                found[name] = self._declared() or inferred(name, [row.get(name) for row in rows])
            elif head == EXPECT:
                found[name] = inferred(name, [row.get(name) for row in rows])
        return found or {EXPECT: Expected(EXPECT, "text"), CHECK: Expected(CHECK, "check")}

    def _declared(self) -> Expected | None:
        """Return how the final step is scored according to its type; None if it has no type, or a type such as JSON."""
        final = self.plan().final
        call = next(step.call for step in self.script.steps if step.id == final)
        kind = call.option("type") if call.options else None
        if isinstance(kind, Choice):
            return Expected(EXPECT, "label", tuple(label.constant.strip() for label in kind.labels if label.constant))
        name = kind.value if isinstance(kind, Word) else kind.constant if isinstance(kind, Template) else None
        if name is None or name not in _TYPED:
            return None
        return Expected(EXPECT, _TYPED[name], whole=name == "int")

    def keys(self, columns: Sequence[str]) -> Sequence[str]:
        """Return ``input`` or, without this column, the columns that are the fields of the input."""
        if "input" in columns:
            return [name for name in columns if name in ("input", self.group)]
        gold = self.expected(columns, ())
        return [name for name in columns if name not in gold and name not in BESIDE]

    def bind(self, keys: Mapping[str, Any]) -> Binding:
        """Return the binding of an item. The place in this binding is the input of the script."""
        group = str(keys[self.group]) if self.group is not None and self.group in keys else ""
        if "input" in keys:
            value = keys["input"]
            if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
                try:
                    value = json.loads(value)
                except ValueError as error:
                    return Binding(fault=f"input is not JSON: {error}")
        else:
            value = dict(keys)
        return Binding(value, group, self._fault(value))

    def _fault(self, value: Any) -> str:
        """Return the first error of the script for an input, or "". Of inputs with the same keys, only one is checked."""
        shape = json.dumps(sorted(value) if isinstance(value, dict) else type(value).__name__)
        if shape not in self._checked:
            found = self.plan(value).diagnostics
            self._checked[shape] = next((each.message for each in found if has_errors([each])), "")
        return self._checked[shape]

    def faults(self, gold: Gold) -> list[str]:
        """Return the columns about steps that the script does not have; all other faults were found before."""
        graph, found = self.plan().graph, []
        for column in gold.columns:
            match = _OF_STEP.fullmatch(column)
            if match is not None and match["step"] not in (*graph, FINAL):
                hint = suggestion(match["step"], [*graph, FINAL])
                found.append(f"{column}: the script has no step {match['step']!r}; {hint}")
        return found

    def text(self, item: GoldItem) -> str:
        """Return the input."""
        return item.place if isinstance(item.place, str) else json.dumps(item.place, ensure_ascii=False, default=str)

    async def answer(self, items: Sequence[GoldItem], client: Any, settings: AskSettings, on_answer: OnAnswer) -> None:
        """Run the script for each item."""
        named = {match["step"] for item in items for each in item.labels if (match := _OF_STEP.fullmatch(each))}

        async def work(item: GoldItem) -> None:
            plan = self.plan(item.place, tuple(settings.models))
            run = await runner.run(
                self.script, input=item.place, llm=client, models=settings.models, max_concurrency=settings.max_concurrency,
                folder=self.folder, spec=settings.spec, plan=plan, strict_types=settings.strict_types, refuses_options=False,
                all_steps=not named <= {*plan.needed, FINAL}, host=self.host,
            )  # fmt: skip
            for column, label in item.labels.items():
                on_answer(item.number, column, self._answer(column, label, run))

        await each_item(items, work, settings.max_concurrency, settings.cancel)

    def _answer(self, column: str, label: Any, run: Run) -> Answer:
        figures: dict[str, Any] = {"seconds": run.seconds, "cost": run.cost}
        if run.output is None:
            faults = [result.failed for result in run.steps.values() if result.failed is not None]
            first = next((each for each in faults if each.is_unasked), faults[0] if faults else None)
            return failed(
                first.kind if first else "", first.message if first else "the script has no output", **figures
            )
        head, _, key = column.partition(".")
        if (match := _OF_STEP.fullmatch(column)) is not None:
            return self._answer_of_step(match["step"], tuple(match["path"].split(".")[1:]), head, label, run, figures)
        if head == CHECK:
            verdict = read_check(label)(run.output)
            return Answer(verdict.passed, error="" if verdict.passed else verdict.reason, **figures)
        value = run.value
        if key:
            value = _json_value(value)
            if not isinstance(value, dict) or key not in value:
                return Answer(None, "invalid", f"the output has no {key}: {run.output}"[:2000], **figures)
            value = value[key]
        return evolve_answer(self._expected_kind(column, label), value, run.output, figures)

    def _answer_of_step(
        self, name: str, path: tuple[str, ...], head: str, label: Any, run: Run, figures: Mapping[str, Any]
    ) -> Answer:
        step, _ = split_place(name, run.steps, run.final)
        result = run.steps[step]
        if result.status == "failed" or (result.status == "skipped" and not result.unmet):
            return failed(result.failed.kind if result.failed else "", result.reason, **figures)
        if head == CHECK:
            verdict = read_check(label)(result.output)
            return Answer(verdict.passed, error="" if verdict.passed else verdict.reason, **figures)
        try:
            value = part_of(result, path)
        except LookupError as error:
            return Answer(None, "invalid", f"{error.args[0]}: {result.output}"[:2000], **figures)
        return evolve_answer(self._expected_kind("", label), value, result.output, figures)

    @staticmethod
    def _expected_kind(column: str, label: Any) -> Any:
        return (
            bool
            if isinstance(label, bool)
            else float
            if isinstance(label, int | float)
            else list
            if isinstance(label, list)
            else str
        )


def evolve_answer(kind: Any, value: Any, raw: str, figures: Mapping[str, Any]) -> Answer:
    """Return the answer with ``value`` converted to ``kind``, the type of the gold label.

    The answer is invalid if the value can't be converted.
    """
    fits = (
        isinstance(value, kind) if kind is not float else isinstance(value, int | float) and not isinstance(value, bool)
    )
    if fits or value is None:
        return Answer(value, **figures)
    if kind is str:
        return Answer(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), **figures)
    if isinstance(value, str):
        read = as_type(value, {bool: "bool", float: "float", list: "list"}[kind])
        if isinstance(read, Fit):
            return Answer(read.value, **figures)
    return Answer(None, "invalid", raw[:2000], **figures)


def _json_value(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    read = as_type(value, "json")
    return read.value if isinstance(read, Fit) else value


def rows_of_cases(cases: Iterable[Case]) -> list[dict[str, Any]]:
    """Return test cases of a script as rows of a gold table. An expected object is scored by its keys."""
    rows = []
    for case in cases:
        row: dict[str, Any] = {} if case.input is MISSING else {"input": case.input}
        for place, expected in case.expect.items():
            step, _, path = place.partition(".")
            column = f"{EXPECT}.({step}){f'.{path}' if path else ''}"
            if step == FINAL and "." not in path:
                column = f"{EXPECT}.{path}" if path else EXPECT
            if isinstance(expected, dict) and expected:
                row |= {f"{column}.{key}": value for key, value in expected.items()}
            else:
                row[column] = expected
        for step, checks in case.checks.items():
            of = CHECK if step == FINAL else f"{CHECK}.({step})"
            row |= {f"{of}.{number}": check for number, check in enumerate(checks, 1)}
        rows.append(row)
    return rows
