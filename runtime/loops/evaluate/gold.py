"""Reads a gold table: the labelled items that an evaluation scores. See ``docs/reference/eval.md#gold``.

Gold columns are those on which the target can be scored; key columns say which item a row labels. An empty cell is not a label.
All faults of a table are reported together, before any call.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from attrs import define, evolve, field, frozen
from blake3 import blake3

from ....lang.diagnostic import nearest, suggestion
from ....lang.errors import KnotworkError
from ....lang.evaluate.conditions import identity
from ....lang.unicode_forms import canonical, caseless
from ...answers.evaluation import read_check
from ...excerpts import clipped

Kind = Literal["label", "flag", "number", "text", "set", "ranking", "check", "score", "accept"]
"""How a column is scored: a label, true or false, a number, a text, a set of values, a ranking, a check that the answer must pass, and a
person's score (0 to 1) or acceptance of an answer, with which a judge is compared."""

ANNOTATOR, PICKED, RANDOM, MOST_FAULTS = "annotator", "picked", "random", 20
BESIDE = (ANNOTATOR, "note", PICKED, "shown", "status")
"""Columns that are neither gold nor a key: who labelled, a note, why the item was picked, whether the model's answer was visible, and
whether the item is labelled or skipped."""
_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")


class GoldError(KnotworkError, ValueError):
    """Raised if a gold table can't be used. ``faults`` are all faults, one sentence each; ``message`` is the first of them."""

    def __init__(self, faults: Sequence[str], hint: str = "") -> None:
        super().__init__(faults[0], hint=hint)
        self.faults = tuple(faults)

    def __str__(self) -> str:
        return "\n".join(self.faults)


@frozen
class Expected:
    """A column that a target can be scored on.

    ``labels`` are the allowed labels in order (empty: any label). If ``ordered`` is true, the order of the labels has a
    meaning, and near misses count less in kappa. If ``whole`` is true, numbers must be whole. ``members`` checks the elements
    of a set or a ranking and returns them in the form in which they are compared; it raises ``ValueError`` with the reason if
    an element is invalid. None allows any element.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...] = ()
    ordered: bool = False
    whole: bool = False
    members: Callable[[list[Any]], list[Any]] | None = None


@frozen
class GoldItem:
    """A labelled item. ``keys`` maps key columns to values; ``labels`` maps gold columns to values, without unlabelled columns.

    ``place`` is the position of the item in the data of the target, from its ``Binding``. ``group`` names the group of the
    item: items of one group depend on each other, such as the reviews of one context. ``row`` is the number of the item's first
    row; the first row below the header is 1.
    """

    number: int
    keys: Mapping[str, Any]
    labels: Mapping[str, Any]
    place: Any
    group: str
    row: int


@frozen
class Binding:
    """The place of an item in the data, and its group. ``fault`` says why the key is unknown ("" if it is known)."""

    place: Any = None
    group: str = ""
    fault: str = ""


@frozen
class Gold:
    """The labelled items of a table.

    ``columns`` are the gold columns; ``unused`` are the columns that are not read. ``ties`` maps a column to the number of
    items that are left out because equally many annotators gave different labels. ``votes`` maps a column to a list with a
    mapping for each item, from annotators to their labels. ``hash`` identifies the keys and labels; the order of the items does
    not affect it.
    """

    name: str
    items: tuple[GoldItem, ...]
    columns: Mapping[str, Expected]
    unused: tuple[str, ...] = ()
    annotators: tuple[str, ...] = ()
    ties: Mapping[str, int] = field(factory=dict)
    votes: Mapping[str, tuple[Mapping[str, Any], ...]] = field(factory=dict, repr=False)
    hash: str = ""
    left_out: int = 0
    """Number of labelled rows that are left out because their review was not picked at random."""
    repeated: int = 0
    """Number of labels that an earlier row gives too. Each item is scored once."""
    respelled: Mapping[str, int] = field(factory=dict)
    """Maps a column to the number of its labels in another letter case or Unicode form than the label that they mean."""

    @property
    def groups(self) -> int:
        """Number of groups."""
        return len({item.group for item in self.items})

    def labelled(self, column: str) -> list[GoldItem]:
        """Return the items with a label in ``column``."""
        return [item for item in self.items if column in item.labels]


@define
class _Row:
    """The rows of one item so far: its key, its place, and its label for each column and annotator."""

    keys: Mapping[str, Any]
    binding: Binding
    row: int
    labels: dict[str, dict[str, Any]] = field(factory=dict)


def read_gold(
    columns: Sequence[str], rows: Iterable[Mapping[str, Any]], expected: Mapping[str, Expected], keys: Sequence[str],
    bind: Callable[[Mapping[str, Any]], Binding], *, name: str = "the gold table", what: str = "the target",
) -> Gold:  # fmt: skip
    """Return the labelled items of a table.

    ``expected`` are the columns that can be scored, ``keys`` are the columns of the table that identify an item. ``bind`` takes
    the keys of an item and returns its place. ``what`` names the target in messages. The column ``picked`` says why a review
    was picked. Reviews picked for a disagreement or for low confidence would bias the scores; if some reviews were picked at
    random, only those are used. Raises ``GoldError``.
    """
    gold = {each: expected[each] for each in columns if each in expected}
    if not gold:
        raise GoldError(
            [f"{name} has no column that {what} can be scored on; its columns are {', '.join(columns)}"],
            f"name a column {' or '.join(list(expected)[:8])}" if expected else "",
        )
    used = [each for each in columns if each in keys]
    if not used:
        wanted = " and ".join(keys[:2]) if len(keys) <= 3 else ", ".join(keys)
        raise GoldError([f"{name} has no key column"], f"{what} needs {wanted}")
    faults: list[str] = []
    read: dict[str, _Row] = {}
    seen_by: dict[str, None] = {}
    listed = list(rows)
    chosen = [str(row.get(PICKED) or RANDOM) != RANDOM for row in listed] if PICKED in columns else []
    only_random, left_out, repeated = any(chosen) and not all(chosen), 0, 0
    respelled: Counter[str] = Counter()
    for number, row in enumerate(listed, 1):
        key = {each: value for each in used if (value := row.get(each)) is not None and value != ""}
        values = _labels(row, gold, number, faults, respelled)
        if not values:
            continue
        if only_random and chosen[number - 1]:
            left_out += 1
            continue
        same_key = canonical(json.dumps(key, sort_keys=True, default=str, ensure_ascii=False))
        found = read.get(same_key)
        if found is None:
            binding = bind(key)
            if binding.fault:
                faults.append(f"row {number:,}: {binding.fault}")
            found = read[same_key] = _Row(key, binding, number)
        by = str(row.get(ANNOTATOR) or "") if ANNOTATOR in columns else ""
        seen_by[by] = None
        for column, value in values.items():
            said = found.labels.setdefault(column, {})
            if by in said and _equal(said[by], value, gold[column].kind):
                repeated += 1
            elif by in said:
                shown = " by the same annotator" if by else ""
                faults.append(
                    f"row {number:,}: {shown_key(key)} has the {column} {_short(said[by])} in row {found.row:,} and {_short(value)} "
                    f"here{shown}; a column named annotator allows several labels"
                )
            said.setdefault(by, value)
    if faults:
        more = len(faults) - MOST_FAULTS
        told = [f"{name}, {each}" for each in faults[:MOST_FAULTS]]
        raise GoldError([*told, *([f"and {more:,} more faults"] if more > 0 else [])])
    if not read:
        raise GoldError([f"{name} has no labels: every cell of {', '.join(gold)} is empty"])
    unused = tuple(each for each in columns if each not in gold and each not in used and each not in BESIDE)
    settled = _settled(name, read.values(), gold, unused, tuple(each for each in seen_by if each))
    return evolve(settled, left_out=left_out, repeated=repeated, respelled=dict(respelled))


def _settled(
    name: str, rows: Iterable[_Row], gold: Mapping[str, Expected], unused: tuple[str, ...], annotators: tuple[str, ...]
) -> Gold:
    """Return the gold table; each item has the label that most of its annotators gave."""
    ties: Counter[str] = Counter()
    votes: dict[str, list[Mapping[str, Any]]] = {column: [] for column in gold}
    items: list[GoldItem] = []
    hashed: list[str] = []
    for row in rows:
        labels: dict[str, Any] = {}
        for column, said in row.labels.items():
            votes[column].append(said)
            value, is_tie = _majority(list(said.values()))
            if is_tie:
                ties[column] += 1
            else:
                labels[column] = value
        if not labels:
            continue
        group = row.binding.group or shown_key(row.keys)
        items.append(GoldItem(len(items), row.keys, labels, row.binding.place, group, row.row))
        hashed.append(json.dumps([row.keys, labels], sort_keys=True, default=str))
    if not items:
        raise GoldError([f"{name} has no item that a majority of the annotators gives one label"])
    digest = blake3("\n".join(sorted(hashed)).encode("utf-8", "replace")).hexdigest(length=16)
    listed = {column: tuple(each) for column, each in votes.items()}
    return Gold(name, tuple(items), gold, unused, annotators, dict(ties), listed, digest)


def _majority(values: Sequence[Any]) -> tuple[Any, bool]:
    """Return the most frequent value, and whether several values are equally frequent."""
    counts = Counter(json.dumps(value, sort_keys=True, default=str) for value in values)
    most = counts.most_common(2)
    if len(most) == 2 and most[0][1] == most[1][1]:
        return None, True
    return next(value for value in values if json.dumps(value, sort_keys=True, default=str) == most[0][0]), False


def _labels(
    row: Mapping[str, Any], gold: Mapping[str, Expected], number: int, faults: list[str], respelled: Counter[str]
) -> dict[str, Any]:
    found = {}
    for column, expected in gold.items():
        raw = row.get(column)
        if raw is None or (isinstance(raw, str) and not raw.strip()) or (isinstance(raw, float) and math.isnan(raw)):
            continue
        try:
            found[column] = read_label(raw, expected)
            if expected.kind == "label" and isinstance(raw, str) and raw.strip() != found[column]:
                respelled[column] += 1
        except ValueError as error:
            faults.append(f"row {number:,}: {column} is {_short(raw)}; {error}")
    return found


def read_label(raw: Any, expected: Expected) -> Any:
    """Convert a cell to the type of its column. Raises ``ValueError`` with the reason."""
    match expected.kind:
        case "label":
            text = raw.strip() if isinstance(raw, str) else raw
            text = str(text).lower() if isinstance(text, bool) else str(text)
            if expected.labels and (known := label_of(text, expected.labels)) is not None:
                return known
            if expected.labels:
                near = nearest(text, expected.labels)
                raise ValueError(
                    f"did you mean {near}?" if near else f"the labels are {', '.join(expected.labels[:20])}"
                )
            return text
        case "flag" | "accept":
            text = str(raw).strip().lower()
            if text not in (*_TRUE, *_FALSE):
                raise ValueError("it is neither true nor false")
            return text in _TRUE
        case "number" | "score":
            return _number(raw, expected)
        case "check":
            return read_check(str(raw)).name
        case "text":
            return raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False, default=str)
    members = _listed(raw)
    return expected.members(members) if expected.members is not None else members


def _number(raw: Any, expected: Expected) -> float:
    try:
        value = float(raw)
    except (TypeError, ValueError):
        raise ValueError("it is not a number") from None
    if isinstance(raw, bool) or not math.isfinite(value):
        raise ValueError("it is not a finite number")
    if expected.whole and value != int(value):
        raise ValueError("it is not a whole number")
    if expected.kind == "score" and not 0 <= value <= 1:
        raise ValueError("it is not a number from 0 to 1")
    return int(value) if expected.whole else value


def _listed(raw: Any) -> list[Any]:
    """Return a list: a JSON list, or the parts of a text between semicolons."""
    if isinstance(raw, list | tuple):
        return list(raw)
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return [raw]
    text = str(raw).strip()
    if text.startswith("["):
        try:
            value = json.loads(text)
        except ValueError as error:
            raise ValueError(f"it is not a JSON list: {error}") from None
        if isinstance(value, list):
            return value
    return [part.strip() for part in text.split(";") if part.strip()]


def label_of(text: str, labels: Sequence[str]) -> str | None:
    """Return the label that ``text`` means: the same label or, if only one label fits, the label in another case or Unicode form."""
    if text in labels:
        return text
    wanted = caseless(text)
    found = [label for label in labels if caseless(label) == wanted]
    return found[0] if len(found) == 1 else None


def _equal(one: Any, other: Any, kind: Kind) -> bool:
    """Return whether two labels of a column are equal. The order of a set does not matter."""
    if kind == "set":
        return set(map(identity, one)) == set(map(identity, other))
    return type(one) is type(other) and identity(one) == identity(other)


def shown_key(keys: Mapping[str, Any]) -> str:
    """Return the key of an item as short text: its values, separated by ``/``."""
    return " / ".join(
        clipped(value if isinstance(value, str) else json.dumps(value, default=str), 60) for value in keys.values()
    )


def _short(value: Any) -> str:
    return clipped(json.dumps(value, ensure_ascii=False, default=str), 60)


def unknown(noun: str, name: Any, known: Iterable[Any]) -> str:
    """Return the fault of an unknown key, with the most similar known key."""
    listed = [str(each) for each in known]
    hint = suggestion(str(name), listed, 5)
    return f"unknown {noun} {_short(name)}{f'; {hint}' if hint else ''}"
