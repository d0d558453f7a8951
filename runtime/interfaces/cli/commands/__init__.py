"""The command table: names, help texts, and lazy loading.

Each command is a module in this folder with the name of the command. A module is imported only when its command is used: the
list of commands in the help imports none of the modules, and ``check`` imports only its own module.
"""

import os
import re
import sys
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ..output import MEANINGS, Exit, Misused

__all__ = ["COMMANDS", "MODULES", "app", "command", "load_command", "reword"]


# Rewords the messages of Typer and pydantic about options.

_CHOICE = re.compile(r"'([^']*)'")
_HEAD = re.compile(r"Invalid value for '([^']+)'(?: / '[^']+')*: (.*)", re.DOTALL)
_REWORDINGS = (
    (r"Input should be greater than or equal to (\S+?)(?:\.0)?", r"must be at least \1"),
    (r"Input should be less than or equal to (\S+?)(?:\.0)?", r"must be at most \1"),
    (r"Input should be greater than (\S+?)(?:\.0)?", r"must be greater than \1"),
    (r"Input should be less than (\S+?)(?:\.0)?", r"must be less than \1"),
    (r"(?s)Input should be a valid integer.*", "must be a whole number"),
    (r"(?s)Input should be a (?:valid|finite) number.*", "must be a number"),
)
"""Patterns of pydantic's messages, each with the wording that replaces it."""


def reword(message: str) -> str:
    """Replace the wording of Typer and pydantic in a command-line error message by this program's wording."""
    message = message.replace(": Value error, ", ": ").rstrip(".")
    head = _HEAD.fullmatch(message)
    if head is None:
        return message
    option, problem = head.groups()
    for pattern, wording in _REWORDINGS:
        if match := re.fullmatch(pattern, problem):
            return f"{option}: {match.expand(wording)}"
    if problem.startswith("Input should be '"):
        return f"{option}: must be one of {', '.join(_CHOICE.findall(problem))}"
    return f"{option}: {problem}"


# Hints for unknown commands and options: names used by other tools, and options in the wrong place.

OTHER_NAMES: Mapping[str, str] = {
    "lint": "check", "validate": "check", "verify": "state verify", "format": "fmt", "query": "gasl", "html": "report",
    "find": "gasl -c 'FIND ...'", "show": "plan", "dag": "plan", "exec": "run", "execute": "run", "start": "run",
    **dict.fromkeys(("tests", "pytest", "cases"), "test"),
    "ls": "runs", "list": "runs", "history": "runs", "log": "state log", "models": "model", "pull": "model pull",
    "explain": "rules", "rule": "rules", "resume": "run --resume", "compute": "seed compute", "extract": "seed run",
    "seeds": "seed", "formula": "seed", "sensitivity": "seed sensitivity", "convert": "seed convert", "schema": "seed schema",
    **dict.fromkeys(("anot", "sort", "rerank", "order", "ranking"), "rank"),
    **dict.fromkeys(("hdt", "question", "traverse", "explore", "hypothesize"), "ask"), "search": "ask --search beam",
    "compile": "seed compile", "compiler": "seed compile",
    **dict.fromkeys(("evaluate", "evals", "score", "benchmark"), "eval"),
    "generate": "answer", "generate-answer": "answer", "judge": "answer",
    **dict.fromkeys(("shell", "console", "prompt", "interactive", "session"), "repl"),
    **dict.fromkeys(("agent", "agents", "tools"), "mcp"), "kit": "agent-kit",
    "server": "serve", "http": "serve", "web": "serve", "lab": "serve", "keys": "serve --list-keys",
}  # fmt: skip
"""Maps command names that other tools use to the equivalent knotwork commands."""


def hint_for(message: str, argv: list[str]) -> str:
    """Return a hint with the command or option that the user probably meant; "" if the message needs no hint."""
    if argv[:1] == ["run"] and message.startswith("Got unexpected extra argument"):
        return "run takes one script; pass its input with --input FILE"
    if argv[:1] == ["run"] and "--each" in argv and message.startswith("No such option: --batch"):
        return _NO_BATCH
    if argv[:1] in (["answer"], ["ask"], ["rank"]) or argv[:2] == ["seed", "compile"]:
        return _hint_for_loop(argv, message)
    if argv[:1] == ["repl"] and message.startswith(("No such option: --graph", "No such option: -g")):
        return "the graph is an argument: knotwork repl GRAPH"
    if argv[:1] == ["seed"] and len(argv) > 1 and argv[1].endswith((".md", ".txt")):
        return f"compile a task with: knotwork seed compile {argv[1]}"
    if argv[:1] == ["seed"] and message.startswith("No such command"):
        if argv[1] in ("check", "fmt", "plan"):
            return f"{argv[1]} takes files of all languages: knotwork {argv[1]} SEED"
        return "run a seed with: knotwork seed run SEED CONTEXTS"
    if argv[:2] == ["seed", "run"] and message.startswith("No such option: --input"):
        return "the contexts are an argument: knotwork seed run SEED CONTEXTS"
    if argv[:1] == ["runs"] and len(argv) == 2 and message.startswith("No such command"):
        return f"show one run with: knotwork runs show {argv[1]}"
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
        return f'set {name} in the script, for each call: LLM("...", {name}=...)'
    return ""


_NO_BATCH = (
    "a step's prompt depends on the answers of earlier steps, so a batch could contain only one step; omit --batch"
)
_EXTRA_ARGUMENT = {
    "answer": 'put an instruction of several words in quotes: knotwork answer "Explain tides"',
    "ask": 'put a question of several words in quotes: knotwork ask GRAPH "Who meets the most people?"',
    "rank": 'pass the request with --request: knotwork rank ITEMS --request "cafe with drive-thru"',
    "seed": "seed compile takes one task; pass contexts to test the seed with --example CONTEXTS",
}
_MODEL_OPTIONS = {"answer": "choose the model with --llm, the judge with --judge-llm"}
_MISSING_ARGUMENT = {
    "'GRAPH'": 'for example: knotwork ask nx:les_miserables "Who meets the most people?"',
    "'QUESTION'": 'the graph comes first: knotwork ask GRAPH "Who meets the most people?"',
    "'TASK'": "for example: knotwork seed compile task.md --output task.seed.json",
}


def _hint_for_loop(argv: list[str], message: str) -> str:
    """Return the hint for ``answer``, ``ask``, ``rank`` and ``seed compile``."""
    if message.startswith("Got unexpected extra argument"):
        return _EXTRA_ARGUMENT[argv[0]]
    if message.startswith("No such option: --model"):
        return _MODEL_OPTIONS.get(argv[0], "choose the model with --llm")
    if argv[0] == "ask" and message.startswith("No such option: --graph"):
        return 'the graph is the first argument: knotwork ask GRAPH "Who meets the most people?"'
    if argv[0] == "rank" and message.startswith("No such option: --items"):
        return 'the items are the first argument: knotwork rank ITEMS --request "cafe with drive-thru"'
    return next((hint for name, hint in _MISSING_ARGUMENT.items() if message == f"Missing argument {name}"), "")


COMMANDS: Mapping[str, str] = {
    "run": "Run a script, a program or a plan.",
    "check": "Report errors and warnings in scripts, programs, plans and seeds.",
    "fmt": "Format scripts and programs in place.",
    "plan": "Show what a run would do: layers, critical path, final step.",
    "gasl": "Run GASL commands in order and show the result of the last one.",
    "repl": "Open a prompt for GASL commands, LWT steps and expressions that share their values; .help lists the commands.",
    "answer": "Answer an instruction, judge the answer, and improve it until it is good enough.",
    "ask": "Answer a question about a graph: hypothesise, plan, execute and evaluate until the question is answered.",
    "rank": "Rank items for a request: plan, complete and run a prompt script.",
    "eval": "Score a seed, a script or a loop with labelled data, and compare candidates.",
    "test": "Run the test cases of scripts: NAME.cases.jsonl has the cases of NAME.lwt.",
    "import": "Write prompts of LangChain, promptfoo and DSPy as scripts and test cases.",
    "label": "Label reviews by hand: each review has a screen, and each value has a key.",
    "serve": "Serve iterative answers and scripts over HTTP, together with the Lab, a page for trying both.",
    "lsp": "Serve an editor over stdin and stdout: diagnostics, completion, hover and other features for .lwt, .gasl and .seed.json.",
    "mcp": "Serve tools, resources and prompts to an agent, over stdio or HTTP.",
    "agent-kit": "Write schemas, tool definitions, grammars and system prompts for agents into one folder.",
    "replay": "Repeat the commands of a state with the recorded model answers, and compare the results.",
    "report": "Write a report on a run or a state as one HTML page.",
    "grammar": "Print a grammar that restricts a model's output to valid text.",
    "rules": "List the rules of knotwork check, or explain one rule.",
    "seed": "Compile Formula Seeds, run them on contexts, tune them, recompute and explain results.",
    "graph": "Show how a graph is loaded and what it contains.",
    "state": "Show, compare, fork, roll back and verify a state.",
    "runs": "List stored runs, or show one run in full.",
    "model": "Download and list models that run locally; measure the speed of a model.",
}
"""Maps each command to the first sentence of its help text. The help lists the commands in this order."""


MODULES = {"import": "import_file"}
"""Maps commands whose name is a keyword of Python to their modules."""


@cache
def load_command(name: str) -> Any:
    """Import the module of a command. Return the command with its options, or a group with its commands."""
    module = import_module(f".{MODULES.get(name, name.replace('-', '_'))}", __package__)
    inner = getattr(module, "app", None)
    if inner is not None:
        return _with_home(typer.main.get_group(inner))
    alone = typer.Typer(add_completion=False)
    alone.command(name)(getattr(module, module.__name__.rpartition(".")[2]))
    return _with_home(typer.main.get_command(alone))


_TEXTS = frozenset({"CHECK", "COMMAND", "[COMMAND]", "EXPR", "INSTRUCTION", "NAME=VALUE", "QUESTION", "SELECT", "TEXT"})
"""The values that are no paths, in which a ``~`` is text."""


def _with_home(command: Any) -> Any:
    """Return the command. In its arguments and options that are paths, a leading ``~`` is the home directory."""
    from ....api.clients import at_home

    def expanded(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(expanded, value))
        return at_home(value) if isinstance(value, str) else value

    def after(callback: Any) -> Any:
        return lambda ctx, param, value: expanded(callback(ctx, param, value) if callback else value)

    for param in command.params:
        if param.metavar not in _TEXTS:
            param.callback = after(param.callback)
    for inner in getattr(command, "commands", {}).values():
        _with_home(inner)
    return command


class _Group(TyperGroup):
    """The root group. It loads only the names and help texts of the commands, and suggests a command for an unknown name."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            **{**settings, "commands": {name: TyperCommand(name, help=COMMANDS[name]) for name in COMMANDS}}
        )

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Load the command that the first of ``args`` names. Return its name, the command, and the remaining arguments."""
        typed = args[0] if args else ""
        if typed == "help" and typed not in self.commands:
            ctx.fail("No such command 'help'. Did you mean 'knotwork --help'?")
        if typed and not typed.startswith("-") and typed not in self.commands:
            if typed.endswith(".seed.json"):
                ctx.fail(f"{typed} is a Formula Seed, not a command. Did you mean: knotwork seed run {typed} CONTEXTS")
            if typed.endswith((".lwt", ".gasl")) or os.path.isfile(typed):
                ctx.fail(f"{typed} is a file, not a command. Did you mean: knotwork run {typed}")
            if typed in OTHER_NAMES:
                ctx.fail(f"No such command '{typed}'. Did you mean 'knotwork {OTHER_NAMES[typed]}'?")
        name, there, rest = super().resolve_command(ctx, args)
        return name, there if name is None else load_command(name), rest


_CODES = " · ".join(f"{code.value} {meaning.split(':')[0].split(' (')[0]}" for code, meaning in MEANINGS.items())

app = typer.Typer(
    cls=_Group,
    name="knotwork",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=f"Exit codes: {_CODES}. FILE may be - for stdin. KNOTWORK_LLM sets the default model; KNOTWORK_DEBUG=1..3 logs more details.",
)
"""The Typer application."""


def _version(asked: bool) -> None:
    if asked:
        from ..... import __version__

        print(f"knotwork {__version__}")
        raise typer.Exit


def _trace(asked: bool) -> None:
    if asked:
        from ....api import process_traces as traces

        traces.begin(asked=True)


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    otel: Annotated[
        bool,
        typer.Option(
            "--otel",
            callback=_trace,
            help="Export traces and metrics to the collector at OTEL_EXPORTER_OTLP_ENDPOINT, else at localhost:4318.",
        ),
    ] = False,
) -> None:
    """Check and run prompt scripts, graph programs, plans and seeds, and show their results."""


@cache
def _program() -> Any:
    """Return the root group. It is built only once, because building it takes longer than parsing a command line."""
    return typer.main.get_command(app)


def command(argv: list[str]) -> int:
    """Run one command line and return its exit code; report wrong usage on stderr."""
    from ....api.clients import mask_keys
    from ..output import complain

    try:
        result = _program()(argv, prog_name="knotwork", standalone_mode=False)
    except typer.Abort:
        return Exit.INTERRUPTED
    except Misused as error:
        complain(error.message, error.hint)
        return Exit.USAGE
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        message = mask_keys(reword(error.format_message()), typed=True)
        if message and type(error).__name__ != "NoArgsIsHelpError":  # the help has been printed already
            complain(message, hint_for(message, argv))
            if context is not None:
                print(f"{context.get_usage().strip()}\nSee {context.command_path} --help.", file=sys.stderr)
        return error.exit_code
    return result if isinstance(result, int) else Exit.DONE
