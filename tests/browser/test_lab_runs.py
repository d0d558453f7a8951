"""The Lab page at work: a real browser, a real server, and a model server whose answers and scores are known."""

import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from support.browsing import Visit
from support.web import Address

pytestmark = pytest.mark.browser

WATCH = """
window.shifts = [];
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) shifts.push(entry.value);
}).observe({type: "layout-shift", buffered: true});
window.said = [];
addEventListener("DOMContentLoaded", () => new MutationObserver((changes) => {
  for (const change of changes) for (const node of change.addedNodes) said.push(node.textContent);
}).observe(document.querySelector("#state"), {childList: true}));
"""


def fill(page: Any, instruct: str, **values: object) -> None:
    page.fill("#instruct", instruct)
    if {"attempts", "judges", "checks", "template"} & set(values) and page.locator("#more").get_attribute(
        "open"
    ) is None:
        page.click("#more > summary")
    for name, value in values.items():
        page.fill(f"#{name}", str(value))


def run(page: Any, instruct: str, **values: object) -> None:
    fill(page, instruct, **values)
    page.click("#run")


def over(page: Any) -> str:
    """Wait for the end and return what is said of it."""
    page.locator("#rerun").wait_for()
    return str(page.inner_text("#state"))


def shown(page: Any, selector: str, text: str) -> None:
    page.locator(selector).filter(has_text=text).wait_for()


def told(page: Any) -> str:
    """Return what the chart says to those who don't see it."""
    return str(page.locator("#chart desc").text_content())


def test_three_iterations_arrive_one_after_another(visit: Visit) -> None:
    visit.page.add_init_script(WATCH)
    page = visit.ready()
    run(page, "Name a fish. [[scores 0.4 0.7 0.9]] [[delay 0.2 1.5 0.2]]", iter_max=5, score_threshold=0.85)
    shown(page, "#state", "Iteration 1: 0.40. Iteration 2 of 5: writing")
    assert page.locator("#chart .waiting").count() == 1
    assert page.inner_text("#iteration-1 .answer").startswith("This is draft 1.")
    assert page.inner_text("#iteration-1 .badge") == "best so far"
    assert told(page) == "The threshold is 0.85. Iteration 1: 0.40. The best is iteration 1."
    assert page.locator("#iteration-3").count() == 0
    assert page.locator("#rerun").is_hidden()
    shown(page, "#iteration-2 .score", "0.70")
    assert page.locator("#iteration-1 .badge").is_hidden()
    ended = "Accepted: iteration 3 scored 0.90, and the threshold is 0.85"
    assert over(page) == ended
    assert page.evaluate("said") == [
        "Starting",
        "Iteration 1 of 5: writing",
        "Iteration 1 of 5: judging",
        "Iteration 1 of 5: 0.40",
        "Iteration 1: 0.40. Iteration 2 of 5: writing",
        "Iteration 1: 0.40. Iteration 2 of 5: judging",
        "Iteration 1: 0.40. Iteration 2 of 5: 0.70",
        "Iteration 2: 0.70. Iteration 3 of 5: writing",
        "Iteration 2: 0.70. Iteration 3 of 5: judging",
        "Iteration 2: 0.70. Iteration 3 of 5: 0.90",
        ended,
    ]
    assert page.locator(".round").count() == 3
    assert page.inner_text("#iteration-3 .badge") == "accepted"
    assert page.locator(".round.best").get_attribute("id") == "iteration-3"
    assert sum(page.evaluate("shifts")) < 0.02


def test_the_chart_shows_scores_threshold_and_the_best(visit: Visit) -> None:
    page = visit.ready()
    run(page, "Name a plant. [[scores 0.6 0.3 0.5]]", iter_max=3, score_threshold=0.9)
    assert over(page) == "Threshold not reached: no iteration scored 0.90; the best is iteration 1 with 0.60"
    assert page.locator("#chart .value").all_text_contents() == ["0.60", "0.30", "0.50"]
    assert page.text_content("#chart .threshold-name") == "0.90"
    heights = [float(dot.get_attribute("cy")) for dot in page.locator("#chart .dot").all()]
    line = float(page.locator("#chart .threshold").get_attribute("y1"))
    assert line < heights[0] < heights[2] < heights[1]  # y grows downwards
    assert page.locator("#chart .ring").get_attribute("cy") == page.locator("#chart .dot").first.get_attribute("cy")
    assert (
        told(page)
        == "The threshold is 0.90. Iteration 1: 0.60, iteration 2: 0.30, iteration 3: 0.50. The best is iteration 1."
    )
    assert "threshold: 0.90" in page.inner_text("#legend")
    assert page.inner_text(".round.best .badge") == "best"


def test_a_card_has_answer_evaluation_and_what_it_took(visit: Visit) -> None:
    page = visit.ready()
    run(page, "Name a bird. [[scores 0.4 0.9]]")
    over(page)
    card = page.inner_text("#iteration-1")
    for text in ("This is draft 1.", "Draft 1 is worth 0.4.", "Say more than in draft 1.", "Give an example."):
        assert text in card
    assert re.search(r"2 calls · \d+ tokens in, \d+ out · \d+\.\d s", page.inner_text("#iteration-1 .facts"))
    assert page.inner_text("#total").startswith("4 calls · ")


def test_changes_are_marked_word_by_word(visit: Visit) -> None:
    page = visit.ready()
    run(page, "Name a tree. [[scores 0.4 0.9]]")
    over(page)
    assert page.locator("#iteration-1 .views").is_hidden()
    changed = page.get_by_role("button", name="Changes since iteration 1")
    changed.click()
    assert changed.get_attribute("aria-pressed") == "true"
    assert page.locator("#iteration-2 del").all_inner_texts() == ["1"]
    assert page.locator("#iteration-2 ins").all_inner_texts() == ["2", "An analogy makes it easier to follow."]
    page.get_by_role("button", name="Answer", exact=True).last.click()
    assert page.locator("#iteration-2 ins").count() == 0


def test_what_was_rewritten_is_read_whole(visit: Visit) -> None:
    page = visit.ready()
    pairs = page.evaluate("""async () => {
      const {changes} = await import("./lab/static/js/changes.js");
      const shown = (before, after) => changes(before, after).map((node) => node.tagName ? `${node.tagName}:${node.textContent}` : node);
      return [
        shown("Tea is hot. I like the taste of it in the evening.", "Tea is hot. We drink the first cup of coffee in the morning."),
        shown("same", "same"), shown("", "new"), shown("old", ""), shown("a b c d e f", "a b X d e f"),
      ];
    }""")
    assert pairs == [
        ["Tea is hot. ", "DEL:I like the taste of it in the evening", "INS:We drink the first cup of coffee in the morning", "."],
        ["same"], ["", "INS:new"], ["DEL:old", ""], ["a b ", "DEL:c", "INS:X", " d e f"],
    ]  # fmt: skip


def test_several_candidates_are_shown_with_the_one_that_counts_first(visit: Visit) -> None:
    page = visit.ready()
    run(page, "Name a stone. [[scores 0.3|0.9]]", attempts=2)
    over(page)
    assert "version 2" in page.inner_text("#iteration-1 .answer >> nth=0")
    page.click("#iteration-1 .others > summary")
    # Which of the two calls reaches the model first, and so gets the worse answer, is not promised.
    assert re.search(r"Candidate [12]: 0\.30", page.inner_text("#iteration-1 .others"))
    assert page.locator("#chart .other").count() == 1


def test_a_failed_iteration_says_why_and_is_not_the_best(visit: Visit) -> None:
    page = visit.ready()
    run(page, "Name a cloud. [[scores 0.5]] [[refuse 1]]", iter_max=2, score_threshold=0.9)
    over(page)
    assert page.inner_text("#iteration-1 .score") == "no score"
    assert page.inner_text("#iteration-1 .wrong").startswith("No answer: ")
    assert page.locator("#chart .cross").count() == 1
    assert page.locator(".round.best").get_attribute("id") == "iteration-2"
    assert "Iteration 1: no score" in told(page)


def test_a_run_without_any_answer_says_so(visit: Visit) -> None:
    page = visit.ready()
    run(page, "Name a sin. [[refuse always]]", iter_max=2)
    assert over(page) == "Failed: no answer"
    assert page.locator("#run-problem strong").inner_text() == "No answer was evaluated"
    assert "declined" in page.inner_text("#run-problem")
    assert page.locator("#final").is_hidden()


def test_a_run_is_stopped_in_the_middle(visit: Visit) -> None:
    page = visit.ready()
    run(page, "Name a river. [[scores 0.4 0.5 0.6]] [[delay 0.1 5]]")
    shown(page, "#state", "Iteration 2 of")
    began = time.monotonic()
    page.click("#stop")
    assert over(page) == "Stopped; the best is iteration 1 with 0.40"
    assert time.monotonic() - began < 3
    assert page.locator("#stop").is_hidden()
    assert page.evaluate("document.activeElement.id") == "run-title"
    shown(page, "#runs li[aria-current=true]", "stopped · 0.40 · 1 iteration")


def test_what_a_model_writes_is_text_and_nothing_else(visit: Visit) -> None:
    page = visit.ready()
    run(page, "Write markup")
    over(page)
    page.get_by_role("button", name="Changes since iteration 1").click()
    text = page.inner_text("#rounds")
    for piece in (
        "<script>window.stolen = 1</script>",
        "<iframe srcdoc=",
        "<style>body",
        "{{ 7 * 7 }}",
        "<!--",
        '<a href="javascript:',
    ):
        assert piece in text
    assert page.locator("#rounds").locator("script, img, iframe, style, a, b").count() == 0
    assert page.evaluate("window.stolen") is None


def test_the_answer_is_shown_and_copied(visitor: Callable[..., Visit], app: Address) -> None:
    visit = visitor(app.url, permissions=["clipboard-read", "clipboard-write"])
    page = visit.ready()
    run(page, "Name a fruit. [[scores 0.9]]")
    over(page)
    page.click("#copy")
    shown(page, "#copied", "Copied")
    assert page.evaluate("navigator.clipboard.readText()") == page.inner_text("#iteration-1 .answer")
    page.click("#iteration-1 summary >> nth=0")
    page.click("#show")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Answer of iteration 1"


def test_events_are_read_however_they_are_cut(visit: Visit) -> None:
    read = visit.ready().evaluate("""async () => {
      const {events} = await import("./lab/static/js/sse.js");
      const text = ': hello\\r\\n\\r\\nevent: one\\ndata: {"a":\\ndata: 1}\\nid: 7\\n\\ndata:"é😀\\u2028"\\r\\rid: 9\\r\\nevent:two\\r\\n' +
        'retry: 5\\r\\ndata: []\\r\\n\\r\\ndata: "cut off"\\n';
      const bytes = new TextEncoder().encode(text);
      const found = new Set();
      for (let size = 1; size <= bytes.length; size++) {
        const pieces = [];
        for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.slice(at, at + size));
        const body = new ReadableStream({start(control) { pieces.forEach((one) => control.enqueue(one)); control.close(); }});
        const all = [];
        for await (const event of events({body})) all.push(event);
        found.add(JSON.stringify(all));
      }
      return [...found].map((one) => JSON.parse(one));
    }""")
    assert read == [[
        {"id": "7", "name": "one", "data": {"a": 1}},
        {"id": "7", "name": "message", "data": "é😀\u2028"},
        {"id": "9", "name": "two", "data": []},
    ]]  # fmt: skip


def test_what_is_wrong_is_marked_at_its_field(visit: Visit) -> None:
    visit.allow(422)
    page = visit.ready()
    run(page, " ", iter_max=44)
    assert page.locator("[aria-invalid=true]").evaluate_all("all => all.map((one) => one.id)") == [
        "instruct",
        "iter_max",
    ]
    assert page.inner_text("#instruct-fault") == "The instruction is empty"
    assert page.inner_text("#iter_max-fault") == "Must be a whole number from 1 to 10"
    assert page.evaluate("document.activeElement.id") == "instruct"
    assert not [url for url in visit.requests if url.endswith("/stream")]  # the server need not be asked
    fill(page, "Name a metal.", iter_max=3)
    assert page.locator("[aria-invalid=true]").count() == 0


def test_what_the_server_finds_wrong_is_marked_at_its_field(visit: Visit) -> None:
    visit.allow(422)
    page = visit.ready()
    fill(page, "Name a metal.", checks="words:1..5\nregex:(")
    page.click("#more > summary")  # closed: it is opened again for what is wrong in it
    page.click("#run")
    shown(page, "#checks-fault", "'('")
    assert page.evaluate("document.activeElement.id") == "checks"
    assert page.locator("#checks").get_attribute("aria-describedby").endswith("checks-fault")
    assert page.locator("#run").get_attribute("aria-disabled") == "false"
    page.fill("#checks", "")
    page.fill("#judges", "0")
    page.click("#run")
    shown(page, "#judges-fault", "give checks")
    assert page.evaluate("document.activeElement.id") == "judges"


def test_the_keyboard_is_enough(visit: Visit) -> None:
    page = visit.ready()

    def go_to(name: str) -> None:
        for _ in range(60):
            if page.evaluate("document.activeElement.id || document.activeElement.textContent") == name:
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"{name} is not reached by Tab")

    go_to("Skip to the form")
    page.keyboard.press("Enter")
    go_to("Quantum computing")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "instruct"
    page.keyboard.press("Control+A")
    page.keyboard.type("Name a star. [[scores 0.4 0.9]] [[delay 0.2 3]]")
    go_to("run")
    page.keyboard.press("Enter")
    shown(page, "#state", "Iteration 2 of 5")
    assert page.evaluate("document.activeElement.id") == "run"  # the focus stays where it was
    go_to("stop")
    page.keyboard.press("Enter")
    assert over(page).startswith("Stopped")
    page.focus("#instruct")
    page.keyboard.press("Control+Enter")
    page.locator("#stop").wait_for()
    page.click("#stop")
    over(page)


def test_more_runs_than_the_server_takes_are_a_problem(
    visitor: Callable[..., Visit], serving: Callable[..., AbstractContextManager[Address]]
) -> None:
    with serving("--max-runs", "1") as small:
        one, visit = visitor(small.url).ready(), visitor(small.url)
        visit.allow(503)
        run(one, "Name a wait. [[delay 5]]")
        one.locator("#stop").wait_for()
        page = visit.ready()
        run(page, "One too many.")
        shown(page, "#run-problem", "The server is busy")
        assert page.evaluate("document.activeElement.id") == "run-problem"
        assert page.locator("#run").get_attribute("aria-disabled") == "false"
