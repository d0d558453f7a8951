"""Every test here works in a folder of its own, with nothing of the user's in its environment."""

from pathlib import Path

import pytest

_UNSET = (
    "KNOTWORK_LLM", "KNOTWORK_DEBUG", "ANOT_DEBUG", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "KNOTWORK_API_KEY", "NO_COLOR", "FORCE_COLOR",
)  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in _UNSET:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KNOTWORK_HOME", str(tmp_path / "knotwork"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)
    return tmp_path
