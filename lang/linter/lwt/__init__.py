"""Checks of a script before it runs: the parser's faults, and faults that need the complete script.

The lints are in the modules ``references``, ``calls`` (also iterative answers), ``options``, ``samples``, ``strings`` (also programs),
``joins`` (also functions) and ``expressions``; the lints about steps and their graph are below. ``context`` provides the input of
the lints. To add a lint, write a function with the decorator ``lint`` in one of the modules, and a rule in ``lang.catalogue.rules``.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ...catalogue.operations import BUILTIN, Signature
from ...diagnostic import Diagnostic, Edit
from ...parse.lwt.shapes import end_of_line
from ...source import NOWHERE, Span
from ...trees.lwt import MISSING, RESERVED, Comment, Reference, Script, Step
from ..framework import Commented, sorted_with
from . import calls, expressions, joins, options, references, samples, strings  # noqa: F401  # they register their lints
from .context import Context, lint
from .references import input_path

__all__ = ["Context", "check", "diagnose", "input_faults"]


_SCRIPTS = Commented("step", "LWT032", lambda item: isinstance(item, Comment))
"""Ignore comments in prompt scripts, such as ``# knotwork: ignore[LWT012]``, are above a step."""

# Rules about the complete script: its steps, their ids and their graph.

_MOST = 50
"""Maximum number of steps that a message about a cycle lists. For a longer cycle, it lists the first and the last steps."""


@lint("LWT013")
def cycle(context: Context) -> Iterator[Diagnostic]:
    """Report cycles of steps. A cycle is reported at the reference from its first step to the next one."""
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
            message = f"steps refer to each other in a cycle: {' → '.join(shown)}"
        span = uses[path[0], path[1]].span if (path[0], path[1]) in uses else context.steps[path[0]].span
        yield context.diagnostic("LWT013", message, span, "remove one of the references")


@lint("LWT014")
def duplicate_id(context: Context) -> Iterator[Diagnostic]:
    """Report steps with the id of an earlier step."""
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
        message = f"a step ({step.id}) already exists in line {line}"
        span = context.id_span(step)
        if step == first[step.id]:
            hint, edit = "the two steps are equal: remove one", Edit(_lines(context, step), "")
        else:
            new = f"{step.id}_{number}"
            taken.add(new)
            hint, edit = f"give this step another id, such as ({new})", Edit(span, new)
        yield context.diagnostic("LWT014", message, span, hint, edits=[edit] if step.span != NOWHERE else [])


def _lines(context: Context, step: Step) -> Span:
    """Return the span of a step to the end of its last line, including the line ending."""
    end = end_of_line(context.script.source.text, step.span.end)
    return Span(step.span.start, min(end + 1, len(context.script.source.text)))


@lint("LWT015")
def reserved_id(context: Context) -> Iterator[Diagnostic]:
    """Report a step with a reserved id: ``input``, ``item`` or ``index``."""
    for step in context.script.steps:
        if step.id in RESERVED:
            what = "the run's input" if step.id == "input" else "the current element of EACH"
            message = f"the id ({step.id}) is reserved for {what}"
            yield context.diagnostic("LWT015", message, context.id_span(step), "give the step another id")


@lint("LWT016", needs_all_steps=True)
def empty_script(context: Context) -> Iterator[Diagnostic]:
    """Report a script without steps."""
    if not context.script.steps:
        span = Span(0, min(1, len(context.script.source.text)))
        yield context.diagnostic("LWT016", "the script has no steps", span, 'a step has the form (id)=LLM("...")')


@lint("LWT017", needs_all_steps=True)
def dead_step(context: Context) -> Iterator[Diagnostic]:
    """Report a step that the final step does not need."""
    if context.final is None or context.has_unknown:
        return  # if a reference is misspelt, the step that it means appears to be unused
    final = context.final[0]
    wanted = context.needed
    if len(wanted) == len(context.steps):
        return
    for step in context.steps.values():
        if step.id not in wanted and step.id not in context.half_named:
            message = f"the step ({step.id}) is skipped: the final step ({final}) does not depend on it"
            hint = f"refer to it with {{({step.id})}}, or remove it"
            yield context.diagnostic("LWT017", message, context.id_span(step), hint)


@lint("LWT031", needs_all_steps=True)
def chosen_final(context: Context) -> Iterator[Diagnostic]:
    """If no step is called ``final``, report which rule chose the final step."""
    if context.final is None or context.final[1] == "final" or context.cycles:
        return  # a cycle may hide the only step that no other step refers to
    final, rule = context.final
    why = "no other step refers to it" if rule == "only sink" else "it is the last step of the script"
    message = f"the output of ({final}) is the result: {why}"
    yield context.diagnostic(
        "LWT031", message, context.id_span(context.steps[final]), "call it (final) to make this explicit"
    )


def check(
    script: Script,
    *,
    input: Any = MISSING,
    operations: Mapping[str, Signature] = BUILTIN,
    models: Collection[str] | None = None,
    given: Collection[str] = (),
    functions: Collection[str] | None = None,
) -> list[Diagnostic]:
    """Return the diagnostics of ``script`` from the parser and from the rules, in source order.

    ``input`` is the run's input, a JSON value. By default, paths into the input are not checked. ``ABSENT`` means that the run has no
    input, so a reference to the input is an error. ``models`` are the names of the models that the host offers; None allows any name.
    ``given`` are the steps that ran earlier in a session; references to them are valid. ``functions`` are the names of the functions that
    the host offers; None allows any name. Faults in a script never raise an exception. See
    ``docs/design/lwt.md#meaning``.
    """
    return diagnose(Context(script, input, operations, models, given, functions))


def input_faults(context: Context) -> list[Diagnostic]:
    """Return only the diagnostics about missing parts of the run's input. Use this function for a script that is still being received."""
    return list(input_path(context))


def diagnose(context: Context) -> list[Diagnostic]:
    """Run ``check`` on an existing context. The caller can use the analysis that the context caches (the graph, the final step)."""
    script = context.script
    reported = {diagnostic.code for diagnostic in script.diagnostics}
    found = (
        diagnostic
        for each in lint.all
        # The parser itself reports some faults with more detail (for example a step that was dropped because of its id).
        if not (each.code == "LWT014" and each.code in reported) and (context.is_whole or not each.needs_all_steps)
        for diagnostic in each.find(context)
    )
    return sorted_with(script.diagnostics, found, script.items, script.source.text, _SCRIPTS, context)
