"""JOIN, UNION, INTERSECT and EXCEPT: commands that combine the items of two variables.

Values are compared as with ``=``: 1 equals 1.0, "1" does not equal 1, and null equals nothing, not even null.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence
from sys import getsizeof
from typing import TYPE_CHECKING, Any, overload

from attrs import evolve, field, frozen

from ....lang.evaluate.conditions import identity
from ....lang.evaluate.conditions.values import hold
from ....lang.printer.gasl_printer import format_condition
from ....lang.row_columns import JOINED_FIELDS, joined_names, joined_on
from ....lang.trees.conditions import Value as ValueNode
from ....lang.trees.gasl import Join, OnPair, SetOperation
from ..column_cells import blocks_of
from ..records import ExecutionResult, Session
from ..relation import JoinedRows, Relation
from .bindings import Refused, Rows, bound_command, in_thread, rows_of
from .caps import clock, cut_short
from .columns import Column, column, null_counts, possible_fields
from .evidence import Lazy, Pieces, computed_piece, derived, united, with_shared
from .join_partners import Alone, type_note, unmatched_note

if TYPE_CHECKING:
    from ....adapters.columns import Array


@in_thread
def run_join(command: Join, session: Session) -> ExecutionResult:
    """Run JOIN: return a row for every pair of items with equal values. The rows are ordered by the left items, then by the right items.

    Every row has the same fields: the fields of the left items, then the fields of the right items under the names from
    ``lang.row_columns.joined_names``, or one field with the complete right item if the command names it. A field that an item
    lacks is null. LEFT JOIN also returns one row for each left item without a match. Too many fields are rejected. A row has
    the evidence of both items. The result has at most ``max_rows`` rows; if rows are cut off, it is ``partial``.

    With SIMILAR, the values of a pair are texts with at least the given similarity. The most similar pairs come first. The
    field ``similarity`` contains the similarity of the pair. If a variable is joined with itself, each pair occurs once, with
    the earlier item on the left.
    """
    command = bound_command(command, session)
    left, right = rows_of(command.left, session), rows_of(command.right, session)
    own, others = _names(left), _names(right)
    nested = command.name.text if command.name is not None else None
    if nested is not None and nested in own:
        hint = f"choose another name after WITH {right.name} AS"
        raise Refused("schema_mismatch", f"the items of {left.name} have a field {nested}", hint)
    renamed = _renamed(command, left, right, own, others, session) if nested is None else {}
    if renamed is None:
        raise Refused(
            "schema_mismatch",
            f"the rows would have more than {JOINED_FIELDS:,} fields: {left.name} has {len(own):,}, {right.name} has {len(others):,}",
            "keep the needed fields of each first: SELECT variable FIELDS field, field AS variable",
        )
    pairs = (
        _similar(command, left, right, session)
        if command.similar is not None
        else _equal(command, left, right, session)
    )
    taken = {*own, *renamed.values(), *([nested] if nested else [])}
    if clash := next((name for name in pairs.more if name in taken), None):
        hint = f"rename it first: SELECT variable FIELDS ..., {clash} AS name AS variable"
        raise Refused("schema_mismatch", f"the rows would have two fields {clash}", hint)
    rows = JoinedRows(
        left.objects,
        right.held if nested else right.objects,
        pairs.left,
        pairs.right,
        tuple(own),
        renamed,
        nested,
        pairs.more,
    )
    evidence: Lazy = derived(
        len(rows),
        lambda at: united(
            [left.value.evidence_at(int(pairs.left[at])), right.value.evidence_at(other)]
            if (other := int(pairs.right[at])) >= 0
            else [left.value.evidence_at(int(pairs.left[at]))]
        ),
        [left.value, right.value],
    )
    if pairs.texts:
        piece = computed_piece(session.label, pairs.texts, len(left) + len(right))
        evidence = with_shared(evidence, piece, [left.value, right.value])
    message, hint, notes = "", "", list[str]()
    if not len(rows) and not pairs.hit:
        message, hint = _no_match_message(command, left, right, session)
    elif any(side.count for side in pairs.alone):
        notes = [unmatched_note(left, right, *pairs.alone, outer=command.outer), pairs.note]
        pairs.summary["without_partner"] = {"left": pairs.alone[0].count, "right": pairs.alone[1].count}
    result = ExecutionResult.of_items(
        rows, evidence, pairs.summary, used=pairs.used, message=message, hint=hint, notes=tuple(filter(None, notes))
    )
    return cut_short(result, session, pairs.hit) if pairs.hit else result


def _renamed(
    command: Join, left: Rows, right: Rows, own: Collection[str], others: Collection[str], session: Session
) -> Mapping[str, str] | None:
    """Return the names of the right side's fields in the rows. Return None if the rows would have too many fields.

    As in the check before a run, the names depend on all fields that the items of both sides may have, not only on their actual fields.
    """
    on = joined_on(command)
    names = joined_names(
        dict.fromkeys((*possible_fields(left, session), *own)),
        dict.fromkeys((*possible_fields(right, session), *others)),
        on,
    )
    if names is None:  # only fields that the items have count against the limit
        return joined_names(own, others, on)
    return {name: names[name] for name in others if name in names}


@frozen
class _Pairs:
    """The positions of joined items: arrays, with -1 for a missing right item. ``texts`` says how the columns ``more`` were made.

    ``alone`` are the left and the right items without a partner. ``note`` names keys that only their types keep apart.
    """

    left: "Array"
    right: "Array"
    used: str
    summary: dict[str, Any]
    alone: tuple[Alone, Alone]
    note: str = ""
    hit: str = ""
    more: "Mapping[str, Array]" = field(factory=dict)
    texts: Mapping[str, str] = field(factory=dict)


def _equal(command: Join, left: Rows, right: Rows, session: Session) -> _Pairs:
    """Return the pairs of items with equal values."""
    import numpy as np

    keys = _codes(command.on, left, right, session, every=False)
    left_codes, right_codes, count, summary = keys.left, keys.right, keys.count, keys.summary
    order = np.argsort(right_codes, kind="stable").astype(np.intc)[int(np.count_nonzero(right_codes < 0)) :]
    counts = np.bincount(
        right_codes[right_codes >= 0], minlength=count + 1
    )  # the last count, always 0, is for keys that no right item has
    first = np.concatenate([[0], np.cumsum(counts)])
    lefts, rights = [np.empty(0, np.intc)], [np.empty(0, np.intc)]
    left_over, hit, is_over = session.caps.max_rows, "", clock(session)
    for at in blocks_of(len(left)):
        if is_over():
            hit = "timeout_s"
            break
        codes = left_codes[at]
        found = counts[codes]
        numbers = np.maximum(found, 1) if command.outer else found
        ends = np.cumsum(numbers)
        if ends[-1] > left_over:
            hit = "max_rows"
            last = int(np.searchsorted(ends, left_over, side="right"))
            numbers = numbers[: last + 1].copy()
            numbers[last] = left_over - (ends[last - 1] if last else 0)
            codes, found, ends = codes[: last + 1], found[: last + 1], np.cumsum(numbers)
        total = int(ends[-1])
        hold(2 * 4 * total)
        owners = np.repeat(np.arange(len(numbers)), numbers)
        places = np.arange(total) - (ends - numbers)[owners] + first[codes[owners]]
        missing = found[owners] == 0
        lefts.append((owners + at.start).astype(np.intc))
        rights.append(np.where(missing, -1, order[np.where(missing, 0, places)] if len(order) else -1).astype(np.intc))
        left_over -= total
        if hit:
            break
    places = keys.alone()
    alone = Alone.of(keys.columns[0], places[0]), Alone.of(keys.columns[1], places[1])
    return _Pairs(
        np.concatenate(lefts), np.concatenate(rights), "hash join", summary, alone,
        type_note(command, *keys.columns, *places), hit,
    )  # fmt: skip


def _similar(command: Join, left: Rows, right: Rows, session: Session) -> _Pairs:
    """Return the pairs of similar texts."""
    import numpy as np

    from .similar_join import similar_pairs  # imported late: it needs NumPy

    (pair,) = command.on
    least = command.similar
    assert least is not None  # noqa: S101  # the caller's condition
    own = left.value is right.value and pair.left == pair.other
    made = column(left, pair.left, session, lenient=True)
    other = None if own else column(right, pair.other, session, lenient=True)
    nulls = [(format_condition(pair.left), made), *([] if other is None else [(format_condition(pair.other), other)])]
    found = similar_pairs(
        made.values,
        None if other is None else other.values,
        least,
        most_pairs=session.caps.max_rows,
        most_compared=session.caps.max_examined,
        stopped=clock(session),
    )
    summary = null_counts(nulls)
    numbers = {
        name: count for name, each in nulls if (count := sum(type(value) not in (str, _NONE) for value in each.values))
    }
    if numbers:
        summary["mismatched"] = numbers
    right_text = "right." + format_condition(pair.other) if own else format_condition(pair.other)
    texts = {"similarity": f"similarity({format_condition(pair.left)}, {right_text})"}
    if other is None:
        alone = Alone.of([made], np.setdiff1d(np.arange(len(left)), [*found.left, *found.right])), Alone()
    else:
        alone = (
            Alone.of([made], np.setdiff1d(np.arange(len(left)), found.left)),
            Alone.of([other], np.setdiff1d(np.arange(len(right)), found.right)),
        )
    return _Pairs(
        found.left, found.right, "trigrams", summary, alone, "", found.hit, {"similarity": found.similarity}, texts
    )


_NONE = type(None)


def _lefts(on: Sequence[OnPair]) -> list[ValueNode]:
    return [pair.left for pair in on]


def _rights(on: Sequence[OnPair]) -> list[ValueNode]:
    return [pair.other for pair in on]


@frozen
class _Keys:
    """The keys of two sides as numbers, ``count`` different ones; ``summary`` counts nulls, ``columns`` are the values."""

    left: "Array"
    right: "Array"
    count: int
    summary: dict[str, Any]
    columns: tuple[Sequence[Column], Sequence[Column]]

    def alone(self) -> "tuple[Array, Array]":
        """Return the positions of the left and of the right items whose key the other side does not have."""
        import numpy as np

        sides = (self.left, self.right), (self.right, self.left)
        return _alone(np, *sides[0], self.count), _alone(np, *sides[1], self.count)


def _alone(np: Any, own: "Array", others: "Array", count: int) -> "Array":
    there = np.zeros(count + 1, np.bool_)  # the last element is for items without a number
    there[others[others >= 0]] = True
    found: Array = np.flatnonzero(~there[own])
    return found


def _codes(on: Sequence[OnPair], left: Rows, right: Rows, session: Session, *, every: bool) -> _Keys:
    """Return numbers for the keys of the items of the left and right side.

    Items with equal keys have equal numbers; the key of an item consists of the identities of its values. The number is -1 if a
    value is null. Unless ``every``, it is also -1 if no right item has the key. As in a condition, a value that a function does
    not accept is null.
    """
    sides = [
        [column(rows, value, session, lenient=True) for value in values]
        for rows, values in ((left, _lefts(on)), (right, _rights(on)))
    ]
    texts = map(format_condition, (*_lefts(on), *_rights(on)))
    summary = null_counts(zip(texts, (*sides[0], *sides[1]), strict=True))
    known: dict[Hashable, int] = {}
    right_codes = _numbered(sides[1], len(right), known, adds=True)
    left_codes = _numbered(sides[0], len(left), known, adds=every)
    return _Keys(left_codes, right_codes, len(known), summary, (sides[0], sides[1]))


def _numbered(columns: Sequence[Column], size: int, known: dict[Hashable, int], *, adds: bool) -> "Array":
    """Return the number of each row's key in ``known``, or -1. If ``adds``, keys that are not in ``known`` are added."""
    import numpy as np

    codes = np.empty(size, np.int32)
    for at in blocks_of(size):
        before = len(known)
        keys: list[Hashable | None]
        if len(columns) == 1:
            keys = [None if value is None else identity(value) for value in columns[0].values[at]]
        else:
            rows = zip(*(made.values[at] for made in columns), strict=True)
            keys = [None if any(value is None for value in row) else tuple(map(identity, row)) for row in rows]
        if adds:
            codes[at] = [-1 if key is None else known.setdefault(key, len(known)) for key in keys]
        else:
            codes[at] = [-1 if key is None else known.get(key, -1) for key in keys]
        hold(_KEY * len(columns) * (len(known) - before))
    return codes


_KEY = 200
"""Estimated number of bytes of a dictionary entry with a value as its key."""


def _names(rows: Rows) -> dict[str, None]:
    """Return the fields of all items of one side, also of items that are not joined, in order of first occurrence."""
    if rows.relation is not None:
        # A relation without items has no fields, like an empty list: the names must not depend on how the rows are stored.
        return dict.fromkeys((rows.relation.fields() or ()) if len(rows.relation) else ())
    names: dict[str, None] = {}
    for item in rows.each():
        if isinstance(item, dict) and item.keys() != names.keys():
            names.update(dict.fromkeys(item))
    return names


def _no_match_message(command: Join, left: Rows, right: Rows, session: Session) -> tuple[str, str]:
    for rows in (left, right):
        if not len(rows):
            return f"{rows.name} is empty", ""
    lefts, rights = (", ".join(map(format_condition, side(command.on))) for side in (_lefts, _rights))
    if command.similar is not None:
        hint = "a lower number finds more pairs"
        for rows, values, shown in ((left, _lefts(command.on), lefts), (right, _rights(command.on), rights)):
            if (kinds := _kinds(rows, values[0], session)) and "text" not in kinds:
                hint = f"{shown} is a {' or '.join(sorted(kinds))}, but SIMILAR compares strings: write str({shown})"
        return f"no {lefts} of {left.name} is similar to another {rights} of {right.name}", hint
    message = f"no {lefts} of {left.name} equals a {rights} of {right.name}"
    for pair in command.on:
        left_kinds, right_kinds = _kinds(left, pair.left, session), _kinds(right, pair.other, session)
        if left_kinds and right_kinds and not left_kinds & right_kinds:
            return (
                message,
                f"the types differ: {' and '.join(sorted(left_kinds))}, {' and '.join(sorted(right_kinds))}",
            )
    return message, ""


def _kinds(rows: Rows, value: ValueNode, session: Session) -> set[str]:
    names = {str: "text", bool: "boolean", int: "number", float: "number", list: "list", dict: "object"}
    found = column(rows, value, session, lenient=True).values
    return {names.get(type(each), "other") for each in found if each is not None}


@in_thread
def run_set_operation(command: SetOperation, session: Session) -> ExecutionResult:
    """Run UNION, INTERSECT or EXCEPT. Without ON, complete items are compared, and equal items appear only once.

    With ON, the values after ON form the key of an item. UNION then returns the first item for each key, and every item with a
    null in its key. INTERSECT returns every left item whose key occurs in the right items; EXCEPT returns every left item whose
    key does not occur in them. An item that represents other items has the evidence of all these items.
    """
    command = bound_command(command, session)
    left, right = rows_of(command.left, session), rows_of(command.right, session)
    summary: dict[str, Any] = {}
    note = ""
    if command.on:
        keys = _codes(command.on, left, right, session, every=True)
        left_codes, right_codes, count, summary = keys.left, keys.right, keys.count, keys.summary
        note = type_note(command, *keys.columns, *keys.alone())
    else:
        left_codes, right_codes, count = _codes_of_items(left, right)
    items: list[Any] | Relation
    if command.kind == "UNION":
        items, evidence = _union(left, right, left_codes, right_codes, count)
    else:
        shared = command.kind == "INTERSECT"
        items, evidence = _selected(left, right, left_codes, right_codes, count, shared=shared, keyed=bool(command.on))
    message = "" if len(items) else f"{left.name} {command.kind} {right.name} has no items"
    result = ExecutionResult.of_items(
        items, evidence, summary, used="hash", message=message, notes=(note,) if note else ()
    )
    kinds = {left.value.graph_items, right.value.graph_items if command.kind == "UNION" else left.value.graph_items}
    if len(kinds) == 1 and result.value is not None:
        result = evolve(result, value=evolve(result.value, graph_items=kinds.pop()))
    return result


class _Both(Sequence[Any]):
    """The items of both sides, those of the left side first."""

    def __init__(self, left: Sequence[Any], right: Sequence[Any]) -> None:
        self._left = left
        self._right = right

    def __len__(self) -> int:
        return len(self._left) + len(self._right)

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> list[Any]: ...
    def __getitem__(self, at: int | slice) -> Any:
        size = len(self._left)
        if isinstance(at, int):
            return self._left[at] if at < size else self._right[at - size]
        start, stop, _ = at.indices(len(self))
        return [*self._left[start : min(stop, size)], *self._right[max(start - size, 0) : max(stop - size, 0)]]


def _codes_of_items(left: Rows, right: Rows) -> "tuple[Array, Array, int]":
    """Return a number for each left and each right item (equal for equal items), and the count of different numbers."""
    import numpy as np

    from .groups import EqualItems

    both = _Both(left.held, right.held)
    places, codes = EqualItems(both), np.empty(len(both), np.int32)
    for at in blocks_of(len(both)):
        codes[at] = places.add(at)
    return codes[: len(left)], codes[len(left) :], places.count


def _union(
    left: Rows, right: Rows, left_codes: "Array", right_codes: "Array", count: int
) -> tuple[list[Any] | Relation, Lazy]:
    """For each number, return the first item, with the evidence of all with this number, and the items without a number."""
    import numpy as np

    from .groups import Members, first_rows

    codes = np.concatenate([left_codes, right_codes])  # 32 bits suffice: a variable has at most max_rows rows
    alone = codes < 0
    codes[alone] = np.arange(count, count + int(np.count_nonzero(alone)))
    size, space = len(left), count + int(np.count_nonzero(alone))
    first = first_rows(codes, space)
    order = np.argsort(first, kind="stable")[: int(np.count_nonzero(first < len(codes)))]
    kept, members = first[order], Members(codes, order)
    own, others = kept[kept < size], kept[kept >= size] - size
    items = left.taken(own)
    if len(others):
        made = _listed(items)
        made += _listed(right.taken(others))
        items = made

    def make(at: int) -> Pieces:
        places = members[at]

        def piece(member: int) -> Pieces:
            place = int(places[member])
            return left.value.evidence_at(place) if place < size else right.value.evidence_at(place - size)

        return united(Lazy(len(places), piece))

    return items, derived(len(kept), make, [left.value, right.value])


def _listed(items: list[Any] | Relation) -> list[Any]:
    """Return the items as a new list."""
    if not isinstance(items, Relation):
        return list(items)
    made: list[Any] = []
    for at in blocks_of(len(items)):
        some = items[at]
        hold(len(some) * (8 + getsizeof(some[0])))  # the values belong to other objects too
        made += some
    return made


def _selected(
    left: Rows, right: Rows, left_codes: "Array", right_codes: "Array", count: int, *, shared: bool, keyed: bool
) -> tuple[list[Any] | Relation, Lazy]:
    """Return the left items whose number occurs on the right (``shared``), or does not occur there, with their evidence.

    Unless ``keyed``, equal items appear only once.
    """
    import numpy as np

    from .groups import Members

    there = np.zeros(count + 1, np.bool_)  # the last element is for items without a number
    there[right_codes[right_codes >= 0]] = True
    kept = np.flatnonzero(there[left_codes] == shared)
    if not keyed:
        kept = kept[np.sort(np.unique(left_codes[kept], return_index=True)[1])]
    codes = left_codes[kept] + 1
    of_left, of_right = Members(left_codes + 1, codes), Members(right_codes + 1, codes)

    def make(at: int) -> Pieces:
        own = [int(kept[at])] if keyed else of_left[at]
        others = of_right[at] if shared else ()

        def piece(member: int) -> Pieces:
            if member < len(own):
                return left.value.evidence_at(int(own[member]))
            return right.value.evidence_at(int(others[member - len(own)]))

        return united(Lazy(len(own) + len(others), piece))

    return left.taken(kept), derived(len(kept), make, [left.value, right.value] if shared else [left.value])


RUNNERS = {Join: run_join, SetOperation: run_set_operation}
