"""The columns of the rows that commands return. The linter and the executor use the same names."""

from collections.abc import Collection, Sequence

from .printer.gasl_printer import format_condition
from .trees.conditions import Field
from .trees.gasl import Computation, FindPatterns, Join, NamedValue

JOINED_FIELDS = 1_000
"""Maximum number of fields in a row of a JOIN."""


def joined_names(left: Collection[str], right: Collection[str], shared: Collection[str]) -> dict[str, str] | None:
    """Map each field of the right side to its name in the rows of a JOIN. The fields of the left side keep their names.

    If both sides have a field ``name``, the field of the right side becomes ``right.name``. If that name is taken too, ``right.`` is
    prepended again. A field in ``shared``, on which both sides are joined, occurs only once. Returns None if the rows would have more than
    ``JOINED_FIELDS`` fields: each join of a variable with itself doubles the number of fields.
    """
    left = frozenset(left)
    once = frozenset(shared) & left
    if len(left) + len(right) - len(once & frozenset(right)) > JOINED_FIELDS:
        return None
    taken = {_prefixed(name) for name in (*left, *right)}
    used: dict[str, int] = {}
    names: dict[str, str] = {}
    for name in sorted(right, key=len):  # shorter names first, so the result does not depend on the order of the fields
        if name in once:
            continue
        if name not in left:
            names[name] = name
            continue
        count, rest = _prefixed(name)
        count = max(count, used.get(rest, 0)) + 1  # skip the counts that were tried for shorter names
        while (count, rest) in taken:
            count += 1
        used[rest] = count
        names[name] = "right." * count + rest
    return {name: names[name] for name in right if name in names}


def _prefixed(name: str) -> tuple[int, str]:
    """Return the number of ``right.`` prefixes of a name, and the name without them."""
    count = 0
    while name.startswith("right.", 6 * count):
        count += 1
    return count, name[6 * count :]


def joined_on(command: Join) -> frozenset[str]:
    """Return the fields that have the same name on both sides of a JOIN's ON.

    SIMILAR shares no fields, because the two values may differ.
    """
    if command.similar is not None:
        return frozenset()
    pairs = ((pair.left, pair.other) for pair in command.on)
    return frozenset(left.text for left, right in pairs if isinstance(left, Field) and left == right)


def computed_name(made: Computation) -> str:
    """Return the column of a computation: its name, or for example ``count``, ``sum_amount`` or ``percentile_amount``."""
    if made.name is not None:
        return made.name.text
    if made.value is None:
        return made.function
    value = made.value.text if isinstance(made.value, Field) else format_condition(made.value)
    return f"{made.function}_{value}"


def group_names(by: Sequence[NamedValue], made: Collection[str]) -> tuple[str, ...]:
    """Return the columns of grouped values.

    If the name of a group is already the name of a computed column or of an earlier group, the prefix ``by.`` is added.
    """
    taken = set(made)
    names: list[str] = []
    for each in by:
        name = each.column
        while name in taken:
            name = f"by.{name}"
        taken.add(name)
        names.append(name)
    return tuple(names)


def pattern_names(command: FindPatterns) -> tuple[str, ...]:
    """Return the names in patterns, in order of first occurrence: the fields of the rows."""
    names: dict[str, None] = {}
    for pattern in command.patterns:
        parts = [pattern.nodes[0]]
        for edge, node in zip(pattern.edges, pattern.nodes[1:], strict=True):
            parts += [edge, node]  # type: ignore[list-item]
        names.update(dict.fromkeys(part.name for part in parts if part.name is not None))
    return tuple(names)
