"""Every test here works in a folder of its own, with nothing of the user's in its environment."""

from pathlib import Path

import pytest
from support.command import CAFES, REQUEST, cassette

_UNSET = (
    "KNOTWORK_LLM", "KNOTWORK_DEBUG", "ANOT_DEBUG", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "KNOTWORK_API_KEY", "NO_COLOR",
    "FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS",
)  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in _UNSET:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "knotwork"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cafes(folder: Path) -> str:
    """A script, its input, and the spec of a model that answers it."""
    import json

    (folder / "cafes.lwt").write_text(CAFES, encoding="utf-8")
    (folder / "request.json").write_text(json.dumps(REQUEST), encoding="utf-8")
    answers = {"List the conditions": '["drive-thru", "kids"]', "Is kids": "no", "Is ": "yes", "Checks": "1"}
    return cassette(folder / "cafes.cassette", answers)
