"""What the Lab page looks like, measured: widths, contrast in light and dark, names of controls, headings, motion; and its picture."""

import struct
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any

import pytest
from support.browsing import Visit, contrast
from support.folders import DOCS
from support.web import Address

pytestmark = pytest.mark.browser

PICTURE = DOCS / "pictures/lab.png"
CASSETTE = DOCS / "examples/answers/quantum.jsonl"

TEXTS = """
() => {
  const parsed = (text) => text.match(/[\\d.]+/g).map(Number);
  const clear = (colour) => colour.length === 4 && colour[3] === 0;
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !element.checkVisibility()) continue;
    if (element.closest("svg title, svg desc, noscript, .skip")) continue;
    const style = getComputedStyle(element);
    const colour = parsed(element.closest("svg") ? style.fill : style.color);
    let ground = element;
    while (ground.parentElement && clear(parsed(getComputedStyle(ground).backgroundColor))) ground = ground.parentElement;
    found.push([node.textContent.trim().slice(0, 40), colour, parsed(getComputedStyle(ground).backgroundColor)]);
  }
  for (const field of document.querySelectorAll("input, textarea, select")) {
    if (!field.checkVisibility()) continue;
    const style = getComputedStyle(field);
    found.push([field.id, parsed(style.color), parsed(style.backgroundColor)]);
  }
  return found;
}
"""
NAMELESS = """
all => all.filter((one) => !(one.labels?.length || one.getAttribute("aria-label") || one.textContent.trim())).map((one) => one.outerHTML)
"""


def run(page: Any, instruct: str) -> None:
    page.fill("#instruct", instruct)
    page.click("#run")


def over(page: Any) -> None:
    page.locator("#rerun").wait_for()


def everything(page: Any) -> None:
    """Have the page show all kinds of text: a marked field, a failed iteration, changes, candidates, a list, a problem."""
    page.click("#more > summary")
    page.fill("#attempts", "2")
    page.fill("#iter_max", "3")
    run(page, "Name a colour. " + "w" * 200 + " [[scores 0.4|0.3 0.9|0.5]] [[refuse 1 1]]")
    over(page)
    for summary in page.locator(".others > summary").all():
        summary.click()
    page.locator(".views button").last.click()
    page.fill("#judges", "99")
    page.click("#run")
    page.evaluate("document.querySelector('#key').hidden = false")
    page.evaluate(
        "document.querySelector('#no-judge').hidden = false; document.querySelector('#no-judge').textContent = 'Note'"
    )


def test_every_text_has_contrast(visit: Visit) -> None:
    page = visit.ready()
    everything(page)
    for mode in ("light", "dark"):
        page.emulate_media(color_scheme=mode, reduced_motion="reduce")
        measured = page.evaluate(TEXTS)
        assert len(measured) > 50
        weak = [(text, round(contrast(*pair), 2)) for text, *pair in measured if contrast(*pair) < 4.5]
        assert weak == [], mode
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).map(Number)")
        assert (max(ground[:3]) < 64) == (mode == "dark")


def test_borders_of_controls_and_the_focus_have_contrast(visit: Visit) -> None:
    page = visit.ready()
    page.focus("#instruct")
    for mode in ("light", "dark"):
        page.emulate_media(color_scheme=mode)
        border, outline, panel = page.evaluate("""() => {
          const style = getComputedStyle(document.querySelector("#instruct"));
          const panel = getComputedStyle(document.querySelector(".panel")).backgroundColor;
          return [style.borderTopColor, style.outlineColor, panel].map((text) => text.match(/[\\d.]+/g).map(Number));
        }""")
        assert contrast(border, panel) >= 3, mode
        assert contrast(outline, panel) >= 3, mode
    assert page.evaluate("getComputedStyle(document.querySelector('#instruct')).outlineWidth") == "3px"


def test_nothing_is_wider_than_the_screen(visit: Visit) -> None:
    page = visit.ready()

    def wide() -> list[int]:
        found = []
        for width in (320, 360, 768, 960, 1280):
            page.set_viewport_size({"width": width, "height": 740})
            if page.evaluate("document.documentElement.scrollWidth") > width:
                found.append(width)
        return found

    assert wide() == []
    everything(page)
    assert wide() == []


def test_one_column_on_a_phone_and_two_on_a_wide_screen(visitor: Callable[..., Visit], app: Address) -> None:
    def places(width: int) -> tuple[Any, Any]:
        page = visitor(app.url, viewport={"width": width, "height": 740}).ready()
        return page.locator(".ask").bounding_box(), page.locator(".run").bounding_box()

    form, results = places(360)
    assert results["y"] >= form["y"] + form["height"]
    form, results = places(1280)
    assert results["x"] >= form["x"] + form["width"]
    assert results["y"] == form["y"]


def test_what_is_pressed_with_a_finger_is_large_enough(visitor: Callable[..., Visit], app: Address) -> None:
    page = visitor(app.url, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True).ready()
    everything(page)
    for button in page.locator("button:visible").all():
        assert button.bounding_box()["height"] >= 44, button.inner_text()


def test_every_control_has_a_name(visit: Visit) -> None:
    page = visit.ready()
    everything(page)
    assert page.locator("input, textarea, select, button, a, summary").evaluate_all(NAMELESS) == []


def test_headings_are_in_order(visit: Visit) -> None:
    page = visit.ready()
    everything(page)
    levels = page.locator("h1, h2, h3, h4").evaluate_all(
        "all => all.filter((one) => one.checkVisibility()).map((one) => +one.tagName[1])"
    )
    assert levels[0] == 1 and levels.count(1) == 1
    assert [pair for pair in pairwise(levels) if pair[1] > pair[0] + 1] == []


def test_progress_is_announced_and_time_is_not(visit: Visit) -> None:
    page = visit.ready()
    assert page.locator("#state").get_attribute("role") == "status"  # polite by its role
    assert page.locator("#elapsed").get_attribute("role") == "timer"  # silent by its role
    assert page.locator("#chart svg").get_attribute("role") == "img"


def test_nothing_moves_for_who_wants_it_so(visitor: Callable[..., Visit], app: Address) -> None:
    page = visitor(app.url, reduced_motion="reduce").ready()
    run(page, "Name a snail. [[scores 0.4]] [[delay 1]]")
    page.locator("#chart .waiting").wait_for()
    assert page.evaluate("getComputedStyle(document.querySelector('#chart .waiting')).animationName") == "none"
    assert page.evaluate("document.getAnimations().length") == 0
    page.click("#stop")
    over(page)


def test_ten_iterations_on_a_phone_keep_their_numbers_apart(visitor: Callable[..., Visit], app: Address) -> None:
    page = visitor(app.url, viewport={"width": 320, "height": 740}).ready()
    page.fill("#iter_max", "10")
    run(page, "Name a bee. [[scores 0.1 0.2 0.3 0.5 0.4 0.4 0.4 0.4 0.4 0.3]]")
    over(page)
    boxes = [value.bounding_box() for value in page.locator("#chart .value").all()]
    assert page.locator("#chart .value").all_text_contents() == ["0.50", "0.30"]
    assert boxes[0]["x"] + boxes[0]["width"] < boxes[1]["x"]
    assert page.locator("#chart .dot").count() == 10


def test_long_answers_are_not_compared_for_long(visit: Visit) -> None:
    page = visit.ready()
    took = page.evaluate("""async () => {
      const {changes} = await import("./lab/static/js/changes.js");
      const words = (seed) => Array.from({length: 5000}, (_, n) => `w${(n * seed) % 7919}`).join(" ");
      const began = performance.now();
      return [changes(words(13), words(4021)), changes("x".repeat(200000), "y"), performance.now() - began];
    }""")
    assert took[:2] == [None, None]
    assert took[2] < 2000


def test_no_text_can_become_markup_since_types_are_trusted(visit: Visit) -> None:
    page = visit.ready()
    policy = page.request.get(visit.url + "/lab").headers["content-security-policy"]
    assert "require-trusted-types-for 'script'; trusted-types 'none'" in policy
    everything(page)


def test_the_picture_for_the_tutorial(
    visitor: Callable[..., Visit], serving: Callable[..., AbstractContextManager[Address]], pytestconfig: pytest.Config
) -> None:
    with serving(llm=f"replay:{CASSETTE}") as app:
        page = visitor(app.url).ready()
        page.get_by_role("button", name="Quantum computing").click()
        page.click("#run")
        over(page)
        page.reload()
        over(page)
        page.locator("#iteration-3 .views button").last.click()
        if pytestconfig.getoption("--update-golden"):
            PICTURE.parent.mkdir(exist_ok=True)
            page.screenshot(path=str(PICTURE), full_page=True)
    head = PICTURE.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    assert struct.unpack(">I", head[16:20]) == (1280,)
