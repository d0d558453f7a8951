"""``from knotwork import gasl``: what a user of the library sees."""

import asyncio
import gc
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest
from knotwork import gasl
from support.clients import Scripted
from support.executing import library

TEXT = '#: seed the author set\nfind nodes where entity_type="PERSON" as authors # people\nassert len ${authors} > 0\n'


def test_parse_format_check() -> None:
    program = gasl.parse(TEXT)
    assert [type(command).__name__ for command in program.commands] == ["Find", "Assert"]
    assert [statement.why for statement in program] == ["seed the author set", None]
    assert (len(program), program.diagnostics) == (2, ())
    text = program.format()
    assert text == gasl.format(TEXT) == gasl.format(gasl.parse(text))
    assert text.startswith('#: seed the author set\nFIND nodes WHERE entity_type = "PERSON" AS authors')
    assert gasl.parse(text) == program
    assert program.check() == gasl.check(program) == gasl.check(TEXT) == []


def test_check_knows_what_it_is_told() -> None:
    schema = gasl.NetworkXAdapter(library()).schema
    assert [d.severity for d in gasl.check("FIND nodes WHERE entity_typ = 1 AS x", schema=schema)][:1] == ["error"]
    program = gasl.parse("UPDATE found WITH x")
    assert [d.code for d in program.check(state={"found": "LIST"}, variables=["x"])] == []
    assert program.check(state={}, variables=["x"])
    assert program.check(state={"found": "LIST"})


def test_what_can_not_be_read_is_told_and_not_raised() -> None:
    program = gasl.parse("FIND\n")
    assert program.diagnostics
    assert gasl.check(program)
    for refuse in (lambda: gasl.format("FIND\n"), program.format, lambda: gasl.GASLParser().parse("FIND")):
        with pytest.raises(gasl.ParseError) as raised:
            refuse()
        assert raised.value.diagnostics
        assert isinstance(raised.value, gasl.ExecutionError)


def test_the_parser_takes_one_command() -> None:
    parser = gasl.GASLParser()
    assert parser.parse("COUNT a AS n").into.text == "n"
    with pytest.raises(gasl.ParseError):
        parser.parse("COUNT a AS n\nCOUNT b AS m")


def test_conditions() -> None:
    condition = gasl.parse_condition("n > 1 and name in ('a','b')")
    assert condition.matches({"n": 2, "name": "a"}) is True
    assert condition.matches({"n": 1, "name": "a"}) is False
    assert condition.matches({"n": 2}) is None
    assert str(condition) == 'n > 1 AND name IN ("a", "b")'
    assert gasl.parse_condition("n = ${x}").bind({"x": 3}).matches({"n": 3}) is True
    for broken in ("n >", "", "n > 1 AND"):
        with pytest.raises(gasl.ConditionError):
            gasl.parse_condition(broken)
    with pytest.raises(gasl.ConditionError):
        gasl.parse_condition("n = ${x}").matches({"n": 3})


def test_open_takes_a_graph_a_name_a_file_or_an_adapter(tmp_path: Path) -> None:
    nx.write_graphml(library(), tmp_path / "library.graphml")
    adapter = gasl.NetworkXAdapter(library())
    for graph in (
        library(),
        "nx:les_miserables",
        tmp_path / "library.graphml",
        str(tmp_path / "library.graphml"),
        adapter,
    ):
        with gasl.open(graph) as executor:
            assert executor.execute_one("FIND nodes LIMIT 3 AS some").metrics["count"] == 3
    with pytest.raises(gasl.AdapterError):
        gasl.open("nx:nothing_of_the_kind")
    with pytest.raises(gasl.AdapterError):
        gasl.open(tmp_path / "missing.graphml")


def test_the_state_can_be_read_forked_and_taken_back() -> None:
    with gasl.open(library()) as executor:
        executor.execute_one("DECLARE found AS LIST")
        before = executor.state.hash
        fork = executor.state.fork()
        executor.execute_one("FIND nodes LIMIT 2 AS some")
        executor.execute_one("UPDATE found WITH some")
        assert len(executor.state.get("found")) == 2
        assert fork.get("found") == []
        assert "added" in {found.kind for found in executor.state.diff(before, executor.state.hash)}
        executor.state.rollback(before)
        assert executor.state.get("found") == []
        assert executor.state.snapshot().hash == before


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with gasl.open(library(), tmp_path / "run"), pytest.raises(gasl.StoreError):
        gasl.open(library(), tmp_path / "run")
    gasl.open(library(), tmp_path / "run").close()


def test_run_plan_opens_and_closes(tmp_path: Path) -> None:
    records = gasl.run_plan("DECLARE found AS LIST", library(), tmp_path / "run")
    assert gasl.plan_status(records) == "success"
    assert (tmp_path / "run" / "state.json").exists()


def test_config_and_query_are_kept(tmp_path: Path) -> None:
    with gasl.open(library(), tmp_path / "run", Scripted(), query="who wrote what?", durability="plan") as executor:
        executor.run_plan("DECLARE found AS LIST")
        kept = executor.state.as_json()
    assert kept["query"] == "who wrote what?"
    assert kept["config"]["adapter"]["type"] == "networkx"
    assert kept["config"]["llm"] == {"model": "Scripted"}


def test_a_model_may_be_a_spec() -> None:
    with pytest.raises(Exception, match="is not a model"):
        gasl.open(library(), llm="nonsense:x")


def test_a_client_is_used_by_all_calls_of_the_sync_forms() -> None:
    class Bound:
        """A client that belongs to the loop it is first used in, as those over sockets do."""

        loop: asyncio.AbstractEventLoop | None = None
        closed = False

        async def generate(self, prompt: str, **options: object) -> str:
            self.loop = self.loop or asyncio.get_running_loop()
            assert self.loop is asyncio.get_running_loop()
            return "a"

        async def aclose(self) -> None:
            self.closed = True

    client = Bound()
    with gasl.open(library(), llm=client) as executor:
        executor.execute_one("FIND nodes LIMIT 1 AS one")
        for _ in range(2):
            assert executor.execute_one('CLASSIFY one BY "x" INTO ("a", "b") AS c').status == "success"
    assert not client.closed  # whoever made it closes it


@pytest.mark.slow
def test_an_executor_that_is_forgotten_leaves_nothing_open() -> None:
    gasl.open(library()).execute_one("FIND nodes LIMIT 1 AS one")
    gc.collect()  # an open loop would be a ResourceWarning here


@pytest.mark.parametrize("name", gasl.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(gasl, name)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        gasl.nothing  # noqa: B018


@pytest.mark.slow
def test_reading_and_checking_bring_no_graph_and_no_model_library() -> None:
    code = (
        "import sys; from knotwork import gasl; gasl.check('FIND nodes AS x'); gasl.format('FIND nodes AS x');"
        "gasl.parse_condition('n > 1').matches({'n': 2}); print(' '.join(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert {"networkx", "numpy", "openai", "pydantic", "asyncio"}.isdisjoint(run.stdout.split())


def test_an_adapter_takes_a_condition_in_every_form() -> None:
    with gasl.open(library()) as executor:
        adapter = executor.adapter
        read = gasl.parse_condition('entity_type = "PERSON"')
        for given in (read, read.tree, 'entity_type = "PERSON"'):
            assert len(adapter.find_nodes(given)) == len(adapter.nodes(given).items) == 5
            assert adapter.explain("nodes", given)
            assert len(adapter.paths(given, gasl.parse_condition('id = "Trees"')).items) == 2
        wrote = gasl.parse_condition('relation = "WROTE"')
        assert len(adapter.find_edges(wrote)) == len(adapter.edges("relation = 'WROTE'").items) == 6
        assert {item["id"] for item in adapter.walk(["Ada"], via=wrote).items} == {"Engines"}
        assert len(adapter.connect(["Ada"], ["Engines", "Turin"], via=wrote).items) == 1
        with pytest.raises(gasl.ConditionError, match="Jean Valjean"):
            adapter.find_nodes("name = Jean Valjean")
        with pytest.raises(
            TypeError, match=r"a condition must be a string or a result of gasl.parse_condition, not int"
        ):
            adapter.find_nodes(5)
