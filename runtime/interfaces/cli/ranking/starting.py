"""What ``rank`` does before anything is spent: items and requests read and checked, an earlier run found."""

import sys
from collections.abc import Sequence

from attrs import evolve

from .....lang.diagnostic import Diagnostic
from ....api.checked import Checked
from ....errors import RequestError
from ....loops.rank.ranker import MAX_ITERATIONS, check_requests, prepare
from ....loops.rank.ranking_results import RunError, load
from ..shared.checking import show
from ..shared.exit import Exit, Misused
from ..shared.files import Unreadable, only_one_stdin, read_input, read_source
from ..shared.output import complain, say
from .asked import RankAsked
from .ready import Ready

__all__ = ["perform"]

_EXAMPLE = 'knotwork rank cafes.json --request "cafe with drive-thru"'
_ITEMS = '[{"name": "Milkcrate"}, ...], or {"items": [...]}'
_OF_SCRIPTS = "knotwork run SCRIPT --input -"
_LINE = '{"request": "cafe with drive-thru"}'
_KEYS = ("request", "context", "query", "question", "text")
"""What a line of requests may call the request; "context" is the older name."""


def perform(asked: RankAsked) -> int:
    """Do what was asked and return the exit code. Raises ``Misused`` and ``NotConfigured``."""
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
    from .running import run  # brings the event loop, which nothing before needs

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
        requests: Sequence[str] = [asked.request]  # --limit, at least 1, changes nothing
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
    """Return what is wrong with a file, its hints in the words of this command: they are those of a script's input."""
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
    """Return the requests of a file: a line each, a JSON object or a JSON string. Raises ``Unreadable`` and ``Misused``."""
    from .....adapters.llm.answers import read_json

    source = read_source(name, like="*.jsonl")
    found: list[str] = []
    for number, line in enumerate(source.text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = read_json(line)
        except ValueError as error:
            why = str(error).replace("(line 1, ", "(")  # of this line
            raise Misused(
                f"{source.name}, line {number}: no JSON: {why}", _as_lines(source.text, source.name)
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
    """Say how requests are written, and how what the file probably has is brought into that form."""
    if text.lstrip()[:1] == "[":
        return f"a line is {_LINE}; of one list lines are made by: jq -c '.[]' {name}"
    if text.lstrip()[:1] not in ("{", '"'):
        return f"a line is {_LINE}; of plain lines they are made by: jq -R . {name}"
    return f"a line is {_LINE}"
