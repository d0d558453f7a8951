"""JOIN, UNION, INTERSECT and EXCEPT: two variables made into one.

Values are the same as ``=`` has them (1 is 1.0, "1" is not 1); null is the same as nothing, not even null.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from ...lang.evaluate.conditions import identity
from ...lang.trees.gasl import JOINED_FIELDS, Join, Path, SetOperation, joined_names
from ..context import Value
from ..records import ExecutionResult
from ..session import Session
from .bindings import Refused, Rows, beside, rows_of
from .evidence import gathered
from .fields import column
from .finding import caps_message

__all__ = ["run_join", "run_set_operation"]

Members = list[tuple[Value, int]]


@beside
def run_join(command: Join, session: Session) -> ExecutionResult:
    """JOIN (inner): a row for every pair whose fields are the same, in the order of the left and then of the right.

    Every row has the same fields, null where an item lacks one: those of the left items, then those of the right ones under the
    names of ``lang.gasl.joined_names``; too many of them are refused. The evidence is that of both. More rows than
    ``max_results`` are cut: ``partial``.
    """
    left, right = rows_of(command.left, session), rows_of(command.right, session)
    left_keys, right_keys = _keys(left, command.left_field), _keys(right, command.right_field)
    own, others = _names(left), _names(right)
    renamed = joined_names(own, others, command)
    if renamed is None:
        raise Refused(
            "schema_mismatch",
            f"the rows would have more than {JOINED_FIELDS:,} fields: {left.name} has {len(own):,}, {right.name} has {len(others):,}",
            "keep the needed fields of each first: SELECT variable FIELDS field, field AS variable",
        )
    there: dict[Hashable, list[int]] = {}
    for index, key in enumerate(right_keys):
        if key is not None:
            there.setdefault(key, []).append(index)
    items: list[Any] = []
    members: list[Members] = []
    cut = False
    for at, key in enumerate(left_keys):
        for other in there.get(key, ()) if key is not None else ():
            if len(items) == session.caps.max_results:
                cut = True
                break
            items.append(_merged(left.items[at], right.items[other], own, renamed))
            members.append([(left.value, at), (right.value, other)])
        if cut:
            break
    caps_hit = ("max_results",) if cut else ()
    message, hint = caps_message(caps_hit, session.caps), ""
    if not items and not cut:
        message, hint = _nothing(command, left, right)
    return ExecutionResult(
        "partial" if cut else "success" if items else "empty", Value(items, gathered(members)), len(items),
        {"count": len(items)}, caps_hit=caps_hit, used="hash join", message=message, hint=hint,
    )  # fmt: skip


def _keys(rows: Rows, field: Path) -> list[Hashable | None]:
    return [None if value is None else identity(value) for value in column(rows, field)]


def _names(rows: Rows) -> dict[str, None]:
    """Return the fields of all items of a side, whether they are joined or not, in the order in which they are met."""
    names: dict[str, None] = {}
    for item in rows.items:
        if isinstance(item, dict):
            names.update(dict.fromkeys(item))
    return names


def _merged(
    left: dict[str, Any], right: dict[str, Any], own: Mapping[str, None], renamed: Mapping[str, str]
) -> dict[str, Any]:
    merged = dict(left)  # its own fields first: what stands first tells a node from an edge
    if len(merged) < len(own):
        for name in own:
            merged.setdefault(name, None)
    for name, into in renamed.items():
        merged[into] = right.get(name)
    return merged


def _nothing(command: Join, left: Rows, right: Rows) -> tuple[str, str]:
    for rows in (left, right):
        if not rows.items:
            return f"{rows.name} is empty", ""
    message = f"no {command.left_field.text} of {left.name} is a {command.right_field.text} of {right.name}"
    left_kinds, right_kinds = _kinds(left, command.left_field), _kinds(right, command.right_field)
    if left_kinds and right_kinds and not left_kinds & right_kinds:
        return message, f"they differ in type: {' and '.join(sorted(left_kinds))}, {' and '.join(sorted(right_kinds))}"
    return message, ""


def _kinds(rows: Rows, field: Path) -> set[str]:
    names = {str: "text", bool: "boolean", int: "number", float: "number", list: "list", dict: "object"}
    return {names.get(type(value), "other") for value in column(rows, field) if value is not None}


@beside
def run_set_operation(command: SetOperation, session: Session) -> ExecutionResult:
    """UNION, INTERSECT, EXCEPT. Without ON whole items are compared, and equal ones are kept once.

    ON a field: UNION keeps the first item of each value and every item without one; INTERSECT and EXCEPT keep every item of
    the left whose value is, or is not, among the right's. Items that stand for others bear the evidence of all of them.
    """
    left, right = rows_of(command.left, session), rows_of(command.right, session)
    right_field = command.right_field or command.left_field
    left_keys: Sequence[Hashable | None] = (
        _keys(left, command.left_field) if command.left_field else [_whole(item) for item in left.items]
    )
    right_keys: Sequence[Hashable | None] = (
        _keys(right, right_field) if right_field else [_whole(item) for item in right.items]
    )
    keyed = command.left_field is not None
    items, members = _OPERATIONS[command.kind](left, right, left_keys, right_keys, keyed)
    return ExecutionResult(
        "success" if items else "empty",
        Value(items, gathered(members)),
        len(items),
        {"count": len(items)},
        used="hash",
        message="" if items else f"{left.name} {command.kind} {right.name} has no items",
    )


def _whole(item: Any) -> Hashable:
    return ("item", identity(item))


Sides = Callable[[Rows, Rows, Sequence[Any], Sequence[Any], bool], tuple[list[Any], list[Members]]]


def _union(left: Rows, right: Rows, left_keys: Sequence[Any], right_keys: Sequence[Any], keyed: bool) -> Any:
    items: list[Any] = []
    members: list[Members] = []
    at: dict[Hashable, int] = {}
    for rows, keys in ((left, left_keys), (right, right_keys)):
        for index, key in enumerate(keys):
            if key is not None and key in at:
                members[at[key]].append((rows.value, index))
                continue
            if key is not None:
                at[key] = len(items)
            items.append(rows.items[index])
            members.append([(rows.value, index)])
    return items, members


def _intersect(left: Rows, right: Rows, left_keys: Sequence[Any], right_keys: Sequence[Any], keyed: bool) -> Any:
    there: dict[Hashable, list[int]] = {}
    for index, key in enumerate(right_keys):
        if key is not None:
            there.setdefault(key, []).append(index)
    kept, members = _kept(left, left_keys, keyed, lambda key: key is not None and key in there)
    for member, key in zip(members, (left_keys[index] for index in kept), strict=True):
        member += [(right.value, index) for index in there[key]]
    return [left.items[index] for index in kept], members


def _except(left: Rows, right: Rows, left_keys: Sequence[Any], right_keys: Sequence[Any], keyed: bool) -> Any:
    there = {key for key in right_keys if key is not None}
    kept, members = _kept(left, left_keys, keyed, lambda key: key is None or key not in there)
    return [left.items[index] for index in kept], members


def _kept(
    left: Rows, keys: Sequence[Any], keyed: bool, wanted: Callable[[Any], bool]
) -> tuple[list[int], list[Members]]:
    """Return the indices that stay and what each stands for; whole items that are equal stay once."""
    kept: list[int] = []
    members: list[Members] = []
    at: dict[Hashable, int] = {}
    for index, key in enumerate(keys):
        if not wanted(key):
            continue
        if not keyed and key in at:
            members[at[key]].append((left.value, index))
            continue
        at[key] = len(kept)
        kept.append(index)
        members.append([(left.value, index)])
    return kept, members


_OPERATIONS: dict[str, Sides] = {"UNION": _union, "INTERSECT": _intersect, "EXCEPT": _except}
