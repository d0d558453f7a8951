"""Options that several commands share, declared once."""

import os
from typing import Annotated, TypeVar

import typer

T = TypeVar("T", str | None, list[str] | None)


def no_key(given: T) -> T:
    """Return an option that names models; raise ``NotConfigured`` for an API key in place of a name, before it is printed."""
    if given:
        from ....adapters.llm.keys import refuse_key

        for spec in [given] if isinstance(given, str) else given:
            refuse_key(spec, os.environ)
    return given


LIMITS = "Limits and models"
"""The heading of these options in the help."""

ScriptFile = Annotated[str, typer.Argument(metavar="FILE", help="An .lwt script, or - for stdin.", show_default=False)]
ScriptFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE", help=".lwt scripts, .gasl programs, JSON plans and seeds, or - for stdin.", show_default=False
    ),
]
Lenient = Annotated[bool, typer.Option("--lenient", help="Read the script leniently, as text written by a model.")]
MaxSteps = Annotated[
    int, typer.Option("--max-steps", metavar="N", min=1, help="Maximum number of steps; a longer script is refused.")
]
InputFile = Annotated[
    str | None,
    typer.Option(
        "--input", "-i", metavar="FILE", help="The input of the run: a JSON file, or - for stdin.", show_default=False
    ),
]
GraphSource = Annotated[
    str | None,
    typer.Option(
        "--graph",
        "-g",
        metavar="G",
        help="A graph: a GraphML, GML, GEXF, JSON or CSV file, or nx:NAME for a graph of NetworkX.",
        show_default=False,
    ),
]
StateFolder = Annotated[
    str | None,
    typer.Option("--state", metavar="DIR", help="Directory of the state; created if missing.", show_default=False),
]
ChunksFile = Annotated[
    str | None,
    typer.Option(
        "--chunks",
        metavar="FILE",
        help="Source texts of the graph, for evidence: a JSON object by chunk id.",
        show_default=False,
    ),
]
OnAnotherGraph = Annotated[bool, typer.Option("--force", help="Use a state whose findings come from another graph.")]
AsWritten = Annotated[
    bool,
    typer.Option(
        "--raw",
        help="Load the graph's values unchanged: keep quotes, <SEP> and numbers in strings.",
    ),
]
ModelSpec = Annotated[
    str | None,
    typer.Option(
        "--llm",
        metavar="SPEC",
        callback=no_key,
        show_default=False,
        rich_help_panel=LIMITS,
        help="local, openai:MODEL, anthropic:MODEL, URL#MODEL, replay:FILE or record:FILE,SPEC (default: KNOTWORK_LLM, else local).",
    ),
]
MaxConcurrency = Annotated[
    int, typer.Option("--max-concurrency", metavar="N", min=1, help="Maximum number of parallel calls.")
]
StrictTypes = Annotated[
    bool,
    typer.Option(
        "--strict-types",
        help="Accept typed answers only in their exact form: no prose around JSON, no reworded numbers or labels.",
    ),
]
MaxCalls = Annotated[
    int | None,
    typer.Option(
        "--max-calls",
        metavar="N",
        min=0,
        show_default=False,
        rich_help_panel=LIMITS,
        help="Maximum number of calls; a call that would exceed it is not made.",
    ),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(
        "--max-tokens",
        metavar="N",
        min=0,
        show_default=False,
        rich_help_panel=LIMITS,
        help="Maximum number of tokens, prompt and completion together.",
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        metavar="USD",
        min=0,
        show_default=False,
        rich_help_panel=LIMITS,
        help="Maximum cost in US dollars; needs --price.",
    ),
]
PriceOf = Annotated[
    str | None,
    typer.Option(
        "--price",
        metavar="IN/OUT",
        show_default=False,
        rich_help_panel=LIMITS,
        help="US dollars per million prompt and completion tokens, such as 0.25/2.",
    ),
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--rate",
        metavar="N",
        min=0.001,
        show_default=False,
        rich_help_panel=LIMITS,
        help="Maximum number of calls per minute.",
    ),
]
NoCache = Annotated[bool, typer.Option("--no-cache", rich_help_panel=LIMITS, help="Do not use cached answers.")]
