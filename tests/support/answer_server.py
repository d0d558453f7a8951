"""A model server that plays the writer and the judge of iterative answers, so that what comes of a run is known beforehand.

In a process of its own: ``PYTHONPATH=tests python -m support.answer_server --port 0 [--delay S] [--log FILE] [--play FILE]``.
The writer's n-th answer says "draft n"; which n it is stands in the prompt, by the draft that the feedback shows: nothing is
counted, so the same instruction may be asked again, and by many at once. A request for an object with a "score" (or for a
choice among numbers) is a judge's; its score is on the scale that it is asked for. Marks in the instruction say what happens::

    [[scores 0.4 0.7 0.9]]   of draft 1, 2, 3; the last holds for later ones. 0.4|0.8: of the candidates of a round, which are
                             then "draft 1, version 1" and "version 2". 0.2/0.5/0.9: of the judges of a panel
    [[delay 0.3]]            seconds before each answer; several: those of draft 1, 2, 3 and their judging
    [[refuse 1 1 3]]         requests for draft 1, 1 and 3 that are refused, once each; [[refuse always]]
    [[truncate 1]]           the same, cut off at the token limit (a client asks again for what was cut off)
    [[fail 1]]               the same with a 500 (a client retries it), [[deny 1]] with a 401
    [[judge fails 2]]        the judges of draft 2 answer no evaluation, also when asked to repair it; [[judge fails always]]
    [[judge odd 1]]          the first judge of draft 1 answers a score out of range, and the right one when asked again

Without marks the scores are 0.4, 0.7 and 0.9. ``--play FILE`` is JSON for prompts that say more: ``[{"when": "part of the
prompt", "answers": [...], "scores": [...], "reasons": [...], "suggestions": [[...]], "delay": [...]}]``, each with one element a draft.
"""

import argparse
import asyncio
import json
import re
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.model_requests import Request, example
from support.model_server import ModelServer

__all__ = ["AnswerServer", "Play", "draft"]

_MARK = re.compile(r"\[\[(scores|delay|refuse|truncate|fail|deny|judge fails|judge odd) ([^\[\]]*)\]\]")
_DRAFT = re.compile(r"This is draft (\d+)(?:, version (\d+))?\.")
_IN_WORDS = re.compile(r"fits this JSON Schema:\n(\{.*\})")
_FAULTS = {"refuse": "refusal", "truncate": "length", "fail": "500", "deny": "401"}
_SCORES = ("0.4", "0.7", "0.9")
_SENTENCES = (
    "It answers the question in one sentence.", "An analogy makes it easier to follow.",
    "A practical example shows where it is used.", "The difficult word is explained.", "The end says it again in short.",
)  # fmt: skip
_DELAY: ContextVar[float] = ContextVar("answer_server_delay", default=0.0)
_TEXT: ContextVar[str] = ContextVar("answer_server_text", default="")


def draft(number: int, version: int | None = None) -> str:
    """Return the text of draft ``number`` (from 1), of one of its versions."""
    which = f"{number}, version {version}" if version else f"{number}"
    return " ".join([f"This is draft {which}.", *_SENTENCES[:number]])


@dataclass(frozen=True)
class Play:
    """What happens for one instruction: marks by name, and texts. Each sequence is by draft; its last element holds on."""

    marks: dict[str, tuple[str, ...]]
    answers: Sequence[str] = ()
    reasons: Sequence[str] = ()
    suggestions: Sequence[Sequence[str]] = ()
    instruction: str = ""  # the line with the marks, to tell instructions apart

    @classmethod
    def of(cls, prompt: str, plays: Sequence[dict[str, Any]] = ()) -> "Play":
        """Return what the marks in ``prompt`` say, or the first of ``plays`` whose "when" stands in it."""
        found = list(_MARK.finditer(prompt))
        marks = {mark[1]: tuple(mark[2].split()) for mark in found}
        told = next((play for play in plays if play["when"] in prompt), {})
        for name in ("scores", "delay"):
            if name in told:
                marks.setdefault(name, tuple(map(str, told[name])))
        line = prompt[: found[0].end()].rpartition("\n")[2] if found else ""
        return cls(marks, *(told.get(name, ()) for name in ("answers", "reasons", "suggestions")), line)

    def at(self, name: str, number: int, otherwise: Sequence[str]) -> str:
        """Return the element of mark ``name`` for draft ``number``."""
        return _nth(self.marks.get(name) or otherwise, number)

    def says(self, name: str, number: int) -> bool:
        """Tell whether mark ``name`` names draft ``number``, or always."""
        return bool({"always", str(number)} & set(self.marks.get(name, ())))

    def seen(self, prompt: str) -> tuple[int, int | None]:
        """Return the latest draft that stands in ``prompt``, and its version; 0 if none does."""
        if self.answers:
            flat = " ".join(prompt.split())
            shown = [n for n, text in enumerate(self.answers, 1) if " ".join(text.split())[:60] in flat]
            return max(shown, default=0), None
        found = [(int(number), int(version) if version else None) for number, version in _DRAFT.findall(prompt)]
        return max(found, key=lambda each: (each[0], each[1] or 0), default=(0, None))

    def written(self, number: int, version: int | None) -> str:
        """Return draft ``number``."""
        return _nth(self.answers, number) if self.answers else draft(number, version)

    def evaluation(self, number: int, score: float) -> dict[str, Any]:
        """Return what a judge says of draft ``number``, on the scale 0 to 1."""
        reasons = self.reasons or [f"Draft {number} is worth {score}."]
        suggestions = self.suggestions or [[f"Say more than in draft {number}.", "Give an example."]]
        return {
            "score": score, "meets_criteria": score >= 0.8, "evaluation_reasoning": _nth(reasons, number),
            "improvement_suggestions": list(_nth(suggestions, number)) if score < 1 else [],
        }  # fmt: skip


def _nth(values: Sequence[Any], number: int) -> Any:
    return values[min(number, len(values)) - 1]


def _asked_for(request: Request) -> dict[str, Any] | None:
    """Return the JSON Schema that is asked for, as a parameter or in words."""
    if request.schema is not None:
        return dict(request.schema)
    said = _IN_WORDS.findall(request.prompt)
    return dict(json.loads(said[-1])) if said else None


def _numbers(schema: dict[str, Any]) -> list[str]:
    """Return the choices that a judge has, where it is asked for one of several numbers."""
    listed = [str(value) for value in schema.get("properties", {}).get("answer", {}).get("enum", ())]
    return listed if listed and all(re.fullmatch(r"[\d.]+", value) for value in listed) else []


def _judges(schema: dict[str, Any] | None) -> bool:
    """Tell whether a judge is asked for ``schema``."""
    return schema is not None and ("score" in schema.get("properties", {}) or bool(_numbers(schema)))


def _top(schema: dict[str, Any]) -> float:
    """Return the highest score of a schema: 10 for whole numbers, else what it says, else 1."""
    top = schema.get("maximum", max(schema.get("enum", ()), default=None))
    return float(top) if top is not None else 10.0 if schema.get("type") == "integer" else 1.0


class AnswerServer(ModelServer):
    """The server. ``plays`` are those of ``--play``; the other options are ``ModelServer``'s, whose faults come first."""

    def __init__(self, plays: Sequence[dict[str, Any]] = (), delay: float = 0.0, **options: Any) -> None:
        self._plays = plays
        self._pause = delay
        self._asked: Counter[str] = (
            Counter()
        )  # how often each prompt came: candidates and judges of a panel share theirs
        self._met: Counter[tuple[str, int, str]] = Counter()  # faults that an instruction has had
        super().__init__(answer=lambda prompt: _TEXT.get(), ignores_format=True, delay=delay, **options)

    # The base reads a request, tells the log of it, waits for ``delay``, asks ``_fault``, and answers ``answer(prompt)``,
    # all in the task of the connection; what is found out on the way is kept in that task's context.

    @property
    def delay(self) -> float:  # type: ignore[override]
        """Seconds before the answer to what came in last on this connection."""
        return _DELAY.get()

    @delay.setter
    def delay(self, seconds: float) -> None:
        self._pause = seconds

    def _tell(self, **what: str | int) -> None:
        super()._tell(**what)
        if "asked" in what:
            request = self.requests[-1]
            play = Play.of(request.prompt, self._plays)
            number = play.seen(request.prompt)[0] + (not _judges(_asked_for(request)))
            _DELAY.set(float(play.at("delay", max(1, number), [str(self._pause)])))

    def _fault(self, request: Request) -> str | None:
        fault = super()._fault(request)
        if fault is not None:
            return fault
        play, schema = Play.of(request.prompt, self._plays), _asked_for(request)
        turn = self._asked[request.prompt]
        self._asked[request.prompt] += 1
        if schema is not None and _judges(schema):
            _TEXT.set(self._judged(request.prompt, play, schema, turn))
            return None
        number = play.seen(request.prompt)[0] + 1
        text = play.written(number, self._version(play, number, turn))
        _TEXT.set(text if schema is None else json.dumps({**example(schema), "answer": text}))
        return next((fault for name, fault in _FAULTS.items() if self._meets(name, number, play)), None)

    def _meets(self, name: str, number: int, play: Play) -> bool:
        """Tell whether fault ``name`` comes now: as often as it is listed for draft ``number`` of this instruction."""
        listed = play.marks.get(name, ())
        if "always" in listed:
            return True
        self._met[name, number, play.instruction] += 1
        return self._met[name, number, play.instruction] <= listed.count(str(number))

    def _version(self, play: Play, number: int, turn: int) -> int | None:
        versions = play.at("scores", number, _SCORES).count("|") + 1
        return turn % versions + 1 if versions > 1 else None

    def _score(self, prompt: str, play: Play, turn: int) -> tuple[int, float]:
        number, version = play.seen(prompt)
        said = play.at("scores", max(1, number), _SCORES).split("|")
        panel = said[(version or 1) - 1].split("/")
        return max(1, number), float(panel[turn % len(panel)])

    def _judged(self, prompt: str, play: Play, schema: dict[str, Any], turn: int) -> str:
        number, score = self._score(prompt, play, turn)
        if play.says("judge fails", number):
            return "I had rather not say."
        if numbers := _numbers(schema):
            most = max(map(float, numbers))
            return json.dumps({"answer": min(numbers, key=lambda value: abs(float(value) - score * most))})
        kind = schema["properties"]["score"]
        top = _top(kind)
        whole = kind.get("type") == "integer" or "enum" in kind
        evaluation = play.evaluation(number, score) | {"score": round(score * top) if whole else score * top}
        if play.says("judge odd", number) and self._meets("judge odd", number, play):
            evaluation["score"] = 7 * top
        return json.dumps({**example(schema), **{n: v for n, v in evaluation.items() if n in schema["properties"]}})


async def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--rate", type=float, default=0.0, help="share of the prompts that meet one fault")
    parser.add_argument("--faults", default="", help="names, comma between")
    parser.add_argument("--log", type=Path, help="where to write what came in")
    parser.add_argument("--play", type=Path, help="JSON: answers and scores for prompts that say more")
    given = parser.parse_args()
    server = AnswerServer(
        json.loads(given.play.read_text(encoding="utf-8")) if given.play else (),
        rate=given.rate, mix=tuple(filter(None, given.faults.split(","))), delay=given.delay,
        log=given.log.open("a") if given.log else None,
    )  # fmt: skip
    await server.start("127.0.0.1", given.port)
    print(server.url, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        asyncio.run(_main())
