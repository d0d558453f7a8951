"""Options that several commands share, declared once."""

from typing import Annotated

import typer

__all__ = [
    "LIMITS", "ChunksFile", "GraphSource", "InputFile", "Lenient", "MaxCalls", "MaxConcurrency", "MaxCost", "MaxSteps",
    "MaxTokens", "ModelSpec",
    "NoCache", "OnAnotherGraph", "PriceOf", "Rate", "ScriptFile", "ScriptFiles", "StateFolder",
]  # fmt: skip

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
ModelSpec = Annotated[
    str | None,
    typer.Option(
        "--llm",
        metavar="SPEC",
        show_default=False,
        rich_help_panel=LIMITS,
        help="local, openai:MODEL, anthropic:MODEL, URL#MODEL, replay:FILE or record:FILE,SPEC; else KNOTWORK_LLM, else local.",
    ),
]
MaxConcurrency = Annotated[int, typer.Option("--max-concurrency", metavar="N", min=1, help="Calls in flight at once.")]
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
