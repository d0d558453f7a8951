"""LLM: one completion; and CONST, which needs none."""

from attrs import frozen

from ...lang.catalogue.operations import BUILTIN
from ...lang.trees.lwt import Call, Template
from ..calls import Request
from ..results import Failed, Outcome, StepFailed
from ..templates import Scope, render, text_of
from .arguments import constant, read_options
from .operation import Context

__all__ = ["Prompted", "prompted", "run_const", "run_llm"]


@frozen
class Prompted:
    """An LLM call read once: what is rendered for each request, and what stays the same."""

    prompt: Template
    system: Template | None
    request: Request

    def at(self, scope: Scope) -> Request:
        """Return the request that the templates come to where ``scope`` says what references see."""
        prompt = render(self.prompt, scope)
        request = self.request
        if self.system is not None:
            options = {**request.options, "system": render(self.system, scope)}
            return Request(prompt, request.kind, request.model, options)
        return Request(prompt, request.kind, request.model, request.options)


_LLM = BUILTIN["LLM"]


def prompted(call: Call) -> Prompted:
    """Read an LLM call. Raises ``StepFailed``."""
    if len(call.arguments) != 1 or not isinstance(call.arguments[0], Template):
        raise StepFailed(Failed("operation", "LLM takes one prompt", f"for example {_LLM.example}", call.span))
    options = read_options(call, _LLM) if call.options else {}
    kind, model, system = options.pop("type", "text"), options.pop("model", None), options.pop("system", None)
    return Prompted(call.arguments[0], system, Request("", kind, model, options))


async def run_llm(call: Call, context: Context) -> Outcome:
    """Ask the model once."""
    if not call.options and len(call.arguments) == 1 and isinstance(prompt := call.arguments[0], Template):
        request = Request(render(prompt, context.scope))  # most calls: nothing but a prompt
    else:
        request = prompted(call).at(context.scope)
    return await context.caller.ask(context.step, request)


async def run_const(call: Call, context: Context) -> Outcome:
    """Give the constant."""
    if len(call.arguments) != 1:
        raise StepFailed(Failed("operation", "CONST takes one value", span=call.span))
    value = constant(call.arguments[0])
    return Outcome(text_of(value), value)
