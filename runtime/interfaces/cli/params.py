"""Options that several commands share, declared once."""

import os
from typing import Annotated, TypeVar

import typer

__all__ = [
    "LIMITS", "ChunksFile", "GraphSource", "InputFile", "Lenient", "MaxCalls", "MaxConcurrency", "MaxCost", "MaxSteps",
    "MaxTokens", "ModelSpec", "NoCache", "OnAnotherGraph", "PriceOf", "Rate", "ScriptFile", "ScriptFiles", "StateFolder",
    "StrictTypes", "no_key",
]  # fmt: skip

T = TypeVar("T", str | None, list[str] | None)


def no_key(given: T) -> T:
    """Take an option that names models; raise ``NotConfigured`` for a key in the place of a name, before anything repeats it."""
    if given:
        from ....adapters.llm.keys import refuse_key

        for spec in [given] if isinstance(given, str) else given:
            refuse_key(spec, os.environ)
    return given


LIMITS = "Limits and models"
"""The heading under which help lists these."""

ScriptFile = Annotated[str, typer.Argument(metavar="FILE", help="An .lwt script; - is stdin.", show_default=False)]
ScriptFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE", help=".lwt scripts, .gasl programs, plans and seeds in JSON; - is stdin.", show_default=False
    ),
]
Lenient = Annotated[bool, typer.Option("--lenient", help="Read the script as text that a model wrote.")]
MaxSteps = Annotated[
    int, typer.Option("--max-steps", metavar="N", min=1, help="The most steps of a script; one with more is refused.")
]
InputFile = Annotated[
    str | None,
    typer.Option("--input", "-i", metavar="FILE", help="The run's input, a JSON file; - is stdin.", show_default=False),
]
GraphSource = Annotated[
    str | None,
    typer.Option(
        "--graph",
        "-g",
        metavar="G",
        help="A graph: a GraphML, GML, GEXF, JSON or CSV file, or nx:NAME for one of NetworkX's own.",
        show_default=False,
    ),
]
StateFolder = Annotated[
    str | None,
    typer.Option(
        "--state", metavar="DIR", help="The folder of the state; made where there is none.", show_default=False
    ),
]
ChunksFile = Annotated[
    str | None,
    typer.Option(
        "--chunks",
        metavar="FILE",
        help="The texts that the graph was made from, a JSON object by chunk id: for snippets of evidence.",
        show_default=False,
    ),
]
OnAnotherGraph = Annotated[
    bool, typer.Option("--force", help="Go on with a state whose findings are of another graph.")
]
AsWritten = Annotated[
    bool,
    typer.Option(
        "--raw",
        help="Read the graph's values as they are written: leave quotes, <SEP> and numbers written as text alone.",
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
        help="local, openai:MODEL, anthropic:MODEL, URL#MODEL, replay:FILE or record:FILE,SPEC; else KNOTWORK_LLM, else local.",
    ),
]
MaxConcurrency = Annotated[int, typer.Option("--max-concurrency", metavar="N", min=1, help="Calls in flight at once.")]
StrictTypes = Annotated[
    bool,
    typer.Option(
        "--strict-types",
        help="Take typed answers only as they stand: no prose around JSON, no number or label in other words.",
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
        help="The most calls; the one that would exceed it is not made.",
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
        help="The most tokens, in and out together.",
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
        help="The most US dollars; needs --price.",
    ),
]
PriceOf = Annotated[
    str | None,
    typer.Option(
        "--price",
        metavar="IN/OUT",
        show_default=False,
        rich_help_panel=LIMITS,
        help="US dollars for a million tokens, such as 0.25/2.",
    ),
]
Rate = Annotated[
    float | None,
    typer.Option("--rate", metavar="N", min=0.001, show_default=False, rich_help_panel=LIMITS, help="Calls a minute."),
]
NoCache = Annotated[
    bool, typer.Option("--no-cache", rich_help_panel=LIMITS, help="Ask again what was answered before.")
]
