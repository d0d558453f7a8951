"""Models that compile the allergy task of seed 002: from the cassette of the docs, with slips, repaired by a program without a thought."""

import json
import re

from knotwork.adapters.llm import Completion, Usage
from knotwork.lang.diagnostic import Edit, apply_edits
from knotwork.lang.source import Span

from .folders import EXAMPLES

FOLDER = EXAMPLES / "compile"
TASK = (FOLDER / "allergy.md").read_text(encoding="utf-8")
CASSETTE = FOLDER / "allergy.jsonl"
PHASES = ("conditions", "graph", "seed")
_LINES = [json.loads(line) for line in CASSETTE.read_text(encoding="utf-8").splitlines()[1:]]
_MARKS = {"conditions": "first of three steps", "graph": "second of three steps", "seed": "last of three steps"}
ASKED_AGAIN = "You have answered already"


def _good(mark: str) -> dict:
    line = next(line for line in _LINES if mark in line["request"]["prompt_contains"])
    return json.loads(line["answer"]["text"])


GOOD = {"conditions": _good("first"), "graph": _good("second"), "seed": _good("already")}
"""What a model that makes no mistake answers."""
GOOD["conditions"]["conditions"][2]["uses"] = ["extraction.safety_interaction"]
for _node in GOOD["graph"]["nodes"]:
    for _need in _node["needs"]:
        _need["values"] = ["betrayal" if value == "betrayel" else value for value in _need["values"]]


def phase_of(prompt: str) -> str:
    return next(phase for phase in PHASES if _MARKS[phase] in prompt)


def written(document: object) -> str:
    return json.dumps(document, ensure_ascii=False)


class Author:
    """Answers each step with its text, and again with whatever ``mend`` makes of its answer and what is said of that."""

    def __init__(self, texts=None, mend=None, usage=None):
        self.texts = {phase: written(document) for phase, document in GOOD.items()} | (texts or {})
        self.mend = mend
        self.usage = usage or Usage(100, 50)
        self.prompts = []
        self.options = []

    @property
    def phases(self):
        return [phase_of(prompt) for prompt in self.prompts]

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""

    async def generate(self, prompt, **options):
        self.prompts.append(prompt)
        self.options.append(options)
        text = self.texts[phase_of(prompt)]
        if ASKED_AGAIN in prompt and self.mend is not None:
            text = self.mend(*told(prompt))
        return Completion(text, usage=self.usage)


def told(prompt: str) -> tuple[str, list[dict]]:
    """Return the answer and the diagnostics that a repair prompt shows: all that a repairer gets."""
    rest = prompt[prompt.rindex(ASKED_AGAIN) :]
    blocks = re.findall(r"^(`{3,})\n(.*?)\n\1$", rest, re.M | re.S)
    return blocks[0][1], json.loads(blocks[1][1])


def dumb(answer: str, diagnostics: list[dict]) -> str:
    """Make the edits that are offered for errors, and nothing else; of two that overlap the first."""
    made: list[Edit] = []
    for each in diagnostics:
        edits = [Edit(Span(edit["start"], edit["end"]), edit["text"]) for edit in each["edits"]]
        if each["severity"] == "error" and not any(_overlap(a, b) for a in edits for b in made):
            made += edits
    return apply_edits(answer, made)


def _overlap(one: Edit, other: Edit) -> bool:
    a, b = one.span, other.span
    return (a.start < b.end and b.start < a.end) or (a.start == b.start and (a.end == a.start or b.end == b.start))
