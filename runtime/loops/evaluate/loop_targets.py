"""The targets of an evaluation that are loops: rankings of items, questions about a graph, and iterative answers with their judges."""

import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from attrs import define, field

from ....adapters.llm.strict_schema import capabilities_of
from ....lang.diagnostic import suggestion
from ....lang.unicode_forms import canonical
from ...answers.answer_results import AnswerRequest
from ...answers.evaluation import CandidateEvaluator, check_evaluators
from ...answers.judges import Panel
from ...answers.service import answer as write_answer
from ...answers.service import validated_request
from ...answers.templates import find_template
from ...errors import RequestError
from ...limits import call_options
from ...models.caller import Asker, Caller, Losses, Spent
from ...results import StepFailed, Trace
from ..rank.item_names import name_of
from ..rank.ranker import Work, rank
from .field_scores import Answer
from .gold import Binding, Expected, Gold, GoldItem
from .seed_target import inferred
from .targets import AskSettings, OnAnswer, each_item, failed


def _bound(keys: Mapping[str, Any], name: str, group: str | None) -> Binding:
    """Return the binding of an item that the text in the column ``name`` identifies."""
    value = keys.get(name)
    if not isinstance(value, str) or not value.strip():
        return Binding(fault=f"the {name} is empty")
    return Binding(value, str(keys[group]) if group is not None and group in keys else "")


def _named(columns: Sequence[str], *names: str | None) -> list[str]:
    return [name for name in columns if name in names]


@define
class RankTarget:
    """Items to rank. The gold column ``relevant`` lists the relevant items of a ``request``, by name or by position from 1."""

    work: Work
    name: str
    source: str
    group: str | None = None
    kind: str = "rank"
    samples: int = 100
    _names: dict[str, int] = field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        names = [canonical(name_of(item)) for item in self.work.items]
        self._names = {name: place for place, name in enumerate(names, 1) if name and names.count(name) == 1}

    def expected(self, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Expected]:
        """Return ``relevant``."""
        return {"relevant": Expected("relevant", "ranking", members=self._positions)}

    def _positions(self, listed: list[Any]) -> list[Any]:
        """Return the positions of the items in ``listed``. Raises ``ValueError`` for an unknown item."""
        found = []
        for each in listed:
            text = str(each).strip()
            place = self._names.get(canonical(text)) or (int(text) if text.isdecimal() else None)
            if place is None:
                raise ValueError(f"unknown item {text[:60]!r}; {suggestion(text, list(self._names))}")
            if not 1 <= place <= len(self.work.items):
                raise ValueError(f"position {place} does not exist; there are {len(self.work.items)} items")
            found.append(place)
        if not found:
            raise ValueError("no item is relevant; leave out this request")
        return found

    def keys(self, columns: Sequence[str]) -> Sequence[str]:
        """Return ``request``."""
        return _named(columns, "request", self.group) if "request" in columns else ["request"]

    def bind(self, keys: Mapping[str, Any]) -> Binding:
        """Return the request."""
        return _bound(keys, "request", self.group)

    def faults(self, gold: Gold) -> list[str]:
        """Return no faults: the items were checked before."""
        return []

    def text(self, item: GoldItem) -> str:
        """Return the request."""
        return str(item.place)

    async def answer(self, items: Sequence[GoldItem], client: Any, settings: AskSettings, on_answer: OnAnswer) -> None:
        """Rank the items for each request. An empty ranking is an answer if the model says that no item fits."""
        self.work.means = capabilities_of(settings.spec or client)
        self.work.options = call_options(settings.options)

        async def work(item: GoldItem) -> None:
            caller = Caller(client, dict(settings.models), settings.events, Trace(), settings.max_concurrency)
            ranked = await rank(self.work, str(item.place), caller, number=item.number)
            figures: dict[str, Any] = {"seconds": ranked.seconds, "cost": ranked.cost}
            if ranked.ranking or ranked.none_fits:
                on_answer(item.number, "relevant", Answer(list(ranked.ranking), **figures))
            else:
                kind = "budget" if "budget" in ranked.reason else ""
                on_answer(item.number, "relevant", failed(kind, ranked.reason or ranked.status, **figures))

        await each_item(items, work, settings.max_concurrency, settings.cancel)


_NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?![\w])")


@define
class AskTarget:
    """Questions about a graph. ``ask`` takes a question, a client and the settings, and returns an ``Asked``.

    The gold column ``expect`` is a number, a set of ids, or a text.
    """

    ask: Callable[[str, Any, AskSettings], Awaitable[Any]]
    name: str
    source: str
    group: str | None = None
    kind: str = "ask"
    samples: int = 100
    _kind: str = field(default="text", init=False)

    def expected(self, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Expected]:
        """Return ``expect``."""
        values = [row.get("expect") for row in rows]
        found = inferred(
            "expect",
            [(";" in value and f"[{value}]") or value if isinstance(value, str) else value for value in values],
        )
        if rows:
            self._kind = found.kind if found.kind in ("number", "set") else "text"
        return {"expect": Expected("expect", self._kind)}  # type: ignore[arg-type]

    def keys(self, columns: Sequence[str]) -> Sequence[str]:
        """Return ``question``."""
        return _named(columns, "question", self.group) if "question" in columns else ["question"]

    def bind(self, keys: Mapping[str, Any]) -> Binding:
        """Return the question."""
        return _bound(keys, "question", self.group)

    def faults(self, gold: Gold) -> list[str]:
        """Return no faults."""
        return []

    def text(self, item: GoldItem) -> str:
        """Return the question."""
        return str(item.place)

    async def answer(self, items: Sequence[GoldItem], client: Any, settings: AskSettings, on_answer: OnAnswer) -> None:
        """Answer each question on its own, without a stored state."""

        async def work(item: GoldItem) -> None:
            asked = await self.ask(str(item.place), client, settings)
            figures: dict[str, Any] = {
                "seconds": asked.seconds, "cost": asked.cost, "evidence": asked.status == "complete" and bool(asked.evidence),
            }  # fmt: skip
            if asked.status in ("complete", "ungrounded"):
                made = self._value(asked.answer, asked.cited, figures)
            else:
                made = failed("budget" if asked.stopped == "budget" else "", asked.reason or asked.status, **figures)
            on_answer(item.number, "expect", made)

        await each_item(items, work, max(1, settings.max_concurrency // 4), settings.cancel)

    def _value(self, text: str, cited: Sequence[str], figures: dict[str, Any]) -> Answer:
        """Return the number, the ids or the text of an answer.

        If a number is expected, an answer is invalid unless it contains exactly one number.
        """
        if self._kind == "set":
            return Answer(list(cited), **figures)
        if self._kind == "number":
            numbers = {float(each.replace(",", "")) for each in _NUMBER.findall(text)}
            return (
                Answer(numbers.pop(), **figures)
                if len(numbers) == 1
                else Answer(None, "invalid", text[:2000], **figures)
            )
        return Answer(text, **figures)


@define
class AnswerTarget:
    """Iterative answers.

    A row of the table has an ``answer`` and the judgment of a person: a score (``human``, 0 to 1), or whether the answer is accepted
    (``accept``). The judges evaluate the same answer. Without a column ``answer``, the model writes an answer, and the final score of this
    answer is compared. The checks in the column ``checks`` are on separate lines.
    """

    threshold: float = 0.8
    group: str | None = None
    name: str = "answer"
    source: str = "answer"
    kind: str = "answer"
    samples: int = 100

    def expected(self, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Mapping[str, Expected]:
        """Return ``human`` and ``accept``."""
        return {"human": Expected("human", "score"), "accept": Expected("accept", "accept")}

    def keys(self, columns: Sequence[str]) -> Sequence[str]:
        """Return the parts of a request, and the answer to judge."""
        named = _named(columns, "instruct", "criteria", "checks", "format", "answer", self.group)
        return named if "instruct" in columns else ["instruct", "criteria", "checks"]

    def bind(self, keys: Mapping[str, Any]) -> Binding:
        """Return the request."""
        bound = _bound(keys, "instruct", self.group)
        if bound.fault:
            return bound
        checks = [line.strip() for line in str(keys.get("checks") or "").split("\n") if line.strip()]
        try:
            request = validated_request(
                AnswerRequest(
                    str(keys["instruct"]), str(keys.get("format") or ""), str(keys.get("criteria") or ""), score_threshold=self.threshold,
                    checks=tuple(checks),
                )
            )  # fmt: skip
        except RequestError as error:
            return Binding(fault=f"{error.parameter}: {error.message}")
        return Binding((request, keys.get("answer")), bound.group)

    def faults(self, gold: Gold) -> list[str]:
        """Return no faults."""
        return []

    def text(self, item: GoldItem) -> str:
        """Return the instruction and the answer to judge."""
        request, given = item.place
        return f"{request.instruct}\n\n{given}" if given is not None else str(request.instruct)

    async def answer(self, items: Sequence[GoldItem], client: Any, settings: AskSettings, on_answer: OnAnswer) -> None:
        """Judge the given answer of each item; if no answer is given, write and judge one."""
        options = call_options(settings.options)

        async def work(item: GoldItem) -> None:
            request, given = item.place
            caller = Caller(client, {}, settings.events, Trace(), settings.max_concurrency)
            if given is None:
                answered = await write_answer(request, caller, spec=settings.spec, options=options)
                figures: dict[str, Any] = {"seconds": answered.seconds, "cost": answered.cost}
                score = answered.final_score
                kind = "budget" if answered.stopped == "budget" else ""
                made = failed(kind, answered.reason, **figures) if score is None else Answer(score, **figures)
            else:
                made = await self._judged(request, str(given), caller, options)
            for column in item.labels:
                value = made.value
                if column == "accept" and made.status == "answered":
                    value = made.value >= self.threshold
                on_answer(
                    item.number, column, Answer(value, made.status, made.error, None, None, made.seconds, made.cost)
                )

        await each_item(items, work, settings.max_concurrency, settings.cancel)

    async def _judged(self, request: AnswerRequest, given: str, caller: Caller, options: Mapping[str, Any]) -> Answer:
        losses, spent = Losses(), Spent()
        asker = Asker(caller, "", caller.events, losses=losses)
        panel = None
        if request.judges:
            panel = Panel(asker, request, find_template(request.template, {}), (None,), ("unit",), options, losses)
        evaluator = CandidateEvaluator(check_evaluators(request.checks), panel, request.score_threshold)
        try:
            evaluation = await evaluator.evaluate(0, given, spent)
        except StepFailed as error:
            return failed(error.failed.kind, error.failed.message, cost=spent.cost)
        return Answer(evaluation.score, cost=spent.cost)


def items_source(work: Work) -> str:
    """Return the text that identifies the items of a ranking."""
    return json.dumps([list(work.items), dict(work.beside)], sort_keys=True, default=str)
