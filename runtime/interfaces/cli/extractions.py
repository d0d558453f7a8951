"""Reads extractions, one line per context. The lines come from ``seed run`` or from another source.

A line is ``{"context": {...} or a name, "extractions": [{"extraction": {...}, "meta": {...}}]}``. A result of ``seed run`` also has
``name``, ``index`` and ``counts``.
"""

import io
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import define, evolve, field, frozen

from ...api.checks import Checked, check_seed
from ...api.seed import Counts, ResultFault, SeedResult, SeedTree, read_result, without_reviews
from .contexts import Contexts, context_name
from .inputs import Unreadable, read_source, required, show
from .json_stream import Item, NotJSON, values
from .output import Exit, Misused, say

_MOST_NAMES = 5
"""Maximum number of names that a message lists."""


@frozen
class Extracted:
    """The extractions of one context. ``given`` is the JSON object of the line; ``result`` is its parsed form."""

    line: int
    context: Mapping[str, Any]
    result: SeedResult
    given: Mapping[str, Any] = field(repr=False)

    @property
    def name(self) -> str:
        """The name of the context, or "context N" if it has no name."""
        return self.result.name or context_name({}, self.index)

    @property
    def index(self) -> int:
        """The index of the context."""
        return self.result.index

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The successful extractions as rows for computations. ``review`` and ``excerpt`` in a row identify its source."""
        return [found.as_json() for found in self.result.extractions if not found.failed]


@define
class Results:
    """A file (``-`` is stdin) with the results of one seed. Iterate over it only once.

    ``items`` yields the lines of the file. ``known`` maps each index to its context (None: not given). ``known`` is used for
    lines that contain no context.
    """

    seed: SeedTree
    items: Contexts
    known: Mapping[int, Mapping[str, Any]] | None = None

    @classmethod
    def of(cls, seed: SeedTree, name: str, contexts: str | None) -> "Results":
        """Prepare to read the file ``name``. ``contexts`` is the file with the contexts (None: not given). Raises ``Misused``."""
        items = Contexts(name, "results", "compute SEED RESULTS")
        if contexts is None:
            return cls(seed, items)
        if contexts == name:
            raise Misused(f"{contexts} is given both as the results and as the contexts")
        order = "compute SEED RESULTS --contexts FILE"
        return cls(seed, items, {item.index: without_reviews(item.value) for item in Contexts(contexts, order=order)})

    def __iter__(self) -> Iterator[Extracted]:
        """Yield the extractions of each context. A faulty line is added to ``items.faults``.

        Raises ``Misused`` if the file does not fit the seed.
        """
        for item in self.items:
            made = self._read(item)
            if isinstance(made, str):
                self.items.faults.append(Item(item.index, item.line, fault=made))
            else:
                yield made

    def _read(self, item: Item) -> "Extracted | str":
        given = item.value
        if "extractions" not in given:
            return self._without_extractions(given)
        try:
            result = read_result(_with_defaults(given, item.index), "it")
        except ResultFault as error:
            return str(error).removeprefix("it: ")
        if result.errors and result.errors[0].kind == "context":
            return f"no extractions: {result.errors[0].message}"
        self._compare(result)
        context = self._context(given, result.index)
        return Extracted(item.line, context, evolve(result, name=_name(given, context)), given)

    def _without_extractions(self, given: Mapping[str, Any]) -> str:
        shown = self.items.display_name
        if "reviews" in given:
            hint = f"extract with: knotwork seed run SEED {shown}"
            raise Misused(f"{shown} contains contexts, not extractions", hint)
        if "outputs" in given:
            raise Misused(
                f"{shown} has no extractions: it was written with --brief",
                "repeat the run without --brief; answers in the cache are reused",
            )
        return 'the key "extractions" is missing'

    def _compare(self, result: SeedResult) -> None:
        """Raise ``Misused`` if the extractions have none of the seed's fields, because then they belong to another seed."""
        have = list(dict.fromkeys(key for found in result.extractions for key in found.extraction))
        fields = self.seed.field_by_name
        if have and fields and not any(key in fields for key in have):
            raise Misused(
                f"{self.items.display_name} belongs to another seed: its fields are {', '.join(have[:_MOST_NAMES])}",
                f"the fields of this seed are {', '.join(list(fields)[:_MOST_NAMES])}",
            )

    def _context(self, given: Mapping[str, Any], index: int) -> Mapping[str, Any]:
        context = given.get("context")
        if isinstance(context, dict):
            return without_reviews(context)
        if self.known is not None:
            name = context if isinstance(context, str) else given.get("name")
            found = self.known.get(index, {})
            if isinstance(name, str) and name and found.get("name", name) != name:
                named = [each for each in self.known.values() if each.get("name") == name]
                if not named:
                    raise Misused(
                        f"{self.items.display_name} has a result for {name}, but the contexts do not include {name}",
                        "use the contexts and the results of the same run",
                    )
                found = named[0]
            return found
        for name in self.seed.context_fields[:1]:
            raise Misused(
                f"{self.seed.source.name} reads context.{name}, but {self.items.display_name} has no contexts",
                "give the file with the contexts: --contexts FILE",
            )
        return {"name": context} if isinstance(context, str) else {}


def _name(given: Mapping[str, Any], context: Mapping[str, Any]) -> str:
    named = (given.get("name"), context.get("name"), given.get("context"))
    return next((name for name in named if isinstance(name, str) and name), "")


def _with_defaults(given: Mapping[str, Any], index: int) -> Mapping[str, Any]:
    """Convert a line to the form of a result of ``seed run``.

    Keys that are missing, as in a line written by hand, get defaults.
    """
    if "status" in given and "counts" in given:
        return given
    found = given["extractions"]
    if isinstance(found, list):
        found = [{"review": place, **each} if isinstance(each, dict) else each for place, each in enumerate(found)]
    lacking = {"name": "", "status": "complete", "outputs": {}, "extractions": found}
    return {
        "index": index,
        **given,
        **lacking,
        "counts": Counts(len(found) if isinstance(found, list) else 0).as_json(),
    }


def choose_result(results: Results, wanted: str | None) -> tuple[Extracted, bool]:
    """Return the result for the context ``wanted`` (its name, or its number from 1), and whether more results follow.

    If ``wanted`` is None, return the first result. Otherwise, the second value is always False. Raises ``Misused`` if the file
    has no such result.
    """
    first: Extracted | None = None
    names: list[str] = []
    number = int(wanted) - 1 if wanted is not None and wanted.isdecimal() and len(wanted) < 10 else None
    numbered: Extracted | None = None
    for found in results:
        if first is not None and wanted is None:
            return first, True
        first = first or found
        if wanted is not None and found.name == wanted:
            return found, False
        if found.index == number:
            numbered = found
        if len(names) < 1000:
            names.append(found.name)
    if wanted is None and first is not None:
        return first, False
    if numbered is not None:
        return numbered, False
    if first is None:
        raise Misused(
            f"{results.items.display_name} has no results",
            *(f"line {fault.line}: {fault.fault}" for fault in results.items.faults[:1]),
        )
    from ....lang.diagnostic import nearest

    near = nearest(str(wanted), names)
    hint = f"did you mean {near}?" if near else f"name a context, or give a number from 1 to {len(names):,}"
    raise Misused(f"{results.items.display_name} has no context {str(wanted)[:60]}", hint)


# Reads and checks the seed that a command takes. A file of another kind is reported.

_OTHERS = {".lwt": "a prompt script", ".gasl": "a program"}


def open_seed(name: str, order: str, *, warn: bool = False) -> SeedTree | Checked:
    """Return the seed, or a ``Checked`` with the errors if the seed is invalid.

    With ``warn``, print the seed's warnings to stderr. ``order`` is the command with its arguments in the correct order, for
    hints. Raises ``Misused`` for a file of another kind.
    """
    for suffix, noun in _OTHERS.items():
        if name.lower().endswith(suffix):
            raise Misused(f"{name} is {noun}, not a Formula Seed", f"run it with: knotwork run {name}")
    try:
        source = read_source(name, like="*.seed.json")
    except Unreadable as error:
        if error.diagnostic.code == "KW003":
            _compare(name, _beginning(name), order)
        return Checked((error.diagnostic,), error.source)
    _compare(source.name, source.text[:_LOOKED_AT].encode("utf-8", "replace"), order)
    required(source, ("seed", "script", "table"), "this command takes a Formula Seed (.seed.json)", "seed")
    checked = check_seed(source)
    if checked.failed or checked.seed is None:
        return checked
    if warn:
        show([checked.without_remarks], sys.stderr)
    return checked.seed


_LOOKED_AT = 4 << 20
"""Maximum number of characters that are read from a file to detect its kind."""


def _beginning(name: str) -> bytes:
    try:
        with open(name, "rb") as file:
            return file.read(_LOOKED_AT)
    except OSError:
        return b""


def _compare(name: str, beginning: bytes, order: str) -> None:
    """Raise ``Misused`` if the file contains contexts, results or CSV. The arguments are then probably in the wrong order."""
    try:
        first = next(values(io.BytesIO(beginning)), None)
    except NotJSON as error:
        if error.looks_like == "csv" or not name.lower().endswith(".json"):
            raise Misused(
                f"{name} is not JSON, so it is not a Formula Seed", f"the argument order is: {order}"
            ) from None
        return
    if first is None or not isinstance(first.value, dict):
        return
    keys = first.value.keys()
    found = "results" if "extractions" in keys else "contexts" if "reviews" in keys else ""
    if found:
        raise Misused(f"{name} contains {found}, not a Formula Seed", f"the argument order is: {order}")


def report_errors(checked: Checked, what: str = "nothing was run") -> int:
    """Report why a seed can't be used, and return the exit code."""
    show([checked.without_remarks], sys.stderr)
    say(what)
    return Exit.ERRORS
