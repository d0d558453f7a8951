"""A run as the page tells it: sections (a request, a step of a question) with phases, phases with what happened, everything counted.

``events`` fills it in. Figures count every call of the log; texts are kept up to a bound, which says how much it left out.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from ..results import add_costs

if TYPE_CHECKING:
    from .drawings import Row, TreeDrawing

__all__ = ["Account", "Entry", "Figures", "Phase", "Room", "Section", "figure", "number", "text"]


# Fields of an event as the page takes them: it comes from a file, and what is of another type, or is no figure at all, counts as
# empty.

_MOST = 10**15
"""More than this was never counted: what says so is no event of ours."""


def text(event: Mapping[str, Any], name: str) -> str:
    """Return a field that is a text; "" where it is none."""
    value = event.get(name)
    return value if isinstance(value, str) else ""


def number(event: Mapping[str, Any], name: str) -> int:
    """Return a field that is a whole number; 0 where it is none."""
    value = event.get(name)
    return value if type(value) is int and abs(value) <= _MOST else 0


def figure(event: Mapping[str, Any], name: str) -> float | None:
    """Return a field that is a number; None where it is none, nor a finite one."""
    value = event.get(name)
    if type(value) is int:
        return float(value) if abs(value) <= _MOST else None
    return value if isinstance(value, float) and math.isfinite(value) and abs(value) <= _MOST else None


_TEXT = 40_000
"""Characters of a prompt or an answer that the page shows."""
_PAGE = 6_000_000
"""Characters of all texts together that the page shows."""
_ENTRIES = 400
"""Things that happened in a phase that the page tells."""


@define
class Room:
    """How many characters the page still has for texts."""

    left: int = _PAGE

    def block(self, label: str, text: str, missing: int = 0) -> "Block":
        """Return a text with its label, cut to what there is room for; ``missing``: characters that the log has not kept."""
        shown = text[: max(0, min(_TEXT, self.left))]
        self.left -= len(shown)
        return Block(label, shown, len(text) - len(shown) + missing)


@frozen
class Block:
    """A text that is folded away under its label. ``left_out`` counts characters that are not shown."""

    label: str
    text: str = field(repr=False)
    left_out: int = 0


@define
class Entry:
    """One thing that happened. ``status`` is a word that the page gives a colour, ``outcome`` what came of it in words.

    ``code`` is shown as it stands; ``lines`` are remarks, such as what was sent again and why.
    """

    kind: str
    title: str
    status: str = ""
    outcome: str = ""
    code: str = ""
    lines: list[str] = field(factory=list)
    blocks: list[Block] = field(factory=list)


@define
class Figures:
    """Requests that were sent to models, answers that a cache had, tokens, US dollars (None: not known), seconds."""

    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Tokens of prompts and answers together."""
        return self.prompt_tokens + self.completion_tokens

    def call(self, event: Mapping[str, Any], again: int = 0) -> None:
        """Count a call that is over, which was sent ``again`` so many times; ``calls`` says how often it was sent, where it is known.

        One that was refused for want of budget was not sent. One that is said not to be counted is a part of another.
        """
        if event.get("counted") is False:
            return
        sent = figure(event, "calls")
        if event.get("cached") or sent == 0:
            self.cached += 1
        else:
            self.calls += int(sent) if sent is not None else again + (event.get("error") != "budget")
        self.prompt_tokens += number(event, "prompt_tokens")
        self.completion_tokens += number(event, "completion_tokens")
        self.cost = add_costs(self.cost, figure(event, "cost"))

    def add(self, other: "Figures") -> None:
        """Add another one's."""
        self.calls += other.calls
        self.cached += other.cached
        self.prompt_tokens += other.prompt_tokens
        self.completion_tokens += other.completion_tokens
        self.cost = add_costs(self.cost, other.cost)
        self.seconds += other.seconds


@define
class Phase:
    """A part of a section. ``status`` is "" while nothing says how it ended; ``left_out`` counts entries that are not told."""

    name: str
    status: str = ""
    detail: str = ""
    figures: Figures = field(factory=Figures)
    entries: list[Entry] = field(factory=list)
    left_out: int = 0
    document: Block | None = None
    """What it came to, as a text: a script, a plan, a seed."""

    def add(self, entry: Entry) -> None:
        """Add what happened, as far as there is room."""
        if len(self.entries) < _ENTRIES:
            self.entries.append(entry)
        else:
            self.left_out += 1


@define
class Section:
    """A request of a ranking, a step of a question, or all of a run."""

    label: str
    title: str = ""
    result: str = ""
    phases: dict[str, Phase] = field(factory=dict)

    def phase(self, name: str) -> Phase:
        """Return the phase of this name, which begins where it is not there."""
        return self.phases.setdefault(name, Phase(name))

    @property
    def figures(self) -> Figures:
        """All phases' figures together."""
        return _sum(phase.figures for phase in self.phases.values())

    @property
    def status(self) -> str:
        """How the section ended: as its last phase did."""
        return next((phase.status for phase in reversed(self.phases.values()) if phase.status), "")


@define
class Account:
    """A run. ``kind`` is script, seed, rank, compile or ask; ``subject`` what was asked for; ``answer`` what it came to.

    ``attempts`` are the times at which it was begun and gone on with. ``logged``: its events were kept, prompts among them.
    """

    kind: str
    run_id: str
    path: str
    subject: str
    model: str = ""
    started: str = ""
    status: str = ""
    reason: str = ""
    answer: str = ""
    attempts: int = 1
    logged: bool = True
    sections: dict[Any, Section] = field(factory=dict)
    documents: list[Block] = field(factory=list)
    facts: list[tuple[str, str]] = field(factory=list)
    warnings: list[str] = field(factory=list)
    evidence: list[tuple[str, str, str]] = field(factory=list)
    """Key, finding, and what of the graph it rests on."""
    tree: "list[Row]" = field(factory=list)
    """The lines of a search's tree."""
    tree_left_out: int = 0
    drawn: "TreeDrawing | None" = None
    room: Room = field(factory=Room)

    def section(self, key: Any, label: str, title: str = "") -> Section:
        """Return the section under ``key``, which begins where it is not there."""
        found = self.sections.setdefault(key, Section(label))
        found.title = found.title or title
        return found

    @property
    def totals(self) -> Figures:
        """What all phases spent together."""
        return _sum(section.figures for section in self.sections.values())

    @property
    def by_phase(self) -> list[tuple[str, Figures, int]]:
        """What the phases of a name spent in all sections together, and how many there are; in their order."""
        found: dict[str, tuple[Figures, int]] = {}
        for section in self.sections.values():
            for phase in section.phases.values():
                figures, count = found.setdefault(phase.name, (Figures(), 0))
                figures.add(phase.figures)
                found[phase.name] = figures, count + 1
        return [(name, figures, count) for name, (figures, count) in found.items()]


def _sum(many: Any) -> Figures:
    total = Figures()
    for each in many:
        total.add(each)
    return total
