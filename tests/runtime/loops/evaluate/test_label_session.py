"""A session of labelling without a terminal: what each action leaves on disk."""

import csv
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from knotwork import seed
from knotwork.runtime.api.files import replace_file
from knotwork.runtime.api.labels import LabelError, open_labels
from knotwork.runtime.loops.evaluate.gold import BESIDE as NOT_GOLD
from knotwork.runtime.loops.evaluate.gold import read_gold
from knotwork.runtime.loops.evaluate.label_file import BESIDE, LabelFile
from knotwork.runtime.loops.evaluate.label_session import LabelSession, read_typed
from knotwork.runtime.loops.evaluate.seed_target import SeedTarget
from knotwork.runtime.seeds.reviews import read_context
from knotwork.runtime.seeds.seed_results import Extraction, SeedResult

FS = seed.load(
    {
        "extract": {"fields": [
            {"name": "level", "type": "enum", "values": ["quiet", "loud"]}, {"name": "bad", "type": "bool"},
            {"name": "n", "type": "int"}, {"name": "dishes", "type": "list"}, {"name": "why", "type": "text"},
        ]},
        "compute": [{"name": "N", "op": "count"}], "output": ["N"],
    }
)  # fmt: skip
CONTEXTS = [
    {"name": f"c{number}", "reviews": [{"id": number, "text": "some noise", "stars": 2}]} for number in range(6)
]


OPEN: list[LabelSession] = []


@pytest.fixture(autouse=True)
def closed():
    yield
    while OPEN:
        OPEN.pop().file.close()


def opened(path: Path, contexts=CONTEXTS, **options) -> LabelSession:
    OPEN.append(open_labels(FS, contexts, path, **{"sample": 3, **options}))
    return OPEN[-1]


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def label_all(session: LabelSession) -> None:
    for value in ("loud", True, 3, ["soup; cold", 'a "b"'], "lines,\nand more"):
        session.label(value)


def test_every_type_comes_back_from_the_gold_table(tmp_path):
    path = tmp_path / "gold.csv"
    session = opened(path)
    label_all(session)
    (row,) = rows(path)
    assert (row["level"], row["bad"], row["n"], row["why"]) == ("loud", "true", "3", "lines,\nand more")
    assert row["dishes"] == '["soup; cold", "a \\"b\\""]' and row["status"] == "labelled" and session.done == 1


def test_a_gold_table_is_one_that_evaluations_read(tmp_path):
    path = tmp_path / "gold.csv"
    session = opened(path)
    label_all(session)
    session.skip()
    session.file.close()
    target = SeedTarget(FS, [read_context(each, number) for number, each in enumerate(CONTEXTS)])
    found = rows(path)
    columns = list(found[0])
    gold = read_gold(columns, found, target.expected(columns, found), target.keys(columns), target.bind)
    (item,) = gold.items
    assert gold.unused == () and item.place == session.items[0].place and not target.faults(gold)
    assert dict(item.labels) == {
        "level": "loud", "bad": True, "n": 3, "dishes": ["soup; cold", 'a "b"'], "why": "lines,\nand more",
    }  # fmt: skip
    assert set(BESIDE) <= set(NOT_GOLD)


def test_picks_that_are_not_random_are_left_out_of_scores_and_counted():
    columns = ("context", "review", "level", "picked")

    def read(*picks):
        found = [dict(zip(columns, (f"c{n}", "0", "loud", pick), strict=True)) for n, pick in enumerate(picks)]
        target = SeedTarget(FS, [read_context(each, number) for number, each in enumerate(CONTEXTS)])
        gold = read_gold(columns, found, target.expected(columns, found), target.keys(columns), target.bind)
        return len(gold.items), gold.left_out

    assert read("random", "", "disagree", "unsure") == (2, 2)
    assert read("disagree", "unsure") == (2, 0)  # there is nothing else to score


def test_undo_goes_back_through_labels_and_skips_of_earlier_sessions(tmp_path):
    path = tmp_path / "gold.csv"
    session = opened(path, fields=["level"])
    session.label("loud")
    session.skip()
    session.set_note("odd")
    session.file.close()
    session = opened(path, fields=["level"])
    assert (session.done, session.skipped, session.note()) == (2, 1, "odd")
    assert session.undo() and session.at == 1 and session.undo() and session.at == 0 and not session.undo()
    assert [row["level"] for row in rows(path)] == [""] and rows(path)[0]["note"] == "odd"
    session.label("quiet")
    assert session.at == 1 and rows(path)[-1]["level"] == "quiet"


def test_a_field_without_a_label_stays_empty(tmp_path):
    path = tmp_path / "gold.csv"
    session = opened(path, fields=["level", "n"])
    session.pass_field()
    assert session.field.name == "n" and session.undo() and session.field.name == "level"
    session.pass_field()
    session.label(4)
    assert (rows(path)[0]["level"], rows(path)[0]["n"], rows(path)[0]["status"]) == ("", "4", "labelled")
    assert session.done == 1 and session.at == 1
    session.pass_field()
    session.pass_field()
    assert rows(path)[1]["status"] == "skipped"


def test_several_people_share_a_file_and_further_columns_stay(tmp_path):
    path = tmp_path / "gold.csv"
    path.write_text("context,id,review,level,colour,annotator\nc0,0,0,loud,red,Bob\n", encoding="utf-8")
    session = opened(path, annotator="Ann", fields=["level"])
    session.label("quiet")
    found = rows(path)
    assert (found[0]["annotator"], found[0]["colour"], found[0]["level"]) == ("Bob", "red", "loud")
    assert (found[1]["annotator"], found[1]["level"]) == ("Ann", "quiet")
    session.file.close()
    assert opened(path, annotator="Bob", fields=["level"]).done == (
        1 if any(i.keys["context"] == "c0" for i in session.items) else 0
    )


def test_a_review_that_was_shown_stays_marked(tmp_path):
    result = [SeedResult(f"c{n}", n, extractions=(Extraction(0, {"level": "loud"}),)) for n in range(6)]
    (tmp_path / "a.jsonl").write_bytes(b"".join(each.line() for each in result))
    path = tmp_path / "gold.csv"
    session = opened(path, fields=["level"], results=[tmp_path / "a.jsonl"], show=True)
    assert session.item.answers == {"level": "loud"}
    session.label("loud")
    session.file.close()
    session = opened(path, fields=["level"])
    assert session.undo()
    session.label("quiet")
    assert [row["shown"] for row in rows(path)] == ["yes"] and session.item.answers == {}


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("a,b\n1,2\n", "has no column 'context'"),
        ("context,id,review,level\nc0,0\n", "line 2: the row has fewer cells"),
        ("context,id,review,level\nc0,0,0,loud\nc0,0,0,quiet\n", "line 3: the same review of the same annotator"),
        ('context,id,review,level\n"c0,0,0,loud\n', "line"),
        ("contéxt".encode("latin-1"), "not UTF-8"),
    ],
)  # fmt: skip
def test_a_file_of_another_kind_is_refused_and_stays(tmp_path, body, told):
    path = tmp_path / "gold.csv"
    path.write_bytes(body if isinstance(body, bytes) else body.encode())
    before = path.read_bytes()
    with pytest.raises(LabelError, match=told):
        opened(path)
    assert path.read_bytes() == before


def test_a_label_that_can_t_be_written_is_not_kept(tmp_path):
    session = opened(tmp_path / "gold.csv", fields=["level"])

    def full(path, text):
        raise OSError(28, "No space left on device")

    session.file.replace = full
    with pytest.raises(OSError, match="No space"):
        session.label("loud")
    assert session.at == 0 and session.field.name == "level" and session.done == 0
    session.file.replace = replace_file
    session.label("loud")
    assert session.at == 1


def test_reviews_that_can_t_be_found_again_are_refused(tmp_path):
    twice = [{"name": "same", "reviews": [{"text": "a"}]}, {"name": "same", "reviews": [{"text": "b"}]}]
    with pytest.raises(LabelError, match="can't be found again: 2 contexts have the name same"):
        open_labels(FS, twice, tmp_path / "gold.csv")
    with_ids = [{**each, "reviews": [{"id": n, **each["reviews"][0]}]} for n, each in enumerate(twice)]
    assert len(opened(tmp_path / "a.csv", with_ids).items) == 2


def test_a_flat_table_is_labelled_row_by_row(tmp_path):
    (tmp_path / "t.csv").write_text("id,text,rating\n7,some noise,4\n8,more,2\n", encoding="utf-8")
    session = opened(tmp_path / "gold.csv", tmp_path / "t.csv", fields=["level"], columns={"stars": "rating"})
    session.label("loud")
    assert rows(tmp_path / "gold.csv")[0]["id"] in ("7", "8") and session.items[0].about["stars"] in (4, 2)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("n", " 7 ", 7), ("n", "-3", -3), ("bad", "YES", True), ("bad", "0", False), ("level", "loud", "loud"), ("why", " a b ", "a b"),
        ("dishes", "soup; tea;", ["soup", "tea"]), ("dishes", '["a;b"]', ["a;b"]), ("dishes", "[]", []),
    ],
)  # fmt: skip
def test_typed_values(name, text, value):
    assert read_typed(text, FS.field_by_name[name]) == value


@pytest.mark.parametrize(
    ("name", "text"), [("n", "4.5"), ("n", "x"), ("bad", "maybe"), ("level", "lod"), ("dishes", "[1")]
)
def test_wrong_typed_values(name, text):
    with pytest.raises(ValueError, match=r"\w"):
        read_typed(text, FS.field_by_name[name])


ACTIONS = st.lists(st.sampled_from(["loud", "quiet", "skip", "undo", "pass", "note", "reopen"]), max_size=25)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(ACTIONS)
def test_the_file_on_disk_is_always_what_a_new_session_would_begin_with(tmp_path_factory, actions):
    path = tmp_path_factory.mktemp("labels") / "gold.csv"
    session = opened(path, fields=["level"])
    model: list[tuple[str, str]] = []  # what was done, in order: context and value
    for action in actions:
        current = session.item.keys["context"] if session.item is not None else None
        if action == "reopen":
            session.file.close()
            session = opened(path, fields=["level"])
        elif action == "undo":
            assert session.undo() == bool(model)
            if model:
                assert session.item.keys["context"] == model.pop()[0]
        elif current is not None:
            if action == "note":
                continue
            model.append((current, action if action in ("loud", "quiet") else ""))
            if action in ("loud", "quiet"):
                session.label(action)
            elif action == "skip":
                session.skip()
            else:
                session.pass_field()
        found = {row["context"]: row["level"] for row in rows(path)} if path.exists() else {}
        assert found == dict(model) and session.done == len(model)
    session.file.close()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_process_leaves_no_lock_and_no_half_file(tmp_path):
    code = (
        "import os, signal, sys; from pathlib import Path; from knotwork import seed;"
        "from knotwork.runtime.api.labels import open_labels;"
        "s = open_labels(seed.load('s.seed.json'), 'c.jsonl', Path('gold.csv'), fields=['level']);"
        "s.label('loud'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    (tmp_path / "s.seed.json").write_text(json.dumps(FS.document))
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(each) + "\n" for each in CONTEXTS))
    for number in range(1, 3):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == -signal.SIGKILL, done.stderr
        assert len(rows(tmp_path / "gold.csv")) == number


def test_the_name_of_a_field_may_not_be_a_column_of_the_file(tmp_path):
    fs = seed.load(
        {
            "extract": {"fields": [{"name": "note", "type": "text"}]},
            "compute": [{"name": "N", "op": "count"}],
            "output": ["N"],
        }
    )
    with pytest.raises(LabelError, match="'note' has the name of a column"):
        LabelFile.open(tmp_path / "gold.csv", fs.fields, "", replace_file)
