"""``knotwork.seed`` as a user meets it: load, check, run, compute, ask why."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import knotwork
import pytest
from knotwork import seed
from knotwork.adapters.llm.budget import Price
from knotwork.runtime.seeds.cost_estimate import estimate
from knotwork.runtime.seeds.reviews import read_context
from support.clients import Scripted, Timed
from support.review_server import ReviewServer, answer_review, context, contexts, marked
from support.seeds import SEED

CONTEXT = {
    "name": "Café", "as_of": "2025-01-01",
    "reviews": [
        {"text": "bad food " + marked(severity="mild", people=2), "stars": 2, "date": "2024-12-31"},
        {"text": "worse food " + marked(severity="mild", people=None), "stars": 1},
        {"text": "nice food " + marked(severity="none", people=None), "stars": 5},
        {"text": "a nice garden", "stars": 4},
    ],
}  # fmt: skip


def ran() -> Any:
    return seed.run_sync(seed.load(SEED), CONTEXT, llm=Scripted(default=answer_review))


def test_a_seed_is_loaded_from_a_path_a_text_or_an_object(tmp_path: Path) -> None:
    path = tmp_path / "food.seed.json"
    path.write_text(json.dumps(SEED))
    loaded = [seed.load(path), seed.load(str(path)), seed.load(json.dumps(SEED)), seed.load(SEED)]
    assert all(fs.steps == loaded[0].steps and isinstance(fs, seed.FormulaSeed) for fs in loaded)
    assert seed.load(loaded[0]) is loaded[0]


def test_a_seed_with_errors_says_all_of_them() -> None:
    with pytest.raises(seed.SeedError) as raised:
        seed.load({**SEED, "compute": [{"name": "N", "op": "cuont"}, {"name": "M", "op": "expr", "expr": "1 +"}]})
    assert len(raised.value.diagnostics) >= 2
    assert "error[" in str(raised.value)


def test_a_path_that_is_not_there_is_no_seed() -> None:
    with pytest.raises(OSError, match="nowhere"):
        seed.load("nowhere.seed.json")


def test_checking_takes_what_cant_be_read_and_looks_at_contexts() -> None:
    assert any(found.severity == "error" for found in seed.check("{"))
    fs = seed.load(SEED)
    assert not [found for found in fs.check() if found.severity == "error"]
    kept = [found.message for found in fs.check(CONTEXT)]
    assert any("3 of 4" in message for message in kept), kept


def test_a_run_filters_extracts_and_computes() -> None:
    result = ran()
    assert result.outputs == {"N": 3, "N_MILD": 2, "STARS": 3, "VERDICT": "bad"}
    assert result.values["N"] == 3
    assert result.counts == seed.Counts(reviews=4, kept=3, extracted=3)
    assert result.status == "complete"
    assert [found.review for found in result.extractions] == [0, 1, 2]


def test_where_an_output_is_from() -> None:
    found = ran().provenance("STARS")
    assert (found.name, found.value, found.steps) == ("STARS", 3, ("STARS",))
    assert (found.extractions, found.reviews) == ((0, 1), (0, 1))
    verdict = ran().provenance("VERDICT")
    assert verdict.steps == ("VERDICT", "N_MILD")
    assert verdict.reviews == (0, 1)


def test_reviews_of_provenance_are_those_of_the_context() -> None:
    shifted = {**CONTEXT, "reviews": [{"text": "no"}, *CONTEXT["reviews"]]}
    result = seed.run_sync(seed.load(SEED), shifted, llm=Scripted(default=answer_review))
    assert result.provenance("STARS").extractions == (0, 1)
    assert result.provenance("STARS").reviews == (1, 2)


def test_a_name_that_is_not_computed_has_no_provenance() -> None:
    with pytest.raises(ValueError, match="no step NOPE"):
        ran().provenance("NOPE")


def test_computing_takes_rows_extractions_a_result_or_its_json() -> None:
    fs, result = seed.load(SEED), ran()
    rows = [{"extraction": found.extraction, "meta": found.meta} for found in result.extractions]
    for given in (rows, result.extractions, result, result.as_json(), seed.read_results(result.line())[0]):
        again = seed.compute(fs, extractions=given, context=CONTEXT)
        assert again.outputs == result.outputs
        assert again.status == "complete"
    assert seed.compute(fs, extractions=result, context=CONTEXT).counts == result.counts


def test_what_is_no_row_is_refused() -> None:
    fs = seed.load(SEED)
    for given, message in (
        ([1], 'row 0 has no "extraction"'), ([{"extraction": {}, "meta": 3}], 'the "meta" of row 0 is not an object'),
        ({"a": 1}, "not a list of rows"), ("text", "not a list of rows"),
    ):  # fmt: skip
        with pytest.raises(seed.ResultFault, match=message):
            seed.compute(fs, extractions=given)


def test_a_step_that_fails_is_told_and_the_others_are_computed() -> None:
    fs = seed.load(
        {
            **SEED,
            "compute": [*SEED["compute"], {"name": "X", "op": "expr", "expr": "1 / (N - N)"}],
            "output": ["N", "X"],
        }
    )
    result = seed.compute(fs, extractions=[])
    assert (result.status, result.outputs) == ("partial", {"N": 0})
    assert [(error.step, error.kind) for error in result.errors] == [("X", "division")]
    assert fs.source.text[slice(*result.errors[0].span)] != ""


def test_why_and_what_if() -> None:
    fs, result = seed.load(SEED), ran()
    assert seed.explain(fs, result, CONTEXT, "VERDICT").value == "bad"
    assert seed.sensitivity(fs, result, CONTEXT).flips
    assert seed.sensitivity(fs, result, CONTEXT, outputs=["N"]).outputs == ("N",)
    with pytest.raises(ValueError, match="did you mean VERDICT"):
        seed.sensitivity(fs, result, CONTEXT, outputs=["VERDIKT"])


def test_many_contexts_come_one_by_one() -> None:
    async def work() -> list[tuple[int, str]]:
        fs = seed.load(SEED)
        return [
            (found.index, found.status)
            async for found in seed.run_many(fs, contexts(12, 2), llm=Scripted(default=answer_review))
        ]

    assert asyncio.run(work()) == [(n, "complete") for n in range(12)]


def test_leaving_the_loop_stops_the_calls() -> None:
    async def work() -> None:
        client = Timed(0.001)
        async for _ in seed.run_many(seed.load(SEED), contexts(100, 3), llm=client):
            break
        for _ in range(20):
            await asyncio.sleep(0)
        assert client.under_way == 0
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(work())


def test_an_error_of_the_source_reaches_the_loop_after_the_results_before_it() -> None:
    def source() -> Iterator[Any]:
        yield context(0, 1)
        raise seed.ContextError("line 2 is not JSON")

    async def work() -> None:
        with pytest.raises(seed.ContextError, match="line 2"):
            async for _ in seed.run_many(seed.load(SEED), source(), llm=Scripted(default=answer_review)):
                pass

    asyncio.run(work())


def test_a_kept_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path))
    fs, client = seed.load(SEED), Scripted(default=answer_review)

    async def all_of(given: Any, **options: Any) -> list[Any]:
        return [found async for found in seed.run_many(fs, given, llm=client, **options)]

    first = asyncio.run(all_of(contexts(3, 2), record=True))
    (run,) = (tmp_path / "runs").iterdir()
    again = asyncio.run(all_of(contexts(3, 2), resume=run.name))
    assert [found.outputs for found in again] == [found.outputs for found in first]
    assert len(client.prompts) == 6
    with pytest.raises(seed.RunError, match="the contexts changed"):
        asyncio.run(all_of(contexts(4, 2), resume=run.name))


def test_a_spec_opens_a_model_and_closes_it(folder: Path) -> None:
    async def work() -> Any:
        async with ReviewServer() as server:
            result = await seed.run(seed.load(SEED), CONTEXT, llm=f"{server.url}#m")
            return result, len(server.requests)

    result, asked = asyncio.run(work())
    assert (result.outputs["N"], asked) == (3, 3)


def test_run_sync_inside_a_loop_says_what_to_write() -> None:
    async def work() -> None:
        with pytest.raises(RuntimeError, match=r"await seed\.run"):
            ran()

    asyncio.run(work())


def test_the_module_names_what_it_has() -> None:
    assert "seed" in dir(knotwork)
    for name in seed.__all__:
        assert getattr(seed, name) is not None
    assert dir(seed) == sorted(seed.__all__)
    with pytest.raises(AttributeError, match="nope"):
        seed.nope  # noqa: B018


# The dry run


def test_an_estimate_counts_what_is_kept_and_asks_nothing() -> None:
    found = seed.estimate(seed.load(SEED), [CONTEXT, CONTEXT], price=Price(1.0, 2.0))
    assert (found.contexts, found.reviews, found.kept, found.calls, found.calls_at_most) == (2, 8, 6, 6, 6)
    assert [(each.keyword, each.kept) for each in found.keywords] == [("food", 6)]
    assert found.cost == (found.prompt_tokens + 2 * found.completion_tokens) / 1e6
    assert found.as_json()["tokens"] == "estimated at 4 bytes each"


def test_an_estimate_leaves_out_blank_texts_as_a_run_does() -> None:
    fs = seed.load({**SEED, "filter": {}})
    texts = ["food", "", " ", "\n", "\u00a0", "."]
    context = {"reviews": [{"text": text} for text in texts]}
    client = Scripted(default=answer_review)
    assert seed.run_sync(fs, context, llm=client).calls == estimate(fs, [context]).calls == 2


def test_an_estimate_is_near_what_is_sent() -> None:
    client = Scripted(default=answer_review)
    fs = seed.load(SEED)
    seed.run_sync(fs, CONTEXT, llm=client)
    sent = sum(map(len, client.prompts)) / 4
    schema = len(client.prompts) * len(json.dumps(client.options[0]["schema"])) / 4
    assert sent <= estimate(fs, [CONTEXT]).prompt_tokens <= sent + schema + 10


@pytest.mark.parametrize(("passes", "calls", "most"), [(1, 3, 3), (2, 6, 9)])
def test_two_readings_may_take_a_third(passes: int, calls: int, most: int) -> None:
    found = estimate(seed.load({**SEED, "passes": passes}), [CONTEXT])
    assert (found.calls, found.calls_at_most) == (calls, most)


def test_the_local_model_takes_a_call_for_each_choice() -> None:
    fs = seed.load(SEED)
    assert estimate(fs, [read_context(CONTEXT)], model="local").calls == 6
    assert estimate(fs, [CONTEXT], model="openai:m").calls == 3


def test_what_cant_be_read_has_no_estimate() -> None:
    with pytest.raises(seed.ContextError, match="context 1"):
        seed.estimate(seed.load(SEED), [CONTEXT, {}])


def test_a_split_review_takes_a_call_for_each_part() -> None:
    fs = seed.load({**SEED, "review_handling": {"max_length": 10, "strategy": "split"}})
    assert estimate(fs, [{"reviews": [{"text": "food " * 8}]}]).calls == 4
