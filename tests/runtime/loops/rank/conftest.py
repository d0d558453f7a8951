"""Ten cafés, and plans that a model might write for them."""

from typing import Any

import pytest

PLAN = """\
===LWT_SKELETON===
(final)=LLM("User wants: tea. Item(s) that match: [5]. Output the best index.")

===MESSAGE===
CONDITIONS: Tea=True
REMAINING: 5
NEEDS_EXPANSION: {expand}
"""


@pytest.fixture
def items() -> list[dict[str, Any]]:
    return [{"name": f"Cafe {n}", "attributes": {"Tea": n == 5}, "item_data": [{"review": "fine"}]} for n in range(10)]


@pytest.fixture
def simple() -> str:
    return PLAN.format(expand="no")


@pytest.fixture
def expanding() -> str:
    return PLAN.format(expand="yes")
