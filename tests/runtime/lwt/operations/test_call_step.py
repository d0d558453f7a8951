"""CALL: Python functions that the host offers, with JSON in and JSON out."""

import asyncio
import functools
import threading
from pathlib import Path
from typing import Any

import pytest
from knotwork import lwt
from knotwork.runtime.lwt.operations import call_step


def call(script: str, functions: Any, input: Any = None, **rest: Any) -> Any:
    return asyncio.run(lwt.run(script, functions=functions, input=input, **rest))


def reason(script: str, functions: Any, input: Any = None) -> str:
    run = call(script, functions, input)
    assert run.status == "failed"
    return str(run.steps["final"].reason)


def test_options_are_keyword_arguments_and_the_result_is_the_value() -> None:
    def price(text: str, digits: int, scale: Any) -> dict[str, Any]:
        return {"price": round(float(text), digits), "scale": scale}

    run = call(
        '(final)=CALL("price", text={(input)}["p"], digits=1, scale=[1, {(input)}])', {"price": price}, {"p": "2.55"}
    )
    assert run.value == {"price": 2.5, "scale": [1, {"p": "2.55"}]}
    assert (run.status, run.calls) == ("complete", 0)


def test_a_plain_function_runs_in_a_thread_and_an_async_one_in_the_loop() -> None:
    threads = []

    def plain() -> str:
        threads.append(threading.current_thread())
        return "plain"

    async def waits() -> str:
        await asyncio.sleep(0)
        threads.append(threading.current_thread())
        return "async"

    class Callable:
        async def __call__(self) -> str:
            return "object"

    given = {
        "plain": plain,
        "waits": waits,
        "part": functools.partial(waits),
        "object": Callable(),
        "late": lambda: waits(),
    }
    script = "\n".join(f'({name})=CALL("{name}")' for name in given) + '\n(final)=CONST(1, when="{(late)} == 1")'
    run = call(script, given, all_steps=True)
    assert {name: run.steps[name].value for name in given} == {
        "plain": "plain", "waits": "async", "part": "async", "object": "object", "late": "async",
    }  # fmt: skip
    here = threading.main_thread()
    assert threads[0] is not here or threads[1] is not here
    assert sum(thread is here for thread in threads) == 3


def test_the_values_of_the_run_can_not_be_changed_by_a_function() -> None:
    kept = []

    def spoil(rows: list[Any]) -> list[Any]:
        rows.append("spoilt")
        kept.append(rows)
        return rows

    script = '(a)=CALL("spoil", rows={(input)})\n(b)=CALL("spoil", rows={(a)})\n(final)=EXPR("[a, b, x]", a={(a)}, b={(b)}, x={(input)})'
    run = call(script, {"spoil": spoil}, [1])
    assert run.value == [[1, "spoilt"], [1, "spoilt", "spoilt"], [1]]


@pytest.mark.parametrize(
    ("made", "told"),
    [((1, 2), "tuple is not a JSON type"), ({1: 2}, "a key is int, not a string"), (float("nan"), "nan is not a JSON number"),
     ({"a": [1, {2}]}, 'set is not a JSON type at ["a"][1]'), (b"x", "bytes is not a JSON type"), (object(), "object is not a JSON type")],
)  # fmt: skip
def test_values_that_are_not_json_fail_and_are_not_converted(made: Any, told: str) -> None:
    assert reason('(final)=CALL("f")', {"f": lambda: made}).startswith(
        f"the result of f can't be written as JSON: {told} ("
    )


def test_a_value_nested_too_deeply_fails() -> None:
    deep: Any = []
    for _ in range(2_000):
        deep = [deep]
    assert "it is nested too deeply" in reason('(final)=CALL("f")', {"f": lambda: deep})


def test_arguments_and_results_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_step, "LARGEST", 100)
    same = {"same": lambda x: x, "grow": lambda x: x * 2}
    assert (
        call('(final)=CALL("same", x={(input)})', same, "é" * 44).value == "é" * 44
    )  # 97 bytes with the object around it
    assert reason('(final)=CALL("same", x={(input)})', same, "é" * 50).startswith(
        "the arguments of same: 109 bytes as JSON; at most 100"
    )
    assert reason('(final)=CALL("grow", x={(input)})', same, "x" * 60).startswith(
        "the result of grow: 122 bytes as JSON"
    )


def test_an_exception_fails_the_step_without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789abcdef")

    def leak() -> None:
        raise KeyError("sk-secret-0123456789abcdef is refused, and so is sk-ant-api03-abcdefghijklmnop")

    told = reason('(final)=CALL("leak")', {"leak": leak})
    assert told.startswith("leak raised KeyError: ")
    assert "0123456789" not in told
    assert "abcdefghijklmnop" not in told


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), StopIteration(4), asyncio.CancelledError()])
def test_no_exception_ends_the_run(error: BaseException) -> None:
    def bad() -> None:
        raise error

    async def worse() -> None:
        raise error

    assert "bad" in reason('(final)=CALL("bad")', {"bad": bad})
    if not isinstance(error, SystemExit | KeyboardInterrupt):  # asyncio itself lets these through
        assert "worse" in reason('(final)=CALL("worse")', {"worse": worse})


def test_a_function_has_a_time_limit() -> None:
    hangs = threading.Event()

    async def forever() -> None:
        await asyncio.Event().wait()

    given = {"forever": forever, "hangs": hangs.wait}
    try:
        for name in given:
            assert reason(f'(final)=CALL("{name}", timeout=0.01)', given).startswith(f"{name} took longer than 0.01 s")
    finally:
        hangs.set()


def test_its_own_timeout_error_is_an_exception_like_any_other() -> None:
    def slow() -> None:
        raise TimeoutError("the service is slow")

    assert reason('(final)=CALL("slow", timeout=60)', {"slow": slow}) == "slow raised TimeoutError: the service is slow"


def test_only_functions_that_the_host_names_can_be_called() -> None:
    with pytest.raises(lwt.ScriptError, match="did you mean `normalize`"):
        call('(final)=CALL("normalise")', {"normalize": str})
    with pytest.raises(lwt.ScriptError, match="--functions FILE"):
        call('(final)=CALL("eval", source="1")', None)
    with pytest.raises(TypeError, match="can't be called"):
        call("(final)=CONST(1)", {"f": 3})
    assert [found.code for found in lwt.check('(final)=CALL("x")', functions={}) if found.severity == "error"] == [
        "LWT048"
    ]
    assert not [found for found in lwt.check('(final)=CALL("x")') if found.severity == "error"]


def test_a_saved_result_is_not_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path))
    counted: list[int] = []

    def count(n: int) -> int:
        counted.append(n)
        if n == 2 and len(counted) < 4:
            raise ValueError("not yet")
        return n * 10

    script = '(a)=CALL("count", n=1)\n'
    script += '(b)=EACH({(input)}, CALL("count", n={(item)}), on_error=keep)\n(final)=EXPR("[a, b]", a={(a)}, b={(b)})'
    first = call(script, {"count": count}, [1, 2], record=True)
    assert (first.status, first.value) == ("partial", [10, [10, None]])
    again = asyncio.run(lwt.resume(first.run_id, functions={"count": count}))
    assert (again.status, again.value) == ("complete", [10, [10, 20]])
    assert sorted(counted) == [1, 1, 2, 2]
    third = asyncio.run(lwt.resume(first.run_id, functions={"count": count}))
    assert third.value == again.value
    assert third.steps["a"].reused
    assert len(counted) == 4
