"""``spent`` is what a call really spent: it agrees with the ledger, whatever the cache, the budget or a repair did."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from knotwork.adapters.llm import BudgetExceeded, Completion, Usage
from knotwork.adapters.llm.budget import Budget, Ledger, Price, Priced
from knotwork.adapters.llm.cache import Cached
from knotwork.adapters.llm.middleware import Again, Own, Validated
from knotwork.runtime.api.workspace import Models
from knotwork.runtime.interfaces.mcp.server import call_tool
from knotwork.runtime.interfaces.mcp.workspace import Limits, ServerWorkspace
from support.agents import connected, opened, told
from support.command import cassette

ONE = '(final)=LLM("x", type="yes" | "no")'
EACH = '(a)=EACH({(input)}, LLM("say {(item)}"))\n(final)=EXPR("len(a)", a={(a)})'


class Answers(Own):
    """A model that gives these answers one after the other, the last of them for ever; each takes 10 tokens and 5."""

    def __init__(self, *texts: str, wait: float = 0.0) -> None:
        self.texts = list(texts)
        self.wait = wait

    async def generate(self, prompt: str, **options: Any) -> Completion:
        assert "tally" not in options, "it is for the budget only"
        await asyncio.sleep(self.wait)
        return Completion(self.texts.pop(0) if len(self.texts) > 1 else self.texts[0], usage=Usage(10, 5))

    async def aclose(self) -> None:
        pass


def layered(workspace: ServerWorkspace, model: Any, price: Price | None, max_calls: int | None = None) -> None:
    ledger = Ledger(max_calls)
    client: Any = Validated(Again(Budget(model, ledger, price), halve=False))
    workspace.models = Models("scripted", client if price is None else Priced(client, price), {}, ledger)


async def tell(done: float, total: float | None, message: str) -> None:
    pass


def asked(*scripts: tuple[str, Any], model: Any, price: Price | None = None, max_calls: int | None = None) -> list[Any]:
    """Run scripts all at once; return the results."""

    async def work() -> Any:
        async with opened() as workspace:
            layered(workspace, model, price, max_calls)
            calls = (
                call_tool("run_lwt", {"script": text, "input": given}, workspace, "local", tell)
                for text, given in scripts
            )
            return [each.structure for each in await asyncio.gather(*calls)]

    return asyncio.run(work())


def test_a_repair_is_a_request_and_has_its_cost() -> None:
    (found,) = asked((ONE, None), model=Answers("perhaps", "yes"), price=Price(1.0, 10.0))
    assert found["spent"] == {
        "calls": 2, "prompt_tokens": 20, "completion_tokens": 10, "estimated": False, "cost": 0.00012
    }  # fmt: skip
    assert (found["budget"]["calls"], found["budget"]["tokens"], found["budget"]["cost"]) == (2, 30, 0.00012)


def test_without_a_price_the_cost_is_not_known() -> None:
    (found,) = asked((ONE, None), model=Answers("yes"))
    assert found["spent"]["calls"] == 1 and found["spent"]["cost"] is None and found["budget"]["cost"] is None


def test_what_the_budget_refused_was_not_spent() -> None:
    (found,) = asked((EACH, list("abcde")), model=Answers("x"), price=Price(1.0, 1.0), max_calls=2)
    assert found["spent"]["calls"] == found["budget"]["calls"] == 2
    assert found["steps"][0]["calls"] == 2, "three items were not asked"
    (none,) = asked((ONE, None), model=Answers("yes"), max_calls=0)
    assert "spent" not in none and none["steps"][0]["calls"] == 0
    assert "raise --max-calls" in none["steps"][0]["reason"]


def test_what_is_used_up_is_said_by_the_adapter_and_what_raises_it_by_the_interface() -> None:
    def refusal(ledger: Ledger) -> BudgetExceeded:
        client = Budget(Answers("yes"), ledger, Price(1e6, 1e6))
        with pytest.raises(BudgetExceeded) as caught:
            asyncio.run(client.generate("x", max_tokens=10))
        return caught.value

    for ledger, limit in ((Ledger(0), "calls"), (Ledger(max_tokens=1), "tokens"), (Ledger(max_cost=0.5), "cost")):
        error = refusal(ledger)
        assert (error.limit, error.hint, error.attempts) == (limit, "", 0)


def test_two_calls_at_once_are_told_each_its_own() -> None:
    few, many = asked((EACH, list("ab")), (EACH, list("cdefg")), model=Answers("x", wait=0.02), price=Price(1.0, 1.0))
    assert (few["spent"]["calls"], many["spent"]["calls"]) == (2, 5)
    assert few["spent"]["prompt_tokens"] == 20 and many["spent"]["prompt_tokens"] == 50


def test_commands_are_counted_the_same_and_each_run_anew() -> None:
    program = "FIND nodes WHERE degree > 15 AS x\nCLASSIFY x BY 'mood' INTO ('a', 'b') AS y"

    async def work() -> Any:
        async with opened() as workspace:
            layered(workspace, Answers("a"), Price(1.0, 1.0))
            before, found = 0, []
            for _ in range(2):
                ran = (await call_tool("execute", {"program": program}, workspace, "local", tell)).structure
                found.append((ran["spent"]["calls"], ran["budget"]["calls"] - before))
                before = ran["budget"]["calls"]
            return found

    first, second = asyncio.run(work())
    assert first[0] == first[1] > 0 and second[0] == second[1] > 0


def test_what_the_cache_answers_costs_nothing(tmp_path: Path) -> None:
    async def work() -> Any:
        async with opened() as workspace:
            layered(workspace, Answers("yes"), Price(1.0, 1.0))
            kept = Cached(workspace.models.default, tmp_path / "cache.sqlite", "scripted")
            workspace.models = Models("scripted", kept, {}, workspace.models.ledger)
            return [(await call_tool("run_lwt", {"script": ONE}, workspace, "local", tell)).structure for _ in range(2)]

    first, second = asyncio.run(work())
    assert first["spent"]["calls"] == 1 and "spent" not in second
    assert second["output"] == first["output"] and second["budget"] == first["budget"]


def test_the_session_tells_what_is_left(tmp_path: Path) -> None:
    spec = cassette(tmp_path / "answers.jsonl", {"": "yes"})

    async def work() -> Any:
        async with connected(spec=spec, limits=Limits(max_calls=5)) as client:
            return await told(client, "run_lwt", script=ONE), await told(client, "session")

    ran, session = asyncio.run(work())
    assert ran["spent"]["calls"] == 1 and session["budget"]["calls"] == 1 and session["budget"]["max_calls"] == 5


@pytest.mark.parametrize("names_address", [True, False])
def test_only_a_server_for_its_own_user_names_the_address_of_the_model(names_address: bool) -> None:
    async def whole() -> Any:
        script = '(final)=LLM("hi", timeout=0.05)'
        async with connected(spec="http://127.0.0.1:9/v1#m", names_address=names_address) as client:
            return await told(client, "run_lwt", script=script)

    assert ("127.0.0.1:9/v1)" in str(asyncio.run(whole()))) is names_address
