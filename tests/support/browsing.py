"""A real browser for tests: Debian's Chromium, driven by playwright, and a watch on what a page may not do.

playwright's own browsers are never downloaded; where there is no Chromium a test that needs one is skipped and says so.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest

__all__ = ["Visit", "chromium", "contrast", "opened_browser"]

_TOLD = """
document.addEventListener("securitypolicyviolation", (event) => {
  console.error(`CSP: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`);
});
"""
_STATUS = "Failed to load resource: the server responded with a status of "


def chromium() -> str:
    """Return where Chromium is, or skip the test."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("no chromium was found; Debian and Ubuntu have it as the package chromium")
    return found


@contextmanager
def opened_browser() -> Iterator[Any]:
    """Start Chromium, and end it. Skips the test where there is none."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed; knotwork[dev] has it")
    path = chromium()
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"] if root else [])
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visit:
    """A page of ``url``, and all that went wrong on it. ``check`` at the end, and ``allow`` what is meant to happen before.

    Nothing goes to another origin; nothing is written to the console as an error or a warning; the page's security policy is
    never violated; no exception is left uncaught.
    """

    page: Any
    url: str
    faults: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    _allowed: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.page.add_init_script(_TOLD)
        self.page.on("console", lambda message: self._hear(message.type, message.text))
        self.page.on("pageerror", lambda error: self.faults.append(f"uncaught: {error}"))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def _hear(self, kind: str, text: str) -> None:
        if kind not in ("error", "warning"):
            return
        if not any(text.startswith(beginning) for beginning in self._allowed):
            self.faults.append(f"{kind}: {text}")

    def allow(self, *statuses: int) -> None:
        """Let the server answer with these: Chromium tells the console of each."""
        self._allowed |= {f"{_STATUS}{status}" for status in statuses}

    def allow_no_server(self) -> None:
        """Let there be no server for a while."""
        self._allowed.add("Failed to load resource: net::ERR_")

    def open(self, path: str = "/lab") -> Any:
        """Go to the page and wait until it has learned what the server offers."""
        self.page.goto(self.url + path)
        return self.page

    def ready(self) -> Any:
        """Open the page and wait for its form."""
        page = self.open()
        page.locator("#examples button").first.wait_for()
        return page

    def close(self) -> None:
        """Leave; more than once is fine."""
        self.page.context.close()

    def check(self) -> None:
        """Assert that nothing went wrong."""
        assert self.faults == []
        origin = urlsplit(self.url).netloc
        assert [url for url in self.requests if urlsplit(url).netloc != origin] == []


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    """Return the contrast of two colours, red, green and blue from 0 to 255 (WCAG 2.2, "contrast ratio"): 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: tuple[float, ...]) -> float:
    parts = [value / 255 for value in colour[:3]]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
