"""Compilation of a seed's steps into one generated function with the same values and errors as the interpreter.

The function is the fast path for values of common types and sizes. If a guard fails, or the function raises any exception,
the interpreter computes all steps, and the interpreter's result is used.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

from attrs import frozen

from ...trees import walk
from ...trees.expr import Call, Comprehension, Expr, Field, Name
from ...trees.seed import (
    Aggregate,
    Case,
    Const,
    DefineFilter,
    FilterUse,
    Formula,
    FormulaSeed,
    Lookup,
    Reduce,
    SeedStep,
    Tally,
)
from ..expr.generator import call, function_of
from ..expr.generator_types import ANYTHING, BOOLEAN, CHECKED, Code, Kind, constant_kind, integer, number, union
from ..expr.generator_types import SPACE as EXPRESSIONS
from ..expr.generator_writer import Unsupported, Writer, cost_bound, memory_bound
from ..expr.values import ExprError, Meter, checked_result
from .fused_loops import SPACE, Loop, finder
from .fusion import Reduction, conjuncts, of_aggregate, of_call
from .interpreter import Computed, Reduced, Row, aggregate, interpret, meta_keys, tally
from .step_dependencies import EXTRACTIONS, Reads, names_in, parts, reads_extractions, reads_of, unknown_rows

# The generated Python function consists of loops over the rows; the steps that need no rows are between the loops.
# A step that needs the result of a loop comes after that loop; an aggregate that needs such a step is computed by a later loop.

_MOST_NODES = 6_000
"""Maximum number of nodes in a seed's steps. Compiling a larger seed takes longer than it saves."""
_MOST_PARAMETERS = 100
_WORD = re.compile(r"[A-Za-z_]\w*")
_COUNT_BITS = 40
_COUNT = integer(_COUNT_BITS)


def generated(seed: FormulaSeed) -> Callable[[Sequence[Any], Mapping[str, Any]], dict[str, Any]]:
    """Return a function ``(rows, context) -> values of all steps``, which may raise any exception.

    Raises ``Unsupported`` if no such function can be generated.
    """
    nodes = (node for step in seed.steps for node in walk(step))
    names = [step.name for step in seed.steps]
    if sum(1 for _ in islice(nodes, _MOST_NODES + 1)) > _MOST_NODES or len(set(names)) < len(names):
        raise Unsupported
    return _Emitter(seed).function()


class _Emitter:
    """Writes the function of one seed. ``stages`` maps each step's name to the loop after which the step's value is available."""

    def __init__(self, seed: FormulaSeed) -> None:
        self.seed = seed
        self.writer = Writer(self._resolve, self._call, {**EXPRESSIONS, **SPACE})
        self.fields = seed.row_fields
        self.meta = meta_keys(seed)
        self.filters: dict[str, tuple[Expr, ...]] = {}
        self.values: dict[str, Code] = {}
        self.stages: dict[str, int] = {}
        self.loops: list[Loop] = [self._loop(0)]
        self.sections: list[list[str]] = [[]]
        self.context: dict[str, str] = {}
        self.stage = 0
        self.has_elements = False
        self.per_row = self.fixed = self.memory = 0
        self.sizes: dict[str, int] = {}
        self.size = 0

    def function(self) -> Callable[[Sequence[Any], Mapping[str, Any]], dict[str, Any]]:
        """Write the code of all steps, and return the compiled function."""
        for step in self.seed.steps:
            self._charge(step)
            self._grow(step)
            self._step(step)
        keep, body = self.writer.keep, []
        functions: list[str] = []
        for loop, section in zip(self.loops, self.sections, strict=True):
            body += [*loop.lines(), *section]
            lines, space = loop.functions()
            functions += lines
            self.writer.space |= space
        head = ["n = len(rows)", *(["context.__class__ is dict or fail()"] if self.context else [])]
        bounds = f"n, {self.per_row}, {self.fixed}, {self.memory}"
        head.append(f"meter = measured({bounds})" if self.writer.meter else f"bounded({bounds})")
        head += [f"{local} = known(context[{keep(name)}])" for name, local in self.context.items()]
        if self.has_elements:
            fields, meta = keep(dict.fromkeys(self.fields)), keep(dict.fromkeys(self.meta))
            head.append(f"elements = elements_of(rows, {fields}, {meta})")
        values = ", ".join(f"{keep(name)}: {self._own(name, code)}" for name, code in self.values.items())
        lines = [
            *functions,
            f"def run({', '.join(['rows', 'context', *self._found_often(body)])}):",
            *(f" {line}" for line in [*head, *body, f"return {{{values}}}"]),
        ]
        return function_of("\n".join(lines) + "\n", "run", self.writer.space)

    def _own(self, name: str, code: Code) -> str:
        """Return the code that writes a value into the result. Lists and objects of the seed itself are copied."""
        from_seed = isinstance(self.seed.step_by_name[name], Const | Lookup | Case) and code.kind.may("other")
        return f"copied({code.text})" if from_seed else code.text

    def _found_often(self, body: Sequence[str]) -> list[str]:
        """Return parameters for the names of the namespace that loops use.

        Parameters with defaults are local variables, which Python reads faster.
        """
        words = dict.fromkeys(word for line in body if line.startswith(" ") for word in _WORD.findall(line))
        return [f"{word}={word}" for word in words if word in self.writer.space][:_MOST_PARAMETERS]

    def _charge(self, step: SeedStep) -> None:
        """Add the step's maximum cost to the total. Only costs that are known in advance are included."""
        cost = 2 + sum(1 if isinstance(part, FilterUse) else cost_bound(part) for part in parts(step))
        if reads_extractions(step):
            self.per_row += cost
            self.memory += sum(memory_bound(part) for part in parts(step) if not isinstance(part, FilterUse))
            self.memory += 16 * sum(1 for node in walk(step) if isinstance(node, Comprehension))
        self.fixed += cost

    def _grow(self, step: SeedStep) -> None:
        """Count the nodes of a step. The conditions of a filter are counted at each use, because nested filters can grow exponentially."""
        used = [part.name for part in parts(step) if isinstance(part, FilterUse)]
        size = sum(1 for _ in walk(step)) + sum(self.sizes.get(name, 0) for name in used)
        self.size += size
        if isinstance(step, DefineFilter):
            self.sizes[step.name] = size
        if self.size > 2 * _MOST_NODES:
            raise Unsupported

    def _loop(self, stage: int) -> Loop:
        return Loop(self.fields, self.writer, self._resolve, f"s{stage}")

    def _resolve(self, node: Name | Field) -> Code:
        if isinstance(node, Field):
            if node.namespace != "context":
                raise Unsupported
            local = self.context.setdefault(node.name, f"x{len(self.context)}")
            return Code(local, ANYTHING, simple=True)
        if node.name == EXTRACTIONS:
            self.has_elements = True
            return Code("elements", ANYTHING, simple=True)
        if node.name not in self.values:
            raise Unsupported
        self.stage = max(self.stage, self.stages[node.name])
        return self.values[node.name]

    def _add(self, reduction: Reduction) -> tuple[str, Kind | None]:
        """Add a reduction to the first loop in which its names are known. Steps that use the result come after that loop."""
        exprs = [*reduction.where, *([] if reduction.element is None else [reduction.element])]
        names = {name for expr in exprs for name in names_in(expr)}
        if not names <= set(self.values):
            raise Unsupported
        at = max((self.stages[name] + 1 for name in names if self.stages[name] >= 0), default=0)
        while len(self.loops) <= at:
            self.loops.append(self._loop(len(self.loops)))
            self.sections.append([])
        self.stage = max(self.stage, at)
        return self.loops[at].add(reduction)

    def _call(self, writer: Writer, expr: Call) -> Code:
        """Return the code of a call in a formula. A reduction becomes the result of a loop."""
        if expr == Call("len", (Name(EXTRACTIONS),)):
            return Code("n", _COUNT, simple=True)
        reduction = self._reduction(expr)
        if reduction is None:
            return call(writer, expr)
        name, element = self._add(reduction)
        if reduction.kind == "count":
            return Code(name, _COUNT, simple=True)
        if reduction.kind == "exists":
            return Code(name if expr.function == "any" else f"(not {name})", BOOLEAN)
        kind = CHECKED if element is None or not element.numeric else element
        if expr.function == "sum":
            return _sum(name, kind)
        options = [writer.write(value) for _, value in expr.keywords]
        function = "greatest" if expr.function == "max" else "least"
        text = f"{function}({', '.join([name, *(code.text for code in options)])})"
        return Code(text, union(kind, *(code.kind for code in options)))

    def _reduction(self, expr: Call) -> Reduction | None:
        if expr.keywords and (
            expr.function not in ("max", "min") or [name for name, _ in expr.keywords] != ["default"]
        ):
            return None
        found = of_call(expr, self.fields, self.meta)
        if found is None or found.element is None or expr.function == "sum":
            return found
        # The largest of several strings is computed by the interpreter's function.
        return found if self.loops[0].kind_of(found.element).numeric else None

    def _step(self, step: SeedStep) -> None:
        self.stage = 0
        match step:
            case DefineFilter():
                self.filters[step.name] = conjuncts(step.where, self.filters)
                self._add(Reduction("check", self.filters[step.name]))
            case Const():
                self.values[step.name], self.stages[step.name] = self._value(step.value), -1
            case Aggregate():
                self._line(step.name, self._aggregate(step))
            case Tally():
                name, _ = self._add(of_aggregate(step, self.filters))
                self._line(step.name, self.writer.result(self.writer.ask(_tallier(step), Code(name, ANYTHING))))
            case Reduce():
                raise Unsupported  # a model writes its value; the interpreter takes it from the run
            case Formula():
                code = self.writer.write(step.expr)
                self._line(step.name, self.writer.result(code))
            case Case():
                self._line(step.name, self._case(step))
            case Lookup():
                kinds = [constant_kind(value) for value in (*(value for _, value in step.table), step.default)]
                source = self.writer.write(step.source)
                self._line(step.name, self.writer.ask(finder(step), source, kind=union(*kinds)))

    def _value(self, value: Any) -> Code:
        """Return the code of a JSON value in the seed. If the value is null, a comparison with it is not compiled as a test for null."""
        if isinstance(value, list | dict):
            return Code(self.writer.keep(value), constant_kind(value), simple=True)
        code = self.writer.constant(value)
        return Code(code.text, code.kind, simple=True, value=() if value is None else code.value)

    def _aggregate(self, step: Aggregate) -> Code:
        reduction = of_aggregate(step, self.filters)
        name, kind = self._add(reduction)
        if step.operation == "count":
            return Code(name, _COUNT)
        if kind is None:
            raise Unsupported
        if step.operation == "sum":
            return self.writer.result(_sum(name, kind if kind.numeric else CHECKED))
        if not kind.numeric:
            code = self.writer.ask(_aggregator(step), Code(name, ANYTHING))
            return self.writer.result(code)
        try:
            checked_result(step.default)
        except ExprError:
            raise Unsupported from None
        default = self._value(step.default)
        if default.kind.may("other"):
            default = self.writer.result(default)
        function = "greatest" if step.operation == "max" else "least"
        return Code(f"({function}({name}) if {name} else {default.text})", union(kind, default.kind))

    def _case(self, step: Case) -> Code:
        tests = [self.writer.result(self.writer.write(rule.test)).text for rule in step.rules]
        values = [self._value(value) for value in (*(rule.then for rule in step.rules), step.otherwise)]
        text = "".join(f"{value.text} if {test} else " for test, value in zip(tests, values[:-1], strict=True))
        return Code(f"({text}{values[-1].text})", union(*(value.kind for value in values)))

    def _line(self, name: str, code: Code) -> None:
        local = self.writer.local("v")
        self.sections[self.stage].append(f"{local} = {code.text}")
        self.values[name] = Code(local, code.kind, simple=True)
        self.stages[name] = self.stage


def _sum(name: str, kind: Kind) -> Code:
    """Return the code of the sum of a list. The sum of an empty list is the integer 0, whatever the type of the elements."""
    return Code(f"total({name})", number(kind.bits + _COUNT_BITS, whole=True, fraction=kind.may("float")))


def _aggregator(step: Aggregate) -> Callable[[Meter, Any], Any]:
    return lambda meter, elements: aggregate(step, elements, meter)


def _tallier(step: Tally) -> Callable[[Meter, Any], Any]:
    return lambda meter, elements: tally(step, elements, meter)


@frozen
class Compute:
    """A seed that is compiled once, and can then be computed for the extractions of many contexts."""

    seed: FormulaSeed
    quick: Callable[[Sequence[Row], Mapping[str, Any]], dict[str, Any]] | None
    """The generated function; None if the seed has no generated form, for example because it is too large or uses unknown names."""
    reads: Mapping[str, Reads]

    @classmethod
    def of(cls, seed: FormulaSeed) -> "Compute":
        """Compile ``seed``. Never fails: a seed that can't be compiled falls back to the interpreter."""
        try:
            return cls(seed, generated(seed), reads_of(seed))
        except (Unsupported, RecursionError):  # a tree that was built in code can be too deep
            return cls(seed, None, reads_of(seed))

    def run(
        self, rows: Sequence[Row], context: Mapping[str, Any], reduced: Mapping[str, Reduced] | None = None
    ) -> Computed:
        """Return the same result as ``interpret(seed, rows, context, reduced=reduced)``, or raise the same error.

        ``rows`` are objects ``{"extraction": {...}, "meta": {...}, "invalid"?: FIELDS, "invalid_meta"?: KEYS}``, one for each successful
        extraction. The rows are not changed.
        """
        unknown = unknown_rows(self.reads, rows)
        if self.quick is not None and len(rows) not in unknown.values():
            try:
                return Computed(self.quick(rows, context), (), unknown)
            except Exception:  # noqa: S110 - the interpreter computes the result, or reports a clearer error
                pass
        return interpret(self.seed, rows, context, reduced=reduced)
