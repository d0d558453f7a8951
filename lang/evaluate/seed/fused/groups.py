"""Enum fields have few values, so that what all conditions say of a combination of them is found out once and remembered."""

from collections.abc import Callable
from typing import Any

from attrs import define, field, frozen

from ....expr import Expr, Field, Name
from ...expr.generating.kinds import ANYTHING, Code
from ...expr.generating.writer import Unsupported, Writer
from .running import MOST_REMEMBERED

__all__ = ["Atom", "Group"]


@frozen
class Atom:
    """A condition as text. ``free``: it can't fail, so it may be tested before others. ``reads``: the locals it needs."""

    text: str
    free: bool
    reads: tuple[str, ...] = ()


@define(eq=False)
class Group:
    """Some fields, and what is asked of their combinations: counters that go up by one, and conditions that hold.

    What a combination means is one tuple: all counters packed into one integer, and a boolean for each condition.
    """

    number: int
    prefix: str
    fields: tuple[str, ...]
    counters: dict[tuple[Expr, ...], int] = field(factory=dict)
    """By what must hold: how many bits the counter is shifted."""
    _flags: dict[tuple[Expr, ...], str] = field(factory=dict)

    @property
    def name(self) -> str:
        """What the group is called among the locals."""
        return f"{self.prefix}f{self.number}"

    @property
    def memory(self) -> str:
        """The name of the dict that remembers."""
        return f"{self.name}_memory"

    @property
    def total(self) -> str:
        """The local that has the sum of the counters."""
        return f"{self.name}_total"

    @property
    def increment(self) -> str:
        """The local that has the counters of one row."""
        return f"{self.name}_counters"

    @property
    def used(self) -> bool:
        """Whether anything is asked of the group."""
        return bool(self.counters or self._flags)

    def atom(self, parts: tuple[Expr, ...]) -> Atom:
        """Return the condition that all of ``parts`` hold."""
        return Atom(self._flags.setdefault(parts, f"{self.name}_{len(self._flags)}"), True, (self.name,))

    def lines(self, keep: Callable[[Any], str]) -> list[str]:
        """Return the lines that find what the combination in ``e`` means. A missing field is null."""
        keys = [keep(name) for name in self.fields]
        targets = ", ".join([*([self.increment] if self.counters else []), *self._flags.values()])
        return [
            "try:", f" {targets} = {self.memory}[{', '.join(f'e[{key}]' for key in keys)}]",
            "except (KeyError, TypeError):", f" {targets} = {self.name}_means({', '.join(f'e.get({key})' for key in keys)})",
        ]  # fmt: skip

    def function(self, writer: Writer) -> list[str]:
        """Return the lines of the function that finds out what a combination means."""
        locals_ = {name: f"v{at}" for at, name in enumerate(self.fields)}

        def resolve(node: Name | Field) -> Code:
            if not isinstance(node, Field):
                raise Unsupported
            return Code(locals_[node.name], ANYTHING, simple=True, total=True)

        def held(parts: tuple[Expr, ...]) -> str:
            return "(" + " and ".join(writer.inside(resolve, part).text for part in parts) + ")"

        means = [held(parts) for parts in self._flags]
        if self.counters:
            counted = [f"({writer.keep(1 << shift)} if {held(parts)} else 0)" for parts, shift in self.counters.items()]
            means.insert(0, f"({' + '.join(counted)})")
        names = ", ".join(locals_.values())
        most = MOST_REMEMBERED // (1 + (len(self.counters) + len(self._flags)) // 16)
        return [
            f"def {self.name}_means({names}):",
            f" keep = remembered({names})",
            f" means = {', '.join(means)}",
            f" if keep and len({self.memory}) < {most}:",
            f"  {self.memory}[{names}] = means",
            " return means",
        ]
