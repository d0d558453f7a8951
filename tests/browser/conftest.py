"""One Chromium, one model server and one ``knotwork serve`` for all; every page is watched, and must have done nothing wrong."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.browsing import Visit, opened_browser
from support.served import served
from support.web import Address, served_app

PLAYS = Path(__file__).with_name("plays.json")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with opened_browser() as browser:
        yield browser


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The spec of the scripted model."""
    folder = tmp_path_factory.mktemp("model")
    with served(folder, "--play", str(PLAYS), module="support.answer_server") as server:
        yield server.spec


@pytest.fixture(scope="session")
def app(model: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    """A server without keys."""
    with served_app(tmp_path_factory.mktemp("app"), llm=model) as address:
        yield address


@pytest.fixture
def visits() -> Iterator[list[Visit]]:
    """The pages of a test. At its end they are closed, and nothing may have gone wrong on any."""
    made: list[Visit] = []
    yield made
    for visit in made:
        visit.close()
    for visit in made:
        visit.check()


@pytest.fixture
def visitor(browser: Any, visits: list[Visit]) -> Callable[..., Visit]:
    """``visitor(url, **options of the context)``: a new page, with nothing of any page before it."""

    def visit(url: str, **options: Any) -> Visit:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        context.set_default_timeout(20_000)
        visits.append(Visit(context.new_page(), url))
        return visits[-1]

    return visit


@pytest.fixture
def visit(visitor: Callable[..., Visit], app: Address) -> Visit:
    """A page of the server without keys, not opened yet."""
    return visitor(app.url)


@pytest.fixture
def serving(visits: list[Visit], model: str, tmp_path: Path) -> Callable[..., AbstractContextManager[Address]]:
    """``with serving(*options) as app``: a server of the test's own. Its pages are closed before it ends."""

    @contextmanager
    def serve(*options: str, llm: str = model, **more: Any) -> Iterator[Address]:
        with served_app(tmp_path, *options, llm=llm, **more) as address:
            yield address
            for visit in visits:
                visit.close()

    return serve
