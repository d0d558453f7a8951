"""``knotwork import``: write the prompts of other tools as scripts and test cases."""

from pathlib import Path
from typing import Annotated

from .....lang.diagnostic import printable
from ..params import argument, flag, option


def import_file(
    file: Annotated[
        str,
        argument(
            "FILE", "A LangChain prompt, a promptfoo configuration, or DSPy signatures: .json, .yaml, .txt or .py."
        ),
    ],
    out: Annotated[
        str | None,
        option(
            "--out -o",
            "DIR|NAME.lwt",
            "Folder for the scripts and cases, or the name of the script (default: print them).",
        ),
    ] = None,
    force: Annotated[bool, flag("--force", "Replace existing files.")] = False,
) -> int:
    """Write prompts of LangChain, promptfoo and DSPy as scripts and test cases.

    Variables of a prompt become keys of the script's input. Parts that could not be imported are listed on stderr, and the exit code is
    then 4.

    Example: knotwork import promptfooconfig.yaml -o scripts
    """
    from ....api.importer import ImportFailed, import_file
    from ..output import Exit, Misused, complain, say, write

    target = None if out is None else Path(out)
    name = None
    if target is not None and target.suffix == ".lwt":
        name, target = target.name.removesuffix(".lwt"), target.parent
    try:
        found = import_file(file, name=name)
    except ImportFailed as error:
        complain(error.message, error.hint)
        return Exit.USAGE
    except OSError as error:
        raise Misused(f"{error.filename or file} can't be read: {error.strerror or error}") from None
    if target is None:
        files = found.files()
        for each, text in files.items():
            if len(files) > 1:
                write(f"# {each}")
            write(text)
    else:
        try:
            written = found.write(target, force=force)
        except FileExistsError as error:
            raise Misused(f"{error.filename} already exists", "use --force to replace it") from None
        except OSError as error:
            complain(f"{error.filename or out} can't be written: {error.strerror or error}")
            return Exit.FAILED
        for path in written:
            say(printable(f"written: {path}"))
    for hint in found.hints:
        say(printable(f"note: {hint}"))
    for each in found.left_out:
        say(printable(f"left out: {each}"))
    return Exit.PARTIAL if found.left_out else Exit.DONE
