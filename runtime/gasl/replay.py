"""Runs the recorded commands of a state again and compares the results. See ``docs/design/gasl.md#replay``.

The commands come from ``replay``. The history shows where plans begin, which settings they have, and which commands were
cancelled. Recorded model answers are reused. The comparison covers the variables with their provenance (without times), and the
status of each command. State changes made without a command (``merge``, ``rollback``) can't be repeated.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Unpack

from attrs import define, field, frozen

from ...adapters.graph import Caps, GraphAdapter
from ...adapters.llm import LLM, Completion, NotRecorded, Options, Usage, error_of
from ...adapters.llm.json_schema import canonical
from ...adapters.llm.middleware import Own, as_client
from ...adapters.state import StateStore
from ...lang.diagnostic import has_errors
from ...lang.parse.gasl import parse_command
from ...lang.trees.gasl import Param
from ..excerpts import abridged
from .dispatcher import CommandDispatcher
from .flow import Flow
from .record_writer import Turns, request_of
from .records import ContextStore, Session, Value, kept_text

_TOLD = 20
"""Maximum number of discrepancies in a verdict."""
_SHOWN = 200


@frozen
class Discrepancy:
    """One difference between the recorded run and the replay. Examples of ``where``: "step 3", "variables.authors.items[5]"."""

    where: str
    recorded: Any
    replayed: Any


@frozen
class Verdict:
    """The result of a replay.

    ``identical`` is true if every command ended with the recorded status, and the state is the same. ``differences`` has the
    first 20 differences. ``commands`` is the number of commands that ran, ``recalled`` the number of answers taken from the
    record, and ``asked`` the number of new model calls. ``remarks`` give possible reasons for differences.
    """

    identical: bool
    commands: int
    differences: tuple[Discrepancy, ...] = ()
    recalled: int = 0
    asked: int = 0
    remarks: tuple[str, ...] = ()


async def areplay(
    recorded: Mapping[str, Any],
    graph: GraphAdapter,
    state: StateStore,
    llm: Any = None,
    *,
    context: ContextStore | None = None,
    dispatcher: CommandDispatcher | None = None,
    chunks: Callable[[str], str | None] | None = None,
) -> Verdict:
    """Run the commands of the state object ``recorded`` in ``state``, which must be empty, and compare the results.

    ``llm`` is called if an answer is not recorded; without ``llm`` such a call fails. ``context`` has the variables that the
    host passed to every plan; ``chunks`` maps the id of a chunk to its text, as in the recorded run. Raises only
    ``StoreError``.
    """
    stored = recorded.get("replay") or {}
    state.configure(query=recorded.get("query"), config=recorded.get("config"), seed=stored.get("seed"))
    again = _Replay(
        graph, state, _Recall.of(stored.get("answers") or (), llm), context or ContextStore(), dispatcher, chunks
    )
    steps = _command_pairs(stored.get("commands") or (), recorded.get("history") or ())
    if steps is None:
        again.remarks.append("the history does not show where plans began, so the commands were run as one plan")
        steps = [(text, {}) for text in stored.get("commands") or ()]
    for text, entry in steps:
        await again.step(text, entry)
    again.compare(recorded, state)
    return Verdict(
        not again.found,
        again.commands,
        tuple(again.found[:_TOLD]),
        again.recall.recalled,
        again.recall.asked,
        tuple(dict.fromkeys(again.remarks)),
    )


Entry = Mapping[str, Any]


def _command_pairs(commands: Sequence[str], history: Sequence[Entry]) -> list[tuple[str | None, Entry]] | None:
    """Pair each history entry with the text of its command (None for a rejected command). Return None if they don't match."""
    texts = iter(commands)
    steps: list[tuple[str | None, Entry]] = []
    for entry in history:
        if "part" in entry:
            continue
        if entry.get("refused"):
            steps.append((None, entry))
            continue
        text = next(texts, None)
        if text is None or entry.get("command") != kept_text(text):
            return None
        steps.append((text, entry))
    if next(texts, None) is not None or not any("plan" in entry for _, entry in steps[:1]):
        return None if commands else []
    return steps


@define
class _Replay:
    """A running replay."""

    graph: GraphAdapter
    state: StateStore
    recall: "_Recall"
    given: ContextStore
    dispatcher: CommandDispatcher | None
    chunks: Callable[[str], str | None] | None = None
    commands: int = 0
    found: list[Discrepancy] = field(factory=list)
    remarks: list[str] = field(factory=list)
    _flow: Flow | None = None

    async def step(self, text: str | None, entry: Entry) -> None:
        """Run one recorded command. For a rejected command (no ``text``), only set the status of its variable."""
        if self._flow is None or "plan" in entry:
            self._flow = self._begin(entry)
        flow = self._flow
        if text is None:
            if "variable" in entry:
                flow.statuses[entry["variable"]] = entry["status"]
            return
        program = parse_command(text)
        self.commands += 1
        step = entry.get("step", self.commands)
        self.recall.turns.begin(step)
        if has_errors(program.diagnostics) or not program.statements:
            self.found.append(Discrepancy(f"step {step}", entry.get("status", "run"), "can't be read"))
            return
        command = program.statements[0].command
        if isinstance(command, Param) and "parameter" in entry:
            flow.session.parameters = {command.name.text: entry["parameter"]}
        if entry.get("parameter_left_out"):
            self.remarks.append("the value of a parameter was too large for the history")
        flow.next_step = lambda: step
        flow.source = program.source
        flow.cancelled = flow.cancelled_by_task = False
        flow.interrupt_at = frozenset(entry.get("interrupts", ()))
        record = await flow.run_one(command, text, entry.get("why"))
        if entry and record.status != entry.get("status"):
            message = (record.error or {}).get("message")
            self.found.append(
                Discrepancy(
                    f"step {step}", entry.get("status"), f"{record.status}: {message}" if message else record.status
                )
            )

    def _begin(self, entry: Entry) -> Flow:
        """Return a running plan with the same initial settings as the recorded plan."""
        stored = entry.get("plan") or {}
        if stored.get("graph") and stored["graph"] != self.graph.schema.hash:
            self.remarks.append("the graph differs from the recorded graph")
        variables = self.given.copy()
        for name, value in (stored.get("variables") or {}).items():
            variables.set(name, Value(value, incomplete=tuple((stored.get("incomplete") or {}).get(name, ()))))
        if stored.get("variables_left_out"):
            self.remarks.append("a plan's initial variables were too large for the history")
        session = Session(
            self.graph,
            self.state,
            _Recalled(self.recall, "") if stored.get("llm", True) else None,
            {name: _Recalled(self.recall, name) for name in stored.get("models", ())},
            variables,
            options=dict(stored.get("options", {})),
            plan_id=entry.get("plan_id", ""),
        )
        if self.chunks is not None:
            session.chunks = self.chunks
        if "caps" in stored:
            session.caps, session.ceiling = Caps(**stored["caps"]), Caps(**stored["ceiling"])
        stops, goes_on = stored.get("stop_on_error", True), stored.get("continue_on_empty", False)
        flow = Flow(session, self.dispatcher or CommandDispatcher(), lambda: 0, stops, goes_on)
        flow.empty_stops_blocks = stored.get("empty_stops_blocks", False)
        return flow

    def compare(self, recorded: Mapping[str, Any], state: StateStore) -> None:
        """Record the differences between the two states."""
        snapshot = state.snapshot()
        for name, before, after in (
            ("variables", recorded.get("variables") or {}, snapshot.variables()),
            ("provenance", recorded.get("provenance") or {}, snapshot.provenance()),
        ):
            before, after = _without_times(before), _without_times(after)
            if not _has_computed(before):  # the state is older than evidence of computed columns
                after = _without_computed(after)
            if canonical(before) != canonical(after):
                self.found += _differences(name, before, after)


def _without_times(value: Any) -> Any:
    """Return ``value`` without the times in a model's evidence."""
    if isinstance(value, Mapping):
        timed = value.get("kind") == "model"
        return {name: _without_times(item) for name, item in value.items() if not (timed and name == "at")}
    return [_without_times(item) for item in value] if isinstance(value, list | tuple) else value


def _has_computed(value: Any) -> bool:
    """Return whether ``value`` has evidence of computed columns."""
    if isinstance(value, Mapping):
        return value.get("kind") == "computed" or any(map(_has_computed, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_computed, value))


def _without_computed(value: Any) -> Any:
    """Return ``value`` without evidence of computed columns."""
    if isinstance(value, Mapping):
        return {name: _without_computed(item) for name, item in value.items()}
    if not isinstance(value, list | tuple):
        return value
    return [
        _without_computed(item) for item in value if not (isinstance(item, Mapping) and item.get("kind") == "computed")
    ]


def _differences(where: str, before: Any, after: Any) -> Iterator[Discrepancy]:
    """Yield the differences between two values; values of the same kind are compared in depth."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys((*before, *after)):
            if name not in before or name not in after or canonical(before[name]) != canonical(after[name]):
                yield from _differences(f"{where}.{name}", before.get(name), after.get(name))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True)):
            if canonical(old) != canonical(new):
                yield from _differences(f"{where}[{index}]", old, new)
    else:
        yield Discrepancy(where, abridged(before, _SHOWN), abridged(after, _SHOWN))


@define
class _Recall:
    """Maps a step, a request and a turn to the recorded answer."""

    answers: Mapping[tuple[int, str, int], Mapping[str, Any]]
    inner: LLM | None
    turns: Turns = field(factory=Turns)
    recalled: int = 0
    asked: int = 0

    @classmethod
    def of(cls, answers: Sequence[Mapping[str, Any]], llm: Any) -> "_Recall":
        """Index the answers."""
        kept = {(answer["step"], answer["request"], answer["turn"]): answer for answer in answers}
        return cls(kept, None if llm is None else as_client(llm))


class _Recalled(Own):
    """A model that returns the recorded answers."""

    def __init__(self, recall: _Recall, name: str) -> None:
        self._recall = recall
        self._name = name

    async def generate(self, prompt: str, **options: Unpack[Options]) -> Completion:
        """Return the recorded answer or raise the recorded error; if nothing is recorded, call the model if one is available."""
        recall = self._recall
        request = request_of(self._name, prompt, options)
        kept = None
        if request is not None:
            kept = recall.answers.get((recall.turns.step, request, recall.turns.next(request)))
        if kept is None:
            if recall.inner is None:
                raise NotRecorded("the state has no answer to this request", hint="pass a model to repeat the call")
            recall.asked += 1
            return await recall.inner.generate(prompt, **options)
        recall.recalled += 1
        if "error" in kept:
            failed = kept["error"]
            raise error_of(
                failed.get("kind", ""),
                failed.get("message", ""),
                hint=failed.get("hint", ""),
                text=failed.get("text", ""),
            )
        usage = Usage(kept.get("prompt_tokens", 0), kept.get("completion_tokens", 0), kept.get("estimated", False))
        return Completion(
            kept["text"], kept.get("finish_reason", "stop"), usage, model=kept.get("model", ""), repaired=kept.get("repaired", False),
            cached=kept.get("cached", False),
        )  # fmt: skip

    async def aclose(self) -> None:
        """Do nothing."""
