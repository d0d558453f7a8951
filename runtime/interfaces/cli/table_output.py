"""Writes results as whole files: for ``--out`` with a table's suffix, ``--extractions``, ``seed export`` and ``seed merge``."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from ....lang.diagnostic import printable
from ...api.checks import Checked
from ...api.figures import counted
from ...api.files import UnknownSuffix
from ...api.seed import Merged, RequestError, ResultFiles, RunError, SeedError, TableError, export, merge
from .extractions import open_seed, report_errors
from .inputs import STDIN
from .output import Exit, Misused, complain, say
from .result_file import Form, check_output, same_file

T = TypeVar("T")
_LISTED = 20
"""Maximum number of missing shards or contexts that are listed."""


def open_files(
    form: Form, out: str | None, extractions: str | None, spreadsheet: bool, brief: bool
) -> ResultFiles | None:
    """Return the files that are written as a whole at the end of a run; None if there are none.

    ``form`` is the format of ``out``. Raises ``Misused`` if a suffix is unknown, or if the package that writes the format is
    not installed.
    """
    whole = out if form not in ("jsonl", "table") and out not in (None, STDIN) else None
    if whole is None and extractions is None:
        return None
    if (
        out is not None
        and extractions is not None
        and (Path(out).resolve() == Path(extractions).resolve() or same_file(out, extractions))
    ):
        raise Misused("--out and --extractions name the same file", "choose another file for --extractions")
    try:
        return ResultFiles(whole, extractions, spreadsheet=spreadsheet, brief=brief, form=form)
    except UnknownSuffix as error:
        raise Misused(error.message, error.hint) from None
    except TableError as error:
        raise Misused(error.message, error.hint) from None


def export_run(run: str, out: str | None, extractions: str | None, force: bool, brief: bool, spreadsheet: bool) -> int:
    """Write the results of a stored run to files; return the exit code."""
    _check_files("export", out, extractions, force)
    written = _written(
        lambda: export(run, out, extractions=extractions, spreadsheet=spreadsheet, brief=brief), out, run
    )
    if not isinstance(written, int) or isinstance(written, Exit):
        return written
    say(printable(f"{counted(written, 'result')} written to {_names(out, extractions)}"))
    return Exit.DONE


def merge_parts(
    parts: Sequence[str], out: str | None, extractions: str | None, seed: str | None, force: bool, brief: bool, spreadsheet: bool
) -> int:  # fmt: skip
    """Write the results of shards to files; return the exit code."""
    _check_files("merge", out, extractions, force, parts)
    tree = None if seed is None else open_seed(seed, "knotwork seed merge PART... --seed SEED")
    if isinstance(tree, Checked):
        return report_errors(tree)
    made = _written(
        lambda: merge(parts, out, extractions=extractions, seed=tree, spreadsheet=spreadsheet, brief=brief),
        out,
        ", ".join(parts),
    )
    if not isinstance(made, Merged):
        return made
    say(
        printable(
            f"{counted(made.results, 'result')} of {counted(len(parts), 'part')} written to {_names(out, extractions)}"
        )
    )
    if made.empty:
        say(f"{counted(made.empty, 'part')} without a result: a shard without contexts, or a run that failed")
    if made.missing_shards:
        say(f"missing shards: {_some(made.missing_shards)}")
    for name in made.unfinished:
        say(printable(f"the run {name} has not ended; resume it first"))
    if made.sample is not None:
        say(f"the sample has {made.sample:,} contexts")
    if made.missing and not made.missing_shards:
        some = [str(index + 1) for index in made.missing]
        say(f"contexts without a result: {_some(some)}{' (and perhaps others)' if len(some) >= 1_000 else ''}")
    return Exit.DONE if made.is_complete else Exit.PARTIAL


def _some(names: Sequence[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more:,} more" if more > 0 else "")


def _names(*names: str | None) -> str:
    return " and ".join(name for name in names if name is not None)


def _check_files(
    command: str, out: str | None, extractions: str | None, force: bool, sources: Sequence[str] = ()
) -> None:
    """Raise ``Misused`` if the files can't be written."""
    if out is None and extractions is None:
        raise Misused(f"seed {command} needs --out or --extractions", "such as --out results.parquet")
    if STDIN in (out, extractions):
        raise Misused(f"seed {command} writes files, not stdout", "such as --out results.jsonl")
    if out is not None and extractions is not None and Path(out).resolve() == Path(extractions).resolve():
        raise Misused("--out and --extractions name the same file", "choose another file for --extractions")
    for name, option in ((out, "--out"), (extractions, "--extractions")):
        if name is not None:
            check_output(name, option, "overwrite" if force else "new", sources)


def _written(write: Callable[[], T], out: str | None, source: str) -> "T | Exit":
    """Return the result of ``write``; after a failure, report it and return the exit code. Raises ``Misused``."""
    try:
        return write()
    except UnknownSuffix as error:
        raise Misused(error.message, error.hint) from None
    except RequestError as error:
        raise Misused(error.message, error.hint) from None
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.USAGE
    except SeedError as error:
        complain(f"the seed of run {source} can't be read: {error.message or error}")
        return Exit.FAILED
    except TableError as error:
        complain(error.message, error.hint)
        return Exit.USAGE if "pip install" in error.hint else Exit.FAILED
    except OSError as error:
        complain(f"{error.filename or out} can't be written: {error.strerror or error}")
        return Exit.FAILED
