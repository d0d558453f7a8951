"""``knotwork rank``: rank items for a request. A model plans a script and completes it; the script's output names the items."""

import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from attrs import evolve, frozen

from .....adapters.llm.strict_schema import means_of
from .....lang.diagnostic import Diagnostic
from ....api.checks import Checked
from ....api.workspace import Models, close_models
from ....errors import RequestError
from ....events import Event, Events
from ....loops.rank.ranker import MAX_ITERATIONS, Work, check_requests, prepare, rank_many
from ....loops.rank.ranking_results import CALLS, Ranked, RunError, StoredRanking, load, ranked_done, start, totals_done
from ....lwt.run_store import Recorder
from ....models.caller import Caller
from ....models.factory import default_spec
from ....results import Trace
from ....runs.debug_log import DebugLog, level
from ....runs.journal import EventLog
from ...figures import Calls
from ...options import open_models
from ..display import cancelling
from ..inputs import Unreadable, only_one_stdin, read_input, read_source, show
from ..output import Exit, Misused, complain, is_terminal, say
from ..params import LIMITS, MaxConcurrency, MaxCost, MaxTokens, ModelSpec, NoCache, PriceOf, Rate
from ..rank_view import Lines, RankAsked, finish, resume_command

if TYPE_CHECKING:
    from ..rank_view import Screen


def rank(
    items: Annotated[
        str | None,
        typer.Argument(
            metavar="ITEMS",
            help='A JSON file: a list, or {"items": [...]} with what else scripts may read; - is stdin. Not needed with --resume.',
            show_default=False,
        ),
    ] = None,
    request: Annotated[
        str | None,
        typer.Option("--request", "-r", metavar="TEXT", show_default=False, help="The request, in one sentence."),
    ] = None,
    requests: Annotated[
        str | None,
        typer.Option(
            "--requests",
            metavar="FILE",
            show_default=False,
            help='Many requests, a line each: {"request": "..."}; - is stdin. Request n is Rnn in the debug log.',
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            metavar="N",
            min=1,
            show_default=False,
            help="Use only the first N requests.",
        ),
    ] = None,
    llm: ModelSpec = None,
    output_format: Annotated[
        Literal["auto", "table", "json", "plain"],
        typer.Option(
            "--format",
            help="plain: positions from 1, one line per request. auto: a table on a terminal, otherwise json.",
        ),
    ] = "auto",
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="RUN",
            show_default=False,
            help="Resume a stored run and reuse its answers.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Resume although items or requests changed; affected calls are repeated."),
    ] = False,
    max_iterations: Annotated[
        int | None,
        typer.Option(
            "--max-iterations",
            metavar="N",
            show_default=False,
            rich_help_panel=LIMITS,
            help="Maximum number of model answers while a plan is expanded, 1 to 50 (default 10).",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit",
            metavar="SECONDS",
            min=0.001,
            show_default=False,
            rich_help_panel=LIMITS,
            help="Time limit per request in seconds.",
        ),
    ] = None,
    max_concurrency: MaxConcurrency = 8,
    max_calls: Annotated[
        int | None,
        typer.Option(
            "--max-calls",
            metavar="N",
            min=0,
            show_default=False,
            rich_help_panel=LIMITS,
            help="Maximum number of calls of all requests (default: 100 for each request); a call that would exceed it is not made.",
        ),
    ] = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    rate: Rate = None,
    no_cache: NoCache = False,
) -> int:
    """Rank items for a request: plan a prompt script, complete it, run it.

    Positions count from 1. The ranking goes to stdout, progress and messages to stderr. Exit code 4 if only some requests were
    ranked.

    Example: knotwork rank cafes.json --request "cafe with drive-thru"
    """
    from ...options import Limits
    from ..rank_view import RankAsked

    return perform(
        RankAsked(
            items, request, requests, limit, llm, output_format, resume, force, max_iterations, time_limit, max_concurrency,
            Limits(max_calls, max_tokens, max_cost, price, rate, not no_cache),
        )
    )  # fmt: skip


# Before the first model call: read and check items and requests, load a run to resume.


@frozen
class Ready:
    """The items as given, the prepared work, the requests, and the stored run if one is resumed."""

    given: Any
    work: Work
    requests: Sequence[str]
    stored: StoredRanking | None


_EXAMPLE = 'knotwork rank cafes.json --request "cafe with drive-thru"'
_ITEMS = '[{"name": "Milkcrate"}, ...], or {"items": [...]}'
_OF_SCRIPTS = "knotwork run SCRIPT --input -"
_LINE = '{"request": "cafe with drive-thru"}'
_KEYS = ("request", "context", "query", "question", "text")
"""Keys under which a line of a requests file may give the request; "context" is the older name."""


def perform(asked: RankAsked) -> int:
    """Run the command and return the exit code. Raises ``Misused`` and ``NotConfigured``."""
    only_one_stdin([asked.items, asked.requests])
    if asked.request is not None and asked.requests is not None:
        raise Misused("--request and --requests are both given", "one of them")
    try:
        ready = _ready(asked)
    except Unreadable as error:
        show([Checked((_hinted(error),), error.source)], sys.stderr)
        say("nothing was ranked")
        return Exit.ERRORS
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.USAGE
    except RequestError as error:
        raise Misused(f"{_place(asked, error.parameter)}: {error.message}", error.hint) from None

    return run(asked, ready)


def _ready(asked: RankAsked) -> Ready:
    stored = load(asked.resume) if asked.resume is not None else None
    if asked.items is not None:
        items = read_input(asked.items)
    elif stored is not None:
        items = stored.items
    else:
        raise Misused("there are no items to rank", _EXAMPLE)
    if asked.request is not None:
        requests: Sequence[str] = [asked.request]  # --limit is at least 1 and has no effect here
    elif asked.requests is not None:
        requests = _requests(asked.requests)[: asked.limit]
    elif stored is not None:
        requests = stored.requests[: asked.limit]
    else:
        raise Misused("nothing says what is wanted", f"{_EXAMPLE}, or --requests FILE.jsonl")
    most = MAX_ITERATIONS if asked.max_iterations is None else asked.max_iterations
    work = prepare(items, max_iterations=most, max_concurrency=asked.max_concurrency, time_limit=asked.time_limit)
    check_requests(requests)
    return Ready(items, work, requests, stored)


def _hinted(error: Unreadable) -> Diagnostic:
    """Return the diagnostic of a file with hints for this command; the original hints are about a script's input."""
    found, name = error.diagnostic, error.source.name
    if found.message.endswith("it is a folder"):
        return evolve(found, hints=(f"name a file in it, with {_ITEMS}",))
    if found.code != "KW004":
        return found
    hints = tuple(hint.replace(_OF_SCRIPTS, "knotwork rank - --request ...") for hint in found.hints)
    if not hints or hints[0].startswith("plain text"):
        hints = (f"{'it is CSV; ' if name.lower().endswith(('.csv', '.tsv')) else ''}items are JSON: {_ITEMS}",)
    return evolve(found, hints=hints)


def _place(asked: RankAsked, parameter: str) -> str:
    known = {
        "items": asked.items or "items", "request": "--request" if asked.request is not None else asked.requests or "request",
        "max_iterations": "--max-iterations", "time_limit": "--time-limit", "max_concurrency": "--max-concurrency",
    }  # fmt: skip
    return known.get(parameter, parameter)


def _requests(name: str) -> list[str]:
    """Return the requests of a file, one JSON object or JSON string per line. Raises ``Unreadable`` and ``Misused``."""
    from .....adapters.llm.answers import read_json

    source = read_source(name, like="*.jsonl")
    found: list[str] = []
    for number, line in enumerate(source.text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = read_json(line)
        except ValueError as error:
            why = str(error).replace("(line 1, ", "(")  # the line number is given by our message
            raise Misused(
                f"{source.name}, line {number}: not JSON: {why}", _as_lines(source.text, source.name)
            ) from None
        if isinstance(value, dict):
            value = next((value[key] for key in _KEYS if key in value), None)
        if not isinstance(value, str) or not value.strip():
            raise Misused(f"{source.name}, line {number}: there is no request", _as_lines(source.text, source.name))
        found.append(value)
    if not found:
        raise Misused(f"{source.name} has no requests", f"a line is {_LINE}")
    return found


def _as_lines(text: str, name: str) -> str:
    """Return a hint with the format of requests and a command that converts the file's probable format."""
    if text.lstrip()[:1] == "[":
        return f"a line is {_LINE}; of one list lines are made by: jq -c '.[]' {name}"
    if text.lstrip()[:1] not in ("{", '"'):
        return f"a line is {_LINE}; of plain lines they are made by: jq -R . {name}"
    return f"a line is {_LINE}"


# The run itself: models, rankings, display, final report.


def run(asked: RankAsked, ready: Ready) -> int:
    """Rank, and return the exit code. Raises ``NotConfigured``."""
    calls = Calls()
    spec = (
        asked.llm or (str(ready.stored.head["model"]) if ready.stored is not None else "") or default_spec(os.environ)
    )
    ready.work.means = means_of(spec)
    screen = _screen(calls, ready.requests)
    note = say if screen is None else screen.note
    models = open_models(
        spec,
        {},
        evolve(asked.limits, max_calls=_most(asked, ready)),
        asked.max_concurrency,
        lambda text: note(f"warning: {text}"),
    )
    try:
        recorder = _recorder(asked, ready, spec)
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.USAGE if ready.stored is not None else Exit.FAILED
    began = perf_counter()
    try:
        ranked = asyncio.run(_ranked(asked, ready, models, recorder, calls, screen))
    finally:
        if screen is not None:
            screen.stop()
        recorder.close()
    several = asked.requests is not None or len(ready.requests) > 1
    resume = resume_command(recorder.run_id, asked, spec)
    return finish(ranked, calls, asked, recorder, resume, perf_counter() - began, several=several)


def _most(asked: RankAsked, ready: Ready) -> int:
    """Return the maximum number of model calls."""
    given = asked.limits.max_calls
    return CALLS * len(ready.requests) if given is None else given


def _recorder(asked: RankAsked, ready: Ready, spec: str) -> Recorder:
    if ready.stored is None:
        return start(ready.given, ready.requests, model=spec, name=f"rank {asked.items}")
    given = ready.given if asked.items is not None else None
    requests = ready.requests if asked.request is not None or asked.requests is not None else None
    return ready.stored.resume(given, requests, force=asked.force)


async def _ranked(
    asked: RankAsked, ready: Ready, models: Models, recorder: Recorder, calls: Calls, screen: "Screen | None"
) -> list[Ranked]:  # fmt: skip
    cancel, began = asyncio.Event(), perf_counter()
    gate = Caller(models.default, {}, None, Trace(), asked.max_concurrency).gate
    several = len(ready.requests) > 1
    log = EventLog.open(recorder.path)

    def caller(number: int) -> Caller:
        events = Events()
        for subscriber in (calls, _teller(number, screen, several=several), log.of(events, number)):
            events.subscribe(subscriber)
        made = Caller(models.default, models.named, events, Trace(), asked.max_concurrency, recorder)
        made.gate = gate
        return made

    def over(ranked: Ranked) -> None:
        ranked_done(recorder, ranked)
        if screen is not None:
            screen.ranked(ranked)

    note, stop = (say, None) if screen is None else (screen.note, screen.stop)
    with cancelling(cancel, note, stop):
        if screen is not None:
            screen.start()
        try:
            ranked = await rank_many(
                ready.work, ready.requests, caller, cancel=cancel, on_ranked=over, max_calls=_most(asked, ready)
            )
        finally:
            log.close()
            await close_models(models)
    totals_done(recorder, ranked, perf_counter() - began)
    return ranked


def _screen(calls: Calls, requests: Sequence[str]) -> "Screen | None":
    """Return the live display; None if stderr is not a terminal or the debug log is on."""
    if level() or not is_terminal(sys.stderr):
        return None
    from ..rank_view import Screen  # imports rich, which a pipe does not need

    return Screen(calls, requests)


def _teller(number: int, screen: "Screen | None", *, several: bool) -> Callable[[Event], None]:
    """Return the event subscriber of one request: the debug log if it is on, else the display or plain lines."""
    if level():
        return DebugLog(level(), 1, number)
    return Lines(number, several) if screen is None else screen.of(number)
