"""A report in Chromium: it opens from the disk, asks nobody for anything, and everything on it opens by mouse and by key."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from knotwork.runtime.api.reports import read_account, render_run, render_state
from support.browsing import Visit, contrast
from support.traversing import Planning, asked, plan

pytestmark = pytest.mark.browser

HOSTILE = '</pre><img src="http://127.0.0.1:9/x"><script>console.error("ran")</script>'


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page of a searched question, and that of its state. The model's texts are hostile."""
    folder = tmp_path_factory.mktemp("report")

    def judged(prompt: str) -> str:
        return json.dumps({"reason": "so far", "score": 0.9 if "The old" in prompt else 0.3})

    model = Planning(
        plan("DECLARE k AS LIST", "FIND nodes WHERE age > 30 AS old", "UPDATE k WITH old", hypothesis=HOSTILE),
        json.dumps({"complete": f"The old ones. {HOSTILE}", "evidence": []}), answers=judged,
    )  # fmt: skip
    with ThreadPoolExecutor(1) as beside:  # playwright's own loop runs in this thread
        beside.submit(asked, model, f"Who writes? {HOSTILE}", folder / "state", search="beam").result()
    (run,) = (folder / "state" / "asks").iterdir()
    account = read_account(run)
    (folder / "run.html").write_text(render_run(account), encoding="utf-8")
    (folder / "state.html").write_text(
        render_state({"variables": {}, "query": HOSTILE}, None, [account]), encoding="utf-8"
    )
    return folder


@pytest.mark.parametrize("name", ["run.html", "state.html"])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_a_report_opens_alone_and_fits(
    visitor: Callable[..., Visit], pages: Path, name: str, width: int, scheme: str
) -> None:
    visit = visitor(pages.as_uri(), viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = visit.page
    page.goto(f"{pages.as_uri()}/{name}")
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert "Who writes?" in page.inner_text("body")
    assert "You are a researcher" in page.inner_text("body"), "prompts are there, folded away"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("img, script").count() == 0
    assert all(url.startswith("file:") for url in visit.requests)
    ink, paper = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
        ".map(each => each.match(/[0-9.]+/g).map(Number))"
    )
    assert contrast(tuple(ink), tuple(paper)) > 7


def test_what_is_folded_away_opens_by_key(visitor: Callable[..., Visit], pages: Path) -> None:
    page = visitor(pages.as_uri()).page
    page.goto(f"{pages.as_uri()}/run.html")
    summary = page.locator("details:not([open]) > summary", has_text="Prompt").first
    prompt = summary.locator("xpath=../pre")
    assert not prompt.is_visible()
    summary.focus()
    page.keyboard.press("Enter")
    page.locator("details[open] > pre", has_text="You are a researcher").first.wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "PRE", "a long prompt is scrolled by key"
