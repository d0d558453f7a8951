"""What is shown: pictures that can be read, texts that terminals don't obey, outputs that don't depend on time."""

import re
import xml.etree.ElementTree as ET
from itertools import pairwise
from typing import Any

import networkx
import pytest
from IPython.utils.capture import capture_output
from knotwork.runtime.api.data_flow import Box
from knotwork.runtime.interfaces.notebook.display import caption_html
from knotwork.runtime.interfaces.notebook.flow_diagram import HIGH, lay_out
from support.notebooks import answering
from support.shells import Shell

MISERABLES = "%kw open nx:les_miserables"


def test_names_in_a_graph_reach_no_terminal_as_they_are(shell: Shell) -> None:
    names = {0: "\x1b[41mRED\x1b]0;pwn\x07", 1: "a\u202eb", 2: "c"}
    shell.names["mine"] = networkx.relabel_nodes(networkx.path_graph(3), names)
    shell.run("%kw open mine")
    shell.run("%%gasl\nDECLARE found AS LIST\nFIND nodes AS each\nUPDATE found WITH each")
    told = shell.run("%kw evidence")
    assert told.error is None and "\\x1b[41mRED" in told.text and "a\\u202eb" in told.text
    assert not re.search("[\x1b\x07\u202e]", told.text + told.html)


def test_a_picture_of_two_nodes_is_small_and_told_of_once(shell: Shell) -> None:
    shell.run(MISERABLES)
    shell.run(
        '%%gasl\nDECLARE found AS LIST\nFIND nodes WHERE id IN ["Napoleon", "Brujon"] AS two\nUPDATE found WITH two'
    )
    told = shell.run("%kw evidence")
    assert len(told.shown) == 1 and told.text == "2 nodes and 0 edges between them: Napoleon, Brujon"
    root = ET.fromstring(told.html[: told.html.index("</svg>") + 6])
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    assert height < 300
    for circle in root.iter("{http://www.w3.org/2000/svg}circle"):
        assert left < float(circle.attrib["cx"]) < left + width and top < float(circle.attrib["cy"]) < top + height


def test_a_line_past_a_row_goes_between_its_boxes() -> None:
    boxes = [Box("a", "X", ""), Box("b", "X", "", (0,), layer=1), Box("c", "X", "", (0,), layer=1)]
    boxes.append(Box("d", "X", "", (0, 1, 2), layer=2))
    laid = lay_out(boxes, [80.0] * len(boxes))
    stands = list(laid.places.values())
    for _, other, arrives in laid.lines:
        inside = [spot for spot in stands if spot.y == other.y and spot.x <= other.middle <= spot.x + spot.width]
        assert len(inside) == (1 if arrives else 0)
    for row in {spot.y for spot in stands}:
        placed = sorted((spot for spot in stands if spot.y == row), key=lambda spot: spot.x)
        assert all(one.x + one.width <= other.x for one, other in pairwise(placed))
    assert laid.height > 3 * HIGH


def test_a_key_inside_of_another_one_is_below_it(shell: Shell) -> None:
    shell.run(MISERABLES)
    told = shell.run("%%gasl --plan\nDECLARE story AS DICT\nDECLARE story.centre AS LIST")
    assert told.text.splitlines() == [
        "data flow: story, story.centre",
        "story · DECLARE",
        "story.centre · DECLARE ← story",
    ]
    assert 'aria-label="data flow: story, story.centre"' in told.html


@pytest.mark.parametrize(("ink", "paper"), [("#000000", "#ffffff"), ("#d4d4d4", "#111111"), ("#cccccc", "#1e1e1e")])
def test_colours_can_be_read_on_light_and_on_dark_paper(ink: str, paper: str) -> None:
    style = caption_html("x")
    mixed = re.findall(r"color-mix\(in srgb,(#\w{6}) (\d+)%,currentColor\)", style)
    assert len(mixed) == 3
    for colour, share in mixed:
        assert _contrast(_mixed(colour, ink, int(share) / 100), _rgb(paper)) >= 4.5, (colour, paper)
    assert _contrast(_mixed(ink, paper, 0.72), _rgb(paper)) >= 4.5


def _rgb(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))


def _mixed(one: str, other: str, share: float) -> tuple[float, ...]:
    return tuple(share * a + (1 - share) * b for a, b in zip(_rgb(one), _rgb(other), strict=True))


def _contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    def light(colour: tuple[float, ...]) -> float:
        parts = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_a_wide_table_says_in_its_text_what_is_left_out(shell: Shell) -> None:
    shell.names["wide"] = [{f"column{n}": n for n in range(300)}] * 3
    text = shell.run("%kw wide").text
    shown = len(text.splitlines()[0].split())
    assert f"{300 - shown} more columns" in text and "3 rows" in text


def test_the_timer_says_nothing_of_what_was_not_run(shell: Shell) -> None:
    shell.run("%kw timer on")
    assert " s" in shell.run("%kw 1 + 1").text
    assert "0.0" not in shell.run("%kw nosuchvalue").text and shell.run("%kw value nosuch").text == ""


@pytest.mark.slow
def test_a_line_of_progress_becomes_the_result(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOTWORK_API_KEY", "x")
    shell.shell.kernel = object()  # where outputs can be changed
    shell.run("%reload_ext knotwork")
    with answering(delay=1.0) as spec:
        shell.run(f"%kw open --llm {spec} --no-cache")
        outputs = _outputs(shell, '%%lwt\n(a)=LLM("p1")')
    assert not outputs[0]["update"]
    assert {each["id"] for each in outputs} == {outputs[0]["id"]} and len(outputs) > 1
    assert "waiting for a model" in outputs[0]["text"] and outputs[0]["metadata"] == {"knotwork": "progress"}
    assert " in (a) · 1 call" in outputs[-1]["text"] and not outputs[-1]["metadata"]


def _outputs(shell: Shell, cell: str) -> list[dict[str, Any]]:
    with capture_output() as taken:
        shell.shell.run_cell(cell)
    return [
        {"text": each.data.get("text/plain", ""), "metadata": each.metadata, "update": each.update, "id": each.transient["display_id"]}
        for each in taken.outputs
    ]  # fmt: skip
