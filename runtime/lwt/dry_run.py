"""The dry run of a prompt script: the calls of each step, and the prompts as far as they are known before any call."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field, frozen

from ...lang.conversation import MOST_IMAGES
from ...lang.dependencies import final_step, layers, needed, step_dependencies
from ...lang.literals import Reading, read
from ...lang.printer.lwt_printer import format_reference, format_value
from ...lang.trees import Node
from ...lang.trees.lwt import (
    Call,
    ListValue,
    ObjectValue,
    Reference,
    Scalar,
    Script,
    Step,
    Template,
    Text,
    Value,
    calls_of,
    references,
)
from ..excerpts import clipped
from ..results import StepFailed, StepResult, Trace
from ..templates import Scope, resolve, text_of
from .script_plan import own_file

if TYPE_CHECKING:
    pass


# A dry run shows the prompts as far as they are known before any call. References to the input and to constants are filled in.

_TEXT_OPTIONS = ("system", "format", "criteria")
"""The options whose values are sent to the model."""
_TURN_OPTIONS = ("examples", "messages")
"""The options with texts that are sent to the model before the prompt."""
_SHOWN = 100
"""Maximum number of characters of an option's value in the settings of a step."""
UNKNOWN, UNKNOWN_END = "\ue000", "\ue001"
"""Marks around unknown parts of a prompt: private-use characters, which ordinary scripts do not contain."""


@frozen
class PlannedCall:
    """One call: the prompt as far as it is known, and the index ``item`` of the item in EACH.

    ``fault`` is the reason why the call would fail. ``options`` maps the names of other options that are sent to the model
    (system prompt, format, criteria; examples and earlier messages as JSON) to their texts. ``images`` is the maximum number of images.
    """

    prompt: str
    options: Mapping[str, str] = field(factory=dict)
    item: int | None = None
    fault: str = ""
    images: int = 0


@frozen
class PlannedStep:
    """A step and its calls. ``most`` is the maximum number of calls; None if it depends on an answer.

    If ``most`` is None, the step makes one call for each element, and ``each`` says what the elements are. ``least`` is the
    minimum number of calls of a loop that ends as soon as an answer is good enough. ``per`` is the number of calls for each element.
    ``inner`` is the plan of the script that the step runs, ``times`` times. ``result`` is the known part of the result:
    the reason why the condition skips the step, or the computed value. ``fault`` is the reason why the step fails.
    ``is_conditional`` is true if the condition can't be evaluated yet.
    """

    step: Step
    calls: tuple[PlannedCall, ...] = ()
    most: int | None = 0
    each: str = ""
    result: str = ""
    fault: str = ""
    is_conditional: bool = False
    least: int | None = None
    per: int = 1
    inner: "DryRun | None" = None
    times: int = 1

    @property
    def source(self) -> str:
        """The source text of the constant in a CONST step, or of the expression in an EXPR step; "" for other steps."""
        call = self.step.call
        return format_value(call.arguments[0]) if call.operation in ("CONST", "EXPR") and call.arguments else ""

    @property
    def is_loop(self) -> bool:
        """Whether the step repeats calls until an answer is good enough."""
        return any(call.operation == "ANSWER" for call in calls_of(self.step))

    @property
    def settings(self) -> list[str]:
        """The options of the call, such as ``temperature=0``, except options that are sent to the model as text."""
        call = self.step.call
        inner = call.arguments[-1] if call.operation == "EACH" and call.arguments else None
        options = (*call.options, *(inner.options if isinstance(inner, Call) else ()))
        sent = (*_TEXT_OPTIONS, *_TURN_OPTIONS)
        return [f"{each.name}={clipped(format_value(each.value), _SHOWN)}" for each in options if each.name not in sent]

    def as_json(self) -> dict[str, Any]:
        """Return the step as JSON."""
        return {
            "step": self.step.id,
            "operation": self.step.call.operation,
            "calls": self.most if self.least in (None, self.most) else None,
            **({"calls_at_least": self.least, "calls_at_most": self.most} if self.least is not None else {}),
            **({"script": self.inner.as_json(), "times": self.times} if self.inner is not None else {}),
            **({"told": self.result} if self.result else {}),
            **({"fault": self.fault} if self.fault else {}),
            "prompts": [
                {
                    "item": call.item,
                    "system": _visible(call.options.get("system", "")) or None,
                    "prompt": _visible(call.prompt),
                    **{name: _visible(text) for name, text in call.options.items() if name != "system"},
                    "fault": call.fault or None,
                }
                for call in self.calls
            ],
        }


@frozen
class DryRun:
    """The planned steps by layer, and the range of the number of calls. ``open_ends`` are the steps whose number of calls is unknown."""

    layers: tuple[tuple[PlannedStep, ...], ...]

    @property
    def steps(self) -> list[PlannedStep]:
        """All planned steps."""
        return [step for layer in self.layers for step in layer]

    @property
    def least(self) -> int:
        """The minimum number of calls."""
        steps = (step for step in self.steps if not step.is_conditional)
        return sum(step.least if step.least is not None else step.most or 0 for step in steps)

    @property
    def most(self) -> int:
        """The maximum number of calls that all steps together make, without the steps in ``open_ends``."""
        return sum(step.most or 0 for step in self.steps)

    @property
    def open_ends(self) -> list[PlannedStep]:
        """The steps whose number of calls is not known, here and in the scripts that the steps run."""
        return [
            each
            for step in self.steps
            for each in ([step] if step.most is None else step.inner.open_ends if step.inner is not None else [])
        ]

    def as_json(self) -> dict[str, Any]:
        """Return the dry run as JSON."""
        most = None if self.open_ends else self.most
        return {
            "layers": [[step.as_json() for step in layer] for layer in self.layers],
            "calls": most if most == self.least else None,
            "calls_at_least": self.least,
            "calls_at_most": most,
        }


def dry_run(
    script: Script,
    *,
    input: Any = None,
    all_steps: bool = False,
    nested: Mapping[Path, Script] | None = None,
) -> DryRun:
    """Return the steps of a checked script with their prompts. No model is needed.

    ``nested`` are the scripts that ``RUN`` names (``ScriptPlan.nested``).
    """
    graph = step_dependencies(script)
    chosen = final_step(script, graph)
    wanted = set(graph) if all_steps or chosen is None else needed(graph, chosen[0])
    steps = {step.id: step for step in script.steps}
    folder = own_file(script)[0].parent if nested and own_file(script) else None
    view = _KnownValues(
        Scope("", input, {}, Trace(), lambda step, message: None, script.mode),
        nested or {},
        folder,
    )
    levels = layers({step: inputs for step, inputs in graph.items() if step in wanted})
    return DryRun(tuple(tuple(view.plan(steps[step]) for step in level) for level in levels))


@define
class _KnownValues:
    """The values that are known before a run: the input, constants, and expressions of known values."""

    scope: Scope
    nested: Mapping[Path, Script]
    folder: Path | None
    known: dict[str, StepResult] = field(factory=dict)

    def plan(self, step: Step) -> PlannedStep:
        """Return the planned calls of ``step``. Must be called for the steps in the order of their layers."""
        call, scope = step.call, self.scope.of(step.id)
        scope.results = self.known
        condition = call.option("when")
        try:
            if condition is not None and self._all_known(condition, scope):
                from .operations.basic import unmet

                if reason := unmet(condition, scope):
                    self.known[step.id] = StepResult(step.id, "skipped", "null", unmet=True)
                    return PlannedStep(step, result=f"skipped: {reason}")
                condition = None
            if call.operation in ("CONST", "EXPR", "JOIN"):
                return PlannedStep(step, result=self._computed(step, scope, condition is None))
        except StepFailed as error:
            return PlannedStep(step, fault=error.failed.message)
        return evolve(self._planned(step, scope), is_conditional=condition is not None)

    def _planned(self, step: Step, scope: Scope) -> PlannedStep:
        """Return the model calls of a step."""
        call = step.call
        if call.operation == "EACH" and len(call.arguments) == 2 and isinstance(call.arguments[1], Call):
            return self._each(step, call.arguments[0], call.arguments[1], scope)
        return self._once(step, call, scope)

    def _once(self, step: Step, call: Call, scope: Scope) -> PlannedStep:
        """Return the model calls of ``call``, which is the call of the step or the call that it repeats."""
        match call.operation:
            case "SEED":
                file = call.option("file")
                name = file.constant if isinstance(file, Template) else None
                return PlannedStep(step, most=None, each=f"review that {name or 'its seed'} keeps")
            case "ANSWER":
                return self._answer(step, call, scope)
            case "RUN":
                return self._script(step, call, scope)
            case "CALL":
                return PlannedStep(step, result=f"calls the function {format_value(call.arguments[0])}")
            case "CONST" | "EXPR" | "JOIN":
                return PlannedStep(step)
        return PlannedStep(step, (self._call(call, scope),), _samples(call))

    def _script(self, step: Step, call: Call, scope: Scope) -> PlannedStep:
        """Return the plan of the script that RUN names, with its input if the input is known."""
        from .operations.named_files import nested_path
        from .operations.operation import option_value

        path = nested_path(call, self.folder)
        script = None if path is None else self.nested.get(path)
        if script is None:
            return PlannedStep(step, most=None, each="call of its script")
        value = call.option("input")
        is_known = value is None or self._all_known(value, scope)
        try:
            given = None if value is None or not is_known else option_value(value, scope)
        except StepFailed as error:
            return PlannedStep(step, fault=error.failed.message)
        inner = dry_run(script, input=given, nested=self.nested)
        return PlannedStep(step, most=inner.most, least=inner.least, inner=inner)

    def _answer(self, step: Step, call: Call, scope: Scope) -> PlannedStep:
        """Return the range of calls that an iterative answer needs.

        The minimum is one accepted round, without judges if the answer has checks; the maximum is all rounds.
        """
        planned = self._call(call, scope)
        rounds, attempts, judges, threshold = (
            value.value if isinstance(value := call.option(name), Scalar) and isinstance(value.value, int | float) else default
            for name, default in (("iter_max", 3), ("attempts", 1), ("judges", 1), ("threshold", 0.8))
        )  # fmt: skip
        judges = judges if planned.options.get("criteria", "").strip() else 0
        least = attempts * (1 + (0 if call.option("check") is not None else judges))
        most = attempts * (1 + judges) * (1 if threshold == 0 else rounds)
        return PlannedStep(step, (planned,), int(most), least=int(least))

    def _all_known(self, value: Node, scope: Scope) -> bool:
        return all(self._is_known(reference, scope) for reference in references(value))

    def _computed(self, step: Step, scope: Scope, runs: bool) -> str:
        """If the inputs of a CONST, EXPR or JOIN step are known, compute its value. Return the value as text, "" for CONST.

        If ``runs`` (the step is not skipped), also store the value for later steps.
        """
        call = step.call
        if not self._all_known(call, scope):
            return ""
        from .operations.basic import expr_value
        from .operations.join_step import joined
        from .operations.operation import constant

        match call.operation:
            case "CONST":
                value = constant(call.arguments[0])
            case "JOIN":
                value = joined(call, scope)
            case _:
                value = expr_value(call, scope)
        if runs:
            self.known[step.id] = StepResult(step.id, "done", text_of(value), value)
        return "" if call.operation == "CONST" else f"= {text_of(value)}"

    def _each(self, step: Step, source: Any, inner: Call, scope: Scope) -> PlannedStep:
        if not isinstance(source, Reference) or not self._is_known(source, scope):
            reference = format_reference(source) if isinstance(source, Reference) else "its list"
            return _repeated(self._once(step, inner, scope), None, f"element of {reference}", inner)
        try:
            items = resolve(source, scope)
        except StepFailed as error:
            return PlannedStep(step, (PlannedCall("", fault=error.failed.message),), 0)
        if isinstance(items, str):
            found = read(items)
            items = found.value if isinstance(found, Reading) else items
        if not isinstance(items, list):
            fault = f"EACH needs a list; {format_reference(source)} is not a list"
            return PlannedStep(step, (PlannedCall("", fault=fault),), 0)
        if inner.operation not in ("LLM", "ANSWER"):
            return _repeated(
                self._once(step, inner, scope), len(items), f"element of {format_reference(source)}", inner
            )
        calls = tuple(self._call(inner, scope.at(index, item), index) for index, item in enumerate(items))
        return evolve(_repeated(self._once(step, inner, scope), len(items), "", inner), calls=calls)

    def _call(self, call: Call, scope: Scope, item: int | None = None) -> PlannedCall:
        prompt = call.arguments[0] if call.arguments else None
        options = {name: value for name in _TEXT_OPTIONS if isinstance(value := call.option(name), Template)}
        try:
            text = self._text(prompt, scope) if isinstance(prompt, Template) else ""
            texts = {name: self._text(value, scope) for name, value in options.items()}
            for name in _TURN_OPTIONS:
                if (value := call.option(name)) is not None:
                    texts[name] = self._turns(value, scope)
            return PlannedCall(text, texts, item, images=self._images(call, scope))
        except StepFailed as error:
            return PlannedCall("", item=item, fault=error.failed.message)

    def _turns(self, value: Value, scope: Scope) -> str:
        """Return examples or messages as JSON; a reference to an unknown value is marked."""
        from .operations.operation import option_value

        if isinstance(value, ListValue):
            return f"[{', '.join(self._turns(each, scope) for each in value.items)}]"
        if self._all_known(value, scope):
            return json.dumps(option_value(value, scope), ensure_ascii=False)
        if isinstance(value, ObjectValue):
            entries = (f'"{key.constant}": {self._turns(entry, scope)}' for key, entry in value.entries)
            return f"{{{', '.join(entries)}}}"
        return f"{UNKNOWN}{format_value(value)}{UNKNOWN_END}"

    def _images(self, call: Call, scope: Scope) -> int:
        """Return the maximum number of images that a call sends."""
        from .operations.operation import option_value

        value = call.option("images")
        if value is None:
            return 0
        if not self._all_known(value, scope):
            return len(value.items) if isinstance(value, ListValue) else MOST_IMAGES
        found = option_value(value, scope)
        return len(found) if isinstance(found, list) else 1

    def _text(self, template: Template, scope: Scope) -> str:
        return "".join(
            part.value if isinstance(part, Text) else self._reference(part, scope) for part in template.parts
        )

    def _reference(self, reference: Reference, scope: Scope) -> str:
        if not self._is_known(reference, scope):
            return f"{UNKNOWN}{format_reference(reference)}{UNKNOWN_END}"
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


def _samples(call: Call) -> int:
    """Return the number of samples of a call (``n=``)."""
    value = call.option("n") if call.operation == "LLM" else None
    return value.value if isinstance(value, Scalar) and type(value.value) is int else 1


def _repeated(once: PlannedStep, times: int | None, each: str, call: Call) -> PlannedStep:
    """Return the plan of an EACH whose inner call has the plan ``once``, for ``times`` elements (None: not known)."""
    if once.most is None:  # the number of calls is not known for any element
        return evolve(once, each=f"{once.each}, for each {each}")
    if times is None:
        if not once.most and once.inner is None:
            return once  # no model is called
        return evolve(once, most=None, least=None, per=once.most, each=each)
    least = once.most if once.least is None else once.least
    least = 0 if call.option("when") is not None else least * times
    most = once.most * times
    return evolve(once, most=most, least=None if least == most else least, times=times)


def _visible(text: str) -> str:
    return text.replace(UNKNOWN, "«").replace(UNKNOWN_END, "»")
