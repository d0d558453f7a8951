"""A person's session of labelling: which review and which field come next, and what a label, skip, note or undo does.

The session has no display and reads no keys; ``runtime.interfaces.cli.label_view`` does. Each change is on disk when its method returns.
"""

import math
from collections.abc import Sequence
from typing import Any

import orjson
from attrs import define, field

from ....lang.diagnostic import nearest
from ....lang.trees.seed import Extracted
from .label_file import SKIPPED, LabelFile
from .label_queue import LabelItem

_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")


@define
class LabelSession:
    """Labels all fields of ``file`` for each of ``items``, in order.

    ``show`` is true if the model's answers are visible; this is saved with the labels.
    """

    items: Sequence[LabelItem]
    file: LabelFile
    show: bool = False
    at: int = 0
    _passed: set[str] = field(factory=set, init=False)
    """Fields of the current item that were left without a label."""

    def __attrs_post_init__(self) -> None:
        self._go_on()

    @property
    def item(self) -> LabelItem | None:
        """The review that is labelled now; None if all are done."""
        return self.items[self.at] if self.at < len(self.items) else None

    @property
    def field(self) -> Extracted | None:
        """The field that is labelled now; None if all reviews are done."""
        item = self.item
        if item is None:
            return None
        row = self.file.row(item) or {}
        return next(
            (each for each in self.file.fields if not row.get(each.name) and each.name not in self._passed), None
        )

    @property
    def done(self) -> int:
        """Number of items that are labelled or skipped."""
        return sum(self.file.is_done(item) for item in self.items)

    @property
    def skipped(self) -> int:
        """Number of items that are skipped."""
        return sum((self.file.row(item) or {}).get("status") == SKIPPED for item in self.items)

    def labels(self) -> dict[str, str]:
        """Return the labels that the current item has so far, as a text for each labelled field."""
        row = (self.file.row(self.item) if self.item is not None else None) or {}
        return {each.name: row[each.name] for each in self.file.fields if row.get(each.name)}

    def note(self) -> str:
        """Return the note of the current item; "" if it has none."""
        row = self.file.row(self.item) if self.item is not None else None
        return (row or {}).get("note", "")

    def label(self, value: Any) -> None:
        """Label the current field with ``value``: a result of ``read_typed``, or one of the field's values.

        Raises ``OSError``.
        """
        item, wanted = self.item, self.field
        if item is not None and wanted is not None:
            self.file.set_label(item, wanted.name, value, shown=self.show)
            if self.field is None:  # the fields without a label were passed
                self.file.finish(item, shown=self.show)
            self._go_on()

    def pass_field(self) -> None:
        """Leave the current field without a label. Raises ``OSError``."""
        wanted = self.field
        if self.item is not None and wanted is not None:
            self._passed.add(wanted.name)
            if self.field is None:
                self.file.finish(self.item, shown=self.show)
            self._go_on()

    def skip(self) -> None:
        """Skip the current review. Raises ``OSError``."""
        if self.item is not None:
            self.file.skip(self.item, shown=self.show)
            self._go_on()

    def set_note(self, text: str) -> None:
        """Write a note about the current review. Raises ``OSError``."""
        if self.item is not None:
            self.file.set_note(self.item, text.strip(), shown=self.show)

    def undo(self) -> bool:
        """Undo the last label or skip, even one of an earlier session, and go to its item. Return whether there was one.

        Raises ``OSError``.
        """
        if self._passed and self.item is not None:
            self._passed.clear()
            return True
        current = self.labels()
        if current and self.item is not None:
            self.file.remove(self.item, [list(current)[-1]])
            return True
        places = {id(row): place for place, item in enumerate(self.items) if (row := self.file.row(item)) is not None}
        for row in reversed(self.file.rows.values()):
            labelled = [each.name for each in self.file.fields if row.get(each.name)]
            if id(row) in places and (labelled or row.get("status")):
                self.at, self._passed = places[id(row)], set()
                self.file.remove(self.items[self.at], labelled[-1:])
                return True
        return False

    def _go_on(self) -> None:
        """If the current item is done, go to the first item that is not done."""
        if self.item is not None and not self.file.is_done(self.item):
            return
        self._passed = set()
        self.at = next((place for place, item in enumerate(self.items) if not self.file.is_done(item)), len(self.items))


def read_typed(text: str, wanted: Extracted) -> Any:
    """Convert the text that a person typed to a value of the field. Raises ``ValueError`` with the reason.

    A person types a list as JSON, or with ``;`` between its elements.
    """
    text = text.strip()
    match wanted.type:
        case "bool":
            if text.lower() in (*_TRUE, *_FALSE):
                return text.lower() in _TRUE
            raise ValueError("type true or false")
        case "enum":
            if text in wanted.values:
                return text
            like = nearest(text, list(wanted.values))
            raise ValueError(f"did you mean {like}?" if like else "it is not one of the values")
        case "int" | "float":
            return _number(text, whole=wanted.type == "int")
        case "list":
            return _elements(text)
    return text


def _number(text: str, *, whole: bool) -> int | float:
    try:
        value = int(text) if whole else float(text)
    except ValueError:
        raise ValueError("it is not a whole number" if whole else "it is not a number") from None
    if not math.isfinite(value):
        raise ValueError("it is not a finite number")
    return value


def _elements(text: str) -> list[Any]:
    if text.startswith("["):
        try:
            found = orjson.loads(text)
        except orjson.JSONDecodeError:
            raise ValueError("it is not a JSON list") from None
        if isinstance(found, list):
            return found
    return [part.strip() for part in text.split(";") if part.strip()]
