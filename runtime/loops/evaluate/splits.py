"""Splits labelled items by group into the parts for training, for selection (dev) and for the test. A group is never in two parts."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen

from .gold import Gold, GoldError, GoldItem
from .metrics import label_order

SHARES: Mapping[str, float] = {"train": 0.4, "dev": 0.3, "test": 0.3}
FEWEST_ITEMS = 60
"""Minimum number of labelled items."""
FEWEST_OF_A_CLASS = 15
"""Minimum number of labelled items of each class that occurs."""
_DRAWS = 64
"""Number of random splits; the split whose sizes and classes are closest to ``SHARES`` is used."""


@frozen
class Split:
    """The items of each part, in the order of the gold table."""

    train: tuple[GoldItem, ...]
    dev: tuple[GoldItem, ...]
    test: tuple[GoldItem, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the number of items and groups of each part."""
        parts = {"train": self.train, "dev": self.dev, "test": self.test}
        return {
            name: {"items": len(items), "groups": len({each.group for each in items})} for name, items in parts.items()
        }


def refuse_small(gold: Gold, columns: Sequence[str]) -> list[str]:
    """Raise ``GoldError`` if there are too few labelled items; the message says how many to add.

    Return notes about the values that no item is labelled with.
    """
    items = labelled_items(gold, columns)
    faults, notes = [], []
    if len(items) < FEWEST_ITEMS:
        more = FEWEST_ITEMS - len(items)
        faults.append(
            f"{FEWEST_ITEMS} labelled items are needed to tune a seed; {gold.name} has {len(items)}: label {more} more"
        )
    for column in columns:
        expected = gold.columns[column]
        if expected.kind not in ("label", "flag"):
            continue
        counts = Counter(item.labels[column] for item in items if column in item.labels)
        few = [
            (label, count)
            for label, count in sorted(counts.items(), key=lambda each: label_order(each[0]))
            if count < FEWEST_OF_A_CLASS
        ]
        if few:
            told = ", ".join(
                f"{_shown(label)} has {count} (label {FEWEST_OF_A_CLASS - count} more)" for label, count in few
            )
            faults.append(
                f"{FEWEST_OF_A_CLASS} labelled items of each class of {column} are needed to tune a seed; {told}"
            )
        if missing := [label for label in expected.labels if label not in counts]:
            notes.append(f"no item of {column} is labelled {', '.join(missing[:8])}: nothing is tuned or tested for it")
    if not faults and len({item.group for item in items}) < len(SHARES):
        faults.append(f"{gold.name} has fewer than {len(SHARES)} groups, so the items can't be split by group")
    if faults:
        raise GoldError(faults, "more labels: knotwork label SEED DATA -o gold.csv")
    return notes


def _shown(label: Any) -> str:
    return str(label).lower() if isinstance(label, bool) else str(label)


def labelled_items(gold: Gold, columns: Iterable[str]) -> list[GoldItem]:
    """Return the items with a label in one of ``columns``."""
    wanted = set(columns)
    return [item for item in gold.items if wanted.intersection(item.labels)]


def split_items(gold: Gold, columns: Sequence[str], seed: int = 0) -> Split:
    """Return the labelled items in three parts: 40 % train, 30 % dev, 30 % test, as near as whole groups allow.

    ``seed`` determines 64 random splits. The split whose sizes and classes are closest to these shares is returned.
    """
    items = labelled_items(gold, columns)
    numbers: dict[str, int] = {}
    group = np.array([numbers.setdefault(item.group, len(numbers)) for item in items], dtype=np.int64)
    classes = _classes(gold, columns, items)
    sizes = np.zeros((len(numbers), classes.shape[1]))
    np.add.at(sizes, group, classes)
    generator = np.random.default_rng(seed)
    best, least = np.zeros(len(numbers), dtype=np.int64), np.inf
    totals, shares = sizes.sum(axis=0), np.array(list(SHARES.values()))
    for _ in range(_DRAWS):
        order = generator.permutation(len(numbers))
        middle = np.cumsum(sizes[order, 0]) - sizes[order, 0] / 2
        part = np.empty(len(numbers), dtype=np.int64)
        part[order] = np.searchsorted(np.cumsum(shares)[:-1] * totals[0], middle, side="right")
        parts = np.zeros((len(SHARES), sizes.shape[1]))
        np.add.at(parts, part, sizes)
        if (parts[:, 0] == 0).any():
            continue
        uneven = float(np.abs(parts / np.maximum(totals, 1) - shares[:, None]).sum(axis=0)[totals > 0].max())
        if uneven < least:
            best, least = part, uneven
    if not np.isfinite(least):
        raise GoldError(
            ["the items can't be split by group: a group has nearly all of them"], "label items of more contexts"
        )
    chosen = best[group]
    train, dev, test = (
        tuple(item for item, own in zip(items, chosen, strict=True) if own == number) for number in range(3)
    )
    return Split(train, dev, test)


def _classes(gold: Gold, columns: Sequence[str], items: Sequence[GoldItem]) -> Any:
    """Return a row for each item: a 1, followed by a number for each class, 1 if the item has this label and otherwise 0."""
    places: dict[tuple[str, Any], int] = {}
    for column in columns:
        if gold.columns[column].kind in ("label", "flag"):
            for item in items:
                if column in item.labels:
                    places.setdefault((column, item.labels[column]), len(places) + 1)
    rows = np.zeros((len(items), len(places) + 1))
    rows[:, 0] = 1
    for number, item in enumerate(items):
        for column, label in item.labels.items():
            if not isinstance(label, list) and (place := places.get((column, label))) is not None:
                rows[number, place] = 1
    return rows
