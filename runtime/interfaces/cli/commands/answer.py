"""``knotwork answer``: generate an answer, judge it, and improve it with the judge's feedback until it is good enough."""

import sys
from typing import Annotated, Literal

from ..output import Exit, say
from ..params import (
    LIMITS,
    CacheAt,
    MaxCalls,
    MaxConcurrency,
    MaxCost,
    MaxTokens,
    ModelSpec,
    NoCache,
    PriceOf,
    Rate,
    argument,
    cache_of,
    no_key,
    option,
    time_limit_option,
)

_HOW = "Iterations"


def answer(
    instruct: Annotated[
        str | None, argument("INSTRUCTION", "The question or task, or - for stdin. Not needed with --request.")
    ] = None,
    resp_format: Annotated[str | None, option("--resp-format", "TEXT", "Form of the answer (default: any).")] = None,
    eval_crit: Annotated[str | None, option("--criteria --eval-crit", "TEXT", "Criteria for the judge.")] = None,
    checks: Annotated[
        list[str] | None,
        option(
            "--check",
            "CHECK",
            "Check that every answer must pass, made without a model: regex:PATTERN, not-regex:PATTERN, contains:TEXT, "
            "words:MIN..MAX, length:MIN..MAX, lines:MIN..MAX, paragraphs:N, json, schema:{...}, expr:EXPRESSION. Repeatable.",
        ),
    ] = None,
    iter_max: Annotated[
        int | None, option("--iter-max", "N", "Maximum number of iterations, 1 to 10 (default 3).", _HOW)
    ] = None,
    score_threshold: Annotated[
        float | None,
        option(
            "--threshold --score-threshold",
            "SCORE",
            "Minimum score of an accepted answer, 0.0 to 1.0 (default 0.8).",
            _HOW,
        ),
    ] = None,
    attempts: Annotated[
        int | None,
        option(
            "--attempts",
            "N",
            "Number of answers written in parallel in each iteration, 1 to 8 (default 1); the best answer counts.",
            _HOW,
        ),
    ] = None,
    judges: Annotated[
        int | None,
        option(
            "--judges",
            "N",
            "Number of judges per answer, 0 to 9 (default 1, or 0 if there are only checks); the median score counts.",
            _HOW,
        ),
    ] = None,
    judge_llm: Annotated[
        list[str] | None,
        option(
            "--judge-llm",
            "SPEC",
            "Model of the judge (default: the model that writes). Repeatable, for several judges.",
            LIMITS,
            callback=no_key,
        ),
    ] = None,
    template: Annotated[
        str | None, option("--template", "NAME", "Name of the prompt template (default: default).", _HOW)
    ] = None,
    templates: Annotated[
        str | None, option("--templates", "FILE", "JSON file with custom prompt templates.", _HOW)
    ] = None,
    examples: Annotated[
        str | None,
        option(
            "--examples",
            "FILE",
            "Store accepted answers in this file, and show them as examples for similar instructions.",
            _HOW,
        ),
    ] = None,
    request: Annotated[
        str | None,
        option(
            "--request",
            "FILE",
            "JSON file with the request, as in the HTTP API; - for stdin. Other options override its values.",
        ),
    ] = None,
    output_format: Annotated[
        Literal["auto", "plain", "json"],
        option(
            "--format",
            None,
            "plain: the answer's text. json: one document with all iterations, as in the HTTP API. auto: plain.",
            show_default=True,
        ),
    ] = "auto",
    temperature: Annotated[
        float | None,
        option(
            "--temperature",
            "T",
            "Temperature of the model that writes, 0 to 2 (default: the model's default, and 0.8 for attempts after the first).",
            _HOW,
            min=0,
            max=2,
        ),
    ] = None,
    answer_tokens: Annotated[
        int | None,
        option(
            "--answer-tokens",
            "N",
            "Maximum number of tokens of an answer; a truncated answer is requested again.",
            _HOW,
            min=1,
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        time_limit_option("Time limit in seconds; on expiry the best answer so far is returned."),
    ] = None,
    llm: ModelSpec = None,
    max_concurrency: MaxConcurrency = 16,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    rate: Rate = None,
    cache: CacheAt = None,
    no_cache: NoCache = False,
) -> int:
    """Answer an instruction, judge the answer, and improve it until it is good enough.

    The answer is written to stdout. Each iteration is reported on stderr when it ends.

    Exit code 4 if there is an answer but its score is below the threshold.

    Example: knotwork answer "Explain tides" --criteria "Names the moon; no jargon" --check words:40..120
    """
    from ....api.answers import RequestError
    from ....api.checks import Checked
    from ...options import price_of
    from ..answer_request import open_templates, read_request
    from ..answer_view import run
    from ..inputs import Unreadable, show

    parts = {
        "instruct": instruct, "resp_format": resp_format, "eval_crit": eval_crit, "checks": tuple(checks) if checks else None,
        "iter_max": iter_max, "score_threshold": score_threshold, "attempts": attempts, "judges": judges, "template": template,
    }  # fmt: skip
    call = {"temperature": temperature, "max_tokens": answer_tokens}
    models = judge_llm or []
    try:
        options = {name: value for name, value in parts.items() if value is not None}
        answer_request, source = read_request(options, request, templates, models)
        settings = {
            "templates": open_templates(templates), "examples": examples, "time_limit": time_limit,
            "options": {name: value for name, value in call.items() if value is not None}, "max_calls": max_calls,
            "max_tokens": max_tokens, "max_cost": max_cost, "price": price_of(price), "rate": rate, "cache": cache_of(cache, no_cache),
            "max_concurrency": max_concurrency,
        }  # fmt: skip
        return run(answer_request, llm, models, output_format, source.model, settings)
    except Unreadable as error:
        show([Checked((error.diagnostic,), error.source)], sys.stderr)
        say("no model was called")
        return Exit.ERRORS
    except RequestError as error:
        raise source.usage_error(error) from None
