"""What GASL's commands on the items of variables mean, said once more and plainly. No module of the project is used.

A command is a dictionary, as ``random_programs`` makes it; values and conditions are those of ``value_oracle``.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from support import gasl_oracle as oracle
from support.gasl_oracle import Mismatch, Read
from support.value_oracle import MISSING, fields_in, holds, kept, stored, value_of

__all__ = ["Rows", "field_of", "ordered", "row_command"]


class Rows:
    """Items, and how computed fields of an item are read: a function of the item and a path, which may give ``MISSING``.

    A field exists if an item of ``every`` stores it; these are the items unless a search has all items of a graph. ``may`` are fields
    that the items may have, because others of their kind have them.
    """

    def __init__(
        self,
        items: list[Any],
        computed: Callable[[Any, list[str]], Any] | None = None,
        kind: str = "",
        every: list[Any] | None = None,
        may: list[str] | None = None,
    ) -> None:
        self.items = items
        self.may = may or []
        self.computed = computed
        self.kind = kind
        self.every = items if every is None else every

    def among(self, items: list[Any]) -> "Rows":
        return Rows(items, self.computed, self.kind, may=self.may)


def field_of(rows: Rows, item: Any, path: str) -> Any:
    """A stored field; a computed one if no item stores it."""
    parts = path.split(".")
    if all(stored(each, parts) is MISSING for each in rows.every) and rows.computed is not None:
        found = rows.computed(item, parts)
    else:
        found = stored(item, parts)
    return None if found is MISSING or found != found else found


def exists(rows: Rows, path: str) -> bool:
    parts = path.split(".")
    if not rows.items or any(stored(item, parts) is not MISSING for item in rows.every):
        return True
    return rows.computed is not None and any(rows.computed(item, parts) is not MISSING for item in rows.items)


def reader(rows: Rows, value: Any, *, lenient: bool = False) -> Read:
    """How a value of an item is read. Raises ``Mismatch`` if no item has a field, or if a value that is kept can't be computed."""
    if not all(exists(rows, path) for path in fields_in(value)):
        raise Mismatch
    found = {}
    for item in rows.items:
        made = value_of(value, lambda path: field_of(rows, item, path), lenient=lenient)  # noqa: B023
        found[id(item)] = made if value[0] == "field" or lenient else kept(made)
    return lambda item: found[id(item)]


def name_of(column: tuple[Any, str | None]) -> str:
    value, name = column
    return name if name is not None else value[1]


def ordered(rows: Rows, by: list[tuple[Any, bool]], limit: int | None, per: list[Any]) -> list[Any]:
    """The items by an order, and the first ones of each group."""
    orders = [(reader(rows, value, lenient=True), descending) for value, descending in by]
    return oracle.rank(rows.items, orders, limit, [reader(rows, value) for value in per] if limit is not None else ())


def select(command: Any, rows: Rows) -> Rows:
    where = command.get("where")
    chosen = [
        item
        for item in rows.items
        if where is None or holds(where, lambda path: field_of(rows, item, path)) is True  # noqa: B023
    ]
    result = rows.among(chosen)
    columns = [(name_of(each), reader(result, each[0])) for each in command.get("fields") or []]
    items = oracle.select(chosen, columns, distinct=command.get("distinct", False))
    result = Rows(items) if columns else rows.among(items)
    if (size := command.get("sample")) is not None:
        every = range(len(items))
        hashed = sorted(every, key=lambda at: blake2b(at.to_bytes(8, "big"), digest_size=8).digest())
        result = result.among([items[at] for at in sorted(hashed[:size])])
    return result


def group_columns(by: list[Any], made: list[str], rows: Rows) -> list[tuple[str, Read]]:
    """The columns of groups; a name that is taken gets the prefix ``by.``."""
    columns: dict[str, Read] = {}
    for each in by:
        name = name_of(each)
        while name in made or name in columns:
            name = f"by.{name}"
        columns[name] = reader(rows, each[0])
    return list(columns.items())


def aggregate(command: Any, rows: Rows) -> Rows:
    made = [
        (each["name"], each["function"], None if each["value"] is None else reader(rows, each["value"]), each["distinct"], each["share"])
        for each in command["compute"]
    ]  # fmt: skip
    by = group_columns(command.get("by") or [], [each["name"] for each in command["compute"]], rows)
    return Rows(oracle.aggregate(rows.items, by, made))


def names_of(rows: Rows) -> list[str]:
    return list(dict.fromkeys(name for item in rows.items for name in item))


def names_right_of(left: Rows, right: Rows, once: list[str]) -> dict[str, str]:
    """The names of the right side's fields, which depend on all fields that both sides may have."""
    named = right_names([*left.may, *names_of(left)], list(dict.fromkeys([*right.may, *names_of(right)])), once)
    return {name: named[name] for name in names_of(right) if name in named}


def right_names(left: list[str], right: list[str], once: list[str]) -> dict[str, str]:
    """The name of each field of the right side: ``right.`` in front of a name that the left side has, and again while it is taken."""
    names: dict[str, str] = {}
    for name in sorted(right, key=len):
        if name in once and name in left:
            continue
        new = name
        while name in left and (new == name or new in left or new in right or new in names.values()):
            new = f"right.{new}"
        names[name] = new
    return {name: names[name] for name in right if name in names}


def merged(one: Any, other: Any, left_names: list[str], renamed: dict[str, str]) -> dict[str, Any]:
    row = {name: one.get(name) for name in left_names}
    return row | {new: (other or {}).get(name) for name, new in renamed.items()}


def key_readers(pairs: list[Any], left: Rows, right: Rows) -> list[tuple[Read, Read]]:
    return [(reader(left, one, lenient=True), reader(right, other, lenient=True)) for one, other in pairs]


def join(command: Any, left: Rows, right: Rows) -> Rows:
    """Every pair of items with equal values; null, and what can't be computed, equals nothing."""
    left_names, nested = names_of(left), command.get("name")
    once = [one[1] for one, other in command["on"] if one[0] == "field" and one == other]
    pairs = key_readers(command["on"], left, right)
    if nested is not None and nested in left_names:
        raise Mismatch
    renamed = {} if nested is not None else names_right_of(left, right, once)
    items = []
    for item in left.items:
        matches = [other for other in right.items if joins(item, other, pairs)]
        for other in matches or ([None] if command.get("outer") else []):
            row = merged(item, other, left_names, renamed)
            items.append(row if nested is None else {**row, nested: other})
    named = right_names([*left.may, *left_names], list(dict.fromkeys([*right.may, *names_of(right)])), once)
    may = [nested] if nested is not None else list(named.values())
    return Rows(items, may=[*left.may, *may])


def joins(one: Any, other: Any, pairs: list[tuple[Read, Read]]) -> bool:
    keys = [(oracle.key(left(one)), oracle.key(right(other))) for left, right in pairs]
    return all(first is not None and first == second for first, second in keys)


def similar(command: Any, left: Rows, right: Rows) -> Rows:
    """Pairs of similar texts, best first; a variable with itself gives each pair once."""
    (one, other), least = command["on"][0], command["similar"]
    ((first, second),) = key_readers(command["on"], left, right)
    itself = command["left"] == command["right"] and one == other
    renamed = names_right_of(left, right, [])
    if "similarity" in [*names_of(left), *renamed.values()]:
        raise Mismatch
    lefts, rights = list(map(first, left.items)), list(map(second, right.items))
    items = []
    for likeness, at, place in oracle.similar(lefts, None if itself else rights, least):
        row = merged(left.items[at], right.items[place], names_of(left), renamed)
        items.append({**row, "similarity": likeness})
    return Rows(items)


def combined(command: Any, left: Rows, right: Rows) -> Rows:
    pairs = key_readers(command.get("on") or [], left, right)
    items = oracle.combine(command["do"].upper(), left.items, right.items, pairs)
    return left.among(items) if left.kind == right.kind or command["do"] != "union" else Rows(items)


def row_command(command: Any, known: dict[str, Rows]) -> Rows | int:
    """The result of a command on rows. Raises ``Mismatch``."""
    rows = known[command["from" if "from" in command else "left"]]
    match command["do"]:
        case "select":
            return select(command, rows)
        case "unnest":
            name = name_of(command["by"])
            items = oracle.unnest(rows.items, name, reader(rows, command["by"][0]))
            # The rows still have the node, edge or path, unless its own field was replaced.
            return Rows(items) if name in ("id", "source", "target", "key") else rows.among(items)
        case "count" if not command.get("by"):
            return len(rows.items)
        case "count":
            return Rows(oracle.count(rows.items, group_columns(command["by"], ["count"], rows)))
        case "aggregate":
            return aggregate(command, rows)
        case "rank":
            return rows.among(ordered(rows, command["by"], command.get("limit"), command.get("per") or []))
        case "join":
            run = join if command.get("similar") is None else similar
            return run(command, rows, known[command["right"]])
    return combined(command, rows, known[command["right"]])
