"""One turn of the planner: a prompt, an answer, its faults, and the repaired answer.

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
from ...events import RepairAsked
from ...gasl import GASLExecutor
from ...gasl.record_writer import request_of
from ...gasl.records import ContextStore
from ...models.caller import Asker, Caller, Spent
from ...results import NO_USAGE, Failed, Outcome, Record, StepFailed
from .findings import Support, support_of
from .plan_answer import (
    MOST_ACTIONS,
    Completed,
    Contradictory,
    Proposed,
    Unreadable,
    answer_schema,
    as_schema_json,
    read_answer,
)
from .plan_run import Action, Refusal, check_draft, repeated, repetitions
from .prompt import Refused, build_prompt
from .traversal_results import Bounds, Hypothesis, Step

# The grammar of a small model's answer: the JSON of a plan whose commands are GASL, or of the end, short enough to be always
# complete. The command rules are a few of ``lang.constrain``, bounded: words are separated by one blank, lists have one element,
# texts in commands are quoted as JSON. Fields are the graph's own. Properties beyond a grammar (that a field is compared with a
# value it has, or that a plan answers the question) are left to the checks. Larger models receive a schema: see ``plan_answer``.

SMALL_TOKENS = 640
"""Token limit of an answer under the grammar: it has at most some 600 characters, and most tokens have several."""
_TEXT = 80
"""Maximum characters of a hypothesis, of a reason and of an answer."""
_MOST_FIELDS = 40
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,30}")
_RULES = ("find", "where", "order", "limit", "count", "rank", "select_where")
_TERMINALS = ("FIND", "WHERE", "ORDER", "_BY", "DIRECTED", "LIMIT", "COUNT", "RANK", "SELECT", "_AS", "TEXTUAL")
_FORM = r"""
start: "{{\"hypothesis\": \"" TEXT "\", \"why\": \"" TEXT "\", \"commands\": [" commands "]}}"
     | "{{\"complete\": \"" TEXT "\", \"evidence\": [\"found\"]}}"
commands: "\"DECLARE found AS LIST\", \"" find "\", " more "\"UPDATE found WITH some\""
more: ("\"" (rank | select_where | count) "\", ")?
condition: path OPERATOR (STRING | INT) | path TEXTUAL STRING
sorting: path DIRECTED
name: "some "
KIND: "nodes "
path: FIELD
TEXT: /[A-Za-z0-9][A-Za-z0-9 ,.'\-]{{0,{text}}}/
FIELD: /({fields}) /
OPERATOR: /(=|!=|>|<|>=|<=) /
STRING: /\\"[A-Za-z0-9][A-Za-z0-9 .'_\-]{{0,30}}\\" /
INT: /[1-9][0-9]{{0,3}} /
"""
_DEFINITION = re.compile(r"^(\w+):(.*(?:\n[ \t]+.*)*)\n", re.MULTILINE)


def small_grammar(fields: Iterable[str]) -> str:
    """Return the grammar of a small model's answer for a graph with these node fields, in the syntax of ``Options.grammar``."""
    known = [name for name in fields if _FIELD.fullmatch(name)][:_MOST_FIELDS]
    named = "|".join(dict.fromkeys(("id", "degree", "in_degree", "out_degree", *known)))
    given = dict(_DEFINITION.findall(constrain("gasl", "llguidance")))
    lines = [_FORM.format(fields=named, text=_TEXT - 1).strip()]
    lines += [f"{rule}:{_without_repetitions(given[rule])}" for rule in _RULES]
    lines += [f"{terminal}:{given[terminal]}" for terminal in _TERMINALS]
    return "\n".join((*lines, ""))


def _without_repetitions(body: str) -> str:
    """Return a rule's body without its repetitions: ``x (_COMMA _BLANK? x)*`` becomes ``x``."""
    return re.sub(r" \(_COMMA _BLANK\? \w+\)\*", "", body)


# Calls to the planner and to every model of its plans: counted when sent, and stored, so that no call is paid for twice. A
# planner's answer is stored under its place (step, turn) alone: a step that continues after a kill finds the answer that it acted
# on, although its prompt would now show a changed state. A call of a plan's own commands is stored under its request. In a search
# the place is the path to the state: the plans that lead there.

PLANNER = "planner"
"""The name of the planner's calls in events and records."""
_TURNS = 100
_TOKENS = 2_000
"""Default maximum tokens of an answer: a plan of some thirty commands."""


def call_number(step: int, turn: int) -> int:
    """Return the number of a planner's call: a step has one call and fewer than a hundred repairs (``MOST_REPAIRS``)."""
    return step * _TURNS + turn


@frozen
class Place:
    """The place of a call in a search: ``way`` is the path of plans to the state, ``number`` the state's number in the tree."""

    way: str
    number: int


@define
class PlannerCalls:
    """Calls the planner. ``model`` is one of the caller's names (None: default); ``options`` are the port's, for its calls alone.

    ``as_json``: send the answer's schema; otherwise the answer is text. Either way it is read leniently. ``grammar`` is sent
    instead of the schema, for a model that supports grammars but fails under a schema. ``spec`` is the model's, as the user wrote
    it: answers of another model are not reused.
    """

    caller: Caller
    question: str
    model: str | None = None
    options: Mapping[str, Any] = field(factory=dict)
    as_json: bool = True
    grammar: str = ""
    spec: str = ""
    spent: Spent = field(factory=Spent)
    _asker: Asker = field(init=False)
    _constraint: dict[str, Any] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._asker = Asker(self.caller, PLANNER, self.caller.events, self.spent, losses=None, layers=())

    async def ask(self, step: int, turn: int, prompt: str, at: Place | None = None) -> str:
        """Return the answer's text; raise ``StepFailed``. ``at``: the place in a search, which has no steps."""
        if self.as_json and not self._constraint:
            schema = {"grammar": self.grammar} if self.grammar else {"schema": answer_schema(), "tidy": as_schema_json}
            self._constraint.update(schema)
        most = SMALL_TOKENS if self.grammar else _TOKENS
        options = {"max_tokens": most, **self.options, **self._constraint}
        _, item, digest = self.record_key(step, turn, at)
        number = call_number(step if at is None else at.number, turn)
        outcome = await self._asker.ask(number, prompt, options, lambda: digest, model=self.model, recorded_item=item)
        return outcome.output

    def record_key(self, step: int, turn: int, at: Place | None = None) -> tuple[str, int, str]:
        """Return the key of a recorded answer: step, item and input hash."""
        # A state's number depends on the search settings, its path does not.
        item, way = (call_number(step, turn), "") if at is None else (turn, at.way)
        named = f"{PLANNER} {item} {way}{self.question}" + (f"\n{self.spec}" if self.spec else "")
        return PLANNER, item, blake3(named.encode("utf-8", "backslashreplace")).hexdigest(length=16)


class RecordedModel(Own):
    """A model that the commands of plans call: its answers in the present step are reused instead of repeating the call.

    ``name`` is the plans' name for it ("" is the default model). ``spent`` counts its calls.
    """

    def __init__(self, inner: Any, name: str, record: Record | None, spent: Spent) -> None:
        self._inner: LLM = as_client(inner)
        self._name = name
        self._record = record
        self._spent = spent
        self._counts: Counter[str] = Counter()
        self._label = ""

    def begin(self, step: int) -> None:
        """Restart the count of equal requests: the step's plan runs, or runs once more to bind its variables."""
        self._label = f"step {step}"
        self._counts.clear()

    def at(self, way: str) -> "RecordedModel":
        """Return the same model for a plan of a search, where others may run in parallel; ``way`` is the plan's path."""
        made = RecordedModel(self._inner, self._name, self._record, self._spent)
        made._label = f"way {way}"
        return made

    async def generate(self, prompt: str, **options: Any) -> Completion:
        """Return the stored answer, or the inner client's; errors of the inner client are passed on."""
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
        except asyncio.CancelledError:  # the request was sent, and may be charged
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
    """Return whether a repeated call with another wording is pointless: the failure was not in the model's answer."""
    return failed.kind not in ("bad_answer", "truncated", "empty", "refused")


@frozen
class Proposal:
    """The planner's result: the end, or runnable plans, the most confident first, or neither (``faults`` say why).

    ``supposed``: its evaluation of the last step, and its present hypothesis. ``left_out`` describes the plans that can't run;
    ``remark`` is further information for the user. ``support`` is that for the answer.
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
    """Requests the next actions, and repairs of faulty answers, at most ``bounds.max_repairs`` times per step.

    ``given`` are the initial variables of every plan, ``earlier`` is the number of steps in earlier attempts. A search calls it
    on forks: it reads the executor passed to it.
    """

    asker: PlannerCalls
    question: str
    bounds: Bounds
    given: ContextStore = field(factory=ContextStore)
    notify: Callable[[RepairAsked], None] | None = None
    earlier: int = 0

    def prompt(
        self, executor: GASLExecutor, steps: Sequence[Step], refused: Refused | None = None, branches: int = 1
    ) -> str:
        """Return the prompt for the step after ``steps``; ``branches``: number of plans to try in parallel."""
        return build_prompt(
            self.question, executor.adapter.schema, executor.session.caps, executor.state, steps, refused,
            self.bounds.prompt_characters, branches,
        )  # fmt: skip

    async def propose(
        self,
        executor: GASLExecutor,
        number: int,
        steps: Sequence[Step],
        *,
        at: Place | None = None,
        branches: int = 1,
    ) -> Proposal:
        """Return the next actions for step ``number``, after ``steps``. Raises ``StepFailed`` if the model call fails.

        ``at`` is the place in a search, ``branches`` the number of plans it would try in parallel.
        """
        refused: Refused | None = None
        last: tuple[dict[str, Any], ...] = ()  # faults of the last answer
        supposed, told_again, ungrounded = decision_of(None, steps), False, False
        turn, most = -1, self.bounds.max_repairs
        while turn < most:
            turn += 1
            if refused is not None and self.notify is not None:
                self.notify(
                    RepairAsked("ask", "plan", turn, refused.answer, last, number, "" if last else refused.faults)
                )
            try:
                text = await self.asker.ask(number, turn, self.prompt(executor, steps, refused, branches), at)
            except StepFailed as error:
                if failed_for_good(error.failed):
                    raise
                last = ()
                refused = Refused("", error.failed.message)
                continue
            said = read_answer(text)
            if isinstance(said, Completed):
                found = support_of(said, executor.state, steps)
                if found.advice and not ungrounded and self.bounds.max_repairs:  # once per step, besides the repairs
                    last, ungrounded, most = (), True, most + (turn == most)
                    why = f"{found.fault}; {found.advice}" if found.fault else found.advice
                    refused = Refused(text, why)
                    continue
                return Proposal(Hypothesis("terminate", said.why), said, repairs=turn, support=found)
            if isinstance(said, Unreadable | Contradictory):
                last = ()
                fault = "it can't be read" if isinstance(said, Unreadable) else "it contradicts itself"
                refused = Refused(text, f"{fault}: {said.reason}")
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
                if all(again) and turn < most:  # once per step: a model may insist on its plan
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
                        f"{more} of {len(said.drafts)} were left out: at most {MOST_ACTIONS} are tried, the most confident first",
                    )
                return Proposal(supposed, None, actions, left_out, repairs=turn, remark=said.remark)
            last = bad[0].diagnostics
            refused = Refused(text, bad[0].told)
        return Proposal(supposed, faults=refused.faults if refused is not None else "", repairs=turn)

    def _stalls(self, steps: Sequence[Step]) -> bool:
        """Return whether an earlier plan would be the third repetition in a row: reported, run anyway, and proposed again."""
        return repetitions(steps[self.earlier :]) >= (1 if self.bounds.max_repairs else 2)


_STALLED = "no progress: the same plan was proposed three more times ({})"
_BY_RULE = {"success": "continue", "partial": "refine"}


def decision_of(said: Proposed | None, steps: Sequence[Step]) -> Hypothesis:
    """Return the decision that leads to the next plan: the model's, or the one that the last outcome implies."""
    why, hypothesis = (said.why, said.hypothesis) if said is not None else ("", "")
    if not steps:
        return Hypothesis("start", why, hypothesis)
    hypothesis = hypothesis or steps[-1].supposed.hypothesis
    if said is not None and said.decision:
        return Hypothesis(said.decision, why, hypothesis)  # type: ignore[arg-type]
    status = steps[-1].status
    rule = _BY_RULE.get(status, "pivot")
    return Hypothesis(rule, why or f"the last plan ended with {status}", hypothesis, "rule")  # type: ignore[arg-type]


# The choice among several next actions: the extension point for search. Without a search the action with the highest confidence
# is taken. See ``docs/design/loops.md#search``.


@frozen
class Position:
    """The context of a choice: the executor (fork its state to try an action), the planner (call it on a fork), the steps so far.

    ``number`` is the step that the choice is for.
    """

    executor: GASLExecutor
    planner: Planner
    steps: tuple[Step, ...]
    number: int


Choose = Callable[[Sequence[Action], Position], "int | Awaitable[int]"]
"""Receives the runnable actions, the most confident first, and returns the index of the chosen one; may be async."""


def highest(actions: Sequence[Action], position: Position) -> int:
    """Return the index of the most confident action, the first on a tie."""
    return max(range(len(actions)), key=lambda at: (actions[at].confidence, -at))
