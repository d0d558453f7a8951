"""What comes of a piece: a value to show, what is to be said about it, how it ended."""

from collections.abc import Sequence
from typing import Any, Final, Literal

from attrs import field, frozen

from ....lang.diagnostic import Diagnostic, Edit, apply_edits, has_errors
from ....lang.source import Source

__all__ = ["NOTHING", "Outcome", "Page", "Status", "Table", "misused"]

Status = Literal["done", "empty", "partial", "failed", "refused", "misused", "cancelled"]
"""``refused``: the check found errors, and nothing was run; ``misused``: a dot command that can't be done as it was asked."""


class _Nothing:
    """Stands where there is no value; JSON's null is one."""

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Final = _Nothing()


@frozen
class Table:
    """Rows of JSON values. ``wide`` are the columns that are not cut where others can be; ``folds``: the last one is folded, not cut.

    ``counts`` are columns with numbers as people read them (1,234): for a program they are numbers.
    """

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]
    wide: frozenset[str] = frozenset()
    folds: bool = False
    counts: frozenset[str] = frozenset()


@frozen
class Page:
    """Text to be read by a person, such as help; ``data`` is what it says, for a program."""

    text: str
    data: Any = None


@frozen
class Outcome:
    """How a piece ended. ``value`` is a JSON value, a ``Table``, a ``Page`` or ``NOTHING``.

    ``summary`` says in a line what came of it, ``notes`` what a person should know besides. ``message`` and ``hint`` say why it
    failed, where ``diagnostics`` don't. ``names`` are what was bound. ``ends``: the session is to end.
    ``reads`` is a file's text that is to be run next. ``fix`` is what was probably meant, where no diagnostic has edits.
    """

    status: Status = "done"
    value: Any = field(default=NOTHING, repr=False)
    summary: str = ""
    message: str = ""
    hint: str = ""
    notes: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    source: Source = field(default=Source(""))
    names: tuple[str, ...] = ()
    seconds: float = 0.0
    ends: bool = False
    reads: Source | None = None
    fix: str = ""

    @property
    def is_good(self) -> bool:
        """Say whether it did what it says, or a part of it, or found nothing."""
        return self.status in ("done", "empty", "partial")

    @property
    def is_whole(self) -> bool:
        """Say whether it did all that it says."""
        return self.status in ("done", "empty")

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits of all errors that have some, or where there is no error of all warnings: the fix."""
        severity = "error" if has_errors(self.diagnostics) else "warning"
        return tuple(edit for d in self.diagnostics if d.severity == severity for edit in d.edits)

    @property
    def mended(self) -> str | None:
        """The text with its fix; None where there is none."""
        if self.fix:
            return self.fix
        return apply_edits(self.source.text, self.edits).lstrip("\n") if self.edits else None


def misused(message: str, hint: str = "", fix: str = "") -> Outcome:
    """Return the outcome of what can't be done as it was asked."""
    return Outcome("misused", message=message, hint=hint, fix=fix)
