"""Samples and shards of contexts, and samples of reviews. They depend on names, positions and the random state, not on the input's size.

Contexts or reviews are in a sample if they have the smallest hashes of (random state, name, position). Therefore a sample of 200
contexts includes the sample of 50 contexts from the same input, and needs calls only for the other 150.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from heapq import nsmallest
from itertools import islice
from typing import Any

from attrs import evolve, field, frozen
from blake3 import blake3

from ..errors import RequestError, or_none, short_repr, whole_number_validator
from .reviews import Context, ContextError, InvalidContext, read_context

_positive = or_none(whole_number_validator(1))


@frozen
class Sampling:
    """Which contexts and reviews of a run are chosen.

    Of the first ``limit`` contexts, ``sample`` are chosen at random, and in each of these, ``sample_reviews`` reviews (None:
    all). Another ``random_state``, a whole number, gives another sample. ``shard`` is a text such as "3/8": of the chosen
    contexts, the third of eight parts of about equal size. A context is in the same part in every run that counts ``8`` parts.
    Raises ``RequestError`` for invalid values.
    """

    limit: int | None = field(default=None, validator=_positive)
    sample: int | None = field(default=None, validator=_positive)
    sample_reviews: int | None = field(default=None, validator=_positive)
    random_state: int = field(default=0, validator=whole_number_validator(0))
    shard: str | None = None

    def __attrs_post_init__(self) -> None:
        if self.shard is not None:
            number, count = read_shard(self.shard)
            object.__setattr__(self, "shard", f"{number}/{count}")

    @property
    def is_all(self) -> bool:
        """Whether everything is chosen."""
        return self.limit is None and self.sample is None and self.sample_reviews is None and self.shard is None

    def is_in_shard(self, name: str, position: int) -> bool:
        """Return whether the context ``name`` at ``position`` among all contexts is in the shard."""
        if self.shard is None:
            return True
        number, count = _parts(self.shard)
        hashed = blake3(f"{name}\0{position}".encode("utf-8", "surrogatepass")).digest(8)
        return int.from_bytes(hashed, "big") % count == number - 1

    def contexts(self, names: Iterable[str]) -> list[int]:
        """Return the positions of the chosen contexts, in order.

        ``names`` are the names of all contexts; ``limit`` is ignored.
        """
        ranked = ((self.rank(name, position), position) for position, name in enumerate(names))
        if self.sample is None:
            return [position for _, position in ranked]
        return sorted(position for _, position in nsmallest(self.sample, ranked))

    def reviews(self, name: str, number: int) -> Sequence[int]:
        """Return the positions of the chosen reviews of the context ``name``, in order. The context has ``number`` reviews."""
        if self.sample_reviews is None or number <= self.sample_reviews:
            return range(number)
        ranked = ((self.rank(name, position), position) for position in range(number))
        return sorted(position for _, position in nsmallest(self.sample_reviews, ranked))

    def of_context(self, context: Context) -> Context:
        """Return the context with the chosen reviews only. Each review keeps its position."""
        if self.sample_reviews is None or len(context.reviews) <= self.sample_reviews:
            return context
        return evolve(
            context, reviews=tuple(context.reviews[place] for place in self.reviews(context.name, len(context.reviews)))
        )

    def as_json(self) -> dict[str, Any]:
        """Return the settings that restrict the choice, for results and stored runs; {} if everything is chosen."""
        if self.is_all:
            return {}
        made = {"limit": self.limit, "sample": self.sample, "sample_reviews": self.sample_reviews, "shard": self.shard}
        told: dict[str, Any] = {name: value for name, value in made.items() if value is not None}
        return (
            told if self.sample is None and self.sample_reviews is None else told | {"random_state": self.random_state}
        )

    def rank(self, name: str, position: int) -> bytes:
        """Return the hash of a context or review; those with the smallest hashes are chosen."""
        return blake3(f"{self.random_state}\0{name}\0{position}".encode("utf-8", "surrogatepass")).digest(16)


def read_shard(text: Any) -> tuple[int, int]:
    """Return the number of a shard, from 1, and the number of shards. Raises ``RequestError``."""
    number, slash, count = text.partition("/") if isinstance(text, str) else ("", "", "")
    if not (
        slash
        and len(str(text)) < 20
        and number.isdecimal()
        and count.isdecimal()
        and 1 <= int(number) <= int(count) <= 1_000_000
    ):
        raise RequestError("shard", f"{short_repr(text)} is not K/N", "such as 3/8, the third of eight parts")
    return int(number), int(count)


_parts = cache(read_shard)

EVERYTHING = Sampling()


def sampled_contexts(contexts: Iterable[Any], sampling: Sampling) -> Iterator[Context | InvalidContext]:
    """Yield the chosen contexts in order; each keeps its position in ``contexts``. Contexts are read one at a time.

    Without ``sample``, each context is yielded as soon as it is read. With ``sample``, all contexts are read first, and only
    ``sample`` of them are held in memory.
    """
    read: Iterator[Context | InvalidContext] = (
        _read(each, position) for position, each in enumerate(islice(contexts, sampling.limit))
    )
    if sampling.sample is not None:
        ranked = ((sampling.rank(each.name, each.index), each.index, each) for each in read)
        read = iter(sorted((each for _, _, each in nsmallest(sampling.sample, ranked)), key=lambda each: each.index))
    for each in read:
        if sampling.is_in_shard(each.name, each.index):
            yield sampling.of_context(each) if isinstance(each, Context) else each


def _read(data: Any, index: int) -> Context | InvalidContext:
    if isinstance(data, Context | InvalidContext):
        return data
    try:
        return read_context(data, index)
    except ContextError as error:
        name = data.get("name") if isinstance(data, Mapping) else ""
        return InvalidContext(name if isinstance(name, str) else "", index, str(error))
