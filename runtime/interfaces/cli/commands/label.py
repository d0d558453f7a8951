"""``knotwork label``: label reviews by hand, with a key for each value, for ``knotwork eval``."""

import sys
from pathlib import Path
from typing import Annotated, Literal

from ..output import Exit, Misused, say, shell_command
from ..params import argument, flag, option
from ..table_options import ColumnOf, Encoding, Group, Query, TextColumn, columns_of


def label(
    seed: Annotated[str, argument("SEED", "A Formula Seed (.seed.json). Its fields are labelled.")],
    data: Annotated[str, argument("DATA", "Contexts with their reviews, or a flat table of reviews.")],
    out: Annotated[
        str,
        option(
            "--out -o", "FILE", "File of the labels (.csv or .tsv); an existing file is continued.", show_default=True
        ),
    ] = "gold.csv",
    sample: Annotated[int, option("--sample", "N", "Number of reviews to label.", min=1, show_default=True)] = 100,
    pick: Annotated[
        Literal["random", "disagree", "unsure"],
        option(
            "--pick",
            None,
            "random. disagree: where the runs in --results differ. unsure: where the first run in --results has low confidence or invalid "
            "values.",
            show_default=True,
        ),
    ] = "random",
    results: Annotated[
        str | None,
        option("--results", "A[,B...]", "Results of seed run for the same data (.jsonl), for --pick and --show."),
    ] = None,
    stratify: Annotated[
        str | None, option("--stratify", "COL", "Pick in proportion to the values of this column, such as stars.")
    ] = None,
    show: Annotated[
        bool,
        flag(
            "--show",
            "Show the answers of the first run in --results; the file marks labels that were given with the answer visible.",
        ),
    ] = False,
    annotator: Annotated[
        str, option("--annotator", "NAME", "Who labels. Several people can label the same reviews in one file.")
    ] = "",
    field: Annotated[
        list[str] | None, option("--field", "NAME", "Label only this field (default: all). Repeatable.")
    ] = None,
    no_filter: Annotated[
        bool, flag("--no-filter", "Label all reviews, including those that the seed's filter drops.")
    ] = False,
    random_state: Annotated[
        int, option("--random-state", "N", "Another number picks other reviews.", show_default=True)
    ] = 0,
    group: Group = None,
    text: TextColumn = None,
    column: ColumnOf = None,
    query: Query = None,
    encoding: Encoding = None,
) -> int:
    """Label reviews by hand: each review has a screen, and each value has a key. Each label is written to disk at once.

    Quit at any time with q; run the same command to continue. The file is a gold table for knotwork eval.

    Example: knotwork label rating.seed.json reviews.jsonl -o gold.csv --sample 100
    """
    from .....lang.diagnostic import printable
    from ....api.checks import Checked
    from ....api.figures import counted
    from ....api.labels import ContextError, LabelError, ResultFault, TableError, open_labels
    from ....errors import RequestError
    from ..extractions import open_seed, report_errors
    from ..inputs import STDIN
    from ..label_view import LabelView, console_of

    if STDIN in (seed, data):
        raise Misused("label reads keys from the terminal, so no input can come from stdin", "name files")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Misused("label needs a terminal: stdin and stdout must not be redirected", "run it in a terminal window")
    tree = open_seed(seed, "knotwork label SEED DATA", warn=False)
    if isinstance(tree, Checked):
        return report_errors(tree)
    columns, warn = columns_of(column or ()), lambda message: say(printable(f"warning: {message}"))
    try:
        session = open_labels(
            tree, data, out, sample=sample, pick=pick, results=[each for each in (results or "").split(",") if each], stratify=stratify,
            show=show, annotator=annotator, fields=field or (), use_filter=not no_filter, random_state=random_state, group=group,
            text=text, columns=columns, query=query, encoding=encoding or "utf-8", warn=warn,
        )  # fmt: skip
    except (ContextError, LabelError, RequestError, ResultFault, TableError) as error:
        raise Misused(
            printable(error.message if hasattr(error, "message") else str(error)), getattr(error, "hint", "")
        ) from None
    view = LabelView(session, Path(out).name, console_of())
    interrupted = False
    try:
        view.run()
    except KeyboardInterrupt:
        interrupted = True
    finally:
        session.file.close()
    left = len(session.items) - session.done
    say(
        printable(
            f"{counted(session.done - session.skipped, 'review')} labelled, {session.skipped:,} skipped, {left:,} left; labels in {out}"
        )
    )
    if left:
        say("the same command continues")
    else:
        options = {
            "--group": group,
            "--text": text,
            "--query": query,
            "--encoding": encoding,
        }
        chosen = [word for name, value in options.items() if value is not None for word in (name, value)]
        chosen += [word for each in column or () for word in ("--column", each)] + (
            ["--no-filter"] if no_filter else []
        )
        command = shell_command("knotwork", "eval", seed, out, "--contexts", data, *chosen, "--llm", "SPEC")
        say(printable(f"score a model with: {command}"))
    return Exit.INTERRUPTED if interrupted else Exit.DONE
