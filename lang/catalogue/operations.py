"""The operations that a script may call: their arguments and options.

``runtime.lwt.operations`` implements the operations. A plugin registers an operation, with its signature and its runner,
through the entry point group ``knotwork.operations``; the grammar does not change.
"""

from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

Kind = Literal[
    "template", "expression", "json", "list", "call", "string", "strings", "checks", "int", "float", "type", "name",
    "condition", "value",
]  # fmt: skip


@frozen
class Parameter:
    """A positional argument.

    The kinds are template (a prompt), expression (a string without references), json (a constant value), list (a reference to a
    list) and call.
    """

    name: str
    kind: Kind
    doc: str


@frozen
class OptionSpec:
    """An option. ``values`` are the allowed values; ``minimum`` and ``maximum`` are the inclusive bounds of a number.

    Options of two kinds can use values of other steps: condition (a string that contains an expression, whose values are
    references) and value (a reference or a constant). The kind checks is a text check, or a list of text checks, as read by
    ``evaluate.text_checks``.
    """

    name: str
    kind: Kind
    doc: str
    values: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None


@frozen
class Signature:
    """An operation's name, its required positional arguments in order, and its options by name.

    ``instead`` names an option that replaces the arguments. ``required`` names the options that must be given.
    ``bindings`` is the spec of options with any other name; None if other names are invalid.
    """

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    options: Mapping[str, OptionSpec] = field(factory=dict)
    example: str = ""
    instead: str = ""
    required: tuple[str, ...] = ()
    bindings: OptionSpec | None = None
    option_names: tuple[str, ...] = field(init=False, eq=False, repr=False)
    """The names of all options, including the options that every operation has."""

    def option(self, name: str) -> OptionSpec | None:
        """Return the spec of option ``name``: from this operation, from ``COMMON_OPTIONS``, or from ``bindings``."""
        return self.options.get(name) or COMMON_OPTIONS.get(name) or self.bindings

    @option_names.default
    def _all_names(self) -> tuple[str, ...]:
        return (*self.options, *(name for name in COMMON_OPTIONS if name not in self.options))


def _options(*specs: OptionSpec) -> dict[str, OptionSpec]:
    return {spec.name: spec for spec in specs}


COMMON_OPTIONS: Mapping[str, OptionSpec] = _options(
    OptionSpec(
        "when",
        "condition",
        "The condition of the step, an expression. If it is false, the step is skipped and its value is null.",
    ),
)
"""The options of every operation, including plugins. The run implements these options, not the operation."""

TYPES = ("text", "json", "list", "int", "float", "bool")

LLM_OPTIONS = _options(
    OptionSpec("model", "string", "The name of a model that the host offers (default: the run's model)."),
    OptionSpec("system", "template", "The system prompt; it may contain references."),
    OptionSpec("temperature", "float", "Sampling temperature.", minimum=0, maximum=2),
    OptionSpec("max_tokens", "int", "Maximum number of tokens of an answer.", minimum=1, maximum=1_000_000),
    OptionSpec(
        "stop",
        "strings",
        "A text, or a list of up to four texts, at which the answer ends; the answer does not include it.",
    ),
    OptionSpec(
        "type", "type", 'The type of the answer; validated, with one repair. A choice is written "a" | "b".', TYPES
    ),
    OptionSpec(
        "retries", "int", "How often the call is repeated after a truncated or empty answer.", minimum=0, maximum=10
    ),
    OptionSpec(
        "timeout", "float", "Time limit of the call in seconds, including retries.", minimum=0.001, maximum=86_400
    ),
)

BUILTIN: Mapping[str, Signature] = {
    signature.name: signature
    for signature in (
        Signature(
            "LLM",
            "One answer of the language model.",
            (Parameter("prompt", "template", "The prompt; references are replaced by outputs."),),
            LLM_OPTIONS,
            '(mood)=LLM("Is this review glad or sad? {(input)}", type="glad" | "sad")',
        ),
        Signature(
            "CONST",
            "A constant JSON value.",
            (Parameter("value", "json", "A JSON value without references."),),
            {},
            '(labels)=CONST(["glad", "sad"])',
        ),
        Signature(
            "EXPR",
            "An expression over values of other steps, computed without a model. Options pass the values.",
            (Parameter("expression", "expression", "The expression; the options name its values."),),
            {},
            '(share)=EXPR("count / len(names)", count={(input)}["count"], names={(input)}["names"])',
            bindings=OptionSpec("value", "value", "A value of the expression, under this name."),
        ),
        Signature(
            "EACH",
            "Map: run the call once for each element of a list. The output is a list in the order of the input.",
            (
                Parameter("list", "list", "A reference to a list."),
                Parameter("call", "call", "An LLM call that may refer to {(item)} and {(index)}."),
            ),
            _options(
                OptionSpec(
                    "max_concurrency",
                    "int",
                    "Maximum number of concurrent calls of this step.",
                    minimum=1,
                    maximum=1000,
                ),
                OptionSpec(
                    "on_error",
                    "name",
                    "Result of a failed item: fail the step (default), keep null, or drop the item.",
                    ("fail", "keep", "drop"),
                ),
            ),
            '(moods)=EACH({(input)}["reviews"], LLM("Glad or sad? {(item)}", type="glad" | "sad"))',
        ),
        Signature(
            "GASL",
            "Commands on the run's graph and state. The output is the result of the last command.",
            (Parameter("commands", "template", "The program; references in it are values, never commands."),),
            _options(OptionSpec("file", "string", "A .gasl file next to the script, instead of the commands.")),
            '(hubs)=GASL("FIND nodes WHERE degree > 20 AS hubs")',
            instead="file",
        ),
        Signature(
            "SEED",
            "A Formula Seed: filter the context's reviews, extract fields with the model, compute. The output is an object.",
            (),
            _options(
                OptionSpec("file", "string", "The JSON file of the seed, next to the script."),
                OptionSpec("context", "value", "The context: an object with its reviews."),
                LLM_OPTIONS["model"],
            ),
            '(verdict)=SEED(file="allergy.seed.json", context={(input)}["restaurant"])',
            required=("file", "context"),
        ),
        Signature(
            "ANSWER",
            "An answer that is written, evaluated and rewritten until it is accepted. The output is the best answer.",
            (Parameter("instruct", "template", "The question or task; references are replaced by outputs."),),
            _options(
                OptionSpec("format", "template", "The form of the answer (default: any form)."),
                OptionSpec("criteria", "template", "The criteria of the judges; not needed if checks decide."),
                OptionSpec("check", "checks", 'A check such as "words:10..40", or a list of up to 20.'),
                OptionSpec("threshold", "float", "The lowest accepted score (default 0.8).", minimum=0, maximum=1),
                OptionSpec(
                    "iter_max",
                    "int",
                    "Maximum number of rounds of writing and evaluating (default 3).",
                    minimum=1,
                    maximum=10,
                ),
                OptionSpec(
                    "attempts", "int", "Number of answers written in each round (default 1).", minimum=1, maximum=8
                ),
                OptionSpec(
                    "judges",
                    "int",
                    "Number of judges of each answer, whose median counts (default 1).",
                    minimum=0,
                    maximum=9,
                ),
                OptionSpec("judge", "string", "The model of the judges (default: the model that writes)."),
                OptionSpec("template", "string", "The set of prompts.", ("default", "brief")),
                OptionSpec(
                    "ask", "name", "How an answer is requested; auto depends on the model.", ("auto", "json", "text")
                ),
                OptionSpec(
                    "scale", "name", "The scale of the scores; auto is unit, 0.0 to 1.0.", ("auto", "unit", "ten")
                ),
                *(LLM_OPTIONS[name] for name in ("model", "temperature", "max_tokens", "stop", "retries", "timeout")),
            ),
            '(final)=ANSWER("Why is the sky blue?", format="One sentence.", criteria="True and short.", check="words:..30")',
        ),
    )
}
"""The built-in operations by name."""


# The functions and methods of expressions: their numbers of arguments, their keywords and their results.
# ``lang.evaluate.expr`` implements them. See ``docs/design/seed.md#expressions``.


@frozen
class Function:
    """A function or a method: ``least`` and ``most`` arguments (None: any number), keywords, and a one-sentence description.

    ``comprehension``: the first argument may be an ``element for ...`` without brackets. ``gives`` is the kind of every result; "" if
    the kind varies.
    """

    name: str
    signature: str
    doc: str
    least: int
    most: int | None
    keywords: tuple[str, ...] = ()
    comprehension: bool = False
    gives: Literal["boolean", "number", "text", "list", ""] = ""


def _table(*functions: Function) -> Mapping[str, Function]:
    return {function.name: function for function in functions}


FUNCTIONS = _table(
    Function("abs", "abs(x)", "The absolute value of x.", 1, 1, gives="number"),
    Function("all", "all(xs)", "Whether every element is true; true for an empty list.", 1, 1, comprehension=True, gives="boolean"),
    Function("any", "any(xs)", "Whether an element is true; false for an empty list.", 1, 1, comprehension=True, gives="boolean"),
    Function("bool", "bool(x)", "Whether the value is true: not null, false, 0 or empty.", 1, 1, gives="boolean"),
    Function("ceil", "ceil(x)", "x rounded up to an integer.", 1, 1, gives="number"),
    Function("clamp", "clamp(x, low, high)", "x limited to the range from low to high.", 3, 3, gives="number"),
    Function("exp", "exp(x)", "e to the power x.", 1, 1, gives="number"),
    Function("float", "float(x)", "A number, or the number in a string, as a float.", 1, 1, gives="number"),
    Function("floor", "floor(x)", "x rounded down to an integer.", 1, 1, gives="number"),
    Function("int", "int(x)", "A number rounded towards zero, the number in a string; 1 for true, 0 for false.", 1, 1, gives="number"),
    Function("len", "len(xs)", "The number of elements, keys or characters.", 1, 1, comprehension=False, gives="number"),
    Function("ln", "ln(x)", "The natural logarithm; the same as log(x).", 1, 1, gives="number"),
    Function("log", "log(x)", "The natural logarithm; log(x, base) has another base.", 1, 2, gives="number"),
    Function("log10", "log10(x)", "The logarithm to base 10.", 1, 1, gives="number"),
    Function("log2", "log2(x)", "The logarithm to base 2.", 1, 1, gives="number"),
    Function("max", "max(xs)", "The greatest element or argument; with default=0, 0 for an empty list.", 1, None, ("default",), True),
    Function("median", "median(xs)", "The middle number, or the mean of the two middle ones.", 1, 1, comprehension=True, gives="number"),
    Function("min", "min(xs)", "The least element or argument; with default=0, 0 for an empty list.", 1, None, ("default",), True),
    Function("mode", "mode(xs)", "The most frequent element; the first of several equally frequent elements.", 1, 1, comprehension=True),
    Function("percentile", "percentile(xs, p)", "The percentile for the share p from 0 to 1, interpolated linearly.", 2, 2, gives="number"),
    Function("round", "round(x)", "The nearest integer, halves to even; round(x, digits) keeps digits.", 1, 2, gives="number"),
    Function("set", "set(xs)", "The distinct elements; sorted(set(xs)) is a list.", 0, 1, comprehension=True),
    Function("sorted", "sorted(xs)", "The elements in ascending order; reverse=True: descending.", 1, 1, ("reverse",), True, gives="list"),
    Function("sqrt", "sqrt(x)", "The square root.", 1, 1, gives="number"),
    Function("stdev", "stdev(xs)", "The standard deviation of a sample (divisor n - 1).", 1, 1, comprehension=True, gives="number"),
    Function("str", "str(x)", "The value as a string, a number in JSON's form.", 1, 1, gives="text"),
    Function("sum", "sum(xs)", "The sum of numbers, exactly rounded; 0 for an empty list.", 1, 2, comprehension=True, gives="number"),
    Function("variance", "variance(xs)", "The variance of a sample (divisor n - 1).", 1, 1, comprehension=True, gives="number"),
)  # fmt: skip
"""All functions by name."""

METHODS = _table(
    Function("count", "xs.count(x)", "How often a list contains x, or a string contains a string.", 1, 1, gives="number"),
    Function("endswith", "text.endswith(end)", "Whether the string ends with end.", 1, 1, gives="boolean"),
    Function("get", 'object.get("key", default)', "The value of the key; if the key is missing, the default or null.", 1, 2),
    Function("lower", "text.lower()", "The string in lower case.", 0, 0, gives="text"),
    Function("split", "text.split(separator)", "The parts between the separators (default: between spaces).", 0, 1, gives="list"),
    Function("startswith", "text.startswith(start)", "Whether the string begins with start.", 1, 1, gives="boolean"),
    Function("strip", "text.strip()", "The string without surrounding spaces, or without the given characters.", 0, 1, gives="text"),
    Function("upper", "text.upper()", "The string in upper case.", 0, 0, gives="text"),
)  # fmt: skip
"""All methods by name."""
