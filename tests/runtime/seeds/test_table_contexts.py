"""Contexts from flat tables: groups, columns, faulty rows, samples; in memory and in a database that spills."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork import seed
from knotwork.adapters.tables.port import MissingExtra, TableError
from knotwork.runtime.errors import RequestError
from knotwork.runtime.seeds.reviews import read_context
from knotwork.runtime.seeds.table_contexts import TableContexts

ROWS = [
    {"product": "b", "body": "one", "rating": 5, "country": "DE"},
    {"product": "a", "body": "two", "rating": None, "country": "DE"},
    {"product": "b", "body": "three", "rating": 4, "country": "FR"},
]


def made(source: Any, **options: Any) -> list[dict[str, Any]]:
    return list(seed.contexts(source, **options))


def texts(contexts: list[dict[str, Any]]) -> list[list[str]]:
    return [[review["text"] for review in context["reviews"]] for context in contexts]


def test_groups_are_in_the_order_of_their_first_rows() -> None:
    found = made(ROWS, group="product", text="body", columns={"stars": "rating"})
    assert [context["name"] for context in found] == ["b", "a"]
    assert texts(found) == [["one", "three"], ["two"]]
    assert [[(review["id"], review["stars"]) for review in context["reviews"]] for context in found] == [
        [(1, 5), (3, 4)],
        [(2, None)],
    ]


def test_a_column_with_one_value_is_part_of_the_context() -> None:
    b, a = made(ROWS, group="product", text="body")
    assert {key: value for key, value in b.items() if key != "reviews"} == {"name": "b", "product": "b"}
    assert a["country"] == "DE" and "body" not in a


def test_several_group_columns() -> None:
    found = made(ROWS, group=["product", "country"], text="body")
    assert [context["name"] for context in found] == ["b / DE", "a / DE", "b / FR"]
    assert (found[2]["product"], found[2]["country"]) == ("b", "FR")


def test_without_groups_each_row_is_a_context_named_by_id_or_number() -> None:
    assert [context["name"] for context in made(ROWS, text="body")] == ["1", "2", "3"]
    rows = [{"id": "x", "text": "one"}, {"id": None, "text": "two"}, {"id": 7, "text": "three"}]
    found = made(rows)
    assert [context["name"] for context in found] == ["x", "2", "7"]
    assert [context["reviews"][0]["id"] for context in found] == ["x", 2, 7]
    assert [context["name"] for context in made(rows, columns={"id": "text"})] == ["one", "two", "three"]


def test_csv_numbers_are_read_and_wrong_ones_kept_for_the_warning(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("text,stars,useful,date,cost,note\na,4.5,,2024-05-17,1.25,007\nb,five,2,,x,\n")
    contexts = seed.contexts(str(tmp_path / "r.csv"), columns={"price:float": "cost"}).bound(
        {"price": "float", "note": "text"}
    )
    first, second = ({**each["reviews"][0]} for each in contexts)
    assert first == {
        "text": "a",
        "id": 1,
        "stars": 4.5,
        "useful": None,
        "date": "2024-05-17",
        "price": 1.25,
        "note": "007",
    }
    assert second == {"text": "b", "id": 2, "stars": "five", "useful": 2, "date": None, "price": "x", "note": ""}
    read = read_context({"name": "n", "reviews": [second]})
    assert read.reviews[0].invalid_meta == {"stars": '"five"'}


def test_only_declared_metadata_is_in_the_reviews_of_a_seed() -> None:
    unbound = seed.contexts(ROWS, group="product", text="body")
    assert set(next(iter(unbound))["reviews"][0]) == {"text", "product", "rating", "country", "id"}
    assert set(next(iter(unbound.bound({"country": "text"})))["reviews"][0]) == {"text", "country", "id"}


@pytest.mark.parametrize(
    ("options", "error", "told", "hint"),
    [
        ({"group": "prodct", "text": "body"}, TableError, "--group: unknown column 'prodct'; did you mean 'product'?", "product, body"),
        ({"group": "product"}, TableError, 'no column "text" in the rows', "--text body (it has the longest texts)"),
        ({"text": "bdy"}, TableError, "--text: unknown column 'bdy'; did you mean 'body'?", "the columns are"),
        ({"text": "body", "group": "body"}, TableError, "'body' is the column of the texts", ""),
        ({"text": "body", "group": ["product", "product"]}, TableError, "named twice", ""),
        ({"text": "body", "columns": {"stars": "ratng"}}, TableError, "did you mean 'rating'?", ""),
        ({"text": "body", "columns": {"stars:number": "rating"}}, RequestError, "unknown type 'number'", "int, float, bool, text, list"),
        ({"text": "body", "columns": {"text": "body"}}, RequestError, "set with --text", ""),
        ({"text": "body", "sample": 0}, RequestError, "sample", ""),
    ],
)  # fmt: skip
def test_messages(options: dict[str, Any], error: Any, told: str, hint: str) -> None:
    with pytest.raises(error) as caught:
        seed.contexts(ROWS, **options)
    assert told in str(caught.value)
    assert hint in caught.value.hint


def test_undeclared_metadata_is_refused_for_a_seed() -> None:
    contexts = seed.contexts(ROWS, text="body", columns={"price": "rating"})
    with pytest.raises(RequestError, match=r"the seed does not declare meta\.price") as caught:
        contexts.bound({"country": "text"})
    assert '"meta": {"price": "text"}' in caught.value.hint


def test_null_groups_are_one_context_or_left_out(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("g,text\nx,one\n,two\ny,three\n,four\n")
    for source in (
        str(tmp_path / "r.csv"),
        [{"g": "x", "text": "one"}, {"text": "two"}, {"g": "y", "text": "three"}, {"text": "four"}],
    ):
        contexts = seed.contexts(source, group="g")
        assert [(context["name"], len(context["reviews"])) for context in contexts] == [("x", 1), ("", 2), ("y", 1)]
        assert contexts.warnings == ["2 rows without a value of g are in a context with an empty name"]
        dropped = seed.contexts(source, group="g", drop_null_groups=True)
        assert [context["name"] for context in dropped] == ["x", "y"]
        assert dropped.warnings == ["2 rows without a value of g are left out"]


def test_equal_numbers_are_one_group_and_a_text_is_another() -> None:
    contexts = seed.contexts([{"g": each, "text": f"{each!r}"} for each in (1, 1.0, "1", 2.0)], group="g")
    assert texts(list(contexts)) == [["1", "1.0"], ["'1'"], ["2.0"]]
    assert contexts.warnings == ["several groups have the name '1': their values differ only in type"]
    assert len(made([{"g": each, "text": ""} for each in (1, 1.0)], group="g")) == 1


def test_groups_of_csv_are_texts_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text('g,text\n1,one\n1.0,two\n"1",three\n 1,four\nNULL,five\n')
    assert texts(made(tmp_path / "r.csv", group="g")) == [["one", "three"], ["two"], ["four"], ["five"]]


def test_rows_have_numbers_without_blank_lines_and_a_missing_text_is_empty(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text('text,n\n"one\nline",1\n\n,2\nNA,3\n')
    contexts = made(tmp_path / "r.csv")
    assert [(each["name"], each["reviews"][0]["text"]) for each in contexts] == [
        ("1", "one\nline"),
        ("2", ""),
        ("3", "NA"),
    ]
    reviews = read_context({"reviews": made([{"text": None}, {"text": ""}])[0]["reviews"]}).reviews
    assert [each.text for each in reviews] == [""]


def test_a_faulty_row_is_a_review_that_fails(tmp_path: Path) -> None:
    good = "".join(f"{n % 2},text {n},DE\n" for n in range(300))
    (tmp_path / "r.csv").write_bytes(
        f"g,body,country\n{good}1,so, so,DE\n".encode() + b'0,caf\xe9,DE\n\xff,x,DE\n"x"y,b,c\n'
    )
    contexts = seed.contexts(str(tmp_path / "r.csv"), group="g", text="body")
    with pytest.raises(TableError, match="4 of 304 rows"):
        list(contexts)
    (tmp_path / "r.csv").write_bytes(f"g,body,country\n{good}1,so, so,DE\n".encode() + b"0,caf\xe9,DE\n\xff,x,DE\n")
    zero, one, unknown = contexts
    assert (
        one["reviews"][-1]["text"].reason == "line 302: 4 cells, but the header has 3"
    )  # the comma is taken to be in the text
    assert zero["reviews"][-1]["text"].reason == "line 303: the cell in the column 'body' is not UTF-8 text"
    assert (unknown["name"], unknown["reviews"][0]["text"].reason) == (
        "",
        "line 304: the cell in the column 'g' is not UTF-8 text",
    )
    assert (one["country"], len(one["reviews"])) == ("DE", 151)
    assert contexts.warnings[0].endswith(
        "3 rows can't be read, and their reviews fail: line 302: 4 cells, but the header has 3; "
        "line 303: the cell in the column 'body' is not UTF-8 text; line 304: the cell in the column 'g' is not UTF-8 text"
    )
    read = read_context(one)
    assert read.reviews[-1].fault == 'its "text" can\'t be used: line 302: 4 cells, but the header has 3'
    assert read.reviews[0].fault == ""


def test_values_of_other_types_as_texts() -> None:
    found = made([{"text": 4.5}, {"text": True}, {"text": b"\0"}, {"text": None}, {"text": [1]}, {"text": "x"}])
    assert [each["reviews"][0]["text"] for each in found[:2]] == ["4.5", "true"]
    assert found[2]["reviews"][0]["text"].reason == "it is binary data"
    assert (found[3]["reviews"][0]["text"], found[5]["reviews"][0]["text"]) == (None, "x")
    assert found[4]["reviews"][0]["text"].reason == "it is a list, not a text"


def test_rows_with_reviews_are_contexts_already(tmp_path: Path) -> None:
    nested = [{"name": "A", "reviews": [{"text": "x"}, {"text": "y"}]}, {"name": "B", "kind": "bar", "reviews": []}]
    assert made(nested)[0] == {"name": "A", "reviews": [{"text": "x"}, {"text": "y"}], "kind": None}
    assert texts(made(nested, sample_reviews=1)) in ([["x"], []], [["y"], []])
    with pytest.raises(TableError, match="has contexts with reviews"):
        seed.contexts(nested, group="name")


def test_what_would_hide_the_name_is_said() -> None:
    contexts = seed.contexts([{"g": 1, "name": "n", "text": "x"}], group="g")
    assert next(iter(contexts))["name"] == "1"
    assert contexts.warnings == ["the column 'name' is not available as context.name, which is the name of the context"]
    assert made([{"name": "n", "text": "x"}], group="name")[0]["name"] == "n"


KEYS = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from(["", "a", "A", "a / b", "1", "ü"]))
TABLES = st.lists(
    st.fixed_dictionaries({"g": KEYS, "h": KEYS, "text": st.text(max_size=5), "n": st.integers()}), max_size=30
)


@pytest.mark.slow
@settings(max_examples=30)
@given(rows=TABLES, group=st.sampled_from([("g",), ("g", "h")]))
def test_no_row_is_lost_and_spilling_changes_nothing(rows: list[dict[str, Any]], group: tuple[str, ...]) -> None:
    rows = [*rows, {"g": "a", "h": None, "text": "end", "n": 0}]
    contexts = seed.contexts(rows, group=group)
    found = list(contexts)
    assert sorted(review["id"] for context in found for review in context["reviews"]) == list(range(1, len(rows) + 1))
    firsts = [context["reviews"][0]["id"] for context in found]
    assert firsts == sorted(firsts)
    for context in found:
        assert [review["id"] for review in context["reviews"]] == sorted(review["id"] for review in context["reviews"])


@pytest.mark.slow
@pytest.mark.parametrize("rows", [40, 20_000])
def test_a_table_beyond_the_memory_is_grouped_in_a_database(rows: int) -> None:
    pytest.importorskip("duckdb")
    source = [{"g": [None, "a", "b", 7][n % 4], "text": f'text {n} é"', "d": n % 3} for n in range(rows)]
    in_memory = seed.contexts(source, group="g")
    spilled = TableContexts(in_memory.table, ("g",), memory=500)
    assert list(in_memory) == list(spilled)
    assert in_memory.warnings == spilled.warnings


def test_a_large_table_without_duckdb_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    source = [{"g": n % 3, "text": "x" * 50} for n in range(100)]
    with pytest.raises(
        MissingExtra, match="grouping more than 0 MB of rows of the rows needs the extra 'data'"
    ) as caught:
        list(TableContexts(seed.contexts(source, group="g").table, ("g",), memory=500))
    assert caught.value.hint == "pip install 'knotwork[data]'"


def test_samples_are_nested_and_keep_positions() -> None:
    rows = [{"g": n % 50, "text": f"t{n}"} for n in range(500)]
    whole = dict(seed.contexts(rows, group="g").numbered())
    small = dict(seed.contexts(rows, group="g", sample=5).numbered())
    large = dict(seed.contexts(rows, group="g", sample=20).numbered())
    assert len(small) == 5 and small.keys() < large.keys() and list(large) == sorted(large)
    assert all(whole[position] == context for position, context in large.items())
    assert dict(seed.contexts(rows, group="g", sample=20, random_state=1).numbered()).keys() != large.keys()
    assert list(dict(seed.contexts(rows, group="g", limit=3).numbered())) == [0, 1, 2]
    assert dict(seed.contexts(rows, group="g", limit=10, sample=5).numbered()).keys() <= set(range(10))
    few = dict(seed.contexts(rows, group="g", sample=5, sample_reviews=3).numbered())
    more = dict(seed.contexts(rows, group="g", sample=5, sample_reviews=6).numbered())
    for position, context in few.items():
        ids = [review["id"] for review in context["reviews"]]
        assert len(ids) == 3 and ids == sorted(ids)
        assert set(ids) < {review["id"] for review in more[position]["reviews"]}


def test_samples_of_rows() -> None:
    rows = [{"id": f"r{n}", "text": "x"} for n in range(5000)]
    small = dict(seed.contexts(rows, sample=7).numbered())
    assert len(small) == 7 and small.keys() < dict(seed.contexts(rows, sample=70).numbered()).keys()
    assert [context["name"] for context in small.values()] == [f"r{position}" for position in small]
    assert [context["name"] for context in seed.contexts(rows, limit=2)] == ["r0", "r1"]
