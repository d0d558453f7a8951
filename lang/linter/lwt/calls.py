"""Rules about operations and their arguments."""

from collections.abc import Iterator

from ...catalogue.operations import COMMON_OPTIONS, Parameter, Signature
from ...diagnostic import Diagnostic, Edit
from ...evaluate.text_checks import CheckError, read_check
from ...printer.lwt_printer import format_reference, format_value
from ...source import NOWHERE, Span
from ...trees.lwt import (
    Call,
    Choice,
    ListValue,
    ObjectValue,
    Option,
    Reference,
    Scalar,
    Template,
    Text,
    Value,
    Word,
    references,
)
from .context import Context, lint

# Edits that move an argument or an option of a call to the right place.


def without(context: Context, call: Call, span: Span) -> Span:
    """Return ``span``, the span of an argument or option, extended to include the comma before it.

    The span of the first argument or option includes the comma after it instead.
    """
    text = context.script.source.text
    begin = max(call.span.start, span.start - 200)
    before = text[begin : span.start].rstrip()
    if before.endswith(","):
        return Span(begin + len(before) - 1, span.end)
    end = span.end
    while end < call.span.end and text[end] in " \t\r\n,":
        end += 1
    return Span(span.start, end)


def first_of(context: Context, call: Call, span: Span) -> list[Edit]:
    """Return the edits that make the text at ``span`` the first argument of ``call``."""
    text = context.script.source.text
    inside = [*call.arguments, *call.options]
    if any(part.span == NOWHERE for part in inside):
        return []
    begin = min(part.span.start for part in inside)
    return [Edit(Span(begin, begin), text[span.start : span.end] + ", "), Edit(without(context, call, span), "")]


def named_argument(context: Context, call: Call, option: Option) -> list[Edit]:
    """Return the edits that make an option the first argument. The option is named like an argument, as in ``prompt="..."``."""
    text = context.script.source.text
    if call.arguments or option.value.span == NOWHERE or not text.startswith(option.name, option.span.start):
        return []
    if option is call.options[0]:
        return [Edit(Span(option.span.start, option.value.span.start), "")]
    begin = call.options[0].span.start
    moved = text[option.value.span.start : option.value.span.end] + ", "
    return [Edit(Span(begin, begin), moved), Edit(without(context, call, option.span), "")]


def as_options(context: Context, signature: Signature, value: object) -> str:
    """Return the text of the options that an object such as ``{"temperature": 0}`` means; "" if a key is not an option."""
    text, pieces = context.script.source.text, []
    for key, entry in getattr(value, "entries", ()):
        if signature.option(key.constant or "") is None or entry.span == NOWHERE:
            return ""
        pieces.append(f"{key.constant}={text[entry.span.start : entry.span.end]}")
    return ", ".join(pieces)


def as_choice(context: Context, value: object) -> str:
    """Return the text of the choice that a list such as ``["a", "b"]`` means; "" if the value is not a list of strings."""
    items = value.items if isinstance(value, ListValue) else ()
    if len(items) < 2 or not all(isinstance(item, Template) and (item.constant or "").strip() for item in items):
        return ""
    text = context.script.source.text
    return " | ".join(text[item.span.start : item.span.end] for item in items)


@lint("LWT018")
def unknown_operation(context: Context) -> Iterator[Diagnostic]:
    """Report calls of unknown operations."""
    for call, _ in context.calls:
        if call.operation not in context.operations:
            at = Span(call.span.start, call.span.start + len(call.operation))
            span = context.spelled(at, call.operation, call.span)
            near = _ALSO_CALLED.get(call.operation.casefold(), "")
            near = near if near in context.operations else context.suggestion(call.operation, context.operations) or ""
            hint = f"did you mean `{near}`?" if near else f"the operations are {', '.join(context.operations)}"
            edits = [Edit(span, near)] if near and span else []
            message = f"unknown operation `{call.operation}`"
            yield context.diagnostic("LWT018", message, span or call.span, hint, edits=edits)


_ALSO_CALLED = {
    **dict.fromkeys(("ai", "ask", "call", "chat", "complete", "generate", "gpt", "model", "prompt", "query"), "LLM"),
    **dict.fromkeys(("for", "foreach", "for_each", "loop", "map"), "EACH"),
    **dict.fromkeys(("answers", "generate_answer", "improve", "iterate", "refine"), "ANSWER"),
    **dict.fromkeys(("merge", "zip"), "JOIN"),
    **dict.fromkeys(("function", "invoke", "tool"), "CALL"),
    **dict.fromkeys(("include", "script", "subscript"), "RUN"),
    **dict.fromkeys(("calc", "calculate", "compute", "eval", "expression", "formula", "math", "python"), "EXPR"),
    **dict.fromkeys(("data", "let", "literal", "set", "value", "var"), "CONST"),
}
"""The names that other languages use for LWT operations."""


@lint("LWT021")
def arguments(context: Context) -> Iterator[Diagnostic]:
    """Report missing arguments, extra arguments, arguments of the wrong kind, and arguments after an option."""
    for call, _ in context.calls:
        signature = context.operations.get(call.operation)
        if signature is None:
            continue
        replaced = signature.instead and call.option(signature.instead) is not None
        if replaced or len(call.arguments) != len(signature.parameters):
            yield from _counted(context, call, signature)
        if signature.required and not _without_names(call, signature):
            yield from _left_out(context, call, signature)
        for parameter, value in zip(signature.parameters, call.arguments, strict=False):
            if parameter.kind in _ARGUMENTS and (fault := _ARGUMENTS[parameter.kind](context, call, parameter, value)):
                yield fault
        if not call.options:
            continue
        first = min((option.span.start for option in call.options if option.span != NOWHERE), default=None)
        for value in call.arguments:
            in_call = value.span.end <= call.span.end  # the text of a prompt from a file is elsewhere
            if first is not None and value.span != NOWHERE and in_call and value.span.start > first:
                if len(call.arguments) > len(signature.parameters):
                    break  # an extra argument; it is reported already
                message = f"this argument of {call.operation} follows an option"
                edits = first_of(context, call, value.span) if len(call.arguments) == 1 else []
                yield context.diagnostic("LWT021", message, value.span, "write arguments before options", edits=edits)


def _left_out(context: Context, call: Call, signature: Signature) -> Iterator[Diagnostic]:
    missing = [name for name in signature.required if call.option(name) is None]
    unknown = [option.name for option in call.options if signature.option(option.name) is None]
    if unknown:  # a misspelt name is reported as an unknown option, and the fix is the same
        meant = {context.suggestion(name, signature.option_names) for name in unknown}
        missing = [name for name in missing if name not in meant]
    if missing:
        what = " and ".join(f"`{name}=`" for name in missing)
        yield context.diagnostic(
            "LWT021", f"{call.operation} lacks {what}", call.span, f"for example: `{signature.example}`"
        )


def _counted(context: Context, call: Call, signature: Signature) -> Iterator[Diagnostic]:
    wanted, given = signature.parameters, call.arguments
    if signature.instead and any(option.name == signature.instead for option in call.options):
        if given:
            what = f"{call.operation} takes {signature.instead}= or its {wanted[0].name}, but not both"
            yield context.diagnostic("LWT021", what, given[0].span, "remove one of them")
        return
    if len(given) < len(wanted):
        missing = " and ".join(f"its {parameter.name}" for parameter in wanted[len(given) :])
        named = next((option for option in call.options if option.name == wanted[len(given)].name), None)
        if named is not None:
            if signature.bindings is not None:  # otherwise it is reported as an unknown option, with the same fix
                message, hint = f"{call.operation} lacks {missing}", f"write the {named.name} first, without a name"
                edits = named_argument(context, call, named)
                yield context.diagnostic("LWT021", message, named.span, hint, edits=edits)
            return
        hint = f"for example: `{signature.example}`"
        yield context.diagnostic("LWT021", f"{call.operation} lacks {missing}", call.span, hint)
    elif unnamed := _without_names(call, signature):
        yield _by_name(context, call, unnamed)
    elif len(given) > len(wanted) and not (
        call.operation == "JOIN" and not wanted
    ):  # the module ``joins`` reports these
        extra = given[len(wanted)]
        takes = "no arguments" if not wanted else "one argument" if len(wanted) == 1 else f"{len(wanted)} arguments"
        names = f" ({', '.join(parameter.name for parameter in wanted)})" if wanted else ""
        many = f"{call.operation} takes {takes}{names}; this is one too many"
        one_string = isinstance(extra, Template) and bool(wanted)
        hint = "write one string; a comma outside quotes separates arguments" if one_string else ""
        edits = []
        if isinstance(extra, ObjectValue) and (new := as_options(context, signature, extra)):
            hint, edits = f"write the options separately: `{new}`", [Edit(extra.span, new)]
        elif fraction := _decimal_comma(context, call, extra):
            hint, edits = "write a decimal point, not a comma", [Edit(fraction, ".")]
        elif isinstance(extra, Word | Scalar | Choice) and signature.bindings is None:
            hint = "options need a name: `temperature=0`"
        elif signature.bindings is not None and not one_string:
            hint = "values need a name: `n=2`, `text={(id)}`"
        yield context.diagnostic("LWT021", many, extra.span, hint, edits=edits)


def _without_names(call: Call, signature: Signature) -> list[str]:
    """Return the names of the options that the arguments of a call such as ``RUN("clean.lwt", {(input)})`` mean.

    Return an empty list unless the operation takes only options, and all required options are among those given.
    """
    if signature.parameters or not signature.required or not call.arguments:
        return []
    free = [name for name in signature.options if name not in COMMON_OPTIONS and call.option(name) is None]
    names = free[: len(call.arguments)]
    given = {*names, *(option.name for option in call.options)}
    is_file = "file" not in names or isinstance(call.arguments[names.index("file")], Template)
    return names if len(names) == len(call.arguments) and given.issuperset(signature.required) and is_file else []


def _by_name(context: Context, call: Call, names: list[str]) -> Diagnostic:
    """Return a diagnostic about arguments that lack their names. The edits insert the names."""
    spans = [value.span for value in call.arguments]
    edits = [Edit(Span(each.start, each.start), f"{name}=") for each, name in zip(spans, names, strict=True)]
    hint = "write " + ", ".join(f"`{name}=`" for name in names) + (" before it" if len(names) == 1 else " before them")
    message = f"{call.operation} takes its values by name"
    edits = [] if NOWHERE in spans else edits
    return context.diagnostic("LWT021", message, call.arguments[0].span, hint, edits=edits)


def _decimal_comma(context: Context, call: Call, extra: Value) -> Span | None:
    """Return the span of a comma used as a decimal point, as in ``temperature=0,5``.

    ``extra`` is the value after it. Return None for any other comma.
    """
    text, at = context.script.source.text, extra.span.start
    digits = isinstance(extra, Scalar) and text[at - 1 : at] == "," and text[at : at + 1].isdigit()
    before = any(option.span.end == at - 1 and isinstance(option.value, Scalar) for option in call.options)
    return Span(at - 1, at) if digits and before else None


def _wrong(context: Context, call: Call, value: Value, what: str, *hints: str, new: str = "") -> Diagnostic:
    edits = [Edit(value.span, new)] if new and value.span != NOWHERE else []
    span = call.span if value.span == NOWHERE else value.span
    return context.diagnostic(
        "LWT021", f"{call.operation} takes {what} here, not {kind(value)}", span, *hints, edits=edits
    )


def _template(context: Context, call: Call, parameter: Parameter, value: Value) -> Diagnostic | None:
    if isinstance(value, Template):
        return None
    what = f"a string (its {parameter.name})"
    if isinstance(value, Reference):
        new = f'"{format_reference(value)}"'
        return _wrong(context, call, value, what, f"write `{new}`", new=new)
    hint = "move the inner call to a separate step and refer to it" if isinstance(value, Call) else ""
    return _wrong(context, call, value, what, hint or "write the text in quotes")


def _expression(context: Context, call: Call, parameter: Parameter, value: Value) -> Diagnostic | None:
    if isinstance(value, Template):
        return None  # the module ``expressions`` checks its contents
    hint = 'give the reference a name: `EXPR("n", n={(id)})`' if isinstance(value, Reference) else "write it in quotes"
    return _wrong(context, call, value, f"a string (its {parameter.name})", hint)


def _json(context: Context, call: Call, parameter: Parameter, value: Value) -> Diagnostic | None:
    if isinstance(value, Word | Call | Choice):
        hint = (
            "write the text in quotes"
            if isinstance(value, Word)
            else "a choice is allowed only as the value of `type=`"
        )
        hint = "move the inner call to a separate step" if isinstance(value, Call) else hint
        return _wrong(context, call, value, "a constant JSON value", hint)
    found = next(references(value), None)
    if found is not None:
        message = f"the value of {call.operation} must be constant and can't refer to ({found.name})"
        hint = "put the reference in the step that uses the value; to write a literal `{(` in a string, use `{{(`"
        return context.diagnostic("LWT021", message, found.span, hint)
    return _not_json_inside(context, call, value)


def _not_json_inside(context: Context, call: Call, value: Value) -> Diagnostic | None:
    """Return a diagnostic about a part that is not JSON: a bare word, a call, a choice."""
    stack = [value]
    while stack:
        inner = stack.pop()
        if isinstance(inner, Word | Call | Choice):
            return _wrong(context, call, inner, "a constant JSON value", "write the text in quotes")
        if isinstance(inner, ListValue):
            stack += reversed(inner.items)
        elif isinstance(inner, ObjectValue):
            stack += [entry for _, entry in reversed(inner.entries)]
    return None


def _list(context: Context, call: Call, parameter: Parameter, value: Value) -> Diagnostic | None:
    if isinstance(value, Reference):
        return _no_list(context, call, value)
    hint = 'write `{(input)}["reviews"]`, or a reference to a step that returns a list'
    if isinstance(value, ListValue):
        return _list_of_its_own(context, call, value)
    elif isinstance(value, Template) and len(value.parts) == 1 and isinstance(value.parts[0], Reference):
        new = format_reference(value.parts[0])
        return _wrong(context, call, value, "a reference to a list", f"without quotes: `{new}`", new=new)
    elif isinstance(value, Word) and (value.value in context.known):
        new = f"{{({value.value})}}"
        return _wrong(context, call, value, "a reference to a list", f"write `{new}`", new=new)
    return _wrong(context, call, value, "a reference to a list", hint)


def _no_list(context: Context, call: Call, value: Reference) -> Diagnostic | None:
    """Return a diagnostic if a list is needed, but the reference is to a constant that is not a list."""
    step = context.steps.get(value.name)
    if value.accessors or step is None or step.call.operation != "CONST" or len(step.call.arguments) != 1:
        return None
    constant = step.call.arguments[0]
    if not isinstance(constant, ObjectValue | Scalar):
        return None
    message = f"{call.operation} needs a list, but ({value.name}) is {kind(constant)}"
    return context.diagnostic("LWT021", message, value.span, "write a list as `CONST([...])`")


def _list_of_its_own(context: Context, call: Call, value: ListValue) -> Diagnostic:
    """Return a diagnostic about a list that is written in place of a reference. The edits move the list to a new step above."""
    step = context.step_of.get(id(call))
    name = f"{step.id}_list" if step else "list"
    while name in context.known:
        name += "_"
    hint = f"move the list to a separate step, `({name})=CONST([...])`, and refer to it: `{{({name})}}`"
    edits = []
    text = context.script.source.text
    constant = next(references(value), None) is None and _not_json_inside(context, call, value) is None
    if step is not None and constant and value.span != NOWHERE:
        begin = text.rfind("\n", 0, step.span.start) + 1
        above = f"({name})=CONST({text[value.span.start : value.span.end]})\n"
        edits = [Edit(Span(begin, begin), above), Edit(value.span, f"{{({name})}}")]
    message = f"{call.operation} takes a reference to a list here, not a list"
    return context.diagnostic("LWT021", message, value.span, hint, edits=edits)


def _call(context: Context, call: Call, parameter: Parameter, value: Value) -> Diagnostic | None:
    if not isinstance(value, Call):
        hint = 'write `LLM("... {(item)} ...")`'
        text = context.script.source.text[value.span.start : value.span.end]
        new = f"LLM({text})" if isinstance(value, Template) and text[:1] in ("'", '"') else ""
        return _wrong(context, call, value, "a call", f"write `{new}`" if new and len(new) < 60 else hint, new=new)
    inner = context.operations.get(value.operation)
    if inner is None or inner.repeatable:
        return None
    message = f"{call.operation} can't run {value.operation} for each item"
    repeatable = [name for name, each in context.operations.items() if each.repeatable]
    hint = _WHY_NOT.get(value.operation) or f"{call.operation} can repeat {', '.join(repeatable)}"
    return context.diagnostic("LWT021", message, value.span, hint)


_WHY_NOT = {
    "GASL": "GASL changes the state, so the result would depend on the order of the items; one program can process all rows",
    "EACH": 'write the inner EACH in a separate script, and repeat that script: `EACH({(list)}, RUN(file="...", input={(item)}))`',
    "CONST": "a constant is the same for each item; refer to a CONST step",
}
"""Maps each operation that EACH can't repeat to the reason and an alternative."""


def _constant_string(context: Context, call: Call, parameter: Parameter, value: Value) -> Diagnostic | None:
    if not isinstance(value, Template):
        new = f'"{value.value}"' if isinstance(value, Word) else ""
        hint = f"write `{new}`" if new else f"for example: `{context.operations[call.operation].example}`"
        return _wrong(context, call, value, f"a string (its {parameter.name})", hint, new=new)
    found = next(references(value), None)
    if found is None:
        return None
    message = f"the {parameter.name} of {call.operation} must be constant and can't refer to ({found.name})"
    return context.diagnostic("LWT021", message, found.span, f"write the {parameter.name} in the script")


_ARGUMENTS = {
    "template": _template, "expression": _expression, "string": _constant_string, "json": _json, "list": _list, "call": _call,
}  # fmt: skip


def kind(value: Value) -> str:
    """Return the kind of ``value`` in words with its article, for a message."""
    if isinstance(value, Scalar):
        return "null" if value.value is None else "true or false" if isinstance(value.value, bool) else "a number"
    return _KINDS[type(value)]


_KINDS = {
    Template: "a string",
    Reference: "a reference",
    Word: "a bare word",
    Choice: "a choice",
    ListValue: "a list",
    ObjectValue: "an object",
    Call: "a call",
}


# Rules about iterative answers: their judges and checks.


def _answers(context: Context) -> Iterator[Call]:
    return (call for call, _ in context.calls if call.operation == "ANSWER")


@lint("LWT050")
def faulty_check(context: Context) -> Iterator[Diagnostic]:
    """Report checks that can't be read. Another rule reports values that are not strings."""
    for call in _answers(context):
        value = call.option("check")
        for text in value.items if isinstance(value, ListValue) else (value,):
            if not isinstance(text, Template) or text.constant is None:
                continue
            try:
                read_check(text.constant)
            except CheckError as error:
                mendable = error.meant and text.span != NOWHERE
                edits = [Edit(text.span, format_value(Template((Text(error.meant),))))] if mendable else []
                hints = (error.hint,) if error.hint else ()
                yield context.diagnostic("LWT050", error.message, text.span, *hints, edits=edits)


@lint("LWT051")
def nothing_evaluates(context: Context) -> Iterator[Diagnostic]:
    """Report ANSWER calls that have neither a judge nor a check."""
    for call in _answers(context):
        if call.option("check") is not None or not call.arguments:
            continue
        judges, criteria = call.option("judges"), call.option("criteria")
        hint = 'describe a good answer with `criteria="..."`, or add a check: `check="words:10..40"`'
        if isinstance(judges, Scalar) and judges.value == 0:
            message = "nothing evaluates this answer: it has no judge and no check"
            yield context.diagnostic(
                "LWT051", message, call.span, 'add a check, such as `check="words:10..40"`, or a judge'
            )
        elif criteria is None:
            if not any(option.name in _MEANT for option in call.options):  # the fix of that option also fixes this
                yield context.diagnostic("LWT051", "this ANSWER has neither criteria nor a check", call.span, hint)
        elif isinstance(criteria, Template) and criteria.constant is not None and not criteria.constant.strip():
            yield context.diagnostic(
                "LWT051", "the criteria of this ANSWER are empty, and it has no check", criteria.span, hint
            )


_MEANT = ("checks", "criterion", "eval_crit", "evaluation", "rubric")
"""Names of unknown options that certainly mean criteria or checks."""
