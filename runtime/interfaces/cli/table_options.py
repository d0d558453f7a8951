"""Options about tables and samples that several commands share, declared once."""

from collections.abc import Sequence
from typing import Annotated

from .output import Misused
from .params import flag, option

TABLES = "Tables and samples"
"""The help's heading for the options about tables."""
Group = Annotated[
    str | None,
    option(
        "--group",
        "COL[,COL]",
        "Make a context of the rows with equal values (default: each row is a context).",
        TABLES,
    ),
]
TextColumn = Annotated[str | None, option("--text", "COL", "Column of the texts (default: text).", TABLES)]
ColumnOf = Annotated[
    list[str] | None,
    option(
        "--column",
        "NAME[:TYPE]=COL",
        "Column with a key of the reviews: id, stars, useful, date, or a key that the seed declares under meta; TYPE is int, float, "
        "bool, text or list. Repeatable (default: columns with these names).",
        TABLES,
    ),
]
Query = Annotated[
    str | None,
    option(
        "--query", "SELECT", "A single SELECT that reads the rows from a .duckdb file or a postgresql:// URL.", TABLES
    ),
]
Encoding = Annotated[str | None, option("--encoding", "NAME", "Encoding of CSV files (default: utf-8).", TABLES)]
DropNullGroups = Annotated[
    bool,
    flag(
        "--drop-null-groups",
        "Leave out rows without a value in a group column (default: a context with an empty name).",
        TABLES,
    ),
]
Limit = Annotated[int | None, option("--limit", "N", "Only the first N contexts.", TABLES, min=1)]
SampleReviews = Annotated[
    int | None,
    option("--sample-reviews", "N", "Only N reviews of each context, chosen as by --sample.", TABLES, min=1),
]
RandomState = Annotated[
    int, option("--random-state", "N", "Another number gives another sample.", TABLES, min=0, show_default=True)
]
ShardOf = Annotated[
    str | None,
    option(
        "--shard",
        "K/N",
        "Only the K-th of N parts of the contexts, to divide the work among N machines; knotwork seed merge combines the results.",
        TABLES,
    ),
]
Extractions = Annotated[
    str | None,
    option(
        "--extractions", "FILE", "Also write a table with a row for each kept review (suffixes as for --out).", TABLES
    ),
]
Spreadsheet = Annotated[
    bool, flag("--spreadsheet", "In CSV files, put ' before texts that a spreadsheet would parse as a formula.", TABLES)
]

GoldQuery = Annotated[
    str | None, option("--gold-query", "SELECT", "Query that yields the labelled items, for a database.", TABLES)
]


def columns_of(given: Sequence[str]) -> dict[str, str]:
    """Map the key of each ``--column`` option (``NAME`` or ``NAME:TYPE``) to its column. Raises ``Misused``."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, column = text.partition("=")
        if not (equals and name and column):
            raise Misused(f"--column {text}: expected NAME=COL or NAME:TYPE=COL", "such as --column stars=rating")
        if name in found:
            raise Misused(f"--column: {name} is given twice", "name one column for each key")
        found[name] = column
    return found


# Options for files that a command writes from existing results.

WholeOut = Annotated[
    str | None,
    option(
        "--out -o", "FILE", "Output file: .jsonl, .json, .csv, .tsv, .parquet or .duckdb, written whole at the end."
    ),
]
WholeExtractions = Annotated[
    str | None,
    option(
        "--extractions",
        "FILE",
        "Write a table with a row for each kept review, with or without --out (suffixes as for --out).",
    ),
]
Guarded = Annotated[
    bool, flag("--spreadsheet", "In CSV files, put ' before texts that a spreadsheet would parse as a formula.")
]
