"""What was extracted once is not asked again: a changed formula asks nothing, a changed field asks for that field alone."""

import asyncio
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from knotwork.lang.trees.seed import Extracted, FormulaSeed, ReviewHandling
from knotwork.runtime.events import Events, Warned
from knotwork.runtime.seeds.extraction import MOST_PENDING, CachedValue, ExtractionCache
from knotwork.runtime.seeds.seed_results import SeedResult
from knotwork.runtime.seeds.seed_run import Totals, run_many
from support.clients import Scripted
from support.review_server import answer_review, context
from support.seeds import COUNT, PEOPLE, SEVERITY, food_seed

CONTEXT = context(0, 3)


def asked(
    folder: Path, seed: FormulaSeed | None = None, *, model: str = "m", given: Any = None, client: Any = None, **options: Any
) -> tuple[list[str], SeedResult, Totals]:  # fmt: skip
    """Return the prompts that a run sends, its first result, and its totals."""
    client = client or Scripted(default=answer_review)
    results: list[SeedResult] = []
    totals = asyncio.run(
        run_many(
            seed or food_seed(), given or [CONTEXT], client, on_result=results.append, model=model,
            cache=folder / "extractions.sqlite", **options,
        )
    )  # fmt: skip
    return client.prompts, results[0], totals


def test_the_same_seed_asks_nothing_again(tmp_path: Path) -> None:
    first, result, totals = asked(tmp_path)
    assert (len(first), totals.known) == (3, 0)
    again, same, totals = asked(tmp_path)
    assert (again, totals.known, totals.calls) == ([], 3, 0)
    assert same.outputs == result.outputs
    assert same.extractions == result.extractions


def test_a_changed_formula_asks_nothing(tmp_path: Path) -> None:
    asked(tmp_path)
    prompts, result, _ = asked(tmp_path, food_seed(steps=(COUNT,), outputs=("N",)))
    assert prompts == []
    assert result.outputs == {"N": 3}


def test_a_new_field_asks_for_that_field_alone(tmp_path: Path) -> None:
    _, before, _ = asked(tmp_path)
    seed = food_seed(fields=(SEVERITY, Extracted("late", "bool"), PEOPLE))
    prompts, after, _ = asked(tmp_path, seed)
    assert len(prompts) == 3
    assert all('"late"' in prompt and "severity" not in prompt and "people" not in prompt for prompt in prompts)
    assert list(after.extractions[0].extraction) == ["severity", "late", "people"]
    assert [each.extraction["severity"] for each in after.extractions] == [
        each.extraction["severity"] for each in before.extractions
    ]


@pytest.mark.slow
def test_a_changed_meaning_asks_for_its_field_alone(tmp_path: Path) -> None:
    asked(tmp_path)
    changed = Extracted("severity", "enum", {**SEVERITY.values, "mild": "Hardly anything"})
    prompts, _, _ = asked(tmp_path, food_seed(fields=(changed, PEOPLE)))
    assert len(prompts) == 3
    assert all("Hardly anything" in prompt and "people" not in prompt for prompt in prompts)


def test_the_order_of_fields_asks_nothing(tmp_path: Path) -> None:
    asked(tmp_path)
    prompts, result, _ = asked(tmp_path, food_seed(fields=(PEOPLE, SEVERITY)))
    assert prompts == []
    assert list(result.extractions[0].extraction) == ["people", "severity"]


def test_the_same_review_elsewhere_asks_nothing_and_has_its_own_metadata(tmp_path: Path) -> None:
    asked(tmp_path)
    moved = {"name": "B", "reviews": [{**CONTEXT["reviews"][0], "stars": 5}]}
    prompts, result, _ = asked(tmp_path, given=[moved])
    assert prompts == []
    assert result.extractions[0].meta["stars"] == 5


def test_what_becomes_of_long_reviews_does_not_matter_to_short_ones(tmp_path: Path) -> None:
    asked(tmp_path)
    assert asked(tmp_path, food_seed(review_handling=ReviewHandling(500, "split")))[0] == []
    assert len(asked(tmp_path, food_seed(review_handling=ReviewHandling(5, "truncate_tail")))[0]) == 3


def test_another_model_is_asked(tmp_path: Path) -> None:
    asked(tmp_path)
    assert len(asked(tmp_path, model="n")[0]) == 3


def test_other_options_are_asked(tmp_path: Path) -> None:
    asked(tmp_path)
    assert len(asked(tmp_path, options={"max_tokens": 9})[0]) == 3
    assert asked(tmp_path, options={"timeout": 9.0})[0] == []


def test_two_readings_are_another_thing_than_one(tmp_path: Path) -> None:
    asked(tmp_path)
    assert len(asked(tmp_path, food_seed(passes=2))[0]) == 6


def own(folder: Path, prompt: str = "{review_text}", *more: Extracted, **options: Any) -> int:
    """Return how many prompts a seed with a prompt of its own sends."""
    answer = '{"severity": "mild", "people": 1, "late": true}'
    steps = options.pop("steps", food_seed().steps)
    seed = food_seed(prompt=prompt, fields=(SEVERITY, PEOPLE, *more), steps=steps, outputs=("N",))
    return len(asked(folder, seed, client=Scripted(default=answer), **options)[0])


def test_a_prompt_of_ones_own_is_one_piece(tmp_path: Path) -> None:
    assert own(tmp_path) == 3
    assert own(tmp_path, steps=(COUNT,)) == 0
    assert own(tmp_path, "{review_text}", Extracted("late", "bool")) == 3
    assert own(tmp_path, "{review_text} {review_stars}") == 3


def test_what_a_prompt_of_ones_own_does_not_show_does_not_matter(tmp_path: Path) -> None:
    own(tmp_path)
    rated = {"name": "B", "reviews": [{**review, "stars": 5} for review in CONTEXT["reviews"]]}
    assert own(tmp_path, given=[rated]) == 0


def test_what_is_invalid_is_asked_again_and_the_rest_is_known(tmp_path: Path) -> None:
    bad = Scripted(default='{"severity": "awful", "people": 1}')
    given = [context(0, 1)]
    asked(tmp_path, given=given, client=bad)
    prompts, result, _ = asked(tmp_path, given=given)
    assert len(prompts) == 1
    assert "people" not in prompts[0]
    assert result.extractions[0].extraction["people"] == 1


def test_what_failed_is_asked_again(tmp_path: Path) -> None:
    asked(tmp_path, client=Scripted(default=RuntimeError("down")))
    assert len(asked(tmp_path)[0]) == 3


def test_the_file_is_private(tmp_path: Path) -> None:
    asked(tmp_path / "new")
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "new" / "extractions.sqlite").stat().st_mode) == 0o600


def test_a_broken_file_costs_one_warning_and_no_run(tmp_path: Path) -> None:
    (tmp_path / "extractions.sqlite").write_bytes(b"no database at all" * 1000)
    seen: list[Any] = []
    events = Events()
    events.subscribe(seen.append)
    prompts, result, totals = asked(tmp_path, events=events)
    assert (len(prompts), result.status) == (3, "complete")
    assert len(totals.warnings) == 1
    assert totals.warnings[0].startswith("the extraction cache can't be used and is ignored: ")
    assert [event.message for event in seen if isinstance(event, Warned)] == totals.warnings


def test_a_damaged_value_is_never_used(tmp_path: Path) -> None:
    asked(tmp_path)
    with closing(sqlite3.connect(tmp_path / "extractions.sqlite")) as file, file:
        file.execute("UPDATE extractions_1 SET value = ?", (b'"severe"',))
    prompts, _, totals = asked(tmp_path)
    assert len(prompts) == 3
    assert "a value in it is damaged" in totals.warnings[0]


def test_without_a_models_name_nothing_is_remembered(tmp_path: Path) -> None:
    asked(tmp_path, model="")
    assert not (tmp_path / "extractions.sqlite").exists()


def test_no_review_is_in_the_file(tmp_path: Path) -> None:
    asked(tmp_path, given=[{"name": "A", "reviews": [{"text": "food with a secret ingredient"}]}])
    assert all(b"secret" not in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.slow
def test_what_waits_to_be_written_is_bounded_and_nothing_of_it_is_lost(tmp_path: Path) -> None:
    async def whole() -> None:
        cache = ExtractionCache(tmp_path / "extractions.sqlite", "m")
        await cache.opened()
        go, write, most, callers = asyncio.Event(), cache._values.keep, 0, 50

        async def slow(*rows: Any) -> None:
            await go.wait()
            await write(*rows)

        cache._values.keep = slow  # type: ignore[method-assign]

        async def keep(caller: int) -> None:
            nonlocal most
            for number in range(200):
                await cache.keep([(f"{caller}-{number}".encode(), CachedValue(number))])
                most = max(most, cache.pending)

        tasks = [asyncio.create_task(keep(caller)) for caller in range(callers)]
        for _ in range(100):
            await asyncio.sleep(0)
        assert MOST_PENDING < cache.pending <= MOST_PENDING + callers
        assert sum(task.done() for task in tasks) < callers / 2
        tasks[-1].cancel()  # what it had added is written all the same
        go.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert most <= MOST_PENDING + callers
        await cache.aclose()
        again = ExtractionCache(tmp_path / "extractions.sqlite", "m")
        await again.opened()
        for caller in range(callers - 1):
            keys = {str(number): f"{caller}-{number}".encode() for number in range(200)}
            assert again.find(keys) == {str(number): CachedValue(number) for number in range(200)}
        assert again.find({"first": f"{callers - 1}-0".encode()}) == {"first": CachedValue(0)}
        await again.aclose()

    asyncio.run(whole())


@pytest.mark.slow
def test_a_disk_that_fails_holds_nobody_up(tmp_path: Path) -> None:
    async def whole() -> None:
        told: list[str] = []
        cache = ExtractionCache(tmp_path / "extractions.sqlite", "m", warn=told.append)
        await cache.opened()
        cache._values.give_up("the disk is full")
        async with asyncio.timeout(10):
            await asyncio.gather(*(cache.keep([(f"{n}".encode(), CachedValue(n))]) for n in range(5 * MOST_PENDING)))
        await cache.aclose()
        assert len(told) == 1

    asyncio.run(whole())
