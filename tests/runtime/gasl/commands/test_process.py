"""PROCESS: rows that cite what they were drawn from, and what becomes of answers that do not fit."""

import asyncio
import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork.adapters.llm import (
    BadAnswer,
    BudgetExceeded,
    Completion,
    PromptTooLong,
    Truncated,
    Unavailable,
    Usage,
    WrongKey,
)  # fmt: skip
from knotwork.adapters.llm.middleware import Validated, as_client
from knotwork.runtime.events import CallFinished, CallRetried, CallStarted, Events
from knotwork.runtime.gasl.commands.evidence import Lazy
from knotwork.runtime.gasl.records import Value
from support.clients import Scripted, Timed
from support.processing import GOOD, ITEMS, NAMES, answer, echo_rows, numbered, process
from support.runners import arun, evidence, plain, run, session


def test_rows_without_their_citations() -> None:
    result = process(GOOD)
    assert (result.status, result.count, result.message) == ("success", 2, "")
    assert plain(result) == [{"name": "Ada", "born": 1815}, {"name": "Alan", "born": None}]
    assert (result.calls, result.summary) == (1, {"count": 2, "batches": 1, "items": 2, "cited": 2})


def test_an_item_may_be_cited_by_its_own_id() -> None:
    result = process(answer({"ids": ["Ada"], "name": "Ada", "born": 1}))
    assert (result.status, evidence(result)[0][0]["cited"]) == ("partial", ["Ada"])


def test_the_evidence_says_who_said_it_from_what_and_has_the_items_own() -> None:
    own = {"kind": "graph", "nodes": ["Ada"]}
    completion = Completion(answer({"ids": ["i1"], "name": "A", "born": 1}), model="m-1", usage=Usage(10, 5), cost=0.25)
    result = process(lambda prompt: completion, items=Value(ITEMS, [[own], []]))
    model, graph = evidence(result)[0]
    assert graph == own
    assert (model["kind"], model["model"], model["temperature"]) == ("model", "m-1", 0.0)
    assert (model["shown"], model["cited"]) == (["Ada", "Alan"], ["Ada"])
    assert re.fullmatch(r"[0-9a-f]{32}", model["prompt_hash"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", model["at"])
    assert (result.usage, result.cost, result.calls, result.cached) == (Usage(10, 5), 0.25, 1, 0)


def test_without_returning_a_row_is_any_object() -> None:
    result = process(answer({"ids": ["i1"], "a": [1, {"b": None}]}), 'PROCESS v USING "do it" AS x')
    assert plain(result) == [{"a": [1, {"b": None}]}]
    assert process(answer({"ids": ["i1"]}), 'PROCESS v USING "do it" AS x').status == "schema_mismatch"


def test_a_column_called_ids_moves_the_citations() -> None:
    text = 'PROCESS v USING "do it" AS x RETURNING (ids LIST)'
    assert plain(process(answer({"cited_ids": ["i1"], "ids": ["p", 1]}), text)) == [{"ids": ["p", 1]}]


def test_what_is_asked_for() -> None:
    client = Scripted(default=GOOD)
    process(client, options={"max_tokens": 500})
    (prompt,), (options,) = client.prompts, client.options
    assert "do it" in prompt and 'i1 {"id": "Ada", "born": 1815}' in prompt
    assert (options["temperature"], options["max_tokens"]) == (0.0, 500)
    row = options["schema"]["properties"]["rows"]["items"]
    assert row["required"] == ["ids", "name", "born"]
    assert row["properties"]["ids"]["items"]["enum"] == ["i1", "i2"]


def test_set_chooses_the_model_and_the_temperature() -> None:
    other = Scripted(default=GOOD)
    client = Scripted(default="never asked")
    result = process(client, models={"other": other}, options={"model": "other", "temperature": 0.7})
    assert (result.status, client.prompts) == ("success", [])
    assert other.options[0]["temperature"] == 0.7
    assert evidence(result)[0][0]["temperature"] == 0.7
    missing = process(client, models={"other": other}, options={"model": "othr"})
    assert (missing.status, missing.hint) == ("error", "did you mean 'other'?")


def test_without_a_model_it_is_an_error() -> None:
    result = run('PROCESS v USING "do it" AS x', v=ITEMS)
    assert (result.status, result.kind, result.calls) == ("error", "not_configured", 0)


def test_of_nothing_no_model_is_asked() -> None:
    client = Scripted()
    result = process(client, items=[])
    assert (result.status, plain(result), client.prompts) == ("empty", [], [])


def test_no_rows_is_empty() -> None:
    assert process(answer()).status == "empty"


# Batches


def test_batches_are_bounded_and_rows_stay_in_the_order_of_the_items() -> None:
    client = Scripted(default=echo_rows)
    result = process(client, NAMES, items=numbered(53))
    assert len(client.prompts) == 3
    assert [row["name"] for row in plain(result)] == [f"n{n}" for n in range(53)]
    assert evidence(result)[52][0]["shown"] == [f"n{n}" for n in range(40, 53)]


def test_long_items_make_small_batches() -> None:
    client = Scripted(default=echo_rows)
    items = [{"id": f"n{n}", "a": "y" * 550, "b": "y" * 550, "c": "y" * 550} for n in range(9)]
    result = process(client, NAMES, items=items)
    assert (len(plain(result)), len(client.prompts)) == (9, 3)
    assert max(map(len, client.prompts)) < 8_000


def test_enormous_items_are_cut_with_a_mark() -> None:
    client = Scripted(default=echo_rows)
    huge = {"id": "n0", "text": "z" * 10**6, "list": list(range(10**5)), "deep": [[[[[[[["x"]]]]]]]]}
    process(client, NAMES, items=[huge])
    assert len(client.prompts[0]) < 3_500
    assert "more characters]" in client.prompts[0] and "more]" in client.prompts[0]


@pytest.mark.slow
def test_batches_run_at_once_up_to_the_limit() -> None:
    client = Timed(0.01)
    process(client, NAMES, items=numbered(200), max_concurrency=4)
    assert client.most == 4


def test_a_cancelled_command_leaves_nothing_under_way() -> None:
    client = Timed(60)

    async def go() -> None:
        at = session(llm=client, variables={"v": numbered(100)}, max_concurrency=3)
        task = asyncio.create_task(arun(NAMES, at))
        await client.reached(3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(go())
    assert (client.under_way, client.cancelled) == (0, 3)


def test_a_batch_that_fails_costs_its_own_items_only() -> None:
    client = Scripted({"i25 ": Unavailable("the server is down", hint="later")}, default=echo_rows)
    result = process(client, NAMES, items=numbered(50))
    assert (result.status, result.count, result.hint, result.kind) == ("partial", 30, "later", "unavailable")
    assert result.message == "1 of 3 batches failed: the server is down"
    assert [failed["id"] for failed in result.failed_items] == [f"n{n}" for n in range(20, 40)]
    assert result.failed_items[0]["reason"] == "the server is down"


@pytest.mark.parametrize("error", [PromptTooLong("too long"), Truncated("cut off")])
def test_a_batch_that_is_too_much_at_once_is_asked_in_halves(error: Exception) -> None:
    def small(prompt: str) -> str:
        if prompt.count('{"id"') > 6:
            raise error
        return echo_rows(prompt)

    result = process(Scripted(default=small), NAMES, items=numbered(45))
    assert (result.status, result.failed_items) == ("success", ())
    assert [row["name"] for row in plain(result)] == [f"n{n}" for n in range(45)]
    alone = process(Scripted(default=error), NAMES, items=numbered(3))
    assert (alone.status, len(alone.failed_items), alone.calls) == ("error", 3, 5)


def test_all_batches_failing_is_an_error() -> None:
    result = process(Scripted(default=Unavailable("down")), NAMES, items=numbered(50))
    assert (result.status, result.value, len(result.failed_items)) == ("error", None, 50)


@pytest.mark.parametrize("error", [BudgetExceeded("no more"), WrongKey("bad key")])
def test_what_would_fail_every_time_is_not_asked_again(error: Exception) -> None:
    client = Scripted({"i1 ": echo_rows}, default=error)
    result = process(client, NAMES, items=numbered(400), max_concurrency=1)
    assert (result.status, result.count, len(client.prompts)) == ("partial", 20, 2)
    assert len(result.failed_items) == 380
    assert process(Scripted(default=error), NAMES, items=numbered(400)).status == "error"


# Answers that do not fit


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"ids": ["i3"], "name": "A", "born": 1}, '"i3" is none of the references that were shown'),
        ({"ids": [], "name": "A", "born": 1}, '"ids" must list at least one reference'),
        ({"name": "A", "born": 1}, '"ids" must list at least one reference'),
        ({"ids": "i1", "name": "A", "born": 1}, '"ids" must list at least one reference'),
        ({"ids": ["i1", None], "name": "A", "born": 1}, "null is none of the references that were shown"),
        ({"ids": ["i1"], "name": "A", "born": "1815"}, '"born" must be INT, not "1815"'),
        ({"ids": ["i1"], "name": "A", "born": 1815.0}, '"born" must be INT, not 1815.0'),
        ({"ids": ["i1"], "name": "A", "born": True}, '"born" must be INT, not True'),
        ({"ids": ["i1"], "name": ["A"], "born": 1}, '"name" must be TEXT, not a list'),
        ({"ids": ["i1"], "name": "A"}, '"born" is missing'),
        ({"ids": ["i1"], "name": "A", "Born": 1}, '"born" is missing; the row has "Born"'),
        ({"ids": ["i1"], "name": "A", "born": 1, "note": "x"}, '"note" was not asked for'),
        ({"ids": ["i1"], "name": "A", "born": 2**63}, '"born" has a number of more than 64 bits'),
        ("text", "it is a string, not an object"),
        (None, "it is null, not an object"),
    ],
)
def test_a_row_that_does_not_fit_is_asked_for_once_more_then_left_out_and_named(row: Any, reason: str) -> None:
    good = {"ids": ["i2"], "name": "Alan", "born": 1912}
    client = Scripted(default=answer(row, good))
    result = process(client)
    assert (result.status, plain(result)) == ("partial", [{"name": "Alan", "born": 1912}])
    assert result.message == f"1 row was dropped: row 1: {reason}; cited 1 of 2 items; no row for Ada"
    assert (result.failed_items[0]["row"], result.failed_items[0]["reason"]) == (1, reason)
    assert len(client.prompts) == 2
    assert f"row 1: {reason}" in client.prompts[1]
    assert result.calls == 2


def test_a_number_in_a_text_column_keeps_its_digits_and_is_noted() -> None:
    rows = '{"rows": [{"ids": ["i1"], "name": 1.10, "born": 1815}, {"ids": ["i2"], "name": "Alan", "born": 1912}]}'
    result = process(Scripted(default=rows))
    assert plain(result) == [{"name": "1.10", "born": 1815}, {"name": "Alan", "born": 1912}]
    assert result.notes == ("name: 1 number read as text",)


def test_a_repaired_answer_is_taken() -> None:
    client = Scripted({"do it": ["nonsense", GOOD]})
    result = process(client)
    assert (result.status, result.count, result.calls) == ("success", 2, 2)


def test_a_worse_second_answer_does_not_cost_the_rows_that_fit() -> None:
    first = answer({"ids": ["i1"], "name": "Ada", "born": 1}, {"ids": ["i9"], "name": "?", "born": 1})
    for second in ("nonsense", answer(), Unavailable("down")):
        result = process(Scripted({"do it": [first, second]}))
        assert (result.status, plain(result)) == ("partial", [{"name": "Ada", "born": 1}])


@pytest.mark.parametrize(
    "text",
    [
        "I can't do that.",
        '{"rows": [{"ids": ["i1"], "ids": ["i2"], "name": "A", "born": 1}]}',
        '{"rows": [' + '{"ids": ["i1"], "name": "A", "born": 1},' * 5 + "]",
        '{"rows": {"ids": ["i1"]}}',
        '{"rows": [{"ids": ["i1"], "name": "A", "born": NaN}]}',
        "{'rows': [{'ids': ['i1'], 'name': 'A', 'born': 1}]}",
        "[" * 20_000,
        '{"rows": ' + "[" * 20_000 + "]" * 20_000 + "}",
        '{"rows": [' + "9" * 5_000 + "]}",
        "5", "null", '""', "```json\n```",
        answer(*[{"ids": ["i7"], "name": "A", "born": 1}] * 500),
    ],
)  # fmt: skip
def test_an_answer_that_can_not_be_used_is_a_mismatch_and_no_traceback(text: str) -> None:
    result = process(text)
    assert (result.status, result.value) == ("schema_mismatch", None)
    assert result.message.startswith("no valid row: ")
    assert len(result.failed_items) <= 102


@pytest.mark.slow
def test_a_million_rows_are_bounded() -> None:
    many = answer(*[{"ids": ["i1"], "name": "A", "born": 1}] * 5_000)
    result = process(many)
    assert (result.status, result.count) == ("partial", 1_000)
    assert result.message.startswith("4,000 rows were dropped: the first 1,000 of 5,000 rows are read")
    text = '{"rows": [' + ",".join(['{"ids":["i1"],"name":"A","born":1}'] * 10**6) + "]}"
    assert process(text).message.endswith("the answer is longer than 1,000,000 characters")


@pytest.mark.slow
def test_what_is_left_out_is_counted_in_rows() -> None:
    good, bad = {"ids": ["i1"], "name": "A", "born": 1}, {"ids": ["i7"], "name": "A", "born": 1}
    result = process(answer(*[bad] * 20_000))
    assert result.message.startswith("no valid row: 20,000 rows were dropped: row 1: ")
    assert process(answer(good, *[bad] * 149)).message.startswith("149 rows were dropped: row 2: ")


def test_an_answer_that_can_not_be_used_is_counted_as_one_and_not_as_a_row() -> None:
    client = Scripted({"i25 ": "prose", "Your last answer": "prose"}, default=echo_rows)
    result = process(client, NAMES, items=numbered(50))
    told = "1 of 3 answers can't be used: the answer can't be read: "
    assert (result.status, result.count) == ("partial", 30)
    assert result.message.startswith(told) and result.message.endswith(
        "; cited 30 of 50 items; no row for n20, n21, n22, n23, n24, ..."
    )
    assert [failed["id"] for failed in result.failed_items] == [f"n{n}" for n in range(20, 40)]


def test_a_fence_around_the_answer_is_fine() -> None:
    assert process(f"```json\n{GOOD}\n```").status == "success"


@pytest.mark.slow
def test_answers_of_any_kind_give_a_status() -> None:
    @settings(deadline=None)
    @given(st.text(max_size=60) | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["rows", "ids", "name", "born"]), inner),
        max_leaves=12,
    ).map(json.dumps))  # fmt: skip
    def check(text: str) -> None:
        assert process(text or "x").status in ("success", "partial", "empty", "schema_mismatch", "error")

    check()


@pytest.mark.parametrize("written", ["none", "N/A", "", "-", None])
def test_a_list_column_is_never_a_word_for_nothing(written: str | None) -> None:
    text = 'PROCESS v USING "do it" AS x RETURNING (tags LIST)'
    result = process(answer({"ids": ["i1"], "tags": [written]}), text)
    assert result.status == "schema_mismatch"
    assert f'"tags" lists only {json.dumps(written)}; a list without elements is []' in str(result)


# With the layer that validates below


def test_a_layer_that_repairs_is_not_repaired_again_and_what_fits_is_kept() -> None:
    mixed = answer({"ids": ["i1"], "name": "Ada", "born": "1815"}, {"ids": ["i2"], "name": "Alan", "born": 1912})
    inner = Scripted(default=mixed)
    result = process(Validated(as_client(inner)))
    assert (result.status, plain(result)) == ("partial", [{"name": "Alan", "born": 1912}])
    assert len(inner.prompts) == 2, "the layer below asked for the repair"


def test_an_unfit_answer_that_a_layer_gave_up_on_is_a_mismatch() -> None:
    result = process(Scripted(default=BadAnswer("the answer does not fit", text="prose")))
    assert (result.status, result.kind) == ("schema_mismatch", "bad_answer")


# What no row cites


def test_it_is_told_how_many_items_were_cited() -> None:
    items = numbered(3)
    rows = [{"ids": ["i1"], "name": "A"}, {"ids": ["i3", "i1"], "name": "C"}]
    result = process(answer(*rows), NAMES, items=items)
    assert (result.status, result.message) == ("partial", "cited 2 of 3 items; no row for n1")
    assert result.summary == {"count": 2, "batches": 1, "items": 3, "cited": 2}
    assert result.failed_items == ({"id": "n1", "batch": 1, "reason": "no row cites it"},)
    nothing = process(answer(), NAMES, items=items)
    assert (nothing.status, nothing.summary["items"], nothing.summary["cited"]) == ("empty", 3, 0)


@pytest.mark.slow
def test_items_of_a_failed_batch_are_told_as_failed_and_not_as_left_uncited() -> None:
    client = Scripted({"i25 ": Unavailable("down"), "i45 ": answer({"ids": ["i41"], "name": "A"})}, default=echo_rows)
    result = process(client, NAMES, items=numbered(50))
    assert (result.status, result.message) == (
        "partial",
        "1 of 3 batches failed: down; cited 21 of 50 items; no row for n41, n42, n43, n44, n45, ...",
    )


@pytest.mark.slow
def test_long_chains_of_process_are_not_asked_one_through_the_other() -> None:
    at = session(llm=Scripted(default=echo), variables={"x": Value(numbered(2), [[{"kind": "graph"}]] * 2)})
    for _ in range(60):
        last = run('PROCESS x USING "name" AS x RETURNING (name TEXT)', at)
    assert last.value is not None
    pieces = last.value.evidence_at(0)
    assert {"kind": "graph"} in pieces, "the first is known to the last"
    deep = at.context.value("x")
    assert deep is not None and isinstance(deep.evidence, Lazy) and deep.evidence.depth <= 32


def echo(prompt: str) -> str:
    return answer({"ids": ["i1", "i2"], "name": "A"}, {"ids": ["i1", "i2"], "name": "B"})


# Events


def test_calls_and_repairs_are_told_as_events() -> None:
    events, heard = Events(), []
    events.subscribe(heard.append)
    process(Scripted({"do it": ["nonsense", GOOD]}), events=events, label="3.1")
    kinds = [type(event) for event in heard]
    assert kinds == [CallStarted, CallFinished, CallRetried, CallStarted, CallFinished]
    assert {event.step for event in heard} == {"3.1"}


def test_a_second_run_with_the_same_answers_gives_the_same_rows() -> None:
    one, other = (process(Scripted(default=echo_rows), NAMES, items=numbered(90), max_concurrency=n) for n in (1, 8))
    assert plain(one) == plain(other)


@pytest.mark.parametrize(
    "around", ["<think>i1? {{</think>{}", "Sure! Here is the JSON: {} Anything else?", "```json\n{}\n```\nThat is all."]
)
def test_the_one_object_of_an_answer_is_read(around: str) -> None:
    said = json.dumps({"rows": [{"ids": ["i1"], "name": "A", "born": 1}]})
    assert process(around.replace("{}", said).replace("{{", "{")).status == process(said).status


def test_two_answers_that_differ_are_a_mismatch() -> None:
    one, other = (json.dumps({"rows": [{"ids": ["i1"], "name": name, "born": 1}]}) for name in "AB")
    assert process(f"{one} or {other}").status == "schema_mismatch"
