"""The steps of a seed as they were read, to be found again in the next text by what they say: an editor changes one of a thousand."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from attrs import define, field, frozen

from ...diagnostic import Diagnostic
from ...parse.moving import move
from ...trees.seed import SeedStep
from ..json_tree import JsonNode
from .expressions import Texts

__all__ = ["Asked", "Part", "Parts"]


@define(eq=False)
class Asked(Collection[str]):
    """Names that there are. ``asked`` is which of some were looked up, and whether they are there."""

    names: frozenset[str]
    asked: dict[str, bool] = field(factory=dict)

    def __contains__(self, name: object) -> bool:
        is_there = name in self.names
        if isinstance(name, str):
            self.asked[name] = is_there
        return is_there

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def since(self) -> Mapping[str, bool]:
        """Return what was looked up since this was asked last."""
        asked, self.asked = self.asked, {}
        return asked

    def says(self, asked: Mapping[str, bool]) -> bool:
        """Say whether all that was looked up would be found the same."""
        return all((name in self.names) == is_there for name, is_there in asked.items())


@frozen(eq=False)
class Part:
    """A step as it was read where it stood then. As a value it stands for what the step says, without its place.

    ``steps`` and ``fields``: the names that were looked up for it. ``is_faulty``: it is to be read again, wherever it stands.
    """

    step: SeedStep
    steps: Mapping[str, bool]
    fields: Mapping[str, bool]
    is_faulty: bool

    def at(self, start: int) -> SeedStep:
        """Return the step as it is where it begins at ``start``."""
        by = start - self.step.span.start
        return move((self.step,), by)[0] if by else self.step


@define(eq=False)
class Parts:
    """The steps of one seed: ``before`` are those of one like it, by their texts, ``made`` what this one's are known by."""

    before: Mapping[str, Part]
    steps: Asked
    fields: Asked
    faults: Sequence[Diagnostic]
    """What is wrong with the JSON."""
    now: dict[str, Part] = field(factory=dict, init=False)
    made: list[Part] = field(factory=list, init=False)

    def find(self, text: str, node: JsonNode, texts: Texts) -> SeedStep | None:
        """Return the step that stands at ``node``, where one like it was read without a fault before."""
        part = self.now.get(text) or self.before.get(text)
        if part is None or texts.are_too_many or self._is_broken(node):
            return None
        if not (self.steps.says(part.steps) and self.fields.says(part.fields)):
            return None
        self.now[text] = part
        self.made.append(part)
        return part.at(node.start)

    def begin(self) -> None:
        """Note that a step is going to be read."""
        self.steps.since()
        self.fields.since()

    def put(self, text: str, node: JsonNode, step: SeedStep, texts: Texts, *, is_faulty: bool) -> None:
        """Keep what was read at ``node``."""
        is_faulty = is_faulty or texts.are_too_many or self._is_broken(node)
        part = Part(step, self.steps.since(), self.fields.since(), is_faulty)
        self.made.append(part)
        if not is_faulty:
            self.now[text] = part

    def _is_broken(self, node: JsonNode) -> bool:
        """Say whether the JSON itself is wrong there: then a text is not all that counts."""
        return any(
            each.span is None or (each.span.start <= node.end and node.start <= each.span.end) for each in self.faults
        )
