"""Rules on iterative answers: what evaluates them."""

from collections.abc import Iterator

from ...diagnostic import Diagnostic, Edit
from ...evaluate.checks import CheckError, read_check
from ...lwt import Call, ListValue, Scalar, Template, Text
from ...printer.lwt import format_value
from ...source import NOWHERE
from .registry import Context, Lint, lint

__all__ = ["LINTS"]


def _answers(context: Context) -> Iterator[Call]:
    return (call for call, _ in context.calls if call.operation == "ANSWER")


@lint("LWT050")
def faulty_check(context: Context) -> Iterator[Diagnostic]:
    """Checks that can't be read. What is no text at all is a fault of the option's value."""
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
                yield context.found("LWT050", error.message, text.span, *hints, edits=edits)


@lint("LWT051")
def nothing_evaluates(context: Context) -> Iterator[Diagnostic]:
    """An answer that neither a judge nor a check evaluates."""
    for call in _answers(context):
        if call.option("check") is not None or not call.arguments:
            continue
        judges, criteria = call.option("judges"), call.option("criteria")
        hint = 'say what a good answer is, `criteria="..."`, or give a check: `check="words:10..40"`'
        if isinstance(judges, Scalar) and judges.value == 0:
            message = "with no judge and no check nothing evaluates this answer"
            yield context.found(
                "LWT051", message, call.span, 'give a check, such as `check="words:10..40"`, or a judge'
            )
        elif criteria is None:
            if not any(option.name in _MEANT for option in call.options):  # that one's fix is this one's
                yield context.found("LWT051", "this ANSWER has neither criteria nor a check", call.span, hint)
        elif isinstance(criteria, Template) and criteria.constant is not None and not criteria.constant.strip():
            yield context.found(
                "LWT051", "the criteria of this ANSWER are empty, and it has no check", criteria.span, hint
            )


_MEANT = ("checks", "criterion", "eval_crit", "evaluation", "rubric")
"""Unknown options that are surely meant to say it."""

LINTS: tuple[Lint, ...] = (faulty_check, nothing_evaluates)
