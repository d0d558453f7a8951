"""``knotwork answer``: an answer that is judged, fed back and written again until it is good enough."""

from typing import Annotated, Literal

import typer

from ..params import LIMITS, MaxCalls, MaxConcurrency, MaxCost, MaxTokens, ModelSpec, NoCache, PriceOf, Rate, no_key

__all__ = ["answer"]

_HOW = "Iterations"


def answer(
    instruct: Annotated[
        str | None,
        typer.Argument(
            metavar="INSTRUCTION",
            help="The question or task; - is stdin. Not needed with --request.",
            show_default=False,
        ),
    ] = None,
    resp_format: Annotated[
        str | None,
        typer.Option(
            "--resp-format",
            metavar="TEXT",
            show_default=False,
            help="The form that the answer should have; any without.",
        ),
    ] = None,
    eval_crit: Annotated[
        str | None,
        typer.Option("--criteria", "--eval-crit", metavar="TEXT", show_default=False, help="What the judge goes by."),
    ] = None,
    checks: Annotated[
        list[str] | None,
        typer.Option(
            "--check",
            metavar="CHECK",
            show_default=False,
            help="What every answer must have, checked without a model: regex:PATTERN, not-regex:PATTERN, contains:TEXT, "
            "words:MIN..MAX, length:MIN..MAX, lines:MIN..MAX, paragraphs:N, json, schema:{...}. Can be given again.",
        ),
    ] = None,
    iter_max: Annotated[
        int | None,
        typer.Option(
            "--iter-max",
            metavar="N",
            show_default=False,
            rich_help_panel=_HOW,
            help="The most iterations, 1 to 10; 3 without.",
        ),
    ] = None,
    score_threshold: Annotated[
        float | None,
        typer.Option(
            "--threshold",
            "--score-threshold",
            metavar="SCORE",
            show_default=False,
            rich_help_panel=_HOW,
            help="An answer of at least this score is accepted, 0.0 to 1.0; 0.8 without.",
        ),
    ] = None,
    attempts: Annotated[
        int | None,
        typer.Option(
            "--attempts",
            metavar="N",
            show_default=False,
            rich_help_panel=_HOW,
            help="Answers written side by side in each iteration, of which the best counts, 1 to 8; 1 without.",
        ),
    ] = None,
    judges: Annotated[
        int | None,
        typer.Option(
            "--judges",
            metavar="N",
            show_default=False,
            rich_help_panel=_HOW,
            help="How many judge each answer, the median counts, 0 to 9; 1 without, 0 where there are only checks.",
        ),
    ] = None,
    judge_llm: Annotated[
        list[str] | None,
        typer.Option(
            "--judge-llm",
            metavar="SPEC",
            callback=no_key,
            show_default=False,
            rich_help_panel=LIMITS,
            help="The model that judges, in place of the one that writes; given again, each is a judge of a panel.",
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            "--template",
            metavar="NAME",
            show_default=False,
            rich_help_panel=_HOW,
            help="The prompts, by their name; default without.",
        ),
    ] = None,
    templates: Annotated[
        str | None,
        typer.Option(
            "--templates",
            metavar="FILE",
            show_default=False,
            rich_help_panel=_HOW,
            help="Prompts of your own, a JSON file.",
        ),
    ] = None,
    examples: Annotated[
        str | None,
        typer.Option(
            "--examples",
            metavar="FILE",
            show_default=False,
            rich_help_panel=_HOW,
            help="Keep accepted answers in this file, and show them as examples for like instructions.",
        ),
    ] = None,
    request: Annotated[
        str | None,
        typer.Option(
            "--request",
            metavar="FILE",
            show_default=False,
            help="The whole request as JSON, as the HTTP API takes it; - is stdin. What is typed beside it goes before it.",
        ),
    ] = None,
    output_format: Annotated[
        Literal["auto", "plain", "json"],
        typer.Option(
            "--format",
            help="plain: the answer's text. json: one document with all iterations, as the HTTP API gives it. auto: plain.",
        ),
    ] = "auto",
    temperature: Annotated[
        float | None,
        typer.Option(
            "--temperature",
            metavar="T",
            min=0,
            max=2,
            show_default=False,
            rich_help_panel=_HOW,
            help="Of the model that writes, 0 to 2; the model's own without, and 0.8 for the attempts after the first.",
        ),
    ] = None,
    answer_tokens: Annotated[
        int | None,
        typer.Option(
            "--answer-tokens",
            metavar="N",
            min=1,
            show_default=False,
            rich_help_panel=_HOW,
            help="The most tokens of an answer; one that is cut off is asked for again.",
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
            help="The most seconds; the best answer until then is the answer.",
        ),
    ] = None,
    llm: ModelSpec = None,
    max_concurrency: MaxConcurrency = 16,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    rate: Rate = None,
    no_cache: NoCache = False,
) -> int:
    """Answer an instruction, judge the answer, and write it again until it is good enough.

    The answer goes to stdout, the iterations to stderr as they happen.

    Exit code 4 where there is an answer and its score is below the threshold.

    Example: knotwork answer "Explain tides" --criteria "Names the moon; no jargon" --check words:40..120
    """
    from ...options import Limits
    from ..answer_run import perform
    from ..answer_view import AnswerAsked

    typed = {
        "instruct": instruct, "resp_format": resp_format, "eval_crit": eval_crit, "checks": tuple(checks) if checks else None,
        "iter_max": iter_max, "score_threshold": score_threshold, "attempts": attempts, "judges": judges, "template": template,
    }  # fmt: skip
    limits = Limits(max_calls, max_tokens, max_cost, price, rate, not no_cache)
    given = {name: value for name, value in typed.items() if value is not None}
    options = {"temperature": temperature, "max_tokens": answer_tokens}
    return perform(
        AnswerAsked(
            given, request, templates, examples, llm, tuple(judge_llm or ()), output_format, time_limit, max_concurrency, limits,
            {name: value for name, value in options.items() if value is not None},
        )
    )  # fmt: skip
