"""``knotwork answer``: generate an answer, judge it, and rewrite it with the feedback until it is good enough."""

from typing import Annotated, Literal

import typer

from ..params import LIMITS, MaxCalls, MaxConcurrency, MaxCost, MaxTokens, ModelSpec, NoCache, PriceOf, Rate, no_key

_HOW = "Iterations"


def answer(
    instruct: Annotated[
        str | None,
        typer.Argument(
            metavar="INSTRUCTION",
            help="The question or task, or - for stdin. Not needed with --request.",
            show_default=False,
        ),
    ] = None,
    resp_format: Annotated[
        str | None,
        typer.Option(
            "--resp-format",
            metavar="TEXT",
            show_default=False,
            help="Form of the answer (default: any).",
        ),
    ] = None,
    eval_crit: Annotated[
        str | None,
        typer.Option("--criteria", "--eval-crit", metavar="TEXT", show_default=False, help="Criteria for the judge."),
    ] = None,
    checks: Annotated[
        list[str] | None,
        typer.Option(
            "--check",
            metavar="CHECK",
            show_default=False,
            help="A check that every answer must pass, without a model: regex:PATTERN, not-regex:PATTERN, contains:TEXT, "
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
            help="Maximum number of iterations, 1 to 10 (default 3).",
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
            help="Minimum score of an accepted answer, 0.0 to 1.0 (default 0.8).",
        ),
    ] = None,
    attempts: Annotated[
        int | None,
        typer.Option(
            "--attempts",
            metavar="N",
            show_default=False,
            rich_help_panel=_HOW,
            help="Answers written in parallel in each iteration, 1 to 8 (default 1); the best one counts.",
        ),
    ] = None,
    judges: Annotated[
        int | None,
        typer.Option(
            "--judges",
            metavar="N",
            show_default=False,
            rich_help_panel=_HOW,
            help="Number of judges of each answer, 0 to 9 (default 1, or 0 if there are only checks); the median counts.",
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
            help="Model of the judge (default: the model that writes). Repeat it for a panel of judges.",
        ),
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(
            "--template",
            metavar="NAME",
            show_default=False,
            rich_help_panel=_HOW,
            help="Name of the prompt template (default: default).",
        ),
    ] = None,
    templates: Annotated[
        str | None,
        typer.Option(
            "--templates",
            metavar="FILE",
            show_default=False,
            rich_help_panel=_HOW,
            help="Custom prompt templates, a JSON file.",
        ),
    ] = None,
    examples: Annotated[
        str | None,
        typer.Option(
            "--examples",
            metavar="FILE",
            show_default=False,
            rich_help_panel=_HOW,
            help="Store accepted answers in this file, and show them as examples for similar instructions.",
        ),
    ] = None,
    request: Annotated[
        str | None,
        typer.Option(
            "--request",
            metavar="FILE",
            show_default=False,
            help="The request as JSON, as in the HTTP API, or - for stdin. Other options override it.",
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
            help="Temperature of the model that writes, 0 to 2 (default: the model's own, and 0.8 for attempts after the first).",
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
            help="Maximum number of tokens of an answer; a truncated answer is requested again.",
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
            help="Time limit in seconds; on expiry the best answer so far is returned.",
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
    """Answer an instruction, judge the answer, and improve it until it is good enough.

    The answer goes to stdout, the iterations to stderr as they happen.

    Exit code 4 if there is an answer but its score is below the threshold.

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
