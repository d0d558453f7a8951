"""What ``seed run`` does before anything is spent: the seed checked, the contexts found, the arguments put in order."""

from ....api.checked import Checked
from ..shared.exit import Misused
from ..shared.files import Unreadable, only_one_stdin
from .asked import SeedAsked
from .incoming.contexts import Contexts
from .incoming.feeding import Feed
from .incoming.opening import open_seed, refused
from .outgoing.writing import form_of

__all__ = ["perform"]


def perform(asked: SeedAsked) -> int:
    """Do what was asked and return the exit code."""
    only_one_stdin([asked.seed, asked.contexts])
    form_of(asked.form, asked.out)
    seed = open_seed(asked.seed, "knotwork seed run SEED CONTEXTS", warn=True)
    if isinstance(seed, Checked):
        return refused(seed)
    feed = Feed(Contexts(asked.contexts))
    try:
        if not feed.look():
            raise Misused(f"{feed.contexts.shown} has no contexts")
    except Unreadable as error:
        return refused(Checked((error.diagnostic,), error.source))
    if asked.dry_run:
        from .rehearsing import rehearse

        return rehearse(asked, seed, feed)
    from .running import run  # brings the event loop, which nothing before needs

    return run(asked, seed, feed)
