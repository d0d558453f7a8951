"""The folders that tests read: named here once, so that a test may lie in any folder.

``DATA`` is outside of the checkout: graphs that are too large for it. ``KNOTWORK_TEST_DATA`` names it; else it is looked for beside the
checkout. Tests that need it are skipped where it is missing.
"""

import os
from pathlib import Path

__all__ = ["DATA", "DOCS", "EXAMPLES", "GOLDEN", "ROOT", "TESTS"]

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
GOLDEN = TESTS / "golden"
DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
DATA = Path(os.environ.get("KNOTWORK_TEST_DATA", ROOT.parent / "shared/data"))
