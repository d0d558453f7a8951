"""A session that was recorded is run again, and the same comes of it: whatever it was, and without asking a model."""

import asyncio
import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork import gasl
from knotwork.adapters.llm import BadAnswer, Completion, Unavailable
from knotwork.adapters.llm.cache import Cached
from knotwork.adapters.llm.middleware import as_client
from support.clients import Scripted
from support.examples import many
from support.executing import executor, library, statuses
from support.processing import by_reference

PEOPLE = 'FIND nodes WHERE entity_type = "PERSON" AS people'
CLASSIFY = 'CLASSIFY people BY "age" INTO ("old", "young") AS sorted'
KEEP = "DECLARE found AS LIST"


def session(*commands: str, llm: Any = None, **options: Any) -> dict[str, Any]:
    with executor(llm, **options) as opened:
        for command in commands:
            opened.execute_one(command)
        return opened.state.as_json()


def test_the_same_comes_of_it() -> None:
    recorded = session(KEEP, PEOPLE, "UPDATE found WITH people", "COUNT nobody AS n", "COUNT people AS n")
    verdict = gasl.replay(recorded, library())
    assert verdict.identical
    assert (verdict.commands, verdict.asked, verdict.differences) == (4, 0, ())


def test_another_graph_is_told() -> None:
    recorded = session(KEEP, PEOPLE, "UPDATE found WITH people")
    graph = library()
    graph.nodes["Cyd"]["age"] = 29
    verdict = gasl.replay(recorded, graph)
    assert not verdict.identical
    assert "the graph differs from the recorded graph" in verdict.remarks
    assert [found.where for found in verdict.differences] == ["variables.found.items[2].age"]
    assert (verdict.differences[0].recorded, verdict.differences[0].replayed) == (28, 29)


def test_another_status_is_told() -> None:
    recorded = session(PEOPLE, "ASSERT LEN ${people} = 5")
    graph = library()
    graph.remove_node("Eve")
    verdict = gasl.replay(recorded, graph)
    assert [found.where for found in verdict.differences] == ["step 2"]
    assert verdict.differences[0].recorded == "success"


def test_models_are_not_asked_again() -> None:
    ages = {'"Ada"': "young", '"Ben"': "old"}
    recorded = session(KEEP, PEOPLE, CLASSIFY, "UPDATE found WITH sorted", llm=Scripted(ages, default="young"))
    assert [item["label"] for item in recorded["variables"]["found"]["items"]][:2] == ["young", "old"]
    model = Scripted(default="old")
    verdict = gasl.replay(recorded, library(), model)
    assert verdict.identical, verdict
    assert (verdict.recalled, verdict.asked, model.prompts) == (5, 0, [])


def test_without_the_answers_a_model_is_asked() -> None:
    recorded = session(KEEP, PEOPLE, CLASSIFY, "UPDATE found WITH sorted", llm=Scripted(default="young"))
    recorded["replay"]["answers"] = []
    again = gasl.replay(recorded, library(), Scripted(default="old"))
    assert (again.identical, again.asked) == (False, 5)
    assert again.differences[0].where == "variables.found.items[0].label"
    none = gasl.replay(recorded, library())
    assert none.differences[0].where == "step 3"
    assert "no answer" in str(none.differences[0].replayed)


def test_answers_that_failed_fail_again() -> None:
    answers = [Unavailable("gone"), "young", BadAnswer("neither", text="mu"), "old", "young"]
    recorded = session(
        KEEP, PEOPLE, CLASSIFY, "UPDATE found WITH sorted", llm=Scripted({"": answers}), max_concurrency=1
    )
    assert [entry["status"] for entry in recorded["history"]][2] == "partial"
    verdict = gasl.replay(recorded, library())
    assert verdict.identical, verdict


def test_equal_questions_get_their_own_answers() -> None:
    recorded = session(
        KEEP, "FIND nodes WHERE id = \"Ada\" AS one", 'CLASSIFY one BY "mood" INTO ("a", "b") AS first',
        'CLASSIFY one BY "mood" INTO ("a", "b") AS second', "UPDATE found WITH first", "RESET found",
        "UPDATE found WITH second", llm=Scripted({"": ["a", "b"]}),
    )  # fmt: skip
    assert recorded["variables"]["found"]["items"][0]["label"] == "b"
    assert gasl.replay(recorded, library()).identical


def test_named_models_and_options_are_replayed() -> None:
    commands = (
        KEEP,
        PEOPLE,
        'SET llm.model = "other"',
        "SET llm.temperature = 0.7",
        CLASSIFY,
        "UPDATE found WITH sorted",
    )
    recorded = session(*commands, llm=Scripted(default="old"), models={"other": Scripted(default="young")})
    assert recorded["variables"]["found"]["items"][0]["label"] == "young"
    assert gasl.replay(recorded, library()).identical


def test_plans_keep_their_variables_apart() -> None:
    first = {
        "plan_id": "p",
        "why": "one",
        "commands": [KEEP, "DECLARE seen AS COUNTER", PEOPLE, "SET adapter.caps.max_rows = 2"],
    }
    second = {
        "plan_id": "p", "why": "two",
        "commands": ["FIND nodes AS nodes", "BRANCH IF LEN ${nodes} = 0 THEN COUNT nodes AS people", "REQUIRE EXISTS people"],
    }  # fmt: skip
    with executor() as opened:
        opened.run_plan(first)
        assert statuses(opened.run_plan(second)) == ["success", "success", "binding_failure"]
        opened.execute_one("COUNT nodes AS n")
        opened.execute_one("UPDATE seen WITH n")
        recorded = opened.state.as_json()
    verdict = gasl.replay(recorded, library())
    assert verdict.identical, verdict


def test_the_hosts_caps_are_replayed() -> None:
    commands = (
        KEEP,
        PEOPLE,
        "UPDATE found WITH people",
        "SET adapter.caps.max_rows = 4",
        PEOPLE,
        "UPDATE found WITH people",
    )
    recorded = session(*commands, caps=gasl.Caps(max_rows=2), ceiling=gasl.Caps(max_results=4))
    assert len(recorded["variables"]["found"]["items"]) == 4
    assert gasl.replay(recorded, library()).identical


def test_settings_are_those_before_the_first_command() -> None:
    block = "TRY\nFIND nodes AS found\nSET adapter.caps.max_rows = 2\nDECLARE kept AS LIST\nUPDATE kept WITH found\nEND"
    recorded = session(block)
    assert len(recorded["variables"]["kept"]["items"]) == 10
    assert gasl.replay(recorded, library()).identical


def test_what_a_host_binds_is_kept_for_a_replay() -> None:
    context = gasl.ContextStore()
    context.set("names", ["Ada", "Eve"])
    recorded = session(KEEP, "FIND nodes WHERE id IN ${names} AS two", "UPDATE found WITH two", context=context)
    assert gasl.replay(recorded, library()).identical


@pytest.mark.slow
def test_what_a_host_binds_has_to_be_given_again_where_it_is_large() -> None:
    names = ["Ada", "Eve", *map(str, range(100_000))]

    def given() -> gasl.ContextStore:
        context = gasl.ContextStore()
        context.set("names", names)
        return context

    recorded = session(KEEP, "FIND nodes WHERE id IN ${names} AS two", "UPDATE found WITH two", context=given())
    assert gasl.replay(recorded, library(), context=given()).identical
    verdict = gasl.replay(recorded, library())
    assert not verdict.identical
    assert "too large for the history" in " ".join(verdict.remarks)


def test_what_was_done_past_the_commands_is_told() -> None:
    with executor() as opened:
        opened.execute_one(KEEP)
        opened.state.merge("found", [{"id": "by hand"}])
        recorded = opened.state.as_json()
    verdict = gasl.replay(recorded, library())
    assert [found.where for found in verdict.differences] == ["variables.found.items"]


def test_a_state_whose_history_tells_nothing_is_run_as_one_plan() -> None:
    recorded = session(KEEP, PEOPLE, "UPDATE found WITH people")
    recorded["history"] = []
    verdict = gasl.replay(recorded, library())
    assert verdict.identical
    assert "one plan" in verdict.remarks[0]


@pytest.mark.parametrize("commands", [["FIND"], ["FIND nodes AS a", "no command"], ["UPDATE a WITH b"]])
def test_commands_that_somebody_wrote_into_a_state_do_no_harm(commands: list[str]) -> None:
    recorded = session(KEEP)
    recorded["replay"]["commands"] += commands
    assert not gasl.replay(recorded, library()).identical or commands == ["UPDATE a WITH b"]


def test_a_directory_and_a_file_can_be_replayed(tmp_path: Path) -> None:
    with executor(state=tmp_path / "run", llm=Scripted(default="old")) as opened:
        opened.run_plan("\n".join((KEEP, PEOPLE, CLASSIFY, "UPDATE found WITH sorted")))
    assert gasl.replay(tmp_path / "run", library()).identical
    assert gasl.replay(tmp_path / "run" / "state.json", library()).identical
    with pytest.raises(gasl.StoreError):
        gasl.replay(tmp_path / "nothing", library())


def test_a_session_in_two_sittings(tmp_path: Path) -> None:
    for answer in ("old", "young"):
        with executor(state=tmp_path / "run", llm=Scripted(default=answer)) as opened:
            opened.run_plan("\n".join((KEEP, PEOPLE, CLASSIFY, "UPDATE found WITH sorted")))
    assert gasl.replay(tmp_path / "run", library()).identical


# Whatever the session was

NAMES = st.sampled_from(("a", "b", "c"))
KEYS = st.sampled_from(("listed", "counted", "group.listed"))
CONDITIONS = st.sampled_from(
    ('entity_type = "PERSON"', "age > 40", "age > 400", "year IS NOT NULL", 'id IN ("Ada", "Trees")', "degree >= 2")
)
SIMPLE = st.one_of(
    st.builds("FIND nodes WHERE {} AS {}".format, CONDITIONS, NAMES),
    st.builds("FIND nodes WHERE {} ORDER BY age DESC LIMIT 2 AS {}".format, CONDITIONS, NAMES),
    st.builds('FIND edges WHERE relation = "WROTE" AS {}'.format, NAMES),
    st.builds("WALK {} DIRECTION both AS {}".format, NAMES, NAMES),
    st.builds("COUNT {} AS {}".format, NAMES, NAMES),
    st.builds("COUNT {} BY entity_type AS {}".format, NAMES, NAMES),
    st.builds("SELECT {} WHERE age > 40 AS {}".format, NAMES, NAMES),
    st.builds("UNION {} WITH {} AS {}".format, NAMES, NAMES, NAMES),
    st.builds("UPDATE {} WITH {}".format, KEYS, NAMES),
    st.builds("UPDATE {} WITH {} REPLACE".format, KEYS, NAMES),
    st.builds("RESET {}".format, KEYS),
    st.builds('CLASSIFY {} BY "mood" INTO ("x", "y", "z") AS {}'.format, NAMES, NAMES),
    st.builds('ANALYZE listed USING "who" AS {}'.format, NAMES),
    st.builds("ASSERT LEN ${{{}}} > 1".format, NAMES),
    st.builds("REQUIRE EXISTS {}".format, NAMES),
    st.builds("SET adapter.caps.max_rows = {}".format, st.integers(1, 4)),
    st.sampled_from(('CANCEL PLAN "p"', "EXPLAIN FIND nodes AS a", "SET llm.temperature = 1")),
)
GUARDED = st.one_of(
    SIMPLE,
    st.builds("ON {} {} THEN {}".format, st.sampled_from(("EMPTY", "ERROR", "PARTIAL")), NAMES, SIMPLE),
    st.builds("BRANCH IF LEN ${{{}}} > 1 THEN {} ELSE {}".format, NAMES, SIMPLE, SIMPLE),
)


def block(inner: "st.SearchStrategy[str]") -> "st.SearchStrategy[str]":
    part = st.lists(inner, min_size=1, max_size=3).map("\n".join)
    return st.one_of(
        st.builds("TRY\n{}\nEND".format, part),
        st.builds("TRY\n{}\nCATCH ANY\n{}\nEND".format, part, part),
        st.builds("TRY\n{}\nCATCH ANY\n{}\nFINALLY\n{}\nEND".format, part, part, part),
    )


COMMANDS = st.lists(st.one_of(GUARDED, GUARDED, st.recursive(GUARDED, block, max_leaves=8)), min_size=1, max_size=8)
PLANS = st.lists(st.tuples(st.booleans(), COMMANDS, st.booleans(), st.booleans()), min_size=1, max_size=4)
START = [
    "DECLARE listed AS LIST", "DECLARE counted AS COUNTER", "DECLARE group AS DICT", "DECLARE group.listed AS LIST",
    "FIND nodes LIMIT 3 AS a", 'FIND nodes WHERE entity_type = "PAPER" AS b', "COUNT b AS c",
]  # fmt: skip


class Fickle:
    """A model whose every answer is another one, and some are errors."""

    def __init__(self, seed: int) -> None:
        self.count = seed

    async def generate(self, prompt: str, **options: Any) -> Completion:
        self.count = self.count * 75 % 65_537
        if self.count % 7 == 0:
            raise Unavailable("gone for a while")
        if "choices" in options:
            return Completion(options["choices"][self.count % len(options["choices"])])
        if self.count % 5 == 0:
            return Completion("no JSON at all")
        return Completion(json.dumps({"answer": f"it is {self.count}", "rationale": "so", "evidence": []}))


def check_session(plans: Any, seed: int, concurrency: int) -> None:
    graph = library()
    with executor(Fickle(seed), graph=graph, max_concurrency=concurrency) as opened:
        for command in START:
            opened.execute_one(command)
        for as_plan, commands, stop, go_on in plans:
            if as_plan:
                config = {"stop_on_error": stop, "continue_on_empty": go_on}
                try:
                    opened.run_plan({"plan_id": "p", "why": "w", "commands": START + commands, "config": config})
                except gasl.PlanError:
                    continue
            else:
                for command in commands:
                    opened.execute_one(command)
        recorded = opened.state.as_json()
    verdict = gasl.replay(recorded, graph)
    assert verdict.identical, (recorded["replay"]["commands"], verdict)
    assert verdict.asked == 0


SESSION = given(PLANS, st.integers(1, 65_536), st.integers(1, 8))


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@SESSION
def test_any_session_is_replayed_identically(plans: Any, seed: int, concurrency: int) -> None:
    check_session(plans, seed, concurrency)


@pytest.mark.slow
@settings(max_examples=many(500), deadline=None)
@SESSION
def test_many_sessions_are_replayed_identically(plans: Any, seed: int, concurrency: int) -> None:
    check_session(plans, seed, concurrency)


ASKING = 'CLASSIFY a BY "{}" INTO ("x", "y") AS d'
PLAIN = st.sampled_from(
    ("UPDATE listed WITH b REPLACE", "COUNT b AS e", "FIND nodes LIMIT 2 AS b", 'ANALYZE listed USING "who" AS f')
)
CANCELLED = st.lists(
    st.one_of(
        st.builds(ASKING.format, st.sampled_from(("mood", "age"))),
        st.sampled_from(("UPDATE listed WITH a", "UPDATE listed WITH b", "RESET listed")),
        st.just("UPDATE listed WITH d REPLACE"),
        st.builds(
            "TRY\n{}\n{}\nCATCH ANY\nRESET listed\nFINALLY\n{}\nEND".format, PLAIN, st.just(ASKING.format("inside")),
            st.one_of(st.just(ASKING.format("at last")), st.just("UPDATE listed WITH b"), PLAIN),
        ),
        st.just("BRANCH IF LEN ${a} > 0 THEN " + ASKING.format("branch")),
    ),
    min_size=2, max_size=5,
)  # fmt: skip


class Cancelling(Fickle):
    """Cancels what runs when it is asked for the ``at``-th time; what goes on all the same (a FINALLY) gets its answer."""

    def __init__(self, seed: int, at: list[int]) -> None:
        super().__init__(seed)
        self.at = at
        self.asked = 0
        self.cancel: Any = None

    async def generate(self, prompt: str, **options: Any) -> Completion:
        self.asked += 1
        if self.asked in self.at:
            self.cancel()
            await asyncio.sleep(0.02)
        return await super().generate(prompt, **options)


def check_cancelled(commands: list[str], at: list[int], by_task: bool, seed: int) -> None:
    graph = library()

    async def run() -> dict[str, Any]:
        model = Cancelling(seed, at)
        async with gasl.open(graph, llm=model, max_concurrency=2) as opened:
            for _ in range(2):
                cancel = asyncio.Event()
                try:
                    plan = "\n".join([*START, "FIND nodes LIMIT 1 AS d", *commands])
                    running = asyncio.create_task(opened.arun_plan(plan, cancel=cancel))
                    model.cancel = running.cancel if by_task else cancel.set
                    await asyncio.wait((running,))
                    running.result()
                except (gasl.PlanError, asyncio.CancelledError):
                    continue
            assert asyncio.all_tasks() == {asyncio.current_task()}
            return opened.state.as_json()

    recorded = asyncio.run(run())
    verdict = gasl.replay(recorded, graph)
    assert verdict.identical, (recorded["history"], verdict)


CANCELLATION = given(CANCELLED, st.lists(st.integers(1, 12), max_size=2), st.booleans(), st.integers(1, 65_536))


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@CANCELLATION
def test_a_session_that_was_cancelled_is_replayed_identically(commands: Any, at: Any, by_task: bool, seed: int) -> None:
    check_cancelled(commands, at, by_task, seed)


@pytest.mark.slow
@settings(max_examples=many(400), deadline=None)
@CANCELLATION
def test_many_sessions_that_were_cancelled_are(commands: Any, at: Any, by_task: bool, seed: int) -> None:
    check_cancelled(commands, at, by_task, seed)


def test_an_empty_state_is_identical_to_itself() -> None:
    with executor(graph=nx.path_graph(3)) as opened:
        assert gasl.replay(opened.state.as_json(), nx.path_graph(3)).identical


class Once:
    """Leaves half of the items open the first time, and answers all the next time."""

    def __init__(self) -> None:
        self.calls = 0

    async def generate(self, prompt: str, **options: Any) -> Completion:
        self.calls += 1
        if self.calls == 2:
            raise Unavailable("down")
        return Completion("young")


def test_a_command_that_was_run_again_for_its_open_items_is_replayed() -> None:
    with executor(Once(), max_concurrency=1) as opened:
        found = [opened.run_plan(f"{PEOPLE}\n{CLASSIFY}")[-1].status for _ in range(2)]
        recorded = opened.state.as_json()
    assert found == ["partial", "success"]
    assert gasl.replay(recorded, library()).identical


def test_what_a_cache_answered_is_replayed_as_such(tmp_path: Path) -> None:
    """PROCESS asks once more about open items when the first answer came from a cache."""
    command = 'PROCESS people USING "who" AS named RETURNING (name TEXT)'
    for more, status in (({}, "partial"), ({"i2": ["B"], "i3": ["C"], "i4": ["D"], "i5": ["E"]}, "success")):
        client = Cached(as_client(Scripted(default=by_reference(i1=["A"], **more))), tmp_path / "answers.sqlite", "m")
        recorded = session(PEOPLE, command, llm=client)
        assert recorded["history"][-1]["status"] == status
        assert gasl.replay(recorded, library()).identical
