"""The page of an evaluation in Chromium: it opens from the disk, its filters work by mouse and by key, and it fits a small screen."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from knotwork import evals
from support.browsing import Visit
from support.evaluations import SEED, Rater, contexts, gold_rows

pytestmark = pytest.mark.browser

HOSTILE = '</p><img src="http://127.0.0.1:9/x"><script>console.error("ran")</script>'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluation")
    data = contexts()
    data[0]["reviews"][0]["text"] += HOSTILE
    candidates = {
        "good": Rater({"0.0"}, {"0.1": f'{{"rating": "{HOSTILE[:4]}"}}'}),
        "weak": Rater({"0.0", "1.1", "2.2"}),
    }
    with ThreadPoolExecutor(1) as beside:  # playwright's own loop runs in this thread
        report = beside.submit(evals.run_sync, SEED, gold_rows(), contexts=data, candidates=candidates).result()
    evals.to_html(report, folder / "eval.html")
    return folder


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (360, "dark")])
def test_each_filter_is_one_click(visitor: Callable[..., Visit], folder: Path, width: int, scheme: str) -> None:
    visit = visitor(folder.as_uri(), viewport={"width": width, "height": 800}, color_scheme=scheme)
    page = visit.page
    page.goto(f"{folder.as_uri()}/eval.html")
    shown = page.locator("ol.items > li:visible")
    assert shown.count() == 18
    for name, count in (("wrong", 2), ("differs", 3), ("invalid", 1), ("all", 18)):
        page.click(f"label[for=show-{name}]")
        assert shown.count() == count, name
    page.focus("#show-all")
    page.keyboard.press("ArrowRight")
    assert shown.count() == 2
    assert page.evaluate("document.documentElement.scrollWidth") <= width
