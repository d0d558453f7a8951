"""The end of ``ask``: writes the answer to stdout, and its evidence, its cost and the command that continues to stderr."""

import shlex
import sys
from pathlib import Path
from typing import Any, Literal

from attrs import define, evolve, field, frozen

from ....lang.diagnostic import printable
from ...api.ask import MOST_CALLS, Asked, Explored, Finding, Tree
from ...api.figures import Calls, counted
from ...api.files import replace_file
from ...events import BranchClosed, BranchOpened, DecisionMade, Event, HypothesisFormed, RepairAsked
from ...excerpts import clipped, excerpt
from ..options import GraphOptions, Limits
from .output import Exit, colour, complain, is_terminal, json_text, paint, say, write
from .run_program import CommandLines

# The arguments of ``ask`` as objects.

Form = Literal["auto", "plain", "json"]


@frozen
class SearchOptions:
    """The options of a search. ``strategy`` is None if there is no search; ``tree`` is the output file of the tree."""

    strategy: str | None = None
    width: int = 3
    branching: int = 3
    depth: int = 8
    value: str = "judge"
    enough: float = 0.8
    tree: str | None = None

    @property
    def settings(self) -> dict[str, Any] | None:
        """The settings for the argument ``search`` of ``knotwork.ask``; None if there is no search."""
        if self.strategy is None:
            return None
        return {
            "strategy": self.strategy, "width": self.width, "branching": self.branching, "max_depth": self.depth,
            "enough": self.enough,
        }  # fmt: skip


@frozen
class Question:
    """The arguments of ``knotwork ask``."""

    text: str
    graph_options: GraphOptions
    llm: str | None
    max_steps: int
    max_repairs: int
    prompt_characters: int | None
    time_limit: float | None
    again: bool
    form: Form
    max_concurrency: int
    limits: Limits
    search: SearchOptions = SearchOptions()


_STYLES = {"complete": "green", "ungrounded": "yellow", "stopped": "yellow", "failed": "red", "cancelled": "yellow"}
_CODES = {
    "complete": Exit.DONE, "ungrounded": Exit.PARTIAL, "stopped": Exit.FAILED, "failed": Exit.FAILED,
    "cancelled": Exit.INTERRUPTED,
}  # fmt: skip
_FINDINGS = 10
_ITEM, _SOURCE = 160, 120
_TREE = 15
"""Maximum number of lines of a search tree that is shown in full. For a larger tree, only the path to the best state is shown."""


def finish(made: Asked, calls: Calls, asked: Question) -> int:
    """Write the answer and the report; return the exit code."""
    if asked.form == "json":
        print(json_text(made.as_json()))
    elif made.answer:
        write(made.answer)
    sys.stdout.flush()
    if made.answer and is_terminal(sys.stdout) and is_terminal(sys.stderr):
        say()
    if made.search is not None:
        _report_search(made.search, whole=asked.search.tree == "-")
    _report(made, calls, asked)
    code = _CODES[made.status]
    if made.incomplete and code == Exit.DONE:
        code = Exit.PARTIAL
    if made.unkept and code in (Exit.DONE, Exit.PARTIAL):
        code = Exit.FAILED
    return (
        code
        if asked.search.tree in (None, "-") or _write_tree(made.tree, Path(asked.search.tree))
        else code or Exit.FAILED
    )


def _report_search(search: Explored, whole: bool) -> None:
    """Report the search. For a large tree, only the path to the best state is shown, unless ``whole`` is set."""
    lines = [] if search.tree is None else search.tree.text().splitlines()
    path_lines = [line for line in lines if line.startswith("*")]
    value = "without a value" if search.value is None else f"worth {search.value:.2f}"
    plans = counted(search.plans, "plan")
    count = 0 if search.tree is None else len(search.tree.nodes)
    states = f", {counted(count, 'state')}" if count else ""
    say(f"{search.strategy}: {plans}{states}, the best {value}")
    for line in lines if whole or len(lines) <= _TREE else path_lines:
        say(printable(line))
    if not whole and len(lines) > _TREE:
        say(
            f"  and {counted(len(lines) - len(path_lines), 'other branch', 'other branches')}; --tree - shows the whole tree"
        )


def _write_tree(tree: Tree | None, path: Path) -> bool:
    """Write the search tree in the format that the file's suffix names; return whether it was written."""
    if tree is None:
        complain(f"no tree to write to {path}", "only --search makes one")
        return False
    forms = {".json": tree.dumps, ".mmd": tree.mermaid, ".dot": tree.dot}
    text = forms.get(path.suffix.lower(), tree.text)()
    try:
        replace_file(path, text if text.endswith("\n") else f"{text}\n")
    except OSError as error:
        complain(f"{path} can't be written: {error.strerror or error}")
        return False
    return True


def _report(made: Asked, calls: Calls, asked: Question) -> None:
    if made.evidence:
        say("evidence:")
        for found in made.evidence[:_FINDINGS]:
            say(printable(f"  {_finding_line(found)}"))
        if len(made.evidence) > _FINDINGS:
            say(f"  and {len(made.evidence) - _FINDINGS} more; --format json has them")
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
    if made.reason:
        say(printable(made.reason))
    if asked.graph_options.state is None:
        if made.status != "complete":
            say("with --state DIR, the same command would continue here")
        if more := _more_calls(made, asked):
            say(f"--max-calls {more} allows more calls")
        return
    if made.unkept:
        say(printable(f"not everything is saved in {asked.graph_options.state}: {made.unkept}"))
    else:
        say(f"saved in {printable(asked.graph_options.state)}")
    if made.status != "complete":
        also = "; another model (--llm) may do better" if made.stopped in ("refused", "no_progress") else ""
        say(f"resume with: {_command(made, asked)}{also}")


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


def _command(made: Asked, asked: Question) -> str:
    """Return the command that continues. If the limit on steps or calls was reached, the command doubles it."""
    words = [
        "knotwork",
        "ask",
        str(asked.graph_options.graph),
        made.question,
        "--state",
        str(asked.graph_options.state),
    ]
    if asked.llm is not None:
        words += ["--llm", asked.llm]
    words += ["--force"] if asked.graph_options.force else []
    words += ["--raw"] if asked.graph_options.raw else []
    words += _search_options(asked.search, made.stopped == "exhausted")
    if made.stopped in ("refused", "no_progress") and not str(asked.llm).startswith(("replay:", "record:")):
        words += ["--no-cache"]  # the cache would return the same answer for the same prompt
    if more := _more_calls(made, asked):
        words += ["--max-calls", str(more)]
    elif asked.limits.max_calls not in (None, MOST_CALLS):
        words += ["--max-calls", str(asked.limits.max_calls)]
    if made.stopped == "steps" or (made.stopped == "refused" and len(made.steps) >= asked.max_steps):
        words += ["--max-steps", str(2 * asked.max_steps)]
    elif asked.max_steps != 12:
        words += ["--max-steps", str(asked.max_steps)]
    return shlex.join(words)


def _more_calls(made: Asked, asked: Question) -> int:
    """Return a higher limit on calls if the present limit ended the loop; otherwise 0."""
    most = asked.limits.max_calls
    return max(1, 2 * most) if made.stopped == "budget" and most is not None and made.calls >= most else 0


def _search_options(search: SearchOptions, exhausted: bool) -> list[str]:
    """Return the options of a search that are not defaults. If the search tried everything, return the options of a larger search.

    The depth is increased, not the number of branches: stored proposals are reused, so visited states would get no new branches.
    """
    strategy, depth = search.strategy, search.depth
    if strategy is None:
        return []
    if exhausted and strategy == "greedy":
        strategy = "beam"
    elif exhausted:
        depth += 4
    search, words = evolve(search, depth=depth), ["--search", strategy]
    for name in ("width", "branching", "depth", "value", "enough"):
        if (given := getattr(search, name)) != getattr(SearchOptions(), name):
            words += [f"--{name}", str(given)]
    return words


# The output while a question is answered: decisions, hypotheses, finished commands, branches, repairs.

_LONGEST, _BRIEF = 400, 160
_LINE_STYLES = {"start": "cyan", "continue": "green", "refine": "yellow", "pivot": "yellow", "terminate": "green"}


@define
class Lines:
    """Prints a line on stderr for each decision, hypothesis and branch, and for each command of a plan."""

    most: int
    _commands: CommandLines = field(factory=CommandLines)
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
                    event.reason or "it can't be read",
                )
                refused = "plan refused, asked" if event.written else "asked"  # without an answer there was no plan
                self.note(f"  {refused} again ({event.attempt}): {clipped(str(first), _LONGEST)}")
            case BranchOpened():
                self._open.setdefault(event.node, []).append(event)
            case BranchClosed():
                self._branch_closed(event)
            case _:
                self._commands(event)

    def note(self, text: str) -> None:
        """Print a line."""
        self._commands.note(text)

    def stop(self) -> None:
        """Do nothing."""

    def _branch_closed(self, event: BranchClosed) -> None:
        begun = self._open.get(event.node)
        opened = begun.pop(0) if begun else None  # a state's branches end in the order in which they began
        if begun == []:
            del self._open[event.node]
        outcome = event.outcome or event.status
        if event.child is None:
            came = f"{outcome}: {event.message}" if event.message else outcome
        else:
            there = "state {} again" if event.status == "merged" else "state {}"
            came = f"{outcome}, {there.format(event.child)}"
            came += f" worth {event.value:.2f}" if event.value is not None else ""
        why = [] if opened is None else [clipped(each, _BRIEF) for each in (opened.rationale, opened.plan) if each]
        about = f" {': '.join(why)}" if why else ""
        self.note(f"  branch of state {event.node}:{about} → {clipped(came, _LONGEST)}")
