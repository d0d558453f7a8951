"""The operation LLM: its prompt, its examples, earlier messages and images, and the vote of several samples."""

from collections.abc import Awaitable, Mapping
from typing import Any

from attrs import evolve, field, frozen

from ....adapters.llm import ImageInput
from ....adapters.llm.images import is_data_url
from ....lang.catalogue.operations import BUILTIN
from ....lang.coercion import Unfit
from ....lang.conversation import (
    EXAMPLES_FORM,
    IMAGES_FORM,
    MESSAGES_FORM,
    examples_fault,
    images_fault,
    messages_fault,
)
from ....lang.literals import short
from ....lang.trees.lwt import Call, ListValue, Reference, Template, Value
from ...models.answer_shape import SHAPE_OPTIONS, shape_of
from ...models.caller import Request
from ...models.votes import ask_samples, warn_of_equal_samples
from ...results import Outcome
from ...templates import LONGEST, Scope, render, text_of
from ..files_beside import image_named, invalid
from .operation import Context, option_value, read_options

_LLM = BUILTIN["LLM"]
_VALUES = ("examples", "messages", "images")
"""The options whose values can be references."""
_MOST_BYTES = 20 << 20
"""Maximum size of the images of a call: with Base64, it stays below the limits of the services on requests."""


@frozen
class ParsedCall:
    """A parsed LLM call: the templates and values that are computed for each request, and the constant parts.

    ``samples`` is the number of samples; ``each`` is the list over which an EACH repeats the call.
    """

    prompt: Template
    system: Template | None
    request: Request
    values: Mapping[str, Value] = field(factory=dict)
    samples: int = 1
    each: Value | None = None

    def at(self, context: Context, scope: Scope) -> Request:
        """Return the request with the templates and values computed for ``scope``. Raises ``StepFailed``."""
        prompt = render(self.prompt, scope)
        request = self.request
        if self.system is None and not self.values:  # the common case; evolve would take a fifth of an item's time
            return Request(prompt, request.kind, request.model, request.options, request.shape, request.is_shown)
        options: dict[str, Any] = {}
        if self.system is not None:
            options["system"] = render(self.system, scope)
        for name, value in self.values.items():
            options |= self._value(name, value, context, scope)
        size = sum(
            len(text) for turn in (*options.get("examples", ()), *options.get("messages", ())) for text in turn.values()
        )
        if size > LONGEST:
            hint = f"at most {LONGEST:,}"
            raise invalid(f"the examples and messages would have {size:,} characters", self.prompt.span, hint)
        return evolve(request, prompt=prompt, options={**request.options, **options} if options else request.options)

    def _value(self, name: str, value: Value, context: Context, scope: Scope) -> dict[str, Any]:
        found = option_value(value, scope)
        if name == "examples":
            return {"examples": self._examples(found, value)} if found != [] else {}
        if name == "messages":
            if fault := messages_fault(found, has_system=self.system is not None):
                raise invalid(f"messages= {fault}", value.span, MESSAGES_FORM)
            first = found[0]["content"] if found and found[0]["role"] == "system" else None
            rest = [{"role": each["role"], "content": each["content"]} for each in found if each["role"] != "system"]
            return {**({} if first is None else {"system": first}), **({"messages": rest} if rest else {})}
        if fault := images_fault(found):
            raise invalid(f"images= {fault}", value.span, IMAGES_FORM)
        return {"images": _images(found, value, self.each, context)}

    def _examples(self, found: Any, value: Value) -> list[dict[str, str]]:
        form = self.request.form

        def misfit(out: Any) -> str:
            fit = form.fit(text_of(out), strict=True)
            return fit.reason if isinstance(fit, Unfit) else ""

        if fault := examples_fault(found, misfit):
            raise invalid(f"examples= {fault}", value.span, EXAMPLES_FORM)
        return [{"in": text_of(each["in"]), "out": text_of(each["out"])} for each in found]


def parse_call(call: Call, each: Value | None = None) -> ParsedCall:
    """Parse an LLM call, which an EACH may repeat over the list ``each``. Raises ``StepFailed``."""
    if len(call.arguments) != 1 or not isinstance(call.arguments[0], Template):
        raise invalid("LLM takes one prompt", call.span, f"for example {_LLM.example}")
    options = read_options(call, _LLM) if call.options else {}
    if "schema_file" in options:  # the contents of files are inserted before a run that reads files
        raise invalid("this run reads no files", call.span, "write the schema in the call: schema={...}")
    kind, model, system = options.pop("type", "text"), options.pop("model", None), options.pop("system", None)
    shape = {name: options.pop(name) for name in SHAPE_OPTIONS if name in options}
    values = {name: options.pop(name) for name in _VALUES if name in options}
    samples = options.pop("n", 1)
    if "schema" in shape:
        kind = "json"
    try:
        request = Request("", kind, model, options, shape_of(kind, **shape), is_shown=samples == 1)
    except ValueError as error:
        raise invalid(str(error), call.span) from None
    return ParsedCall(call.arguments[0], system, request, values, samples, each)


async def answer_of(call: ParsedCall, context: Context, scope: Scope, item: int | None = None) -> Outcome:
    """Return the answer to a call, or the most frequent of its samples. Raises ``StepFailed``."""
    request = call.at(context, scope)
    if call.samples == 1:
        return await context.caller.ask(context.step, request, item)
    return await ask_samples(context.caller, context.step, request, call.samples, item)


def run_llm(call: Call, context: Context) -> Awaitable[Outcome]:
    """Call the model, once or for several samples."""
    if not call.options and len(call.arguments) == 1 and isinstance(prompt := call.arguments[0], Template):
        request = Request(render(prompt, context.scope), is_shown=True)  # the common case: the call has only a prompt
        return context.caller.ask(context.step, request)
    parsed = parse_call(call)
    if parsed.samples > 1:
        warn_of_equal_samples(context.caller, context.step, parsed.request)
    return answer_of(parsed, context, context.scope)


# Images. A file is read only if the script or its input names it, and only below the script's folder: a model's text must not choose files.


def _images(found: Any, value: Value, each: Value | None, context: Context) -> list[ImageInput]:
    values: list[tuple[str, Value]] = []
    if isinstance(value, ListValue):
        values = list(zip(found, value.items, strict=True))
    else:
        values = [(image, value) for image in (found if isinstance(found, list) else [found])]
    images = [_image(text, source, each, context) for text, source in values]
    if sum(len(image.data) for image in images) > _MOST_BYTES:
        raise invalid(f"the images of a call have more than {_MOST_BYTES >> 20} MiB together", value.span)
    return images


def _image(text: str, source: Value, each: Value | None, context: Context) -> ImageInput:
    if not is_data_url(text) and not _may_name_files(source, each, context):
        hint = "give a data URL, or name the file in the script or in its input"
        message = f"the image {short(text, 40)}: the output of a step must not name a file"
        raise invalid(message, source.span, hint)
    return image_named(text, context.folder, source.span)


def _may_name_files(source: Value, each: Value | None, context: Context) -> bool:
    """Return whether ``source`` is a constant, or refers to the input or to a constant step."""
    if not isinstance(source, Reference):
        return True
    if source.name == "input":
        return True
    if source.name == "item":
        return each is not None and _may_name_files(each, None, context)
    step = context.scope.steps.get(source.name)
    return step is not None and step.call.operation == "CONST"
