"""Results on their way out: as JSON lines, as CSV, or as a table; to stdout or into a file."""

import json
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from attrs import define, field, frozen

from ..atomic_write import UnknownSuffix, known_suffix
from ..options import Limits
from .result_file import Opening, OutFile, cell, columns, csv_line, row
from .shared.files import STDIN
from .shared.output import Misused, is_terminal, say, write

__all__ = ["OutFormat", "SeedAsked", "Sink", "form_of", "open_sink", "resume_command", "same_file"]


# What a person asked of ``seed run``, as values.


OutFormat = Literal["auto", "jsonl", "csv", "table"]


@frozen
class SeedAsked:
    """The arguments of ``knotwork seed run``, under the names that the command line has."""

    seed: str
    contexts: str
    llm: str | None
    out: str | None
    form: OutFormat
    resume: str | None
    force: bool
    brief: bool
    dry_run: bool
    max_concurrency: int
    limits: Limits
    strict_types: bool = False
    allow_invalid: float | None = None


def resume_command(run_id: str, asked: SeedAsked, model: str) -> str:
    """Return the command that goes on with the run, ready to be pasted into a shell. What came through stdin is named FILE."""
    words = ["knotwork", "seed", "run", *(name if name != STDIN else "FILE" for name in (asked.seed, asked.contexts))]
    words += ["--resume", run_id]
    if asked.llm is not None:
        words += ["--llm", model]
    if asked.out is not None:
        words += ["--out", asked.out]
    if asked.form != "auto":
        words += ["--format", asked.form]
    if asked.allow_invalid is not None:
        words += ["--allow-invalid", f"{asked.allow_invalid:g}"]
    words += [flag for flag, on in (("--brief", asked.brief), ("--strict-types", asked.strict_types)) if on]
    return shlex.join(words) if sys.platform != "win32" else " ".join(words)


_ROWS = 50
"""Rows of a table that is drawn; the others are counted."""
_WIDEST = 60
"""Characters of a cell of a table."""
_OUTPUTS = 8
"""Outputs that a table shows."""


_FORMS: dict[str, Literal["jsonl", "csv"]] = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv"}


def form_of(form: OutFormat, out: str | None) -> Literal["jsonl", "csv", "table"]:
    """Return the form that results are written in.

    Raises ``Misused`` for a table in a file, a suffix that is not one of ours, and one that says otherwise than ``form``.
    """
    to_file = out is not None and out != STDIN
    if form == "table" and to_file:
        raise Misused("a table is for the terminal; a file takes jsonl or csv", "--format csv")
    if out is not None and to_file:
        try:
            suffix = known_suffix(out, tuple(_FORMS), ", or say --format jsonl")
        except UnknownSuffix as error:
            if form == "auto":
                raise Misused(error.message, error.hint) from None
            return form
        if form not in ("auto", _FORMS.get(suffix, form)):
            raise Misused(
                f"--format {form} and the name {out} contradict each other", f"leave out --format, or write .{form}"
            )
        return _FORMS.get(suffix, "jsonl") if form == "auto" else form
    if form != "auto":
        return form
    return "table" if is_terminal(sys.stdout) else "jsonl"


def same_file(one: str, other: str) -> bool:
    """Say whether both names are of one file that is there."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


@define
class Sink:
    """Takes results one by one. ``kept``: those that the file had already, name by index; nobody need make them again."""

    form: Literal["jsonl", "csv", "table"]
    outputs: Sequence[str]
    brief: bool
    kept: Mapping[int, str] = field(factory=dict)
    written: int = 0
    _file: OutFile | None = None
    _rows: list[tuple[Any, ...]] = field(factory=list)

    @property
    def to_stdout(self) -> bool:
        """Say whether there is no file."""
        return self._file is None

    def put(self, result: Mapping[str, Any]) -> None:
        """Write one result (its JSON). Raises ``Unwritten`` where the file takes no more."""
        self.written += 1
        if self.form == "table":
            if len(self._rows) < _ROWS:
                shown = tuple(result[key] for key in ("index", "name", "status", "outputs", "counts"))
                self._rows.append(shown)
            return
        if self.form == "csv":
            line = csv_line(row(result, self.outputs))
        else:
            told = {key: value for key, value in result.items() if not (self.brief and key == "extractions")}
            unicode = self._file is not None or "utf" in (getattr(sys.stdout, "encoding", None) or "").lower()
            line = json.dumps(told, ensure_ascii=not unicode, allow_nan=False) + "\n"
        if self._file is not None:
            self._file.write(line)
        else:
            write(line)
            sys.stdout.flush()

    def end(self) -> None:
        """Write what is left to write, and close."""
        if self.form == "table" and self._rows:
            self._draw()
        self.close()

    def close(self) -> None:
        """Let go of the file; more than once is fine."""
        if self._file is not None:
            self._file.close()

    def _draw(self) -> None:
        from .shared.tables import render

        outputs = list(self.outputs[-_OUTPUTS:])
        rows = [
            [
                name,
                status,
                *(_short(values.get(output)) for output in outputs),
                f"{counts['kept']} of {counts['reviews']}",
            ]
            for _, name, status, values, counts in sorted(self._rows, key=lambda row: row[0])
        ]
        print(render(["name", "status", *outputs, "kept"], rows, wide=frozenset({"status", "kept"})), end="")
        if self.written > len(rows):
            say(f"and {self.written - len(rows):,} more; --format jsonl has them all")
        if len(self.outputs) > _OUTPUTS:
            say(f"these are the last {_OUTPUTS} of {len(self.outputs)} outputs; --format csv has them all")


def _short(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else cell(value)
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def open_sink(
    out: str | None, form: OutFormat, outputs: Sequence[str], opening: Opening, brief: bool, sources: Sequence[str] = ()
) -> Sink:
    """Open what results go to. Raises ``Misused`` where the file is one of ``sources``, or is there, and ``OSError``."""
    chosen = form_of(form, out)
    if out is None or out == STDIN:
        sink = Sink(chosen, outputs, brief)
        if chosen == "csv":
            write(csv_line(columns(outputs)))
        return sink
    for source in sources:
        if source != STDIN and same_file(source, out):
            raise Misused(f"{out} is what is read, and would be lost", "--out takes another file")
    file = OutFile.open(out, "csv" if chosen == "csv" else "jsonl", outputs, opening)
    return Sink(chosen, outputs, brief, file.kept, file=file)
