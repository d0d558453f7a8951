"""The Lab page with the built-in local model, which is real: it writes, it can't judge, and checks decide instead."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from knotwork.adapters.llm import weights
from support.browsing import Visit
from support.web import Address

pytestmark = pytest.mark.browser


def test_the_local_model_works_with_checks_and_the_page_says_why(
    visitor: Callable[..., Visit], serving: Callable[..., AbstractContextManager[Address]], tmp_path: Path
) -> None:
    pytest.importorskip("xllamacpp", reason="xllamacpp is not installed; knotwork[local] has it")
    if weights.find() is None:
        pytest.skip("the local model is not there; knotwork model pull gets it")
    home = tmp_path / "knotwork"
    home.mkdir()
    (home / "models").symlink_to(weights.models_dir())
    with serving(llm="local") as app:
        page = visitor(app.url).ready()
        assert "too small to judge" in page.inner_text("#no-judge")
        assert page.locator("#more").get_attribute("open") is not None
        assert page.input_value("#judges") == "0"
        assert page.input_value("#checks") != ""
        page.click("#run")
        page.locator("#rerun").wait_for(timeout=120_000)
        assert page.inner_text("#state").startswith("Accepted: iteration ")
        assert "sea" in page.inner_text(".round.best .answer").lower()
        page.get_by_role("button", name="Quantum computing").click()
        assert page.input_value("#judges") == "0"  # also of an example that would rather have a judge
        assert page.locator("#no-judge").is_visible()
