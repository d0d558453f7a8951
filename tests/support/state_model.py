"""A state as plain dictionaries and lists, copied whole for every change: what the store must agree with."""

import json
from copy import deepcopy
from typing import Any

from attrs import define, field
from knotwork.adapters.state import Change, DeclareKey, ReplaceWith, ResetKey

Data = dict[str, Any]


class Refused(Exception):
    """The model refuses a change; ``status`` is the command's."""

    def __init__(self, status: str) -> None:
        super().__init__(status)
        self.status = status


def text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def contains(item: Any, value: Any) -> bool:
    """Whether ``value`` says nothing that ``item`` doesn't: it is equal, or has the same id and nothing else than ``item`` has."""
    if text(item) == text(value):
        return True
    if not (isinstance(item, dict) and isinstance(value, dict)) or value.get("id") is None:
        return False
    return all(name in item and text(item[name]) == text(part) for name, part in value.items())


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def add(one: Any, other: Any) -> Any:
    total = one + other
    if isinstance(total, int) and not -(2**63) <= total < 2**63:
        raise Refused("schema_mismatch")
    return total


def unite(had: list[Any], new: Any) -> list[Any]:
    for piece in new:
        if text(piece) not in map(text, had):
            had.append(piece)
    return had


def deep(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return old | {name: deep(old[name], part) if name in old else part for name, part in new.items()}
    return new


def rows(table: list[Any]) -> Any:
    counts: dict[str, Any] = {}
    for row in table:
        labels = [name for name in row if name != "count"] if isinstance(row, dict) else []
        if len(labels) != 1 or labels[0] not in table[0] or len(row) != 2 or not is_number(row["count"]):
            raise Refused("schema_mismatch")
        label = row[labels[0]]
        if isinstance(label, list | dict):
            raise Refused("schema_mismatch")
        name = label if isinstance(label, str) else text(label)
        counts[name] = add(counts.get(name, 0), row["count"])
    return counts


@define
class Model:
    """``keys`` maps every declared key to ``{"type", "description", "data", "proof"}``."""

    keys: dict[str, Data] = field(factory=dict)

    def copy(self) -> "Model":
        return Model(deepcopy(self.keys))

    def apply(self, change: Change) -> None:
        """Make the change, or raise ``Refused`` with nothing changed."""
        before = deepcopy(self.keys)
        try:
            self._apply(deepcopy(change))
        except Refused:
            self.keys = before
            raise

    def _apply(self, change: Change) -> None:
        if isinstance(change, DeclareKey):
            return self._declare(change)
        if change.key not in self.keys:
            raise Refused("binding_failure")
        if isinstance(change, ResetKey):
            return self._reset(change.key)
        self._take(change.key, change.value, change.evidence, isinstance(change, ReplaceWith))
        self._mark(change.key, change.value, change.incomplete, isinstance(change, ReplaceWith))

    def _declare(self, change: DeclareKey) -> None:
        if change.key in self.keys:
            if self.keys[change.key]["type"] != change.type:
                raise Refused("schema_mismatch")
            return
        above, _, name = change.key.rpartition(".")
        if {"_meta", "items", "value"} & set(change.key.split(".")):
            raise Refused("schema_mismatch")
        if above:
            if above not in self.keys:
                raise Refused("binding_failure")
            if self.keys[above]["type"] != "DICT" or name in self.keys[above]["data"]:
                raise Refused("schema_mismatch")
        self.keys[change.key] = {"type": change.type, "description": change.description}
        self._reset(change.key)

    def children(self, key: str) -> list[str]:
        return [other for other in self.keys if other.rpartition(".")[0] == key]

    def _reset(self, key: str) -> None:
        held = self.keys[key]
        held["incomplete"] = []
        held["data"] = {"LIST": [], "DICT": {}, "COUNTER": 0}[held["type"]]
        held["proof"] = {"LIST": [], "DICT": {}, "COUNTER": []}[held["type"]]
        for child in self.children(key):
            self._reset(child)

    def _mark(self, key: str, value: Any, reasons: Any, replace: bool) -> None:
        held = self.keys[key]
        held["incomplete"] = list(dict.fromkeys([*([] if replace else held["incomplete"]), *reasons]))
        if held["type"] == "DICT" and (reasons or replace):
            for child in self.children(key):
                if (name := child.rpartition(".")[2]) in value:
                    self._mark(child, value[name], reasons, replace)

    def _take(self, key: str, value: Any, evidence: Any, replace: bool) -> None:
        kind = self.keys[key]["type"]
        {"LIST": self._list, "DICT": self._dict, "COUNTER": self._counter}[kind](key, value, evidence, replace)

    def _list(self, key: str, value: Any, evidence: Any, replace: bool) -> None:
        if value is None:
            raise Refused("schema_mismatch")
        held = self.keys[key]
        items = value if isinstance(value, list) else [value]
        if replace:
            held["data"] = items
            held["proof"] = [unite([], evidence[at]) if at < len(evidence) else [] for at in range(len(items))]
            return
        for at, item in enumerate(items):
            known = next((place for place, other in enumerate(held["data"]) if contains(other, item)), None)
            if known is None:
                known = len(held["data"])
                held["data"].append(item)
                held["proof"].append([])
            if at < len(evidence):
                unite(held["proof"][known], evidence[at])

    def _dict(self, key: str, value: Any, evidence: Any, replace: bool) -> None:
        if not isinstance(value, dict):
            raise Refused("schema_mismatch")
        held = self.keys[key]
        if not isinstance(evidence, dict):  # what stands under index 0 is of all fields
            evidence = {name: deepcopy(evidence[0]) for name in value} if evidence else {}
        if replace:
            held["data"], held["proof"] = {}, {}
        for name, part in value.items():
            if f"{key}.{name}" in self.keys:
                given = evidence.get(name, [])
                count = len(part) if isinstance(part, list) else 1
                self._take(f"{key}.{name}", part, [given] * count if given else [], replace)
                continue
            if name == "_meta" or (isinstance(part, dict) and "_meta" in part):
                raise Refused("schema_mismatch")
            held["data"][name] = deep(held["data"].get(name), part)
            if evidence.get(name):
                held["proof"][name] = unite(held["proof"].get(name, []), evidence[name])

    def _counter(self, key: str, value: Any, evidence: Any, replace: bool) -> None:
        held = self.keys[key]
        count = 0 if replace else held["data"]
        if isinstance(value, list):
            value = rows(value)
        if is_number(value):
            if isinstance(count, dict):
                raise Refused("schema_mismatch")
            held["data"] = add(count, value)
        elif isinstance(value, dict) and all(map(is_number, value.values())):
            if not isinstance(count, dict) and (count != 0 or isinstance(count, float)):
                raise Refused("schema_mismatch")
            old = count if isinstance(count, dict) else {}
            held["data"] = old | {name: add(old.get(name, 0), each) for name, each in value.items()}
            if not held["data"]:
                held["data"] = 0
        else:
            raise Refused("schema_mismatch")
        if replace:
            held["proof"] = []
        for group in evidence:
            unite(held["proof"], group)

    def value(self, key: str) -> Any:
        """What ``Snapshot.get`` gives."""
        held = self.keys[key]
        if held["type"] != "DICT":
            return held["data"]
        return {child.rpartition(".")[2]: self.value(child) for child in self.children(key)} | held["data"]

    def variables(self, above: str = "") -> Data:
        """What ``Snapshot.variables`` gives."""
        forms: Data = {}
        for key in self.children(above):
            held = self.keys[key]
            form: Data = {"_meta": {"type": held["type"], "description": held["description"]}}
            if held["incomplete"]:
                form["_meta"]["incomplete"] = held["incomplete"]
            if held["type"] == "LIST":
                form["items"] = held["data"]
            elif held["type"] == "COUNTER":
                form["value"] = held["data"]
            else:
                form |= self.variables(key) | held["data"]
            forms[key.rpartition(".")[2]] = form
        return forms

    def provenance(self) -> Data:
        """What ``Snapshot.provenance`` gives: a LIST's ends with the last item that has any."""
        found = {}
        for key, held in self.keys.items():
            proof = list(held["proof"]) if held["type"] == "LIST" else held["proof"]
            while held["type"] == "LIST" and proof and not proof[-1]:
                proof.pop()
            if proof:
                found[key] = proof
        return found
