"""The operations that a script may call: their arguments and options.

``runtime.lwt.operations`` implements them. A plugin adds a signature here and a runner there through the
entry point group ``knotwork.operations``; the grammar does not change.
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

    Kinds: template (a prompt), expression (a string without references), json (a constant value), list (a reference to a
    list), call.
    """

    name: str
    kind: Kind
    doc: str


@frozen
class OptionSpec:
    """An option. ``values`` are the allowed values; ``minimum``/``maximum`` bound a number, both inclusive.

    Two kinds access other steps' values: condition (a string with an expression, references are its values) and value (a
    reference or a constant). checks is a text check, or a list of them, as read by ``evaluate.text_checks``.
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

    ``instead`` names an option that replaces the arguments. ``required`` options must be given.
    ``bindings``: the spec of options with any other name; None if there are none.
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
    """All named options, including those of every operation."""

    def option(self, name: str) -> OptionSpec | None:
        """Return the spec of option ``name``: its own, one of every operation, or a binding."""
        return self.options.get(name) or COMMON_OPTIONS.get(name) or self.bindings

    @option_names.default
    def _all_names(self) -> tuple[str, ...]:
        return (*self.options, *(name for name in COMMON_OPTIONS if name not in self.options))


def _options(*specs: OptionSpec) -> dict[str, OptionSpec]:
    return {spec.name: spec for spec in specs}


COMMON_OPTIONS: Mapping[str, OptionSpec] = _options(
    OptionSpec(
        "when", "condition", "Whether the step runs: an expression; where it is false, the step's value is null."
    ),
)
"""The options of every operation, including plugins; the run implements them, not the operation."""

TYPES = ("text", "json", "list", "int", "float", "bool")

LLM_OPTIONS = _options(
    OptionSpec("model", "string", "A model that the host offers under this name; the run's own model without it."),
    OptionSpec("system", "template", "The system prompt; references work in it as in the prompt."),
    OptionSpec("temperature", "float", "Sampling temperature.", minimum=0, maximum=2),
    OptionSpec("max_tokens", "int", "The most tokens that an answer may have.", minimum=1, maximum=1_000_000),
    OptionSpec("stop", "strings", "A text, or a list of up to four, at which the answer ends; it is not part of it."),
    OptionSpec(
        "type", "type", 'What the answer must be; validated, with one repair. A choice is written "a" | "b".', TYPES
    ),
    OptionSpec("retries", "int", "How often a cut or empty answer is asked for again.", minimum=0, maximum=10),
    OptionSpec("timeout", "float", "Seconds for the whole call, retries included.", minimum=0.001, maximum=86_400),
)

BUILTIN: Mapping[str, Signature] = {
    signature.name: signature
    for signature in (
        Signature(
            "LLM",
            "One completion by the language model.",
            (Parameter("prompt", "template", "What is asked; references are replaced by outputs."),),
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
            "An expression over values of other steps. It makes no call.",
            (
                Parameter(
                    "expression", "expression", "What is computed; values have the names that the options give them."
                ),
            ),
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
                OptionSpec("max_concurrency", "int", "Calls of this step under way at once.", minimum=1, maximum=1000),
                OptionSpec(
                    "on_error",
                    "name",
                    "What a failed item does: fail the step (default), be kept as null, or be dropped.",
                    ("fail", "keep", "drop"),
                ),
            ),
            '(moods)=EACH({(input)}["reviews"], LLM("Glad or sad? {(item)}", type="glad" | "sad"))',
        ),
        Signature(
            "GASL",
            "Commands on the run's graph and state; the output is what the last one gives.",
            (Parameter("commands", "template", "The program; references in it are values, never commands."),),
            _options(OptionSpec("file", "string", "A .gasl file beside the script, in place of the commands.")),
            '(hubs)=GASL("FIND nodes WHERE degree > 20 AS hubs")',
            instead="file",
        ),
        Signature(
            "SEED",
            "A Formula Seed: filter the context's reviews, extract from each by the model, compute. The output is its outputs.",
            (),
            _options(
                OptionSpec("file", "string", "A seed's JSON file beside the script."),
                OptionSpec("context", "value", "What the seed is about: an object with its reviews."),
                LLM_OPTIONS["model"],
            ),
            '(verdict)=SEED(file="allergy.seed.json", context={(input)}["restaurant"])',
            required=("file", "context"),
        ),
        Signature(
            "ANSWER",
            "An answer that is written, evaluated and written again until it is good enough. The output is the best one.",
            (Parameter("instruct", "template", "The question or task; references are replaced by outputs."),),
            _options(
                OptionSpec("format", "template", "The form that the answer should have; any without it."),
                OptionSpec("criteria", "template", "What a judge goes by; not needed where checks decide."),
                OptionSpec("check", "checks", 'A check such as "words:10..40", or a list of up to 20.'),
                OptionSpec("threshold", "float", "The least score that is accepted; 0.8.", minimum=0, maximum=1),
                OptionSpec("iter_max", "int", "The most rounds of writing and evaluating; 3.", minimum=1, maximum=10),
                OptionSpec("attempts", "int", "Answers written side by side in a round; 1.", minimum=1, maximum=8),
                OptionSpec("judges", "int", "Judges of each answer, whose median counts; 1.", minimum=0, maximum=9),
                OptionSpec("judge", "string", "The model that judges; the one that writes without it."),
                OptionSpec("template", "string", "The prompts that are used.", ("default", "brief")),
                OptionSpec(
                    "ask", "name", "How an answer is asked for; auto goes by the model.", ("auto", "json", "text")
                ),
                OptionSpec(
                    "scale", "name", "What a judge scores by; auto is unit, 0.0 to 1.0.", ("auto", "unit", "ten")
                ),
                *(LLM_OPTIONS[name] for name in ("model", "temperature", "max_tokens", "stop", "retries", "timeout")),
            ),
            '(final)=ANSWER("Why is the sky blue?", format="One sentence.", criteria="True and short.", check="words:..30")',
        ),
    )
}
"""The built-in operations by name."""


# The functions and methods of expressions: number of arguments, keywords, results.
# ``lang.evaluate.expr`` implements them. See ``docs/design/seed.md#expressions``.


@frozen
class Function:
    """A function or a method: minimum and maximum arguments (None: any number), keywords, and a one-sentence description.

    ``comprehension``: its first argument may be a bare ``element for ...``.
    """

    name: str
    signature: str
    doc: str
    least: int
    most: int | None
    keywords: tuple[str, ...] = ()
    comprehension: bool = False


def _table(*functions: Function) -> Mapping[str, Function]:
    return {function.name: function for function in functions}


FUNCTIONS = _table(
    Function("abs", "abs(x)", "The number without its sign.", 1, 1),
    Function("all", "all(xs)", "Whether every element is true; true of none.", 1, 1, comprehension=True),
    Function("any", "any(xs)", "Whether an element is true; false of none.", 1, 1, comprehension=True),
    Function("bool", "bool(x)", "Whether the value is true: not null, false, 0 or empty.", 1, 1),
    Function("ceil", "ceil(x)", "The least integer that is not below x.", 1, 1),
    Function("clamp", "clamp(x, low, high)", "x, but at least low and at most high.", 3, 3),
    Function("exp", "exp(x)", "e to the power x.", 1, 1),
    Function("float", "float(x)", "The number, or the number that a string writes, as a float.", 1, 1),
    Function("floor", "floor(x)", "The greatest integer that is not above x.", 1, 1),
    Function("int", "int(x)", "The number towards zero, the number that a string writes, or 1 for true and 0 for false.", 1, 1),
    Function("len", "len(xs)", "How many elements, keys or characters there are.", 1, 1, comprehension=False),
    Function("ln", "ln(x)", "The natural logarithm; log is the same.", 1, 1),
    Function("log", "log(x)", "The natural logarithm, or to a base: log(x, base).", 1, 2),
    Function("log10", "log10(x)", "The logarithm to base 10.", 1, 1),
    Function("log2", "log2(x)", "The logarithm to base 2.", 1, 1),
    Function("max", "max(xs)", "The greatest of a list or of the arguments; max(xs, default=0) of none.", 1, None, ("default",), True),
    Function("median", "median(xs)", "The middle number; of an even count the mean of the two in the middle.", 1, 1, comprehension=True),
    Function("min", "min(xs)", "The least of a list or of the arguments; min(xs, default=0) of none.", 1, None, ("default",), True),
    Function("mode", "mode(xs)", "The most frequent element, the first of equally frequent ones.", 1, 1, comprehension=True),
    Function("percentile", "percentile(xs, p)", "The number below which the share p (0 to 1) lies, interpolated linearly.", 2, 2),
    Function("round", "round(x)", "The nearest integer, a half to the even one; round(x, digits) a number with so many digits.", 1, 2),
    Function("set", "set(xs)", "The different elements; sorted(set(xs)) is a list again.", 0, 1, comprehension=True),
    Function("sorted", "sorted(xs)", "The elements in order; sorted(xs, reverse=True) from the greatest.", 1, 1, ("reverse",), True),
    Function("sqrt", "sqrt(x)", "The square root.", 1, 1),
    Function("stdev", "stdev(xs)", "The standard deviation of a sample: n - 1 in the divisor.", 1, 1, comprehension=True),
    Function("str", "str(x)", "The value as a string: a number as JSON writes it.", 1, 1),
    Function("sum", "sum(xs)", "The sum of numbers, exactly rounded; 0 of none.", 1, 2, comprehension=True),
    Function("variance", "variance(xs)", "The variance of a sample: n - 1 in the divisor.", 1, 1, comprehension=True),
)  # fmt: skip
"""All functions by name."""

METHODS = _table(
    Function("count", "xs.count(x)", "How often x stands in a list, or a string in a string.", 1, 1),
    Function("endswith", "text.endswith(end)", "Whether the string ends so.", 1, 1),
    Function("get", 'object.get("key", default)', "What stands under the key; the default, or null, where there is none.", 1, 2),
    Function("lower", "text.lower()", "The string in lower case.", 0, 0),
    Function("split", "text.split(separator)", "The parts between separators; between spaces without one.", 0, 1),
    Function("startswith", "text.startswith(start)", "Whether the string begins so.", 1, 1),
    Function("strip", "text.strip()", "The string without spaces around it, or without the characters given.", 0, 1),
    Function("upper", "text.upper()", "The string in upper case.", 0, 0),
)  # fmt: skip
"""All methods by name."""
