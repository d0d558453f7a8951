"""Runs ``run SCRIPT --each TABLE``: the script once for each row, with a display, an output file and a summary."""

import asyncio
import atexit
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from attrs import define, evolve, field, frozen

from ....lang.diagnostic import printable
from ....lang.source import Source
from ...api import functions, lwt, runs, script_rows
from ...api.clients import default_spec
from ...api.figures import Calls, clock, counted, dollars
from ...api.files import UnknownSuffix
from ...api.process_traces import subscribe as subscribe_traces
from ...api.seed import RequestError, TableError, shown_name
from ...events import Events
from ...results import prices_json, tokens_text
from ..options import named_specs, open_models, price_of
from .display import Foot
from .inputs import STDIN, functions_in, show
from .output import (
    CallNotes,
    Exit,
    Misused,
    cancelling,
    colour,
    complain,
    is_terminal,
    json_text,
    paint,
    say,
    say_prices,
    shell_command,
    write,
)
from .result_file import check_output
from .run_script import RunOptions, print_dry_run, refuse
from .table_options import columns_of

if TYPE_CHECKING:
    from ...api.checks import CheckedScript
    from ...api.lwt import Host, RowResult

_MOST_FAILED = 20
"""Maximum number of rows that are listed as not complete; the results contain all."""
_SECONDS = 10.0
"""Minimum number of seconds between two lines in a pipe."""
_EXISTS = "use --force to overwrite it, or --resume RUN to complete an earlier run"
_CODES = {"complete": Exit.DONE, "partial": Exit.PARTIAL, "failed": Exit.FAILED, "cancelled": Exit.INTERRUPTED}
_STYLES = {"complete": "green", "partial": "yellow", "failed": "red", "cancelled": "yellow"}


@frozen
class EachOptions:
    """The options of ``run`` about the table; ``columns`` has one text ``NAME[:TYPE]=COL`` for each ``--column``."""

    each: str | None = None
    out: str | None = None
    key: str | None = None
    columns: tuple[str, ...] = ()
    query: str | None = None
    encoding: str | None = None
    limit: int | None = None
    sample: int | None = None
    random_state: int = 0
    shard: str | None = None
    spreadsheet: bool = False

    def words(self) -> list[str]:
        """Return the options as words of a command line."""
        values = (
            ("--each", self.each), ("--out", self.out), ("--key", self.key), ("--each-query", self.query),
            ("--encoding", self.encoding), ("--limit", self.limit), ("--sample", self.sample),
            ("--random-state", self.random_state or None), ("--shard", self.shard),
            *(("--column", column) for column in self.columns),
        )  # fmt: skip
        words = [word for name, value in values if value is not None for word in (name, str(value))]
        return [*words, *(["--spreadsheet"] if self.spreadsheet else [])]

    def check_alone(self) -> None:
        """Raise ``Misused`` if an option about the table is given without ``--each``."""
        if self.each is None and self != EachOptions():
            raise Misused(
                f"{self.words()[0]} needs a table", "add --each TABLE, which runs the script once for each row"
            )


def run_each(options: RunOptions, table: EachOptions, source: Source) -> int:
    """Run the script ``source`` for each row; return the exit code. Raises ``Misused``, ``NotConfigured`` and ``RunError``."""
    _check_options(options)
    named, host = named_specs(options.models), functions.host(functions_in(options.functions))
    try:
        stored = script_rows.load_run(options.resume) if options.resume is not None else None
        if stored is not None:
            recorded = stored.head.get("options", {})
            options = evolve(
                options, llm=options.llm or stored.head["model"] or None,
                all_steps=options.all_steps or bool(recorded.get("all_steps")),
            )  # fmt: skip
            named = {**recorded.get("models", {}), **named}
        given: Any = _spooled() if table.each == STDIN else table.each
        rows = script_rows.table_rows(
            given, key=None if table.key is None else [part.strip() for part in table.key.split(",")],
            columns=columns_of(table.columns), query=table.query, encoding=table.encoding or "utf-8", limit=table.limit,
            sample=table.sample, random_state=table.random_state, shard=table.shard,
        )  # fmt: skip
        checked = script_rows.check_rows(
            source, rows, "lenient" if options.lenient else "strict", max_steps=options.max_steps, models=sorted(named),
            host=host,
        )  # fmt: skip
        if checked.failed:
            return refuse(checked, options)
        checked = checked.with_all_steps if options.all_steps else checked
        if table.shard is None and next(iter(rows), None) is None:
            raise Misused(f"{shown_name(rows.table.name)} has no rows")
        if options.dry_run:
            return _dry_run(checked, rows, options, named)
        file = None
        if table.out is not None and table.out != STDIN:
            file = script_rows.RowFile(table.out, spreadsheet=table.spreadsheet)
            own = stored is not None and stored.head.get("options", {}).get("out") == table.out
            check_output(table.out, "--out", "overwrite" if options.force or own else "new", [str(table.each)], _EXISTS)
    except (TableError, UnknownSuffix) as error:
        raise Misused(error.message, error.hint) from None
    except RequestError as error:
        raise Misused(f"--{error.parameter.replace('_', '-')}: {error.message}", error.hint) from None
    except runs.RunError as error:
        complain(error.message, error.hint)
        return Exit.USAGE
    spec = options.llm or (default_spec() if checked.needs_default_model else None)
    return _Rows(options, table, checked, rows, file, named, spec, host).run(stored)


def _spooled() -> Any:
    """Return the JSON lines on stdin as a table. They are copied to a temporary file, because a table is read several times."""
    if sys.stdin is None:
        raise Misused("stdin is closed")
    spool = Path(tempfile.mkdtemp(prefix="knotwork-"))  # only the user can read it
    atexit.register(shutil.rmtree, spool, ignore_errors=True)
    with open(spool / "rows.jsonl", "wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return script_rows.open_rows(spool / "rows.jsonl", "<stdin>")


def _check_options(options: RunOptions) -> None:
    if options.input_file is not None:
        raise Misused("--input can't be combined with --each", "with --each, the input is the row")
    if options.form in ("table", "plain"):
        raise Misused(f"--format {options.form} shows one output", "with --each, write a file with --out FILE")
    if options.workspace.graph is not None or options.workspace.state is not None:
        raise Misused("--each: a script that runs over rows can't use a graph", "omit --graph and --state")


_INCOMPLETE = {"partial": "partial", "failed": "failed", "not_asked": "not asked"}


@define
class _Rows:
    """A run over rows with its display."""

    options: RunOptions
    table: EachOptions
    checked: "CheckedScript"
    rows: Any
    file: Any
    named: Mapping[str, str]
    spec: str | None
    host: "Host"
    calls: Calls = field(factory=Calls)
    statuses: Counter[str] = field(factory=Counter)
    failed: list[tuple[str, str]] = field(factory=list)
    shown: "_Progress | None" = None

    def run(self, stored: Any) -> int:
        """Run the rows, write the results, report, and return the exit code."""
        options, checked = self.options, self.checked
        events = Events()
        models = open_models(
            self.spec, self.named, options.limits, options.max_concurrency, self.note, options.workers, events
        )
        show([checked.without_remarks], sys.stderr)
        if not checked.reads_input:
            say(f"warning: {checked.source.name} does not refer to {{(input)}}, so all rows have the same prompts")
        told = {
            "all_steps": options.all_steps,
            "models": dict(self.named),
            "out": self.table.out,
            "steps": len(checked.script.steps),
        }
        recorder = None
        try:
            try:
                recorder = script_rows.open_record(
                    checked, self.rows, told, source=self.table.each, model=self.spec or "", stored=stored,
                    force=options.force,
                )  # fmt: skip
            except runs.RunError as error:
                complain(error.message, error.hint)
                return Exit.USAGE if stored is not None else Exit.FAILED
            self.shown = _Bar(self) if is_terminal(sys.stderr) and not runs.level() else _Progress(self)
            for subscriber in (self.calls, self.shown):
                events.subscribe(subscriber)
            runs.subscribe_debug_log(events)
            subscribe_traces(events)
            try:
                totals = asyncio.run(self._totals(models, recorder, events))
            except TableError as error:
                self.shown.stop()
                complain(error.message, error.hint)
                say(f"the finished rows are saved; resume with: {self.resume_command(recorder.run_id)}")
                return Exit.FAILED
            self.shown.stop()
            return self._finish(totals, recorder)
        finally:
            if self.shown is not None:
                self.shown.stop()
            if recorder is not None:
                recorder.close()

    async def _totals(self, models: Any, recorder: Any, events: Events) -> Any:
        options, cancel = self.options, asyncio.Event()
        assert self.shown is not None  # noqa: S101 - set by ``run``
        with cancelling(cancel, self.note, self.shown.stop):
            return await script_rows.run_checked_rows(
                self.checked, self.rows, models, recorder, on_result=self.take, events=events, cancel=cancel,
                max_concurrency=options.max_concurrency, schedule=options.schedule, all_steps=options.all_steps,
                strict_types=options.strict_types, host=self.host,
            )  # fmt: skip

    def take(self, result: "RowResult") -> None:
        """Count a result and update the display."""
        self.statuses[result.status] += 1
        if result.status != "complete" and len(self.failed) < _MOST_FAILED:
            name = f"row {result.index + 1}"
            name = name if result.name == str(result.index + 1) else f"{name}, {result.name}"
            self.failed.append((result.status, f"({name}): {result.error}"))
        if self.shown is not None:
            self.shown.moved()

    def note(self, text: str) -> None:
        """Show a message above the display."""
        if self.shown is not None:
            self.shown.note(text)
        else:
            say(printable(text))

    def line(self) -> str:
        """Return the progress as one short line."""
        parts = [counted(self.statuses.total(), "row")]
        parts += [f"{self.statuses[each]:,} {name}" for each, name in _INCOMPLETE.items() if self.statuses[each]]
        return " · ".join([*parts, self.calls.line()] if self.calls.calls else parts)

    def resume_command(self, run_id: str) -> str:
        """Return the shell command that resumes the run."""
        return f"{self.options.resume_command(run_id, self.spec or '')} {shell_command(*self.table.words())}"

    def _finish(self, totals: Any, recorder: Any) -> int:
        on, status = colour(sys.stderr), totals.status
        written = ""
        if not totals.cancelled:
            try:
                written = self._write(recorder)
            except BrokenPipeError:
                raise
            except (TableError, OSError) as error:
                name = self.table.out or "stdout"
                complain(f"{name} can't be written: {getattr(error, 'strerror', None) or error}")
                say(f"the results are saved; resume with: {self.resume_command(recorder.run_id)}")
                return Exit.FAILED
        for each, trouble in self.failed:
            say(f"{paint(_INCOMPLETE[each], 'red' if each == 'failed' else 'yellow', on)} {printable(trouble)}")
        more = sum(totals.statuses[each] for each in _INCOMPLETE) - len(self.failed)
        if more:
            say(f"and {more:,} more rows that are not complete")
        complete = totals.statuses["complete"] + totals.before
        counts = [f"{complete:,} of {counted(totals.rows, 'row')} complete"]
        if totals.cancelled:
            counts = [f"{counted(totals.rows, 'row')} finished, {complete:,} complete"]
        counts += [f"{totals.statuses[each]:,} {name}" for each, name in _INCOMPLETE.items() if totals.statuses[each]]
        counts += [f"{totals.before:,} from an earlier run"] if totals.before else []
        say(f"{paint(status, _STYLES[status], on)}: {' · '.join(counts)}")
        parts = [counted(totals.calls, "call") + (f" ({self.calls.cached:,} cached)" if self.calls.cached else "")]
        if totals.usage.total:
            parts.append(tokens_text(totals.usage))
        parts += [dollars(totals.cost)] if totals.cost else []
        say(" · ".join([*parts, f"{totals.seconds:.2f} s"]))
        say_prices(totals.prices)
        if totals.stopped:
            say(printable(f"calls ended early: {totals.stopped}"))
        if written:
            say(printable(f"written to {written}"))
        damage = recorder.damage or recorder.results_damage
        if damage:
            say(f"not saved: {printable(damage)}")
            return Exit.FAILED
        say(f"saved in {printable(str(recorder.path))}")
        if totals.cancelled:
            say("the results so far are in results.jsonl in this folder")
        if status != "complete":
            say(f"resume with: {self.resume_command(recorder.run_id)}")
        return _CODES[status]

    def _write(self, recorder: Any) -> str:
        results = recorder.results()
        if self.file is not None:
            self.file.write(results, self.rows)
            return str(self.file.name)
        for each in script_rows.row_objects(results, self.rows):
            write(each)
        sys.stdout.flush()
        return ""


@define
class _Progress(CallNotes):
    """Prints warnings, and at most one progress line every ten seconds."""

    run: _Rows
    _last: float | None = None

    def moved(self) -> None:
        """Print a progress line after a finished row, if ten seconds have passed since the last line."""
        now = perf_counter()
        if self._last is None:
            self._last = now
        elif now - self._last >= _SECONDS:
            self._last = now
            self.note(self.run.line())


class _Bar(_Progress):
    """Shows the number of finished rows on a terminal (stderr)."""

    def __init__(self, run: _Rows) -> None:
        super().__init__(run)
        self._foot = Foot(lambda: f"{run.checked.source.name}: {run.line()}")
        self._foot.start()

    def note(self, text: str) -> None:
        """Print a line above the display."""
        self._foot.note(text)

    def stop(self) -> None:
        """Remove the display."""
        self._foot.stop()


def _dry_run(checked: "CheckedScript", rows: Any, options: RunOptions, named: Mapping[str, str]) -> int:
    """Write the prompts of the first row, and the number of calls of all rows; return the exit code."""
    show([checked.without_remarks], sys.stderr)
    found, total = script_rows.dry_run_rows(checked, rows, all_steps=options.all_steps)
    if not found:
        raise Misused(f"{shown_name(rows.table.name)} has no row that can be read")
    spec = options.llm or default_spec(needed=False)
    bounds = [lwt.price_dry_run(each, spec, named, price_of(options.limits.price)) for each in found]
    prices = bounds[0][1]
    share = total / len(found)
    least, most = sum(each.least for each in found), sum(each.most for each in found)
    is_open = any(each.open_ends for each in found)
    known = [each.cost for each, _ in bounds]
    low = None if None in known else sum(cost[0] for cost in known if cost) * share
    highs = [cost[1] for cost in known if cost is not None]
    high = None if low is None or None in highs else sum(cost for cost in highs if cost is not None) * share
    least_all, most_all = round(least * share), round(most * share)
    rate = options.limits.rate
    if options.form == "json":
        document: dict[str, Any] = {
            "rows": total, "rows_counted": len(found), "calls_at_least": least_all,
            "calls_at_most": None if is_open else most_all, "cost": None if low is None else [low, high], "model": spec,
            "rate": rate, "seconds_at_rate": None if rate is None else least_all * 60 / rate, "first_row": found[0].as_json(),
        }  # fmt: skip
        print(json_text(document | prices_json(prices)))
        return Exit.DONE
    print("the first row:")
    print_dry_run(found[0])
    each = f"{found[0].most:,}" if found[0].least == found[0].most else f"{found[0].least:,} to {found[0].most:,}"
    calls = f"{most_all:,}" if least_all == most_all else f"{least_all:,} to {most_all:,}"
    about = "" if len(found) == total else f", counted for the first {len(found):,} rows"
    more = " or more" if is_open else ""
    if spec and most:
        price = prices.get(spec)
        head = (
            "its price is unknown (--price IN/OUT gives it)"
            if price is None
            else f"no cost ({price.source})"
            if price.is_free
            else price.line()
        )
        print(printable(f"model {spec}; {head}"))
        if low is not None and (price is None or not price.is_free):
            print(f"about {dollars(low)}{' or more' if high is None else f' to {dollars(high)}'}")
    if rate is not None and least_all:
        print(f"at --rate {rate:g}: {clock(least_all * 60 / rate)} or more")
    print(
        f"{each} call{'' if each == '1' else 's'} for the first row; {calls}{more} for {counted(total, 'row')}{about}; no model was called"
    )
    return Exit.DONE
