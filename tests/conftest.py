"""Options and fixtures that every suite shares."""

from pathlib import Path

import pytest
from hypothesis import settings

# No deadline: what a machine takes is measured in bench/, not asserted. The same examples in every run: what fails here fails
# there. `pytest --hypothesis-profile search` looks for new ones.
settings.register_profile("knotwork", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, derandomize=False, max_examples=2_000)
settings.load_profile("knotwork")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew instead of comparing")


class Golden:
    """Compares text with a file that stands beside the tests; ``--update-golden`` writes it."""

    def __init__(self, update: bool) -> None:
        self._update = update

    def check(self, path: Path, text: str) -> None:
        if self._update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="")
        assert path.exists(), f"{path.name} is missing; see it with --update-golden"
        assert text == path.read_bytes().decode("utf-8")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    return Golden(request.config.getoption("--update-golden"))
