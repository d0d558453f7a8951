"""The commands put together: names, help, and what a person reads who typed something else."""

import os
import re
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from . import (
    agent_kit,
    answer,
    ask,
    check,
    fmt,
    gasl,
    grammar,
    graph,
    lsp,
    mcp,
    model,
    plan,
    rank,
    repl,
    replay,
    report,
    rules,
    run,
    runs,
    seed,
    serve,
    state,
)
from .shared.exit import MEANINGS, Exit, Misused
from .shared.words import in_our_words

__all__ = ["app", "command"]

_LIKELY = {
    "lint": "check", "validate": "check", "verify": "state verify", "format": "fmt", "query": "gasl", "html": "report",
    "find": "gasl -c 'FIND ...'", "show": "plan", "dag": "plan", "exec": "run", "execute": "run", "start": "run",
    "ls": "runs", "list": "runs", "history": "runs", "log": "state log", "models": "model", "pull": "model pull",
    "explain": "rules", "rule": "rules", "resume": "run --resume", "compute": "seed compute", "extract": "seed run",
    "seeds": "seed", "formula": "seed", "sensitivity": "seed sensitivity", "convert": "seed convert", "schema": "seed schema",
    **dict.fromkeys(("anot", "sort", "rerank", "order", "ranking"), "rank"),
    **dict.fromkeys(("hdt", "question", "traverse", "explore", "hypothesize"), "ask"), "search": "ask --search beam",
    "compile": "seed compile", "compiler": "seed compile",
    "generate": "answer", "generate-answer": "answer", "judge": "answer",
    **dict.fromkeys(("shell", "console", "prompt", "interactive", "session"), "repl"),
    **dict.fromkeys(("agent", "agents", "tools"), "mcp"), "kit": "agent-kit",
    "server": "serve", "http": "serve", "web": "serve", "lab": "serve", "keys": "serve --list-keys",
}  # fmt: skip
"""What people type who know other tools."""


class _Group(TyperGroup):
    """The commands; one that isn't there is met with the one that was meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command that ``args`` begin with."""
        typed = args[0] if args else ""
        if typed == "help" and typed not in self.commands:
            ctx.fail("No such command 'help'. Did you mean 'knotwork --help'?")
        if typed and not typed.startswith("-") and typed not in self.commands:
            if typed.endswith(".seed.json"):
                ctx.fail(f"{typed} is a Formula Seed, not a command. Did you mean: knotwork seed run {typed} CONTEXTS")
            if typed.endswith((".lwt", ".gasl")) or os.path.isfile(typed):
                ctx.fail(f"{typed} is a file, not a command. Did you mean: knotwork run {typed}")
            if typed in _LIKELY:
                ctx.fail(f"No such command '{typed}'. Did you mean 'knotwork {_LIKELY[typed]}'?")
        return super().resolve_command(ctx, args)


_CODES = " · ".join(f"{code.value} {meaning.split(':')[0].split(' (')[0]}" for code, meaning in MEANINGS.items())

app = typer.Typer(
    cls=_Group,
    name="knotwork",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"Exit codes: {_CODES}. FILE may be - for stdin. KNOTWORK_LLM names the model, KNOTWORK_DEBUG=1..3 tells more.",
)
"""The Typer application."""


def _version(asked: bool) -> None:
    if asked:
        from .... import __version__

        print(f"knotwork {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Prompt scripts, graph programs and plans: check them, run them, see what they found."""


app.command("run")(run.run)
app.command("check")(check.check)
app.command("fmt")(fmt.fmt)
app.command("plan")(plan.plan)
app.command("gasl")(gasl.gasl)
app.command("repl")(repl.repl)
app.add_typer(seed.app, name="seed")
app.command("answer")(answer.answer)
app.command("ask")(ask.ask)
app.command("rank")(rank.rank)
app.add_typer(graph.app, name="graph")
app.add_typer(state.app, name="state")
app.command("serve")(serve.serve)
app.command("lsp")(lsp.lsp)
app.command("mcp")(mcp.mcp)
app.command("agent-kit")(agent_kit.agent_kit)
app.command("replay")(replay.replay)
app.command("report")(report.report)
app.add_typer(runs.app, name="runs")
app.add_typer(model.app, name="model")
app.command("grammar")(grammar.grammar)
app.command("rules")(rules.rules)


def command(argv: list[str]) -> int:
    """Run one command line and return its exit code; wrong usage is told here."""
    from .shared.output import complain

    try:
        result = app(argv, prog_name="knotwork", standalone_mode=False)
    except typer.Abort:
        return Exit.INTERRUPTED
    except Misused as error:
        complain(error.message, error.hint)
        return Exit.USAGE
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        message = in_our_words(error.format_message())
        if message and type(error).__name__ != "NoArgsIsHelpError":  # then the help has been printed
            complain(message, _likely(message, argv))
            if context is not None:
                print(f"{context.get_usage().strip()}\nSee {context.command_path} --help.", file=sys.stderr)
        return error.exit_code
    return result if isinstance(result, int) else Exit.DONE


def _likely(message: str, argv: list[str]) -> str:
    """Say what was probably meant, where the message itself does not."""
    if argv[:1] == ["run"] and message.startswith("Got unexpected extra argument"):
        return "run takes one script; its input is given with --input FILE"
    if argv[:1] in (["answer"], ["ask"], ["rank"]) or argv[:2] == ["seed", "compile"]:
        return _likely_of_loop(argv, message)
    if argv[:1] == ["repl"] and message.startswith(("No such option: --graph", "No such option: -g")):
        return "the graph stands behind repl: knotwork repl GRAPH"
    if argv[:1] == ["seed"] and len(argv) > 1 and argv[1].endswith((".md", ".txt")):
        return f"a task in words is compiled by: knotwork seed compile {argv[1]}"
    if argv[:1] == ["seed"] and message.startswith("No such command"):
        return "a seed is run by: knotwork seed run SEED CONTEXTS"
    if argv[:2] == ["seed", "run"] and message.startswith("No such option: --input"):
        return "the contexts stand behind the seed: knotwork seed run SEED CONTEXTS"
    if argv[:1] == ["runs"] and len(argv) == 2 and message.startswith("No such command"):
        return f"one run is shown by: knotwork runs show {argv[1]}"
    named = re.match(r"No such option: --([\w-]+)", message)
    if named and (name := named[1].replace("-", "_")) in (
        "model",
        "system",
        "temperature",
        "stop",
        "type",
        "retries",
        "timeout",
    ):
        return f'{name} is said in the script, for each call: LLM("...", {name}=...)'
    return ""


_QUOTED = {
    "answer": 'an instruction of several words stands in quotes: knotwork answer "Explain tides"',
    "ask": 'a question of several words stands in quotes: knotwork ask GRAPH "Who meets the most people?"',
    "rank": 'what is wanted is given with --request: knotwork rank ITEMS --request "cafe with drive-thru"',
    "seed": "a task is one file; what it is tried on is given with --example CONTEXTS",
}
_MODELS = {"answer": "the model is named by --llm, that of the judge by --judge-llm"}
_MISSING = {
    "'GRAPH'": 'for example: knotwork ask nx:les_miserables "Who meets the most people?"',
    "'QUESTION'": 'the graph stands first: knotwork ask GRAPH "Who meets the most people?"',
    "'TASK'": "for example: knotwork seed compile task.md --output task.seed.json",
}


def _likely_of_loop(argv: list[str], message: str) -> str:
    """Say what was probably meant of a command that puts a task in words to a model."""
    if message.startswith("Got unexpected extra argument"):
        return _QUOTED[argv[0]]
    if message.startswith("No such option: --model"):
        return _MODELS.get(argv[0], "the model is named by --llm")
    if argv[0] == "ask" and message.startswith("No such option: --graph"):
        return 'the graph stands before the question: knotwork ask GRAPH "Who meets the most people?"'
    if argv[0] == "rank" and message.startswith("No such option: --items"):
        return 'the items stand first: knotwork rank ITEMS --request "cafe with drive-thru"'
    return next((hint for name, hint in _MISSING.items() if message == f"Missing argument {name}"), "")
