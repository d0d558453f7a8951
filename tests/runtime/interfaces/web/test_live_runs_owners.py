"""A key sees, follows, cancels and deletes its own runs; another's are not there, which is not the same as forbidden."""

import asyncio
from pathlib import Path

import pytest
from support.lab import asking, lab

ONE, TWO = "one", "two"


@pytest.mark.slow
def test_another_keys_run_is_not_there_while_it_goes_and_after(tmp_path: Path) -> None:
    async def run() -> None:
        async with lab(tmp_path, keys=(ONE, TWO)) as server, server.of(TWO) as other:
            going = await server.begun("Explain it. [[delay 5]]")
            done = (await server.answer("Explain it. [[scores 1]]")).json()["metadata"]["run"]
            missing = await other.get(f"/lab/runs/{'0' * 32}")
            for run in (going, done):
                for method, end in (("GET", ""), ("GET", "/events"), ("POST", "/cancel"), ("DELETE", "")):
                    response = await other.request(method, f"/lab/runs/{run}{end}")
                    assert response.status_code == 404
                    assert response.json() == missing.json()  # nothing tells it from one that never was
            assert (await server.client.get(f"/lab/runs/{going}")).json()["status"] == "running"
            assert (await server.client.get(f"/lab/runs/{done}")).json()["status"] == "accepted"

    asyncio.run(run())


@pytest.mark.slow
def test_lists_have_only_ones_own_runs(tmp_path: Path) -> None:
    async def run() -> None:
        async with lab(tmp_path, keys=(ONE, TWO)) as server, server.of(TWO) as other:
            mine = (await server.answer("Mine. [[scores 1]]")).json()["metadata"]["run"]
            theirs = await other.post("/lab/generate-answer", json=asking("Theirs. [[scores 1]]"))
            for client, run in ((server.client, mine), (other, theirs.json()["metadata"]["run"])):
                assert [one["id"] for one in (await client.get("/lab/runs")).json()["runs"]] == [run]
                page = await client.get("/lab/runs", params={"before": "f" * 32})
                assert [one["id"] for one in page.json()["runs"]] == [run]

    asyncio.run(run())


def test_without_a_key_nothing_is_told(tmp_path: Path) -> None:
    async def run() -> None:
        async with lab(tmp_path, keys=(ONE,)) as server:
            run = (await server.answer("Explain it. [[scores 1]]")).json()["metadata"]["run"]
            del server.client.headers["authorization"]
            for path in ("/lab/runs", f"/lab/runs/{run}", f"/lab/runs/{run}/events", "/lab/about"):
                assert (await server.client.get(path)).status_code == 401
            assert (await server.answer("Explain it.")).status_code == 401

    asyncio.run(run())


@pytest.mark.slow
def test_runs_are_the_keys_also_after_a_restart(tmp_path: Path) -> None:
    async def first() -> tuple[str, dict[str, str]]:
        async with lab(tmp_path, keys=(ONE, TWO)) as server:
            return (await server.answer("Explain it. [[scores 1]]")).json()["metadata"]["run"], server.keys

    async def second() -> None:
        run, keys = kept
        async with lab(tmp_path) as server:
            for name, status in ((ONE, 200), (TWO, 404)):
                headers = {"Authorization": f"Bearer {keys[name]}"}
                assert (await server.client.get(f"/lab/runs/{run}", headers=headers)).status_code == status

    kept = asyncio.run(first())
    asyncio.run(second())
