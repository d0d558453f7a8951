"""What the parser takes where the cursor is, and what a name there would be.

No table says what may follow what. The text before the cursor is ended in the shortest way that the grammar has, with a mark at the
cursor; it is read by the language's own reader, and where the mark is found in the tree says what it is: the variable that
``COUNT`` takes, the field that a comparison has at its left.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import attrs
from attrs import frozen

from ...node import Node
from ...parse.ahead import Automaton, States

__all__ = ["MARK", "Before", "Found", "Tongue", "Way", "found_by", "words"]

MARK = "knotwork_is_here"
"""A name that no text has."""

Way: TypeAlias = tuple[tuple[Any, str], ...]
"""The nodes from the root to the mark, each with the field that holds the next one; the last field is the mark's own."""

_WORDY = re.compile(r"[\w`]")
_DEVIATIONS = 16
_LONGEST_READ = 3_000
"""Characters before the cursor that are read again for each word; behind more, words are offered as the grammar spells them."""


@frozen
class Tongue:
    """A language as this room needs it. ``read`` gives a tree or None, ``written`` its canonical text; ``blank`` parts words."""

    automaton: Automaton
    read: Callable[[str], Any]
    written: Callable[[Any], str]
    blank: str = " "


@frozen
class Before:
    """The text before what is completed, as far back as it matters, and the parser's states behind it."""

    text: str
    states: States


@frozen
class Found:
    """A word of the language that may stand at the cursor, and the terminal that it is."""

    terminal: str
    text: str


def _endings(tongue: Tongue, states: States, deviations: int) -> Iterator[list[str]]:
    """Yield the shortest ending, then some that take another way somewhere: ``max()`` lacks what the grammar leaves out."""
    automaton = tongue.automaton
    shortest = automaton.ending(states)
    yield shortest
    left = deviations
    for taken in range(len(shortest) if deviations else 0):
        at = automaton.after(states, *shortest[:taken])
        if at is None:
            return
        others = [name for name in automaton.accepts(at) if name != shortest[taken] and automaton.samples.get(name)]
        for name in others[:left]:
            after = automaton.after(at, name)
            if after is not None:
                left -= 1
                yield [*shortest[:taken], name, *automaton.ending(after)]


def _ended(tongue: Tongue, before: Before, written: str, states: States) -> tuple[Any, tuple[str, ...]] | None:
    """Read the text before the cursor with ``written`` behind it, ended. None where no ending makes it readable."""
    samples = tongue.automaton.samples
    for ending in _endings(tongue, states, _DEVIATIONS if len(before.text) <= _LONGEST_READ else 0):
        tail = tongue.blank.join(samples[name] for name in ending)
        tree = tongue.read(f"{before.text}{written}{tongue.blank}{tail}")
        if tree is not None:
            return tree, tuple(ending)
    return None


def words(tongue: Tongue, before: Before) -> list[Found]:
    """Return the words and signs of the grammar that may stand next, as the printer writes them; of synonyms, the printer's."""
    automaton = tongue.automaton
    if len(before.text) > _LONGEST_READ:
        accepted = automaton.accepts(before.states)
        return [Found(name, said) for name in accepted for said in automaton.spellings.get(name, ()) if said.strip()]
    groups: dict[Any, list[tuple[bool, Found]]] = {}
    for terminal in automaton.accepts(before.states):
        after = automaton.after(before.states, terminal)
        for text in automaton.spellings.get(terminal, ()):
            if after is None or not text.strip() or _touches(before.text, text):
                continue
            read = _ended(tongue, before, text, after)
            if read is None:
                continue
            printed = tongue.written(read[0])
            spelled = next((way for way in (text, text.lower()) if _has(printed, way)), None)
            groups.setdefault(read, []).append((spelled is not None, Found(terminal, spelled or text)))
    found: list[Found] = []
    for group in groups.values():
        printed_ones = [each for is_printed, each in group if is_printed]
        found += printed_ones or [each for _, each in group]
    order = {name: place for place, name in enumerate(automaton.samples)}
    return sorted(found, key=lambda each: order[each.terminal])


def _has(printed: str, word: str) -> bool:
    if not word[0].isalnum():
        return word in printed
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", printed) is not None


def _touches(text: str, word: str) -> bool:
    """Say whether ``word`` would run into what stands before it."""
    return _WORDY.match(text[-1:]) is not None and _WORDY.match(word) is not None


def found_by(tongue: Tongue, before: Before, written: str, *terminals: str) -> tuple[Way, Any] | None:
    """Return what the mark in ``written`` is, and the tree it is in; None where ``terminals``, as which it is read, can't stand."""
    after = tongue.automaton.after(before.states, *terminals)
    if after is None or _touches(before.text, written):
        return None
    read = _ended(tongue, before, written, after)
    way = _way(read[0]) if read is not None else None
    return (way, read[0]) if way is not None and read is not None else None


def _way(root: Any) -> Way | None:
    """Return the way to the mark."""
    stack: list[tuple[Any, Way]] = [(root, ())]
    while stack:
        value, way = stack.pop()
        if isinstance(value, str):
            if value == MARK:
                return way
        elif isinstance(value, tuple | list):
            stack.extend((each, way) for each in reversed(value))
        elif isinstance(value, Node):
            names = [each.name for each in attrs.fields(type(value)) if each.name != "span"]
            stack.extend((getattr(value, name), (*way, (value, name))) for name in reversed(names))
    return None
