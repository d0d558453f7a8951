"""A test alone in a folder of its own, with nothing of the user's in its environment."""

from pathlib import Path

import pytest

__all__ = ["UNSET", "alone_in"]

UNSET = (
    "KNOTWORK_LLM", "KNOTWORK_CACHE", "KNOTWORK_DEBUG", "ANOT_DEBUG", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "KNOTWORK_API_KEY", "NO_COLOR",
    "FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SDK_DISABLED", "TRACEPARENT",
)  # fmt: skip


def alone_in(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Go into ``folder``, and keep what knotwork keeps in it; return it."""
    for name in UNSET:
        patch.delenv(name, raising=False)
    patch.setenv("KNOTWORK_HOME", str(folder / "knotwork"))
    patch.setenv("COLUMNS", "100")
    patch.chdir(folder)
    return folder
