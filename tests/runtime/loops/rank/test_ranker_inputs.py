"""What a ranking is given and can't use is told before a call; clients of one's own in any form work; a kept run is what it was."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from knotwork import planner
from knotwork.runtime.loops.rank.ranking_results import load
from support.scripted import Scripted

Items = list[dict[str, Any]]


@pytest.mark.parametrize(
    ("settings", "parameter"),
    [
        ({"cancel": threading.Event()}, "cancel"), ({"cancel": True}, "cancel"), ({"events": print}, "events"), ({"events": []}, "events"),
        ({"models": "x"}, "models"), ({"models": {"a": 5}}, "models['a']"), ({"models": {5: "local"}}, "models"), ({"resume": 5}, "resume"),
        ({"temperature": "hot"}, "temperature"), ({"temperature": float("nan")}, "temperature"), ({"temperature": 7}, "temperature"),
    ],
)  # fmt: skip
def test_settings_that_are_none(items: Items, settings: dict[str, Any], parameter: str) -> None:
    model = Scripted("5")
    with pytest.raises(planner.RequestError) as told:
        planner.rank_sync(items, "tea", model, **settings)
    assert told.value.parameter == parameter
    assert model.calls == []


@pytest.mark.parametrize("llm", [5, Scripted, [1]])
def test_what_is_no_model_is_told(items: Items, llm: Any) -> None:
    with pytest.raises(planner.RequestError) as told:
        planner.rank_sync(items, "tea", llm)
    assert told.value.parameter == "llm"
    assert "generate(prompt" in told.value.message


@pytest.mark.parametrize("requests", ["cafe", b"cafe", {"request": "cafe"}, 5, None, [], ["tea", 5]])
def test_requests_that_are_no_list_of_texts(items: Items, requests: Any) -> None:
    model = Scripted("5")
    with pytest.raises(planner.RequestError):
        asyncio.run(planner.rank_many(items, requests, model))
    assert model.calls == []


def test_requests_of_a_generator(items: Items, simple: str) -> None:
    requests: Any = (text for text in ("tea", "more tea"))
    ranked = asyncio.run(planner.rank_many(items, requests, lambda prompt: simple if "[ITEMS]" in prompt else "5"))
    assert [(each.request, each.ranking) for each in ranked] == [("tea", (6,)), ("more tea", (6,))]


def test_clients_in_any_form(items: Items, simple: str) -> None:
    def answer(prompt: str) -> str:
        return simple if "[ITEMS]" in prompt else "5"

    async def later(prompt: str) -> str:
        return answer(prompt)

    class Plain:
        def generate(self, prompt: str, **options: Any) -> str:
            return answer(prompt)

    class Bare:
        async def generate(self, prompt: str) -> str:
            return answer(prompt)

    for client in (answer, later, Plain(), Bare()):
        ranked = planner.rank_sync(items, "tea", client, temperature=0.5)
        assert (ranked.status, ranked.ranking) == ("complete", (6,)), ranked.reason


@pytest.mark.parametrize("name", ["items.json", "requests.json"])
def test_a_kept_run_whose_files_changed_is_refused(
    items: Items, simple: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path))
    planner.rank_sync(items, "tea", Scripted(simple, "5"), record=True)
    (folder,) = (tmp_path / "runs").iterdir()
    load(folder).resume().close()
    path = folder / name
    path.write_text(
        path.read_text(encoding="utf-8").replace("tea", "tee").replace("Cafe 5", "Cafe 9"), encoding="utf-8"
    )
    with pytest.raises(planner.RunError, match=f"{name} in its folder was changed"):
        load(folder).resume()
    load(folder).resume(force=True).close()


def test_a_ranking_of_nothing_is_warned_of(items: Items, simple: str) -> None:
    ranked = planner.rank_sync(items, "tea", Scripted(simple.replace("REMAINING: 5", "REMAINING: none"), "5"))
    assert ranked.warnings == ("the ranking contains items, but the plan said that no item matches",)
