"""What the page says of one event: a call with its prompt and answer, a repair with its diagnostics pictured, a command, a branch."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...lang.diagnostic import Diagnostic, picture
from ...lang.source import Source, Span
from .account import Entry, Room
from .fields import figure, number, text
from .steps import command_words

__all__ = ["answer_entry", "call_entry", "command_entry", "remark_entry"]

_PICTURED = 20
"""Diagnostics of a repair that are drawn."""


def call_entry(event: Mapping[str, Any], room: Room, place: str = "") -> Entry:
    """Return a call that begins; ``place`` is the step that it is for, where the phase does not say it."""
    entry = Entry("call", f"The model was asked{f' for {place}' if place else ''}")
    if prompt := text(event, "prompt"):
        entry.blocks.append(room.block("Prompt", prompt, _lost(event, "prompt")))
    return entry


def answer_entry(entry: Entry, event: Mapping[str, Any], room: Room) -> None:
    """Add the answer, and what it cost."""
    error, cost, seconds = text(event, "error"), figure(event, "cost"), figure(event, "seconds")
    told = [error] if error else []
    if event.get("cached") or event.get("calls") == 0:
        told.append("from the cache")
    else:
        told.append(f"{number(event, 'prompt_tokens'):,} + {number(event, 'completion_tokens'):,} tokens")
        told += [f"${cost:.4f}"] if cost else []
        told += [f"{seconds:.1f} s"] if seconds is not None else []
    entry.status, entry.outcome = "error" if error else "success", " · ".join(told)
    if answer := text(event, "text"):
        entry.blocks.append(room.block("Answer", answer, _lost(event, "text")))


def remark_entry(event: Mapping[str, Any], room: Room) -> Entry | None:
    """Return what is a thing of its own: a repair, a tool, a branch ...; None for what says nothing to a reader."""
    match event.get("event"):
        case "repair.asked":
            return _repair(event, room)
        case "draft.mended":
            lines = [each for each in (text(event, "message"), text(event, "how")) if each]
            return Entry("mended", "Put right without a call", "partial", text(event, "code"), lines=lines)
        case "tool.called":
            ok = bool(event.get("ok"))
            entry = Entry("tool", "Tool", "success" if ok else "error", "carried out" if ok else "refused")
            entry.code = text(event, "call") or "no call of a tool"
            if result := text(event, "result"):
                entry.blocks.append(room.block("What it was told", result, _lost(event, "result")))
            return entry
        case "branch.closed":
            return _branch(event)
        case "budget.reached":
            return Entry("budget", "The budget was reached", "partial", lines=[text(event, "message")])
        case "iteration.finished":
            score = figure(event, "score")
            told = f"score {score:.2f}" if score is not None else f"no score: {text(event, 'error')}"
            title = f"Iteration {number(event, 'iteration')} of an answer"
            return Entry("iteration", title, "success" if event.get("accepted") else "partial", told)
        case _:
            return None


def _repair(event: Mapping[str, Any], room: Room) -> Entry:
    """Return what went back to the model, with all that is wrong with it drawn."""
    written = text(event, "written")
    found = event.get("diagnostics")
    listed = [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
    faults = f"{len(listed)} fault{'' if len(listed) == 1 else 's'}" if listed else "it could not be read"
    entry = Entry("repair", f"Sent back with what is wrong (repair {number(event, 'attempt')})", "partial", faults)
    if listed:
        entry.blocks.append(room.block("What is wrong", _pictures(listed, written)))
    entry.blocks.append(room.block("What was written", written, _lost(event, "written")))
    return entry


def _pictures(found: Sequence[Mapping[str, Any]], written: str) -> str:
    """Draw diagnostics, as JSON has them, over the text that they point into."""
    source = Source(written, "<answer>")
    drawn = [picture(_diagnostic(each, len(written)), source) for each in found[:_PICTURED]]
    more = len(found) - len(drawn)
    return "\n\n".join([*drawn, *([f"and {more:,} more"] if more else [])])


def _diagnostic(told: Mapping[str, Any], length: int) -> Diagnostic:
    where, hints = told.get("span"), told.get("hints")
    span = None
    if isinstance(where, Mapping):
        start = min(max(0, number(where, "start")), length)
        span = Span(start, min(max(start, number(where, "end")), length))
    severity: Any = told.get("severity") if told.get("severity") in ("error", "warning", "info") else "error"
    helps = tuple(str(hint) for hint in hints) if isinstance(hints, list) else ()
    return Diagnostic(text(told, "code"), severity, text(told, "message"), span, helps)


def command_entry(event: Mapping[str, Any]) -> Entry:
    """Return a command that begins, said in words."""
    command = text(event, "command")
    return Entry("command", command_words(command), "", "", command)


def _branch(event: Mapping[str, Any]) -> Entry:
    """Return what came of an action in a state."""
    value, child = figure(event, "value"), figure(event, "child")
    status = text(event, "status")
    led = f" to state {child:.0f}" if child is not None else ""
    worth = f", worth {value:.2f}" if value is not None else ""
    entry = Entry(
        "branch", f"Branch of state {number(event, 'node')}{led}",
        {"done": "success", "merged": "empty", "failed": "error"}.get(status, "partial"),
        f"{status}{f' ({outcome})' if (outcome := text(event, 'outcome')) else ''}{worth}",
    )  # fmt: skip
    if message := text(event, "message"):
        entry.lines.append(message)
    return entry


def _lost(event: Mapping[str, Any], name: str) -> int:
    """Return how many characters of a text the log has not kept."""
    cut = event.get("cut")
    return max(0, number(cut, name) - len(text(event, name))) if isinstance(cut, Mapping) else 0
