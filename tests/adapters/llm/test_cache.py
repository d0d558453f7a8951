"""The call cache: what enters, what is found, calls in common, and files that are no use."""

import asyncio
import sqlite3
import stat
import time

import pytest
from knotwork.adapters.llm import TimedOut, Truncated, Usage
from knotwork.adapters.llm.cache import Cached, request_key
from knotwork.adapters.llm.middleware import Again, Validated
from support.scripted import Scripted


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "calls.sqlite"


def with_cache(path, inner, body, **options):
    """Run ``body(client)`` over an open cache; return what it returns."""

    async def main():
        client = Cached(inner, path, "openai:m", **options)
        try:
            return await body(client)
        finally:
            await client.aclose()

    return asyncio.run(main())


def test_an_answer_is_found_again_also_by_another_process(path):
    async def twice(client):
        return await client.generate("hi", system="s"), await client.generate("hi", system="s")

    inner = Scripted("hello é😀")
    first, second = with_cache(path, inner, twice)
    assert (first.cached, first.usage) == (False, Usage(10, 5))
    assert (second.text, second.cached, second.usage, second.cost) == ("hello é😀", True, Usage(), 0.0)
    third, _ = with_cache(path, inner, twice)
    assert third.cached
    assert len(inner.calls) == 1
    assert inner.closed


def test_the_file_is_for_its_owner_only(path):
    with_cache(path, Scripted("x"), lambda client: client.generate("hi"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_key_is_what_is_asked_for_and_nothing_else():
    base = {"temperature": 0.5, "system": "s", "stop": ["a"]}
    key = request_key("m", "p", base)
    assert key == request_key("m", "p", {"stop": ("a",), "system": "s", "temperature": 0.5, "timeout": 3, "retries": 9})
    others = [
        request_key("n", "p", base),
        request_key("m", "q", base),
        request_key("m", "p", {**base, "temperature": 0.6}),
        request_key("m", "p", {**base, "sample": 1}),
        request_key("m", "p", {**base, "choices": ["a"]}),
        request_key("m", "p", {**base, "max_tokens": 5}),
    ]
    assert len({key, *others}) == 7


def test_only_whole_answers_that_fit_enter(path):
    async def body(client):
        for _ in range(2):
            with pytest.raises(Truncated):
                await client.generate("hi", retries=0)
        return await client.generate("pick", choices=["good", "bad"])

    inner = Scripted(Truncated("cut"), Truncated("cut"), "dunno", "Good.")
    answer = with_cache(path, Validated(Again(inner)), body)
    assert (answer.text, answer.repaired) == ("good", True)
    with sqlite3.connect(path) as file:
        assert file.execute("SELECT text FROM answers_1").fetchall() == [("Good.",)]  # read again each time
    file.close()


def test_what_was_read_in_an_answer_is_told_for_a_kept_one_too(path):
    async def body(client):
        return [
            await client.generate("pick", choices=["good", "bad"]),
            await client.generate("pick", choices=["good", "bad"], strict_types=True),
            await client.generate("say", schema={"type": "object", "properties": {"a": {"type": "integer"}}}),
        ]

    said = ["**Good.**", "good", 'Sure: {"a": 1}']
    for answers in (said, []):
        found = with_cache(path, Validated(Scripted(*answers)), body)
        assert [(each.text, each.cached) for each in found] == [
            ("good", not answers),
            ("good", not answers),
            ('{"a": 1}', not answers),
        ]
        assert [each.raw for each in found] == (
            ["**Good.**", "", 'Sure: {"a": 1}'] if answers else ["", "", 'Sure: {"a": 1}']
        )


def test_thoughts_are_kept_and_removed_again(path):
    async def twice(client):
        return [await client.generate("hi") for _ in range(2)]

    answers = with_cache(path, Again(Scripted("<think>so</think>yes")), twice)
    assert [(each.text, each.raw) for each in answers] == [("yes", "<think>so</think>yes")] * 2
    stored = "<think>so"  # as an earlier version stored it
    inner = Scripted(stored, "yes")
    assert with_cache(path.with_name("old"), inner, twice)[1].text == "yes"


def test_equal_calls_under_way_are_one_call(path):
    async def body(client):
        return await asyncio.gather(*(client.generate("hi") for _ in range(20)))

    inner = Scripted("x", delay=0.05)
    answers = with_cache(path, inner, body)
    assert len(inner.calls) == 1
    assert sum(answer.usage.total for answer in answers) == 15
    assert sum(answer.cached for answer in answers) == 19


@pytest.mark.slow
def test_a_cancelled_first_caller_does_not_cancel_the_others(path):
    async def body(client):
        first = asyncio.create_task(client.generate("hi"))
        others = [asyncio.create_task(client.generate("hi")) for _ in range(3)]
        await asyncio.sleep(0.03)
        first.cancel()
        answers = await asyncio.gather(first, *others, return_exceptions=True)
        assert isinstance(answers[0], asyncio.CancelledError)
        assert [answer.text for answer in answers[1:]] == ["x"] * 3

    inner = Scripted("x", delay=0.1)
    with_cache(path, inner, body)
    assert len(inner.calls) == 1


@pytest.mark.slow
def test_a_call_that_nobody_waits_for_ends_and_can_be_made_anew(path):
    async def body(client):
        before = asyncio.all_tasks()
        calls = [asyncio.create_task(client.generate("hi")) for _ in range(3)]
        await asyncio.sleep(0.05)
        for call in calls:
            call.cancel()
        again = asyncio.create_task(client.generate("hi"))
        await asyncio.gather(*calls, return_exceptions=True)
        assert (await again).text == "x"
        assert asyncio.all_tasks() == before
        late = asyncio.create_task(client.generate("other"))
        await asyncio.sleep(0)
        late.cancel()
        await asyncio.gather(late, return_exceptions=True)
        assert (await client.generate("other")).text == "x"

    with_cache(path, Scripted("x", delay=0.1), body)


def test_an_error_is_shared_but_paid_once_and_anothers_timeout_is_not_shared(path):
    async def body(client):
        came = await asyncio.gather(*(client.generate("hi") for _ in range(3)), return_exceptions=True)
        assert [type(one) for one in came] == [Truncated] * 3
        assert sum(one.usage.total for one in came) == 9
        came = await asyncio.gather(*(client.generate("ho") for _ in range(3)), return_exceptions=True)
        assert isinstance(came[0], TimedOut)
        assert [one.text for one in came[1:]] == ["x", "x"]

    with_cache(path, Scripted(Truncated("cut", usage=Usage(4, 5)), TimedOut("late"), "x", delay=0.01), body)


def test_everyone_who_waits_is_notified(path):
    class Noisy(Scripted):
        async def generate(self, prompt, **options):
            await asyncio.sleep(0.02)
            options["notify"]("noise")
            return await super().generate(prompt, **options)

    async def body(client):
        heard = []
        await asyncio.gather(*(client.generate("hi", notify=heard.append) for _ in range(3)), client.generate("hi"))
        return heard

    assert with_cache(path, Noisy("x"), body) == ["noise"] * 3


@pytest.mark.parametrize("damage", ["text", "cut", "middle", "folder", "below_a_file"])
def test_a_file_that_is_no_use_costs_one_warning_and_no_call(path, damage, tmp_path):
    async def body(client):
        return [await client.generate(f"call {n}") for n in range(100)]

    if damage in ("cut", "middle"):
        with_cache(path, Scripted("x" * 300), body)
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2] if damage == "cut" else whole[:5000] + b"\xff" * 9000 + whole[14000:])
    elif damage == "folder":
        path.mkdir(parents=True)
    elif damage == "below_a_file":
        (tmp_path / "folder").write_text("x")
    else:
        path.parent.mkdir()
        path.write_text("this is no database" * 100)
    warnings = []
    answers = with_cache(path, Scripted("x" * 300), body, warn=warnings.append)
    assert {answer.text for answer in answers} == {"x" * 300}
    assert len(warnings) == 1
    assert "calls.sqlite" in warnings[0]


def test_a_changed_answer_is_not_believed(path):
    with_cache(path, Scripted("true"), lambda client: client.generate("hi"))
    with sqlite3.connect(path) as file:
        file.execute("UPDATE answers_1 SET text = 'tree'")
    file.close()
    warnings = []
    answer = with_cache(path, Scripted("true"), lambda client: client.generate("hi"), warn=warnings.append)
    assert (answer.text, answer.cached, len(warnings)) == ("true", False, 1)


@pytest.mark.slow
def test_a_locked_file_costs_no_call(path):
    with_cache(path, Scripted("x"), lambda client: client.generate("hi"))
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    warnings = []

    async def body(client):
        longest = 0.0
        before = time.monotonic()
        call = asyncio.create_task(client.generate("new"))
        while not call.done():
            await asyncio.sleep(0.01)
            longest = max(longest, time.monotonic() - before)
            before = time.monotonic()
        assert (await client.generate("another")).text == "x"
        return longest

    longest = with_cache(path, Scripted("x"), body, warn=warnings.append, busy=0.3)
    holder.close()
    assert len(warnings) == 1
    assert longest < 0.25  # the loop went on while the worker waited for the lock


def test_what_can_not_be_a_key_goes_to_the_model(path):
    assert with_cache(path, Scripted("x"), lambda client: client.generate("\ud800")).text == "x"


def test_two_caches_on_one_file_get_on_with_each_other(path):
    async def main():
        clients = [Cached(Scripted("x"), path, "m", warn=pytest.fail) for _ in range(2)]
        await asyncio.gather(*(clients[n % 2].generate(f"call {n // 3}") for n in range(200)))
        for client in clients:
            await client.aclose()

    asyncio.run(main())


@pytest.mark.slow
def test_caches_that_open_a_new_file_at_the_same_time_all_use_it(tmp_path):
    async def opened(path):
        clients = [Cached(Scripted("x"), path, "m", warn=pytest.fail) for _ in range(4)]
        await asyncio.gather(*(client.generate("hi") for client in clients))
        for client in clients:
            await client.aclose()

    for n in range(25):
        asyncio.run(opened(tmp_path / f"{n}.sqlite"))


@pytest.mark.slow
def test_a_hit_takes_at_most_a_third_of_a_millisecond(path):
    async def body(client):
        await client.generate("hi" * 500, system="s")
        best = 1.0
        for _ in range(20):
            started = time.perf_counter()
            for _ in range(20):
                await client.generate("hi" * 500, system="s")
            best = min(best, (time.perf_counter() - started) / 20)
        return best

    assert with_cache(path, Scripted("x" * 1000), body) < 0.0003
