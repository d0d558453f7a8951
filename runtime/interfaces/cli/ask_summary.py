"""The output of ``ask``: the answer on stdout; its evidence, its cost and the command that resumes the run on stderr."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from attrs import define, field

from ....lang.diagnostic import printable
from ...api.ask import MOST_CALLS, Asked, Explored, Finding, QuestionRun, Tree
from ...api.figures import Calls, counted
from ...api.files import replace_file
from ...events import BranchClosed, BranchOpened, DecisionMade, Event, HypothesisFormed, RepairAsked
from ...excerpts import clipped, excerpt
from .output import Exit, colour, complain, is_terminal, json_text, paint, say, say_prices, write
from .run_program import CommandLines

Form = Literal["auto", "plain", "json"]
SEARCH: Mapping[str, Any] = {"width": 3, "branching": 3, "depth": 8, "value": "judge", "enough": 0.8}
"""The search options, and their defaults on the command line."""

_STYLES = {"complete": "green", "ungrounded": "yellow", "stopped": "yellow", "failed": "red", "cancelled": "yellow"}
_CODES = {
    "complete": Exit.DONE, "ungrounded": Exit.PARTIAL, "stopped": Exit.FAILED, "failed": Exit.FAILED,
    "cancelled": Exit.INTERRUPTED,
}  # fmt: skip
_FINDINGS = 10
_ITEM, _SOURCE = 160, 120
_TREE = 15
"""Maximum number of lines of a search tree that is shown in full. For a larger tree, only the path to the best state is shown."""


def finish(
    made: Asked, calls: Calls, asked: QuestionRun, form: Form, tree: str | None, search: Mapping[str, Any]
) -> int:
    """Write the answer and the report; return the exit code.

    ``tree`` is the value of --tree; ``search`` contains the other search options.
    """
    if form == "json":
        print(json_text(made.as_json()))
    elif made.answer:
        write(made.answer)
    sys.stdout.flush()
    if made.answer and is_terminal(sys.stdout) and is_terminal(sys.stderr):
        say()
    if made.search is not None:
        _report_search(made.search, whole=tree == "-")
    _report(made, calls, asked, search)
    code = _CODES[made.status]
    if made.incomplete and code == Exit.DONE:
        code = Exit.PARTIAL
    if made.unkept and code in (Exit.DONE, Exit.PARTIAL):
        code = Exit.FAILED
    return code if tree in (None, "-") or _write_tree(made.tree, Path(tree)) else code or Exit.FAILED


def _report_search(search: Explored, whole: bool) -> None:
    """Report the search. For a large tree, only the path to the best state is shown, unless ``whole`` is set."""
    lines = [] if search.tree is None else search.tree.text().splitlines()
    path_lines = [line for line in lines if line.startswith("*")]
    value = "value unknown" if search.value is None else f"value {search.value:.2f}"
    plans = counted(search.plans, "plan")
    count = 0 if search.tree is None else len(search.tree.nodes)
    states = f", {counted(count, 'state')}" if count else ""
    say(f"{search.strategy}: {plans}{states}, best {value}")
    for line in lines if whole or len(lines) <= _TREE else path_lines:
        say(printable(line))
    if not whole and len(lines) > _TREE:
        say(
            f"  and {counted(len(lines) - len(path_lines), 'other branch', 'other branches')}; --tree - shows the complete tree"
        )


def _write_tree(tree: Tree | None, path: Path) -> bool:
    """Write the search tree in the format given by the file's suffix; return True on success."""
    if tree is None:
        complain(f"{path} was not written: the answer has no search tree", "only --search creates a search tree")
        return False
    forms = {".json": tree.dumps, ".mmd": tree.mermaid, ".dot": tree.dot}
    text = forms.get(path.suffix.lower(), tree.text)()
    try:
        replace_file(path, text if text.endswith("\n") else f"{text}\n")
    except OSError as error:
        complain(f"{path} can't be written: {error.strerror or error}")
        return False
    return True


def _report(made: Asked, calls: Calls, asked: QuestionRun, search: Mapping[str, Any]) -> None:
    if made.evidence:
        say("evidence:")
        for found in made.evidence[:_FINDINGS]:
            say(printable(f"  {_finding_line(found)}"))
        if len(made.evidence) > _FINDINGS:
            say(f"  and {len(made.evidence) - _FINDINGS} more; --format json shows all")
    if not made.calls:  # a stored answer, whose warnings were not shown yet
        for reason in made.incomplete:
            say(printable(f"the answer may be incomplete: {reason}"))
    status = paint(made.status, _STYLES[made.status], colour(sys.stderr))
    parts = [
        counted(len(made.steps), "step"),
        *([f"{made.earlier} in earlier runs"] if made.earlier else []),
        calls.line(),
        f"{made.seconds:.2f} s",
    ]
    say(f"{status}: {' · '.join(parts)}")
    say_prices(made.prices)
    if made.reason:
        say(printable(made.reason))
    if asked.options.state is None:
        if made.status != "complete":
            say("use --state DIR to make a run resumable")
        if more := _more_calls(made, asked):
            say(f"use --max-calls {more} to allow more calls")
        return
    if made.unkept:
        say(printable(f"not everything is saved in {asked.options.state}: {made.unkept}"))
    else:
        say(f"saved in {printable(str(asked.options.state))}")
    if made.status != "complete":
        also = "; another model (--llm) may do better" if made.stopped in ("refused", "no_progress") else ""
        say(f"resume with: {_command(made, asked, search)}{also}")


def _finding_line(found: Finding) -> str:
    sources = []
    for piece in found.evidence:
        named = (
            piece.get("source_id")
            or piece.get("doc_id")
            or piece.get("file_path")
            or piece.get("nodes")
            or piece.get("cited")
            or piece.get("command")
        )
        if piece.get("kind") == "model":
            sources.append(clipped(f"{piece.get('model')} citing {excerpt(named, _SOURCE)}", _SOURCE))
        elif named:
            sources.append(excerpt(named, _SOURCE))
    behind = f"  ← {'; '.join(dict.fromkeys(sources))}" if sources else ""
    return f"{found.key}: {excerpt(found.item, _ITEM)}{behind}"


def _command(made: Asked, asked: QuestionRun, search: Mapping[str, Any]) -> str:
    """Return the command that resumes the run. If the limit on steps or calls was reached, the command doubles this limit."""
    options, limit = asked.options, asked.limits["max_calls"]
    words = ["knotwork", "ask", str(options.graph), made.question, "--state", str(options.state)]
    words += ["--llm", asked.llm] if asked.llm is not None else []
    words += [flag for flag, on in (("--force", options.force), ("--raw", options.raw)) if on]
    words += _search_options(asked.strategy, search, made.stopped == "exhausted")
    if made.stopped in ("refused", "no_progress") and not str(asked.llm).startswith(("replay:", "record:")):
        words += ["--no-cache"]  # the cache would return the same answer for the same prompt
    if more := _more_calls(made, asked):
        words += ["--max-calls", str(more)]
    elif limit not in (None, MOST_CALLS):
        words += ["--max-calls", str(limit)]
    if made.stopped == "steps" or (made.stopped == "refused" and len(made.steps) >= asked.max_steps):
        words += ["--max-steps", str(2 * asked.max_steps)]
    elif asked.max_steps != 12:
        words += ["--max-steps", str(asked.max_steps)]
    return shlex.join(words)


def _more_calls(made: Asked, asked: QuestionRun) -> int:
    """Return a higher limit on calls if the current limit ended the run; otherwise 0."""
    most = asked.limits["max_calls"]
    return max(1, 2 * most) if made.stopped == "budget" and most is not None and made.calls >= most else 0


def _search_options(strategy: str | None, search: Mapping[str, Any], exhausted: bool) -> list[str]:
    """Return the search options as words of a command line, without default values.

    If the search was exhausted, the options describe a larger search. An exhausted greedy search becomes a beam search. Any
    other search becomes deeper, not wider, because stored proposals are reused: visited states would get no new branches.
    """
    if strategy is None:
        return []
    if exhausted and strategy == "greedy":
        strategy = "beam"
    elif exhausted:
        search = {**search, "depth": search["depth"] + 4}
    named = ((f"--{name}", str(search[name])) for name, default in SEARCH.items() if search[name] != default)
    return ["--search", strategy, *(word for pair in named for word in pair)]


# Output during the run: decisions, hypotheses, finished commands, branches, repairs.

_LONGEST, _BRIEF = 400, 160
_LINE_STYLES = {"start": "cyan", "continue": "green", "refine": "yellow", "pivot": "yellow", "terminate": "green"}


@define
class Lines(CommandLines):
    """Prints a line on stderr for each decision, hypothesis and branch, and for each command of a plan."""

    most: int = 0
    _open: dict[int, list[BranchOpened]] = field(factory=dict)
    _hypothesis: str = ""

    def __call__(self, event: Event) -> None:
        """Show one event."""
        match event:
            case DecisionMade():
                decision = paint(event.decision, _LINE_STYLES.get(event.decision, "yellow"), colour(sys.stderr))
                by = " (by rule)" if event.by == "rule" else " (ungrounded)" if event.ungrounded else ""
                why = f": {clipped(event.why, _LONGEST)}" if event.why else ""
                say(f"step {event.step} of at most {self.most} · {decision}{by}{printable(why)}")
            case HypothesisFormed():
                if event.resumed:
                    self.note(f"step {event.step} continues its plan {event.plan}")
                if event.hypothesis and not (self._open and event.hypothesis == self._hypothesis):
                    self.note(f"  hypothesis: {clipped(event.hypothesis, _LONGEST)}")
                self._hypothesis = event.hypothesis
                if event.alternatives and not self._open:  # a search tries the other plans too
                    self.note(
                        f"  chosen with confidence {event.confidence:g} over {counted(event.alternatives, 'other plan')}"
                    )
            case RepairAsked():
                first = next(
                    (each["message"] for each in event.diagnostics if each["severity"] == "error"),
                    event.reason or "the answer can't be read",
                )
                refused = "plan refused, asked" if event.written else "asked"  # without an answer, no plan was refused
                self.note(f"  {refused} again ({event.attempt}): {clipped(str(first), _LONGEST)}")
            case BranchOpened():
                self._open.setdefault(event.node, []).append(event)
            case BranchClosed():
                self._branch_closed(event)
            case _:
                super().__call__(event)

    def _branch_closed(self, event: BranchClosed) -> None:
        begun = self._open.get(event.node)
        opened = begun.pop(0) if begun else None  # the branches of a state end in the order in which they began
        if begun == []:
            del self._open[event.node]
        outcome = event.outcome or event.status
        if event.child is None:
            came = f"{outcome}: {event.message}" if event.message else outcome
        else:
            there = "state {} again" if event.status == "merged" else "state {}"
            came = f"{outcome}, {there.format(event.child)}"
            came += f", value {event.value:.2f}" if event.value is not None else ""
        why = [] if opened is None else [clipped(each, _BRIEF) for each in (opened.rationale, opened.plan) if each]
        about = f" {': '.join(why)}" if why else ""
        self.note(f"  branch of state {event.node}:{about} → {clipped(came, _LONGEST)}")
