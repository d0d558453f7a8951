"""What a GASL program is checked against."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from ...lang.diagnostic import Diagnostic

if TYPE_CHECKING:
    from ...lang.catalogue.schema import Schema
    from ...lang.trees.gasl import StateType

__all__ = ["TOO_DEEP", "Surroundings"]

TOO_DEEP = Diagnostic("GASL023", "error", "blocks are nested too deeply", hints=("leave some of the nesting out",))
"""A program that can't be checked: its blocks are nested deeper than the interpreter's stack."""


@frozen
class Surroundings:
    """What is known of where a program is to run; None: not known.

    ``schema`` is the graph's, ``state`` has the declared keys with their types, ``ceiling`` the most that SET may ask for, by its
    keys. ``measures`` are the graph's algorithms, ``models`` the names that the host offers. ``variables`` are bound before the program
    begins, ``fields`` has all fields of their items, where they are known.
    """

    schema: "Schema | None" = None
    state: "Mapping[str, StateType] | None" = None
    ceiling: Mapping[str, float] | None = None
    measures: Collection[str] | None = None
    variables: Collection[str] = ()
    models: Collection[str] | None = None
    fields: Mapping[str, tuple[str, ...]] = field(factory=dict)

    @property
    def known(self) -> dict[str, Any]:
        """The same as arguments of the linter."""
        return {
            "schema": self.schema, "state": self.state, "ceiling": self.ceiling, "measures": self.measures,
            "variables": self.variables, "models": self.models, "fields": self.fields,
        }  # fmt: skip
