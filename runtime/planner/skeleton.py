"""The script that a plan begins with and tools edit: read leniently, checked by the linter against the real input, never half changed."""

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import define, field, frozen

from ...lang.catalogue.operations import BUILTIN
from ...lang.diagnostic import Diagnostic, has_errors
from ...lang.linter.lwt import check
from ...lang.parse.lwt import parse_lwt
from ...lang.printer.lwt import format_step
from ...lang.source import Source
from ...lang.trees.lwt import Script
from ..commands.excerpts import clipped
from .faults import as_lines, as_objects, excerpts, fault

__all__ = ["LISTED", "OPERATIONS", "Checked", "Edited", "Skeleton", "checked"]

OPERATIONS = {name: BUILTIN[name] for name in ("LLM", "CONST", "EXPR", "EACH", "ANSWER")}
"""What a planned script may call: a ranking has no graph, and no files that a model may name."""
_MOST_STEPS = 200
_LONGEST = 60_000
"""Characters of a script: reading and checking that many takes well under a second, whatever they are."""
LISTED = 24_000
"""Characters that the list of steps takes at most."""
_ONE = 6_000
"""Characters of one step in a list that is too long as a whole."""
_NAME = "<plan>"
_ID = 40
_SOME = "(steps with … are not shown in full)"


@frozen
class Checked:
    """A script and what is wrong with it."""

    script: Script
    diagnostics: tuple[Diagnostic, ...]

    @property
    def failed(self) -> bool:
        """Say whether it can't run."""
        return has_errors(self.diagnostics)


def checked(text: str, input: Any, models: Sequence[str] = ()) -> Checked:
    """Read ``text`` as a model's and check it against the input that it will get. Never raises for what the text says."""
    if len(text) > _LONGEST:
        message = f"the script has {len(text):,} characters; {_LONGEST:,} is the most"
        return Checked(Script(), (fault("RANK007", message),))
    script = parse_lwt(Source(text, _NAME), "lenient")
    if len(script.steps) > _MOST_STEPS:  # before they are checked, which takes longer the more they are
        message = f"the script has {len(script.steps)} steps; {_MOST_STEPS} is the most"
        return Checked(script, (fault("RANK007", message),))
    found = check(script, input=input, operations=OPERATIONS, models=tuple(models))
    if not script.steps and not has_errors(found):
        found = [*found, fault("RANK001", "there is no step", 'a step is (final)=LLM("prompt") on a line of its own')]
    return Checked(script, tuple(found))


@frozen
class Edited:
    """What came of an edit: whether it was made, and what the model is told."""

    done: bool
    told: str


@define
class Skeleton:
    """A script that runs, and edits of it that leave it so. ``latest`` is the index of the last edit."""

    script: Script
    input: Mapping[str, Any] = field(repr=False)
    models: Sequence[str] = ()
    latest: int = 0

    @property
    def steps(self) -> list[str]:
        """The steps' canonical texts, in order."""
        return [format_step(step) for step in self.script.steps]

    @property
    def text(self) -> str:
        """The script's canonical text."""
        return "\n".join(self.steps)

    def listed(self) -> str:
        """Return the steps with their indices, in at most ``LISTED`` characters.

        Where they are more, those around the latest edit are shown, the others by their ids only.
        """
        steps = self.steps
        whole = [f"{index}: {step}" for index, step in enumerate(steps)]
        if sum(map(len, whole)) + len(whole) <= LISTED:
            return "\n".join(whole)
        shown = [f"{index}: ({clipped(step.id, _ID)})=…" for index, step in enumerate(self.script.steps)]
        left = LISTED - sum(map(len, shown)) - len(shown) - len(_SOME)
        for index in sorted(range(len(steps)), key=lambda each: (abs(each - self.latest), each)):
            text = excerpts(whole[index], (), _ONE)
            left -= len(text) - len(shown[index])
            if left < 0:
                break
            shown[index] = text
        return "\n".join([*shown, _SOME])

    def insert(self, index: int, text: str) -> Edited:
        """Put a step before the one at ``index``, or at the end."""
        steps = self.steps
        if not 0 <= index <= len(steps):
            return self._nowhere(index, len(steps))
        return self._edited([*steps[:index], text, *steps[index:]], 1, index, f"inserted at {index}")

    def set(self, index: int, text: str) -> Edited:
        """Replace the step at ``index``."""
        steps = self.steps
        if not 0 <= index < len(steps):
            return self._nowhere(index, len(steps) - 1)
        return self._edited([*steps[:index], text, *steps[index + 1 :]], 0, index, f"replaced at {index}")

    def delete(self, index: int) -> Edited:
        """Remove the step at ``index``."""
        steps = self.steps
        if not 0 <= index < len(steps):
            return self._nowhere(index, len(steps) - 1)
        if len(steps) == 1:
            return _refused(fault("RANK003", "the only step can't be removed", "replace it: lwt_set(0, ...)"))
        return self._edited([*steps[:index], *steps[index + 1 :]], -1, index, f"removed {index}")

    def _nowhere(self, index: int, last: int) -> Edited:
        message = f"there is no place {index}; the places are 0 to {last}"
        return _refused(fault("RANK003", message, "lwt_list() shows the steps"))

    def _edited(self, steps: Sequence[str], more: int, index: int, what: str) -> Edited:
        """Take the steps where they are a script that runs; else leave everything as it is and say why."""
        made = checked("\n".join(steps), self.input, self.models)
        # The lenient reading would leave out all but the last step of an id, and an edit must not remove what it does not name.
        if twice := next((each for each in made.diagnostics if each.code == "LWT014"), None):
            return _refused(fault("RANK005", twice.message, "lwt_set(idx, ...) replaces the step that has the id"))
        if made.failed:
            return Edited(False, as_lines(as_objects(made.diagnostics, made.script.source)))
        if (count := len(made.script.steps)) != len(self.script.steps) + more:
            message = "that is no step" if count < len(self.script.steps) + more else "that is more than one step"
            return _refused(fault("RANK001", message, 'one step a call, as (id)=LLM("prompt")'))
        self.script, self.latest = made.script, index
        return Edited(True, f"{what}; there are {count} step{'' if count == 1 else 's'}")


def _refused(made: Diagnostic) -> Edited:
    return Edited(False, as_lines(as_objects([made], Source("", _NAME))))
