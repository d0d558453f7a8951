"""What ``seed schema`` and ``seed convert`` do."""

import sys
from pathlib import Path
from typing import Any, Literal

from .....lang.diagnostic import printable
from ....api.checked import Checked
from ...replacing import replace_file
from ..shared.checking import show
from ..shared.exit import Exit, Misused
from ..shared.files import STDIN, writable
from ..shared.output import json_text, say, write
from .incoming.opening import open_seed, refused
from .outgoing.tally import many
from .outgoing.writing import same_file

__all__ = ["convert_seed", "show_schema"]


def show_schema(form: Literal["002", "000"]) -> int:
    """Write the JSON Schema to stdout."""
    from .....lang.documents import seed

    schema: dict[str, Any] = seed.SEED_SCHEMA if form == "002" else seed.SEED_SCHEMA_000
    print(json_text(schema))
    return Exit.DONE


def convert_seed(name: str, output: str | None) -> int:
    """Write the seed in the declarative form; what stays an expression goes to stderr."""
    from .....lang.documents.seed import convert

    writable(output, (".json",))
    if output is not None and output != STDIN and same_file(name, output):
        raise Misused(f"{output} is what is read", "--output takes another file")
    seed = open_seed(name, "knotwork seed convert SEED")
    if isinstance(seed, Checked):
        return refused(seed, "nothing was written")
    if seed.form == "002":
        raise Misused(
            f"{seed.source.name} is of the declarative form already (002)", "knotwork check says more about it"
        )
    converted = convert(seed)
    text = json_text(converted.document)
    if output is None or output == STDIN:
        write(text)
        sys.stdout.flush()
    else:
        replace_file(Path(output), text + "\n")
    show([Checked(tuple(converted.kept), seed.source)], sys.stderr)
    kept = (
        many(len(converted.kept), "stays an expression", "stay expressions")
        if converted.kept
        else "none stays an expression"
    )
    say(f"{many(len(seed.steps), 'step')}; {kept} over extractions")
    if output is not None and output != STDIN:
        say(printable(f"written to {output}"))
    return Exit.DONE
