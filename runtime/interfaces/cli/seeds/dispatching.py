"""What ``plan`` does first: reads and checks the file, and hands it to what shows its language."""

import sys

from .....lang.trees.lwt import Mode
from ....api.checked import CheckedSeed
from ..shared.checking import check_files, show
from ..tasks.planning import Form, show_plan

__all__ = ["plan_of_any"]


def plan_of_any(name: str, form: Form, mode: Mode, input_name: str | None, max_steps: int) -> int:
    """Write the plan of a script or a seed to stdout; diagnostics go to stderr."""
    results = check_files([name], mode, input_name, max_steps=max_steps)
    last = results[-1]
    seed = last.seed if isinstance(last, CheckedSeed) else None
    if seed is None or any(result.failed for result in results):
        return show_plan(results, form)
    show([result.without_remarks for result in results], sys.stderr)
    from .planning import show_seed_plan  # what draws seeds is for seeds only

    return show_seed_plan(seed, form)
