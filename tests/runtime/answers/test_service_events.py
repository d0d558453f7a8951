"""What a run tells while it goes, and in which order; nothing where nobody listens."""

import asyncio

import pytest
from knotwork.adapters.llm import Refused
from knotwork.runtime.answers import service
from knotwork.runtime.events import AnswerFinished, AnswerStarted, CandidateWritten, Events, IterationFinished, as_json
from support.answering import Model, answered, caller_of, heard


def test_the_order_of_events():
    events = Events()
    told = heard(events)
    answered(Model(["one", "two"], [4, 9]), events=events, step="s")
    names = [event.name for event in told]
    iteration = [
        "iteration.started", "call.started", "call.finished", "candidate.written", "call.started", "call.finished",
        "iteration.finished",
    ]  # fmt: skip
    assert names == ["answer.started", *iteration, *iteration, "answer.finished"]
    assert {event.step for event in told} == {"s"}


def test_what_they_say():
    events = Events()
    told = heard(events)
    made = answered(Model(["one", "two", "three"], [4, 4, 9]), events=events, iter_max=5, score_threshold=0.9)
    started = next(event for event in told if isinstance(event, AnswerStarted))
    assert (started.iter_max, started.score_threshold, started.attempts) == (5, 0.9, 1)
    written = [event for event in told if isinstance(event, CandidateWritten)]
    assert [(event.iteration, event.candidate, event.answer) for event in written] == [
        (1, 0, "one"),
        (2, 0, "two"),
        (3, 0, "three"),
    ]
    finished = [event for event in told if isinstance(event, IterationFinished)]
    assert [(event.score, event.accepted, event.best, event.error) for event in finished] == [
        (0.4, False, True, ""), (0.4, False, False, ""), (0.9, True, True, ""),
    ]  # fmt: skip
    assert [event.result for event in finished] == made.as_json()["iterations"]
    last = told[-1]
    assert isinstance(last, AnswerFinished)
    assert (last.status, last.score, last.reason) == ("accepted", 0.9, "")
    assert all(as_json(event) for event in told)


def test_a_failed_iteration_says_why():
    events = Events()
    told = heard(events)
    answered(Model([Refused("I will not")]), events=events, iter_max=1)
    finished = next(event for event in told if isinstance(event, IterationFinished))
    assert (finished.score, finished.accepted, finished.best, finished.error) == (None, False, False, "I will not")
    assert (told[-1].status, told[-1].score, told[-1].reason) == ("failed", None, "no answer was evaluated: I will not")


def test_calls_have_numbers_of_their_own():
    events = Events()
    told = heard(events)
    answered(Model(["x"], [4]), events=events, attempts=2, judges=2, iter_max=2)
    items = [event.item for event in told if event.name == "call.started"]
    assert sorted(items) == [0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32]


def test_the_callers_own_events_hear_of_it():
    events = Events()
    told = heard(events)
    model = Model(["x"], [9])
    answered(model, caller=caller_of(model, events))
    assert told[0].name == "answer.started"


def test_an_iteration_is_kept_before_anybody_hears_of_it():
    events, order = Events(), []
    events.subscribe(lambda event: order.append(event.name) if event.name == "iteration.finished" else None)

    async def keep(iteration):
        await asyncio.sleep(0.01)
        order.append(iteration.iteration_number)

    answered(Model(["x"], [4]), events=events, on_iteration=keep, iter_max=2)
    assert order == [1, "iteration.finished", 2, "iteration.finished"]
    plain = []
    answered(Model(["x"], [4]), on_iteration=plain.append, iter_max=2)
    assert [iteration.score for iteration in plain] == [0.4, 0.4]


def test_where_it_can_not_be_kept_the_run_ends_with_what_was_raised():
    events = Events()
    told = heard(events)

    def keep(iteration):
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        answered(Model(["x"], [4]), events=events, on_iteration=keep)
    assert (told[-1].name, told[-1].status, told[-1].reason) == ("answer.finished", "best", "OSError: the disk is full")


def test_with_nobody_listening_no_event_is_made(monkeypatch):
    def made(*_, **__):
        raise AssertionError

    for name in ("AnswerStarted", "IterationStarted", "CandidateWritten", "IterationFinished", "AnswerFinished"):
        monkeypatch.setattr(service, name, made)
    assert answered(Model(["x"], [9]), events=Events()).success
    assert answered(Model(["x"], [9])).success


def test_a_subscriber_that_raises_is_told_of_and_ends_nothing():
    events = Events()

    def broken(event):
        raise KeyError("gone")

    events.subscribe(broken)
    made = answered(Model(["x"], [9]), events=events)
    assert made.success
    assert len(made.warnings) == 1
    assert "KeyError" in made.warnings[0]
    assert answered(Model(["x"], [9]), events=events).warnings == ()
