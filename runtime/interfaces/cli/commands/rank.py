"""``knotwork rank``: rank items for a request. A model plans and completes a script; the output of the script is the ranking."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ..output import Exit, Misused, complain, say
from ..params import (
    LIMITS,
    CacheAt,
    MaxConcurrency,
    MaxCost,
    MaxTokens,
    ModelSpec,
    NoCache,
    PriceOf,
    Rate,
    argument,
    cache_of,
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
            'JSON file with the items: a list, or {"items": [...], ...} with further data for scripts; - for stdin. '
            "Not needed with --resume.",
        ),
    ] = None,
    request: Annotated[str | None, option("--request -r", "TEXT", "The request, in one sentence.")] = None,
    requests: Annotated[
        str | None,
        option(
            "--requests",
            "FILE",
            'File with one request per line, {"request": "..."}; - for stdin. The debug log numbers the requests R00, R01 and so on.',
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
        bool, flag("--force", "Resume even if items or requests changed; affected calls are repeated.")
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
            "Maximum number of calls for all requests (default: 100 per request); a call beyond the limit is not made.",
            LIMITS,
            min=0,
        ),
    ] = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    rate: Rate = None,
    cache: CacheAt = None,
    no_cache: NoCache = False,
) -> int:
    """Rank items for a request: plan, complete and run a prompt script.

    Positions start at 1. The ranking is written to stdout, progress and messages to stderr. Exit code 4 if only some requests were
    ranked.

    Example: knotwork rank cafes.json --request "cafe with drive-thru"
    """
    from ....api.checks import Checked
    from ....api.figures import Calls
    from ....api.planner import Rankings, RequestError, RunError, read_requests
    from ....errors import WrongFile
    from ...options import price_of
    from ..inputs import Unreadable, only_one_stdin, read_input, read_source, show
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
        asked = None if request is None else [request]
        rankings = Rankings(
            None if items is None else read_input(items),
            asked if requests is None else read_requests(read_source(requests, like="*.jsonl")), llm,
            limit=None if request is not None else limit, name=f"rank {items}", warn=lambda text: view.note(f"warning: {text}"),
            record=True, resume=resume, force=force, max_concurrency=max_concurrency, max_tokens=max_tokens, max_cost=max_cost,
            price=price_of(price), rate=rate, cache=cache_of(cache, no_cache),
            **{name: value for name, value in settings.items() if value is not None},
        )  # fmt: skip
        view = open_view(calls, rankings.requests)
        ranked, seconds = asyncio.run(view.run(rankings))
    except Unreadable as error:
        show([Checked((_with_hints(error),), error.source)], sys.stderr)
        say("nothing was ranked")
        return Exit.ERRORS
    except WrongFile as error:
        raise Misused(error.message, error.hint) from None
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


def _with_hints(error: "Unreadable") -> "Diagnostic":
    """Return the diagnostic for an unreadable file, with hints that fit this command.

    Its original hints are about the input of a script.
    """
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
