"""Options that several commands share, declared once."""

from typing import Annotated, Any, Literal, TypeVar

import typer

from .output import Misused

T = TypeVar("T", str | None, list[str] | None)


def no_key(given: T) -> T:
    """Return the value of an option that names models.

    Raises ``NotConfigured`` if the value is an API key, which must not be printed.
    """
    if given:
        from ...api.clients import refuse_key

        for spec in [given] if isinstance(given, str) else given:
            refuse_key(spec)
    return given


def option(names: str, metavar: str | None, help: str, panel: str | None = None, **settings: Any) -> Any:
    """Return a Typer option. ``names`` are separated by spaces. The help shows the default only with ``show_default=True``."""
    settings.setdefault("show_default", False)
    return typer.Option(*names.split(), metavar=metavar, help=help, rich_help_panel=panel, **settings)


def flag(names: str, help: str, panel: str | None = None) -> Any:
    """Return a Typer option without a value."""
    return typer.Option(*names.split(), help=help, rich_help_panel=panel)


def argument(metavar: str, help: str) -> Any:
    """Return a Typer argument."""
    return typer.Argument(metavar=metavar, help=help, show_default=False)


LIMITS = "Limits and models"
"""The help's heading for the options that limit calls and choose models."""

ScriptFile = Annotated[str, argument("FILE", "An .lwt script, or - for stdin.")]
ScriptFiles = Annotated[
    list[str], argument("FILE", ".lwt scripts, .gasl programs, JSON plans and seeds, or - for stdin.")
]
Lenient = Annotated[bool, flag("--lenient", "Read the script leniently, for text that a model wrote.")]
MaxSteps = Annotated[
    int, option("--max-steps", "N", "Maximum number of steps; a longer script is refused.", min=1, show_default=True)
]
FunctionsFile = Annotated[
    str | None,
    option(
        "--functions",
        "FILE",
        "A Python file; scripts can CALL the functions that it defines (not names that begin with _).",
    ),
]
InputFile = Annotated[str | None, option("--input -i", "FILE", "The input of the run: a JSON file, or - for stdin.")]
GraphSource = Annotated[
    str | None,
    option(
        "--graph -g",
        "G",
        "A graph: a GraphML, GML, GEXF, JSON or CSV file, nx:NAME for a graph built into NetworkX, or a database, ladybug:PATH or bolt://USER@HOST/DB.",
    ),
]
StateFolder = Annotated[str | None, option("--state", "DIR", "Directory of the state; created if missing.")]
ChunksFile = Annotated[
    str | None,
    option("--chunks", "FILE", "The graph's source texts, for evidence: a JSON object that maps chunk ids to texts."),
]
ParameterValues = Annotated[
    list[str] | None,
    option("--param", "NAME=VALUE", "Value of a parameter that the program declares with PARAM. Repeatable."),
]
OnAnotherGraph = Annotated[bool, flag("--force", "Use a state whose findings come from another graph.")]
AsWritten = Annotated[
    bool, flag("--raw", "Load the graph's values unchanged: keep quotes, <SEP> and numbers in strings.")
]
ModelSpec = Annotated[
    str | None,
    option(
        "--llm",
        "SPEC",
        "Model: local, openai:MODEL, anthropic:MODEL, URL#MODEL, replay:FILE or record:FILE,SPEC (default: KNOTWORK_LLM, else local).",
        LIMITS,
        callback=no_key,
    ),
]


def _concurrency(text: Any) -> int:
    """Return the value of ``--max-concurrency``. Raises ``Misused``."""
    from ...api.clients import concurrency_of
    from ...errors import RequestError

    try:
        return concurrency_of(int(text) if isinstance(text, str) and text.isdecimal() else text)
    except RequestError as error:
        raise Misused(f"--max-concurrency: {error.message}", "such as 16, or auto, which adapts to the model") from None


def share_option(
    name: str, help: str, panel: str | None = None, *, low: float = 0, high: float = 1, **settings: Any
) -> Any:
    """Return the option ``name`` for a share from ``low`` to ``high``, which may be written as a percentage, such as 10%."""

    def parsed(text: Any) -> float:
        if isinstance(text, float | int):  # the default
            return float(text)
        number = str(text).strip().removesuffix("%")
        percent = number != str(text).strip()
        try:
            value = float(number)
        except ValueError:
            raise Misused(
                f"{name}: {text} is not a number", "write a share such as 0.1, or a percentage such as 10%"
            ) from None
        if 1 < value <= 100 and not percent:
            raise Misused(f"{name}: {text} is more than 1", f"write {number}% or {value / 100:g}")
        value = value / 100 if percent else value
        if not low <= value <= high:
            raise Misused(f"{name}: must be from {low:g} to {high:g}, not {text}", "such as 0.1 or 10%")
        return value

    return option(name, "SHARE", help, panel, parser=parsed, **settings)


MaxConcurrency = Annotated[
    int,
    option(
        "--max-concurrency",
        "N|auto",
        "Maximum number of parallel calls; auto adapts it to the model.",
        parser=_concurrency,
        show_default=True,
    ),
]
WORKERS = "Workers"
"""The help's heading for the options about workers."""
WorkerCount = Annotated[
    int | None,
    option(
        "--workers",
        "N",
        "Make the model calls in N processes, which share --max-concurrency, --rate and the limits (default: in this process).",
        WORKERS,
        min=1,
    ),
]
CallWorkerCount = Annotated[
    int | None,
    option(
        "--workers",
        "N",
        "Make the model calls of a program or plan, or with --each of a script, in N processes, which share --max-concurrency, --rate "
        "and the limits (default: in this process).",
        WORKERS,
        min=1,
    ),
]
EngineName = Annotated[
    Literal["processes", "ray"] | None,
    option(
        "--engine",
        None,
        "Where the workers run: processes of this machine, or a Ray cluster (extra ray). Default: processes.",
        WORKERS,
    ),
]
RayAddress = Annotated[
    str | None,
    option(
        "--ray-address", "ADDRESS", "Ray cluster, such as auto or ray://HOST:10001 (default: a local one).", WORKERS
    ),
]
BATCHES = "Batches"
"""The help's heading for the options about batches."""
UseBatch = Annotated[
    bool,
    flag(
        "--batch",
        "Make the calls about single reviews by the service's batch API: at half price, within 24 hours. --resume continues.",
        BATCHES,
    ),
]
NoWait = Annotated[bool, flag("--no-wait", "End after a batch was submitted; --resume gets its answers.", BATCHES)]
FinishLive = Annotated[
    bool,
    flag("--finish-live", "Make the calls that three batches left open at full price (default: they fail).", BATCHES),
]
BatchId = Annotated[
    str | None, option("--batch-id", "ID", "With --resume: the batch that an interrupted submission made.", BATCHES)
]
BatchLost = Annotated[bool, flag("--batch-lost", "With --resume: an interrupted submission made no batch.", BATCHES)]
StrictTypes = Annotated[
    bool,
    flag(
        "--strict-types",
        "Accept typed answers only in their exact form: no prose around JSON, no reworded numbers or labels.",
    ),
]
MaxCalls = Annotated[
    int | None,
    option("--max-calls", "N", "Maximum number of calls; a call beyond the limit is not made.", LIMITS, min=0),
]
MaxTokens = Annotated[
    int | None, option("--max-tokens", "N", "Maximum number of tokens, prompt and completion together.", LIMITS, min=0)
]
MaxCost = Annotated[
    float | None, option("--max-cost", "USD", "Maximum cost in US dollars; needs a known price.", LIMITS, min=0)
]
PriceOf = Annotated[
    str | None,
    option(
        "--price",
        "IN/OUT",
        "US dollars per million prompt and completion tokens, such as 0.25/2 (default: looked up, with the extra prices).",
        LIMITS,
    ),
]
Rate = Annotated[float | None, option("--rate", "N", "Maximum number of calls per minute.", LIMITS, min=0.001)]
CacheAt = Annotated[
    str | None,
    option(
        "--cache",
        "URL",
        "Cache of answers: sqlite:///PATH (a file) or postgresql://HOST/DATABASE (shared by machines). Default: KNOTWORK_CACHE, else "
        "the user's file.",
        LIMITS,
    ),
]
NoCache = Annotated[bool, flag("--no-cache", "Do not use cached answers.", LIMITS)]
NoCaches = Annotated[bool, flag("--no-cache", "Do not use cached answers and prepared copies of graphs.", LIMITS)]
WithoutCopies = Annotated[bool, flag("--no-cache", "Read the graph file itself, not its prepared copy.")]
NamedModels = Annotated[
    list[str] | None,
    option("--model", "NAME=SPEC", "Additional model, available under this name. Repeatable.", LIMITS, callback=no_key),
]


def cache_of(cache: str | None, no_cache: bool) -> str | bool:
    """Return the value of ``ModelOpener``'s ``cache`` for the two options. Raises ``Misused`` if both are given."""
    if cache is not None and no_cache:
        raise Misused("--cache and --no-cache contradict each other", "give only one of them")
    return not no_cache if cache is None else cache


def time_limit_option(help: str, **settings: Any) -> Any:
    """Return the option for a time limit in seconds."""
    return option("--time-limit", "SECONDS", help, LIMITS, min=0.001, **settings)


SERVER = "HTTP server"
"""The help's heading for the options of a server."""

Host = Annotated[str, option("--host", "HOST", "Address to listen on.", SERVER, show_default=True)]
KeysFile = Annotated[
    str | None, option("--keys", "FILE", "File with the API keys (default: next to the runs).", SERVER)
]
RatePerKey = Annotated[
    str, option("--rate-per-key", "N/minute", "Maximum number of requests per key.", SERVER, show_default=True)
]
LogRequests = Annotated[bool, flag("--log", "Log each request on stderr.", SERVER)]
MaxRuns = Annotated[
    int, option("--max-runs", "N", "Maximum number of parallel runs or tool calls.", LIMITS, min=1, show_default=True)
]
