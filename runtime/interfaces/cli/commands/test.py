"""``knotwork test``: run the test cases of scripts, and report the values that differ from the expected ones."""

from typing import Annotated, Literal

from ..params import (
    LIMITS,
    CacheAt,
    FunctionsFile,
    MaxCalls,
    MaxConcurrency,
    MaxCost,
    MaxTokens,
    ModelSpec,
    NoCache,
    PriceOf,
    Rate,
    StrictTypes,
    argument,
    cache_of,
    flag,
    no_key,
    option,
)


def test(
    paths: Annotated[
        list[str] | None,
        argument(
            "[PATH]...", "Folders, scripts (.lwt) or files of test cases (.cases.jsonl). Default: the current folder."
        ),
    ] = None,
    keyword: Annotated[
        str,
        option(
            "-k", "TEXT", "Only cases whose file or name contains the text; texts can be joined by and, or and not."
        ),
    ] = "",
    verbose: Annotated[bool, flag("--verbose -v", "Print the name of each case, and complete prompts.")] = False,
    first_failure: Annotated[bool, flag("--exitfirst -x", "End at the first failed case.")] = False,
    collect_only: Annotated[bool, flag("--collect-only", "Check and list the cases; make no calls.")] = False,
    junit: Annotated[str | None, option("--junit", "FILE", "Write the results as JUnit XML.")] = None,
    output_format: Annotated[
        Literal["text", "json"], option("--format", None, "text, or one JSON document.", show_default=True)
    ] = "text",
    llm: ModelSpec = None,
    model: Annotated[
        list[str] | None,
        option(
            "--model", "NAME=SPEC", "Model that a script can select with model=. Repeatable.", LIMITS, callback=no_key
        ),
    ] = None,
    functions: FunctionsFile = None,
    max_concurrency: MaxConcurrency = 16,
    strict_types: StrictTypes = False,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    rate: Rate = None,
    cache: CacheAt = None,
    no_cache: NoCache = False,
) -> int:
    """Run the test cases of scripts: NAME.cases.jsonl has the cases of NAME.lwt.

    All files are checked before the first call. Exit code 1 if a case fails, 3 if a file has errors, 5 if there is no case.

    Example: knotwork test examples -k soup --llm replay:answers.jsonl
    """
    from ...options import Limits
    from ..test_run import TestOptions, run_tests

    limits = Limits(max_calls, max_tokens, max_cost, price, rate, cache_of(cache, no_cache))
    options = TestOptions(
        tuple(paths or ["."]), keyword, verbose, first_failure, collect_only, junit, output_format, llm, tuple(model or ()),
        max_concurrency, strict_types, limits, functions,
    )  # fmt: skip
    return run_tests(options)
