"""Durable questions: each question has a folder in the state's folder, so that a killed loop can continue without paying twice.

``STATE/asks/RUN/run.jsonl`` has the format of ``runtime.runs.journal``. Its records::

    {"record": "run_started", "kind": "ask", "run", "time", "script", "input_hash", "versions", "model", "name", ...}
    {"record": "item_done", "step", "item", "input_hash", "output", "value", "usage", "cost", "calls", "seconds"}
    {"record": "in_vain", "answers": [[step, item, input_hash], ...]}
    {"record": "step_begun", "number", "supposed", "action", "alternatives", "mended", "repairs", "history", "state"}
    {"record": "step_done", "step": {...}}
    {"record": "found", "history", "state", "commands", "steps", "supposed", "answer", "cited", "search"}
    {"record": "run_finished", "status", "answer", "cited", "supposed", ...}

``script`` is the question, and ``input_hash`` is the hash of the graph. ``in_vain`` names useless planner answers: the next
attempt repeats those calls. ``step_begun`` is written before the plan's first command. In ``step_begun``, ``history`` and
``state`` are the length of the history and the hash of the state at that time; from them ``plan_run`` determines which commands
were done. ``found`` is written before the state adopts the result of a search; the state's history shows whether the state
adopted it.

A record that the state depends on is on disk before the state changes. The loop does not wait until model answers are on disk: a
power cut may lose some of these answers, but nothing else. ``STATE/asks/RUN/tree.json`` is the tree of the latest search.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from ....adapters.llm.budget import Price
from ...errors import RequestError
from ...gasl.surroundings import same_name, told_of_another
from ...results import Outcome, Recorded, Run, StepResult
from ...runs.journal import ASK, FILE, Journal, RunError, RunRecorder, StoredRun, begin, figures, hash_of
from ..search import Tree, TreeError
from .planner import Choose, highest
from .traversal_results import Asked, Bounds, Explored, Finding, Hypothesis, SearchRequest, Step, checked_question

FOLDER = "asks"
"""The folder of questions in a state's folder."""
TREE = "tree.json"
_RUN = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")
_LONGEST_HEAD = 1_000_000
_ELSEWHERE = "the state must be in a folder that can be read and written and has free space"


@define
class StoredQuestion(StoredRun):
    """A stored question.

    ``finished`` is the record of the question's end; None if the question is unfinished. ``begun`` is an interrupted step. ``found`` is
    the result of a search, whether or not the state adopted it.
    """

    kind = ASK
    steps: list[Step] = field(factory=list)
    begun: dict[str, Any] | None = None
    found: dict[str, Any] | None = None
    finished: dict[str, Any] | None = None

    @property
    def question(self) -> str:
        """The text of the question."""
        return str(self.head["script"])

    @property
    def is_over(self) -> bool:
        """Return whether the question is answered; a question that ended without an answer can be continued."""
        return self.finished is not None and self.finished.get("status") == "complete"

    @property
    def tree(self) -> Tree | None:
        """The tree of the latest search; None if there was no search, or the tree can't be read."""
        try:
            return Tree.from_json((self.path / TREE).read_text(encoding="utf-8"))
        except (OSError, UnicodeError, TreeError):
            return None

    def resume(self) -> "AskRecorder":
        """Open the question to continue it. Raises ``RunError`` if the question is in use elsewhere or can't be written.

        The call or step of a damaged record is repeated; the state shows which commands of a plan it has already committed.
        """
        return self.reopen(lambda journal, stored: stored.recorder(journal), force=True)

    def recorder(self, journal: Journal) -> "AskRecorder":
        """Return the recorder of the question."""
        return AskRecorder(self.run_id, self.path, journal, self.answers, kept=self)

    def take(self, record: dict[str, Any]) -> None:
        """Add a record. Raises ``KeyError``, ``TypeError`` or ``ValueError`` if its form is unknown."""
        match record["record"]:
            case "item_done":
                key = (record["step"], record["item"], record["input_hash"])
                self.answers[key] = Recorded(str(record["output"]), record.get("value", record["output"]))
            case "in_vain":
                for step, item, input_hash in record["answers"]:
                    self.answers.pop((step, item, input_hash), None)
            case "step_begun":
                self.begun = record
            case "step_done":
                step = Step.of(record["step"])
                if step.number == len(self.steps) + 1:
                    self.steps.append(step)
                self.begun = None
            case "found":
                self.found = record
            case "run_finished":
                self.finished, self.found = record, None
            case "run_resumed":
                self.finished = None


def asks(state: Path) -> list[StoredQuestion]:
    """Return the questions about a state, latest first; unreadable questions are skipped."""
    return [each for _, each in _read(state) if isinstance(each, StoredQuestion)]


def _read(state: Path) -> Iterator[tuple[Path, "StoredQuestion | str"]]:
    """Yield each question's folder, latest first, with its stored question or a message. Raises ``RunError``."""
    try:
        # The names of folders created within one second are not ordered; the time of the folder decides.
        folders = sorted(
            (state / FOLDER).iterdir(), key=lambda each: (each.name[:15], each.stat().st_mtime_ns), reverse=True
        )
    except (FileNotFoundError, NotADirectoryError):  # no questions yet
        return
    except OSError as error:
        raise RunError(f"{state / FOLDER} can't be read: {error.strerror or error}", _ELSEWHERE) from error
    for folder in folders:
        try:
            yield folder, StoredQuestion.load(folder)
        except RunError as error:
            yield folder, error.message
        except OSError as error:  # a folder without read permission
            yield folder, error.strerror or str(error)


def last_asked(state: Path, question: str) -> StoredQuestion | None:
    """Return the latest attempt at a question; None if the state has no attempt at it.

    Raises ``RunError`` if a later folder that may belong to this question can't be read, because a new attempt would pay again and
    repeat work in the state.
    """
    for folder, kept in _read(state):
        if isinstance(kept, StoredQuestion):
            if kept.question == question:
                return kept
        elif _may_be(folder, question):
            path = folder / FILE
            why = kept.removeprefix(f"{path} ") if path.is_file() else "the file does not exist"
            message = f"{path} can't be read, and may contain the answer to this question: {why}"
            raise RunError(
                message, f"--again starts a new attempt; or restore the file from a copy, or move {folder} away"
            )
    return None


def _may_be(folder: Path, question: str) -> bool:
    """Return whether an unreadable folder may belong to this question: False if the folder has no record or names another question."""
    if not _RUN.fullmatch(folder.name):
        return False
    try:
        with open(folder / FILE, "rb") as file:
            head = file.readline(_LONGEST_HEAD)
        if (
            not head.endswith(b"\n") and len(head) < _LONGEST_HEAD
        ):  # killed before the first record was written, so nothing was paid
            return _has_more(folder)
        told = json.loads(head)
    except FileNotFoundError:
        return _has_more(folder)
    except NotADirectoryError:
        return False
    except (OSError, ValueError, RecursionError):
        return True
    script = told.get("script") if isinstance(told, Mapping) else None
    if not isinstance(script, str) or script == question:
        return True
    # A single damaged byte changes either the question or its hash, never both.
    return bool(told.get("script_hash") != hash_of(script.encode("utf-8", "backslashreplace")))


def _has_more(folder: Path) -> bool:
    return any(each.name != FILE for each in folder.iterdir()) if folder.is_dir() else False


def open_asks(
    state: Path,
    question: str,
    *,
    graph: str = "",
    model: str = "",
    again: bool = False,
    options: Mapping[str, Any] | None = None,
) -> "AskRecorder | StoredQuestion":
    """Return the recorder of a new or continued question; if the question is already answered, return the ``StoredQuestion``.

    ``graph`` is the graph's hash, ``model`` is the spec as the user wrote it. With ``again``, always start a new attempt.
    Raises ``RunError``.
    """
    before = None if again else last_asked(state, question)
    if before is not None:
        return before if before.is_over else before.resume()
    if (state / FOLDER).exists() and not (state / FOLDER).is_dir():
        raise RunError(
            f"{state / FOLDER} is a file, but questions are stored in a folder of this name", "move the file away"
        )
    try:
        run_id, path, journal = begin(
            state / FOLDER, kind=ASK, script=question, script_hash=hash_of(question.encode()), input_hash=graph, model=model,
            name=question[:100], options=options,
        )  # fmt: skip
    except RunError as error:
        raise RunError(error.message, _ELSEWHERE) from error
    return StoredQuestion(run_id, path, {"input_hash": graph}).recorder(journal)


@define
class AskRecorder(RunRecorder):
    """Writes a question's records; implements ``results.Record``."""

    kept: StoredQuestion = field(kw_only=True)
    _settled: bool = field(default=False, init=False)  # whether the entries of the folders are on disk

    def item_done(self, step: str, item: int | None, outcome: Outcome, seconds: float) -> None:
        """Record an answer of a model."""
        key = (step, item, outcome.input_hash)
        self.kept.answers[key] = Recorded(outcome.output, outcome.value)
        self.append(
            {
                "record": "item_done", "step": step, "item": item, "input_hash": outcome.input_hash, "output": outcome.output,
                "value": outcome.value, **figures(seconds, outcome.usage, outcome.cost, outcome.calls),
            }
        )  # fmt: skip

    def in_vain(self, places: Sequence[tuple[str, int, str]]) -> None:
        """Record useless answers (step, item, input hash); the next attempt repeats these calls."""
        self.append({"record": "in_vain", "answers": [list(place) for place in places]})

    def step_begun(self, told: Mapping[str, Any]) -> None:
        """Record the plan that is about to run, before it begins."""
        self.append({"record": "step_begun", **told})
        self.sync()

    def search_found(self, told: Mapping[str, Any]) -> None:
        """Record the result that the state is about to adopt."""
        self.append({"record": "found", **told})
        self.sync()

    def keep_tree(self, tree: Tree) -> str:
        """Replace the stored search tree; return why the tree can't be written, or ""."""
        path = self.kept.path / TREE
        made = path.with_suffix(".new")
        try:
            with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
                file.write(tree.dumps())
            os.replace(made, path)
        except (OSError, UnicodeError) as error:
            with suppress(OSError):
                made.unlink()
            return f"the tree can't be written to {path}: {error}"
        return ""

    def turn_done(self, step: Step) -> None:
        """Record the result of a step."""
        self.append({"record": "step_done", "step": step.as_json()})

    def ended(self, told: Mapping[str, Any]) -> None:
        """Record the end and release the question."""
        self.append({"record": "run_finished", **told})
        self.sync()
        self.close()

    def step_done(self, result: StepResult, outcome: Outcome | None) -> None:
        """Do nothing: questions have no script steps."""

    def finished(self, run: Run) -> None:
        """Do nothing: see ``ended``."""

    def sync(self) -> None:
        """Wait until the stored question and its folders are on disk."""
        self._journal.sync()
        if not self._settled:
            self._settled = True
            for folder in (self.kept.path, self.kept.path.parent, self.kept.path.parent.parent):
                _settle(folder)


def _settle(folder: Path) -> None:
    """Wait until a folder's entries are on disk, if the system supports it."""
    with suppress(OSError):  # some file systems do not support this
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# Returns the answer to an already answered question from the store, without calling a model or running anything.


def stored_answer(kept: StoredQuestion) -> Asked:
    """Return the stored result; its cost figures are zero, because this attempt made no call."""
    end: dict[str, Any] = kept.finished or {}
    supposed, search = end.get("supposed"), end.get("search")
    return Asked(
        kept.question, "complete", str(end.get("answer", "")), supposed=None if supposed is None else Hypothesis(**supposed),
        cited=tuple(end.get("cited", ())),
        evidence=tuple(Finding(each["key"], each["item"], tuple(each["evidence"])) for each in end.get("evidence", ())),
        steps=tuple(kept.steps), earlier=len(kept.steps), run_id=kept.run_id, state=str(end.get("state", "")),
        uncited=tuple(end.get("uncited", ())), warnings=tuple(kept.damage),
        search=None if search is None else Explored(**search, tree=kept.tree),
        incomplete=tuple(end.get("incomplete", ())),
    )  # fmt: skip


@frozen
class QuestionRequest:
    """A question and how to answer it. ``model`` names the planner's model; None means the run's default model.

    ``folder`` is the state's folder, None for a state in memory, which can't be resumed. ``spec`` is the model's spec as the user
    wrote it. ``searching`` says how plans are searched; None means that plans run one after the other, and ``choose`` picks each plan.
    ``graph`` is the graph's name as the user wrote it, "" if it has no name. With ``force``, a state whose findings come from another
    graph is used too.
    """

    question: str = field(converter=checked_question)
    bounds: Bounds = field(factory=Bounds)
    folder: Path | None = None
    again: bool = False
    model: str | None = None
    spec: str = ""
    options: Mapping[str, Any] = field(factory=dict)
    as_json: bool = True
    choose: Choose = highest
    searching: SearchRequest | None = None
    graph: str = ""
    force: bool = False
    prices: Mapping[str, Price] = field(factory=dict)
    """Maps the specs of models to their known prices."""


def answered_before(wanted: QuestionRequest, graph: Callable[[], str]) -> Asked | None:
    """Return the stored answer to the question, or None. No model is called, and a graph with the same name is not read again.

    ``graph`` returns the hash of the current graph. Raises ``RequestError`` if the answer belongs to another graph. Raises
    ``RunError`` if the answer may be in an unreadable folder.
    """
    if wanted.folder is None or wanted.again:
        return None
    kept = last_asked(wanted.folder, wanted.question)
    if kept is None or not kept.is_over:
        return None
    name = str(kept.head.get("options", {}).get("graph", ""))
    if not (wanted.force or same_name(name, wanted.graph)) and kept.head.get("input_hash") not in ("", graph()):
        raise other_graph(wanted, name)
    return stored_answer(kept)


def other_graph(wanted: QuestionRequest, before: str) -> RequestError:
    """Return the error for a state whose findings come from another graph."""
    told = told_of_another(wanted.folder or "the state", before, wanted.graph)
    return RequestError("state", told, "choose another state for this graph, or use this state with force")
