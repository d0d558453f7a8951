"""What stands at the end: the answer on stdout, on stderr what it rests on, what it cost, and how to go on."""

import shlex
import sys
from pathlib import Path

from attrs import evolve

from .....lang.diagnostic import printable
from ....excerpts import clipped, excerpt
from ....loops.search import MOST_CALLS, Tree
from ....loops.traversal.traversal_results import Asked, Explored, Finding
from ...counting import Calls
from ...replacing import replace_file
from ..shared.exit import Exit
from ..shared.output import colour, complain, is_terminal, json_text, paint, say, write
from .asked import Question, Searched

__all__ = ["finish"]

_STYLES = {"complete": "green", "ungrounded": "yellow", "stopped": "yellow", "failed": "red", "cancelled": "yellow"}
_CODES = {
    "complete": Exit.DONE, "ungrounded": Exit.PARTIAL, "stopped": Exit.FAILED, "failed": Exit.FAILED,
    "cancelled": Exit.INTERRUPTED,
}  # fmt: skip
_FINDINGS = 10
_ITEM, _SOURCE = 160, 120
_TREE = 15
"""Lines of a tree that are shown; of a larger one the way to the best state."""


def finish(made: Asked, calls: Calls, asked: Question, unkept: str = "") -> int:
    """Write the answer and the report; return the exit code. ``unkept``: why not all of it is kept, where it should be."""
    if asked.form == "json":
        print(json_text(made.as_json()))
    elif made.answer:
        write(made.answer)
    sys.stdout.flush()
    if made.answer and is_terminal(sys.stdout) and is_terminal(sys.stderr):
        say()
    if made.search is not None:
        _searched(made.search, whole=asked.search.tree == "-")
    _report(made, calls, asked, unkept)
    code = _CODES[made.status]
    if made.incomplete and code == Exit.DONE:
        code = Exit.PARTIAL
    if unkept and code in (Exit.DONE, Exit.PARTIAL):
        code = Exit.FAILED
    return (
        code
        if asked.search.tree in (None, "-") or _written(made.tree, Path(asked.search.tree))
        else code or Exit.FAILED
    )


def _searched(search: Explored, whole: bool) -> None:
    """Tell how the search went: of a large tree the way to the best state only."""
    lines = [] if search.tree is None else search.tree.text().splitlines()
    way = [line for line in lines if line.startswith("*")]
    value = "of a value that could not be told" if search.value is None else f"worth {search.value:.2f}"
    plans = f"{search.plans} plan{'' if search.plans == 1 else 's'}"
    count = 0 if search.tree is None else len(search.tree.nodes)
    states = f", {count} state{'' if count == 1 else 's'}" if count else ""
    say(f"{search.strategy}: {plans}{states}, the best {value}")
    for line in lines if whole or len(lines) <= _TREE else way:
        say(printable(line))
    if not whole and len(lines) > _TREE:
        beside = len(lines) - len(way)
        say(
            f"  and {beside} branch{'' if beside == 1 else 'es'} beside; --tree - shows {'it' if beside == 1 else 'them'}"
        )


def _written(tree: Tree | None, path: Path) -> bool:
    """Write the tree in the form that the file's name asks for; say whether that was possible."""
    if tree is None:
        complain(f"there is no tree to write to {path}", "it is there after --search")
        return False
    forms = {".json": tree.dumps, ".mmd": tree.mermaid, ".dot": tree.dot}
    text = forms.get(path.suffix.lower(), tree.text)()
    try:
        replace_file(path, text if text.endswith("\n") else f"{text}\n")
    except OSError as error:
        complain(f"{path} can't be written: {error.strerror or error}")
        return False
    return True


def _report(made: Asked, calls: Calls, asked: Question, unkept: str) -> None:
    if made.evidence:
        say("evidence:")
        for found in made.evidence[:_FINDINGS]:
            say(printable(f"  {_told(found)}"))
        if len(made.evidence) > _FINDINGS:
            say(f"  and {len(made.evidence) - _FINDINGS} more; --format json has them")
    if not made.calls:  # told again from what was kept: no warning was shown
        for reason in made.incomplete:
            say(printable(f"the answer may not be the whole one: {reason}"))
    status = paint(made.status, _STYLES[made.status], colour(sys.stderr))
    steps = f"{len(made.steps)} step{'' if len(made.steps) == 1 else 's'}"
    parts = [
        steps,
        *([f"{made.earlier} of them before"] if made.earlier else []),
        calls.line(),
        f"{made.seconds:.2f} s",
    ]
    say(f"{status}: {' · '.join(parts)}")
    if made.reason:
        say(printable(made.reason))
    if asked.ground.state is None:
        if made.status != "complete":
            say("with --state DIR the same command goes on where it stood")
        if more := _more_calls(made, asked):
            say(f"--max-calls {more} allows more calls")
        return
    if unkept:
        say(printable(f"not all of it is kept in {asked.ground.state}: {unkept}"))
    else:
        say(f"kept in {printable(asked.ground.state)}")
    if made.status != "complete":
        also = "; another model (--llm) may do better" if made.stopped in ("refused", "no_progress") else ""
        say(f"go on with: {_command(made, asked)}{also}")


def _told(found: Finding) -> str:
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
    """Return the command that goes on; after the last step that was allowed it allows as many again."""
    words = ["knotwork", "ask", str(asked.ground.graph), made.question, "--state", str(asked.ground.state)]
    if asked.llm is not None:
        words += ["--llm", asked.llm]
    words += ["--force"] if asked.ground.force else []
    words += ["--raw"] if asked.ground.raw else []
    words += _search_options(asked.search, made.stopped == "exhausted")
    if made.stopped in ("refused", "no_progress") and not str(asked.llm).startswith(("replay:", "record:")):
        words += ["--no-cache"]  # the same prompt would find the same answer there
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
    """Return how many calls would do where they ended it; 0 where they did not."""
    most = asked.limits.max_calls
    return max(1, 2 * most) if made.stopped == "budget" and most is not None and made.calls >= most else 0


def _search_options(search: Searched, exhausted: bool) -> list[str]:
    """Return the options of a search that are not the usual ones; of one that tried everything those of a larger one.

    What it asked for is kept, so that more branches would change nothing where it was.
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
        if (given := getattr(search, name)) != getattr(Searched(), name):
            words += [f"--{name}", str(given)]
    return words
