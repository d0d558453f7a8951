"""One turn of the planner: prompt, answer, check and repairs.

See ``docs/design/loops.md#traversal``.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from time import perf_counter
from typing import Any

from attrs import define, field, frozen
from blake3 import blake3

from ....adapters.llm import LLM, Completion, LLMError, Usage
from ....adapters.llm.middleware import Own, as_client
from ....lang.constrain import constrain
from ....lang.diagnostic import all_as_json
from ...events import RepairAsked
from ...gasl import GASLExecutor
from ...gasl.record_writer import request_of
from ...gasl.records import ContextStore
from ...models.caller import Asker, Caller, Spent
from ...results import NO_USAGE, Failed, Outcome, Record, StepFailed
from .answer_json import Unreadable
from .findings import Support, support_of
from .plan_answer import (
    MOST_ACTIONS,
    Completed,
    Contradictory,
    Proposed,
    answer_schema,
    as_schema_json,
    read_answer,
)
from .plan_run import Action, Refusal, check_draft, render_faults, repeated, repetitions
from .prompt import Refused, build_prompt, may_end
from .traversal_results import Bounds, Hypothesis, Step

# The grammar of a small model's answer: a plan with GASL commands or the final answer, as JSON that is short enough to be always
# complete. The command rules are a bounded selection from ``lang.constrain``: words are separated by one space, lists have one
# element, and strings in commands are quoted as in JSON. Fields are the graph's own fields. A grammar can't ensure that a field is
# compared with an existing value, or that a plan answers the question. Larger models receive a schema: see ``plan_answer``.

SMALL_TOKENS = 640
"""Token limit of an answer under the grammar: about 600 characters at most, and most tokens have several characters."""
_TEXT = 80
"""Maximum characters of a hypothesis, a reason or an answer."""
_MOST_FIELDS = 40
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,30}")
_NUMBERS = ("degree", "in_degree", "out_degree")
"""Fields that are always numbers, so that a comparison with a text is refused."""
_RULES = ("find", "where", "order")
_TERMINALS = (
    "FIND", "WHERE", "ORDER", "_BY", "DIRECTED", "LIMIT", "COUNT", "RANK", "SELECT", "_AS", "CONTAINS", "TEXTUAL",
)  # fmt: skip
_FORM = r"""
start: plan{ending}
plan: "{{\"hypothesis\": \"" TEXT "\", \"why\": \"" TEXT "\", \"commands\": [" commands "]}}"
commands: "\"DECLARE found AS LIST\", \"" find "\", " more "\"UPDATE found WITH some\""
more: ("\"" (rank | selection | count) "\", ")?
limit: LIMIT INT
count: COUNT name (_BY path)? _AS name
rank: RANK name _BY sorting limit? _AS name
selection: SELECT name where _AS name
condition: OTHER OPERATOR (STRING | INT) | OTHER (CONTAINS | TEXTUAL) STRING | NUMBER OPERATOR INT
sorting: path DIRECTED
name: "some "
KIND: "nodes "
path: OTHER | NUMBER
TEXT: /[A-Za-z0-9][A-Za-z0-9 ,.'\-]{{0,{text}}}/
OTHER: /({others}) /
NUMBER: /({numbers}) /
OPERATOR: /(=|!=|>|<|>=|<=) /
STRING: /\\"[A-Za-z0-9][A-Za-z0-9 .'_\-]{{0,30}}\\" /
INT: /[1-9][0-9]{{0,3}} /
"""
_ENDING = r'''
     | "{\"complete\": \"" TEXT "\", \"evidence\": [\"found\"]}"'''
_DEFINITION = re.compile(r"^(\w+):(.*(?:\n[ \t]+.*)*)\n", re.MULTILINE)


def small_grammar(fields: Iterable[str], *, may_end: bool = True) -> str:
    """Return the grammar of a small model's answer, in the syntax of ``Options.grammar``; ``fields`` are the graph's node fields.

    With ``may_end``, the model may answer the question, because the state has findings.
    """
    known = [name for name in fields if _FIELD.fullmatch(name)][:_MOST_FIELDS]
    others = "|".join(name for name in dict.fromkeys(("id", *known)) if name not in _NUMBERS)
    given = dict(_DEFINITION.findall(constrain("gasl", "llguidance")))
    lines = [
        _FORM.format(
            others=others, numbers="|".join(_NUMBERS), text=_TEXT - 1, ending=_ENDING if may_end else ""
        ).strip()
    ]
    lines += [f"{rule}:{_without_repetitions(given[rule])}" for rule in _RULES]
    lines += [f"{terminal}:{given[terminal]}" for terminal in _TERMINALS]
    return "\n".join((*lines, ""))


def _without_repetitions(body: str) -> str:
    """Return a rule's body without its repetitions: ``x (_COMMA _BLANK? x)*`` becomes ``x``."""
    return re.sub(r" \(_COMMA _BLANK\? \w+\)\*", "", body)


# Calls to the planner and to the models that plans call are counted when sent, and stored, so that no call is paid for twice. A
# planner answer is stored under step and turn only: a step that continues after a kill finds the answer on which it acted, although
# the prompt would now show a changed state. A call made by a plan's commands is stored under its request. In a search, the path to
# the state (the plans that lead there) replaces the step.

PLANNER = "planner"
"""The name of the planner's calls in events and records."""
_TURNS = 100
_TOKENS = 2_000
"""Default maximum tokens of an answer, enough for a plan of about 30 commands."""


def call_number(step: int, turn: int) -> int:
    """Return the number of a planner call: a step has one call and fewer than 100 repairs (``MOST_REPAIRS``)."""
    return step * _TURNS + turn


@frozen
class Place:
    """The position of a call in a search: ``way`` is a hash of the plans that lead to state number ``number`` of the tree."""

    way: str
    number: int


@define
class PlannerCalls:
    """Calls the planner. ``model`` is a name known to the caller (None is the default); ``options`` apply only to planner calls.

    If ``as_json`` is true, the answer's schema is sent; otherwise the answer is text. Either way the answer is read leniently.
    ``small_fields`` are the node fields in the grammar that a small model gets instead of the schema; None if the model is not
    small. ``spec`` is the model's spec as the user wrote it: an answer is only reused for the same spec.
    """

    caller: Caller
    question: str
    model: str | None = None
    options: Mapping[str, Any] = field(factory=dict)
    as_json: bool = True
    small_fields: tuple[str, ...] | None = None
    spec: str = ""
    spent: Spent = field(factory=Spent)
    _asker: Asker = field(init=False)
    _constraints: dict[bool, dict[str, Any]] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._asker = Asker(self.caller, PLANNER, self.caller.events, self.spent, losses=None, layers=())

    async def ask(self, step: int, turn: int, prompt: str, at: Place | None = None, *, may_end: bool = True) -> str:
        """Return the answer's text. ``at`` is the position in a search; a search has no steps. Raises ``StepFailed``.

        If ``may_end`` is true, a small model may answer the question; the prompt tells other models whether they may.
        """
        most = _TOKENS if self.small_fields is None else SMALL_TOKENS
        options = {"max_tokens": most, **self.options, **self._constraint(may_end)}
        _, item, digest = self.record_key(step, turn, at)
        number = call_number(step if at is None else at.number, turn)
        outcome = await self._asker.ask(number, prompt, options, lambda: digest, model=self.model, recorded_item=item)
        return outcome.output

    def _constraint(self, may_end: bool) -> Mapping[str, Any]:
        """Return the call options that constrain the form of the answer."""
        if not self.as_json:
            return {}
        if may_end not in self._constraints:
            self._constraints[may_end] = (
                {"schema": answer_schema(), "tidy": as_schema_json}
                if self.small_fields is None
                else {"grammar": small_grammar(self.small_fields, may_end=may_end)}
            )
        return self._constraints[may_end]

    def record_key(self, step: int, turn: int, at: Place | None = None) -> tuple[str, int, str]:
        """Return the key of a recorded answer: step, item and input hash."""
        # The key contains the path to a state, because the state's number depends on the search settings.
        item, way = (call_number(step, turn), "") if at is None else (turn, at.way)
        named = f"{PLANNER} {item} {way}{self.question}" + (f"\n{self.spec}" if self.spec else "")
        return PLANNER, item, blake3(named.encode("utf-8", "backslashreplace")).hexdigest(length=16)


class RecordedModel(Own):
    """A model that the commands of plans call. Its recorded answers in the current step are reused, so that no call is repeated.

    ``name`` is the model's name in plans ("" is the default model). ``spent`` counts the model's calls.
    """

    def __init__(self, inner: Any, name: str, record: Record | None, spent: Spent) -> None:
        self._inner: LLM = as_client(inner)
        self._name = name
        self._record = record
        self._spent = spent
        self._counts: Counter[str] = Counter()
        self._label = ""

    def begin(self, step: int) -> None:
        """Reset the count of equal requests before the step's plan runs, or runs once more to bind its variables."""
        self._label = f"step {step}"
        self._counts.clear()

    def at(self, way: str) -> "RecordedModel":
        """Return the same model for one plan of a search, in which plans may run in parallel; ``way`` is the plan's path."""
        made = RecordedModel(self._inner, self._name, self._record, self._spent)
        made._label = f"way {way}"
        return made

    async def generate(self, prompt: str, **options: Any) -> Completion:
        """Return the stored answer, or else the inner client's answer; errors raised by the inner client pass through."""
        request = request_of(self._name, prompt, options) if self._record is not None else None
        if self._record is None or request is None:
            return await self._ask(prompt, options)
        turn = self._counts[request]
        self._counts[request] += 1
        label, digest = self._label, f"{request}:{self._name}"
        earlier = self._record.recall(label, turn, digest)
        if earlier is not None and isinstance(earlier.value, Mapping):
            kept = earlier.value
            return Completion(
                earlier.output, str(kept.get("finish_reason", "stop")), Usage(), 0, str(kept.get("model", "")), True,
                bool(kept.get("repaired", False)),
            )  # fmt: skip
        began = perf_counter()
        answer = await self._ask(prompt, options)
        told = {"finish_reason": answer.finish_reason, "model": answer.model, "repaired": answer.repaired}
        outcome = Outcome(
            answer.text, told, answer.usage, answer.cost, 1, answer.attempts, answer.finish_reason, False, digest
        )
        self._record.item_done(label, turn, outcome, perf_counter() - began)
        return answer

    async def _ask(self, prompt: str, options: dict[str, Any]) -> Completion:
        try:
            answer = await self._inner.generate(prompt, **options)
        except asyncio.CancelledError:  # the request was sent and may be charged
            self._spent.add(1, NO_USAGE, None)
            raise
        except LLMError as error:
            self._spent.add(error.attempts, error.usage, error.cost)
            raise
        self._spent.add(answer.attempts, answer.usage, answer.cost)
        return answer

    async def aclose(self) -> None:
        """Do nothing: the owner of the inner client closes it."""


def failed_for_good(failed: Failed) -> bool:
    """Return whether the call must not be repeated with another prompt, because the failure was not in the model's answer."""
    return failed.kind not in ("bad_answer", "truncated", "empty", "refused")


@frozen
class Proposal:
    """The planner's result: an answer, or runnable plans, most confident first, or neither (``faults`` say why).

    ``supposed`` is the planner's evaluation of the last step, and its current hypothesis. ``left_out`` describes the plans that can't
    run; ``remark`` is further information for the user. ``support`` is the evidence for the answer.
    """

    supposed: Hypothesis
    completed: Completed | None = None
    actions: tuple[Action, ...] = ()
    left_out: tuple[str, ...] = ()
    faults: str = ""
    repairs: int = 0
    remark: str = ""
    stalled: str = ""
    """Why the loop ends without an answer: the model repeatedly proposes the same plan."""
    support: Support = field(factory=Support)


@define
class Planner:
    """Requests the next actions, and at most ``bounds.max_repairs`` repairs of faulty answers per step.

    ``given`` are the initial variables of every plan, ``earlier`` is the number of steps in earlier attempts. The planner reads
    only the executor passed to its methods, because a search calls it on forks.
    """

    asker: PlannerCalls
    question: str
    bounds: Bounds
    given: ContextStore = field(factory=ContextStore)
    notify: Callable[[RepairAsked], None] | None = None
    earlier: int = 0

    def prompt(
        self,
        executor: GASLExecutor,
        steps: Sequence[Step],
        refused: Refused | None = None,
        branches: int = 1,
        tree: Sequence[str] = (),
    ) -> str:
        """Return the prompt for the step after ``steps``, with ``branches`` plans to try in parallel and the search ``tree`` so far."""
        return build_prompt(
            self.question, executor.adapter.schema, executor.session.caps, executor.session.ceiling, executor.state, steps,
            refused, self.bounds.prompt_characters, branches, tree,
        )  # fmt: skip

    async def propose(
        self,
        executor: GASLExecutor,
        number: int,
        steps: Sequence[Step],
        *,
        at: Place | None = None,
        branches: int = 1,
        tree: Sequence[str] = (),
    ) -> Proposal:
        """Return the next actions for step ``number``, after ``steps``. Raises ``StepFailed`` if the model call fails.

        ``at`` is the position in a search, ``branches`` is the number of plans that the search tries in parallel. ``tree`` are
        lines about the branch that led here and about its siblings.
        """
        refused: Refused | None = None
        last: tuple[dict[str, Any], ...] = ()  # faults of the last answer
        supposed, told_again, ungrounded = decision_of(None, steps), False, False
        turn, most = -1, self.bounds.max_repairs
        while turn < most:
            turn += 1
            if refused is not None and self.notify is not None:
                written = refused.written if last else refused.answer
                self.notify(RepairAsked("ask", "plan", turn, written, last, number, "" if last else refused.faults))
            try:
                prompt = self.prompt(executor, steps, refused, branches, tree)
                text = await self.asker.ask(number, turn, prompt, at, may_end=may_end(executor.state, bool(steps)))
            except StepFailed as error:
                if failed_for_good(error.failed):
                    raise
                last = ()
                refused = Refused("", error.failed.message)
                continue
            said = read_answer(text)
            if isinstance(said, Completed):
                found = support_of(said, executor.state, steps)
                if found.advice and not ungrounded and self.bounds.max_repairs:  # once per step, not a repair
                    last, ungrounded, most = (), True, most + (turn == most)
                    why = f"{found.fault}; {found.advice}" if found.fault else found.advice
                    refused = Refused(text, why)
                    continue
                return Proposal(
                    Hypothesis("terminate", said.why), said, repairs=turn, support=found, remark=said.remark
                )
            if isinstance(said, Unreadable | Contradictory):
                fault = "it can't be read" if isinstance(said, Unreadable) else "it contradicts itself"
                last, refused = (), Refused(text, f"{fault}: {said.reason}")
                if isinstance(said, Unreadable) and said.source is not None:
                    last = tuple(all_as_json(said.diagnostics, said.source))
                    faults = render_faults(said.diagnostics, said.source)
                    refused = Refused(text, f"{refused.faults}\n{faults}", said.source.text)
                continue
            supposed = decision_of(said, steps)
            checked = [
                check_draft(draft, said.why or said.hypothesis, executor.session, self.given, f"step-{number}")
                for draft in said.drafts[:MOST_ACTIONS]
            ]
            actions = tuple(each for each in checked if isinstance(each, Action))
            if at is None and actions and (not told_again or self._stalls(steps)):
                again = [repeated(each, executor.state.hash, steps) for each in actions]
                if all(again) and self._stalls(steps):
                    return Proposal(supposed, repairs=turn, stalled=_STALLED.format(again[0].partition(":")[0]))
                if all(again) and turn < most:  # only once per step: the model may repeat its plan
                    last, told_again, refused = (), True, Refused(text, again[0])
                    continue
                if not all(again):
                    actions = tuple(each for each, told in zip(actions, again, strict=True) if not told)
            bad = [each for each in checked if isinstance(each, Refusal)]
            if actions:
                more = len(said.drafts) - MOST_ACTIONS
                left_out = (*said.left_out, *(each.told for each in bad))
                if more > 0:
                    left_out += (
                        f"{more} of {len(said.drafts)} plans were omitted; only the {MOST_ACTIONS} most confident plans are tried",
                    )
                return Proposal(supposed, None, actions, left_out, repairs=turn, remark=said.remark)
            last = bad[0].diagnostics
            refused = Refused(text, bad[0].told, bad[0].written)
        return Proposal(supposed, faults=refused.faults if refused is not None else "", repairs=turn)

    def _stalls(self, steps: Sequence[Step]) -> bool:
        """Return whether the number of consecutive repetitions has reached the limit, so that one more ends the loop."""
        return repetitions(steps[self.earlier :]) >= (1 if self.bounds.max_repairs else 2)


_STALLED = "no progress: the same plan was proposed three more times ({})"
_BY_RULE = {"success": "continue", "partial": "refine"}


def decision_of(said: Proposed | None, steps: Sequence[Step]) -> Hypothesis:
    """Return the decision that leads to the next plan: the model's decision, or else the decision that the last outcome implies."""
    why, hypothesis = (said.why, said.hypothesis) if said is not None else ("", "")
    if not steps:
        return Hypothesis("start", why, hypothesis)
    hypothesis = hypothesis or steps[-1].supposed.hypothesis
    if said is not None and said.decision:
        return Hypothesis(said.decision, why, hypothesis)  # type: ignore[arg-type]
    status = steps[-1].status
    rule = _BY_RULE.get(status, "pivot")
    return Hypothesis(rule, why or f"the last plan ended with {status}", hypothesis, "rule")  # type: ignore[arg-type]


# The choice among several next actions can be replaced. By default the action with the highest confidence is taken. See
# ``docs/design/loops.md#search``.


@frozen
class Position:
    """The context of a choice: the executor (fork its state to try an action), the planner (call it on a fork), the steps so far.

    ``number`` is the number of the step to choose an action for.
    """

    executor: GASLExecutor
    planner: Planner
    steps: tuple[Step, ...]
    number: int


Choose = Callable[[Sequence[Action], Position], "int | Awaitable[int]"]
"""Receives the runnable actions, most confident first, and returns the index of the chosen one; may be async."""


def highest(actions: Sequence[Action], position: Position) -> int:
    """Return the index of the most confident action; on a tie, of the first one."""
    return max(range(len(actions)), key=lambda at: (actions[at].confidence, -at))
