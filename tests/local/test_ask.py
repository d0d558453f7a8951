"""The local model plans a traversal: it is too small for it, and whatever it says ends in order."""

from pathlib import Path

import pytest
from knotwork.adapters.llm_local import LocalModel
from knotwork.runtime.facade.ask import ask_sync

pytestmark = pytest.mark.slow


def test_a_traversal_planned_by_the_local_model_ends_without_a_crash(model: LocalModel, tmp_path: Path) -> None:
    made = ask_sync(
        "nx:karate_club", "Which member has the most friends?", state=tmp_path / "s", llm=model, max_steps=1, max_repairs=1,
        prompt_characters=6_000, time_limit=60, options={"max_tokens": 120, "retries": 0},
    )  # fmt: skip
    assert made.status in ("complete", "stopped", "failed")
    assert made.calls or made.reason
    assert all(step.status != "refused" or step.faults for step in made.steps)
