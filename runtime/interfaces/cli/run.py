"""``knotwork run``: a script against a model, a program or a plan against a graph."""

from typing import Annotated, Literal

import typer

from .shared.params import ChunksFile, GraphSource, InputFile, Lenient, StateFolder

__all__ = ["run"]

_LIMITS = "Limits and models"


def run(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="An .lwt script, a .gasl program or a JSON plan; - is stdin. Not needed with --resume.",
            show_default=False,
        ),
    ] = None,
    input_file: InputFile = None,
    graph: GraphSource = None,
    state: StateFolder = None,
    chunks: ChunksFile = None,
    query: Annotated[
        str | None,
        typer.Option(
            "--query", metavar="TEXT", show_default=False, help="The question, which the state and its report keep."
        ),
    ] = None,
    llm: Annotated[
        str | None,
        typer.Option(
            "--llm",
            metavar="SPEC",
            show_default=False,
            rich_help_panel=_LIMITS,
            help="local, openai:MODEL, anthropic:MODEL, URL#MODEL, replay:FILE or record:FILE,SPEC; else KNOTWORK_LLM, else local.",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="NAME=SPEC",
            show_default=False,
            rich_help_panel=_LIMITS,
            help="A model that the script may name with model=; can be given again.",
        ),
    ] = None,
    output_format: Annotated[
        Literal["auto", "table", "json", "plain"],
        typer.Option(
            "--format",
            help="plain: the output's text. json: one document with status, output, steps, usage. "
            "auto: a table where a person looks on and the output is a list.",
        ),
    ] = "auto",
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="RUN",
            show_default=False,
            help="Go on with a kept run: its answers are not asked for again.",
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option("--force", help="Resume though the script or the input changed; what is affected is asked again."),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print every prompt that can be known and the number of calls; call nothing."),
    ] = False,
    schedule: Annotated[
        Literal["eager", "layered"],
        typer.Option("--schedule", help="Start a step when its inputs are ready, or layer by layer."),
    ] = "eager",
    max_concurrency: Annotated[
        int, typer.Option("--max-concurrency", metavar="N", min=1, help="Calls in flight at once.")
    ] = 16,
    all_steps: Annotated[
        bool, typer.Option("--all-steps", help="Run steps too that the final one does not need.")
    ] = False,
    lenient: Lenient = False,
    max_calls: Annotated[
        int | None,
        typer.Option(
            "--max-calls",
            metavar="N",
            min=0,
            show_default=False,
            rich_help_panel=_LIMITS,
            help="The most calls; the one that would exceed it is not made.",
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens",
            metavar="N",
            min=0,
            show_default=False,
            rich_help_panel=_LIMITS,
            help="The most tokens, in and out together.",
        ),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option(
            "--max-cost",
            metavar="USD",
            min=0,
            show_default=False,
            rich_help_panel=_LIMITS,
            help="The most US dollars; needs --price.",
        ),
    ] = None,
    price: Annotated[
        str | None,
        typer.Option(
            "--price",
            metavar="IN/OUT",
            show_default=False,
            rich_help_panel=_LIMITS,
            help="US dollars for a million tokens, such as 0.25/2.",
        ),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate", metavar="N", min=0.001, show_default=False, rich_help_panel=_LIMITS, help="Calls a minute."
        ),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", rich_help_panel=_LIMITS, help="Ask again what was answered before.")
    ] = False,
) -> int:
    """Run a script, a program or a plan.

    The output goes to stdout, everything about the run to stderr. Exit code 4 where only a part failed.

    Example: knotwork run cafes.lwt --input request.json
    """
    from .execution.asked import Asked, Ground, Limits
    from .programs.dispatching import perform

    return perform(
        Asked(
            file, input_file, llm, tuple(model or ()), output_format, resume, force, dry_run, schedule, max_concurrency,
            all_steps, lenient, Limits(max_calls, max_tokens, max_cost, price, rate, not no_cache),
            Ground(graph, state, chunks, query),
        )
    )  # fmt: skip
