"""The operations that a script may call, seen from the text: their arguments and options.

How an operation runs is ``runtime.lwt.operations``' business. A plugin adds a signature here and a runner there through the
entry point group ``knotwork.operations``; the grammar does not change.
"""

from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

__all__ = ["BUILTIN", "COMMON_OPTIONS", "LLM_OPTIONS", "OptionSpec", "Parameter", "Signature"]

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
    """An option. ``values`` closes the set; ``minimum``/``maximum`` bound a number, both inclusive.

    Two kinds see other steps' values: condition (a string that is an expression, its references values) and value (a reference
    or a constant). checks is a check of a text, or a list of them, as ``evaluate.checks`` reads them.
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

    ``instead`` names an option that stands in for the arguments: with it there are none. ``required`` options must be given.
    ``bindings``: what an option of any other name is; None where there is none.
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
    """All options that have a name of their own, those of every operation too."""

    def option(self, name: str) -> OptionSpec | None:
        """Return what ``name=`` takes: an option of its own, one that every operation has, or a binding."""
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
"""The options that every operation has, a plugin's too: what they do is the run's business, not the operation's."""

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
"""The operations that come with the toolkit, by name."""
