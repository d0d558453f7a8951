"""Values as lines: what a terminal must not obey, and what a long value costs."""

from time import process_time

import pytest
from knotwork.runtime.interfaces.repl.tables import Form, flat, folded, value_lines
from rich.cells import cell_len

EVIL = "ki\x1b[31mnd\x07\u202e"


@pytest.mark.parametrize("form", ["table", "json", "csv", "md"])
@pytest.mark.parametrize("width", [None, 30])
def test_nothing_of_a_value_is_obeyed_by_a_terminal(form: Form, width: int | None) -> None:
    for value in ([{EVIL: EVIL}, {EVIL: [EVIL]}], {EVIL: EVIL}, [EVIL, {EVIL: 1}], EVIL):
        lines = list(value_lines(value, form, width, safe=True))
        assert lines and all(line.isprintable() for line in lines), lines


def test_a_text_is_folded_between_words_and_wide_letters_count_twice() -> None:
    assert folded("one two three  four\n\nfive", 9) == ["one two", "three", "four", "", "five"]
    assert folded("漢字漢字 漢字", 5) == ["漢字", "漢字", "漢字"]
    assert folded("e\u0301" * 6, 4) == ["e\u0301" * 4, "e\u0301" * 2]
    assert folded("abcdef", 1) == list("abcdef") and folded("", 5) == [""] and folded("漢", 1) == ["漢"]


@pytest.mark.slow
@pytest.mark.parametrize("letters", ["ab cd ", "x", "漢", "é ", "ab 漢\t"])
def test_a_line_of_a_million_letters_costs_ten_times_one_of_a_tenth(letters: str) -> None:
    def cost(size: int) -> float:
        text, found = letters * (size // len(letters)), []
        for _ in range(2):
            began = process_time()
            lines = folded(text, 80)
            found.append(process_time() - began)
            assert all(cell_len(line) <= 80 for line in lines[:50])
        return min(found)

    assert cost(300_000) < 30 * max(cost(30_000), 0.002)


def test_a_cell_with_a_million_entries_is_cut_before_it_is_written() -> None:
    class Counted(list):  # type: ignore[type-arg]
        asked = 0

        def __iter__(self):  # type: ignore[no-untyped-def]
            for each in list.__iter__(self):
                Counted.asked += 1
                yield each

    assert flat(Counted(range(100_000)), 50).endswith("…") and Counted.asked < 1_000
    assert flat({"a": [1, None, "x"]}) == '{"a": [1, null, "x"]}'


@pytest.mark.slow
def test_columns_are_as_wide_as_rows_far_down_want_them() -> None:
    lines = list(value_lines([{"id": f"n{number}"} for number in range(100_000)], "table", 80, safe=True))
    assert not any("…" in line for line in lines) and lines[-1] == "n99999"


def test_a_row_is_made_once_for_a_table_of_any_width() -> None:
    class Row(dict):  # type: ignore[type-arg]
        asked = 0

        def get(self, key, default=None):  # type: ignore[no-untyped-def]
            Row.asked += 1
            return dict.get(self, key, default)

    rows = [Row({f"c{number}": number for number in range(12)}) for _ in range(100)]
    lines = list(value_lines(rows, "table", None, safe=False))
    assert len(lines) == 102 and Row.asked <= 2 * 12 * 100
