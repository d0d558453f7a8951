"""Ignore comments in prompt scripts: ``# knotwork: ignore[LWT012]`` above a step. What they do is in ``linter.ignoring``."""

from collections.abc import Iterable

from ...diagnostic import Diagnostic
from ...lwt import Comment
from .. import ignoring
from .registry import Context

__all__ = ["silence"]

_SCRIPTS = ignoring.Commented("step", "LWT032", lambda item: isinstance(item, Comment))


def silence(context: Context, found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return what is ``found`` without what ignore comments silence, and with the comments that silence nothing."""
    script = context.script
    return ignoring.silence(script.items, script.source.text, found, _SCRIPTS, context.found)
