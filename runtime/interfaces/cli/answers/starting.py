"""What ``answer`` does before anything is spent: the request put together and checked, templates read."""

import sys

from ....api.checked import Checked
from ..shared.checking import show
from ..shared.exit import Exit
from ..shared.files import Unreadable
from ..shared.output import say
from .asked import AnswerAsked
from .opening import open_templates
from .requesting import read_request

__all__ = ["perform"]


def perform(asked: AnswerAsked) -> int:
    """Do what was asked and return the exit code. Raises ``Misused``."""
    try:
        request, where = read_request(asked)
        templates = open_templates(asked.templates)
    except Unreadable as error:
        show([Checked((error.diagnostic,), error.source)], sys.stderr)
        say("nothing was asked")
        return Exit.ERRORS
    from .running import run  # brings the event loop, which nothing before needs

    return run(asked, request, where, templates)
