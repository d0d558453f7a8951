"""Rules about the script as a whole: its steps, their ids and the graph they make."""

from collections.abc import Iterator

from ...diagnostic import Diagnostic, Edit
from ...lwt import RESERVED, Reference, Step
from ...parse.lwt.shapes import end_of_line
from ...source import NOWHERE, Span
from .registry import Context, Lint, lint

__all__ = ["LINTS"]

_MOST = 50
"""Steps of a cycle that a message names; of a longer one both ends."""


@lint("LWT013")
def cycle(context: Context) -> Iterator[Diagnostic]:
    """Steps that wait for each other. Points at the first one's reference to the next."""
    uses: dict[tuple[str, str], Reference] | None = None
    for path in context.cycles:
        if uses is None:
            uses = {}
            for reference, step, _ in context.uses:
                uses.setdefault((step.id, reference.name), reference)
        if len(path) == 2:
            message = f"step ({path[0]}) refers to itself"
        else:
            shown = path if len(path) <= _MOST else (*path[: _MOST // 2], "…", *path[-_MOST // 2 :])
            message = f"steps wait for each other: {' → '.join(shown)}"
        span = uses[path[0], path[1]].span if (path[0], path[1]) in uses else context.steps[path[0]].span
        yield context.found("LWT013", message, span, "leave out one of the references")


@lint("LWT014")
def duplicate_id(context: Context) -> Iterator[Diagnostic]:
    """Two steps with one id. Points at the later one."""
    if len(context.steps) == len(context.script.steps):
        return
    source, first = context.script.source, {}
    taken = {step.id for step in context.script.steps}
    for step in context.script.steps:
        if step.id not in first:
            first[step.id] = step
            continue
        line, _ = source.position(first[step.id].span.start)
        number = 2
        while f"{step.id}_{number}" in taken:
            number += 1
        message = f"there is a step ({step.id}) already, in line {line}"
        span = context.id_span(step)
        if step == first[step.id]:
            hint, edit = "it is the same step twice: leave one out", Edit(_lines(context, step), "")
        else:
            new = f"{step.id}_{number}"
            taken.add(new)
            hint, edit = f"give this one an id of its own, such as ({new})", Edit(span, new)
        yield context.found("LWT014", message, span, hint, edits=[edit] if step.span != NOWHERE else [])


def _lines(context: Context, step: Step) -> Span:
    """Return the step's span with its line ending, where nothing follows it on its line."""
    end = end_of_line(context.script.source.text, step.span.end)
    return Span(step.span.start, min(end + 1, len(context.script.source.text)))


@lint("LWT015")
def reserved_id(context: Context) -> Iterator[Diagnostic]:
    """A step that is called as the input is."""
    for step in context.script.steps:
        if step.id in RESERVED:
            what = "the run's input" if step.id == "input" else "what EACH is at"
            message = f"no step can be called ({step.id}): it is the name of {what}"
            yield context.found("LWT015", message, context.id_span(step), "give the step another id")


@lint("LWT016", needs_all_steps=True)
def empty_script(context: Context) -> Iterator[Diagnostic]:
    """A script without steps."""
    if not context.script.steps:
        span = Span(0, min(1, len(context.script.source.text)))
        yield context.found("LWT016", "the script has no step", span, 'a step is (final)=LLM("...")')


@lint("LWT017", needs_all_steps=True)
def dead_step(context: Context) -> Iterator[Diagnostic]:
    """A step that the final one doesn't need."""
    if context.final is None or context.has_unknown:
        return  # a misspelt reference makes a dead step of what it meant
    final = context.final[0]
    wanted = context.needed
    if len(wanted) == len(context.steps):
        return
    for step in context.steps.values():
        if step.id not in wanted and step.id not in context.half_named:
            message = f"the final step ({final}) doesn't need ({step.id}), so it is skipped"
            hint = f"refer to it, {{({step.id})}}, or leave it out"
            yield context.found("LWT017", message, context.id_span(step), hint)


@lint("LWT031", needs_all_steps=True)
def chosen_final(context: Context) -> Iterator[Diagnostic]:
    """Which rule chose the final step, where its name doesn't say so."""
    if context.final is None or context.final[1] == "final" or context.cycles:
        return  # steps in a cycle leave no sink, so the rule means nothing
    final, rule = context.final
    why = "it is the only one that no other refers to" if rule == "only sink" else "it is the last of several"
    message = f"the output of ({final}) is the result: {why}"
    yield context.found("LWT031", message, context.id_span(context.steps[final]), "call it (final) to say so")


LINTS: tuple[Lint, ...] = (cycle, duplicate_id, reserved_id, empty_script, dead_step, chosen_final)
