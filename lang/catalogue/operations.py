"""The operations that a script may call: their arguments and options.

``runtime.lwt.operations`` implements the operations. A plugin registers an operation, with its signature and its runner,
through the entry point group ``knotwork.operations``; the grammar does not change.
"""

from collections.abc import Mapping
from functools import partial
from typing import Literal

from attrs import field, frozen

Kind = Literal[
    "template", "expression", "json", "list", "call", "string", "strings", "checks", "int", "float", "type", "name",
    "condition", "value", "schema", "columns", "examples", "messages", "images",
]  # fmt: skip


@frozen
class Parameter:
    """A positional argument.

    The kinds are template (a prompt), expression (a string without references), string (a constant string), json (a constant
    value), list (a reference to a list) and call.
    """

    name: str
    kind: Kind
    doc: str


@frozen
class OptionSpec:
    """An option. ``values`` are the allowed values; ``minimum`` and ``maximum`` are the inclusive bounds of a number.

    Options of the kinds ``condition`` and ``value`` can use the outputs of other steps. A ``condition`` is a string that
    contains an expression, in which references stand for values. A ``value`` is a reference or a constant. The value of an
    option of the kind ``checks`` is one text check or a list of text checks, in the notation of ``evaluate.text_checks``.
    ``columns`` are one to four names of columns. Options of the kinds ``examples``, ``messages`` and ``images`` are values whose
    forms ``lang.conversation`` defines.
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

    ``instead`` names an option that replaces the arguments. ``required`` names the options that must be given. ``bindings`` is
    the spec of every option that has another name; if it is None, other names are invalid. If ``repeatable`` is true, ``EACH`` can
    run the operation for each element of a list: it changes nothing outside the run.
    """

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    options: Mapping[str, OptionSpec] = field(factory=dict)
    example: str = ""
    instead: str = ""
    required: tuple[str, ...] = ()
    bindings: OptionSpec | None = None
    repeatable: bool = False
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

MOST_SAMPLES = 25
"""Maximum number of samples of a call (``n=``)."""

TYPES = ("text", "json", "list", "int", "float", "bool")

LLM_OPTIONS = _options(
    OptionSpec("model", "string", "The name of a model that the host offers (default: the run's model)."),
    OptionSpec("system", "template", "The system prompt; it may contain references."),
    OptionSpec(
        "examples",
        "examples",
        'Answered examples, at most 50: [{"in": "Lovely!", "out": "glad"}], or a reference to such a list.',
    ),
    OptionSpec(
        "messages",
        "messages",
        'Earlier messages: [{"role": "user", "content": "Hello"}], or a reference to such a list; the prompt is the last one.',
    ),
    OptionSpec(
        "images",
        "images",
        "An image or a list of up to eight: a file in the script's folder, or a data URL; usually a reference to the input.",
    ),
    OptionSpec("temperature", "float", "Sampling temperature.", minimum=0, maximum=2),
    OptionSpec(
        "top_p",
        "float",
        "Nucleus sampling: the model samples from the most probable tokens, up to this total probability.",
        minimum=0,
        maximum=1,
    ),
    OptionSpec("seed", "int", "The seed of sampling, for models that have one.", minimum=-(2**63), maximum=2**63 - 1),
    OptionSpec(
        "n",
        "int",
        "Number of samples; the most frequent answer is the output. An odd number avoids most ties.",
        minimum=2,
        maximum=MOST_SAMPLES,
    ),
    OptionSpec("max_tokens", "int", "Maximum number of tokens of an answer.", minimum=1, maximum=1_000_000),
    OptionSpec(
        "stop",
        "strings",
        "A string, or a list of up to four strings, at which the answer ends; the answer does not include the string.",
    ),
    OptionSpec(
        "type", "type", 'The type of the answer; an invalid answer is repaired once. A choice is "a" | "b".', TYPES
    ),
    OptionSpec("min", "float", "The least number that the answer may be; with type=int or type=float."),
    OptionSpec("max", "float", "The greatest number that the answer may be; with type=int or type=float."),
    OptionSpec(
        "items",
        "type",
        'The type of the elements, such as int or "a" | "b"; with type=list.',
        ("text", "int", "float", "bool"),
    ),
    OptionSpec("schema", "schema", "A JSON Schema that the answer satisfies: a constant object."),
    OptionSpec(
        "schema_file", "string", "A .json file next to the script, with the JSON Schema that the answer satisfies."
    ),
    OptionSpec("retries", "int", "Number of retries after a truncated or empty answer.", minimum=0, maximum=10),
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
            {
                **LLM_OPTIONS,
                **_options(
                    OptionSpec(
                        "file",
                        "string",
                        "A .txt or .md file next to the script with the prompt, instead of the prompt.",
                    )
                ),
            },
            '(mood)=LLM("Is this review glad or sad? {(input)}", type="glad" | "sad")',
            instead="file",
            repeatable=True,
        ),
        Signature(
            "CONST",
            "A constant JSON value.",
            (Parameter("value", "json", "A JSON value without references."),),
            _options(
                OptionSpec("file", "string", "A .txt, .md or .json file next to the script, instead of the value.")
            ),
            '(labels)=CONST(["glad", "sad"])',
            instead="file",
        ),
        Signature(
            "EXPR",
            "An expression over values of other steps, computed without a model. Options pass the values.",
            (
                Parameter(
                    "expression", "expression", "The expression to compute; each option defines a value that it uses."
                ),
            ),
            {},
            '(share)=EXPR("count / len(names)", count={(input)}["count"], names={(input)}["names"])',
            bindings=OptionSpec("value", "value", "Passes a value to the expression under this name."),
            repeatable=True,
        ),
        Signature(
            "EACH",
            "Map: run the call once for each element of a list. The output is a list in the order of the input.",
            (
                Parameter("list", "list", "A reference to a list."),
                Parameter("call", "call", "A call, such as LLM, that may refer to {(item)} and {(index)}."),
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
                    "Handling of a failed item: fail the step (default), keep null, or drop the item.",
                    ("fail", "keep", "drop"),
                ),
            ),
            '(moods)=EACH({(input)}["reviews"], LLM("Glad or sad? {(item)}", type="glad" | "sad"))',
        ),
        Signature(
            "JOIN",
            "Lists joined row by row, or by equal values in the columns of on=. Each option names a list. The output is a list of objects.",
            (),
            _options(
                OptionSpec(
                    "on", "columns", "A column, or up to four, whose values must be equal (default: equal positions)."
                ),
                OptionSpec(
                    "how",
                    "name",
                    "With on=: rows of the first list without a partner are left out (inner, the default) or kept (left).",
                    ("inner", "left"),
                ),
            ),
            '(pairs)=JOIN(review={(input)}["reviews"], mood={(moods)})',
            bindings=OptionSpec("list", "value", "A list to join; its elements have this name in the output."),
            repeatable=True,
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
            repeatable=True,
        ),
        Signature(
            "ANSWER",
            "An answer that is written, evaluated and rewritten until it is accepted. The output is the best answer.",
            (Parameter("instruct", "template", "The question or task; references are replaced by outputs."),),
            _options(
                OptionSpec("format", "template", "The form of the answer (default: any form)."),
                OptionSpec("criteria", "template", "The criteria for the judges; optional if there is a check."),
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
                    "Number of judges for each answer; the median of their scores is used (default 1).",
                    minimum=0,
                    maximum=9,
                ),
                OptionSpec("judge", "string", "The model of the judges (default: the model that writes)."),
                OptionSpec("template", "string", "The set of prompts.", ("default", "brief")),
                OptionSpec(
                    "ask",
                    "name",
                    "The form in which an answer is requested; auto depends on the model.",
                    ("auto", "json", "text"),
                ),
                OptionSpec(
                    "scale", "name", "The scale of the scores; auto is unit, 0.0 to 1.0.", ("auto", "unit", "ten")
                ),
                *(LLM_OPTIONS[name] for name in ("model", "temperature", "max_tokens", "stop", "retries", "timeout")),
            ),
            '(final)=ANSWER("Why is the sky blue?", format="One sentence.", criteria="True and short.", check="words:..30")',
            repeatable=True,
        ),
        Signature(
            "RUN",
            "Another script, which runs as one step. The output is the output of the final step of that script.",
            (),
            _options(
                OptionSpec("file", "string", "An .lwt file in the folder of the script, or below this folder."),
                OptionSpec("input", "value", "The input of the other script (default: no input)."),
            ),
            '(clean)=RUN(file="clean.lwt", input={(input)}["review"])',
            required=("file",),
            repeatable=True,
        ),
        Signature(
            "CALL",
            "A Python function that the host offers under this name. Options pass the arguments, as JSON values.",
            (Parameter("function", "string", "The name of the function."),),
            _options(
                OptionSpec("timeout", "float", "Time limit of the function in seconds.", minimum=0.001, maximum=86_400)
            ),
            '(price)=CALL("normalize", text={(input)}["price"])',
            bindings=OptionSpec("value", "value", "Passes a value to the function under this name."),
            repeatable=True,
        ),
    )
}
"""Maps the name of each built-in operation to the operation's signature."""


# The functions and methods of expressions: number of arguments, keywords and results.
# ``lang.evaluate.expr`` implements them. See ``docs/design/seed.md#expressions``.


@frozen
class Function:
    """A function or a method.

    The number of arguments is at least ``least`` and at most ``most``; if ``most`` is None, there is no maximum. If ``comprehension`` is
    true, the first argument may be an ``element for ...`` without brackets. ``gives`` is the kind of every result; "" if the kind varies
    or the result may be null. If ``reserved`` is true, no value can have the function's name.
    """

    name: str
    signature: str
    doc: str
    least: int
    most: int | None
    keywords: tuple[str, ...] = ()
    comprehension: bool = False
    gives: Literal["boolean", "number", "text", "list", ""] = ""
    reserved: bool = True


def _table(*functions: Function) -> Mapping[str, Function]:
    return {function.name: function for function in functions}


DATE_UNITS = ("year", "quarter", "month", "week", "day", "hour")
"""The units of ``date_trunc``."""

# A call has parentheses, so a function and a value can have the same name. Names that are common for values are not reserved.
_unreserved = partial(Function, reserved=False)

FUNCTIONS = _table(
    Function("abs", "abs(x)", "The absolute value of x.", 1, 1, gives="number"),
    Function("all", "all(xs)", "Whether every element is true; true for an empty list.", 1, 1, comprehension=True, gives="boolean"),
    Function("any", "any(xs)", "Whether an element is true; false for an empty list.", 1, 1, comprehension=True, gives="boolean"),
    Function("bool", "bool(x)", "Whether the value is true: not null, false, 0 or empty.", 1, 1, gives="boolean"),
    Function("ceil", "ceil(x)", "x rounded up to an integer.", 1, 1, gives="number"),
    Function("clamp", "clamp(x, low, high)", "x limited to the range from low to high.", 3, 3, gives="number"),
    _unreserved("coalesce", "coalesce(a, b, ...)", "The first argument that is not null; null if all are null.", 2, None),
    _unreserved("date", "date(t)", "The UTC day of an ISO 8601 date or time, such as 2024-03-05; null for any other string.", 1, 1),
    _unreserved(
        "date_trunc", "date_trunc(unit, t)",
        "The beginning of the year, quarter, month, week, day or hour of a date or time, in UTC; null for any other string.", 2, 2,
    ),
    _unreserved(
        "days_between", "days_between(a, b)",
        "The days from a to b: an integer for dates, a float for times; null for any other string.", 2, 2,
    ),
    _unreserved(
        "enumerate", "enumerate(xs)",
        "The lists [number, element]; numbers begin at start (default: 0).",
        1, 2, ("start",), True,
        gives="list",
    ),
    Function("exp", "exp(x)", "e to the power x.", 1, 1, gives="number"),
    Function("float", "float(x)", "A number, or the number in a string, as a float.", 1, 1, gives="number"),
    Function("floor", "floor(x)", "x rounded down to an integer.", 1, 1, gives="number"),
    _unreserved("fold", "fold(t)", "The string in lower case, without accents, with single spaces between words.", 1, 1, gives="text"),
    Function("int", "int(x)", "A number rounded towards zero, or the number in a string; 1 for true, 0 for false.", 1, 1, gives="number"),
    _unreserved(
        "join", "join(xs, separator)", "The strings of a list as one string, with the separator (default: none) between them.", 1, 2,
        comprehension=True, gives="text",
    ),
    Function("len", "len(xs)", "The number of elements, keys or characters.", 1, 1, comprehension=False, gives="number"),
    Function("ln", "ln(x)", "The natural logarithm; the same as log(x).", 1, 1, gives="number"),
    Function("log", "log(x)", "The natural logarithm; log(x, base) uses another base.", 1, 2, gives="number"),
    Function("log10", "log10(x)", "The logarithm to base 10.", 1, 1, gives="number"),
    Function("log2", "log2(x)", "The logarithm to base 2.", 1, 1, gives="number"),
    Function("max", "max(xs)", "The largest element or argument; with default=0, 0 for an empty list.", 1, None, ("default",), True),
    Function("median", "median(xs)", "The middle number, or the mean of the two middle numbers.", 1, 1, comprehension=True, gives="number"),
    Function("min", "min(xs)", "The smallest element or argument; with default=0, 0 for an empty list.", 1, None, ("default",), True),
    Function("mode", "mode(xs)", "The most frequent element; the first of several equally frequent elements.", 1, 1, comprehension=True),
    _unreserved("number", "number(x)", "x if it is a number, or the number in a string; null for anything else.", 1, 1),
    Function("percentile", "percentile(xs, p)", "The percentile for the share p from 0 to 1, interpolated linearly.", 2, 2, gives="number"),
    _unreserved(
        "range", "range(start, end)",
        "The integers from start (default: 0) up to, but not including, end; range(start, end, step).", 1, 3, gives="list",
    ),
    _unreserved("replace", "replace(t, a, b)", "The string t with every a replaced by b.", 3, 3, gives="text"),
    Function("round", "round(x)", "The nearest integer (halves to even); round(x, digits) keeps digits.", 1, 2, gives="number"),
    Function("set", "set(xs)", "The distinct elements; sorted(set(xs)) is a list.", 0, 1, comprehension=True),
    _unreserved(
        "similarity", "similarity(a, b)", "The similarity of two folded strings, from 0 to 1: the share of common trigrams.", 2, 2,
        gives="number",
    ),
    Function(
        "sorted", "sorted(xs)", 'The elements in ascending order (descending: reverse=True); key="field" orders objects by a field.', 1, 1,
        ("reverse", "key"), True, gives="list",
    ),
    Function("sqrt", "sqrt(x)", "The square root.", 1, 1, gives="number"),
    Function("stdev", "stdev(xs)", "The standard deviation of a sample (divisor n - 1).", 1, 1, comprehension=True, gives="number"),
    Function("str", "str(x)", "The value as a string; numbers are written as in JSON.", 1, 1, gives="text"),
    _unreserved(
        "substring", "substring(t, from, count)", "At most count characters of t, starting at index from (the first index is 0).", 3, 3,
        gives="text",
    ),
    Function("sum", "sum(xs)", "The sum of numbers, exactly rounded; 0 for an empty list.", 1, 2, comprehension=True, gives="number"),
    Function("variance", "variance(xs)", "The variance of a sample (divisor n - 1).", 1, 1, comprehension=True, gives="number"),
    _unreserved("year", "year(t)", "The UTC year of an ISO 8601 date or time; null for any other string.", 1, 1),
    _unreserved(
        "zip", "zip(xs, ys)", "The lists [x, y] of the elements at the same position; all lists must have the same length.", 2, 8,
        comprehension=True, gives="list",
    ),
)  # fmt: skip
"""Maps the name of each function to the function."""

RESERVED_FUNCTIONS = frozenset(name for name, function in FUNCTIONS.items() if function.reserved)
"""The function names that a value can't have as its name."""

METHODS = _table(
    Function("count", "xs.count(x)", "The number of occurrences of x in a list or a string.", 1, 1, gives="number"),
    Function("endswith", "text.endswith(end)", "Whether the string ends with end.", 1, 1, gives="boolean"),
    Function("get", 'object.get("key", default)', "The value of the key; if the key is missing, the default or null.", 1, 2),
    Function("join", "separator.join(xs)", "The strings of a list as one string, with the separator between them.", 1, 1, gives="text"),
    Function("lower", "text.lower()", "The string in lower case.", 0, 0, gives="text"),
    Function("split", "text.split(separator)", "The parts between the separators (default: between spaces).", 0, 1, gives="list"),
    Function("startswith", "text.startswith(start)", "Whether the string begins with start.", 1, 1, gives="boolean"),
    Function("strip", "text.strip()", "The string without white space (or given characters) at its ends.", 0, 1, gives="text"),
    Function("upper", "text.upper()", "The string in upper case.", 0, 0, gives="text"),
)  # fmt: skip
"""Maps the name of each method to the method."""

PROMPT_SUFFIXES = (".txt", ".md")
"""The suffixes of files with prompts and with texts for CONST."""
DOCUMENT_SUFFIXES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("GASL", "file"): (".gasl",), ("SEED", "file"): (".json",), ("RUN", "file"): (".lwt",),
}  # fmt: skip
"""Maps an operation and its option to the suffixes of the files that the option may name; the files are documents of their own."""
FILE_SUFFIXES: Mapping[tuple[str, str], tuple[str, ...]] = {
    **DOCUMENT_SUFFIXES,
    ("LLM", "file"): PROMPT_SUFFIXES, ("CONST", "file"): (*PROMPT_SUFFIXES, ".json"), ("LLM", "schema_file"): (".json",),
}  # fmt: skip
"""The same for all options that name files; the others are replaced by the content of their file."""
