"""A run that is ready to begin."""

from typing import Any

from attrs import frozen

from .....lang.trees.lwt import Script
from ....api.checked import CheckedScript
from ....lwt.run_store import Stored

__all__ = ["Job"]


@frozen
class Job:
    """What is to be run: the checked script and its input, and the earlier run where one is resumed."""

    checked: CheckedScript
    given: Any
    stored: Stored | None

    @property
    def script(self) -> Script:
        """The script that was checked."""
        return self.checked.script
