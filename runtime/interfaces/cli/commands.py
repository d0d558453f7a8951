"""The commands put together: names, help, and how one is loaded.

A command is a room of its own in this folder, named as the command, which is loaded when somebody types it: the list in
the help takes no command's options, and ``check`` none of the others'.
"""

import os
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from .meant import LIKELY, likely
from .shared.exit import MEANINGS, Exit, Misused
from .shared.words import in_our_words

__all__ = ["COMMANDS", "app", "command", "loaded"]

COMMANDS: Mapping[str, str] = {
    "run": "Run a script, a program or a plan.",
    "check": "Report all that is wrong with scripts, programs and seeds.",
    "fmt": "Format scripts in place.",
    "plan": "Show what a run would do: layers, critical path, final step.",
    "gasl": "Run commands one after the other and show what the last one gives.",
    "repl": "A prompt for GASL commands, LWT steps and expressions over the same values; .help tells more.",
    "answer": "Answer an instruction, judge the answer, and write it again until it is good enough.",
    "ask": "Answer a question about a graph: suppose, plan, run the plan, look at what came of it, until there is an answer.",
    "rank": "Rank items for a request: plan a prompt script, complete it, run it.",
    "serve": "Serve iterative answers and scripts over HTTP, and the Lab page to try them.",
    "lsp": "Serve an editor over stdin and stdout: diagnostics, completion, hover and the rest, for .lwt, .gasl and .seed.json.",
    "mcp": "Serve tools, resources and prompts to an agent, over stdio or HTTP.",
    "agent-kit": "Write schemas, tool definitions, grammars and system prompts for agents into one folder.",
    "replay": "Run a state's commands again, with the recorded answers of the model, and compare.",
    "report": "Write one HTML page.",
    "grammar": "Print a grammar that makes a model write readable scripts.",
    "rules": "List the rules that check goes by, or explain one.",
    "seed": "Compile Formula Seeds, run them on contexts, compute again, see where a value is from.",
    "graph": "Look at a graph: how it is loaded, and what it holds.",
    "state": "Look into a state, compare, fork, take back, verify.",
    "runs": "List kept runs, or show one in full.",
    "model": "Get and list models that run in this machine's memory.",
}
"""The commands in the order of the help, with what the list there says of each: the first sentence of its own help."""


def loaded(name: str) -> Any:
    """Return a command with its options, or a group with its commands."""
    room = import_module(f".{name.replace('-', '_')}", __package__)
    inner = getattr(room, "app", None)
    if inner is not None:
        return typer.main.get_group(inner)
    alone = typer.Typer(add_completion=False)
    alone.command(name)(getattr(room, room.__name__.rpartition(".")[2]))
    return typer.main.get_command(alone)


class _Group(TyperGroup):
    """The commands, of which only names and help are there; one that isn't is met with the one that was meant."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            **{**settings, "commands": {name: TyperCommand(name, help=COMMANDS[name]) for name in COMMANDS}}
        )

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
            if typed in LIKELY:
                ctx.fail(f"No such command '{typed}'. Did you mean 'knotwork {LIKELY[typed]}'?")
        name, there, rest = super().resolve_command(ctx, args)
        return name, there if name is None else loaded(name), rest


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


def command(argv: list[str]) -> int:
    """Run one command line and return its exit code; wrong usage is told here."""
    from ....adapters.llm.keys import mask_keys
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
        message = mask_keys(in_our_words(error.format_message()), typed=True)
        if message and type(error).__name__ != "NoArgsIsHelpError":  # then the help has been printed
            complain(message, likely(message, argv))
            if context is not None:
                print(f"{context.get_usage().strip()}\nSee {context.command_path} --help.", file=sys.stderr)
        return error.exit_code
    return result if isinstance(result, int) else Exit.DONE
