"""The screen of ``knotwork label`` at several sizes, and what its keys do."""

import io
import re
from pathlib import Path

import pytest
from knotwork import seed
from knotwork.runtime.api.labels import open_labels
from knotwork.runtime.interfaces.cli.label_view import LabelView, _first_key
from rich.console import Console

FS = seed.load(
    {
        "extract": {"fields": [
            {"name": "level", "type": "enum", "values": {"quiet": "no noise at all", "loud": "much noise"},
             "description": "How loud is it?"},
            {"name": "bad", "type": "bool"}, {"name": "n", "type": "int"}, {"name": "why", "type": "text"},
        ]},
        "compute": [{"name": "N", "op": "count"}], "output": ["N"],
    }
)  # fmt: skip
LONG = " ".join(f"word{number}" for number in range(300)) + "\x1b[2J 日本語のレビュー"
CONTEXTS = [
    {"name": f"Café {n}", "reviews": [{"id": n, "text": LONG if n == 0 else f"short {n}", "stars": 2}]}
    for n in range(2)
]
OPEN: list[LabelView] = []


@pytest.fixture(autouse=True)
def closed():
    yield
    while OPEN:
        OPEN.pop().session.file.close()


def view(folder: Path, width: int = 80, height: int = 24, contexts: list = CONTEXTS) -> LabelView:
    console = Console(file=io.StringIO(), width=width, height=height, color_system=None, force_terminal=False)
    OPEN.append(LabelView(open_labels(FS, contexts, folder / "gold.csv"), "gold.csv", console))
    return OPEN[-1]


def press(shown: LabelView, *keys: str) -> list[str]:
    for key in keys:
        for each in [key] if key.startswith("\x1b") else key:
            shown.press(each)
    return [line.plain for line in shown.lines()]


@pytest.mark.parametrize("size", [(80, 24), (40, 16), (40, 12), (20, 20), (200, 60)])
def test_every_screen_fits_its_terminal(tmp_path, size):
    shown = view(tmp_path, *size)
    shown._begin()
    for keys in ("", " ", "n", "abc\r", "1", "2", "12\r", "because it is so\r"):
        lines = press(shown, keys)
        if size != (20, 20):
            assert len(lines) < size[1] or size[1] < 15, (keys, lines)
        assert not any("\x1b" in line for line in lines)


@pytest.mark.slow
def test_a_long_review_is_scrolled_to_its_end(tmp_path):
    shown = view(tmp_path, 60, 20, CONTEXTS[:1])
    first = press(shown)
    assert any(re.match(r"… \d+ more lines \(space\)", line) for line in first)
    seen = "\n".join(first)
    for _ in range(60):
        seen += "\n".join(press(shown, " "))
    assert all(f"word{number}" in seen for number in range(300)) and "レビュー" in seen and "end of" in seen
    assert "word0" in "\n".join(press(shown, *["\x1b[A"] * 80))


def test_the_keys_and_their_meanings_are_shown(tmp_path):
    lines = press(view(tmp_path))
    assert "1 quiet: no noise at all" in lines and "2 loud: much noise" in lines and "level: How loud is it?" in lines
    assert any("u undo · s skip · n note · q quit" in line for line in lines) and "1 of 2 · gold.csv" in lines


def test_single_keys_are_commands_in_a_number_but_text_in_a_text(tmp_path):
    shown = view(tmp_path)
    press(shown, "1", "1")
    assert shown.session.field.name == "n" and shown.entry == ""
    press(shown, "u")
    assert shown.session.field.name == "bad"
    press(shown, "1", "7\r", "sun")
    assert shown.entry == "sun" and shown.session.field.name == "why"
    press(shown, "\x7f", "\x7f", "\x7f", ":u\r")
    assert shown.session.field.name == "n" and shown.entry == ""
    press(shown, "8\r", "quiet, so good\r")
    assert shown.session.done == 1


def test_a_note_can_be_left_and_quitting_keeps_everything(tmp_path):
    shown = view(tmp_path)
    press(shown, "n", "half", "\x1b")
    assert shown.session.note() == "" and shown.entry is None
    press(shown, "n", "whole\r")
    assert shown.session.note() == "whole" and any("note: whole" in line for line in press(shown))
    press(shown, "q")
    assert shown.closed


def test_wrong_keys_and_values_say_what_is_right(tmp_path):
    shown = view(tmp_path)
    assert press(shown, "9")[-1] == "unknown key; press 1 to 2, u, s, n, q or -"
    assert press(shown, "u")[-1] == "nothing to undo"
    press(shown, "1", "1", "x\r")
    assert press(shown)[-1] == "it is not a whole number"


def test_a_file_that_can_t_be_written_is_told_and_nothing_moves(tmp_path):
    shown = view(tmp_path)

    def full(path, text):
        raise OSError(28, "No space left on device")

    shown.session.file.replace = full
    assert press(shown, "1")[-1] == "not saved: No space left on device"
    assert shown.session.field.name == "level"


def test_keys_that_arrive_together_are_taken_one_by_one():
    assert _first_key("12") == ("1", "2") and _first_key("\x1b[A2") == ("\x1b[A", "2")
    assert _first_key("\x1b[5~u") == ("\x1b[5~", "u") and _first_key("\x1b") == ("\x1b", "")
