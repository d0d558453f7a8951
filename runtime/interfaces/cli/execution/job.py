"""A run that is ready to begin."""

from typing import Any

from attrs import frozen

from .....lang.lwt import Script
from ....runs import Stored
from ..shared.checked import Checked

__all__ = ["Job"]


@frozen
class Job:
    """What is to be run: the checked script and its input, and the earlier run where one is resumed."""

    checked: Checked
    script: Script
    given: Any
    stored: Stored | None
