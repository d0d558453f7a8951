"""Earlier runs on the Lab page: found again after a reload and a restart, followed while they go, run again, deleted; and keys."""

import re
import signal
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest
from support.browsing import Visit
from support.web import Address, served_app

pytestmark = pytest.mark.browser

Serving = Callable[..., AbstractContextManager[Address]]


def run(page: Any, instruct: str) -> None:
    page.fill("#instruct", instruct)
    page.click("#run")


def over(page: Any) -> str:
    page.locator("#rerun").wait_for()
    return str(page.inner_text("#state"))


def shown(page: Any, selector: str, text: str) -> None:
    page.locator(selector).filter(has_text=text).first.wait_for()


def named(page: Any) -> str:
    """Return the run that the address names."""
    return str(page.url.partition("#run=")[2])


def test_a_reload_finds_the_run_again_with_its_values(visit: Visit) -> None:
    page = visit.ready()
    page.fill("#resp_format", "One word")
    page.fill("#iter_max", "4")
    run(page, "Name a boat. [[scores 0.4 0.9]]")
    ended = over(page)
    first = named(page)
    page.reload()
    assert over(page) == ended
    assert named(page) == first
    assert [page.input_value(f"#{name}") for name in ("resp_format", "iter_max")] == ["One word", "4"]
    assert page.input_value("#instruct").startswith("Name a boat.")
    assert page.locator("#runs li[aria-current=true] .what").inner_text().startswith("Name a boat.")
    assert page.locator("#iteration-2 > details").get_attribute("open") is not None  # the answer
    assert page.locator("#iteration-1 > details").get_attribute("open") is None


def test_a_reload_follows_the_run_that_goes_on(visit: Visit) -> None:
    page = visit.ready()
    run(page, "Name a train. [[scores 0.4 0.5 0.9]] [[delay 0.1 0.8 1.2]]")
    shown(page, "#state", "Iteration 2 of")
    first = named(page)
    page.reload()
    shown(page, "#iteration-1 .score", "0.40")
    assert page.locator("#stop").is_visible()
    assert page.locator("#run").get_attribute("aria-disabled") == "true"
    assert over(page).startswith("Accepted: iteration 3")
    assert named(page) == first
    assert page.locator("#run").get_attribute("aria-disabled") == "false"


def test_a_running_one_is_opened_from_the_list_and_stopped(visitor: Callable[..., Visit], app: Address) -> None:
    one, other = visitor(app.url).ready(), visitor(app.url).ready()
    run(one, "Name a plane. [[scores 0.4]] [[delay 0.1 5]]")
    shown(one, "#state", "Iteration 2 of")
    other.evaluate("dispatchEvent(new Event('focus'))")  # whoever comes back to the page sees what is new
    other.locator("#runs a").filter(has_text="Name a plane.").click()
    shown(other, "#state", "Iteration 2 of")
    other.click("#stop")
    assert over(other) == over(one) == "Stopped; the best is iteration 1 with 0.40"


def test_a_run_is_run_again(visit: Visit) -> None:
    page = visit.ready()
    run(page, "Name a shoe. [[scores 0.9]]")
    over(page)
    first = named(page)
    page.click("#rerun")
    page.wait_for_function("first => !location.hash.endsWith(first)", arg=first)
    assert over(page).startswith("Accepted")
    page.go_back()
    page.wait_for_function("first => location.hash.endsWith(first)", arg=first)
    shown(page, "#runs li[aria-current=true]", "Name a shoe.")


def test_a_run_is_deleted_at_the_second_press(visit: Visit) -> None:
    page = visit.ready()
    run(page, "Name a sock. [[scores 0.9]]")
    over(page)
    item = page.locator("#runs li").filter(has_text="Name a sock.")
    button = item.get_by_role("button", name=re.compile("^Delete: Name a sock"))
    button.click()
    assert item.locator("button").inner_text() == "Really?"
    page.focus("#instruct")
    assert item.locator("button").inner_text() == "Delete"  # who goes on to something else did not mean it
    button.click()
    item.get_by_role("button", name=re.compile("^Really delete: ")).click()
    item.wait_for(state="detached")
    assert page.evaluate("document.activeElement.id") == "history-title"
    shown(page, "#state", "Nothing has run yet")
    assert named(page) == ""


def test_what_was_deleted_elsewhere_goes_from_the_list(visitor: Callable[..., Visit], serving: Serving) -> None:
    with serving() as app:
        page = visitor(app.url).ready()
        for name in ("One", "Two"):
            run(page, f"{name} [[scores 0.9]]")
            shown(page, "#runs li[aria-current=true]", f"{name} [[")
            over(page)
        assert page.locator("#runs .what").all_inner_texts() == ["Two [[scores 0.9]]", "One [[scores 0.9]]"]
        with app.client() as client:
            client.delete(f"/lab/runs/{client.get('/lab/runs').json()['runs'][1]['id']}").raise_for_status()
        page.evaluate("dispatchEvent(new Event('focus'))")
        page.locator("#runs li >> nth=1").wait_for(state="detached")
        assert page.locator("#runs .what").all_inner_texts() == ["Two [[scores 0.9]]"]


def test_a_run_that_is_not_there_is_a_problem(visit: Visit) -> None:
    visit.allow(404)
    page = visit.open("/lab#run=" + "0" * 32)
    shown(page, "#run-problem", "Unknown run")
    assert page.evaluate("document.activeElement.id") == "run-problem"


def test_older_runs_are_fetched(visitor: Callable[..., Visit], serving: Serving) -> None:
    with serving() as app:
        with app.client() as client:
            for number in range(23):
                asked = {"instruct": f"Count {number} [[scores 0.9]]", "resp_format": "", "eval_crit": "good"}
                client.post("/lab/generate-answer", json=asked).raise_for_status()
        page = visitor(app.url).ready()
        page.locator("#runs li >> nth=19").wait_for()
        assert page.locator("#runs li").count() == 20
        page.click("#older")
        page.locator("#runs li >> nth=22").wait_for()
        assert page.locator("#older").is_hidden()
        assert page.locator("#runs .what").first.inner_text().startswith("Count 22")
        assert page.locator("#runs .what").last.inner_text().startswith("Count 0")


def test_history_survives_a_killed_server_and_so_does_the_page(
    visitor: Callable[..., Visit], model: str, tmp_path: Path
) -> None:
    with served_app(tmp_path, llm=model) as app:
        visit = visitor(app.url)
        visit.allow_no_server()
        page = visit.ready()
        run(page, "Name a lamp. [[scores 0.4]] [[delay 0.1 5]]")
        shown(page, "#state", "Iteration 2 of")
        app.stop(signal.SIGKILL)
    shown(page, "#state", "The connection was lost; reconnecting")
    port = app.url.rpartition(":")[2]
    with served_app(tmp_path, "--port", port, llm=model) as again:
        assert again.url == app.url
        assert over(page) == "The server stopped before the run ended; the best is iteration 1 with 0.40"
        page.reload()
        assert over(page) == "The server stopped before the run ended; the best is iteration 1 with 0.40"
        shown(page, "#runs li", "interrupted · 0.40")


def test_a_server_that_is_not_there_is_told_and_tried_again(visitor: Callable[..., Visit], serving: Serving) -> None:
    with serving() as app:
        visit = visitor(app.url)
        visit.allow_no_server()
        visit.page.route("**/lab/about", lambda route: route.abort())
        page = visit.open()
        shown(page, "#unreachable", "The server does not respond")
        page.unroute("**/lab/about")
        page.click("#again")
        page.locator("#examples button").first.wait_for()
        assert page.locator("#unreachable").is_hidden()


def test_a_wrong_key_is_told_and_the_right_one_is_kept_in_this_tab_only(
    visitor: Callable[..., Visit], serving: Serving
) -> None:
    with serving(key=True) as app:
        visit = visitor(app.url)
        visit.allow(401)
        page = visit.open()
        page.locator("#key").wait_for()
        assert page.evaluate("document.activeElement.id") == "key-field"
        assert page.locator("#run").is_hidden()
        assert page.locator("#key-field").get_attribute("type") == "password"
        assert page.locator("#key-field").get_attribute("autocomplete") == "off"
        page.keyboard.type("kw_wrong")
        page.keyboard.press("Enter")
        shown(page, "#key-fault", "The key is unknown")
        assert page.locator("#key-field").get_attribute("aria-invalid") == "true"
        assert page.evaluate("document.activeElement.id") == "key-field"
        assert page.evaluate("sessionStorage.length") == 0
        page.keyboard.type(app.key)
        page.keyboard.press("Enter")
        page.locator("#examples button").first.wait_for()
        assert page.locator("#key").is_hidden()
        run(page, "Name a lock. [[scores 0.9]]")
        assert over(page).startswith("Accepted")
        page.reload()
        assert over(page).startswith("Accepted")
        assert page.evaluate("[localStorage.length, document.cookie]") == [0, ""]
        assert app.key not in page.content() + "".join(visit.requests)
        page.click("#forget")
        page.locator("#key").wait_for()
        assert page.evaluate("sessionStorage.length") == 0
        assert page.locator("#runs li").count() == 0


def test_a_key_of_odd_signs_is_refused_before_it_is_sent(visitor: Callable[..., Visit], serving: Serving) -> None:
    with serving(key=True) as app:
        visit = visitor(app.url)
        visit.allow(401)
        page = visit.open()
        page.locator("#key").wait_for()
        for key, said in (("", "Enter your key"), ("kw_é", "A key contains only letters, digits and punctuation")):
            page.fill("#key-field", key)
            page.click("#key-form button")
            shown(page, "#key-fault", said)
