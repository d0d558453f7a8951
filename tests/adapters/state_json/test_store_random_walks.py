"""The store against a plain model, by random walks: changes, forks, marks, commits, rollbacks, and opening again."""

import tempfile
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from knotwork.adapters.state import DeclareKey, MergeInto, ReplaceWith, ResetKey, StateError
from knotwork.adapters.state_json import open_store
from knotwork.adapters.state_json.state_object import from_json
from support.examples import many
from support.state_model import Model, Refused, text

KEYS = ["a", "b", "net", "net.a", "net.b", "net.in", "net.in.c", "items", "gone"]
ITEMS = [1, 1.0, True, "1", None, 2, "x", [], [1], {}, {"id": 1}, {"id": 1, "n": 2}, {"id": "1"}, {"id": None, "n": 1},
         {"n": 1, "m": 2}, {"m": 2, "n": 1}, {"a": {"b": [1, {"c": 2}]}}]  # fmt: skip
PIECES = [{"kind": "graph", "nodes": ["n1"]}, {"nodes": ["n1"], "kind": "graph"}, {"kind": "model", "model": "m"}]

keys = st.sampled_from(KEYS)
items = st.sampled_from(ITEMS)
fields = st.dictionaries(st.sampled_from(["f", "g", "a", "b", "in", "_meta"]), items, max_size=3)
counts = st.dictionaries(st.sampled_from(["p", "q", "r"]), st.sampled_from([0, 1, 2, 0.5, 2**62]), max_size=3)
lists = st.lists(items, max_size=4)
long_lists = st.builds(lambda start, n: [{"id": start + at} for at in range(n)], st.integers(0, 50), st.integers(0, 80))
rows = st.lists(
    st.builds(lambda label, n: {"type": label, "count": n}, items, st.sampled_from([0, 1, 2.5, "1"])), max_size=3
)
values = st.one_of(lists, fields, counts, items, long_lists, rows)
groups = st.lists(st.lists(st.sampled_from(PIECES), max_size=2), max_size=4)


class Store(RuleBasedStateMachine):
    """``model`` and ``store`` are changed alike. Everything that was committed is remembered under its hash."""

    steps = 0

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.store: Any = open_store(self.directory / "s", durability="plan")
        self.model = Model()
        self.committed: dict[str, Model] = {self.store.hash: Model()}
        self.order = [self.store.hash]
        self.marks: list[tuple[Any, Model]] = []
        self.main = True  # not a fork, which has no directory
        self.noted = 0

    def teardown(self) -> None:
        if self.main:
            self.store.close()
        rmtree(self.directory)

    def change(self, change: Any) -> None:
        before = self.store.snapshot()
        try:
            self.model.apply(change)
        except Refused as refused:
            with pytest.raises(StateError) as caught:
                self.store.stage(change)
            assert caught.value.status == refused.status
            assert self.store.snapshot().root is before.root
        else:
            self.store.stage(change)

    @rule(key=keys, kind=st.sampled_from(["LIST", "DICT", "DICT", "COUNTER"]), description=st.sampled_from([None, "d"]))
    def declare(self, key: str, kind: Any, description: str | None) -> None:
        self.change(DeclareKey(key, kind, description))

    @rule(key=keys, value=values, evidence=groups, replace=st.booleans())
    def update(self, key: str, value: Any, evidence: Any, replace: bool) -> None:
        kind = self.store.snapshot().kind(key)
        if kind == "DICT":
            given = list(value) if isinstance(value, dict) else []
            evidence = {name: group for name, group in zip(given, evidence, strict=False) if group}
        self.change((ReplaceWith if replace else MergeInto)(key, value, evidence))

    @rule(key=keys)
    def reset(self, key: str) -> None:
        self.change(ResetKey(key))

    @rule()
    def note(self) -> None:
        self.store.note({"step": self.noted})
        self.noted += 1

    @rule()
    def commit(self) -> None:
        state = self.store.commit()
        assert state == self.store.hash
        self.committed[state] = self.model.copy()
        self.order.append(state)

    @rule()
    def mark(self) -> None:
        self.marks = [*self.marks[-3:], (self.store.mark(), self.model.copy())]

    @precondition(lambda self: self.marks)
    @rule(data=st.data())
    def back(self, data: Any) -> None:
        mark, model = data.draw(st.sampled_from(self.marks))
        self.store.back(mark)
        self.model = model.copy()

    @rule(data=st.data(), length=st.sampled_from([10, 64]))
    def rollback(self, data: Any, length: int) -> None:
        wanted = data.draw(st.sampled_from(self.order[-20:]))
        self.store.rollback(wanted[:length])
        self.model = self.committed[wanted].copy()
        assert self.store.hash == wanted

    @rule(stay=st.booleans())
    def fork(self, stay: bool) -> None:
        fork, before = self.store.fork(), self.store.hash
        fork.stage(DeclareKey("forked", "LIST"))
        fork.merge("forked", [1, 2])
        assert self.store.hash == before
        if not stay and self.main:
            self.store.close()
        if not stay:
            self.store, self.main = fork, False
            self.model.apply(DeclareKey("forked", "LIST"))
            self.model.apply(MergeInto("forked", [1, 2]))
            self.committed[self.store.hash] = self.model.copy()
            self.order.append(self.store.hash)
            self.marks = []

    @precondition(lambda self: self.main)
    @rule(compact=st.booleans())
    def reopen(self, compact: bool) -> None:
        before = self.store.hash
        self.commit()
        if compact:
            from knotwork.adapters.state_json.state_object import as_json

            self.store._log.compact({"hash": before, "state": as_json(self.store._committed)})
            self.order, self.marks = [before], []
        self.store.close()
        self.store, self.marks = open_store(self.directory / "s", durability="plan"), []
        assert self.store.hash == before

    @rule()
    def rebuild(self) -> None:
        """Equal states have equal hashes, whatever led to them; and nothing differs between them."""
        other = from_json(self.store.as_json()).root
        assert other.digest.hex() == self.store.hash
        assert not self.store.diff(self.store.snapshot(), type(self.store.snapshot())(other))

    @invariant()
    def agrees(self) -> None:
        Store.steps += 1
        snapshot = self.store.snapshot()
        assert text(snapshot.variables()) == text(self.model.variables())
        assert text(snapshot.provenance()) == text(self.model.provenance())
        assert {each.key: each.type for each in snapshot.declared()} == {
            key: held["type"] for key, held in self.model.keys.items()
        }
        assert [entry["step"] for entry in self.store.history] == list(range(self.noted))


def walk(examples: int, steps: int, start: int) -> None:
    machine = seed(start)(Store)
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.slow
def test_random_walks_agree_with_a_plain_model() -> None:
    walk(40, 30, 1)


@pytest.mark.slow
def test_many_steps_agree_with_a_plain_model() -> None:
    Store.steps, wanted = 0, many(50_000)
    for start in range(2, 40):
        walk(100, 50, start)
        if Store.steps >= wanted:
            break
    assert Store.steps >= wanted
