"""``run --dry-run``: every prompt that is known before any call, and the number of calls.

References to the input and to constants are filled in; references to answers are shown between « and ».
"""

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import define, evolve, field, frozen

from ....lang.dependencies import final_step, layers, needed, step_dependencies
from ....lang.printer.lwt_printer import format_reference, format_value
from ....lang.trees import Node
from ....lang.trees.lwt import Call, Reference, Scalar, Script, Step, Template, Text, references
from ...lwt.operations import constant
from ...results import StepFailed, StepResult, Trace
from ...templates import Scope, resolve, text_of
from .output import Exit, colour, json_text, paint, shown

_BESIDE = ("system", "format", "criteria")
"""The options whose values are texts for the model."""
_OPEN, _CLOSE = "\ue000", "\ue001"
"""Marks around unknown parts until they are printed (private-use characters, which scripts do not contain by chance)."""


@frozen
class Prompt:
    """One call: the prompt as far as known, and EACH's index. ``fault`` says why it would fail.

    ``parts`` are further texts by name: the system prompt, ANSWER's format and criteria.
    """

    text: str
    parts: Mapping[str, str] = field(factory=dict)
    item: int | None = None
    fault: str = ""


@frozen
class Planned:
    """A step and its calls. ``count`` is None if it depends on an answer (``each`` names it).

    ``least``: the minimum if ``count`` is the maximum, in a loop that ends when an answer is good enough. ``told`` is the known
    result: why its condition skips it, or the value it computes. ``fault``: why it fails. ``maybe``: its condition can't be
    evaluated yet.
    """

    step: Step
    prompts: tuple[Prompt, ...] = ()
    count: int | None = 0
    each: str = ""
    told: str = ""
    fault: str = ""
    maybe: bool = False
    least: int | None = None


def rehearse(script: Script, given: Any, as_json: bool, all_steps: bool) -> int:
    """Write the prompts layer by layer to stdout. Nothing is called, and no model is needed."""
    graph = step_dependencies(script)
    chosen = final_step(script, graph)
    if chosen is None:
        return Exit.ERRORS
    wanted = set(graph) if all_steps else needed(graph, chosen[0])
    steps = {step.id: step for step in script.steps}
    view = _View(Scope("", given, {}, Trace(), lambda step, message: None, script.mode))
    planned = [
        [view.plan(steps[step]) for step in layer]
        for layer in layers({step: inputs for step, inputs in graph.items() if step in wanted})
    ]
    everything = [plan for layer in planned for plan in layer]
    known, open_ends = sum(plan.count or 0 for plan in everything), [p for p in everything if p.count is None]
    least = sum(_least(plan) for plan in everything if not plan.maybe)
    if as_json:
        print(json_text(_document(planned, least, None if open_ends else known)))
        return Exit.DONE
    for number, layer in enumerate(planned, 1):
        print(paint(f"layer {number} of {len(planned)}", "bold", colour(sys.stdout)))
        for plan in layer:
            _print(plan)
    more = "".join(f" + one for each {plan.each}" for plan in open_ends)
    count = _calls(known, bool(more)) if least == known else f"{least:,} to {_calls(known, bool(more))}"
    print(f"{count}{more}; nothing was called")
    return Exit.DONE


def _least(plan: Planned) -> int:
    return plan.least if plan.least is not None else plan.count or 0


@define
class _View:
    """The values known before a run: the input, and constants."""

    scope: Scope
    known: dict[str, StepResult] = field(factory=dict)

    def plan(self, step: Step) -> Planned:
        """Return the calls of ``step``. Steps are passed in the order of their layers."""
        call, scope = step.call, self.scope.of(step.id)
        scope.results = self.known
        condition = call.option("when")
        try:
            if condition is not None and self._all_known(condition, scope):
                from ...lwt.operations.basic import unmet

                if reason := unmet(condition, scope):
                    self.known[step.id] = StepResult(step.id, "skipped", "null", unmet=True)
                    return Planned(step, told=f"skipped: {reason}")
                condition = None
            if call.operation in ("CONST", "EXPR"):
                return Planned(step, told=self._computed(step, scope, condition is None))
        except StepFailed as error:
            return Planned(step, fault=error.failed.message)
        return evolve(self._calls(step, scope), maybe=condition is not None)

    def _calls(self, step: Step, scope: Scope) -> Planned:
        """Return the model calls of a step."""
        call = step.call
        if call.operation == "SEED":
            file = call.option("file")
            name = file.constant if isinstance(file, Template) else None
            return Planned(step, count=None, each=f"review that {name or 'its seed'} keeps")
        if call.operation == "EACH" and len(call.arguments) == 2 and isinstance(call.arguments[1], Call):
            return self._each(step, call.arguments[0], call.arguments[1], scope)
        if call.operation == "ANSWER":
            return self._answer(step, scope)
        return Planned(step, (self._prompt(call, scope),), 1)

    def _answer(self, step: Step, scope: Scope) -> Planned:
        """Return the calls of an iterative answer: from one accepted round (without judges if it has checks) to all rounds."""
        call, prompt = step.call, self._prompt(step.call, scope)
        asked = {name: _number(call, name, usual) for name, usual in (("iter_max", 3), ("attempts", 1), ("judges", 1))}
        criteria, checked = prompt.parts.get("criteria", ""), call.option("check") is not None
        judges = asked["judges"] if criteria.strip() else 0
        least = asked["attempts"] * (1 + (0 if checked else judges))
        most = asked["attempts"] * (1 + judges) * (1 if _number(call, "threshold", 0.8) == 0 else asked["iter_max"])
        return Planned(step, (prompt,), int(most), least=int(least))

    def _all_known(self, value: Node, scope: Scope) -> bool:
        return all(self._is_known(reference, scope) for reference in references(value))

    def _computed(self, step: Step, scope: Scope, runs: bool) -> str:
        """Compute a step without calls if its inputs are known; store its value if it is certain to run."""
        call = step.call
        if not self._all_known(call, scope):
            return ""
        if call.operation == "CONST":
            value = constant(call.arguments[0])
        else:
            from ...lwt.operations.basic import computed

            value = computed(call, scope)
        if runs:
            self.known[step.id] = StepResult(step.id, "done", text_of(value), value)
        return "" if call.operation == "CONST" else f"= {text_of(value)}"

    def _each(self, step: Step, source: Any, inner: Call, scope: Scope) -> Planned:
        if not isinstance(source, Reference) or not self._is_known(source, scope):
            reference = format_reference(source) if isinstance(source, Reference) else "its list"
            return Planned(step, (self._prompt(inner, scope),), None, f"element of {reference}")
        try:
            items = resolve(source, scope)
        except StepFailed as error:
            return Planned(step, (Prompt("", fault=error.failed.message),), 0)
        if isinstance(items, str):
            from ....lang.literals import Reading, read

            found = read(items)
            items = found.value if isinstance(found, Reading) else items
        if not isinstance(items, list):
            return Planned(step, (Prompt("", fault=f"EACH needs a list; {format_reference(source)} is none"),), 0)
        prompts = tuple(self._prompt(inner, scope.at(index, item), index) for index, item in enumerate(items))
        return Planned(step, prompts, len(items))

    def _prompt(self, call: Call, scope: Scope, item: int | None = None) -> Prompt:
        prompt = call.arguments[0] if call.arguments else None
        beside = {name: value for name in _BESIDE if isinstance(value := call.option(name), Template)}
        try:
            text = self._text(prompt, scope) if isinstance(prompt, Template) else ""
            return Prompt(text, {name: self._text(value, scope) for name, value in beside.items()}, item)
        except StepFailed as error:
            return Prompt("", item=item, fault=error.failed.message)

    def _text(self, template: Template, scope: Scope) -> str:
        return "".join(
            part.value if isinstance(part, Text) else self._reference(part, scope) for part in template.parts
        )

    def _reference(self, reference: Reference, scope: Scope) -> str:
        if not self._is_known(reference, scope):
            return f"{_OPEN}{format_reference(reference)}{_CLOSE}"
        try:
            return text_of(resolve(reference, scope), reference)
        except StepFailed as error:
            if scope.mode == "lenient" and error.failed.kind == "reference":
                return ""
            raise

    def _is_known(self, reference: Reference, scope: Scope) -> bool:
        if reference.name == "input":
            return scope.input is not None
        if reference.name in ("item", "index"):
            return scope.index is not None
        return reference.name in self.known


def _print(plan: Planned) -> None:
    on = colour(sys.stdout)
    call = plan.step.call
    inner = call.arguments[-1] if call.operation == "EACH" and call.arguments else call
    options = [f"{option.name}={format_value(option.value)}" for option in _shown_options(call, inner)]
    head = f"({plan.step.id}) {call.operation}"
    print(f"  {paint(head, 'cyan', on)}{'  ' + ', '.join(options) if options else ''}")
    if call.operation in ("CONST", "EXPR") and call.arguments:
        print(f"    {_short(format_value(call.arguments[0]))}")
    if plan.told:
        print(paint(f"    {_short(shown(plan.told))}", "dim", on))
    if plan.fault:
        print(f"    {paint('would fail', 'red', on)}: {shown(plan.fault)}")
    for prompt in plan.prompts:
        if prompt.item is not None:
            print(paint(f"    item {prompt.item}", "dim", on))
        if prompt.fault:
            print(f"    {paint('would fail', 'red', on)}: {shown(prompt.fault)}")
        before = [f"{name}: {text}" for name, text in prompt.parts.items() if name == "system" and text]
        after = [f"{name}: {text}" for name, text in prompt.parts.items() if name != "system" and text]
        for text in (*before, prompt.text, *after):
            if text:
                print("\n".join(f"    | {line}" for line in _marked(text, on).split("\n")))
    if plan.count is None:
        print(paint(f"    once for each {plan.each}, which is not known yet", "dim", on))
    elif plan.least is not None and plan.least < plan.count:
        told = f"    {plan.least:,} to {_calls(plan.count)}, until an answer is good enough"
        print(paint(told, "dim", on))


def _shown_options(*calls: Any) -> Iterator[Any]:
    seen: set[int] = set()
    for call in calls:
        if isinstance(call, Call) and id(call) not in seen:
            seen.add(id(call))
            yield from (option for option in call.options if option.name not in _BESIDE)


def _calls(count: int, several: bool = False) -> str:
    return f"{count:,} call{'' if count == 1 and not several else 's'}"


def _number(call: Call, name: str, usual: float) -> float:
    """Return an option's value if it is a number."""
    value = call.option(name)
    number = value.value if isinstance(value, Scalar) else None
    return number if isinstance(number, int | float) else usual


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}… ({len(text):,} characters)"


def _marked(text: str, on: bool) -> str:
    """Insert the visible marks, in colour if ``on``."""
    marked = []
    for number, part in enumerate(text.replace(_CLOSE, _OPEN).split(_OPEN)):
        clean = shown(part) if sys.stdout.isatty() else part
        marked.append(paint(f"«{clean}»", "yellow", on) if number % 2 else clean)
    return "".join(marked)


def _document(planned: list[list[Planned]], least: int, most: int | None) -> Mapping[str, Any]:
    return {
        "layers": [
            [
                {
                    "step": plan.step.id,
                    "operation": plan.step.call.operation,
                    "calls": plan.count if plan.least in (None, plan.count) else None,
                    **({"calls_at_least": plan.least, "calls_at_most": plan.count} if plan.least is not None else {}),
                    **({"told": plan.told} if plan.told else {}),
                    **({"fault": plan.fault} if plan.fault else {}),
                    "prompts": [
                        {
                            "item": prompt.item,
                            "system": _marked(prompt.parts.get("system", ""), False) or None,
                            "prompt": _marked(prompt.text, False),
                            **{name: _marked(text, False) for name, text in prompt.parts.items() if name != "system"},
                            "fault": prompt.fault or None,
                        }
                        for prompt in plan.prompts
                    ],
                }
                for plan in layer
            ]
            for layer in planned
        ],
        "calls": most if most == least else None,
        "calls_at_least": least,
        "calls_at_most": most,
    }
