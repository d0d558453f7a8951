"""Puts the comments that stood inside commands where the tree has room for them: before the command."""

from collections.abc import Sequence

from attrs import evolve

from ...gasl import Comment, Item, Statement, Try

__all__ = ["woven"]


def woven(items: Sequence[Item], inner: Sequence[Comment]) -> tuple[Item, ...]:
    """Return ``items`` with each of ``inner`` before the innermost statement in whose text it stood."""
    if not inner:
        return tuple(items)
    made: list[Item] = []
    waiting = list(reversed(inner))
    for item in items:
        held: list[Comment] = []
        while waiting and waiting[-1].span.start < item.span.end:
            held.append(waiting.pop())
        if held and isinstance(item, Statement) and isinstance(item.command, Try):
            made.append(evolve(item, command=_into_block(item.command, held)))
        else:
            made += [*held, item]
    return (*made, *reversed(waiting))


def _into_block(block: Try, held: list[Comment]) -> Try:
    """Share ``held`` out among the parts of a block; its own head and END have no brackets to hold any."""
    parts: list[tuple[Item, ...] | None] = []
    for part in (block.body, block.caught, block.always):
        mine = [comment for comment in held if part and comment.span.start < part[-1].span.end]
        held = held[len(mine) :]
        parts.append(woven(part, mine) if part is not None else None)
    return evolve(block, body=parts[0] or (), caught=parts[1], always=parts[2])
