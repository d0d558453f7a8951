"""The tree of an LWT script: steps that call operations, whose templates refer to other steps.

A ``Script`` is a sequence of steps and comments. A ``Step`` has one ``Call``; the arguments and options of a call are
values: templates, references, literals, lists, objects, bare words, choices, calls. See ``docs/design/lwt.md#syntax``.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final, TypeAlias
from typing import Literal as OneOf

import attrs
from attrs import frozen

from ..diagnostic import Diagnostic
from ..source import Source
from . import Node, walk

MAX_STEPS = 10_000
"""Default maximum number of steps of a script (``--max-steps``, ``max_steps=``)."""

MISSING: Final = object()
"""The run's input is unknown. None can't mean this, because None is a valid input (JSON's null)."""
ABSENT: Final = object()
"""The run has no input."""

RESERVED = frozenset({"input", "item", "index"})
"""Names of the run's input, of EACH's current item and of the item's index. Steps can't have these names."""

Mode = OneOf["strict", "lenient"]


@frozen
class Text(Node):
    """Literal text of a template, with its escapes resolved."""

    value: str


@frozen
class Key(Node):
    """``["key"]``: a field of an object."""

    value: str


@frozen
class Index(Node):
    """``[3]`` or ``[-1]``: an element of a list."""

    value: int


@frozen
class Slice(Node):
    """``[0:200]``: part of a list or of a string."""

    start: int | None
    stop: int | None


Accessor: TypeAlias = Key | Index | Slice


@frozen
class Reference(Node):
    """``{(name)}["key"][0]``: a reference to a value, with a path into the value.

    The value is the output of a step, the run's input, or the item or index of an EACH.
    """

    name: str
    accessors: tuple[Accessor, ...] = ()


@frozen
class Template(Node):
    """A string: text and references in source order. Adjacent pieces of text are merged."""

    parts: tuple[Text | Reference, ...] = ()

    @property
    def constant(self) -> str | None:
        """The text of the string if it contains no reference, else None."""
        texts = [part.value for part in self.parts if isinstance(part, Text)]
        return "".join(texts) if len(texts) == len(self.parts) else None


@frozen
class Scalar(Node):
    """A number, ``true``, ``false`` or ``null``."""

    value: int | float | bool | None = attrs.field(eq=lambda value: (type(value), value))


@frozen
class Word(Node):
    """An unquoted word as a value: ``type=json``."""

    value: str


@frozen
class Choice(Node):
    """``"a" | "b"``: one of several strings."""

    labels: tuple[Template, ...]


@frozen
class ListValue(Node):
    """``[value, ...]``."""

    items: tuple["Value", ...]


@frozen
class ObjectValue(Node):
    """``{"key": value, ...}``, in source order. The object may have duplicate keys, which the linter refuses."""

    entries: tuple[tuple[Template, "Value"], ...]


@frozen
class Option(Node):
    """``name=value``: an option of a call."""

    name: str
    value: "Value"


@frozen
class Call(Node):
    """``OP(argument, ..., name=value)``. ``arguments`` and ``options`` are both in source order."""

    operation: str
    arguments: tuple["Value", ...] = ()
    options: tuple[Option, ...] = ()

    def option(self, name: str) -> "Value | None":
        """Return the value of the option ``name``, or None if it is missing. If the option is given twice, its last value is returned."""
        for option in reversed(self.options):
            if option.name == name:
                return option.value
        return None


Value: TypeAlias = Template | Reference | Scalar | Word | Choice | ListValue | ObjectValue | Call


def json_value(value: Value) -> Any:
    """Return the JSON value that ``value`` denotes; ``MISSING`` if it has a reference, a bare word, a choice or a call."""
    if isinstance(value, Scalar):
        return value.value
    if isinstance(value, Template):
        return MISSING if value.constant is None else value.constant
    if isinstance(value, ListValue):
        items = [json_value(item) for item in value.items]
        return MISSING if any(item is MISSING for item in items) else items
    if isinstance(value, ObjectValue):
        entries = [(key.constant, json_value(entry)) for key, entry in value.entries]
        return MISSING if any(key is None or entry is MISSING for key, entry in entries) else dict(entries)
    return MISSING


@frozen
class Step(Node):
    """``(id)=OP(...)``."""

    id: str
    call: Call


@frozen
class Comment(Node):
    """A line that starts with ``#``. ``text`` includes the ``#``, but not the line ending."""

    text: str


@frozen(slots=False)
class Script:
    """A parsed script. ``items`` are its steps and comments in source order.

    ``diagnostics`` are the faults found in parsing. If there are errors, the script has only the steps that could be parsed. In lenient
    mode, spans refer to the original text.
    """

    items: tuple[Step | Comment, ...] = ()
    source: Source = attrs.field(default=Source(""), eq=False, repr=False)
    mode: Mode = attrs.field(default="strict", eq=False)
    diagnostics: tuple[Diagnostic, ...] = attrs.field(default=(), eq=False, repr=False)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The steps in source order."""
        return tuple(item for item in self.items if isinstance(item, Step))

    @cached_property
    def calls(self) -> tuple[tuple[Step, Call], ...]:
        """All calls with their steps, in source order. A run looks at them several times."""
        return tuple((step, call) for step in self.steps for call in calls_of(step))


def calls_of(step: Step) -> list[Call]:
    """Return the calls of ``step``: its own call and those inside it, in source order."""
    call, values = step.call, step.call.arguments
    if call.options:
        values += tuple(option.value for option in call.options)
    if _SIMPLE.issuperset(map(type, values)):
        return [call]  # the common case, without a walk
    return [node for node in walk(step) if isinstance(node, Call)]


_SIMPLE = frozenset({Template, Reference, Scalar, Word, Choice})
"""The values that contain no calls."""


def references(root: Node) -> Iterator[Reference]:
    """Yield every reference in ``root``, in source order."""
    for found in walk(root):
        if isinstance(found, Reference):
            yield found
