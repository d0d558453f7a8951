"""Converts the events of a run into its account: each event is added to its phase, even if several phases run in parallel.

The events of a ranking name the request, and the planner's events of a question name the step. All other events belong to the phase in
progress. Events come from a file: a missing field, or a field of another type, counts as empty.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import define, field

from ...lang.diagnostic import Diagnostic, picture
from ...lang.source import Source, Span
from ..results import estimated_mark
from ..runs.event_log import OPENED
from .account import Account, Entry, PageSpace, Phase, Section, figure, number, text
from .steps import command_words

# The entry on the page for one event: a call with its prompt and answer, a repair with rendered diagnostics, a command, a branch.

_PICTURED = 20
"""Maximum number of diagnostics that are rendered for a repair."""


def call_entry(event: Mapping[str, Any], space: PageSpace, place: str = "") -> Entry:
    """Return the entry for a call that begins; ``place`` is the step of the call, "" if the phase names the step."""
    entry = Entry("call", f"The model was asked{f' for {place}' if place else ''}")
    if prompt := text(event, "prompt"):
        entry.blocks.append(space.block("Prompt", prompt, _lost(event, "prompt")))
    return entry


def answer_entry(entry: Entry, event: Mapping[str, Any], space: PageSpace) -> None:
    """Add the answer and its cost to the entry of a call."""
    error, cost, seconds = text(event, "error"), figure(event, "cost"), figure(event, "seconds")
    parts = [error] if error else []
    if event.get("cached") or event.get("calls") == 0:
        parts.append("from the cache")
    else:
        mark = estimated_mark(event.get("estimated") is True)
        parts.append(f"{number(event, 'prompt_tokens'):,} + {number(event, 'completion_tokens'):,} tokens{mark}")
        parts += [f"${cost:.4f}"] if cost else []
        parts += [f"{seconds:.1f} s"] if seconds is not None else []
    entry.status, entry.outcome = "error" if error else "success", " · ".join(parts)
    if answer := text(event, "text"):
        entry.blocks.append(space.block("Answer", answer, _lost(event, "text")))


def remark_entry(event: Mapping[str, Any], space: PageSpace) -> Entry | None:
    """Return the entry for an event with its own entry, such as a repair, a tool call or a branch; None for an event that is not shown."""
    match event.get("event"):
        case "repair.asked":
            return _repair(event, space)
        case "draft.mended":
            lines = [each for each in (text(event, "message"), text(event, "how")) if each]
            return Entry("mended", "Fixed without a call", "partial", text(event, "code"), lines=lines)
        case "tool.called":
            ok = bool(event.get("ok"))
            entry = Entry("tool", "Tool", "success" if ok else "error", "executed" if ok else "refused")
            entry.code = text(event, "call") or "no tool call"
            if result := text(event, "result"):
                entry.blocks.append(space.block("Result", result, _lost(event, "result")))
            return entry
        case "branch.closed":
            return _branch(event)
        case "budget.reached":
            return Entry("budget", "The budget was reached", "partial", lines=[text(event, "message")])
        case "iteration.finished":
            score = figure(event, "score")
            parts = f"score {score:.2f}" if score is not None else f"no score: {text(event, 'error')}"
            title = f"Iteration {number(event, 'iteration')} of an answer"
            return Entry("iteration", title, "success" if event.get("accepted") else "partial", parts)
        case _:
            return None


def _repair(event: Mapping[str, Any], space: PageSpace) -> Entry:
    """Return the entry for an answer that was sent back to the model, with its rendered diagnostics."""
    written = text(event, "written")
    found = event.get("diagnostics")
    listed = [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []
    faults = f"{len(listed)} fault{'' if len(listed) == 1 else 's'}" if listed else "it could not be read"
    entry = Entry("repair", f"Sent back with its errors (repair {number(event, 'attempt')})", "partial", faults)
    if listed:
        entry.blocks.append(space.block("Errors", _pictures(listed, written)))
    entry.blocks.append(space.block("The text", written, _lost(event, "written")))
    return entry


def _pictures(found: Sequence[Mapping[str, Any]], written: str) -> str:
    """Render diagnostics, given as JSON objects, with the text to which their positions refer."""
    source = Source(written, "<answer>")
    drawn = [picture(_diagnostic(each, len(written)), source) for each in found[:_PICTURED]]
    more = len(found) - len(drawn)
    return "\n\n".join([*drawn, *([f"and {more:,} more"] if more else [])])


def _diagnostic(parts: Mapping[str, Any], length: int) -> Diagnostic:
    where, hints = parts.get("span"), parts.get("hints")
    span = None
    if isinstance(where, Mapping):
        start = min(max(0, number(where, "start")), length)
        span = Span(start, min(max(start, number(where, "end")), length))
    severity: Any = parts.get("severity") if parts.get("severity") in ("error", "warning", "info") else "error"
    helps = tuple(str(hint) for hint in hints) if isinstance(hints, list) else ()
    return Diagnostic(text(parts, "code"), severity, text(parts, "message"), span, helps)


def command_entry(event: Mapping[str, Any]) -> Entry:
    """Return the entry for a command that begins; the title is the command in words."""
    command = text(event, "command")
    return Entry("command", command_words(command), "", "", command)


def _branch(event: Mapping[str, Any]) -> Entry:
    """Return the entry for the result of an action in a state."""
    value, child = figure(event, "value"), figure(event, "child")
    status = text(event, "status")
    led = f" to state {child:.0f}" if child is not None else ""
    worth = f", value {value:.2f}" if value is not None else ""
    entry = Entry(
        "branch", f"Branch of state {number(event, 'node')}{led}",
        {"done": "success", "merged": "empty", "failed": "error"}.get(status, "partial"),
        f"{status}{f' ({outcome})' if (outcome := text(event, 'outcome')) else ''}{worth}",
    )  # fmt: skip
    if message := text(event, "message"):
        entry.lines.append(message)
    return entry


def _lost(event: Mapping[str, Any], name: str) -> int:
    """Return how many characters of the field ``name`` the log did not store."""
    cut = event.get("cut")
    return max(0, number(cut, name) - len(text(event, name))) if isinstance(cut, Mapping) else 0


_TURNS = 100
"""The number of a planner's call is the number of its step times this constant, plus its turn (``planner.call_number``)."""
_PLAN, _EXECUTE, _VALUE = "hypothesize and plan", "execute", "judge states"
_INTERRUPTED = "interrupted"
_WARNINGS = 100


def add_events(account: Account, events: Iterable[Mapping[str, Any]], *, searched: bool = False) -> None:
    """Add ``events`` to ``account``. ``searched`` is true if the question was answered by a search over plans."""
    reader = _EventReader(account, searched)
    for event in events:
        reader.take(event)
    reader.end()


@define
class _ActivePhase:
    """A phase in progress, its start, and the time of its last event."""

    phase: Phase
    began: float
    last: float = 0.0


@define
class _ActiveEntry:
    """A call or command in progress, and its phase. ``again`` is how often the call was repeated."""

    phase: Phase
    entry: Entry
    again: int = 0


@define
class _EventReader:
    """Processes the events of a run in order."""

    account: Account
    searched: bool
    _step: int = 1
    _attempts: int = 0
    _script: str = "run"
    """The step of the script that began last."""
    _scripts: set[str] = field(factory=set)
    _begun: dict[int, _ActivePhase] = field(factory=dict)
    """Maps each request to its phase in progress."""
    _calls: dict[tuple[Any, ...], list[_ActiveEntry]] = field(factory=dict)
    _commands: dict[tuple[str, str], _ActiveEntry] = field(factory=dict)

    def take(self, event: Mapping[str, Any]) -> None:
        """Process one event."""
        account = self.account
        match event.get("event"):
            case str(name) if name == OPENED:
                self._attempts += 1
                self._interrupted()
                account.attempts = max(1, self._attempts)
            case "phase.started":
                self._phase_started(event)
            case "phase.finished":
                self._phase_finished(event)
            case "call.started":
                phase = self._phase(event)
                entry = call_entry(event, account.space, self._place_of(event, phase))
                phase.add(entry)
                self._calls.setdefault(_call(event), []).append(_ActiveEntry(phase, entry))
            case "call.retried":
                self._retried(event)
            case "call.finished":
                self._call_finished(event)
            case "command.started":
                phase = self._phase(event)
                entry = command_entry(event)
                phase.add(entry)
                self._commands[_command(event)] = _ActiveEntry(phase, entry)
            case "command.finished":
                self._command_finished(event)
            case "plan.finished":
                if account.kind == "ask":
                    self._phase(event).status = text(event, "status")
            case "step.started":
                self._script = text(event, "step")
                self._scripts.add(self._script)
            case "step.finished" | "step.skipped":
                self._scripts.add(text(event, "step"))
                self._step_over(event)
            case "decision.made":
                self._decided(event)
            case "hypothesis.formed":
                self._add_hypothesis(event)
            case "warning":
                if len(account.warnings) < _WARNINGS:
                    account.warnings.append(text(event, "message"))
            case "run.finished":
                if account.kind == "script":
                    account.status = account.status or text(event, "status")
            case _:
                if (remark := remark_entry(event, account.space)) is not None:
                    self._phase(event).add(remark)

    def end(self) -> None:
        """Mark the work that was in progress when the log ended as interrupted."""
        self._interrupted()

    # Attribution of an event

    def _phase(self, event: Mapping[str, Any]) -> Phase:
        found = self._place(event)
        at = self._begun.get(_request(event))
        if at is None or at.phase is not found:
            if at is not None and self.account.kind == "ask" and not self.searched:
                self._timed(at)
            self._begun[_request(event)] = at = _ActivePhase(found, _time(event))
        at.last = max(at.last, _time(event))
        return found

    def _place(self, event: Mapping[str, Any]) -> Phase:
        account, step = self.account, text(event, "step")
        if account.kind == "ask":
            planning = step == "planner" or event.get("event") in ("repair.asked", "decision.made")
            if self.searched:
                return account.section("search", "search").phase(
                    _PLAN if planning else _VALUE if step == "value" else _EXECUTE
                )
            if step == "planner" and number(event, "item") >= _TURNS:
                self._step = number(event, "item") // _TURNS
            elif event.get("event") == "repair.asked":
                self._step = number(event, "request") or self._step
            return self._section(self._step).phase(_PLAN if planning else _EXECUTE)
        if account.kind == "script":
            return account.section("", "steps").phase(self._script_step(event))
        if account.kind == "seed":
            return account.section("", "reviews").phase("extract")
        at = self._begun.get(_request(event))
        if at is not None:
            return at.phase
        return account.section(_request(event), self._label(event)).phase("other")

    def _script_step(self, event: Mapping[str, Any]) -> str:
        """Return the script step to which an event belongs. A command and its calls have their own numbers; the plan names the step."""
        plan = text(event, "plan").rpartition("/")[2]
        name = plan or text(event, "step")
        return name if name in self._scripts or (name and not self.account.logged) else self._script

    def _label(self, event: Mapping[str, Any]) -> str:
        return f"R{_request(event):02}" if self.account.kind == "rank" else "steps"

    def _place_of(self, event: Mapping[str, Any], phase: Phase) -> str:
        """Return the step for the title of a call; "" for a call that a loop makes, whose number would not help the reader."""
        step, item = text(event, "step"), event.get("item")
        if step in ("", "planner", "value") or step.partition(".")[2] == phase.name:
            return ""
        return f"{step}[{item}]" if isinstance(item, int) else step

    def _section(self, step: int) -> Section:
        return self.account.section(step, f"step {step}")

    # Handlers of events

    def _phase_started(self, event: Mapping[str, Any]) -> None:
        if self.account.kind == "ask":
            return
        section = self.account.section(_request(event), self._label(event))
        if text(event, "loop") == "rank" and text(event, "phase") == "plan":
            section.title = text(event, "detail")
        phase = section.phase(text(event, "phase"))
        self._begun[_request(event)] = _ActivePhase(phase, _time(event))

    def _phase_finished(self, event: Mapping[str, Any]) -> None:
        if self.account.kind == "ask":
            return
        section = self.account.section(_request(event), self._label(event))
        phase, detail = section.phase(text(event, "phase")), text(event, "detail")
        phase.status = text(event, "status")
        phase.figures.seconds += _float(event, "seconds")
        self._begun.pop(_request(event), None)
        ranks = text(event, "loop") == "rank" and phase.status not in ("failed", "cancelled")
        if ranks and phase.name == "execute":
            section.result = detail
        elif ranks:
            phase.document = self.account.space.block("The script", detail)
        else:
            phase.detail = detail

    def _retried(self, event: Mapping[str, Any]) -> None:
        waiting = self._calls.get(_call(event))
        if waiting:
            waiting[0].again += 1
            waiting[0].entry.lines.append(f"asked again ({text(event, 'kind')}): {text(event, 'reason')[:500]}")
        else:
            self._phase(event).add(
                Entry("retry", "Asked again", "partial", text(event, "kind"), lines=[text(event, "reason")[:500]])
            )

    def _call_finished(self, event: Mapping[str, Any]) -> None:
        waiting = self._calls.get(_call(event))
        begun = waiting.pop(0) if waiting else None
        if begun is None:  # in a run whose events were not stored
            phase = self._phase(event)
            begun = _ActiveEntry(phase, call_entry(event, self.account.space, self._place_of(event, phase)))
            begun.phase.add(begun.entry)
        if (
            self.searched or not self.account.logged
        ):  # parallel calls, or unknown times: use the total time of the calls
            begun.phase.figures.seconds += _float(event, "seconds")
        begun.phase.figures.call(event, begun.again)
        at = self._begun.get(_request(event))
        if at is not None and at.phase is begun.phase:
            at.last = max(at.last, _time(event))
        answer_entry(begun.entry, event, self.account.space)

    def _command_finished(self, event: Mapping[str, Any]) -> None:
        begun = self._commands.pop(_command(event), None)
        if begun is None:
            begun = _ActiveEntry(self._phase(event), command_entry(event))
            begun.phase.add(begun.entry)
        entry = begun.entry
        entry.status = text(event, "status")
        count = figure(event, "count")
        parts = f", {count:,.0f}" if count is not None else ""
        entry.outcome = f"{entry.status}{parts} · {_float(event, 'seconds'):.2f} s"
        if self.searched:
            begun.phase.figures.seconds += _float(event, "seconds")
        if message := text(event, "message"):
            entry.lines.append(message)

    def _step_over(self, event: Mapping[str, Any]) -> None:
        status, reason, step = text(event, "status") or "skipped", text(event, "reason"), text(event, "step")
        phase = self._phase(event)
        if self.account.kind == "script":
            phase.status = "reused" if event.get("reused") else status
            phase.figures.seconds += _float(event, "seconds")
        if status != "done" or event.get("reused"):
            parts = "reused" if event.get("reused") else status
            phase.add(
                Entry(
                    "step",
                    f"Step {step}",
                    "error" if status == "failed" else "partial",
                    parts,
                    lines=_non_empty(reason),
                )
            )

    def _decided(self, event: Mapping[str, Any]) -> None:
        if not self.searched:
            self._step = number(event, "step") or self._step
        phase, decision = self._phase(event), text(event, "decision")
        phase.status = "done"
        by = " (by rule)" if text(event, "by") == "rule" else ""
        ungrounded = text(event, "ungrounded")
        parts = [*_non_empty(text(event, "why")), *_non_empty(f"ungrounded: {ungrounded}" if ungrounded else "")]
        phase.add(Entry("decision", f"Decision: {decision}{by}", "partial" if ungrounded else "success", lines=parts))
        if answer := text(event, "answer"):
            self.account.answer = answer
        if not self.searched:
            section = self._section(self._step)
            section.label = f"step {self._step}, {decision}"

    def _add_hypothesis(self, event: Mapping[str, Any]) -> None:
        if not self.searched:
            self._step = number(event, "step") or self._step
            self._section(self._step).title = text(event, "hypothesis")
        commands = event.get("commands")
        listed = [str(each) for each in commands] if isinstance(commands, list) else []
        others = number(event, "alternatives")
        others_text = f", before {others} other plans" if others else ""
        phase = self._phase(event)
        phase.add(
            Entry(
                "plan", f"Hypothesis: {text(event, 'hypothesis') or '(none given)'}", "",
                f"plan {text(event, 'plan')}, confidence {_float(event, 'confidence'):g}{others_text}",
                lines=["resumed after the commands that were already executed"] if event.get("resumed") else [],
                blocks=[self.account.space.block("The plan", "\n".join(listed))],
            )
        )  # fmt: skip

    # Interrupted work

    def _interrupted(self) -> None:
        """Mark everything in progress as interrupted, because the next attempt begins or the log ends."""
        for waiting in self._calls.values():
            for begun in waiting:
                begun.entry.status, begun.entry.outcome = "error", "no answer before the run ended"
        for begun in self._commands.values():
            begun.entry.status, begun.entry.outcome = "error", "the run ended before the command"
        for at in self._begun.values():
            at.phase.status = at.phase.status or _INTERRUPTED
            self._timed(at)
        self._calls.clear()
        self._commands.clear()
        self._begun.clear()

    def _timed(self, at: _ActivePhase) -> None:
        """Add the elapsed time of a phase without an end event to the figures of the phase."""
        if self.account.kind != "script" and not self.searched:
            at.phase.figures.seconds += max(0.0, at.last - at.began)


def _request(event: Mapping[str, Any]) -> int:
    return number(event, "request") if event.get("event") != "repair.asked" or text(event, "loop") != "ask" else 0


def _call(event: Mapping[str, Any]) -> tuple[Any, ...]:
    return _request(event), text(event, "step"), number(event, "item") if event.get("item") is not None else None


def _command(event: Mapping[str, Any]) -> tuple[str, str]:
    return text(event, "plan"), text(event, "step")


def _time(event: Mapping[str, Any]) -> float:
    return _float(event, "time")


def _float(event: Mapping[str, Any], name: str) -> float:
    return figure(event, name) or 0.0


def _non_empty(parts: str) -> list[str]:
    return [parts] if parts else []
