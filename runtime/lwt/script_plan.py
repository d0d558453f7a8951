"""Checks a prompt script, and derives the plan of its run and its dry run.

A check alone loads neither an event loop nor a model library.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field, frozen

from ...lang.catalogue.operations import BUILTIN, Signature
from ...lang.dependencies import final_step, layers, needed, step_dependencies
from ...lang.diagnostic import Diagnostic, has_errors, sort_key
from ...lang.literals import Reading, read
from ...lang.printer.lwt_printer import format_reference, format_value
from ...lang.trees import Node
from ...lang.trees.lwt import ABSENT, MISSING, Call, Reference, Scalar, Script, Step, Template, Text, references
from ..results import StepFailed, StepResult, Trace
from ..templates import Scope, resolve, text_of

if TYPE_CHECKING:
    from ...lang.linter.lwt import Context
    from ...lang.parse.expr import ExprRead


@frozen
class ScriptPlan:
    """The result of checking a script: its diagnostics, in source order, and the data about its steps that a run needs.

    ``graph`` maps each step to the steps that it refers to. ``final`` is the step whose output is the result, ``rule`` the reason
    for choosing this step; ``needed`` are the steps that the final step depends on. ``expressions`` maps the text of each
    expression in the script to the parsed expression.
    """

    diagnostics: tuple[Diagnostic, ...]
    graph: dict[str, tuple[str, ...]]
    final: str
    rule: str
    needed: set[str]
    expressions: "dict[str, ExprRead]"

    def require(self, script: Script) -> None:
        """Raise ``ScriptError`` if the script has errors, ``NotConfigured`` if a model name looks like an API key."""
        from ..models.caller import refuse_keys
        from ..results import ScriptError

        refuse_keys(script)
        if has_errors(self.diagnostics):
            raise ScriptError(self.diagnostics, script.source)


def plan_of(
    script: Script,
    input: Any = MISSING,
    models: Collection[str] | None = None,
    given: Collection[str] = (),
    *,
    folder: Path | None = None,
    operations: Mapping[str, Signature] | None = None,
) -> ScriptPlan:
    """Check ``script`` and choose its steps.

    ``input`` is the input of the run (``MISSING``: unknown; ``ABSENT``: the run has none, and a reference to it is an error).
    ``models`` are the names that the host offers (None: any). ``given`` are the earlier results that the script may refer to.
    ``folder`` is the folder for ``file=`` (None: files are not checked). ``operations`` are the operations that the host offers
    (None: the built-in operations, and the installed plugins that the script names).

    Scripts are immutable. So a plan without input, earlier results and files is cached with the script, because a server runs the
    same script many times.
    """
    plans: dict[object, ScriptPlan] = vars(script).setdefault("_plans", {})
    names_files = folder is not None and any(
        step.call.options and step.call.option("file") is not None for step in script.steps
    )
    key = (input is ABSENT, None if models is None else tuple(models))
    is_plain = (input is MISSING or input is ABSENT) and not given and not names_files and operations is None
    plan = plans.get(key) if is_plain else None
    if plan is None:
        plan = _planned(script, input, models, given, folder if names_files else None, operations)
        if is_plain:
            plans[key] = plan
    return plan


def _planned(
    script: Script,
    input: Any,
    models: Collection[str] | None,
    given: Collection[str],
    folder: Path | None,
    operations: Mapping[str, Signature] | None,
) -> ScriptPlan:
    from ...lang.linter.lwt import diagnose

    context = context_of(script, input, models, given, operations)
    final, rule = context.final or ("", "last")
    found = diagnose(context)
    if folder is not None:
        from .operations.seed_step import faults_of_files

        found = sorted([*found, *faults_of_files(script, folder)], key=sort_key)
    return ScriptPlan(tuple(found), context.graph, final, rule, context.needed, context.expressions)


def context_of(
    script: Script,
    input: Any = MISSING,
    models: Collection[str] | None = None,
    given: Collection[str] = (),
    operations: Mapping[str, Signature] | None = None,
) -> "Context":
    """Return the linter's context of a script; the arguments are the same as for ``plan_of``."""
    from ...lang.linter.lwt import Context

    if operations is None:
        named = {step.call.operation for step in script.steps}
        operations = BUILTIN
        if not named <= BUILTIN.keys():
            from .operations import signatures  # loads the plugins' packages

            operations = signatures(named)
    return Context(script, input, operations, models, given)


# A dry run shows the prompts as far as they are known before any call. References to the input and to constants are filled in.

_TEXT_OPTIONS = ("system", "format", "criteria")
"""The options whose values are sent to the model."""
UNKNOWN, UNKNOWN_END = "\ue000", "\ue001"
"""Marks around unknown parts of a prompt: private-use characters, which ordinary scripts do not contain."""


@frozen
class PlannedCall:
    """One call: the prompt as far as it is known, and the index of EACH's item (``item``). ``fault``: why the call would fail.

    ``options`` maps the names of other options that are sent to the model (system prompt, format, criteria) to their texts.
    """

    prompt: str
    options: Mapping[str, str] = field(factory=dict)
    item: int | None = None
    fault: str = ""


@frozen
class PlannedStep:
    """A step and its calls. ``most`` is the maximum number of calls, None if it depends on an answer; ``each`` then names the elements.

    ``least`` is the minimum number of calls of a loop that ends as soon as an answer is good enough. ``result`` is what is known
    about the result: why the condition skips the step, or the computed value. ``fault``: why the step fails. ``is_conditional``:
    the condition can't be evaluated yet.
    """

    step: Step
    calls: tuple[PlannedCall, ...] = ()
    most: int | None = 0
    each: str = ""
    result: str = ""
    fault: str = ""
    is_conditional: bool = False
    least: int | None = None

    @property
    def source(self) -> str:
        """The source of the constant or the expression of a step without calls; "" for other steps."""
        call = self.step.call
        return format_value(call.arguments[0]) if call.operation in ("CONST", "EXPR") and call.arguments else ""

    @property
    def settings(self) -> list[str]:
        """The options of the call, such as ``temperature=0``, except options that are sent to the model as text."""
        call = self.step.call
        inner = call.arguments[-1] if call.operation == "EACH" and call.arguments else None
        options = (*call.options, *(inner.options if isinstance(inner, Call) else ()))
        return [f"{each.name}={format_value(each.value)}" for each in options if each.name not in _TEXT_OPTIONS]

    def as_json(self) -> dict[str, Any]:
        """Return the step as JSON."""
        return {
            "step": self.step.id,
            "operation": self.step.call.operation,
            "calls": self.most if self.least in (None, self.most) else None,
            **({"calls_at_least": self.least, "calls_at_most": self.most} if self.least is not None else {}),
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
    """The planned steps by layer, and the range of the number of calls. ``open_ends``: steps whose number of calls is unknown."""

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
        """The maximum number of calls of all steps except ``open_ends``."""
        return sum(step.most or 0 for step in self.steps)

    @property
    def open_ends(self) -> list[PlannedStep]:
        """The steps whose number of calls is not known."""
        return [step for step in self.steps if step.most is None]

    def as_json(self) -> dict[str, Any]:
        """Return the dry run as JSON."""
        most = None if self.open_ends else self.most
        return {
            "layers": [[step.as_json() for step in layer] for layer in self.layers],
            "calls": most if most == self.least else None,
            "calls_at_least": self.least,
            "calls_at_most": most,
        }


def dry_run(script: Script, *, input: Any = None, all_steps: bool = False) -> DryRun:
    """Return the steps of a checked script with their prompts. No model is called or needed."""
    graph = step_dependencies(script)
    chosen = final_step(script, graph)
    wanted = set(graph) if all_steps or chosen is None else needed(graph, chosen[0])
    steps = {step.id: step for step in script.steps}
    view = _KnownValues(Scope("", input, {}, Trace(), lambda step, message: None, script.mode))
    levels = layers({step: inputs for step, inputs in graph.items() if step in wanted})
    return DryRun(tuple(tuple(view.plan(steps[step]) for step in level) for level in levels))


@define
class _KnownValues:
    """The values that are known before a run: the input, constants, and expressions of known values."""

    scope: Scope
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
            if call.operation in ("CONST", "EXPR"):
                return PlannedStep(step, result=self._computed(step, scope, condition is None))
        except StepFailed as error:
            return PlannedStep(step, fault=error.failed.message)
        return evolve(self._planned(step, scope), is_conditional=condition is not None)

    def _planned(self, step: Step, scope: Scope) -> PlannedStep:
        """Return the model calls of a step."""
        call = step.call
        if call.operation == "SEED":
            file = call.option("file")
            name = file.constant if isinstance(file, Template) else None
            return PlannedStep(step, most=None, each=f"review that {name or 'its seed'} keeps")
        if call.operation == "EACH" and len(call.arguments) == 2 and isinstance(call.arguments[1], Call):
            return self._each(step, call.arguments[0], call.arguments[1], scope)
        if call.operation == "ANSWER":
            return self._answer(step, scope)
        return PlannedStep(step, (self._call(call, scope),), 1)

    def _answer(self, step: Step, scope: Scope) -> PlannedStep:
        """Return the range of calls that an iterative answer needs.

        The minimum is one accepted round, without judges if the answer has checks; the maximum is all rounds.
        """
        call, planned = step.call, self._call(step.call, scope)
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
        """Compute a step without calls if its inputs are known, and store the value if ``runs`` (the step certainly runs)."""
        call = step.call
        if not self._all_known(call, scope):
            return ""
        from .operations.basic import expr_value
        from .operations.operation import constant

        value = constant(call.arguments[0]) if call.operation == "CONST" else expr_value(call, scope)
        if runs:
            self.known[step.id] = StepResult(step.id, "done", text_of(value), value)
        return "" if call.operation == "CONST" else f"= {text_of(value)}"

    def _each(self, step: Step, source: Any, inner: Call, scope: Scope) -> PlannedStep:
        if not isinstance(source, Reference) or not self._is_known(source, scope):
            reference = format_reference(source) if isinstance(source, Reference) else "its list"
            return PlannedStep(step, (self._call(inner, scope),), None, f"element of {reference}")
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
        calls = tuple(self._call(inner, scope.at(index, item), index) for index, item in enumerate(items))
        return PlannedStep(step, calls, len(items))

    def _call(self, call: Call, scope: Scope, item: int | None = None) -> PlannedCall:
        prompt = call.arguments[0] if call.arguments else None
        options = {name: value for name in _TEXT_OPTIONS if isinstance(value := call.option(name), Template)}
        try:
            text = self._text(prompt, scope) if isinstance(prompt, Template) else ""
            return PlannedCall(text, {name: self._text(value, scope) for name, value in options.items()}, item)
        except StepFailed as error:
            return PlannedCall("", item=item, fault=error.failed.message)

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


def _visible(text: str) -> str:
    return text.replace(UNKNOWN, "«").replace(UNKNOWN_END, "»")
