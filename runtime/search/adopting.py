"""Taking a state that a search found into the state that it began with, as one commit.

Nothing is executed again and no model is asked again. The commit has the change of the variables with their provenance, the
history's entries of every command on the way, their texts for ``replay`` and the models' answers: a state that was searched
can be replayed and reported like one that was run.
"""

from ...adapters.state import StateStore
from ...lang.errors import KnotworkError
from .nodes import Node, way_to

__all__ = ["AdoptError", "adopt"]


class AdoptError(KnotworkError):
    """The state is no longer the one that the search began with; nothing was changed."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def adopt(state: StateStore, node: Node) -> str:
    """Make ``state``, in which the search of ``node`` began, as it is there; return its hash.

    All of it is one record of the journal: after a crash it is there whole or not at all. What is adopted already, or the root,
    changes nothing. Raises ``AdoptError`` where ``state`` has changed since the search began, ``StoreError`` where it can't
    be kept.
    """
    began, found = way_to(node)[0].fork(), node.fork()
    seen, known = len(state.history), len(began.history)
    if state.hash == found.hash and seen == len(found.history):
        return state.hash
    if state.hash != began.hash or seen != known:
        raise AdoptError(
            "the state has changed since the search began", hint="search again from the state as it is now"
        )
    mark = state.mark()
    before, after = began.replay_info(), found.replay_info()
    try:
        for entry in list(found.history)[known:]:
            state.note(entry)
        for command in after["commands"][len(before["commands"]) :]:
            state.ran(command)
        for answer in after.get("answers", [])[len(before.get("answers", [])) :]:
            state.answered(answer)
        state.configure(config=after["config"])  # which graph the findings are of by now
        state.rollback(found.snapshot())  # commits, and what was noted with it
    except BaseException:
        state.back(mark)
        state.configure(config=before["config"])
        raise
    return state.hash
