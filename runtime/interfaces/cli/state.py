"""``knotwork state``: what a state holds, how it came to be, and taking it back."""

from typing import Annotated, Literal

import typer

__all__ = ["app"]

app = typer.Typer(name="state", no_args_is_help=True, help="Look into a state, compare, fork, take back, verify.")

Folder = Annotated[
    str, typer.Argument(metavar="DIR", help="The state's folder, or an exported state.json.", show_default=False)
]
Form = Annotated[Literal["table", "json"], typer.Option("--format", help="A table, or JSON.")]


@app.command("show")
def show(
    folder: Folder,
    key: Annotated[
        str | None, typer.Argument(metavar="[KEY]", help="One key, such as network.authors.", show_default=False)
    ] = None,
    evidence: Annotated[bool, typer.Option("--evidence", help="Show the evidence beside each item, too.")] = False,
    output_format: Form = "table",
) -> int:
    """List the keys of a state, or show what one of them holds.

    Example: knotwork state show run/ network.authors --evidence
    """
    from .tasks.states import show_state

    return show_state(folder, key, evidence, output_format)


@app.command("log")
def log(
    folder: Folder,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="The most steps to list, latest last.")] = 50,
    output_format: Form = "table",
) -> int:
    """List what was done, step by step, with the state's hash after each commit.

    Example: knotwork state log run/ --limit 10
    """
    from .tasks.states import show_log

    return show_log(folder, limit, output_format)


@app.command("diff")
def diff(
    folder: Folder,
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="A hash from the log, or another state's folder.")],
    after: Annotated[
        str | None, typer.Argument(metavar="[AFTER]", help="Likewise; the state as it is now without it.")
    ] = None,
    output_format: Form = "table",
) -> int:
    """Show how two states differ.

    Example: knotwork state diff run/ 4f2a91
    """
    from .tasks.states import show_difference

    return show_difference(folder, before, after, output_format)


@app.command("fork")
def fork(
    folder: Folder,
    into: Annotated[str, typer.Argument(metavar="NEW", help="The folder of the fork; it must not be there.")],
) -> int:
    """Make a state of its own that begins as this one is now.

    Example: knotwork state fork run/ attempt-2/
    """
    from .tasks.changing import fork_state

    return fork_state(folder, into)


@app.command("rollback")
def rollback(
    folder: Folder,
    to: Annotated[str, typer.Argument(metavar="HASH", help="A hash from the log; its beginning will do.")],
) -> int:
    """Take a state back to an earlier commit. That is a commit, too: the history stays, and nothing is lost.

    Example: knotwork state rollback run/ 4f2a91
    """
    from .tasks.changing import roll_back

    return roll_back(folder, to)


@app.command("export")
def export(
    folder: Folder,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to; stdout without it.", show_default=False),
    ] = None,
) -> int:
    """Write a state as one JSON object: variables, history, provenance, and what a replay needs.

    Example: knotwork state export run/ -o state.json
    """
    from .tasks.changing import export_state

    return export_state(folder, output)


@app.command("verify")
def verify(folder: Folder, output_format: Form = "table") -> int:
    """Read every byte of a state's files and check it against the chain of hashes. Changes nothing.

    Example: knotwork state verify run/
    """
    from .tasks.changing import verify_state

    return verify_state(folder, output_format)
