"""SELECT, UNNEST and RANK: commands on the items of one variable. The same input always gives the same output."""

from array import array
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

from attrs import evolve

from ....lang.evaluate.conditions import order_key
from ....lang.evaluate.conditions.values import current_tally, hold
from ....lang.printer.gasl_printer import format_condition
from ....lang.trees.conditions import Field
from ....lang.trees.conditions import Value as ValueNode
from ....lang.trees.gasl import NamedValue, Order, Rank, Select, Unnest
from ..column_cells import BLOCK, LARGE, blocks_of
from ..records import ExecutionResult, Session
from ..relation import ColumnRows, Relation, UnnestedRows
from .bindings import Rows, bound_command, fixed, in_thread, rows_of
from .caps import clock, cut_short
from .columns import (
    Column,
    array_column,
    column,
    column_blocks,
    fields_of,
    item_name,
    null_counts,
    positions_of,
    selected,
)
from .evidence import computed_piece, grouped, narrowed, picked, with_shared
from .mixed_values import count_kinds
from .suggestions import known_of_items, near


def computed_texts(columns: Sequence[NamedValue]) -> dict[str, str]:
    """Map each column that is not a plain field to the text of its value."""
    return {each.column: format_condition(each.value) for each in columns if not isinstance(each.value, Field)}


# SELECT: filter, projection, distinct rows and a sample.


@in_thread
def run_select(command: Select, session: Session) -> ExecutionResult:
    """Run SELECT: apply WHERE to the original items, then FIELDS, DISTINCT and SAMPLE, in this order.

    With FIELDS, each item becomes an object with exactly these columns. A field that an item lacks is null; a field that no item has
    is ``schema_mismatch``. DISTINCT keeps the first of several equal rows, with the evidence of all of them. SAMPLE chooses
    the same rows each time.
    """
    command = bound_command(command, session)
    rows = rows_of(command.source, session)
    indices: Sequence[int] = range(len(rows))
    message = hint = ""
    if command.where is not None:
        indices = selected(rows, command.where, session)
        if len(rows) and not len(indices):
            message = f"no item of {rows.name} satisfies the condition"
            hint = near(command.where, known_of_items(rows.held[:LARGE]))
    taken = Rows(rows.name, rows.value, rows.held if command.where is None else rows.taken(indices))
    items, summary = taken.held, {}
    if command.columns:
        columns = {each.column: column(taken, each.value, session) for each in command.columns} if len(taken) else {}
        summary = null_counts(columns.items())
        items = ColumnRows(
            {name: made.values for name, made in columns.items()}, len(taken)
        )  # large arrays stay arrays
    groups: Sequence[Sequence[int]] | None = None
    if command.distinct:
        from .groups import groups_of, groups_of_items  # imported late: it needs NumPy

        of_columns = command.columns and len(items)
        groups = groups_of(list(columns.values())).members if of_columns else groups_of_items(items)
        items = _at(items, [int(group[0]) for group in groups])
    if (size := fixed(command.sample)) is not None:
        chosen = sample_of(len(items), size)
        items = _at(items, chosen)
        groups = [[at] if groups is None else groups[at] for at in chosen]
    if command.distinct:
        from .groups import Through

        evidence: Any = grouped(rows.value, Through(indices, groups or ()))
    else:
        evidence = picked(rows.value, indices if groups is None else [int(indices[group[0]]) for group in groups])
    if texts := computed_texts(command.columns):
        evidence = with_shared(evidence, computed_piece(session.label, texts, len(taken)), [rows.value])
    if not len(rows):
        message = f"{rows.name} is empty"
    elif not len(items) and not message:
        message = "SAMPLE 0 keeps nothing"
    result = ExecutionResult.of_items(items, evidence, summary, used="scan", message=message, hint=hint)
    return result if command.columns else of_graph_items(result, rows)


def _at(items: list[Any] | Relation, positions: Sequence[int]) -> list[Any] | Relation:
    return items.take(positions) if isinstance(items, Relation) else [items[at] for at in positions]


def of_graph_items(result: ExecutionResult, *sources: Rows) -> ExecutionResult:
    """Return a result whose items are items of ``sources``: they are graph items if all sources have graph items of the same kind."""
    kinds = {rows.value.graph_items for rows in sources}
    if len(kinds) != 1 or result.value is None:
        return result
    return evolve(result, value=evolve(result.value, graph_items=kinds.pop()))


def sample_of(count: int, size: int) -> list[int]:
    """Return ``size`` positions out of ``count``, ascending. A hash chooses them, so that they are the same each time."""
    if size >= count:
        return list(range(count))
    if count <= LARGE:
        ranked = sorted(range(count), key=lambda at: (blake2b(at.to_bytes(8, "big"), digest_size=8).digest(), at))
        return sorted(ranked[:size])
    hold(_KEY * min(2 * size, count))
    best: list[tuple[bytes, int]] = []
    for block in blocks_of(count):
        places = range(block.start, block.stop)
        best += [(blake2b(at.to_bytes(8, "big"), digest_size=8).digest(), at) for at in places]
        if len(best) > 2 * size + BLOCK:
            best = sorted(best)[:size]
    return sorted(at for _, at in sorted(best)[:size])


# UNNEST


@in_thread
def run_unnest(command: Unnest, session: Session) -> ExecutionResult:
    """Run UNNEST: a row for each element of the list, with the other fields of the item.

    The element has the name of the list's field, or the given name. A value that is not a list counts as a list with one element;
    null and an empty list give no row. If the list is ``source_id``, the evidence of a row names only the row's source.
    """
    command = bound_command(command, session)
    rows = rows_of(command.source, session)
    name, value = command.by.column, command.by.value
    members = array("i")
    elements: list[Any] = []
    nulls: dict[str, int] = {}
    most, hit, is_over = session.caps.max_rows, "", clock(session)
    begun = 0
    for block, new in column_blocks(rows, value, session, nulls):
        before = len(elements)
        if is_over():
            hit = "timeout_s"
            break
        for index, found in enumerate(block, begun):
            own = found if isinstance(found, list | tuple) else () if found is None else (found,)
            if len(elements) + len(own) > most:
                own, hit = own[: most - len(elements)], "max_rows"
            members.extend([index] * len(own))
            elements.extend(own)
            if hit:
                break
        hold(12 * (len(elements) - before) + new)
        begun += len(block)
        if hit:
            break
    items = UnnestedRows(rows.objects, positions_of(members), elements, name)
    message = (
        "" if len(items) else f"every {name} of {rows.name} is null or empty" if len(rows) else f"{rows.name} is empty"
    )
    if {at.path for at in fields_of(value)} == {("source_id",)}:
        evidence = narrowed(rows.value, members, elements, session.chunks)
    else:
        evidence = picked(rows.value, members)
    summary: dict[str, Any] = {}
    if texts := computed_texts([command.by]):
        evidence = with_shared(evidence, computed_piece(session.label, texts, len(rows)), [rows.value])
        summary = null_counts([(name, Column(nulls=nulls))])
    result = ExecutionResult.of_items(items, evidence, summary, used="scan", message=message)
    result = cut_short(result, session, hit) if hit else result
    # The rows still have the node, edge or path, unless its own field was replaced.
    return result if name in ("id", "source", "target", "key") else of_graph_items(result, rows)


# RANK


@in_thread
def run_rank(command: Rank, session: Session) -> ExecutionResult:
    """Run RANK: sort the items by values. Equal items keep their order; items without the value are last in both directions.

    With PER, LIMIT keeps the first items of each group; the groups are in the order of their first items.
    """
    command = bound_command(command, session)
    rows = rows_of(command.source, session)
    limit = fixed(command.limit)
    order, summary = ranked(rows, command.by, session, None if command.per else limit)
    if limit is not None:
        order = first_of_groups(rows, order, limit, command.per, session)
    items = rows.taken(order)
    message = "" if len(items) else "LIMIT 0 keeps nothing" if len(rows) else f"{rows.name} is empty"
    result = ExecutionResult.of_items(items, picked(rows.value, order), summary, message=message)
    return of_graph_items(result, rows)


def ranked(
    rows: Rows, by: Sequence[Order], session: Session, most: int | None = None
) -> tuple[Sequence[int], dict[str, Any]]:
    """Return the positions of the items in the order of the values ``by``, and a summary of nulls; null is last in both directions.

    At least the first ``most`` positions are returned.
    """
    arrays = [array_column(rows, each.value) for each in by]
    if all(found is not None for found in arrays):
        from ....adapters.columns import CodeArray, ascending

        known = [(each, found) for each, found in zip(by, arrays, strict=True) if found is not None]
        for each, found in known:
            is_mixed = isinstance(found.array, CodeArray) and len(set(map(type, found.array.values))) > 1
            if is_mixed and isinstance(each.value, Field) and (tally := current_tally()) is not None:
                count_kinds(tally, each.value, found.values, lambda index: item_name(rows, index))
        keys = [
            (found.array.ranks(each.descending), each.descending) for each, found in known if found.array is not None
        ]
        nulls = null_counts((format_condition(each.value), found) for each, found in known)
        del arrays, known
        return ascending(_popped(keys), most), nulls  # type: ignore[return-value]  # an array of positions
    if len(rows) > LARGE:
        return _ranked_in_arrays(rows, by, session, most)
    order = list(range(len(rows)))
    tally = current_tally()
    columns: list[tuple[str, Column]] = []
    for each in reversed(by):  # sorting is stable, so sort by the last value first
        made = column(rows, each.value, session, lenient=True)
        columns.append((format_condition(each.value), made))
        values = made.values
        if tally is not None and isinstance(each.value, Field):
            count_kinds(tally, each.value, values, lambda index: item_name(rows, index))
        there = [index for index in order if values[index] is not None]
        there.sort(key=lambda index: order_key(values[index], each.descending), reverse=each.descending)
        order = there + [index for index in order if values[index] is None]
    return order, null_counts(reversed(columns))


def _ranked_in_arrays(
    rows: Rows, by: Sequence[Order], session: Session, most: int | None
) -> tuple[Sequence[int], dict[str, Any]]:
    """Return the same result as ``ranked``, but computed for many items from arrays with the rank of each value."""
    import numpy as np

    from ....adapters.columns import ascending

    keys, columns = [], list[tuple[str, Column]]()
    for each in by:
        made = column(rows, each.value, session, lenient=True)
        columns.append((format_condition(each.value), Column(nulls=made.nulls)))
        if made.array is not None:
            keys.append((made.array.ranks(each.descending), each.descending))
            continue
        if (tally := current_tally()) is not None and isinstance(each.value, Field):
            count_kinds(tally, each.value, made.values, lambda index: item_name(rows, index))
        known: dict[Any, int] = {}
        codes = np.empty(len(rows), np.int32)
        for at in blocks_of(len(rows)):
            before = len(known)
            codes[at] = [
                -1 if value is None else known.setdefault(order_key(value, each.descending), len(known))
                for value in made.values[at]
            ]
            hold(_KEY * (len(known) - before))
        places = np.empty(len(known) + 1)
        places[-1] = np.nan  # null
        for rank, key in enumerate(sorted(known)):
            places[known[key]] = rank
        keys.append((places[codes], each.descending))
        del made, codes
    return ascending(_popped(keys), most), null_counts(columns)  # type: ignore[return-value]  # an array of positions


def _popped(keys: list[Any]) -> Iterator[Any]:
    """Yield each key after removing it from the list, so that the key's array is freed as soon as it is no longer needed."""
    while keys:
        yield keys.pop(0)


_KEY = 200
"""Estimated number of bytes of a dictionary entry with its key."""


def first_of_groups(
    rows: Rows,
    order: Sequence[int],
    limit: int,
    per: Sequence[ValueNode],
    session: Session,
    *,
    of_graph: bool = False,
) -> Sequence[int]:
    """Return the first ``limit`` positions of ``order``; with ``per``, the first ``limit`` of each group, group by group.

    ``of_graph``: see ``column``.
    """
    if not per:
        return order[:limit]
    import numpy as np

    from .groups import first_rows, groups_of

    columns = [column(rows, value, session, of_graph=of_graph) for value in per]
    if not limit or not len(order):
        return []
    at = np.asarray(order)
    codes = groups_of(columns).codes[at]  # the group of each item
    # The groups in the order of their first items, and the items of each group in their order.
    first = first_rows(codes, int(codes.max()) + 1)
    places = np.argsort(first[codes], kind="stable")
    begun = first[codes[places]]
    starts = np.flatnonzero(np.diff(begun, prepend=-1))
    within = np.arange(len(places)) - np.repeat(starts, np.diff(np.append(starts, len(places))))
    return at[places[within < limit]]  # type: ignore[return-value]  # an array of positions


RUNNERS = {Select: run_select, Unnest: run_unnest, Rank: run_rank}
