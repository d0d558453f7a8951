"""Where a run is kept, each finished call is: a run that goes on asks none of them again, and asks what is missing."""

import asyncio

import pytest
from knotwork.adapters.llm import Refused
from knotwork.runtime.results import Recorded
from support.answering import Model, answered, caller_of

SAID = {"writes": ["one", "two", "three"], "judges": [4, 6, 9]}


class Kept:
    """A record in memory."""

    run_id, damage = "r", ""

    def __init__(self):
        self.items = {}

    def recall(self, step, item, input_hash):
        found = self.items.get((step, item))
        return Recorded(found.output, found.value) if found is not None and found.input_hash == input_hash else None

    def item_done(self, step, item, outcome, seconds):
        assert outcome.input_hash
        assert (step, item) not in self.items
        self.items[step, item] = outcome


@pytest.mark.parametrize("calls", range(7))
def test_a_run_that_goes_on_asks_only_what_is_missing(calls):
    record = Kept()
    whole = answered(Model(**SAID), step="s")

    class Killed(Model):
        async def generate(self, prompt, **options):
            if self.calls == calls:
                raise asyncio.CancelledError
            return await super().generate(prompt, **options)

    first = Killed(**SAID)
    cut = answered(first, caller=caller_of(first, record=record), step="s", iter_max=3)
    assert len(record.items) == calls
    left = Model(SAID["writes"][(calls + 1) // 2 :] or ["x"], SAID["judges"][calls // 2 :] or [0])
    made = answered(left, caller=caller_of(left, record=record), step="s")
    assert left.calls == made.calls == 6 - calls
    assert [each.answer for each in made.iterations] == [each.answer for each in whole.iterations]
    assert made.final_score == whole.final_score
    assert cut.calls >= calls


def test_candidates_and_judges_have_places_of_their_own():
    record = Kept()
    model = Model(["x"], [4])
    answered(model, caller=caller_of(model, record=record), attempts=2, judges=3, iter_max=2)
    assert len(record.items) == model.calls == 16
    again = Model()
    made = answered(again, caller=caller_of(again, record=record), attempts=2, judges=3, iter_max=2)
    assert (again.calls, made.calls, made.final_score) == (0, 0, 0.4)


def test_another_request_is_asked_anew():
    record = Kept()
    model = Model(["x"], [9])
    answered(model, caller=caller_of(model, record=record))
    record.items = {("", place): outcome for (_, place), outcome in record.items.items()}

    class Lenient(Kept):
        def item_done(self, step, item, outcome, seconds):
            self.items[step, item] = outcome

    other = Lenient()
    other.items = dict(record.items)
    again = Model(["x"], [9])
    answered(again, caller=caller_of(again, record=other), instruct="Something else.")
    assert again.calls == 2


def test_a_failed_call_is_not_kept():
    record = Kept()
    model = Model([Refused("no"), "two"], [9])
    answered(model, caller=caller_of(model, record=record))
    assert len(record.items) == 2


def test_how_long_to_wait_is_no_part_of_what_is_asked():
    record = Kept()
    model = Model(["x"], [9])
    answered(model, caller=caller_of(model, record=record), options={"timeout": 9.0})
    answered(model, caller=caller_of(model, record=record), options={"timeout": 5.0, "retries": 1})
    assert model.calls == 2
