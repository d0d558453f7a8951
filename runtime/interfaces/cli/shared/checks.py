"""Reads and checks scripts, programs and seeds for all commands, and shows diagnostics."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Literal, TextIO

from .....lang.diagnostic import WIDTH, as_json, picture, printable, sort_key
from .....lang.source import Source
from .....lang.trees.lwt import MAX_STEPS, MISSING, Mode
from ....api.checked import Checked, CheckedScript, CheckedSeed, check_program, check_script, check_seed
from .files import Unreadable, only_one_stdin, read_input, read_source, required
from .output import Exit, Misused, colour, is_terminal, json_text, picture_in_colour

if TYPE_CHECKING:
    from ....api.checked import Surroundings

__all__ = ["check_files", "report", "show"]


def check_files(
    names: Sequence[str],
    mode: Mode,
    input_name: str | None = None,
    against: "Surroundings | None" = None,
    *,
    max_steps: int = MAX_STEPS,
) -> list[Checked]:
    """Read and check every file, against the input if one is named. An input that can't be read comes first.

    ``against`` has the graph and the state that programs are checked against. The input of a seed is a context or a list of them.
    ``max_steps``: the most steps of a script. Raises ``WrongFile`` for a file of another kind.
    """
    only_one_stdin([*names, input_name])
    results: list[Checked] = []
    given: tuple[Any, ...] = ()
    if input_name is not None:
        try:
            given = (read_input(input_name),)
        except Unreadable as error:
            results.append(Checked((error.diagnostic,), error.source))
    return results + [_check_file(name, mode, given, against, max_steps) for name in names]


def _check_file(
    name: str, mode: Mode, given: tuple[Any, ...], against: "Surroundings | None", max_steps: int
) -> Checked:
    """Read and check one file, in the language that it is in; what checks the others is not loaded."""
    try:
        source = read_source(name)
    except Unreadable as error:
        return Checked((error.diagnostic,), error.source)
    match required(source, ("script", "program", "plan", "seed"), TAKEN):
        case "seed":
            return seed_against(source, *given)
        case "program":
            return check_program(source, "gasl", against)
        case "plan":
            return check_program(source, "plan", against)
    return check_script(source, mode, max_steps=max_steps, input=given[0] if given else MISSING)


def seed_against(source: Source, given: Any = None) -> CheckedSeed:
    """Check a seed, against a context or a list of contexts. Raises ``Misused`` for an input that is neither."""
    from ....seeds.reviews import ContextError

    try:
        return check_seed(source, given)
    except ContextError as error:
        hint = 'the input of a seed is a context, or a list of them: {"name": "Cafe", "reviews": [{"text": "..."}]}'
        raise Misused(str(error), hint) from None


TAKEN = "this command takes scripts (.lwt), programs (.gasl), plans and seeds (.seed.json)"

_DRAWN = 50
"""Diagnostics drawn for one file; nobody reads more at once, and most of them have one cause."""


def show(results: Iterable[Checked], out: TextIO) -> None:
    """Draw the diagnostics for a person, errors before what is cut off, a blank line between them."""
    from .....adapters.llm.keys import mask_keys

    in_colour = colour(out)
    # Beside the line's number and the marks of what was cut; what is folded by the terminal parts a caret from what it marks.
    width = min(get_terminal_size().columns - 9, WIDTH) if is_terminal(out) else WIDTH
    for result in results:
        found = result.diagnostics
        if len(found) > _DRAWN:
            errors = [diagnostic for diagnostic in found if diagnostic.severity == "error"][:_DRAWN]
            others = [diagnostic for diagnostic in found if diagnostic.severity != "error"][: _DRAWN - len(errors)]
            found = tuple(sorted((*errors, *others), key=sort_key))
        for diagnostic in found:
            drawn = mask_keys(picture(diagnostic, result.source, width), typed=diagnostic.code.startswith("LWT"))
            print(picture_in_colour(drawn, diagnostic.severity) if in_colour else drawn, file=out)
            print(file=out)
        if more := len(result.diagnostics) - len(found):
            name = printable(result.source.name)
            print(f"and {more:,} more in {name}; knotwork check --format json has them all\n", file=out)


def report(results: Sequence[Checked], form: Literal["human", "json"]) -> int:
    """Write all diagnostics to stdout and return the exit code."""
    if form == "json":
        print(json_text([as_json(d, result.source) for result in results for d in result.diagnostics]))
    else:
        show(results, sys.stdout)
        print(_summary(results))
    return Exit.ERRORS if any(result.failed for result in results) else Exit.DONE


def _summary(results: Sequence[Checked]) -> str:
    counts = Counter(diagnostic.severity for result in results for diagnostic in result.diagnostics)
    files = _many(len(results), "file")
    sizes = [
        (
            sum(result.size for result in results if has_steps == isinstance(result, CheckedScript | CheckedSeed)),
            noun,
        )
        for has_steps, noun in ((True, "step"), (False, "command"))
    ]
    told = [_many(count, noun) for count, noun in sizes if count]
    found = [_many(counts[severity], noun) for severity, noun in _NOUNS if counts[severity]]
    return f"{', '.join(found) or 'nothing to report'} in {files} ({', '.join(told) or 'empty'})"


_NOUNS: tuple[tuple[Literal["error", "warning", "info"], str], ...] = (
    ("error", "error"), ("warning", "warning"), ("info", "remark"),
)  # fmt: skip


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
