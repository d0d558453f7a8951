"""Options that several commands share, declared once."""

import os
from typing import Annotated, Any, TypeVar

import typer

T = TypeVar("T", str | None, list[str] | None)


def no_key(given: T) -> T:
    """Return an option that names models. Raises ``NotConfigured`` for an API key in place of a name, before the key is printed."""
    if given:
        from ....adapters.llm.keys import refuse_key

        for spec in [given] if isinstance(given, str) else given:
            refuse_key(spec, os.environ)
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
"""The heading in the help of options that limit calls and choose models."""

ScriptFile = Annotated[str, argument("FILE", "An .lwt script, or - for stdin.")]
ScriptFiles = Annotated[
    list[str], argument("FILE", ".lwt scripts, .gasl programs, JSON plans and seeds, or - for stdin.")
]
Lenient = Annotated[bool, flag("--lenient", "Read the script leniently, as text written by a model.")]
MaxSteps = Annotated[
    int, option("--max-steps", "N", "Maximum number of steps; a longer script is refused.", min=1, show_default=True)
]
InputFile = Annotated[str | None, option("--input -i", "FILE", "The input of the run: a JSON file, or - for stdin.")]
GraphSource = Annotated[
    str | None,
    option("--graph -g", "G", "A graph: a GraphML, GML, GEXF, JSON or CSV file, or nx:NAME for a graph of NetworkX."),
]
StateFolder = Annotated[str | None, option("--state", "DIR", "Directory of the state; created if missing.")]
ChunksFile = Annotated[
    str | None, option("--chunks", "FILE", "Source texts of the graph, for evidence: a JSON object by chunk id.")
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
        "local, openai:MODEL, anthropic:MODEL, URL#MODEL, replay:FILE or record:FILE,SPEC (default: KNOTWORK_LLM, else local).",
        LIMITS,
        callback=no_key,
    ),
]
MaxConcurrency = Annotated[
    int, option("--max-concurrency", "N", "Maximum number of parallel calls.", min=1, show_default=True)
]
StrictTypes = Annotated[
    bool,
    flag(
        "--strict-types",
        "Accept typed answers only in their exact form: no prose around JSON, no reworded numbers or labels.",
    ),
]
MaxCalls = Annotated[
    int | None,
    option("--max-calls", "N", "Maximum number of calls; a call that would exceed it is not made.", LIMITS, min=0),
]
MaxTokens = Annotated[
    int | None, option("--max-tokens", "N", "Maximum number of tokens, prompt and completion together.", LIMITS, min=0)
]
MaxCost = Annotated[
    float | None, option("--max-cost", "USD", "Maximum cost in US dollars; needs --price.", LIMITS, min=0)
]
PriceOf = Annotated[
    str | None,
    option("--price", "IN/OUT", "US dollars per million prompt and completion tokens, such as 0.25/2.", LIMITS),
]
Rate = Annotated[float | None, option("--rate", "N", "Maximum number of calls per minute.", LIMITS, min=0.001)]
NoCache = Annotated[bool, flag("--no-cache", "Do not use cached answers.", LIMITS)]
NamedModels = Annotated[
    list[str] | None,
    option("--model", "NAME=SPEC", "Additional model, offered under this name. Repeatable.", LIMITS, callback=no_key),
]


def time_limit_option(help: str, **settings: Any) -> Any:
    """Return the option of a time limit in seconds."""
    return option("--time-limit", "SECONDS", help, LIMITS, min=0.001, **settings)


SERVER = "HTTP server"
"""The heading in the help of a server's options."""

Host = Annotated[str, option("--host", "HOST", "Address to listen on.", SERVER, show_default=True)]
KeysFile = Annotated[str | None, option("--keys", "FILE", "File of the API keys (default: next to the runs).", SERVER)]
RatePerKey = Annotated[
    str, option("--rate-per-key", "N/minute", "Maximum number of requests per key.", SERVER, show_default=True)
]
LogRequests = Annotated[bool, flag("--log", "Log each request on stderr.", SERVER)]
MaxRuns = Annotated[
    int, option("--max-runs", "N", "Maximum number of parallel runs or tool calls.", LIMITS, min=1, show_default=True)
]
