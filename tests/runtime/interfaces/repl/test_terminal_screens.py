"""The prompt in a real terminal (tmux): typing, Tab, Ctrl-C, resizing, pasting, pages. Screens are compared as they stand."""

import json
import re
import shutil
from pathlib import Path

import knotwork
import pytest
from support.command import cassette, silent_server
from support.folders import DOCS
from support.tmux import Tmux

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")]

MISERABLES = "nx:les_miserables"
GREETING = f"""\
knotwork {knotwork.__version__}
  graph  nx:les_miserables · 77 nodes, 254 edges
  state  in memory · --state DIR saves it
  model  replay:answers
  try    FIND nodes ORDER BY degree DESC LIMIT 10 AS hubs
.help shows the commands"""
PICTURE = DOCS / "pictures" / "repl.svg"


def test_typing_tab_an_error_and_its_fix(folder: Path) -> None:
    cassette(folder / "answers", {})
    with Tmux(["repl", MISERABLES, "--llm", "replay:answers"], folder, 80, 24) as terminal:
        terminal.wait("knotwork>")
        terminal.type("FI")
        terminal.keys("Tab")
        terminal.wait("knotwork> FIND")
        terminal.type(" nodes WHERE degr")
        terminal.keys("Tab")
        terminal.wait("WHERE degree")
        terminal.line(" > 20 AS hubs")
        terminal.wait("2 nodes in hubs", "knotwork>", times=1)
        terminal.line("RANK hbus BY id AS ranked")
        terminal.wait("Tab: RANK hubs")
        terminal.keys("Tab")
        screen = terminal.wait("knotwork> RANK hubs BY id AS ranked")
        assert screen == SCREEN_OF_THE_FIX
        terminal.keys("Enter")
        terminal.wait("2 nodes in ranked")
        terminal.keys("C-d")
        terminal.wait("left with 0")


SCREEN_OF_THE_FIX = f"""\
{GREETING}
knotwork> FIND nodes WHERE degree > 20 AS hubs
id
────────
Valjean
Gavroche
2 nodes in hubs · scan
knotwork> RANK hbus BY id AS ranked
error[GASL050]: the variable hbus is not bound
  --> <input>:1:6
   1 | RANK hbus BY id AS ranked
     |      ^^^^
  = help: did you mean hubs?

  Tab: RANK hubs BY id AS ranked
knotwork> RANK hubs BY id AS ranked"""


def test_a_menu_of_completions(folder: Path) -> None:
    with Tmux(["repl", MISERABLES], folder, 80, 24) as terminal:
        terminal.wait("knotwork>")
        terminal.type(".s")
        terminal.keys("Tab")
        screen = terminal.wait(".schema", ".state", ".save")
        assert "the graph's attributes" in screen
        terminal.keys("Tab", "Tab")
        terminal.keys("Enter")
        terminal.keys("Enter")
        terminal.wait("no keys declared yet")


def test_ctrl_c_during_a_slow_model_keeps_the_session(folder: Path) -> None:
    with (
        silent_server() as (spec, asked),
        Tmux(["repl", MISERABLES, "--llm", spec], folder, 80, 24, {"KNOTWORK_API_KEY": "x"}) as terminal,
    ):
        terminal.wait("knotwork>")
        terminal.line("n = 41")
        terminal.line('(why)=LLM("Why?")')
        assert asked.wait(20)
        assert "Ctrl-C cancels" in terminal.wait("waiting for a model, 1 in progress")
        terminal.keys("C-c")
        terminal.wait("cancelled; finished work is kept", gone="in progress")
        terminal.line("n + 1")
        screen = terminal.wait("42\nknotwork>")
        assert screen == SCREEN_OF_THE_CANCEL.replace("SPEC", spec)
        terminal.type("half a line")
        terminal.keys("C-c")
        terminal.line("n + 2")
        terminal.wait("43")
        terminal.line(".quit")
        terminal.wait("left with 0")


SCREEN_OF_THE_CANCEL = f"""\
{GREETING.replace("replay:answers", "SPEC")}
knotwork> n = 41
41
a number in n
knotwork> (why)=LLM("Why?")
cancelling; Ctrl-C again stops without waiting
cancelled; finished work is kept
knotwork> n + 1
42
knotwork>"""


def test_a_paste_of_200_lines_is_one_block(folder: Path) -> None:
    with Tmux(["repl"], folder, 80, 24) as terminal:
        terminal.wait("knotwork>")
        terminal.paste("\n".join(f"v{number} = {number} * 2" for number in range(200)))
        terminal.wait("v199 = 199 * 2")
        terminal.keys("Enter")
        terminal.wait("in v199", seconds=30)
        terminal.line("[v0, v199]")
        terminal.wait("2 items\nknotwork>")
        terminal.paste("alpha = 1\nb = alpa + 1\nc = 3")
        terminal.keys("Enter")
        terminal.wait("1 more input was not run", "Tab: b = alpha + 1")
        terminal.keys("Tab")
        terminal.wait("... c = 3", times=2)
        terminal.keys("Enter")
        terminal.wait("a number in c")


def test_100_000_rows_a_page_at_a_time(folder: Path) -> None:
    edges = "".join(f"n{number},n{(number * 7 + 1) % 100_000}\n" for number in range(100_000))
    (folder / "big.csv").write_text(f"source,target\n{edges}", encoding="utf-8")
    with Tmux(["repl", "big.csv"], folder, 80, 24) as terminal:
        terminal.wait("knotwork>", seconds=60)
        terminal.line("FIND nodes AS everybody")
        first = terminal.wait("rows 1-19 of 100,000", seconds=60)
        assert len(first.split("\n")) == 24 and first.count("\nn") >= 18
        terminal.keys("Enter")
        second = terminal.wait("rows 1-39 of 100,000")
        assert second.split("\n")[-23] == "id" and second.count("\nn") == 20
        terminal.keys("q")
        terminal.wait("99,961 more rows", "100,000 nodes in everybody", "knotwork>")
        terminal.line("len(everybody)")
        terminal.wait("100000")


def test_ctrl_c_while_all_rows_are_written_keeps_the_session(folder: Path) -> None:
    edges = "".join(f"n{number},n{(number * 7 + 1) % 30_000},{'a,' * 20}b\n" for number in range(30_000))
    names = ",".join(f"c{number}" for number in range(21))
    (folder / "big.csv").write_text(f"source,target,{names}\n{edges}", encoding="utf-8")
    with Tmux(["repl", "big.csv"], folder, 200, 24) as terminal:
        terminal.wait("knotwork>", seconds=60)
        for _ in range(10):  # the rows take a second; a slow terminal may get the key only after the last of them
            terminal.keys("C-l")
            terminal.line("FIND edges AS all")
            terminal.wait("rows 1-19 of 30,000", seconds=60)
            terminal.keys("a", ";", "run-shell", "sleep 0.2", ";", "send-keys", "C-c")
            if "more rows; use .output FILE to write all" in terminal.wait("30,000 edges in all", seconds=60):
                break
        else:
            raise AssertionError("no Ctrl-C of ten reached the rows")
        terminal.line("len(all)")
        terminal.wait("\n30000\n")
        terminal.keys("C-d")
        terminal.wait("left with 0")


def test_a_fix_is_told_once_and_is_not_the_answer_to_another_error(folder: Path) -> None:
    with Tmux(["repl"], folder, 80, 40) as terminal:
        terminal.wait("knotwork>")
        terminal.line("h = [1]")
        terminal.wait("in h")
        terminal.line("lenn(h)")
        terminal.wait("Tab: len(h)")
        terminal.line(".explain EXPR051")
        terminal.wait("EXPR051 ", "Right:")
        terminal.keys("Tab")
        terminal.wait("knotwork> len(h)")
        terminal.keys("C-c")
        terminal.line(".timer off")
        terminal.wait("timer off")
        terminal.line(".mode tabel")
        screen = terminal.wait("Tab: .mode table")
        assert screen.count("Tab: len(h)") == 1
        terminal.keys("Tab", "Enter")
        terminal.wait("mode table")
        terminal.type(".shema")
        terminal.keys("Tab")
        terminal.wait("knotwork> .schema")


def test_an_error_in_a_narrow_terminal_keeps_its_caret_under_what_it_marks(folder: Path) -> None:
    with Tmux(["repl"], folder, 32, 24) as terminal:
        terminal.wait("knotwork>")
        terminal.line("1 + 2 + 3 + 4 + 5 + 6 + 7 + nobody + 8")
        screen = terminal.wait("^^^^^^", "= help")
        lines = screen.split("\n")
        marks = next(number for number, line in enumerate(lines) if "^^^^^^" in line)
        assert lines[marks - 1][lines[marks].index("^") :].startswith("nobody")
        assert "..." not in screen  # a folded line is no new one


def test_results_fit_the_terminal_as_it_is_made_smaller(folder: Path) -> None:
    row = json.dumps({f"column{number}": f"value {number}" for number in range(12)})
    (folder / "wide.txt").write_text(f"(rows)=CONST([{row}])\n", encoding="utf-8")
    with Tmux(["repl"], folder, 120, 30) as terminal:
        terminal.wait("knotwork>")
        terminal.line(".read wide.txt")
        terminal.wait("column11", "1 row in (rows)")
        terminal.resize(50, 30)
        terminal.wait("knotwork>")
        terminal.line("rows")
        screen = terminal.wait("hidden for lack of space")
        assert max(len(line) for line in screen.split("\n")) <= 50
        terminal.line("1 + 1")
        terminal.wait("2")


def test_history_is_kept_and_searched(folder: Path) -> None:
    with Tmux(["repl"], folder, 80, 24) as terminal:
        terminal.wait("knotwork>")
        terminal.line("first = 'one'")
        terminal.wait("in first")
        terminal.line("second = 'two'")
        terminal.wait("in second")
        terminal.keys("C-d")
        terminal.wait("left with 0")
    with Tmux(["repl"], folder, 80, 24) as terminal:
        terminal.wait("knotwork>")
        terminal.keys("C-r")
        terminal.type("fir")
        terminal.wait("first = 'one'")
        terminal.keys("Enter")
        terminal.keys("Enter")
        terminal.wait("in first")


def test_own_settings_are_run_at_the_start_and_colours_can_be_left_out(folder: Path) -> None:
    home = folder / "knotwork"
    home.mkdir()
    (home / "replrc").write_text(".mode csv\n.timer on\n", encoding="utf-8")
    with Tmux(["repl"], folder, 80, 24, {"NO_COLOR": "1"}) as terminal:
        terminal.wait("timer on", "knotwork>")
        terminal.line("[{'a': 1}]")
        terminal.wait(" s", "a\n1")
        assert re.search(r"\x1b\[3[0-7]m", terminal.coloured) is None
    with Tmux(["repl", "--no-rc"], folder, 80, 24) as terminal:
        terminal.wait("knotwork>")
        terminal.line("FIND nodes AS x")
        terminal.wait("needs a graph")
        assert (
            "\x1b[1m\x1b[34mFIND" in terminal.coloured
            or "\x1b[1;34mFIND" in terminal.coloured
            or "34mFIND" in terminal.coloured
        )
        assert "timer" not in terminal.screen


def test_a_step_with_a_long_answer_is_wrapped_and_shown_above_the_prompt(folder: Path) -> None:
    spec = cassette(folder / "answers", {"Tell": "word " * 60})
    with Tmux(["repl", "--llm", spec], folder, 60, 24) as terminal:
        terminal.wait("knotwork>")
        terminal.line('(story)=LLM("Tell me")')
        screen = terminal.wait("1 call")
        assert "word word" in screen and max(map(len, screen.split("\n"))) <= 60


def test_the_picture_of_the_reference(folder: Path, golden) -> None:  # type: ignore[no-untyped-def]
    cassette(
        folder / "answers", {"In one sentence": "Valjean and Gavroche meet more people than anybody else in the story."}
    )
    with Tmux(["repl", MISERABLES, "--llm", "replay:answers"], folder, 84, 31) as terminal:
        terminal.wait("knotwork>")
        terminal.line("FIND nodes WHERE degree > 20 AS hubs")
        terminal.wait("2 nodes in hubs")
        terminal.line('(why)=LLM("In one sentence: why these? {(hubs)}")')
        terminal.wait("1 call")
        terminal.line("RANK hbus BY id AS ranked")
        terminal.wait("Tab: RANK hubs")
        terminal.keys("Tab")
        terminal.wait("knotwork> RANK hubs BY id AS ranked")
        terminal.keys("C-c")
        terminal.wait("knotwork>", times=5)
        terminal.still()
        terminal.type("FIND nodes WHERE degr")
        terminal.keys("Tab")
        terminal.wait("knotwork> FIND nodes WHERE degree", times=2)
        terminal.still()
        terminal.type(" > 5 ")
        terminal.still()
        terminal.keys("Tab")
        terminal.wait(" ORDER ")
        terminal.still()
        screen, picture = terminal.screen, terminal.picture("knotwork repl")
    # Where the menu stands, and how its cells are cut, is the library's matter; every line above it is ours, with its colours.
    above = next(number for number, line in enumerate(screen.split("\n")) if "WHERE degree > 5" in line) + 1
    if not PICTURE.exists() or drawn(PICTURE.read_text(encoding="utf-8"), above) != drawn(picture, above):
        golden.check(PICTURE, picture)


def drawn(picture: str, lines: int) -> list[tuple[str, str, str]]:
    """Return the texts of the first lines of a picture: where each stands, its style, and what it says."""
    styles = dict(re.findall(r"\.screen-(r\d+) \{ ([^}]*)\}", picture))
    found = re.findall(r'<text class="screen-(r\d+)" x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>', picture)
    heights = sorted({float(y) for _, _, y, _ in found})[:lines]
    return [(f"{x} {y}", styles.get(style, ""), text) for style, x, y, text in found if float(y) in heights]
