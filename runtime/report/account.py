"""The data for the page about a run: sections (a request, a step of a question) have phases, and phases have entries and figures.

``narrative`` fills in the data. Figures include every call in the log. Texts are stored up to a limit, with the number of characters
left out.
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from ..events import is_nested
from ..results import add_costs

if TYPE_CHECKING:
    from ...adapters.llm.budget import Price
    from .drawings import Row, TreeDrawing

# Functions that read a field of an event. Events come from a file: a value of another type, or a non-finite number, counts as empty.

_MOST = 10**15
"""Upper limit of a plausible count; this program never writes an event with a larger count."""


def text(event: Mapping[str, Any], name: str) -> str:
    """Return the value of a text field; "" if the value is not a string."""
    value = event.get(name)
    return value if isinstance(value, str) else ""


def number(event: Mapping[str, Any], name: str) -> int:
    """Return the value of an integer field; 0 if the value is not a plausible integer."""
    value = event.get(name)
    return value if type(value) is int and abs(value) <= _MOST else 0


def figure(event: Mapping[str, Any], name: str) -> float | None:
    """Return the value of a numeric field; None if the value is not a plausible finite number."""
    value = event.get(name)
    if type(value) is int:
        return float(value) if abs(value) <= _MOST else None
    return value if isinstance(value, float) and math.isfinite(value) and abs(value) <= _MOST else None


_TEXT = 40_000
"""Maximum number of shown characters of a prompt or an answer."""
_PAGE = 6_000_000
"""Maximum characters of all texts on the page."""
_ENTRIES = 400
"""Maximum number of entries that are shown for a phase."""


@define
class PageSpace:
    """Counts the space for texts on the page: ``left`` is the number of characters that are still available."""

    left: int = _PAGE

    def block(self, label: str, text: str, missing: int = 0) -> "Block":
        """Return a block with ``text`` cut to the space left; ``missing`` is the number of characters that the log did not store."""
        shown = text[: max(0, min(_TEXT, self.left))]
        self.left -= len(shown)
        return Block(label, shown, len(text) - len(shown) + missing)


@frozen
class Block:
    """A collapsible text with its label. ``left_out`` is the number of characters that are not shown."""

    label: str
    text: str = field(repr=False)
    left_out: int = 0


@define
class Entry:
    """One entry in a phase. ``status`` is a word that selects the colour, ``outcome`` is the result in words.

    ``code`` is shown verbatim. ``lines`` are remarks, such as retries and their reasons. ``blocks`` are collapsible texts.
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
    """Numbers of sent requests, of cached answers and of tokens, the cost in US dollars (None: unknown), and the seconds."""

    calls: int = 0
    cached: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False
    cost: float | None = None
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Total tokens of prompts and answers."""
        return self.prompt_tokens + self.completion_tokens

    def call(self, event: Mapping[str, Any], again: int = 0) -> None:
        """Count a finished call. ``again`` is the number of repeated requests; a field ``calls`` in the event takes precedence.

        A call that was refused because of the budget was not sent. A call marked as not counted is included in another call.
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
        self.estimated = self.estimated or event.get("estimated") is True
        self.cost = add_costs(self.cost, figure(event, "cost"))

    def add(self, other: "Figures") -> None:
        """Add the figures in ``other``."""
        self.calls += other.calls
        self.cached += other.cached
        self.prompt_tokens += other.prompt_tokens
        self.completion_tokens += other.completion_tokens
        self.estimated = self.estimated or other.estimated
        self.cost = add_costs(self.cost, other.cost)
        self.seconds += other.seconds


@define
class Phase:
    """A part of a section. ``status`` is "" if the end is not known; ``left_out`` is the number of entries that are not shown."""

    name: str
    status: str = ""
    detail: str = ""
    figures: Figures = field(factory=Figures)
    entries: list[Entry] = field(factory=list)
    left_out: int = 0
    document: Block | None = None
    """The result of the phase as a text: a script, a plan or a seed."""

    def add(self, entry: Entry) -> None:
        """Add an entry; if the phase has the maximum number of entries, only count it."""
        if len(self.entries) < _ENTRIES:
            self.entries.append(entry)
        else:
            self.left_out += 1


@define
class Section:
    """A request of a ranking, a step of a question, or a whole run."""

    label: str
    title: str = ""
    result: str = ""
    phases: dict[str, Phase] = field(factory=dict)

    def phase(self, name: str) -> Phase:
        """Return the phase with this name; create the phase if necessary."""
        return self.phases.setdefault(name, Phase(name))

    @property
    def figures(self) -> Figures:
        """The total figures of all phases. The time of a step includes the steps of the script that it runs."""
        total = _sum(phase.figures for phase in self.phases.values())
        total.seconds -= sum(phase.figures.seconds for phase in self.phases.values() if is_nested(phase.name))
        return total

    @property
    def status(self) -> str:
        """The status of the last phase that has a status; "" without such a phase."""
        return next((phase.status for phase in reversed(self.phases.values()) if phase.status), "")


@define
class Account:
    """The data about a run. ``kind`` is script, seed, rank, compile or ask; ``subject`` is the request, ``answer`` the result.

    ``attempts`` is one more than the number of times the run was resumed. ``logged`` is true if events, including prompts, were stored.
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
    prices: "dict[str, Price]" = field(factory=dict)
    """Maps the specs of the run's models to their recorded prices."""
    warnings: list[str] = field(factory=list)
    evidence: list[tuple[str, str, str]] = field(factory=list)
    """For each finding that the answer cites: the key, the finding, and its evidence in the graph."""
    tree: "list[Row]" = field(factory=list)
    """The lines that show the tree of a search."""
    tree_left_out: int = 0
    drawn: "TreeDrawing | None" = None
    space: PageSpace = field(factory=PageSpace)

    def section(self, key: Any, label: str, title: str = "") -> Section:
        """Return the section for ``key``; create the section if necessary."""
        found = self.sections.setdefault(key, Section(label))
        found.title = found.title or title
        return found

    @property
    def totals(self) -> Figures:
        """The total figures of all phases."""
        return _sum(section.figures for section in self.sections.values())

    @property
    def by_phase(self) -> list[tuple[str, Figures, int]]:
        """For each phase name, in the order of first occurrence: the name, the total figures, and the number of phases in all sections."""
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
