"""``knotwork rank``: rank items for a request. A model plans a script and completes it; the output of the script is the ranking."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ..output import Exit, Misused, complain, say
from ..params import (
    LIMITS,
    MaxConcurrency,
    MaxCost,
    MaxTokens,
    ModelSpec,
    NoCache,
    PriceOf,
    Rate,
    argument,
    flag,
    option,
    time_limit_option,
)

if TYPE_CHECKING:
    from .....lang.diagnostic import Diagnostic
    from ..inputs import Unreadable

_EXAMPLE = 'knotwork rank cafes.json --request "cafe with drive-thru"'


def rank(
    items: Annotated[
        str | None,
        argument(
            "ITEMS",
            'A JSON file: a list, or {"items": [...]} with what else scripts may read; - is stdin. Not needed with --resume.',
        ),
    ] = None,
    request: Annotated[str | None, option("--request -r", "TEXT", "The request, in one sentence.")] = None,
    requests: Annotated[
        str | None,
        option(
            "--requests",
            "FILE",
            'Many requests, a line each: {"request": "..."}; - is stdin. Request n is Rnn in the debug log.',
        ),
    ] = None,
    limit: Annotated[int | None, option("--limit -n", "N", "Use only the first N requests.", min=1)] = None,
    llm: ModelSpec = None,
    output_format: Annotated[
        Literal["auto", "table", "json", "plain"],
        option(
            "--format",
            None,
            "plain: positions from 1, one line per request. auto: a table on a terminal, otherwise json.",
            show_default=True,
        ),
    ] = "auto",
    resume: Annotated[str | None, option("--resume", "RUN", "Resume a stored run and reuse its answers.")] = None,
    force: Annotated[
        bool, flag("--force", "Resume although items or requests changed; affected calls are repeated.")
    ] = False,
    max_iterations: Annotated[
        int | None,
        option(
            "--max-iterations",
            "N",
            "Maximum number of model answers while a plan is expanded, 1 to 50 (default 10).",
            LIMITS,
        ),
    ] = None,
    time_limit: Annotated[float | None, time_limit_option("Time limit per request in seconds.")] = None,
    max_concurrency: MaxConcurrency = 8,
    max_calls: Annotated[
        int | None,
        option(
            "--max-calls",
            "N",
            "Maximum number of calls of all requests (default: 100 for each request); a call that would exceed it is not made.",
            LIMITS,
            min=0,
        ),
    ] = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    rate: Rate = None,
    no_cache: NoCache = False,
) -> int:
    """Rank items for a request: plan a prompt script, complete it, run it.

    Positions count from 1. The ranking is written to stdout, progress and messages to stderr. Exit code 4 if only some requests were
    ranked.

    Example: knotwork rank cafes.json --request "cafe with drive-thru"
    """
    from ....api.checks import Checked
    from ....api.figures import Calls
    from ....api.planner import Rankings, RequestError, RunError
    from ...options import price_of
    from ..inputs import Unreadable, only_one_stdin, read_input, show
    from ..rank_view import finish, open_view

    only_one_stdin([items, requests])
    if request is not None and requests is not None:
        raise Misused("--request and --requests are both given", "give only one of them")
    if items is None and resume is None:
        raise Misused("the items to rank are missing", _EXAMPLE)
    if request is None and requests is None and resume is None:
        raise Misused("the request is missing", f"{_EXAMPLE}, or --requests FILE.jsonl")
    settings: dict[str, Any] = {"max_calls": max_calls, "max_iterations": max_iterations, "time_limit": time_limit}
    calls = Calls()
    try:
        rankings = Rankings(
            None if items is None else read_input(items),
            [request] if request is not None else None if requests is None else _requests(requests), llm,
            limit=None if request is not None else limit, name=f"rank {items}", warn=lambda text: view.note(f"warning: {text}"),
            record=True, resume=resume, force=force, max_concurrency=max_concurrency, max_tokens=max_tokens, max_cost=max_cost,
            price=price_of(price), rate=rate, cache=not no_cache,
            **{name: value for name, value in settings.items() if value is not None},
        )  # fmt: skip
        view = open_view(calls, rankings.requests)
        ranked, seconds = asyncio.run(view.run(rankings))
    except Unreadable as error:
        show([Checked((_with_hints(error),), error.source)], sys.stderr)
        say("nothing was ranked")
        return Exit.ERRORS
    except RunError as error:
        complain(error.message, error.hint)
        return Exit.USAGE if resume is not None else Exit.FAILED
    except RequestError as error:
        places = {"items": items, "request": "--request" if request is not None else requests}
        place = places.get(error.parameter) or f"--{error.parameter.replace('_', '-')}"
        raise Misused(f"{place}: {error.message}", error.hint) from None
    several = requests is not None or len(rankings.requests) > 1
    return finish(rankings, ranked, calls, output_format, llm, seconds, several=several)


_ITEMS = '[{"name": "Milkcrate"}, ...], or {"items": [...]}'
_LINE = 'a line is {"request": "cafe with drive-thru"}'
_KEYS = ("request", "context", "query", "question", "text")
"""Keys that may hold the request in a line of a requests file; "context" is the older name."""


def _with_hints(error: "Unreadable") -> "Diagnostic":
    """Return the diagnostic of a file with hints for this command. The original hints describe the input of a script."""
    from attrs import evolve

    diagnostic, name = error.diagnostic, error.source.name
    if diagnostic.message.endswith("it is a folder"):
        return evolve(diagnostic, hints=(f"name a file in it, with {_ITEMS}",))
    if diagnostic.code != "KW004":
        return diagnostic
    command = "knotwork rank - --request ..."
    hints = tuple(hint.replace("knotwork run SCRIPT --input -", command) for hint in diagnostic.hints)
    if not hints or "plain text" in hints[0]:
        hints = (f"{'the file is CSV; ' if name.lower().endswith(('.csv', '.tsv')) else ''}items are JSON: {_ITEMS}",)
    return evolve(diagnostic, hints=hints)


def _requests(name: str) -> list[str]:
    """Return the requests of a file, one JSON object or JSON string per line. Raises ``Unreadable`` and ``Misused``."""
    from .....adapters.llm.json_schema import read_json
    from ..inputs import read_source

    source = read_source(name, like="*.jsonl")
    beginning, hint = source.text.lstrip()[:1], _LINE
    if beginning == "[":
        hint = f"{_LINE}; convert a list into lines: jq -c '.[]' {source.name}"
    elif beginning not in ("{", '"'):
        hint = f"{_LINE}; convert plain lines: jq -R . {source.name}"
    requests: list[str] = []
    for number, line in enumerate(source.text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = read_json(line)
        except ValueError as error:
            reason = str(error).replace("(line 1, ", "(")  # the message below has the line number in the file
            raise Misused(f"{source.name}, line {number}: not JSON: {reason}", hint) from None
        if isinstance(value, dict):
            value = next((value[key] for key in _KEYS if key in value), None)
        if not isinstance(value, str) or not value.strip():
            raise Misused(f"{source.name}, line {number}: the request is missing", hint)
        requests.append(value)
    if not requests:
        raise Misused(f"{source.name} has no requests", _LINE)
    return requests
